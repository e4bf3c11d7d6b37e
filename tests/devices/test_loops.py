"""Kernels as loops over the threads of a block: the same bytes as with fibers."""

from pathlib import Path

import numpy as np
import pytest

from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cpu.regions import loops
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
