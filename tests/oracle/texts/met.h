// Functions in which threads meet before they read what they are lent.
FN int met(const int& v) {
    __syncthreads();
    return v ^ wiped(3);
}
FN int met_at(const int* v, int i) {
    __syncthreads();
    return v[i] ^ wiped(5);
}
FN int met_cells(const Cells& v, int i) {
    wiped(7);
    __syncthreads();
    return v.one ^ v.list[i];
}
template <class V>
FN int met_any(const V& v) {
    __syncthreads();
    wiped(9);
    return (int)v;
}
