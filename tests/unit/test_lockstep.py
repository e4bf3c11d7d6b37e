"""Which functions count on lanes that move in step, and what their statements become."""

import pytest

from cudalab.program.files import File
from cudalab.program.rewrite import rewrite

SHARED = "__shared__ volatile int s[64]; int t = threadIdx.x;"


def rewritten(statements, head="__global__ void k(int *a)"):
    text = f"{head} {{\n{statements}\n}}\n"
    return rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0].split("\n")[2]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "s[t] += s[t + 1];",
            "s[t] = ::cudalab::in_step(2, (::cudalab::in_step(1), s[t] + (s[t + 1])));",
        ),
        (
            "if (t) s[t] = a[0] = s[t + 1];",
            "if (t) s[t] = ::cudalab::in_step(2, (::cudalab::in_step(1), a[0] = s[t + 1]));",
        ),
        (
            "s[t] = t; a[t] = s[31 - t];",
            (
                "s[t] = ::cudalab::in_step(2, (::cudalab::in_step(1), t)); "
                "a[t] = (::cudalab::in_step(3), s[31 - t]);"
            ),
        ),
    ],
)
def test_lanes_read_together_and_write_together(statement, expected):
    assert rewritten(f"{SHARED} {statement}") == f"{SHARED} {expected}"


def test_pointer_to_shared_memory():
    head = "template <class T> __device__ void reduce(volatile T *s, int t)"
    assert "in_step(2" in rewritten("s[t] += s[t + 16];", head)


@pytest.mark.parametrize(
    "statements",
    [
        f"{SHARED} s[t] = t; __syncthreads(); a[t] = s[31 - t];",
        f"{SHARED} s[t] += s[t + 1]; __syncwarp(); s[t] += s[t + 2];",
        f"{SHARED} do s[t] = a[t]; while (s[t] != a[t]);",
        "__shared__ volatile int done; done = 1; a[0] = done;",
        "__shared__ int s[64]; s[0] += s[1];",
        "volatile int *p = a; a[1] = p[1]; p[0] = 1;",
    ],
)
def test_what_does_not_count_on_steps_stays(statements):
    assert rewritten(statements) == statements
