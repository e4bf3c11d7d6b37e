"""What loops over threads must see in a program's text, and kernels whose loops are refused."""

import pytest

from cudalab.backends.cpu.regions import blamed
from cudalab.backends.cpu.regions import body as writing
from cudalab.program import ways
from cudalab.program.build import executable
from tests.random_groups import outcome

# Each kernel and, in plain C++, what its thread t of 64 gives.
KERNELS = {
    "one_of_two": (
        "int a = 0, b = 0; (n & 1 ? a : b) ^= 21; ++(n & 1 ? b : a); r = a * 100 + b;",
        "2101",
    ),
    "in_an_initializer": (
        "unsigned a = 7; const bool p = t % 8 || (a++ & 1); meet(); r = (a & 1) * 5 + a * 2 + p;",
        "t % 8 ? 5 + 14 + 1 : 16 + 1",
    ),
    "by_a_reference_in_a_switch": (
        "int a = 0; switch (t & 1) { case 0: { int& b = a; b ^= t; } } __syncthreads(); r = a;",
        "t & 1 ? 0 : t",
    ),
    "by_one_of_two_references": (
        "int a = 1, b = 2; int& c = n & 2 ? a : b; c += t; __syncthreads(); r = a * 100 + b;",
        "102 + t",
    ),
    "by_a_range": (
        "int a[2] = {1, 2}; [&] { for (auto& e : a) e += t; }(); meet(); r = a[0] * 100 + a[1];",
        "(t + 1) * 100 + t + 2",
    ),
    "in_a_block": (
        "int a = 0; { int b = t; r = b + a; a ^= 1; } meet(); r = r * 10 + a;",
        "t * 10 + 1",
    ),
    "in_an_else": (
        "int a = 0; if (n > 99) { meet(); } else { int b = t; r = b + a; ++a; } meet(); r += a;",
        "t + 1",
    ),
    "by_an_object": (
        "int a = 0, b = 3; { Guard g(a); } { Guard g = {b}; r = t; } meet(); r = a * 100 + b;",
        "(t + 1) * 100 + t + 4",
    ),
    "by_a_function_of_one_of_two": (
        "int a = 0, b = 3; add(t & 1 ? a : b, t); meet(); r = a * 100 + b;",
        "t & 1 ? t * 100 + 3 : 3 + t",
    ),
    "by_a_pointer_to_a_function": (
        "int a = 3; { void (*f)(int&, int) = add; f(a, t); } meet(); r = a;",
        "3 + t",
    ),
    "by_a_lambda": (
        "int a = 3; auto f = [&](auto& c) { c += t; }; f(a); meet(); r = a;",
        "t + 3",
    ),
    "by_a_lambda_that_returns_a_reference": (
        "int a = 3; [&]() -> int& { return a; }() += t; meet(); r = a;",
        "t + 3",
    ),
    "begun_by_its_class": (
        "Begun a, b[2]; a.n += t; b[1].n -= t; meet(); r = a.n * 100 + b[0].n + b[1].n;",
        "(5 + t) * 100 + 10 - t",
    ),
    "begun_in_each_turn": (
        "for (int i = 0; i < 3; ++i) { const Begun c; Begun a; a.n += i; meet(); r += a.n + c.n; }",
        "33",
    ),
    "counted_in_a_condition": (
        "int k = 0; while (n) { meet(); r += 10; if (++k > 4) break; meet(); s[t] = k; } r += k;",
        "55",
    ),
    "counted_in_the_head_of_a_loop": (
        "int k = 5; while (--k) { meet(); r += k; if (k == 3) continue; meet(); r += 100; }",
        "310",
    ),
    "counted_behind_a_condition": (
        "int k = 0; while (n) { meet(); r += 10; if (k++ > 3) break; meet(); s[t] = k; } r += k;",
        "55",
    ),
    "counted_behind_the_head_of_a_loop": (
        "unsigned char k = 4; while (k--) { meet(); r += k; if (k > 1) continue; r += 9; } r += k;",
        "6 + 18 + 255",
    ),
    "counted_at_the_end_of_a_loop": (
        "int k = 0; do { meet(); r += k; meet(); s[t] = k; } while (++k < 5 && k != 4); r += k;",
        "10",
    ),
    "counted_behind_the_end_of_a_loop": (
        "int k = 3; do { meet(); r += k; meet(); s[t] = k; } while (k-- > 0); r += 10 * k;",
        "6 - 10",
    ),
    "counted_within_a_condition": (
        "int k = 0; while (n) { meet(); r += 1; if (n / 99 + 3 < -(--k)) break; } r += 10 * k;",
        "4 - 10 * 4",
    ),
    "counted_by_each_thread": (
        "int k = t & 3; for (int i = 0; i < 6; ++i) { if (++k > 4) r += 1; meet(); }",
        "2 + (t & 3)",
    ),
    "begun_by_a_constructor": ("Made a; a.n *= 2; meet(); r = a.n;", "2 * t + 10"),
    "begun_inside": ("Around a; a.at[1].n += t; meet(); r = a.at[0].n + a.at[1].n;", "10 + t"),
    "in_turn": ("s[t] = t, __syncthreads(), r = s[63 - t];", "63 - t"),
    "in_turn_and_in_brackets": ("(s[t] = t, meet(), r = s[63 - t]); (meet(), (void)0);", "63 - t"),
}
MEET = """__device__ void meet() { __syncthreads(); }
__device__ void add(int& to, int more) { to += more; }
struct Guard {
    int& kept;
    __device__ Guard(int& it) : kept(it) { ++kept; }
    __device__ ~Guard() { kept += threadIdx.x; }
};
struct Begun { int n = 5; };
struct Made { int n; __device__ Made() : n(threadIdx.x + 5) {} };
struct Around { int first; Begun at[2]; };
"""
MORE = """
template <class T> __global__ void begun(int* out, T n) {
    T a, b;
    a.n += threadIdx.x;
    (n.n & 1 ? b : a).n += 1;
    meet();
    out[threadIdx.x] = a.n * 100 + b.n;
}
template <class std> __global__ void names(int* out, std n) {
    const std w = __shfl_xor_sync(~0u, n + (int)threadIdx.x, 1);
    meet();
    out[threadIdx.x] = w;
}
namespace of { template <class T> __global__ void at(int* out, T n) {
    __shared__ T s[64];
    s[threadIdx.x] = threadIdx.x + n;
    meet();
    out[threadIdx.x] = (int)s[63 - threadIdx.x];
} }
"""


