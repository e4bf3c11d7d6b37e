"""Kernels of whole programs as loops: the same output as with fibers, and why some have these."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudalab.backends.cpu import regions
from cudalab.cli.run import run
from cudalab.program import ways
from cudalab.program.build import executable
from cudalab.program.files import File
from cudalab.program.rewrite import edited, loops
from tests import random_groups
from tests.random_groups import outcome

TILE = "auto b = cg::this_thread_block(); auto t = cg::tiled_partition<W>(b); t.sync();"
PLACED = "__device__ int f() { return threadIdx.x; }"
PROGRAMS = Path(__file__).parents[1] / "programs"


def test_both_ways_print_the_same():
    binary = executable([str(PROGRAMS / "ways.cu")], "cpu")
    assert outcome(binary, "1") == outcome(binary, "0")
    status, printed, messages = outcome(binary, "1")
    assert status == 0
    assert printed.count("cudaSuccess") == 24
    assert "block (0,0,0): thread (33,0,0): " in messages
    assert "ways.cu:361: " in messages
    reasons = ways.stored(binary).reasons
    assert {name for name, reason in reasons.items() if reason} == {
        *("waits", "lanes"),
    }
    assert len(reasons) == 20


def test_what_pointers_lead_to_stays_in_its_place():
    """The variables of a region are not gone when it is over and a pointer still leads to them."""
    binary = executable([str(PROGRAMS / "borrowed.cu")], "cpu")
    assert not any(ways.stored(binary).reasons.values())
    for way in "10":
        assert outcome(binary, way)[:2] == (0, "37 kernels, 0 wrong\n")


@pytest.mark.parametrize("fails_by", ["", "access", "division", "stack", "claim", "host"])
def test_short_grids_on_the_main_thread_do_what_the_pool_does(fails_by):
    """Fibers always run on the pool's threads; loops do not once they are known to be short."""
    binary = executable([str(PROGRAMS / "short_grids.cu")], "cpu")
    here, there = (outcome(binary, loops, fails_by) for loops in "10")
    assert here[:2] == there[:2]
    assert "launch 98\nlaunch 99\n10988800\n" in here[1]
    unnamed = there[2].replace(", thread (0,0,0): integer division", ": integer division")
    assert without_addresses(here[2]) == without_addresses(unnamed)
    assert bool(here[2]) == bool(fails_by)


def test_the_main_thread_does_not_sleep_while_its_short_grids_run():
    binary = executable([str(PROGRAMS / "short_grids.cu")], "cpu")
    assert outcome(binary, "1", "waits")[1].endswith("asleep: seldom\n")
    assert outcome(binary, "0", "waits")[1].endswith("asleep: at each launch\n")


def without_addresses(text):
    return re.sub("0x[0-9a-f]{9,}", "", text)


def test_random_kernels_with_groups_give_the_same_bytes():
    reasons, different = random_groups.compare(range(3))
    assert different == []
    assert reasons == {}


