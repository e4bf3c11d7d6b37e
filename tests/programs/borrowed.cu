// Pointers, references and objects that lead to a thread's variables beyond a barrier, though the
// text names the variables only before it, and variables that are declared with their class. Prints
// the kernels with another answer than plain C++.
#include <cstdio>

struct Box {
    int list[3];
    int one;
    __device__ const int& second() const { return list[1]; }
    __device__ const int* all() const { return list; }
};
struct Taken {
    int tile;
    Box box;
};
struct Reference {
    const int& to;
};
struct Pointer {
    const int* to;
    int factor;
};

// What lies behind the end of a region, where variables were that nobody keeps.
__device__ int overwrite(int v) {
    volatile int other[64];
    for (int i = 0; i < 64; ++i) other[i] = v + i;
    return other[v & 63] - other[v & 63];
}
__device__ const int* address(const int& v) {
    return &v;
}
__device__ Box boxed(int v) {
    return {{v, v + 1, v + 2}, v + 3};
}
__device__ void point(const int** to, const int& v) {
    *to = &v;
}
// Functions in which threads meet.
__device__ Taken take(const int* in) {
    __shared__ int first;
    if (threadIdx.x == 0) first = in[0];
    __syncthreads();
    const int t = threadIdx.x;
    return {first + t, {{4, first + 5 * t, 6}, 7 + t}};
}
__device__ int behind(const int& v) {
    __syncthreads();
    return v + overwrite(0);
}
__device__ int behind_pointer(const int* v) {
    __syncthreads();
    return v[1] + overwrite(0);
}
__device__ int warp_sum(const Box& box, int n) {
    int sum = box.one;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d) + overwrite(0);
    return sum + n * box.list[1];
}
__device__ int behind_box(const Box& box) {
    __syncthreads();
    return box.one + 10 * box.list[1] + 100 * box.list[2];
}

