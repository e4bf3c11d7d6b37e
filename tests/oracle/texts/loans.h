// What leads to variables of a thread: pointers, references, objects that have one.
FN int add(unsigned a, unsigned b) {
    return (int)(a + b);
}
struct Cells {
    int list[3], one;
    FN const int* all() const { return list; }
    FN const int& second() const { return list[1]; }
    FN void raise(int by) { one = add(one, by); }
    FN int operator()(int by) { return one = add(one, by); }
};
// Operators of the program's own, which change their operands.
FN Cells& operator<<(Cells& cells, int by) {
    cells.raise(by);
    return cells;
}
FN int operator>>(int by, Cells& cells) {
    return cells(by);
}
FN int operator-(Cells& cells) {
    return cells(5);
}
FN void raise_by(int& v, int by) {
    v = add(v, by);
}
FN Cells cells(int v) {
    return {{v, add(v, 1), add(v, 2)}, add(v, 3)};
}
struct Borrowed {
    const int* to;
    int by;
    FN int read() const { return *to ^ by; }
};
struct Referring {
    const int& to;
};
FN const int* address(const int& v) {
    return &v;
}
FN const int& one_of(const int& a, const int& b, int second) {
    return second ? b : a;
}
FN void point(const int** to, const int& v) {
    *to = &v;
}
// Overwrites what lies where the variables of a region were.
FN int wiped(int v) {
    volatile int other[48];
    for (int i = 0; i < 48; ++i) other[i] = v ^ i;
    return other[v & 31] ^ v ^ (v & 31);
}