def reason(text, name="k"):
    """Why a kernel of a program has fibers; nothing if it has loops."""
    preprocessed = f'# 1 "a.cu"\n{text}'
    written = regions.loops(preprocessed, is_program=True)
    assert (name in written.kernels) != (name in written.reasons)
    return written.reasons.get(name, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void k(int* p) { assert(*p); __syncthreads(); }", ""),
        ("__global__ void k() { printf(__func__); }", "a message that names the function"),
        ("__global__ void k(int* p) { cub::Sum()(p); }", "a library"),
        ("__global__ void k(int& p) { p = 1; }", "a parameter that is a reference"),
        ("__global__ void k(int* p) { cudaDeviceSynchronize(); }", "cudaDeviceSynchronize in a"),
        ("__global__ void k(int* p) { ::cudalab::stop_kernel(); }", "what only fibers do"),
        (
            "__global__ void k(int* p); void k(); __global__ void k(float* p) {} void k() {}",
            "sever",
        ),
        ("void k(); void k(int) {} __global__ void k(int* p) { __syncthreads(); } void k() {}", ""),
        (
            "template <int N> __global__ void k() {} template <> __global__ void k<1>() {}",
            "several",
        ),
        ("template <class... T> __global__ void k(T... t) {}", "any number of parameters"),
        ("__device__ int f(int); __global__ void k(int* p) { *p = f(1); }", "is in another file"),
        (
            f"{PLACED} __device__ int (*t[])() = {{f}}; __global__ void k(int* p) {{ t[0](); }}",
            "the address of f is taken",
        ),
        (
            "__global__ void k(int* p) {} int main() { auto f = [] { return threadIdx.x; }; }",
            "threadIdx in host code",
        ),
        (
            f"namespace a {{ {PLACED} }} __global__ void k(int* p) {{ *p = a::f(); }}",
            "a function of another namespace",
        ),
        (
            "struct S { void f() { __syncthreads(); } }; __global__ void k() { S s; s.f(); }",
            "__syncthreads in a class",
        ),
        (
            "__global__ void k(int* p) { while (*p == 0) __threadfence(); __syncthreads(); }",
            "a loop that waits for other threads",
        ),
        (
            "__global__ void k(volatile int* p) { while (p[1] == 0) { } __syncthreads(); }",
            "a loop that waits for other threads",
        ),
        (
            "__global__ void k(int* p) { volatile int* q = p; while (!*q) { } __syncthreads(); }",
            "a loop that waits for other threads",
        ),
        (
            "__global__ void k() { __shared__ volatile int n; while (n) { } __syncthreads(); }",
            "a loop that waits for other threads",
        ),
        (
            "__device__ volatile int f; __global__ void k() { while (f) { } __syncthreads(); }",
            "a loop that waits for other threads",
        ),
        (
            "__global__ void k() { __nanosleep(9); }",
            "a wait",
        ),
        (
            "__global__ void k(int* p) { if (threadIdx.x == 0) { while (!atomicAdd(p, 0)) p++; } }",
            "a loop that waits for other threads",
        ),
        ("__global__ void k(int* p) { while (p[0] > 0) p[0] -= 2; __syncthreads(); }", ""),
        ("__global__ void k(int* p) { int i = 0; while (p[i]) ++i; __syncthreads(); }", ""),
        (
            '__global__ void k() { printf(""); __syncwarp(); }',
            "printf between warp operations",
        ),
        (
            "__global__ void k(int* p) { if (*p) __syncthreads(); }",
            "",
        ),
        (
            (
                "struct A { ~A(); }; A::~A() {} template <class T> struct B { ~B(); };"
                "template <class T> B<T>::~B() {} "
                "__global__ void k(int* p) { if (*p) __syncthreads(); }"
            ),
            "",
        ),
        (
            "__global__ void k(int* p) { if ([&] { return p[1]; }()) return; __syncthreads(); }",
            "a condition with a lambda",
        ),
        (
            (
                "__global__ void k(int* p) { int i = 0; while (i < 5) p[i++] = 0; "
                "if (p[i]) __syncwarp(); }"
            ),
            "a condition with i, of which each thread has its own",
        ),
        (
            "__global__ void k(int* p) { int n = 9; do { --n; } while (__syncthreads_or(p[n])); }",
            "",
        ),
        (
            "__global__ void k(int* p) { if (__syncthreads_and(*p++) > p[1]) __syncthreads(); }",
            "a condition with p, of which each thread has its own",
        ),
        (
            (
                "__global__ void k(int n) "
                "{ do { if (gridDim.x) continue; __syncthreads(); } while (--n); }"
            ),
            "a condition that changes a variable",
        ),
        (
            "__global__ void k() { if (threadIdx.x % 3) __any_sync(5, 1); __syncwarp(); }",
            "__any_sync in a branch that not all lanes may take",
        ),
        (
            "__global__ void k() { if (threadIdx.x % 3) __any_sync(5, 1); else __any_sync(2, 1); }",
            "__any_sync in a branch that not all lanes may take",
        ),
        (
            "__global__ void k() { if (threadIdx.x) __all_sync(0xffffffff, 1); __syncthreads(); }",
            "__all_sync in a branch that not all lanes may take",
        ),
        (
            "__global__ void k(int* p) { auto g = cg::tiled_partition(b, 4); g.sync(); }",
            "cooperative groups",
        ),
        ("__global__ void k() { auto g = cg::coalesced_threads(); g.sync(); }", ""),
        (
            "__global__ void k() { f(cg::coalesced_threads()); }",
            "cooperative groups",
        ),
        (
            (
                "__device__ void f() { auto g = cg::coalesced_threads(); g.sync(); }"
                "__global__ void k(int n) { while (n--) for (int i = 0; i < n; ++i) f(); }"
            ),
            "lanes that may come together in several places",
        ),
        (
            (
                "__global__ void k(int* p) { for (int i = 0; i < 9; ++i) { if (p[i]) continue; "
                "auto g = cg::coalesced_threads(); g.sync(); } }"
            ),
            "a loop in which not all lanes come together",
        ),
        (
            (
                "__global__ void k(int* p) { for (int i = 0; i < 9; ++i) { p[i] = 1; "
                "if (p[i]) { auto g = cg::coalesced_threads(); g.sync(); } } }"
            ),
            "what lanes do before they come together",
        ),
        (
            (
                "__global__ void k(int* p) { auto b = cg::this_thread_block(); "
                "auto t = cg::tiled_partition<8>(b); auto g = cg::binary_partition(t, *p > 1); "
                "if (threadIdx.x % 2) g.sync(); t.sync(); }"
            ),
            "__syncwarp in a branch that not all lanes may take",
        ),
        (
            (
                "__global__ void k(int n) { auto b = cg::this_thread_block(); "
                "auto t = cg::tiled_partition<8>(b); { auto t = cg::tiled_partition<4>(b); } }"
            ),
            "cooperative groups",
        ),
        (
            "__global__ void k(int n) { if (threadIdx.x) cg::this_grid().sync(); }",
            "a barrier in a branch that not all threads may take",
        ),
        (
            "__global__ void k(int* p) { auto b = cg::this_thread_block(); any(b); }",
            "cooperative groups",
        ),
        (f"constexpr int W = 16; __global__ void k() {{ {TILE} }}", ""),
        (f"__global__ void k() {{ const unsigned W = 8u; {TILE} }}", ""),
        (f"const int W = 64; __global__ void k() {{ {TILE} }}", "cooperative groups"),
        (
            f"const int W = 8; __global__ void k() {{ {{ const int W = 64; {TILE} }} }}",
            "cooperative groups",
        ),
        (
            f"__global__ void k() {{ const int W = 8; {{ const int W = 64; {TILE} }} }}",
            "cooperative groups",
        ),
        (
            f"const int W = 8; template <int W> __global__ void k() {{ {TILE} }}",
            "cooperative groups",
        ),
        ('extern "C" { __global__ void k(int* p) { p[threadIdx.x] = 1; __syncthreads(); } }', ""),
        ("namespace { namespace b { __global__ void k(int* p) { *p = 1; } } }", ""),
    ],
)
def test_why_a_kernel_of_a_program_keeps_its_fibers(text, words):
    found = reason(text)
    assert words in found
    assert bool(words) == bool(found)


