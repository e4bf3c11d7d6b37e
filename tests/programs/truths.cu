// Loads whose address counts with a truth value, from tables of each width, beside the same on the
// host, one after another. Prints the kernels whose results differ, and how many there are.
#include <cstdio>
#include <typeinfo>

static const int N = 96;
static int kernels, wrong;

struct Given {
    int a[N], b[N], z;
    short s[N];
    unsigned char u[N];
    float f[N];
    double d[N];
    bool flag[N];
};

#define FORM(name, index)                                                          \
    struct name {                                                                  \
        static __host__ __device__ int at(const Given& g, int t) { return index; } \
    };
FORM(one_for_all, (g.z && g.b[t]))
FORM(one_or_all, !g.z || g.b[t])
FORM(two, g.a[t] && g.b[t])
FORM(either, g.a[t] || g.b[t])
FORM(none, !g.a[t])
FORM(both, (g.a[t] > 1) & (g.b[t] < 2))
FORM(at_least_one, (g.a[t] > 1) | (g.b[t] < 2))
FORM(odd, (g.a[t] > 1) ^ (g.b[t] < 2))
FORM(same, g.a[t] == g.b[t])
FORM(stored, g.flag[t])
FORM(stored_too, g.flag[t] & (g.a[t] > 1))
FORM(chosen, (g.z && g.b[t]) ? 1 : 0)
FORM(short_too, g.s[t] > 1 && g.z)
FORM(byte_too, g.u[t] > 1 && g.z)
FORM(float_too, g.f[t] > 1 && g.z)
FORM(double_too, g.d[t] > 1 && g.z)
FORM(behind, (g.z && g.b[t]) + 3)
FORM(between, t / 2 + (g.z && g.b[t]))
FORM(scaled, (g.z && g.b[t]) * 2)
FORM(masked, (g.z && g.b[t]) & 127)
FORM(turned, (g.z && g.b[t]) ^ 1)
FORM(summed, (g.z && g.b[t]) + (g.a[t] && g.b[t]))
FORM(compared, (g.z && g.b[t]) != (g.a[t] > 1))

template <class Form, class T>
__global__ void load(const Given* given, const T* table, T* out) {
    const int t = threadIdx.x;
    out[t] = table[Form::at(*given, t)];
}

template <class Form, class T>
static void check(const Given* given) {
    T *table, *out;
    cudaMallocManaged(&table, N * sizeof(T));
    cudaMallocManaged(&out, N * sizeof(T));
    for (int i = 0; i < N; ++i) table[i] = (T)(i + 3);
    load<Form><<<1, N>>>(given, table, out);
    const int error = cudaDeviceSynchronize();
    ++kernels;
    for (int t = 0; t < N; ++t) {
        volatile int at = Form::at(*given, t);  // so that the host's compiler vectorizes nothing
        if (out[t] == table[at] && !error) continue;
        printf("%s, %d bytes: [%d], error %d\n", typeid(Form).name(), (int)sizeof(T), t, error);
        ++wrong;
        break;
    }
    cudaFree(table);
    cudaFree(out);
}

template <class... Forms>
static void check_all(const Given* given) {
    (check<Forms, int>(given), ...);
    (check<Forms, short>(given), ...);
    (check<Forms, signed char>(given), ...);
    (check<Forms, double>(given), ...);
}

int main() {
    Given* given;
    cudaMallocManaged(&given, sizeof(Given));
    given->z = 7;
    for (int i = 0; i < N; ++i) {
        given->a[i] = i / 3 % 3, given->b[i] = given->s[i] = given->u[i] = i % 3;
        given->f[i] = i % 4, given->d[i] = i % 5, given->flag[i] = i % 7 < 3;
    }
    check_all<one_for_all, one_or_all, two, either, none, both, at_least_one, odd, same, stored,
              stored_too, chosen, short_too, byte_too, float_too, double_too, behind, between,
              scaled, masked, turned, summed, compared>(given);
    printf("%d kernels, %d wrong\n", kernels, wrong);
}
