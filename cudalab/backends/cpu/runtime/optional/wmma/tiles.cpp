// The tiles of tensor cores: in memory, in the shares of a warp's lanes, and where these meet.

#include "mma.h"

namespace cudalab {

// ------------------------------------------------------------------ the lanes of a warp

static __thread struct {
    Meeting* lanes[32];
    unsigned arrived;
} warps[32];  // of this OS thread's block
__thread bool lanes_are_missing;

bool Meeting::arrives() {
    auto& warp = warps[current.thread / 32];
    if (warp.arrived >> lane() & 1) warp.arrived = 0;  // left by a kernel that has failed
    warp.arrived |= 1u << lane();
    warp.lanes[lane()] = this;
    if (warp.arrived != ~0u) return false;
    warp.arrived = 0;
    for (Meeting* each : warp.lanes) each->state = DONE;
    lanes = warp.lanes;
    state = AT_WORK;
    lanes_are_missing = false;
    return true;
}
bool Meeting::is_alone() {
    auto& warp = warps[current.thread / 32];
    warp.arrived = 0;
    for (Meeting*& each : warp.lanes) each = this;
    lanes = warp.lanes;
    state = AT_WORK;
    lanes_are_missing = true;
    return true;
}
bool Meeting::ends(const char* file, int line) {
    if (!lanes_are_missing) cudalab_warp_op(SYNC, ~0u, 0, 0, file, line);
    lanes_are_missing = false;
    state = DONE;
    return false;
}

// ------------------------------------------------------------------ tiles in memory

// Calls copy(bytes), where the compiler knows the usual values.
template <size_t constant, size_t... others, class F>
static void with_constant(size_t bytes, F copy) {
    if (bytes == constant)
        copy(std::integral_constant<size_t, constant>());
    else if constexpr (sizeof...(others) > 0)
        with_constant<others...>(bytes, copy);
    else
        copy(bytes);
}

// Exchanges the blocks of `width` elements that lie apart from the diagonal of two rows.
template <size_t width, class Row, size_t... i>
static inline void exchange(Row& upper, Row& lower, Indices<i...>) {
    const Row before = upper;
    upper = __builtin_shufflevector(before, lower, (i & width ? 16 + i - width : i)...);
    lower = __builtin_shufflevector(before, lower, (i & width ? 16 + i : i + width)...);
}
template <size_t width, class Row>
static inline void exchange_blocks(Row* rows) {
    for (unsigned i = 0; i < 16; ++i)
        if (!(i & width))
            exchange<width>(rows[i], rows[i + width], typename MakeIndices<16>::type());
    if constexpr (width > 1) exchange_blocks<width / 2>(rows);
}
template <class T>
static void transpose(const T* from, unsigned stride, T* to) {
    typedef T Row __attribute__((vector_size(16 * sizeof(T))));
    Row rows[16];
    for (unsigned i = 0; i < 16; ++i)
        __builtin_memcpy(&rows[i], from + (size_t)i * stride, sizeof(Row));
    exchange_blocks<8>(rows);
    __builtin_memcpy(to, rows, sizeof rows);
}

template <class T>
static void copy_tile(const T* from, unsigned rows, unsigned columns, unsigned stride, bool by_rows,
                      T* to) {
    const auto copy_rows = [&](auto bytes) {
        for (unsigned i = 0; i < rows; ++i)
            __builtin_memcpy(to + i * columns, from + (size_t)i * stride, bytes);
    };
    if (by_rows)
        with_constant<64, 32, 16, 128>(columns * sizeof(T), copy_rows);
    else if (rows == 16 && columns == 16 && sizeof(T) <= 2)
        transpose(from, stride, to);
    else
        for (unsigned j = 0; j < columns; ++j)
            for (unsigned i = 0; i < rows; ++i) to[i * columns + j] = from[(size_t)j * stride + i];
}
static void copy_tile(const void* from, Number number, unsigned rows, unsigned columns,
                      unsigned stride, bool by_rows, void* to) {
    const auto copy = [&](auto element) {
        typedef decltype(element) T;
        copy_tile((const T*)from, rows, columns, stride, by_rows, (T*)to);
    };
    const unsigned bytes = bytes_of(number);
    if (bytes == 1)
        copy((uint8_t)0);
    else if (bytes == 2)
        copy((uint16_t)0);
    else if (bytes == 4)
        copy((uint32_t)0);
    else
        copy((uint64_t)0);
}
void load(const void* from, Number number, unsigned rows, unsigned columns, unsigned stride,
          bool by_rows, Factor& factor) {
    copy_tile(from, number, rows, columns, stride, by_rows, factor.bits);
    factor.is_read = false;
}
static void widen(uint16_t* bits, unsigned elements, Sums& sums) {
    for (unsigned i = 0; i < elements; ++i) sums.floats[i] = Half::value(bits[i]);
}
static void narrow(const Sums& sums, unsigned elements, uint16_t* bits) {
    for (unsigned i = 0; i < elements; ++i) {
        const float x = sums.floats[i];
        const unsigned word = __float_as_uint(x);  // keeps the bits of what is not a number
        bits[i] =
            x == x ? Half::bits(x) : (uint16_t)((word >> 16 & 0x8000) | (word >> 13 & 0x7fff));
    }
}
void load(const void* from, Number number, unsigned rows, unsigned columns, unsigned stride,
          bool by_rows, Sums& sums) {
    uint16_t bits[256];
    const bool is_half = number == Number::HALF;
    copy_tile(from, number, rows, columns, stride, by_rows, is_half ? (void*)bits : (void*)&sums);
    if (is_half) widen(bits, rows * columns, sums);
}

// ------------------------------------------------------------------ the lanes' shares of tiles

// Calls copy(memory, share, size) for all lanes.
template <class F>
static void copy_shares(const Shared& tile, size_t bytes, void* whole, F copy) {
    with_constant<32, 16, 8, 4>(bytes / 32, [&](auto size) {
        for (unsigned lane = 0; lane < 32; ++lane)
            copy((char*)whole + lane * size, tile.meeting.share(lane, tile.index, tile.offset),
                 size);
    });
}

static void gather(const Shared& tile, size_t bytes, void* to) {
    copy_shares(tile, bytes, to, [](char* memory, const char* share, auto size) {
        __builtin_memcpy(memory, share, size);
    });
}
void gather(const Shared& tile, Number number, unsigned elements, Factor& factor) {
    gather(tile, elements * bytes_of(number), factor.bits);
    factor.is_read = false;
}
void gather(const Shared& tile, Number number, unsigned elements, Sums& sums) {
    uint16_t bits[256];
    const bool is_half = number == Number::HALF;
    gather(tile, elements * bytes_of(number), is_half ? (void*)bits : (void*)&sums);
    if (is_half) widen(bits, elements, sums);
}

static void give(const void* from, size_t bytes, const Shared& tile) {
    copy_shares(tile, bytes, (void*)from, [](const char* memory, char* share, auto size) {
        __builtin_memcpy(share, memory, size);
    });
}
void give(const Factor& factor, Number number, unsigned elements, const Shared& tile) {
    give(factor.bits, elements * bytes_of(number), tile);
}
void give(const Sums& sums, Number number, unsigned elements, const Shared& tile) {
    uint16_t bits[256];
    const bool is_half = number == Number::HALF;
    if (is_half) narrow(sums, elements, bits);
    give(is_half ? (const void*)bits : &sums, elements * bytes_of(number), tile);
}

void multiply_shares(const Meeting& meeting, const Product& product) {
    Factor a, b;
    Sums sums;
    gather({meeting, 0, 0}, product.number, product.m * product.k, a);
    gather({meeting, 1, 0}, product.number, product.k * product.n, b);
    gather({meeting, 2, 0}, product.of_c, product.m * product.n, sums);
    multiply(product, a, b, sums, sums);
    give(sums, product.of_d, product.m * product.n, {meeting, 3, 0});
}

}  // namespace cudalab
