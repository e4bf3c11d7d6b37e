FN int add(unsigned a, unsigned b) {
    return (int)(a + b);
}
// A class whose objects hold no references, so that all threads may share one till it changes.
struct Few {
    int one, two;
    FN void raise(int by) { two = add(two, by); }
    FN int operator()(int by) { return two = add(two, by); }
    FN void operator+=(int by) { two = add(two, by); }
};
FN void operator<<(Few& few, int by) {
    few.two = add(few.two, by);
}
FN int operator>>(int by, Few& few) {
    return few.two = add(few.two, by);
}
FN void operator<<=(Few& few, Few& by) {
    by.two = add(by.two, few.two);
}
FN void raise_few(Few& few, int by) {
    few.two = add(few.two, by);
}
FN void raise_by(int& v, int by) {
    v = add(v, by);
}
// Overwrites what lies where the variables of a region were.
FN int wiped(int v) {
    volatile int other[48];
    for (int i = 0; i < 48; ++i) other[i] = v ^ i;
    return other[v & 31] ^ v ^ (v & 31);
}