__global__ void reference(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t] * 3;
    const int& r = v;
    overwrite(r);
    __syncthreads();
    out[t] = r;
}
__global__ void array(const int* in, int* out) {
    const int t = threadIdx.x;
    int a[4];
    for (int i = 0; i < 4; ++i) a[i] = in[t + i];
    const int* p = a;
    overwrite(p[1]);
    __syncthreads();
    out[t] = p[1];
}
__global__ void argument(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t + 8] * 3;
    out[t] = behind(v);
}
__global__ void array_argument(const int* in, int* out) {
    const int t = threadIdx.x;
    int a[2] = {in[t], in[t + 1]};
    out[t] = behind_pointer(a);
}
__global__ void computed_argument(const int* in, int* out) {
    const int t = threadIdx.x;
    const int v = 2 * t + 1;
    const int r = behind(v);
    out[t] = r + v;
}
__global__ void made_arguments(const int* in, int* out) {
    const unsigned t = threadIdx.x;
    const int r = behind_box(Box{{1, in[t], 2}, (int)t}) + behind((short)t) + behind(in[t] - 1);
    out[t] = r + behind(in[t]) + overwrite(r);
}
__global__ void member_argument(const int* in, int* out) {
    const int t = threadIdx.x;
    const Taken taken = take(in);
    const int r = behind_box(taken.box);
    out[t] = r + overwrite(r) + taken.tile;
}
namespace other {
// A class of the file leads to the function of the file, too.
__global__ void member_argument_too(const int* in, int* out) {
    const Taken taken = take(in);
    out[threadIdx.x] = behind_box(taken.box) + 1;
}
}  // namespace other
__global__ void member_argument_of_warp(const int* in, int* out) {
    const int t = threadIdx.x;
    __shared__ int sum;
    const Taken taken = take(in);
    if (t / 32 == 0) {
        const int r = warp_sum(taken.box, 1);
        if (t == 0) sum = r;
    }
    __syncthreads();
    out[t] = sum + taken.tile;
}
__global__ void member_array(const int* in, int* out) {
    const int t = threadIdx.x;
    Box box = boxed(in[t]);
    const int* p = box.list;
    overwrite(p[1]);
    __syncthreads();
    out[t] = p[1];
}
__global__ void member_of_constant(const int* in, int* out) {
    const int t = threadIdx.x;
    const Taken taken = take(in);
    const int* p = taken.box.list;
    overwrite(p[0]);
    __syncthreads();
    out[t] = p[1];
}
__global__ void member_reference(const int* in, int* out) {
    const int t = threadIdx.x;
    const Taken taken = take(in);
    const int& r = taken.box.one;
    overwrite(r);
    __syncthreads();
    out[t] = r;
}
__global__ void method_reference(const int* in, int* out) {
    const int t = threadIdx.x;
    const Taken taken = take(in);
    const int& r = taken.box.second();
    overwrite(r);
    __syncthreads();
    out[t] = r;
}
__global__ void method_pointer(const int* in, int* out) {
    const int t = threadIdx.x;
    const Taken taken = take(in);
    const int* p = taken.box.all();
    overwrite(p[0]);
    __syncthreads();
    out[t] = p[1];
}
__global__ void object_with_reference(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t] * 3;
    Reference r = {v};
    overwrite(r.to);
    __syncthreads();
    out[t] = r.to;
}
__global__ void object_with_pointer(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t] * 3;
    Pointer p = {&v, 2};
    overwrite(*p.to);
    __syncthreads();
    out[t] = *p.to * p.factor;
}
__global__ void through_pointer(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t] * 7;
    Pointer p = {nullptr, 3};
    Pointer* q = &p;
    q->to = &v;
    overwrite(*p.to);
    __syncthreads();
    out[t] = *p.to * p.factor;
}
__global__ void list_of_pointers(const int* in, int* out) {
    const int t = threadIdx.x;
    int v = in[t] * 7, w = v + 1;
    const int* list[2];
    list[0] = &v, list[1] = &w;
    overwrite(*list[1]);
    __syncthreads();
    out[t] = *list[t % 2];
}
__global__ void from_function(const int* in, int* out) {
    const int t = threadIdx.x;
    const int v = t * 3;
    auto p = address(v);
    overwrite(*p);
    __syncthreads();
    out[t] = *p + v;
}
__global__ void assigned(const int* in, int* out) {
    const int t = threadIdx.x;
    const int* p;
    const int v = t * 3;
    p = address(v);
    overwrite(*p);
    __syncthreads();
    out[t] = *p + v;
}
__global__ void set_by_function(const int* in, int* out) {
    const int t = threadIdx.x;
    const int* p;
    const int v = t * 3;
    point(&p, v);
    overwrite(*p);
    __syncthreads();
    out[t] = *p;
}
__global__ void one_of_two(const int* in, int* out) {
    const int t = threadIdx.x;
    const int a = t * 3, b = t * 5;
    const int& r = t % 2 ? a : b;
    overwrite(r);
    __syncthreads();
    out[t] = r;
}
__global__ void chain(const int* in, int* out) {
    const int t = threadIdx.x;
    const int a[2] = {t, t * 5};
    const int* p = a;
    const int* q = p + 1;
    const int& r = *q;
    overwrite(r);
    __syncthreads();
    out[t] = r;
}