STATE = """struct State {
    int n;
    __device__ State() {}
    __device__ void clear() { if (threadIdx.x == 0) n = 0; }
    __device__ explicit State(int m) { n = threadIdx.x < m; }
};
__global__ void k(State* state, int* x) {
    DECLARED
    if (known->n > 3) __syncthreads();
    x[threadIdx.x] = known->n;
}"""


@pytest.mark.parametrize(
    ("declared", "is_blocks"),
    [
        ("State* known = state;", True),
        ("State* known = state + threadIdx.x;", False),
        ("State own(4), *known = &own;", False),
    ],
)
def test_a_pointer_is_the_blocks_whatever_the_methods_of_its_class_ask_for(declared, is_blocks):
    found = reason(STATE.replace("DECLARED", declared))
    assert (found == "") == is_blocks, found


def test_what_cannot_be_read_is_the_matter_of_the_kernels_that_reach_it():
    text = """
        __device__ int f(int i) { again: if (i-- > 0) goto again; return i; }
        __global__ void k(int* p) { *p = f(1); __syncthreads(); }
        __global__ void other(int* p) { p[threadIdx.x] = 1; __syncthreads(); }
    """
    assert "a label" in reason(text)
    assert reason(text, "other") == ""


@pytest.mark.parametrize(
    ("loop", "in_rounds"),
    [
        ("for (int i = t; i < n; i += blockDim.x) s += p[i];", True),
        ("for (int i = t; i < n; i += blockDim.x) if (i + 5 < n) s += p[i + 5];", True),
        ("for (size_t i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) s += p[i];", True),
        ("for (int i = t * 8; i < n; i += blockDim.x) s += p[i];", False),
        ("for (int i = t; i < n; i += blockDim.x) s += p[i * 4];", False),
        ("for (int i = t; i < n; i += s) s += p[i];", False),
        ("for (int i = t; i < p[9]; i += blockDim.x) s += p[i];", False),
        ("for (int i = t; i < n; i += blockDim.x) { if (p[i]) break; }", False),
        ("for (int i = t; i < n; i += blockDim.x) atomicAdd(p + i, 1);", False),
    ],
)
def test_threads_go_in_step_through_loops_by_many_threads(loop, in_rounds):
    head = (
        "__global__ void k(int* p, int n) { const int t = threadIdx.x; int s = 0; __syncthreads();"
    )
    written = regions.loops(f'# 1 "a.cu"\n{head} {loop} p[t] = s; }}', is_program=True)
    assert ("; ++cudalab_rounds_" in written.text) == in_rounds


