// The data of a seed, and the hash of its results.
static int data[256], out[1024];
static float reals[256];
static void fill(int seed) {
    unsigned state = seed * 2654435761u + 1;
    for (int i = 0; i < 256; ++i) {
        state = state * 1664525u + 1013904223u;
        data[i] = i % 3 ? (int)(state >> 24) : (int)state;
    }
}
static void fill_reals() {
    for (int i = 0; i < 256; ++i) reals[i] = i * 37 % 101 - 30;
}
static void print(int seed, int error) {
    unsigned long long hash = 14695981039346656037ull;
    for (int i = 0; i < 1024; ++i) hash = (hash ^ (unsigned)out[i]) * 1099511628211ull;
    printf("%d %016llx %d\n", seed, hash, error);
}
