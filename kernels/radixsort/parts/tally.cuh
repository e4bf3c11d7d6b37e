// Counts how often each of a few values occurs, in a small table.
#pragma once

constexpr unsigned TOP_BIT = 1u << 31;
constexpr unsigned MAX_TRIES = 8;  // places where a value may be

// For values that agree in their top bit. All of it is zero at first. The top bit is set in what is
// kept, which tells a place in use from a free one. Any threads may add at the same time.
template <unsigned PLACES>
struct Tally {
    unsigned kept[PLACES], counts[PLACES];

    // False if there is no place for the value.
    __device__ bool add(unsigned value, unsigned count) {
        const unsigned marked = value | TOP_BIT;
        return add_from<MAX_TRIES>(marked * 2654435761u >> 20, marked, count);
    }
    // Tries a place; nearly always it is the right one. No loop: on the CPU device, a loop that an
    // atomic operation ends would be taken for one that waits for other threads.
    template <unsigned TRIES>
    __device__ bool add_from(unsigned place, unsigned marked, unsigned count) {
        unsigned& there = kept[place % PLACES];
        unsigned other = *(const volatile unsigned*)&there;
        if (other == 0) other = atomicCAS(&there, 0u, marked);
        if (other == 0 || other == marked) {
            atomicAdd(&counts[place % PLACES], count);
            return true;
        }
        if constexpr (TRIES > 1)
            return add_from<TRIES - 1>(place + 1, marked, count);
        else
            return false;
    }
};
