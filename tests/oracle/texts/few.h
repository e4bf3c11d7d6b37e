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
FN void raise_few(Few& few, int by) {
    few.two = add(few.two, by);
}