// Variables that are declared with their class, or with the word `struct`.
struct Plain {
    int a, b;
};
__global__ void with_unnamed_class(const int* in, int* out) {
    const int t = threadIdx.x;
    struct {
        int a;
    } v;
    v.a = in[t];
    overwrite(v.a);
    __syncthreads();
    out[t] = v.a;
}
__global__ void with_own_class(const int* in, int* out) {
    const int t = threadIdx.x;
    struct __align__(8) Own {
        int a;
        __device__ int twice() const { return 2 * a; }
    } v[2];
    v[1].a = in[t];
    overwrite(t);
    __syncthreads();
    out[t] = v[1].twice();
}
__global__ void with_union(const int* in, int* out) {
    const int t = threadIdx.x;
    union {
        float f;
        int i;
    } bits;
    bits.f = 1.0f + t;
    __syncthreads();
    out[t] = bits.i - __float_as_int(1.0f + t) + in[t];
}
__global__ void with_enumeration(const int* in, int* out) {
    const int t = threadIdx.x;
    enum { EVEN, ODD } kind = t % 2 ? ODD : EVEN;
    __syncthreads();
    out[t] = in[t] + kind;
}
__global__ void in_words_of_c(const int* in, int* out) {
    const int t = threadIdx.x;
    struct Plain p, q = {in[t], 2}, r{};
    struct Plain s{3, t};
    p.a = r.b = t;
    overwrite(t);
    __syncthreads();
    out[t] = p.a + q.a + r.b + s.b;
}
__global__ void in_two_rooms(const int* in, int* out) {
    const int t = threadIdx.x;
    __shared__ struct {
        int of[64];
    } all;
    const struct {
        int a;
    } own = {in[t]};
    all.of[t] = own.a;
    __syncthreads();
    out[t] = all.of[63 - t] - own.a;
}
struct Node {
    int a;
    const int* lent;
};
__global__ void struct_with_pointer(const int* in, int* out) {
    const int t = threadIdx.x;
    const int v = in[t] ^ 1;
    struct {
        const int* at[2];
    } p;
    p.at[1] = &v;
    struct Node node = {t, &v};
    overwrite(v);
    __syncthreads();
    out[t] = *p.at[1] + *node.lent;
}

// Operators of the program's own, which change an object on either side.
#define FN __device__
struct Counter {
    int value, step;
};
FN int operator>>(int by, Counter& counter) {
    return counter.value += by;
}
FN Counter& operator<<(Counter& counter, int by) {
    counter.value += by;
    return counter;
}
FN int operator%(int by, Counter& counter) {
    return counter.value -= by;
}
FN Counter& operator<<=(Counter& counter, Counter& other) {
    other.value += counter.value;
    return counter;
}
FN Counter counting(int from) {
    return {from, 1};
}
__global__ void shifted_by_object(const int* in, int* out) {
    const int t = threadIdx.x;
    Counter counter = counting(7), other = counting(1), third = counting(2);
    5 >> counter;
    5 % other;
    third <<= counter;
    overwrite(third.value);
    __syncthreads();
    out[t] = counter.value + 100 * other.value + 10000 * third.value + in[t];
}
__global__ void shifted_object(const int* in, int* out) {
    const int t = threadIdx.x;
    Counter counter = counting(7);
    counter << 1 << t;
    overwrite(counter.value);
    __syncthreads();
    out[t] = counter.value + in[t];
}
__global__ void pointer_to_member(const int* in, int* out) {
    const int t = threadIdx.x;
    Counter counter = counting(in[t]);
    int Counter::* at = t % 2 ? &Counter::step : &Counter::value;
    Counter* const that = &counter;
    const int& whole = counter.*at;
    overwrite(whole);
    __syncthreads();
    out[t] = whole + that->*at;
}
__global__ void bound_by_reference(const int* in, int* out) {
    const int t = threadIdx.x;
    Counter counter = counting(7);
    auto& [value, step] = counter;
    value += in[t] * step;
    overwrite(value);
    __syncthreads();
    out[t] = counter.value;
}

// Lambdas that refer to variables of a thread, called on both sides of barriers.
__global__ void called_lambda(const int* in, int* out) {
    const int t = threadIdx.x;
    int x = 3 * t;
    const auto add = [&](int by) { return x += by; };
    overwrite(t);
    __syncthreads();
    add(in[t]);
    overwrite(t);
    __syncthreads();
    out[t] = add(4) + x;
}
__global__ void lambda_in_lambda(const int* in, int* out) {
    const int t = threadIdx.x;
    int x = in[t];
    const auto at = [&](int by) {
        const int* place = &x;
        return *place * by;
    };
    const auto both = [&] { return at(2) + at(3); };
    __syncthreads();
    x++;
    __syncthreads();
    overwrite(t);
    out[t] = both();
}
__global__ void set_by_lambda(const int* in, int* out) {
    const int t = threadIdx.x;
    int x = in[t];
    const int* place = nullptr;
    const auto point = [&] { place = &x; };
    point();
    overwrite(t);
    __syncthreads();
    overwrite(t);
    out[t] = *place;
}