SUM = "s = p[k] - s / 3;"


@pytest.mark.parametrize(
    ("loop", "side_by_side"),
    [
        (f"for (int k = 0; k < n; ++k) {{ {SUM} }}", True),
        (f"if (t < n) {{ for (int k = 0; k < n; ++k) {{ {SUM} }} }}", True),
        (f"for (int k = n; k > t; k >>= 1) {{ {SUM} if (s > 9) break; }}", True),
        ("int k = 0; while (s < n) { s += p[t]; ++k; if (k & 1) continue; s *= 3; }", True),
        ("for (int k = 0; k < n; ++k) s = cells[t] - s / (k + 1);", True),
        ("int i = t; while (i < n) { s += p[i + 1]; i += gridDim.x * 64; }", True),
        ("int i = t * 8; while (i < n) { s += p[i]; i += 64; }", False),
        ("int i = t; while (i < n) { s += p[i]; i += s; }", False),
        (f"for (int k = 0; k < 16; ++k) {{ {SUM} }}", False),
        (f"for (int k = 0; k < N; ++k) {{ {SUM} }}", False),
        (f"for (int k = 0; k < FEW; ++k) {{ {SUM} }}", False),
        (f"for (int k = 0; k < MANY; ++k) {{ {SUM} }}", True),
        (f"for (int k = 0; k < n; ++k) {{ {SUM} p[t] = s; }}", False),
        (f"for (int k = 0; k < n; ++k) {{ {SUM} cells[t] = s; }}", False),
        (f"for (int k = 0; k < n; ++k) {{ {SUM} one = s; }}", False),
        (f"for (int k = 0; k < n; ++k) {{ {SUM} same += s; }}", False),
        (f"for (int k = 0; k < n; ++k) {{ {SUM} if (s) return; }}", False),
        ("for (int k = 0; k < n; ++k) s += p[k * 7 + t * 3];", False),
        ("for (int k = 0; k < n; ++k) s += atomicAdd(p, k);", False),
        ("for (int k = 0; k < n; ++k) s += f(k);", False),
        ("for (int k = 0; k < n; ++k) own[k & 3] += s;", False),
        ("volatile int* q = p; for (int k = 0; k < n; ++k) s += q[k];", False),
        (f"do {{ int k = 0; {SUM} }} while (s < n);", False),
    ],
)
def test_threads_do_rounds_side_by_side(loop, side_by_side):
    head = "const int FEW = 32, MANY = 999; __device__ int f(int k) { return k; }"
    head += " template <int N> __global__ void k(int* p, int n)"
    local = "const int t = threadIdx.x; int s = 0; int own[4] = {}; int& same = own[0];"
    shared = f"{{ {local} __shared__ int cells[64], one; __syncthreads();"
    text = f'# 1 "a.cu"\n{head} {shared} {loop} p[t] = s; }}'
    written = regions.loops(text, is_program=True)
    assert written.kernels == ["k"]
    assert ("::Staying<" in written.text) == side_by_side


