"""Which loops of launches keep the device's memory accessible (program/rewrite/held.py)."""

import pytest

from cudalab.program.files import File
from cudalab.program.rewrite import held
from cudalab.program.rewrite.parsed import Parsed, read

HEAD = """
#include <cstdio>
#define N 100
#define STEPS(n) ((n) + offset)
#define FIRST(p) p[0]
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \\
    fprintf(stderr, "%s: %f", cudaGetErrorString(e), *a); exit(1); } } while (0)
#ifdef QUIET
#define LOOK(p) (void)0
#else
#define LOOK(p) printf("%f", *p)
#endif
struct State {
    float *data, x;
    int steps;
    void run() { for (int i = 0; i < steps; i++) k<<<1, 1>>>(data, 1); }
};
__device__ int flag;
__managed__ int shared_with_host;
const int limit = 5;
__global__ void k(float *a, int n) { for (int i = 0; i < n; i++) k<<<1, 1>>>(a, n); }
inline void check(cudaError_t code, const char *file, int line) {
    if (code != cudaSuccess) printf("%s", file);
}
void step(float *a) { k<<<1, 1>>>(a, 1); }
void look(float *a) { k<<<1, 1>>>(a, 1); printf("%f", a[0]); }
void twice(float *a) { k<<<1, 1>>>(a, 1); }
void twice(float *a, int n) { k<<<1, 1>>>(a, n); }
"""
START = "void f(float *a, float *b, float &r, int n, State s, State *p, dim3 grid, float *host) {"
START += (
    " float local[3]; int offset = 1, done = 0; cudaStream_t stream; cudaEvent_t event; Vector v; "
)

QUIET = [
    "for (int i = 0; i < N; i++) k<<<1, 1>>>(a, n);",
    "for (int i = 0; i < STEPS(n); ++i) { k<<<grid, 4, 0, stream>>>(a + i * 2, i); }",
    "while (!done) { k<<<n / 2, dim3(4, 4)>>>(a, 1); cudaMemcpy(&done, b, 4, cudaMemcpyDefault); }",
    "do { k<<<1, 1>>>(a, n); float *t = a; a = b; b = t; std::swap(a, b); } while (--n);",
    "for (int i = 0; i < n; i++) { k<<<1, 1>>>(a, n); CHECK(cudaDeviceSynchronize()); }",
    "for (int i = 0; i < n; i++) { step(a); check(cudaGetLastError(), __FILE__, __LINE__); }",
    "for (int i = 0; i < n; i++) { local[1] = i; k<<<1, 1>>>(a, n); if (i > limit) break; }",
    "for (int i = 0; i < n; i++) for (int j = i; j < n; j++) k<<<grid.x, 1>>>(a, n);",
    'for (int i = 0; i < n; i++) { k<<<1, 1>>>(a, n); printf("%d of %d", i, n); }',
    "for (int i = 0; i < n; i++) { k<<<1, 1>>>(a, n); cudaEventRecord(event, stream); }",
]
FOLLOWS = [
    "k<<<1, 1>>>(a, n); r += a[i];",
    "k<<<1, 1>>>(a, n); *b = 1;",
    "k<<<1, 1>>>(a, n); FIRST(b);",
    "k<<<1, 1>>>(a, n); r += 1;",
    "k<<<1, 1>>>(a, n); p->x = 1;",
    "k<<<1, 1>>>(a, n); s.data = a;",
    "k<<<1, 1>>>(a, n); flag = 1;",
    "k<<<1, 1>>>(a, n); n += shared_with_host;",
    "k<<<1, 1>>>(a, n); float &x = *a;",
    'k<<<1, 1>>>(a, n); printf("%s", (char *)a);',
    "k<<<1, 1>>>(a, n); memcpy(host, a, 4);",
    "k<<<1, 1>>>(a, n); cudaLaunchHostFunc(stream, hook, a);",
    "k<<<1, 1>>>(a, n); if (a[0] != cudaSuccess) break;",
    "k<<<1, 1>>>(a, n); if (n == cudaSuccess) n = a[0];",
    "k<<<1, 1>>>(a, n); if (n != done) n = a[0];",
    "k<<<1, 1>>>(a, n); LOOK(a);",
    "k<<<1, 1>>>(a, n); v += n;",
    "k<<<1, 1>>>(a, n); check(cudaSuccess, file_of(a), 1);",
    "k<<<1, 1>>>(a, n); [&] { r = a[0]; }();",
    "k<<<1, 1>>>(a, host[0]);",
    "k<<<1, 1>>>(a, r);",
    "step(v);",
    "k<<<*b, 1>>>(a, n);",
    "(*table)<<<1, 1>>>(a, n);",
    "look(a);",
    "twice(a);",
    "n += i;",
    "step_of_elsewhere(a); k<<<1, 1>>>(a, n);",
]


def loops(body: str) -> list[str]:
    text = f"{HEAD}{START}{body} }}\n"
    file = Parsed(File(path="a.cu", label="a.cu", text=text, includes={}))
    held.rewrite([file], read([file]))
    begins = [edit[0] for edit in file.edits if "Held" in edit[2]]
    return [text[begin:] for begin in begins]


@pytest.mark.parametrize("loop", QUIET)
def test_loops_that_only_launch_hold_the_memory(loop):
    assert [each.startswith(loop) for each in loops(f"n = 1; {loop} n = 2;")] == [True]


@pytest.mark.parametrize("body", FOLLOWS)
def test_loops_that_may_follow_a_pointer_do_not(body):
    loop = f"for (int i = 0; i < n; i++) {{ {body} }}"
    assert loops(f"{loop} for (int i = 0; i < n; i++) offset += i;") == []


def test_the_outermost_loop_holds_it():
    inner = "for (int j = 0; j < n; j++) k<<<1, 1>>>(a, j);"
    assert len(loops(f"for (int i = 0; i < n; i++) {{ {inner} {inner} }}")) == 1
    assert len(loops(f"for (int i = 0; i < n; i++) {{ {inner} {inner} r = a[0]; }}")) == 2


def test_a_loop_behind_a_pragma_does_not():
    assert loops("\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) k<<<1, 1>>>(a, n);") == []
