"""Kernels as loops over the threads of a block: the same bytes as with fibers."""

import re
from pathlib import Path

import numpy as np
import pytest

from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cpu.regions import loops
from cudalab.errors import KernelError
from cudalab.language.source import Source, find_kernels, load
from tests import random_kernels


def source(text):
    return Source(Path("k.cu"), "k.cu", f'#line 1 "k.cu"\n{text}', kernels=find_kernels(text))


def test_random_kernels_give_the_same_bytes():
    number, with_loops, different = random_kernels.compare(range(8))
    assert different == []
    assert with_loops == number


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if (threadIdx.x < 5) __syncthreads();", "a barrier in a branch that not all threads"),
        (
            "if (threadIdx.x < 5) out[0] = __any_sync(31, 1);",
            "__any_sync in a branch that not all lanes may take",
        ),
        ("while (*(volatile int*)out == 0);", "a loop that waits for other threads"),
        (
            "auto flag = (volatile int*)out; while (*flag == 0) { }",
            "a loop that waits for other threads",
        ),
        ("volatile int* flag = out; while (*flag == 0);", "a volatile variable"),
        ("switch (n) { case 1: __syncthreads(); }", "a barrier in a switch"),
        ("out[0] = threadIdx.x > 5 ? __any_sync(31, n) : 0;", "a branch that not all lanes may"),
        ("auto f = [&] { __syncthreads(); }; f();", "__syncthreads in a lambda"),
        ("for (int i = 0; i < n; ++i) out[i] = 0;", "each thread has loops of its own"),
        ("int i = threadIdx.x; again: if (--i > 0) goto again;", "goto"),
        ("while (atomicAdd(out, 0) == 0) { }", "a loop that waits for other threads"),
        (
            "bool mine = false; while (!mine) { mine = atomicExch(out, 1) == 0; }",
            "a loop that waits for other threads",
        ),
        ("for (;;) { if (atomicOr(out, 0)) break; }", "a loop that waits for other threads"),
        (
            "if (threadIdx.x == 1) { while (atomicAdd(out, 0) == 0) { } } out[0] = 1;",
            "a loop that waits for other threads",
        ),
        (
            "if (threadIdx.x < 5) { while (atomicAdd(out, 0) == 0) { } } __syncthreads();",
            "a loop that waits for other threads",
        ),
    ],
)
def test_what_is_not_covered_keeps_its_fibers_and_says_why(body, reason):
    text = f'# 1 "k.cu"\nextern "C" __global__ void k(int* out, int n) {{ {body} }}'
    written = loops(text)
    assert written.kernels == []
    assert reason in written.reasons["k"]
    assert written.reasons["k"].startswith("k.cu:1: ")


def test_threads_meet_in_many_ways():
    path = Path(__file__).parent.parent / "kernels" / "meetings.cu"
    file = load(path, path.name)
    inputs = np.random.default_rng(1).integers(-9, 9, 6 * 96, np.int32)
    answers = []
    for with_loops in (True, False):
        with CpuDevice(2, loops=with_loops) as device:
            module = device.compile(file, {})
            how = {module[name].how for name in file.kernels}
            assert how == {"loops over the threads of a block" if with_loops else "fibers"}
            answers.append({})
            for name in file.kernels:
                out = device.to_device(np.zeros_like(inputs))
                device.launch(module[name], 6, 96, device.to_device(inputs), out)
                answers[-1][name] = device.to_host(out).tolist()
    assert answers[0] == answers[1]


def test_kernels_may_lie_in_namespaces():
    kernel = 'extern "C" __global__ void {}(int* out) {{ __syncthreads(); out[0] = f(); }}'
    text = f"""# 1 "k.cu"
    namespace one {{ __device__ int f() {{ return 1; }} {kernel.format("k1")} }}
    namespace two {{ __device__ int f() {{ return 2; }} {kernel.format("k2")} }}"""
    written = loops(text)
    assert written.kernels == ["k1", "k2"]
    assert "namespace two {" in written.text