CONDITIONS = """
#include <climits>
#include <cstdio>
#include <langinfo.h>
#ifndef M_PI
#define M_PI 3
#endif
#ifdef OWN
#define PLUS 1000
#else
#define PLUS 0
#endif
#define OWN 2
__global__ void k(float* p) {
    float sum = M_PI + PLUS + OWN;
#ifdef ADDED
    sum += ADDED;
#endif
#if defined(CODESET) && INT_MAX > 65536
    sum += 20;
#endif
    p[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) printf("%g\\n", p[1]);
}
int main() {
    float* p;
    cudaMalloc(&p, 2 * sizeof *p);
    k<<<1, 2>>>(p);
    cudaDeviceSynchronize();
}
"""


def test_conditions_on_macros_are_those_of_the_whole_program(tmp_path):
    program = tmp_path / "conditions.cu"
    program.write_text(CONDITIONS)
    for options, printed in ([], "25.1416\n"), (["-DADDED=100"], "125.142\n"):
        binary = executable([str(program)], "cpu", options)
        done = CliRunner().invoke(run, ["--tier", str(program), *options], catch_exceptions=False)
        assert done.output.startswith("k: loops over the threads")
        assert outcome(binary, "1") == outcome(binary, "0") == (0, printed, "")


def test_after_a_mistake_of_its_own_cudalab_uses_fibers(monkeypatch):
    monkeypatch.setattr(regions, "MISTAKES", (Exception,))
    monkeypatch.setattr(regions, "spaces", max)
    written = regions.loops('# 1 "a.cu"\n__global__ void k() {}', is_program=True)
    assert not written.kernels
    assert written.reasons[""].startswith("a mistake of cudalab's own: ")


DECLARED = """
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
template <class T>
__inline__ __device__ T sum_of_block(T value) {
    static __shared__ T all[32];
    __shared__ static int rest;
    register int i = threadIdx.x;
    all[i] = value, rest = 1000;
    __syncthreads();
    T sum = rest;
    for (register int k = 0; k < 32; ++k) sum += all[k];
    return sum;
}
__global__ void together(float* out, const float* in) {
    int tile = blockIdx.x, part = blockIdx.y, x = threadIdx.x, y = x * 2;
    int from = (tile << 5) + part + x;
    namespace cg = cooperative_groups;
    cg::thread_block block = cg::this_thread_block();
    const int more[] = {100, 200, part};
    register float a = in[from], b = sum_of_block(a);
    const auto unused = x + y;
    auto none = unused - 3 * x;
    block.sync();
    out[from] = a + b + y + none + more[x % 3];
}
template <class T, int N>
__global__ void columns(T* __restrict__ out, const T* __restrict__ in, const int d) {
    const int64_t to = (int64_t)blockIdx.x * d, from = to * N;
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        T sum = 0.0;
#pragma unroll
        for (int k = 0; k < N; ++k) sum += __ldg(&in[from + k * d + i]);
        out[to + i] = sum;
    }
}
int main() {
    float *in, *out;
    cudaMallocManaged(&in, 1024 * sizeof *in);
    cudaMallocManaged(&out, 1024 * sizeof *out);
    for (int i = 0; i < 1024; ++i) in[i] = i;
    together<<<2, 32>>>(out, in);
    cudaDeviceSynchronize();
    printf("%g %g\\n", out[1], out[63]);
    columns<float, 4><<<2, 64>>>(out, in, 100);
    cudaDeviceSynchronize();
    printf("%g %g\\n", out[0], out[199]);
}
"""


def test_what_nvcc_accepts_is_declared_in_both_ways(tmp_path):
    program = tmp_path / "declared.cu"
    program.write_text(DECLARED)
    binary = executable([str(program)], "cpu")
    assert ways.stored(binary).reasons["together"] == ""
    assert outcome(binary, "1") == outcome(binary, "0") == (0, "1699 2845\n600 2596\n", "")


class AsItIs:
    """A preprocessor for a text without directives."""

    options = ""

    def text(self, name, texts, conditions):
        assert not conditions
        return f'# 1 "a.cu"\n{texts[name].partition(chr(10))[2]}'


