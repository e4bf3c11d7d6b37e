// What kernels of single changes use (alone.py), the same on both sides.
struct Keeps {
    int& at;
    FN operator int() const { return at ^= 1; }
};
typedef int& Refers;
template <class... A>
FN void change_all(int by, A&... all) {
    ((all ^= by), ...);
}
template <class F>
FN void apply_to(int& it, F f) {
    f(it);
}
template <class T>
FN void bump_it(T& it, int by) {
    it ^= by;
}
FN int read_only(const int* it) {
    return *it ^ 1;
}
FN int& same_as(int& it) {
    return it;
}
struct Turns {
    int it;
    FN int operator<<(int by) { return it ^= by; }
    FN int operator++() { return it ^= 4; }
    FN int operator[](int by) { return it ^= by; }
    FN int operator()(int by) { return it ^= by; }
    FN void set(int by) { it ^= by; }
    FN operator int() { return it ^= 2; }
    FN Turns* operator->() {
        it ^= 8;
        return this;
    }
    FN int& operator*() { return it; }
    FN int operator~() { return it ^= 16; }
    FN int* begin() { return &it; }
    FN int* end() { return &it + 1; }
    FN int shown() const { return it; }
};
FN int operator%(Turns& of, int by) {
    return of.it ^= by;
}
FN int operator,(Turns& of, const Pair& by) {
    return of.it ^= by.a;
}