def test_indices_beyond_an_int_have_fibers():
    text = """
    extern "C" __global__ void k(unsigned* out) {
        __syncthreads();
        if (blockIdx.x * blockDim.x + threadIdx.x == 0) out[blockIdx.x] += 1 + blockIdx.x;
    }"""
    with CpuDevice(1, loops=True) as device:
        kernel = device.compile(source(text), {})["k"]
        assert kernel.how == "loops over the threads of a block"
        out = device.to_device(np.zeros(1, np.uint32))
        device.launch(kernel, 1, 1024, out)
        assert device.to_host(out)[0] == 1
        with kernel.with_fibers() as fibers:
            assert "fibers" in fibers.how


def test_a_failed_assertion_has_the_text_of_the_source():
    text = """
    #include <cassert>
    // Headers of C libraries differ in how often they declare it.
    extern "C" void __assert_fail(const char* condition, const char* file, unsigned line,
                                  const char* function) noexcept;
    constexpr int SIZE = 4;
    #define LAST (SIZE-1)
    extern "C" __global__ void k(const int* in) {
        __syncthreads();
        assert(in[threadIdx.x] <= LAST && "less, or so (it says)");
    }"""
    messages = set()
    for with_loops in (True, False):
        with CpuDevice(1, loops=with_loops) as device:
            kernel = device.compile(source(text), {})["k"]
            assert kernel.has_loops == with_loops
            with pytest.raises(KernelError) as caught:
                device.launch(kernel, 1, 32, device.to_device(np.arange(32, dtype=np.int32)))
            messages.add(caught.value.message)
    assert len(messages) == 1
    assert 'in[threadIdx.x] <= LAST && "less, or so (it says)"' in messages.pop()


def test_large_locals_and_early_returns():
    text = """
    extern "C" __global__ void k(int* out, int n) {
        const int t = threadIdx.x;
        if (t >= n) return;
        int own[300];
        for (int i = 0; i < 300; ++i) own[i] = i * t;
        __syncthreads();
        int sum = 0;
        for (int i = 0; i < 300; ++i) sum += own[i];
        out[t] = sum;
    }"""
    with CpuDevice(1, loops=True) as device:
        kernel = device.compile(source(text), {})["k"]
        assert kernel.has_loops
        out = device.to_device(np.zeros(1000, np.int32))
        device.launch(kernel, 2, 1000, out, np.int32(900))
        expected = np.arange(1000, dtype=np.int32) * (299 * 150)
        expected[900:] = 0
        assert (device.to_host(out) == expected).all()


# What the warps of a block answer differently, and what they do then.
OF_WARPS = """
__device__ int first_of(int v) { return __shfl_sync(~0u, v, 0); }
template <class T> __device__ T first_of_any(T v) { return __shfl_sync(~0u, v, 0); }
__device__ int sum_of(int v) {
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    return __shfl_sync(~0u, v, 0);
}
__device__ int voted(int v) { return __any_sync(~0u, v > 40); }
"""
CONDITIONS = [
    *("first_of(t) > 40", "first_of_any(t) > 40", "sum_of(t) > 1300", "voted(t)"),
    *("__shfl_sync(~0u, t, 0) > 40", "__shfl_sync(~0u, __shfl_sync(~0u, t, 0), 3) > 40"),
    *("__shfl_sync(~0u, t, w) > 40", "(w ? first_of(t) : first_of(1)) > 40"),
    *("__any_sync(~0u, t > 40)", "__all_sync(~0u, t > 40)", "s[t / 32] > 1", "in[w] > 1"),
    *("__popc(__ballot_sync(~0u, t > 40)) > 20", "__reduce_add_sync(~0u, (unsigned)t) > 1300u"),
]
USES = [
    "if (COND) { __syncwarp(); out[t] = 1; } else { __syncwarp(); out[t] = 2; }",
    "if (COND) { out[t] = 1; return; } __syncwarp(); out[t] = 2;",
    "int n = 0; while (COND) { __syncwarp(); if (++n == 3) break; } out[t] = n;",
    "int n = 0; for (;;) { __syncwarp(); n += COND ? 2 : 3; if (n > 7) { out[t] = n; return; } }",
    "int n = 0; do { __syncwarp(); ++n; } while (n < 3 && (COND)); out[t] = n;",
]


