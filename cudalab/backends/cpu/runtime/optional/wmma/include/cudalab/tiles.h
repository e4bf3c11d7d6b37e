// Whole tiles of tensor cores, by rows, which one lane multiplies for its warp.
#pragma once

#include "cudalab/narrow.h"

namespace cudalab {

enum class Number { HALF, BFLOAT16, TF32, FLOAT, DOUBLE, INT8, UINT8, INT32 };
constexpr unsigned bytes_of(Number number) {
    return number == Number::DOUBLE                               ? 8
           : number == Number::HALF || number == Number::BFLOAT16 ? 2
           : number == Number::INT8 || number == Number::UINT8    ? 1
                                                                  : 4;
}

// A tile of matrix_a or matrix_b: its bits, and what a multiplication makes of them.
struct alignas(64) Factor {
    union {
        unsigned char bits[1024];  // 512 elements of half at most
        double doubles[32];
    };
    union {
        float floats[512];
        int integers[512];
    };
    short exponents[512];  // of the floats
    bool is_read;          // all else is that of these bits
    int top, bottom;       // the largest exponent, and that of the lowest bit set in any element
    int extremes;          // see extremes_of()
};
// A tile of sums. Those of half are floats here, which have the values of halves.
struct alignas(64) Sums {
    union {
        float floats[256];
        int integers[256];
        double doubles[64];
    };
};

// The kinds of numbers in d = a * b + c, and the size of the tiles: m * k, k * n and m * n.
struct Product {
    Number number, of_c, of_d;
    unsigned m, n, k;
    bool saturates;
};

// Where the lanes of a warp meet: `while (meeting.begins()) …` is done once, by the last lane to
// arrive, and the others wait for it.
class Meeting {
  public:
    // With this lane's shares of tiles, each an array of elements.
    explicit Meeting(void* const* shares) : shares(shares) {}
    bool begins(CUDALAB_HERE) {
        if (state == AT_WORK) return ends(file, line);
        if (arrives()) return true;
        cudalab_warp_op(SYNC, ~0u, 0, 0, file, line);
        return state != DONE && is_alone();
    }
    // For the last lane: the `offset` in bytes of the share `index` of another one.
    char* share(unsigned lane, unsigned index, size_t offset) const {
        return (char*)lanes[lane]->shares[index] + offset;
    }

  private:
    void* const* const shares;
    Meeting** lanes;  // of the warp
    enum { WAITING, AT_WORK, DONE } state = WAITING;

    bool arrives();   // whether it is the last of all 32
    bool is_alone();  // where lanes are missing, each works by itself, and no product is allowed
    bool ends(const char* file, int line);
};
typedef Meeting cudalab_lanes;  // in a program's text, whose macros may have other names

extern __thread bool lanes_are_missing;  // in the meeting of the running thread

// A tile in the shares of all lanes.
struct Shared {
    const Meeting& meeting;
    unsigned index;
    size_t offset;  // in the lane's share
};
void gather(const Shared& tile, Number number, unsigned elements, Factor& factor);
void gather(const Shared& tile, Number number, unsigned elements, Sums& sums);
void give(const Factor& factor, Number number, unsigned elements, const Shared& tile);
void give(const Sums& sums, Number number, unsigned elements, const Shared& tile);

void load(const void* from, Number number, unsigned rows, unsigned columns, unsigned stride,
          bool by_rows, Factor& factor);
void load(const void* from, Number number, unsigned rows, unsigned columns, unsigned stride,
          bool by_rows, Sums& sums);
void round_to_tf32(Factor& factor, unsigned elements);
void multiply(const Product& product, Factor& a, Factor& b, const Sums& c, Sums& d);
void multiply_shares(const Meeting& meeting, const Product& product);  // those of a, b, c and d

}  // namespace cudalab