def program(kernels, more=""):
    """A program that compares what kernels give with plain C++."""
    text = f"#include <cstdio>\n{MEET}{more}"
    calls = ""
    for name, (body, right) in kernels.items():
        text += (
            f"__global__ void {name}(int* out, int n) {{ __shared__ int s[64]; int t = threadIdx.x,"
            f" r = 0; s[t] = 0; __syncthreads();\n{body}\n__syncthreads(); out[t] = r + s[0] * 0;"
            f" }}\nint right_{name}(int t) {{ return {right}; }}\n"
        )
        calls += f'    {name}<<<1, 64>>>(o, 1); look("{name}", o, right_{name});\n'
    if more:
        text += "int right_names(int t) { return (t ^ 1) + 1; }\n"
        text += "int right_begun(int t) { return (5 + t) * 100 + 6; }\n"
        text += "int right_at(int t) { return 64 - t; }\n"
        calls += '    names<<<1, 64>>>(o, 1); look("names", o, right_names);\n'
        calls += '    begun<<<1, 64>>>(o, Begun()); look("begun", o, right_begun);\n'
        calls += '    of::at<float><<<1, 64>>>(o, 1.f); look("at", o, right_at);\n'
    return (
        f"{text}void look(const char* name, int* o, int (*right)(int)) {{\n    int h[64];"
        " cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost);\n    for (int t = 0; t < 64; ++t) if"
        ' (h[t] != right(t)) return (void)printf("%s: thread %d: %d, not %d\\n", name, t, h[t],'
        f" right(t));\n}}\nint main() {{\n    int* o; cudaMalloc(&o, 256);\n{calls}}}\n"
    )


def test_what_a_thread_changes_is_its_own(tmp_path):
    source = tmp_path / "changes.cu"
    source.write_text(program(KERNELS, MORE))
    binary = executable([str(source)], "cpu")
    assert outcome(binary, "1") == outcome(binary, "0") == (0, "", "")
    assert set(ways.stored(binary).reasons.values()) == {""}


def test_a_refusal_of_the_compiler_costs_the_kernel_concerned(tmp_path, monkeypatch):
    write = writing.definition

    def text(body, **options):
        wrong = "no_such_name ;" if body.function.name == "in_turn" else ""
        return write(body, **options).replace("CUDALAB_ENTER ;", f"CUDALAB_ENTER ; {wrong}")

    monkeypatch.setattr(writing, "definition", text)
    source = tmp_path / "refused.cu"
    chosen = {name: KERNELS[name] for name in ("one_of_two", "in_turn")}
    source.write_text(program(chosen) + "// refused\n")
    binary = executable([str(source)], "cpu")
    assert outcome(binary, "1") == (0, "", "")
    reasons = ways.stored(binary).reasons
    assert reasons["one_of_two"] == ""
    assert f"{source}:" in reasons["in_turn"]
    assert "the compiler refuses its loops: " in reasons["in_turn"]


@pytest.mark.parametrize(
    ("messages", "kernels"),
    [
        ("a.cu:3:7: error: no x\na.cu:8:1: note: here\n", {"k"}),
        ("r.h:1:2: error: no x\na.cu:8:1: note: in expansion of macro 'X'\n", {"m"}),
        ("a.cu:8:1:   required from here\nr.h:1:2: error: no x\n", {"m"}),
        ("r.h:1:2: error: no x\n", {"k", "m"}),
        ("", {"k", "m"}),
    ],
)
def test_whose_loops_are_refused(messages, kernels):
    places = {"k": frozenset({("a.cu", 2), ("a.cu", 3)}), "m": frozenset({("a.cu", 8)})}
    found = blamed(messages, places)
    assert found.keys() == kernels
    assert all(why.startswith("a.cu:") for why in found.values())
