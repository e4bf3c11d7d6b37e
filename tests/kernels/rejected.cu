// A file that no compiler accepts: line 4 uses a name that is not declared.

extern "C" __global__ void assign(int* out) {
    out[0] = undeclared_name;
}
