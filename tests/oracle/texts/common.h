// What all kernels may use, the same on both sides.

DEVICE int zeros[8];
DEVICE int settings[8] = {3, -1, 40, 7, 1 << 20, 0, 99, -1000};
CONSTANT int table[16] = {5, 1, 4, 1, -5, 9, 2, 6, 5, 3, 5, 8, 97, -9, 3, 2};
// NaN, infinities, numbers that fit no int, and -0.
DEVICE int specials[8] = {0x7fc00000, 0x7f800000, (int)0xff800000, 0x4f32d05e,
                          (int)0xcf32d05e, 0x5f0ac723, (int)0x80000000, 0x3f000000};

// A value that the compiler knows nothing about.
FN int whole(int v) {
    return v ^ zeros[(unsigned)v >> 29];
}
FN unsigned whole(unsigned v) {
    return v ^ (unsigned)zeros[v >> 29];
}
FN long long whole(long long v) {
    return v ^ zeros[(unsigned long long)v >> 61];
}
FN unsigned long long whole(unsigned long long v) {
    return v ^ (unsigned long long)zeros[v >> 61];
}
FN short whole(short v) {
    return (short)whole((int)v);
}
FN unsigned short whole(unsigned short v) {
    return (unsigned short)whole((int)v);
}
FN signed char whole(signed char v) {
    return (signed char)whole((int)v);
}
FN unsigned char whole(unsigned char v) {
    return (unsigned char)whole((int)v);
}
FN float whole(float v) {
    return __int_as_float(whole(__float_as_int(v)));
}
FN double whole(double v) {
    return __longlong_as_double(whole(__double_as_longlong(v)));
}