@pytest.mark.parametrize(
    ("body", "types", "launches", "has_loops"),
    [
        ("__shared__ int a[N]; a[N / 2] = 0;", "", 8, True),
        ("__shared__ int a[N]; a[N / 2] = 0;", "", 9, False),
        ("if (threadIdx.x < N && N > 3) p[N] = N;", "", 9, True),
        ("if (threadIdx.x < N && N > 3) p[N] = N;", "class T, ", 9, True),
        ("const int m = N; int a[m]; a[0] = 0;", "", 9, False),
        ("if constexpr (N > 3) p[0] = 0;", "", 9, False),
        ("p[0] = f<N>();", "", 9, False),
        ("constexpr int m = N; p[0] = m;", "", 9, False),
        ("switch (p[0]) { case N: p[0] = 1; }", "", 9, False),
        ("auto f = [] { return N; }; p[0] = f();", "", 9, False),
        ("__launch_bounds__(N)", "", 9, False),
    ],
)
def test_templates_that_are_launched_often_hand_over_their_numbers(
    body, types, launches, has_loops
):
    bounds, body = (body, "") if body.startswith("__launch") else ("", body)
    template = "template <int N> __device__ int f() { return N; }\n"
    template += f"template <{types}int N> __global__ void {bounds} k(int* p)"
    kernel = f"{template} {{ {body} p[threadIdx.x] += N; __syncthreads(); }}"
    arguments = "int, " if types else ""
    calls = "".join(f"k<{arguments}{i}><<<1, 32>>>(p); " for i in range(launches))
    file = File("a.cu", "a.cu", f"{kernel}\nvoid f(int* p) {{ {calls}}}\n")
    parsed = edited([file], ["0-a.cpp"])
    ways = loops.add(parsed, ["0-a.cpp"], [0], AsItIs())
    reason = "loops over" if has_loops else "fibers: launched in 9 places"
    assert ways.lines()[0].startswith(f"k: {reason}")
    text = parsed[0].rewritten()
    assert ("two_ways" in text) == ways.any_loops == has_loops
    is_handed = "k_cudalab_all<int>(cudalab_b, 5, " if types else "k_cudalab_all(cudalab_b, 5, "
    assert (is_handed in text) == (has_loops and launches > 8)


@pytest.mark.parametrize(
    ("block", "has_rows"),
    [("64", False), ("dim3(64)", False), ("dim3(32, 2)", True), ("dim3{8, 4, 2}", True)],
)
def test_blocks_of_several_dimensions_have_loops_over_rows(block, has_rows):
    """Also of a kernel that only asks for threadIdx.x: its loops would else be left unused."""
    kernel = "__global__ void k(int* p) { p[threadIdx.x] = 1; }"
    file = File("a.cu", "a.cu", f"{kernel}\nvoid f(int* p) {{ k<<<1, {block}>>>(p); }}\n")
    parsed = edited([file], ["0-a.cpp"])
    loops.add(parsed, ["0-a.cpp"], [0], AsItIs())
    assert ("#define CUDALAB_FLAT" not in parsed[0].tail) == has_rows


def test_templates_that_pointers_and_macros_launch_are_loops():
    binary = executable([str(PROGRAMS / "instances.cu")], "cpu")
    reasons = ways.stored(binary).reasons
    assert len(reasons) == 5
    assert not any(reasons.values())
    for way in "10":
        assert outcome(binary, way)[:2] == (0, "no error\n0 wrong\n")


def test_a_template_of_which_no_instance_is_named_has_fibers_and_says_so(tmp_path):
    program = tmp_path / "k.cu"
    program.write_text(
        "template <class T> __global__ void k(T* p) { __syncthreads(); p[threadIdx.x] += 1; }\n"
        "template <class T> __global__ void named(T* p) { __syncthreads(); *p += 1; }\n"
        "int main() { int* p; cudaMallocManaged(&p, 128); void (*f)(int*) = k;\n"
        "f<<<1, 32>>>(p); named<<<1, 1>>>(p); return cudaDeviceSynchronize(); }\n"
    )
    binary = executable([str(program)], "cpu")
    reasons = ways.stored(binary).reasons
    assert "names an instance" in reasons["k"]
    assert not reasons["named"]
    assert outcome(binary, "1") == outcome(binary, "0")