def test_warps_decide_differently():
    bodies = [use.replace("COND", condition) for condition in CONDITIONS for use in USES]
    head = "const int t = threadIdx.x, w = t / 32; __shared__ int s[8]; if (t < 8) s[t] = t;"
    text = OF_WARPS + "".join(
        f'extern "C" __global__ void k{number}(const int* in, int* out) '
        f"{{ {head} __syncthreads(); {body} }}\n"
        for number, body in enumerate(bodies)
    )
    answers = {}
    for with_loops in (True, False):
        with CpuDevice(1, loops=with_loops) as device:
            module = device.compile(source(text), {})
            assert module["k0"].has_loops == with_loops
            given = device.to_device(np.arange(8, dtype=np.int32))
            for number, body in enumerate(bodies):
                out = device.to_device(np.zeros(128, np.int32))
                device.launch(module[f"k{number}"], 1, 128, given, out)
                answers[body, with_loops] = device.to_host(out).tolist()
    assert {body for body in bodies if answers[body, True] != answers[body, False]} == set()


# Loops that end only when their threads return: the first lane of a warp decides for all of it.
RETURNING = {
    "while": "while (true) { STEP }",
    "for": "for (;;) { STEP }",
    "do": "do { STEP } while (true);",
    "counted": "for (int round = 0; round < 1000; ++round) { STEP }",
    "nested": "for (;;) { for (int round = 0; round < 2; ++round) { STEP } }",
    "branch": "if (t < 64) { while (true) { STEP } } else { for (;;) { STEP } }",
    "function": "out[t] += steps(t); return;",
    "barrier": "while (true) { __syncthreads(); STEP }",
    "all before": "while (true) { STEP } while (true) { if (__syncthreads_count(1) < 0) break; }",
}
STEP = "i += 1; const int first = __shfl_sync(~0u, i, 0); if (first > 40) { out[t] += i; return; }"


