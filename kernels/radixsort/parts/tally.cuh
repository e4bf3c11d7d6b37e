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
        const unsigned marked = value | TOP_BIT, first = marked * 2654435761u >> 20;
#pragma unroll 1  // the first place, nearly always
        for (unsigned tries = 0; tries < MAX_TRIES; ++tries) {
            const unsigned place = (first + tries) % PLACES;
            unsigned other = *(const volatile unsigned*)&kept[place];
            if (other == 0) other = atomicCAS(&kept[place], 0u, marked);
            if (other == 0 || other == marked) {
                atomicAdd(&counts[place], count);
                return true;
            }
        }
        return false;
    }
};
