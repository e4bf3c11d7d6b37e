"""Kernels of whole programs as loops: the same output as with fibers, and why some have these."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudalab.backends.cpu import regions
from cudalab.cli.run import run
from cudalab.program import loops
from cudalab.program.build import executable
from cudalab.program.files import File
from cudalab.program.rewrite import edited

PLACED = "__device__ int f() { return threadIdx.x; }"
PROGRAMS = Path(__file__).parents[1] / "programs"


def outcome(binary, ways):
    environment = {**os.environ, "CUDALAB_LOOPS": ways}
    done = subprocess.run([binary], capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_both_ways_print_the_same():
    binary = executable([str(PROGRAMS / "ways.cu")], "cpu")
    assert outcome(binary, "1") == outcome(binary, "0")
    status, printed, messages = outcome(binary, "1")
    assert status == 0
    assert printed.count("cudaSuccess") == 11
    assert "block (0,0,0): thread (33,0,0): " in messages
    assert "ways.cu:117: " in messages
    reasons = loops.stored(binary).reasons
    assert {name for name, reason in reasons.items() if reason} == {"waits", "grid_wide"}
    assert len(reasons) == 8


def reason(text, name="k"):
    """Why a kernel of a program has fibers; nothing if it has loops."""
    preprocessed = f'# 1 "a.cu"\n{text}'
    written = regions.loops(preprocessed, is_program=True)
    assert (name in written.kernels) != (name in written.reasons)
    return written.reasons.get(name, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void k(int* p) { assert(*p); }", "a message that names the function"),
        ("__global__ void k(int* p) { cub::Sum()(p); }", "a library"),
        ("__global__ void k(int& p) { p = 1; }", "a parameter that is a reference"),
        ("__global__ void k(int* p) { cudaDeviceSynchronize(); }", "cudaDeviceSynchronize in a"),
        ("__global__ void k(int* p) { ::cudalab::in_step(1); }", "what only fibers do"),
        (
            "__global__ void k(int* p); void k(); __global__ void k(float* p) {} void k() {}",
            "sever",
        ),
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
            "a class with barriers",
        ),
        (
            "__global__ void k(int* p) { while (*p == 0) __threadfence(); __syncthreads(); }",
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
            "a condition that is read from memory",
        ),
        (
            "__global__ void k(int* p) { auto g = cg::coalesced_threads(); g.sync(); }",
            "cooperative groups",
        ),
        (
            "__global__ void k(int* p) { auto b = cg::this_thread_block(); any(b); }",
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


def test_conditions_on_the_systems_macros_keep_the_fibers(tmp_path):
    program = tmp_path / "pi.cu"
    program.write_text(
        "#ifndef M_PI\n#define M_PI 3\n#endif\n"
        "__global__ void k(float* p) { *p = M_PI; }\nint main() {}\n"
    )
    done = CliRunner().invoke(run, ["--tier", str(program)], catch_exceptions=False)
    assert done.output == "k: fibers: a condition on M_PI, which the system's headers define\n"


class AsItIs:
    """A preprocessor for a text without directives."""

    options = ""

    def text(self, name, texts):
        return f'# 1 "a.cu"\n{texts[name].partition(chr(10))[2]}'


@pytest.mark.parametrize(
    ("launches", "way"), [(8, "loops over"), (9, "fibers: launched in 9 places")]
)
def test_templates_that_are_launched_often_keep_their_fibers(launches, way):
    kernel = "template <int N> __global__ void k(int* p) { p[threadIdx.x] = N; __syncthreads(); }"
    calls = "".join(f"k<{i}><<<1, 32>>>(p); " for i in range(launches))
    file = File("a.cu", "a.cu", f"{kernel}\nvoid f(int* p) {{ {calls}}}\n")
    parsed = edited([file], ["0-a.cpp"])
    ways = loops.add(parsed, ["0-a.cpp"], [0], AsItIs())
    assert ways.lines()[0].startswith(f"k: {way}")
    assert ("two_ways" in parsed[0].rewritten()) == ways.any_loops == (launches == 8)
