"""Which uses of a statement read a variable, and which may change it."""

import pytest

from cudalab.backends.cpu.regions import PASSES
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import read

FILE = """
struct Plain { int x; int v[2]; };
struct Refers { int& r; };
struct Keeps { int* p; __device__ Keeps(int& a) : p(&a) {} };
struct Inside {
    int n;
    __device__ Inside(int a) : n(a) {}
    __device__ int f(int a) { int& r = n; Refers q{r}; return n && a ? q.r : r; }
};
struct Shifted { int n; void operator<<(int& to) { to += n; } };
__device__ int known(int a, const int& b, int& c) { return a + b + c; }
__device__ int number;
template <class T> __device__ T same(T a) { return a; }
__global__ void k(int* p, int n) { int a = 1, b = 2; int v[4]; Plain o; Shifted s; BODY }
"""


def found(body):
    """What is assigned, and what anything may be done to, in a statement of a kernel."""
    unit = Unit(read(FILE.replace("BODY", body)), "", PASSES.normalize, is_program=True)
    kernel = unit.kernels()[0]
    uses = unit.uses(kernel)
    changes = [each for s in unit.normalized(kernel) for each in uses.of(s.words).changes]
    return tuple({each.name for each in changes if each.is_plain is kind} for kind in (True, False))


@pytest.mark.parametrize(
    "body",
    [
        "p[a] == b;",
        "same(a) + min(a, b) * (int)b;",
        "known(a, b, p[0]);",
        "const int c = a ? b : n, d(a), e{b};",
        "const int& c = a;",
        "float f = static_cast<float>(a) + float(b);",
        "if (a < b) while (n) break;",
        "return a;",
        "atomicAdd(&p[a], b);",
        "auto f = [=](int c) { return a + c; };",
        "*p * a; o.x + v[a];",
        "Plain q{a, {b, n}}; int* q2 = new int[a];",
        "Inside q(a); Inside o2{b};",
        "sizeof(a); decltype(a) c = 1;",
    ],
)
def test_a_plain_read_changes_nothing(body):
    assert found(body)[1] == set()


@pytest.mark.parametrize(
    ("body", "assigned"),
    [
        ("a = b; ++n;", {"a", "n"}),
        ("a xor_eq b;", {"a"}),
        ("v[a] = o.x += b;", {"v", "o"}),
    ],
)
def test_an_assignment_changes_a_variable(body, assigned):
    assert found(body) == (assigned, set())


@pytest.mark.parametrize(
    "body",
    [
        "MACRO_OF_ANOTHER_FILE(a, b);",
        "unknown(a);",
        "known(b, b, a);",
        "unit::known(a);",
        "int* q = &a;",
        "int& c = a;",
        "auto&& c = a;",
        "auto c = [&d = a] { ++d; };",
        "Refers c{a};",
        "s << a;",
        "unknown(v[a]), a.b();",
        "(b ? a : n) = 1;",
        "same<int&>(a);",
        "(int&)a = 1;",
        "Unknown c(a);",
        "Keeps c(a);",
        "Unknown && c = a;",
    ],
)
def test_whatever_else_stands_around_a_name_may_change_it(body):
    assert "a" in found(body)[1]
