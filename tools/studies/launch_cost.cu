// What a launch of a small grid takes, one by one and in a loop that only launches, and what
// changing the rights of as much memory does alone.
#include <sys/mman.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

const int TIMES = 20000;

__global__ void one(int* a) {
    a[0] += 1;
}

static double now_us() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

// Launches through a function that the compiler does not look into: no loop around it may hold the
// memory open.
static void launch_one(int* a) {
    one<<<1, 1>>>(a);
}
static void (*volatile launch)(int*) = launch_one;

int main(int, char** arguments) {
    const size_t bytes = size_t(atoi(arguments[1])) << 20;
    int* a;
    if (cudaMalloc(&a, bytes) || cudaMemset(a, 0, bytes)) return 1;
    one<<<1, 1>>>(a);
    double begin = now_us();
    for (int i = 0; i < TIMES; i++) launch(a);
    const double launches = now_us() - begin;
    begin = now_us();
    for (int i = 0; i < TIMES; i++) one<<<1, 1>>>(a);
    const double in_loop = now_us() - begin;
    const size_t page = 2 << 20, whole = (bytes + page - 1) / page * page;  // a huge page
    void* range =
        mmap(0, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* memory = (char*)(((size_t)range + page - 1) / page * page);
    madvise(memory, whole, MADV_HUGEPAGE);
    mprotect(memory, whole, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < whole; i += 4096) ((volatile char*)memory)[i] = 1;
    const double start = now_us();
    for (int i = 0; i < TIMES; i++) {
        mprotect(memory, whole, PROT_READ | PROT_WRITE);
        mprotect(memory, whole, PROT_NONE);
    }
    const double rights = now_us() - start;
    printf("%g %g %g\n", launches / TIMES, in_loop / TIMES, rights / TIMES);
}
