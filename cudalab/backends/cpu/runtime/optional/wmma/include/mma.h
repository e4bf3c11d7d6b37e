// Tensor cores: products of tiles by all lanes of a warp together.
//
// A fragment holds the lane's share of a tile: the elements from lane * num_elements on, by rows.
// (On a GPU the share is another one, and each model's own.) tensor_cores.cpp multiplies.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cudalab/tiles.h"

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

template <class T>
struct Stored {
    typedef T type;
};
template <>
struct Stored<precision::tf32> {
    typedef float type;
};
template <class T>
struct NumberOf;
#define CUDALAB_NUMBER(T, name)                                             \
    template <>                                                             \
    struct NumberOf<T> {                                                    \
        static constexpr ::cudalab::Number value = ::cudalab::Number::name; \
    };
CUDALAB_NUMBER(__half, HALF)
CUDALAB_NUMBER(__nv_bfloat16, BFLOAT16)
CUDALAB_NUMBER(precision::tf32, TF32)
CUDALAB_NUMBER(float, FLOAT)
CUDALAB_NUMBER(double, DOUBLE)
CUDALAB_NUMBER(signed char, INT8)
CUDALAB_NUMBER(unsigned char, UINT8)
CUDALAB_NUMBER(int, INT32)
#undef CUDALAB_NUMBER

template <class T, unsigned ROWS, unsigned COLUMNS>
struct Share {
    static constexpr unsigned rows = ROWS, columns = COLUMNS;
    static constexpr int num_elements = ROWS * COLUMNS / 32, num_storage_elements = num_elements;
    static constexpr ::cudalab::Number number = NumberOf<T>::value;
    typedef typename Stored<T>::type element_type, storage_element_type;
    element_type x[num_elements];
};
template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment;
template <int m, int n, int k, class T, class Layout>
class fragment<matrix_a, m, n, k, T, Layout> : public Share<T, m, k> {
  public:
    typedef ::cudalab::Factor Tile;
};
template <int m, int n, int k, class T, class Layout>
class fragment<matrix_b, m, n, k, T, Layout> : public Share<T, k, n> {
  public:
    typedef ::cudalab::Factor Tile;
};
template <int m, int n, int k, class T>
class fragment<accumulator, m, n, k, T, void> : public Share<T, m, n> {
  public:
    typedef ::cudalab::Sums Tile;
};

inline float __float_to_tf32(float x) {
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7f800000) == 0x7f800000) return x;
    return __uint_as_float((bits + 0x1000) & 0xffffe000);  // to nearest, ties away from 0
}

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& tile,
                          const typename Stored<T>::type& value) {
    for (auto& each : tile.x) each = value;
}

// The element `i` of this lane's share, in memory.
template <class Tile, class T>
inline T* place(const Tile&, T* tile, unsigned stride, bool by_rows, int i) {
    const unsigned number = ::cudalab::lane() * (unsigned)Tile::num_elements + (unsigned)i;
    const unsigned row = number / Tile::columns, column = number % Tile::columns;
    return tile + (by_rows ? row * stride + column : column * stride + row);
}
template <class Use, int m, int n, int k, class T, class Layout>
inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& tile,
                             const typename Stored<T>::type* from, unsigned stride, CUDALAB_HERE) {
    const bool by_rows = std::is_same<Layout, row_major>::value;
    for (int i = 0; i < tile.num_elements; ++i)
        tile.x[i] = __ldca(place(tile, from, stride, by_rows, i));
    ::cudalab::cudalab_warp_op(::cudalab::SYNC, ~0u, 0, 0, file, line);
}
template <int m, int n, int k, class T>
inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& tile, const T* from,
                             unsigned stride, layout_t layout, CUDALAB_HERE) {
    for (int i = 0; i < tile.num_elements; ++i)
        tile.x[i] = __ldca(place(tile, from, stride, layout == mem_row_major, i));
    ::cudalab::cudalab_warp_op(::cudalab::SYNC, ~0u, 0, 0, file, line);
}
template <int m, int n, int k, class T>
inline void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& tile, unsigned stride,
                              layout_t layout, CUDALAB_HERE) {
    ::cudalab::cudalab_warp_op(::cudalab::SYNC, ~0u, 0, 0, file, line);
    for (int i = 0; i < tile.num_elements; ++i)
        __stwb(place(tile, to, stride, layout == mem_row_major, i), tile.x[i]);
}

template <int m, int n, int k, class D, class T, class C>
constexpr ::cudalab::Product product_of(bool saturates) {
    static_assert(NumberOf<T>::value == ::cudalab::Number::DOUBLE
                      ? m == 8 && n == 8 && k == 4
                      : m * n == 256 && (k == 16 || (k == 8 && m == n)),
                  "no tensor core multiplies tiles of this shape");
    return {NumberOf<T>::value, NumberOf<C>::value, NumberOf<D>::value, m, n, k, saturates};
}
template <int m, int n, int k, class D, class T, class LayoutA, class LayoutB, class C>
inline void mma_sync(fragment<accumulator, m, n, k, D>& d,
                     const fragment<matrix_a, m, n, k, T, LayoutA>& a,
                     const fragment<matrix_b, m, n, k, T, LayoutB>& b,
                     const fragment<accumulator, m, n, k, C>& c, bool saturates = false,
                     CUDALAB_HERE) {
    void* const shares[] = {(void*)a.x, (void*)b.x, (void*)c.x, d.x};
    ::cudalab::Meeting meeting(shares);
    while (meeting.begins(file, line))
        multiply_shares(meeting, product_of<m, n, k, D, T, C>(saturates));
}

}  // namespace wmma
}  // namespace nvcuda

#include "cudalab/whole_tiles.h"