struct Pair {
    int a, b;
    FN int sum() const { return (int)((unsigned)a + (unsigned)b); }
    FN void add(int more) { a = (int)((unsigned)a + (unsigned)more); }
    FN Pair& scaled(int by) {
        b = (int)((unsigned)b * (unsigned)by);
        return *this;
    }
    FN Pair& operator+=(int more) {
        b ^= more;
        add(more);
        return *this;
    }
};
FN Pair operator+(const Pair& left, const Pair& right) {
    return Pair{left.a ^ right.b, left.b ^ right.a};
}
FN Pair made(int a, int b) {
    Pair pair;
    pair.a = a;
    pair.b = b;
    return pair;
}
FN int summed(Pair pair) {
    pair.add(pair.b);
    return pair.sum();
}
struct Box {
    short small;
    unsigned words[4];
    long long wide;
    unsigned three : 3, five : 5;
    BOTH int folded() const {
        unsigned all = (unsigned)small + three + 8u * five + (unsigned)wide;
        for (unsigned word : words) all = all * 3u + word;
        return (int)all;
    }
};
BOTH Box boxed(int a, int b) {
    Box box = {};
    box.small = (short)a;
    for (int i = 0; i < 4; ++i) box.words[i] = (unsigned)b + (unsigned)(i * 77);
    box.wide = (long long)a * 1000000007;
    box.three = (unsigned)a & 7u;
    box.five = (unsigned)b & 31u;
    return box;
}
struct Many {
    int values[40];
    FN int at(unsigned i) const { return values[i % 40]; }
};
BOTH Many many(int first) {
    Many result;
    for (int i = 0; i < 40; ++i) result.values[i] = first * i - 7;
    return result;
}
struct Nested {
    Pair pair;
    short few[3];
    FN int of(unsigned i) const { return few[i % 3] ^ pair.sum(); }
};
struct Xor {
    int by;
    FN int operator()(int v) const { return v ^ by; }
};
template <class F>
FN int applied(F f, int v) {
    return f(v) ^ f(1);
}
template <int N, class T>
struct Counter {
    static constexpr int start = N + 2;
    static FN T next(T v) { return (T)(v ^ (T)(start * 3)); }
};
template <class D>
struct Base {
    FN int based() { return (int)sizeof(D) ^ 12; }
};
enum class Choice { none, one = 5, two };
FN int chosen(int v) {
    const Choice choice = v == 1 ? Choice::one : v == 2 ? Choice::two : Choice::none;
    switch (choice) {
    case Choice::one: return 17;
    case Choice::two: return -v;
    default: return v * 2;
    }
}
FN void add_to(int& target, int more) {
    target = (int)((unsigned)target + (unsigned)more);
}
FN void store(int* target, int value) {
    *target = value ^ 1;
}
template <class T>
FN void exchange(T& a, T& b) {
    const T c = a;
    a = b;
    b = c;
}
FN int mixed(int a, int b) {
    return (int)((unsigned)a * 31u) ^ b;
}
template <class T>
FN T twice(T value) {
    return (T)((unsigned)value * 2u);
}
template <int N>
FN int plus(int value) {
    int sum = 0;
    for (int i = 0; i < N % 5; ++i) sum += i ^ N;
    return value ^ sum;
}
FN int over(int a) {
    return a ^ 5;
}
FN int over(unsigned a) {
    return (int)(a + 1u);
}
FN int over(bool a) {
    return a ? 1234 : 4321;
}
FN int recursive(int n, int b) {
    return n < 1 ? b : recursive(n - 1, b ^ n) ^ (n << 3);
}
FN int odd(int n);
FN int even(int n) {
    return n == 0 ? 100 : odd(n - 1) + 1;
}
FN int odd(int n) {
    if (n == 0) return 200;
    return even(n - 1) - 3;
}
FN int next_lane(unsigned mask, int lane) {
    for (int i = lane + 1; i < 32; ++i)
        if (mask >> i & 1) return i;
    for (int i = 0; i < lane; ++i)
        if (mask >> i & 1) return i;
    return lane;
}
FN unsigned lanes_below(int part, int threads, int tid) {
    const int left = threads - tid / 32 * 32;
    return 0xffffffffu >> (32 - (left < part ? left : part));
}
FN void add_by_cas(int* target, int more) {
    int old = *target, seen;
    do {
        seen = old;
        old = atomicCAS(target, seen, (int)((unsigned)seen + (unsigned)more));
    } while (old != seen);
}
struct Outer {
    Pair pair;
    struct Inner {
        unsigned char few[3];
        FN int all() const { return few[0] ^ few[1] << 8 ^ few[2] << 16; }
    } inner;
};
struct Grid {
    int cells[2][3];
    FN int& operator()(int row, int column) { return cells[row & 1][(unsigned)column % 3u]; }
    FN int operator[](int row) const { return cells[row][0] ^ cells[row][2]; }
};
struct Number {
    int value;
    FN operator int() const { return value; }
    FN Number operator-() const { return Number{~value}; }
    FN Number& operator++() {
        value ^= 1 + (value & 6);
        return *this;
    }
    FN Number operator++(int) {
        const Number old = *this;
        ++*this;
        return old;
    }
};
FN bool operator<(const Number& left, const Number& right) {
    return (left.value & 255) < (right.value & 255);
}
struct Deed {
    int& target;
    FN explicit Deed(int& t) : target(t) { target ^= 64; }
    FN ~Deed() { target = (int)((unsigned)target * 3u); }
};
FN int blended(int a, int b) {
    return (a & 0xffff) - (b & 0xffff);
}
typedef int (*Step)(int, int);
FN int stepped(Step step, int a, int b) {
    return step(a, b);
}
template <class... A>
FN int all_of(A... a) {
    unsigned r = sizeof...(A);
    ((r = r * 5u + (unsigned)a), ...);
    return (int)r;
}
template <class T>
FN int by_kind(T v) {
    if constexpr (sizeof(T) > 4)
        return (int)(v >> 3);
    else
        return v ^ 1;
}
template <int N>
struct Counted {
    enum { sum = N + Counted<N - 1>::sum };
};
template <>
struct Counted<0> {
    enum { sum = 2 };
};
template <int N>
FN constexpr unsigned power(unsigned v) {
    return N < 2 ? v : v * power<(N > 1 ? N / 2 : 1)>(v);
}
template <class T>
struct Shape {
    static constexpr int side = 4;
    FN int of(T v) const { return (int)v ^ side; }
};
template <>
struct Shape<short> {
    static constexpr int side = 9;
    FN int of(int v) const { return v & 0x7ff; }
};
FN int given(int v, int more = 3) {
    return v ^ more << 4;
}
namespace nested {
namespace inner {
FN int deep(int v) {
    return given(v, 2);
}
}  // namespace inner
}  // namespace nested
#define TIMES(p, q) ((int)((unsigned)(p) * (unsigned)(q)))
#define BUMP(target, v)    \
    do {                   \
        (target) ^= (v);   \
        if (0) (target)++; \
    } while (0)
#define LOOP(i, n) for (int i = 0; i < (n); ++i)