@pytest.mark.parametrize("body", RETURNING.values(), ids=RETURNING)
@pytest.mark.parametrize("with_loops", [True, False], ids=["loops", "fibers"])
def test_a_loop_ends_when_all_of_its_threads_have_returned(body, with_loops):
    function = STEP.replace("out[t] += i; return;", "return i;")
    text = f"""
    __device__ inline int steps(int i) {{ while (true) {{ {function} }} }}
    extern "C" __global__ void k(int* out) {{
        const int t = threadIdx.x;
        int i = t;
        {body.replace("STEP", STEP)}
    }}"""
    with CpuDevice(1, loops=with_loops) as device:
        kernel = device.compile(source(text), {})["k"]
        assert kernel.has_loops == with_loops
        out = device.to_device(np.zeros(128, np.int32))
        device.launch(kernel, 1, 128, out)
        t = np.arange(128)
        assert (device.to_host(out) == t + np.maximum(41 - t // 32 * 32, 1)).all()


WAYS = {
    "loops": lambda: CpuDevice(1, loops=True),
    "fibers": lambda: CpuDevice(1, loops=False),
    "checked": lambda: CheckDevice(detect=True, count=False, threads=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_vote_of_a_block_is_its_own(way):
    """Counted by the host; no vote knows the votes before it."""
    text = """
    extern "C" __global__ void k(const int* in, int* out) {
        const int t = threadIdx.x, own = in[blockIdx.x * blockDim.x + t];
        const int few = __syncthreads_count(own > 6), many = __syncthreads_count(own > 2);
        const int all = __syncthreads_and(own > 0), any = __syncthreads_or(own > 8);
        const int again = __syncthreads_count(own > 6);
        int* mine = out + 5 * (blockIdx.x * blockDim.x + t);
        mine[0] = few, mine[1] = many, mine[2] = all != 0, mine[3] = any != 0, mine[4] = again;
    }"""
    values = np.random.default_rng(5).integers(0, 10, (4, 96), np.int32)
    values[1] = np.maximum(values[1], 1)
    values[2] = np.minimum(values[2], 8)
    with WAYS[way]() as device:
        kernel = device.compile(source(text), {})["k"]
        out = device.to_device(np.zeros((4, 96, 5), np.int32))
        device.launch(kernel, 4, 96, device.to_device(values), out)
        votes = device.to_host(out)
    tests = [(values > 6).sum(1), (values > 2).sum(1), (values > 0).all(1), (values > 8).any(1)]
    expected = np.stack([*tests, tests[0]], axis=1)
    assert 0 < expected[:, 2].sum() < 4
    assert 0 < expected[:, 3].sum() < 4
    assert (votes == expected[:, None, :]).all()


@pytest.mark.parametrize("way", WAYS)
def test_a_tile_of_two_warps_waits_for_both_and_for_no_other(way):
    """The last tile of the block is half of one."""
    text = """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(int* out) {
        __shared__ int items[160];
        const int t = threadIdx.x;
        auto tile = cg::tiled_partition<64>(cg::this_thread_block());
        items[t] = -1;
        tile.sync();
        for (int turn = 0; turn < 3; ++turn) {
            items[t] = 1000 * turn + t;
            tile.sync();
            const int first = t / 64 * 64, size = first == 128 ? 32 : 64;
            out[160 * turn + t] = items[first + (t - first + 32) % size];
            tile.sync();
        }
    }"""
    with WAYS[way]() as device:
        kernel = device.compile(source(text), {})["k"]
        out = device.to_device(np.zeros((3, 160), np.int32))
        device.launch(kernel, 1, 160, out)
        result = device.to_host(out)
    t = np.arange(160)
    first = t // 64 * 64
    other = first + (t - first + 32) % np.where(first == 128, 32, 64)
    assert (result == 1000 * np.arange(3)[:, None] + other).all()


def test_a_block_polls_for_another_until_its_threads_return():
    text = """
    __device__ inline int wait_for(const int* place) {
        while (true) {
            const int value = *(const volatile int*)place;
            if (__all_sync(~0u, value != 0)) return value;
            __nanosleep(32);
        }
    }
    extern "C" __global__ void k(int* out) {
        int before = 1;
        if (blockIdx.x > 0 && threadIdx.x < 32) before = wait_for(out + blockIdx.x - 1);
        __syncthreads();
        if (threadIdx.x == 0) *(volatile int*)(out + blockIdx.x) = before + 1;
    }"""
    with CpuDevice(2, loops=True) as device:
        kernel = device.compile(source(text), {})["k"]
        assert kernel.has_loops
        out = device.to_device(np.zeros(50, np.int32))
        device.launch(kernel, 50, 64, out)
        assert (device.to_host(out) == np.arange(50) + 2).all()


# Kernels without barriers; the first takes any block, as does each form of its loops.
IN_STEP = """
extern "C" __global__ void product(const float* a, const float* b, float* out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    out[y * n + x] = sum;
}
extern "C" __global__ void product_in_branch(const float* a, const float* b, float* out,
                                             unsigned n) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) {
        float sum = 0, greatest = 0;
        for (unsigned k = 0; k < n; ++k) {
            const size_t at = 0 ? (size_t)x * n + k : k < 3 ? (size_t)k * n + x : k * n + x;
            const float x = a[y * n + k] * b[at];
            sum += x;
            greatest = x > greatest ? x : greatest;
        }
        out[y * n + x] = sum / greatest;
    }
}
extern "C" __global__ void product_of_its_time(const float* a, const float* b, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int turn, k, more = 3;
    if (x < n && y < n) {
        for (turn = n - 1; turn < n; turn++) {
            for (k = 0; k < 100; k++) out[y * n + x] += a[y * n + k] * b[k * n + x];
            for (k = 99; k >= 0; --k) out[y * n + x] += (k + more) * b[k * n + x];
        }
    }
}
const int LENGTH = 100;
extern "C" __global__ void product_of_length(const float* a, const float* b, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        for (int k = 0; k < LENGTH; k++) out[y * n + x] += a[y * n + k] * b[k * n + x];
}
__device__ float weight(const float* a, int i) { return 1 + a[i + threadIdx.x]; }
extern "C" __global__ void sweeps(const float* a, const float* b, float* out, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= n - 1) return;
    if (y < 1 || y >= n - 1) return;
    float* const row = out + y * n;
    for (int i = 0; i < n; i += 2) {
        for (int j = n; j > i; --j) row[x] += a[(y - 1) * n + x - 1] * b[j];
        row[x] = row[x] * weight(a, i) + a[(y + 1) * n + x + 1];
    }
}
"""
NAMES = re.findall(r"(\w+)\(const float\* a, const float\* b", IN_STEP)


@pytest.mark.parametrize("block", [(16, 16), (32, 3), (8, 8), (48, 1), (7, 1, 3)])
def test_threads_go_through_loops_in_step(block):
    n = 100
    grid = (-(-n // block[0]), -(-n // block[1]))
    a, b = (np.random.default_rng(seed).random(n * n + n, np.float32) for seed in (1, 2))
    answers = []
    for with_loops in (True, False):
        with CpuDevice(1, loops=with_loops) as device:
            module = device.compile(source(IN_STEP), {})
            for name in NAMES:
                assert module[name].has_loops == with_loops
                out = device.to_device(np.ones_like(a))
                number = np.uint32(n) if "branch" in name else np.int32(n)
                device.launch(
                    module[name], grid, block, device.to_device(a), device.to_device(b), out, number
                )
                answers.append(device.to_host(out))
    for in_step, alone in zip(answers[: len(NAMES)], answers[len(NAMES) :], strict=True):
        assert in_step.tobytes() == alone.tobytes()
        assert (in_step != 1).any()


@pytest.mark.parametrize(
    ("declared", "bound", "has_loops"),
    [
        ("const int N = 2048;", "N", True),
        ("constexpr unsigned M = 3, N = 64;", "N", True),
        ("enum { M = 3, N = 64 };", "N", True),
        ("const int N = 4;", "N", False),  # the compiler unrolls it: faster one after another
        ("const int N = 2048;", "4", False),
    ],
)
def test_a_named_constant_bounds_loops_as_its_number_does(declared, bound, has_loops):
    kernel = f"""{declared}
extern "C" __global__ void sums(const float* a, float* out) {{
    int column = threadIdx.x;
    for (int row = 0; row < {bound}; row++) out[column] += a[row * 64 + column];
}}
"""
    with CpuDevice(1) as device:
        assert device.compile(source(kernel), {})["sums"].has_loops == has_loops


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < n; ++k) out[t] += x[t * n + k];",  # neighbours are far apart
        "for (int k = 0; k < n; ++k) out[t] += at(x, t * n + k);",
        "const int* mine = x + t * n; for (int k = 0; k < n; ++k) out[t] += mine[k];",
        "const int* mine = x + t; for (int k = 0; k < n; ++k) out[t] += *mine++;",
        "for (int k = 0; k < n; ++k) out[t] += x[x[t]];",
        "for (int k = 0; k < 4; ++k) out[4 * k + t] = k;",  # short
        "for (int k = t; k < n; k += 32) out[k] = k;",  # each thread has its own rounds
        "for (int k = 0; k < n; ++k) { if (x[k] == t) break; out[t] += 1; }",
        "for (int k = 0; k < n; ++k) atomicAdd(out, t * k);",  # floats would be added otherwise
        'for (int k = 0; k < n; ++k) printf("%d", k);',
        "out[t] = 1; if (t > n) return; for (int k = 0; k < n; ++k) out[t] += k;",
        "int own[9]; for (int k = 0; k < n; ++k) own[k] = k; out[t] = own[n - 1];",
        "int k; for (k = 0; k < n; ++k) out[t] += k; out[t] += k;",  # what a loop leaves is used
        "int k; if (n > 9) k = n; for (k = 0; k < n; ++k) out[t] += k;",
        "int k, i; for (i = 0; i < n; ++i) { out[t] += k; for (k = 0; k < n; ++k) out[t] += k; }",
        "int k, i; for (k = 0, i = 1; k < n; ++k) out[t] += i;",
        "while (n-- > 0) out[t] += n;",
        "int flag; flag = t; if (flag) while (n-- > 0) out[t] += n;",
    ],
)
def test_threads_with_other_loops_run_one_after_another(body):
    text = f"""# 1 "k.cu"
    __device__ int at(const int* x, int i) {{ return x[i]; }}
    extern "C" __global__ void k(int* out, const int* x, int n) {{
        const int t = blockIdx.x * blockDim.x + threadIdx.x;
        {body}
    }}"""
    assert "each thread has loops of its own" in loops(text).reasons["k"]


def test_kernels_of_whole_programs_go_through_loops_in_step():
    text = """# 1 "k.cu"
    template <typename T, int WIDTH = 16>
    __global__ void k(const T* a, T* out, int n) {
        const int x = ::cudalab::cudalab_fit<int>(blockIdx.x * WIDTH + threadIdx.x);
        if (x < n) {
            T sum = 0;
            for (int i = 0; i < n; i++) ::cudalab::cudalab_into(sum) += a[i * n + x];
            out[x] = ::cudalab::cudalab_fit<decltype(out[x])>(sum);
        }
    }"""
    written = loops(text, is_program=True)
    assert written.kernels == ["k"]
    assert "return k_cudalab_one_by_one<T, WIDTH>(cudalab_B, a, out, n);" in written.text
    assert "a [ ::cudalab::index( i * n + x , threadIdx.x) ]" in written.text


def test_only_regions_that_may_ask_where_they_are_tell_the_runtime():
    text = """# 1 "k.cu"
struct Place {
    int base;
    explicit Place(int n) : base(n) { if (n > 3) base = 3; }
    int mine() const { return base + (int)threadIdx.x; }
    int other() { for (;;) return base; }
};
extern "C" __global__ void k(int* out, int n) {
    Place place(n);
    __syncthreads();
    out[threadIdx.x] = place.mine();
    __syncthreads();
    if (n > 3) out[threadIdx.x] += 1;
    for (int base = 0; base < n; ++base) out[threadIdx.x] += base;
}"""
    regions = loops(text).text.split("CUDALAB_THREAD")[1:]
    assert ["set_thread" in region for region in regions] == [True, True, False]


def test_a_comparison_is_no_call_of_a_function_of_that_name():
    text = """# 1 "k.cu"
    __device__ int k(const int* p) { return p[0]; }
    template <int N> __device__ int at(const int* p) { return p[N]; }
    extern "C" __global__ void sums(int* out, const int* x, int n) {
        for (int k = 0; CONDITION; ++k) { out[threadIdx.x] += k; __syncthreads(); }
    }"""
    for condition, reads in (("k < n", False), ("k < (n)", False), ("k < at<3>(x)", True)):
        written = loops(text.replace("CONDITION", condition))
        assert written.kernels == ["sums"]
        assert ("::Agreement" in written.text) == reads, condition