static int in_h[128], out_h[64], wrong, kernels, *in_d, *out_d;

template <class Expected>
static void check(const char* name, void (*kernel)(const int*, int*), Expected expected) {
    cudaMemset(out_d, 0xff, sizeof out_h);
    kernel<<<1, 64>>>(in_d, out_d);
    const int error = cudaMemcpy(out_h, out_d, sizeof out_h, cudaMemcpyDeviceToHost);
    ++kernels;
    for (int t = 0; t < 64; ++t) {
        const int want = expected(t);
        if (out_h[t] == want && !error) continue;
        printf("%s: [%d] %d, want %d, error %d\n", name, t, out_h[t], want, error);
        ++wrong;
        return;
    }
}
#define CHECK(name, value) check(#name, name, [](int t) { return value; })

int main() {
    for (int i = 0; i < 128; ++i) in_h[i] = 1000 + i * i;
    cudaMalloc(&in_d, sizeof in_h);
    cudaMalloc(&out_d, sizeof out_h);
    cudaMemcpy(in_d, in_h, sizeof in_h, cudaMemcpyHostToDevice);
    CHECK(reference, in_h[t] * 3);
    CHECK(array, in_h[t + 1]);
    CHECK(argument, in_h[t + 8] * 3);
    CHECK(array_argument, in_h[t + 1]);
    CHECK(computed_argument, 4 * t + 2);
    CHECK(made_arguments, 2 * t + 12 * in_h[t] + 199);
    CHECK(member_argument, 7 + t + 10 * (1000 + 5 * t) + 600 + 1000 + t);
    CHECK(other::member_argument_too, 7 + t + 10 * (1000 + 5 * t) + 601);
    CHECK(member_argument_of_warp, 7 * 32 + 31 * 16 + 1000 + 1000 + t);
    CHECK(member_array, in_h[t] + 1);
    CHECK(member_of_constant, 1000 + 5 * t);
    CHECK(member_reference, 7 + t);
    CHECK(method_reference, 1000 + 5 * t);
    CHECK(method_pointer, 1000 + 5 * t);
    CHECK(object_with_reference, in_h[t] * 3);
    CHECK(object_with_pointer, in_h[t] * 6);
    CHECK(through_pointer, in_h[t] * 21);
    CHECK(list_of_pointers, in_h[t] * 7 + t % 2);
    CHECK(from_function, 6 * t);
    CHECK(assigned, 6 * t);
    CHECK(set_by_function, 3 * t);
    CHECK(one_of_two, t * (t % 2 ? 3 : 5));
    CHECK(chain, 5 * t);
    CHECK(with_unnamed_class, in_h[t]);
    CHECK(with_own_class, 2 * in_h[t]);
    CHECK(with_union, in_h[t]);
    CHECK(with_enumeration, in_h[t] + t % 2);
    CHECK(in_words_of_c, 3 * t + in_h[t]);
    CHECK(in_two_rooms, in_h[63 - t] - in_h[t]);
    CHECK(struct_with_pointer, 2 * (in_h[t] ^ 1));
    CHECK(shifted_by_object, 14 - 400 + 20000 + in_h[t]);
    CHECK(shifted_object, 8 + t + in_h[t]);
    CHECK(pointer_to_member, 2 * (t % 2 ? 1 : in_h[t]));
    CHECK(bound_by_reference, 7 + in_h[t]);
    CHECK(called_lambda, 2 * (3 * t + in_h[t] + 4));
    CHECK(lambda_in_lambda, 5 * (in_h[t] + 1));
    CHECK(set_by_lambda, in_h[t]);
    printf("%d kernels, %d wrong\n", kernels, wrong);
}
