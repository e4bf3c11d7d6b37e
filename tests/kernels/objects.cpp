// Objects that functions take and return in registers, in the memory that `seen` watches.

struct Small {
    unsigned short value;
};
struct Middle {
    float x, y;
};
struct Mixed {
    long a;
    int b;
};
struct alignas(16) Four {
    float x, y, z, w;
};
struct Odd {
    unsigned char c[3];
};
struct All {
    Small small;
    Middle middle;
    Mixed mixed;
    Four four;
    Odd odd;
};
extern thread_local Middle shared[4];

static Small small(int i) {
    return {(unsigned short)i};
}
static Middle middle(float i) {
    return {i, i + 1};
}
static Mixed mixed(int i) {
    return {i, i + 1};
}
static Four four(float i) {
    return {i, i + 1, i + 2, i + 3};
}
static Odd odd(int i) {
    return {{(unsigned char)i, (unsigned char)(i + 1), (unsigned char)(i + 2)}};
}
static float sum(Small s, Middle m, Mixed n, Four f, Odd o, Middle last) {
    return s.value + m.x + m.y + n.a + n.b + f.x + f.y + f.z + f.w + o.c[0] + o.c[2] + last.y;
}

void store(All* all, int i) {
    all[i].small = small(i);
    all[i].middle = middle(i);
    all[i].mixed = mixed(i);
    all[i].four = four(i);
    all[i].odd = odd(i);
    shared[i] = middle(i);
}
float load(All* all, int i) {
    all = all + 1;
    return sum(all[i - 1].small, all[i - 1].middle, all[i - 1].mixed, all[i - 1].four,
               all[i - 1].odd, shared[i]);
}

// ------------------------------------------------------------------ what the hooks report

#define NOT_WATCHED __attribute__((no_sanitize("thread")))
extern "C" int printf(const char*, ...);
thread_local Middle shared[4];
static All memory[4];
static char seen[2][sizeof(All)], seen_shared[2][sizeof(Middle)];  // by reads, by writes

NOT_WATCHED static void note(bool writes, void* address, unsigned long bytes) {
    const unsigned long in_memory = (char*)address - (char*)&memory[2];
    const unsigned long in_shared = (char*)address - (char*)&shared[2];
    for (unsigned long i = 0; i < bytes; ++i) {
        if (in_memory + i < sizeof(All)) ++seen[writes][in_memory + i];
        if (in_shared + i < sizeof(Middle)) ++seen_shared[writes][in_shared + i];
    }
    // What a function may change.
#ifdef __x86_64__
    asm volatile("xorl %%eax, %%eax; xorps %%xmm0, %%xmm0; xorps %%xmm1, %%xmm1" ::
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1");
#else
    asm volatile("mov x0, #0; mov x1, #0; movi v0.2d, #0; movi v1.2d, #0" ::
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
                       "x12", "x13", "x14", "x15", "x16", "x17", "v0", "v1");
#endif
}
extern "C" {
#define HOOKS(bytes)                                      \
    NOT_WATCHED void __tsan_read##bytes(void* address) {  \
        note(false, address, bytes);                      \
    }                                                     \
    NOT_WATCHED void __tsan_write##bytes(void* address) { \
        note(true, address, bytes);                       \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
NOT_WATCHED void __tsan_read_range(void* address, unsigned long bytes) {
    note(false, address, bytes);
}
NOT_WATCHED void __tsan_write_range(void* address, unsigned long bytes) {
    note(true, address, bytes);
}
NOT_WATCHED void __tsan_read_object(void* address, unsigned long bytes) {
    note(false, address, bytes);
}
NOT_WATCHED void __tsan_write_object(void* address, unsigned long bytes) {
    note(true, address, bytes);
}
NOT_WATCHED void __tsan_func_entry(void*) {}
NOT_WATCHED void __tsan_func_exit() {}
NOT_WATCHED void __tsan_init() {}
}

NOT_WATCHED int main() {
    store(memory, 2);
    const float total = load(memory, 2);
    printf("%g\n", total);
    for (int writes = 0; writes < 2; ++writes) {
        for (char times : seen[writes]) printf("%d", times);
        printf(" ");
        for (char times : seen_shared[writes]) printf("%d", times);
        printf("\n");
    }
    return 0;
}
