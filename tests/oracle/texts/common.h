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
#define TIMES(p, q) ((int)((unsigned)(p) * (unsigned)(q)))
#define BUMP(target, v)    \
    do {                   \
        (target) ^= (v);   \
        if (0) (target)++; \
    } while (0)
#define LOOP(i, n) for (int i = 0; i < (n); ++i)
