"""Which statements count on lanes that move in step, and what they become."""

import pytest

from cudalab.language.kernel_file import KernelFile

SHARED = "__shared__ int s[64]; int t = threadIdx.x;"
VOLATILE = f"volatile {SHARED}"


def edited(statements, head="__global__ void k(int *a, int n)", after=""):
    start = f"{head} {{\n"
    text = KernelFile(f"{start}{statements}\n}}\n{after}").for_host(observed=False, exact=False)
    return text.removeprefix(start).split("\n}\n")[0]


@pytest.mark.parametrize(
    ("before", "target", "value"),
    [
        ("", "s[t] += ", "s[t ^ 1]"),
        ("if (t)", "s[t] = ", "s[t - n]"),
        ("", "s[t] = ", "n ? a[0] = s[31 - t] : 1"),
        ("int i = 31 - t;", "s[i] += ", "s[i + 1]"),
        ("int i = t / 2;", "s[i] += ", "s[i + n]"),
        ("int *p = s;", "p[t] -= ", "p[t - 1]"),
    ],
)
def test_lanes_read_before_any_of_them_writes(before, target, value):
    start = f"{SHARED} {before} {target.rstrip()}"
    assert edited(f"{start} {value};") == f"{start} cudalab_in_step(2, {value});"


def test_a_macro_may_end_the_statement():
    """`x = (values) * HALF;`, whose second semicolon would be inside of the call's brackets."""
    start, half = f"{SHARED} s[t] =", "#define HALF 0.5;\n"
    head = f"{half}__global__ void k(int n)"
    step = " cudalab_in_step_to_the_end(2) ="
    assert edited(f"{start} s[t ^ 1] * HALF;", head) == f"{start}{step} s[t ^ 1] * HALF;"


@pytest.mark.parametrize(
    "statement",
    [
        "s[t] += s[t + 16]; __syncwarp();",
        "for (int d = 16; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncwarp(); }",
        "for (unsigned d = blockDim.x; d /= 2;) { if (t < d) s[t] += s[t + d]; __syncwarp(); }",
        "int l = n * (2 * t + 1) - 1, r = n * (2 * t + 2) - 1; s[r] += s[l];",
        "int l = 2 * t * n, r = l + n; s[padded(r)] += s[padded(l)];",
        "s[3 * t + 1] = s[3 * t] + s[3 * t + 2];",
        "int i = t ^ 1, x = s[t]; s[t] = s[i]; s[i] = x;",  # an exchange: both are the lane's own
        "s[n] = s[n - 1]; a[t] = s[t - 1];",
        "int own[8]; own[t] = own[t - 1]; a[t] = a[t - 1];",
        "s[t] = t; __syncthreads(); a[t] = s[31 - t];",
        "do s[t] = a[t]; while (s[t] != a[t]); if (s[t] == s[t ^ 1]) a[t] = 1;",
    ],
)
def test_what_lanes_do_one_after_another_stays(statement):
    statement = f"{SHARED} {statement}"
    assert edited(statement) == statement


def test_shared_rows_of_lanes_stay():
    statement = "__shared__ int s[32][8]; int t = threadIdx.x; s[t][n] = s[t][n - 1];"
    assert edited(statement) == statement


@pytest.mark.parametrize("call", ["f(s, 1);", "f<int>(&s[n], 1);", "f(s + 1, 1);"])
def test_pointers_to_shared_memory_are_followed_into_functions(call):
    head = "template <class T> __device__ void f(T *p, int t)"
    kernel = f"__global__ void k(int n) {{ __shared__ int s[64]; {call} }}"
    assert edited("p[t] += p[t ^ 1];", head, kernel) == "p[t] += cudalab_in_step(2, p[t ^ 1]);"


@pytest.mark.parametrize(
    ("define", "declared"),
    [("BUFFER(T) __shared__ T s[64];", "BUFFER(int)"), ("S __shared__ int s[64]", "S;")],
)
def test_shared_memory_may_be_a_macros(define, declared):
    head = f"#define {define}\n__global__ void k(int n)"
    start = f"{declared} int t = threadIdx.x; s[t] +="
    assert edited(f"{start} s[t ^ 1];", head) == f"{start} cudalab_in_step(2, s[t ^ 1]);"


@pytest.mark.parametrize(
    "declared",
    ["auto p = s;", "auto *p = s + 1;", "int *const p = (int *)s;"],
)
def test_local_names_may_stand_for_shared_memory(declared):
    start = f"{SHARED} {declared} p[t] +="
    assert edited(f"{start} p[t ^ 1];") == f"{start} cudalab_in_step(2, p[t ^ 1]);"


def test_a_volatile_array_that_a_function_is_given_is_shared():
    head, step = "__device__ void f(int t, volatile int s[64])", "{ cudalab_step(1);"
    statements = "s[t] += s[t + 2]; s[t] += s[t + 1];"
    expected = f"s[t] += s[t + 2];  {step} s[t] += s[t + 1]; }}"
    assert edited(statements, head) == expected


def test_each_of_several_volatile_pointers_counts():
    start = "volatile int *p = a, *q = a;"
    expected = f"{start} q[t] += q[t + 2];  {{ cudalab_step(1); q[t] += q[t + 1]; }}"
    assert edited(f"{start} q[t] += q[t + 2]; q[t] += q[t + 1];") == expected


def test_pointers_to_other_memory_are_not():
    head = "__device__ void f(int *p, int t)"
    kernel = "__global__ void k(int *a) { __shared__ int s[64]; f(a, 1); }"
    assert edited("p[t] += p[t ^ 1];", head, kernel) == "p[t] += p[t ^ 1];"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (
            f"{VOLATILE} s[t] += s[t + 2]; s[t] += s[t + 1];",
            f"{VOLATILE} s[t] += s[t + 2];  {{ cudalab_step(1); s[t] += s[t + 1]; }}",
        ),
        (
            f"{VOLATILE} s[t] = t; int x = s[31 - t];",
            f"{VOLATILE} s[t] = t;  cudalab_step(1); int x = s[31 - t];",
        ),
        (
            f"{VOLATILE} for (;;) s[t] += s[t ^ 1];",
            f"{VOLATILE} for (;;)  {{ cudalab_step(1); s[t] += cudalab_in_step(3, s[t ^ 1]); }}",
        ),
        (
            "volatile int *p = a; p[t] += p[t + 2]; p[t] += p[t + 1];",  # in global memory
            "volatile int *p = a; p[t] += p[t + 2];  { cudalab_step(1); p[t] += p[t + 1]; }",
        ),
        (
            f"{SHARED} if (t < 32) {{ s[t] += s[t + 2]; s[t] += s[t + 1]; }}",
            (
                f"{SHARED} if (t < 32) {{ s[t] += s[t + 2];  "
                "{ cudalab_step(1); s[t] += s[t + 1]; } }"
            ),
        ),
    ],
)
def test_steps_from_one_statement_to_the_next(statements, expected):
    assert edited(statements) == expected


@pytest.mark.parametrize(
    "statements",
    [
        f"{VOLATILE} s[t] = t; __syncthreads(); a[t] = s[31 - t];",
        f"{VOLATILE} s[t] += s[t + 1]; __syncwarp(); s[t] += s[t + 2];",
        "__shared__ volatile int done; done = 1; a[0] = done;",
        f"{SHARED} s[t] += s[t + 2]; s[t] += s[t + 1];",  # of more than a warp: a race
        "volatile int *p = a; a[1] = p[1]; p[0] = 1;",
    ],
)
def test_what_does_not_count_on_steps_stays(statements):
    assert edited(statements) == statements
