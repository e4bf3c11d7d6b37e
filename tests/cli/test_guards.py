"""Kernels with barriers behind a guard: blocks of which no thread leaves run without masks."""

from pathlib import Path

import pytest

from cudalab.backends.cpu import regions
from cudalab.program import ways
from cudalab.program.build import executable
from tests.random_groups import outcome

PROGRAMS = Path(__file__).parents[1] / "programs"


def test_guarded_kernels_compute_what_host_functions_do():
    binary = executable([str(PROGRAMS / "guards.cu")], "cpu")
    assert not any(ways.stored(binary).reasons.values())
    for way in "10":
        assert outcome(binary, way)[:2] == (0, "55 compared, 0 wrong\n")


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("if (t >= n) return; __syncthreads(); p[t] = s[t];", True),
        ("if (t < n) { __syncthreads(); p[t] = s[t]; }", True),
        ("if (p[t] > n) return; if (t > n) return; __syncthreads(); p[t] = s[t];", True),
        ("if (t < n) { __syncthreads(); p[t] = s[t]; } else p[t] = 1;", None),
        ("p[t] = 1; if (t >= n) return; __syncthreads(); p[t] = s[t];", False),
        ("int m = n++; if (t >= m) return; __syncthreads(); p[t] = s[t];", False),
        ("if (t >= n) return; __syncthreads(); if (p[t]) return; __syncthreads();", False),
        ("__syncthreads(); p[t] = s[t];", False),
        ("if (t >= 32) return; p[t] = __shfl_down_sync(~0u, s[t], 1);", True),
        ("if (t < n) p[t] = s[t];", False),
        ("if (n > 3) { __syncthreads(); p[t] = s[t]; }", False),
        ("int m = n = 5; if (t >= m) return; __syncthreads(); p[t] = s[t];", False),
        ("int m(n++); if (t >= m) return; __syncthreads(); p[t] = s[t];", False),
        ("if (t >= n++) return; __syncthreads(); p[t] = n;", False),
        ("int m = __syncthreads_count(t < n); if (t >= m) return; __syncthreads();", False),
        ("if (t < n) { __syncthreads(); __grid_sync(); p[t] = s[t]; }", None),
    ],
)
def test_which_kernels_are_written_for_whole_blocks_too(text, twice):
    head = "__global__ void k(int* p, int n) { __shared__ int s[64]; const int t = threadIdx.x;"
    written = regions.loops(f'# 1 "a.cu"\n{head} {text} }}', is_program=True)
    assert bool(written.kernels) == (twice is not None)
    assert ("k_cudalab_leaving" in written.text) == bool(twice)


GUARD = "{ __shared__ int s[64]; const int t = threadIdx.x; if (t >= n) return; __syncthreads(); }"


@pytest.mark.parametrize(
    "text",
    [
        f"void k(int* p, int n) {GUARD} __global__ void k(float* p, int n) {GUARD}",
        f"void k(T* p, int n) {GUARD} template <> __global__ void k<int>(int* p, int n) {GUARD}",
        f"void k(int n, T... p) {GUARD}",
    ],
)
def test_kernels_of_several_texts_are_not(text):
    template = "template <class... T> " if "..." in text else "template <class T> "
    head = f"{template if 'T' in text else ''}__global__ "
    launch = "k<int><<<1, 64>>>(p, 3)" if "T*" in text else "k<<<1, 64>>>(p, 3)"
    written = regions.loops(
        f'# 1 "a.cu"\n{head}{text} void f(int* p) {{ {launch}; }}', is_program=True
    )
    assert "k_cudalab_leaving" not in written.text


def test_kernels_of_labs_are_not():
    text = f'# 1 "a.cu"\nextern "C" __global__ void k(int* p, int n) {GUARD}'
    assert "k_cudalab_leaving" in regions.loops(text, is_program=True).text
    assert "k_cudalab_leaving" not in regions.loops(text, is_program=False).text
