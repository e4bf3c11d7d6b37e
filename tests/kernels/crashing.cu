// A kernel that leaves its memory.

extern "C" __global__ void write_far_away(int* out, long long distance) {
    out[distance] = 1;
}
