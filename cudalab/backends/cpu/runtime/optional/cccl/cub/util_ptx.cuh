// CUB's PTX: shuffles, matches and the like, as CUDA's functions.
#pragma once

#include <cuda/__cmath/pow2.h>
#include <cuda/__ptx/instructions/get_sreg.h>
#include <cuda/__ptx/instructions/shfl_sync.h>

#include <cub/config.cuh>
#include <cub/util_type.cuh>
#include <cuda/std/cstdint>

CUB_NAMESPACE_BEGIN

template <class Bits>
unsigned BFE(Bits source, unsigned first, unsigned count) {
    const unsigned width = 8 * sizeof(Bits);
    if (first >= width || count == 0) return 0;
    return (unsigned)((source >> first) & (count >= width ? ~(Bits)0 : ((Bits)1 << count) - 1));
}

inline int RowMajorTid(int block_dim_x, int block_dim_y, int) {
    return (int)((threadIdx.z * block_dim_y + threadIdx.y) * block_dim_x + threadIdx.x);
}

// The lanes of a group of this many threads within its warp.
template <int THREADS>
unsigned WarpMask(unsigned group) {
    const unsigned lanes = 0xffffffffu >> (32 - THREADS);
    return ::cuda::is_power_of_two(THREADS) && THREADS != 32 ? lanes << group * THREADS : lanes;
}

namespace detail {

inline uint32_t LogicShiftLeft(uint32_t value, uint32_t bits) {
    return bits < 32 ? value << bits : 0;
}
inline uint32_t LogicShiftRight(uint32_t value, uint32_t bits) {
    return bits < 32 ? value >> bits : 0;
}

template <int LABEL_BITS, int ACTIVE_THREADS>
struct warp_matcher_t {
    static unsigned match_any(unsigned label) {
        const unsigned lanes = __match_any_sync(0xffffffffu, label & ((1ull << LABEL_BITS) - 1));
        return lanes & (0xffffffffu >> (32 - ACTIVE_THREADS));
    }
};

}  // namespace detail

// Calls `shuffle` for each word of 4 bytes.
template <class T, class F>
T ShuffleWords(const T& value, F shuffle) {
    unsigned words[(sizeof(T) + 3) / 4] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    for (unsigned& word : words) word = shuffle(word);
    T result = value;
    __builtin_memcpy((void*)&result, words, sizeof(T));
    return result;
}
template <int THREADS, class T>
T ShuffleUp(T input, int offset, int first, unsigned mask) {
    return ShuffleWords(input, [=](unsigned word) {
        bool valid;
        return ::cuda::ptx::shfl_sync_up(word, valid, offset, first | (32 - THREADS) << 8, mask);
    });
}
template <int THREADS, class T>
T ShuffleDown(T input, int offset, int last, unsigned mask) {
    return ShuffleWords(input, [=](unsigned word) {
        bool valid;
        return ::cuda::ptx::shfl_sync_down(word, valid, offset, last | (32 - THREADS) << 8, mask);
    });
}
template <int THREADS, class T>
T ShuffleIndex(T input, int lane, unsigned mask) {
    return ShuffleWords(input,
                        [=](unsigned word) { return __shfl_sync(mask, word, lane, THREADS); });
}

template <int LABEL_BITS, int ACTIVE_THREADS = 32>
unsigned MatchAny(unsigned label) {
    return detail::warp_matcher_t<LABEL_BITS, ACTIVE_THREADS>::match_any(label);
}

CUB_NAMESPACE_END
