// Whole tiles in the place of fragments, where one lane loads and multiplies for its warp. Programs
// are rewritten to use them.
#pragma once

namespace nvcuda {
namespace wmma {

// The tile that a fragment is a share of.
template <class Fragment>
struct Whole : Fragment::Tile {
    void load(const void* from, unsigned stride, bool by_rows) {
        ::cudalab::load(from, Fragment::number, Fragment::rows, Fragment::columns, stride, by_rows,
                        *this);
    }
};

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(Whole<fragment<Use, m, n, k, T, Layout>>& tile,
                          const typename Stored<T>::type& value) {
    typedef fragment<Use, m, n, k, T, Layout> Fragment;
    typename Stored<T>::type row[Fragment::columns];
    for (auto& each : row) each = value;
    tile.load(row, 0, true);
}
template <class Use, int m, int n, int k, class T, class Layout>
inline void load_matrix_sync(Whole<fragment<Use, m, n, k, T, Layout>>& tile,
                             const typename Stored<T>::type* from, unsigned stride) {
    tile.load(from, stride, std::is_same<Layout, row_major>::value);
}
template <int m, int n, int k, class T>
inline void load_matrix_sync(Whole<fragment<accumulator, m, n, k, T>>& tile, const T* from,
                             unsigned stride, layout_t layout) {
    tile.load(from, stride, layout == mem_row_major);
}
template <int m, int n, int k, class D, class T, class LayoutA, class LayoutB, class C>
inline void mma_sync(Whole<fragment<accumulator, m, n, k, D>>& d,
                     Whole<fragment<matrix_a, m, n, k, T, LayoutA>>& a,
                     Whole<fragment<matrix_b, m, n, k, T, LayoutB>>& b,
                     const Whole<fragment<accumulator, m, n, k, C>>& c, bool saturates = false) {
    ::cudalab::multiply(product_of<m, n, k, D, T, C>(saturates), a, b, c, d);
}

// For the loop that calls __float_to_tf32() for each element.
template <class Fragment>
inline void round_to_tf32(Whole<Fragment>& tile) {
    ::cudalab::round_to_tf32(tile, Fragment::rows * Fragment::columns);
}

// The tiles of a fragment or of an array of fragments.
template <class T>
struct WholeOf {
    typedef Whole<T> type;
};
template <class T, size_t count>
struct WholeOf<T[count]> {
    typedef typename WholeOf<T>::type type[count];
};

// The tiles of variables, which are share `index` of all lanes: gathered, and given back at the
// end.
template <class T>
class Borrowed {
    typedef typename std::remove_reference<T>::type Variable;
    typedef typename std::remove_all_extents<Variable>::type Fragment;

  public:
    typename WholeOf<Variable>::type tiles;

    Borrowed(const ::cudalab::Meeting& meeting, unsigned index) : meeting(meeting), index(index) {
        each([](auto& tile, const ::cudalab::Shared& shared) {
            gather(shared, Fragment::number, Fragment::rows * Fragment::columns, tile);
        });
    }
    ~Borrowed() {
        if (std::is_const<Fragment>::value) return;
        each([](auto& tile, const ::cudalab::Shared& shared) {
            give(tile, Fragment::number, Fragment::rows * Fragment::columns, shared);
        });
    }

  private:
    const ::cudalab::Meeting& meeting;
    const unsigned index;

    template <class F>
    void each(F visit) {
        auto* const first = (Whole<Fragment>*)&tiles;
        for (size_t i = 0; i < sizeof(Variable) / sizeof(Fragment); ++i)
            visit(first[i], {meeting, index, i * sizeof(Fragment)});
    }
};

}  // namespace wmma
}  // namespace nvcuda
