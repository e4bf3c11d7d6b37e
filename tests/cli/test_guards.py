"""Kernels with barriers behind a guard: blocks of which no thread leaves run without masks."""

from pathlib import Path

import pytest

from cudalab.backends.cpu import regions
from cudalab.program import loops
from cudalab.program.build import executable
from tests.random_groups import outcome

PROGRAMS = Path(__file__).parents[1] / "programs"


def test_guarded_kernels_compute_what_host_functions_do():
    binary = executable([str(PROGRAMS / "guards.cu")], "cpu")
    assert not any(loops.stored(binary).reasons.values())
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
    ],
)
def test_which_kernels_are_written_for_whole_blocks_too(text, twice):
    head = "__global__ void k(int* p, int n) { __shared__ int s[64]; const int t = threadIdx.x;"
    written = regions.loops(f'# 1 "a.cu"\n{head} {text} }}', is_program=True)
    assert bool(written.kernels) == (twice is not None)
    assert ("k_cudalab_leaving" in written.text) == bool(twice)
