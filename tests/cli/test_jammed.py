"""Rounds of loops that threads do several at a time: their results, and which loops these are."""

from pathlib import Path

import pytest

from cudalab.backends.cpu import regions
from cudalab.program import ways
from cudalab.program.build import executable
from tests.random_groups import outcome

PROGRAMS = Path(__file__).parents[1] / "programs"


def test_sums_are_those_of_host_functions():
    binary = executable([str(PROGRAMS / "sums.cu")], "cpu")
    assert not any(ways.stored(binary).reasons.values())
    for way in "10":
        assert outcome(binary, way)[:2] == (0, "228 compared, 0 wrong\n")


@pytest.mark.parametrize(
    ("loop", "several", "ahead"),
    [
        ("for (int i = 0; i < n; i++) s += a[i * n + t];", True, True),
        ("for (int i = 0; i < n; i++) s += a[i + t];", True, False),
        ("for (int i = 0; i < n; i++) p[t] += a[t + n * i];", True, True),
        ("for (int i = 0; i < n; i++) s += a[b[i * n] + t];", True, False),
        ("for (int i = 0; i < n; i++) p[i * n + t] = a[i * n + t];", False, False),
        ("for (int i = 0, j = n; i < n; i++, j--) s += a[j * n + t];", False, False),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) s += a[j * n + t];", True, True),
    ],
)
def test_which_loops_have_several_rounds_at_a_time(loop, several, ahead):
    head = "__global__ void k(int* p, const int* a, const int* b, int n)"
    text = f'# 1 "a.cu"\n{head} {{ const int t = threadIdx.x; int s = 0; {loop} p[t] = s; }}'
    written = regions.loops(text, is_program=True)
    assert written.kernels == ["k"]
    assert ("cudalab_round_" in written.text) == several
    assert ("::cudalab::ahead(" in written.text) == ahead
