"""All ways in which C++ changes a variable without `=`, or does something once for each thread.

Each kernel has loops, and fibers, and in plain C++ what its thread t of 64 gives. Loops that kept
one variable, or one call, for all threads of the block would give something else.
"""

from __future__ import annotations

from cudalab.program import ways
from cudalab.program.build import executable
from tests.cli.test_ways_changes import MEET, program
from tests.random_groups import outcome

TYPES = """
__device__ int cell, drawn, made;
struct Pair { int x, y; };
struct Array { int v[2]; };
struct Points { int* p; };
struct Refers { int& r; };
struct Of {
    int n;
    __device__ void operator<<(int by) { n += by; }
    __device__ void operator>>(int& to) { to += n; }
    __device__ void operator!() { ++n; }
    __device__ int operator*() { return n++; }
    __device__ int* operator->() { ++n; return &n; }
    __device__ int operator[](int i) { n += i; return i; }
    __device__ int operator()(int& i) { i += 5; return n++; }
    __device__ operator int() { return n++; }
    __device__ int next() { return n++; }
    __device__ int kept() const { return n; }
};
struct Once { int n; __device__ Once(int m) : n(m) { atomicAdd(&made, 1); } };
struct Copied {
    int n;
    __device__ Copied(int m) : n(m) {}
    __device__ Copied(Copied& other) : n(other.n) { other.n++; }
};
struct Ends { int& r; __device__ ~Ends() { r += 2; } };
__device__ void operator,(Of& one, int& other) { other += one.n; }
__device__ void operator+(Of one, int& other) { other += one.n; }
__device__ void operator+=(Of& one, int& other) { other += one.n; }
namespace apart {
struct Other { int n; };
__device__ void operator^(Other one, int& other) { other += one.n; }
__device__ void bump(int& a, int by) { a += by; }
}
__device__ int bump(int a, int by) { return a + by; }
__device__ void by_pointer(int* a, int by) { *a += by; }
__device__ void by_either(int a, int& b) { b += a; }
__device__ void by_either(double a, int b) { cell += 0 * (int)(a + b); }
__device__ void by_constant(const int& a, int by) { const_cast<int&>(a) += by; }
__device__ int& itself(int& a) { return a; }
__device__ int draw() { return atomicAdd(&drawn, 1); }
__device__ int draw_by(int* from) { return draw() + 0 * *from; }
template <class T> __device__ void set(T a, int v) { a = v; }
template <class T> __device__ void forward(T&& a, int by) { a += by; }
template <class... T> __device__ void all_of(int by, T&... a) { ((a += by), ...); }
template <class F> __device__ void with(F f, int& a) { f(a); }
typedef int& Alias;
"""
A = "int a = 3; "
LOOK = " meet(); r = a;"
# Of a variable that begins as 3 in all threads: what changes it, and to what.
CHANGES = {
    "spelled": ("a xor_eq t; a or_eq 1; a and_eq 63;", "((3 ^ t) | 1) & 63"),
    "address_spelled": ("int* p = bitand a; *p += t;", "3 + t"),
    "returned": ("itself(a) ^= t;", "3 ^ t"),
    "returned_twice": ("++itself(itself(a));", "4"),
    "in_brackets": ("(((a))) += t;", "3 + t"),
    "chained": ("(a += t) *= 2;", "(3 + t) * 2"),
    "incremented_twice": ("++ ++a;", "5"),
    "behind_a_comma": ("(r = t, a) += r;", "3 + t"),
    "cast": ("(int&)a += t;", "3 + t"),
    "cast_by_name": ("reinterpret_cast<unsigned&>(a) += t;", "3 + t"),
    "constant_cast": ("const int& c = a; const_cast<int&>(c) += t;", "3 + t"),
    "by_constant": ("by_constant(a, t);", "3 + t"),
    "by_pointer": ("by_pointer(&a, t);", "3 + t"),
    "by_pointer_to_pointer": ("int* p = &a; int** q = &p; **q += t;", "3 + t"),
    "by_pointer_in_object": ("Points o; o.p = &a; *o.p += t;", "3 + t"),
    "by_reference_in_object": ("Refers o{a}; o.r += t;", "3 + t"),
    "by_array_of_pointers": ("int* p[2] = {&a, &r}; *p[0] += t;", "3 + t"),
    "by_alias": ("Alias q = a; q += t;", "3 + t"),
    "by_local_alias": ("using Q = int&; Q q = a; q += t;", "3 + t"),
    "by_forwarding": ("forward(a, t);", "3 + t"),
    "by_template_argument": ("set<int&>(a, t);", "t"),
    "by_some": ("all_of(t, r, a);", "3 + t"),
    "by_overload": ("by_either(t, a);", "3 + t"),
    "by_name_of_namespace": ("apart::bump(a, t); a += bump(a, 1) * 0;", "3 + t"),
    "by_pointer_to_function": ("void (*f)(int&, int) = apart::bump; f(a, t);", "3 + t"),
    "by_deduced_function": ("auto f = apart::bump; f(a, t);", "3 + t"),
    "by_lambda": ("auto f = [&] { a += t; }; f();", "3 + t"),
    "by_lambda_of_reference": ("auto f = [](int& c, int by) { c += by; }; f(a, t);", "3 + t"),
    "by_lambda_of_any": ("[](auto&& c, int by) { c += by; }(a, t);", "3 + t"),
    "by_init_capture": ("auto f = [&q = a](int by) { q += by; }; f(t);", "3 + t"),
    "by_functional": ("with([=](int& c) { c += t; }, a);", "3 + t"),
    "by_left_shift": ("Of o{a}; o << t; a = o.n;", "3 + t"),
    "by_right_operand": ("Of o{t}; o >> a;", "3 + t"),
    "by_free_operator": ("(Of{t} + a);", "3 + t"),
    "by_compound_operator": ("Of o{t}; o += a;", "3 + t"),
    "by_comma_operator": ("Of o{t}; o, a;", "3 + t"),
    "by_operator_of_namespace": ("apart::Other o{t}; o ^ a;", "3 + t"),
    "by_call_operator": ("Of o{1}; r = o(a);", "8"),
    "by_initializer_of_if": ("if (int& q = a; q < 99) q += t;", "3 + t"),
    "by_structured_binding": ("Pair o{a, 2}; auto& [x, y] = o; x += t; a = o.x;", "3 + t"),
    "by_member_of_class": ("Pair o{a, 2}; int* p = &o.x; *p += t; a = o.x;", "3 + t"),
    "by_member_pointer": ("Pair o{a, 2}; int Pair::*m = &Pair::x; o.*m += t; a = o.x;", "3 + t"),
    "by_array_of_class": ("Array o = {{a}}; by_pointer(o.v, t); a = o.v[0];", "3 + t"),
    "by_range": ("int o[2] = {a, 1}; for (auto& e : o) e += t; a = o[0];", "3 + t"),
    "by_local_class": (
        "struct L { int& r; __device__ void go(int by) { r += by; } }; L o{a}; o.go(t);", "3 + t"
    ),
    "by_destructor": ("{ Ends o{a}; } a += t;", "5 + t"),
    "by_deduced_reference": ("decltype((a)) q = a; q += t;", "3 + t"),
    "by_any_reference": ("auto&& q = a; q += t;", "3 + t"),
    "in_a_condition": ("if (itself(a) += t) r = 1; while ((a ^= 64) & 64) {}",
                       "t < 61 ? 3 + t : t - 61"),
    "in_a_switch": ("switch (t & 1) { case 1: itself(a) = t; break; default: --a; }",
                    "t & 1 ? t : 2"),
    "in_a_return": ("a = [&]() -> int& { return a; }() += t;", "3 + t"),
    "swapped": ("int b = t; { int c = b; b = a; a = c; } r = b;", "t"),
}  # fmt: skip
# What happens once for each thread: what counts it, and the count behind it.
EACH = {
    "draws": ("int v = draw();", "drawn"),
    "draws_by_another": ("int b = 1; int v = draw_by(&b); (void)b;", "drawn"),
    "draws_in_a_condition": ("if (draw() >= 0) r = 1;", "drawn"),
    "makes": ("Once o(5);", "made"),
    "makes_by_a_cast": ("int v = Once(5).n;", "made"),
}
WHOLE = {
    "unary": ("Of p{1}; !p; meet(); r = p.n;", "2"),
    "converted": ("Of p{1}; int v = p; meet(); r = v + p.n * 10;", "21"),
    "converted_in_a_sum": ("Of p{1}; int v = p + 0l; meet(); r = v + p.n * 10;", "21"),
    "pointed": ("Of p{1}; int v = *p; meet(); r = v + p.n * 10;", "21"),
    "indexed": ("Of p{1}; int v = p[4]; meet(); r = v + p.n * 10;", "54"),
    "asked": ("Of p{1}; int v = p.next(), w = p.kept(); meet(); r = v + w * 10 + p.n * 9;", "39"),
    "copied": ("Copied p{1}; Copied q = p; meet(); r = p.n * 10 + q.n;", "21"),
    "ends_behind": ("int a = 0; { Ends o{a}; meet(); r = a; } meet(); r += a * 10;", "20"),
    "of_the_file": ("cell = 7 + n; int v = cell; meet(); r = v;", "8"),
    "of_the_heap": ("int* p = new int(3); meet(); *p += t; meet(); r = *p; delete p;", "3 + t"),
    "of_the_system": ("int* p = (int*)malloc(4); meet(); *p = t; meet(); r = *p; free(p);", "t"),
    "of_a_block": (
        "__shared__ Pair q; if (!t) q.x = 4; meet(); r = atomicAdd(&q.x, 1); meet(); r = q.x;", "68"
    ),
}  # fmt: skip
# Those that keep their fibers, and why.
REASONS = {
    "by_initializer_of_if": "an if with a declaration",
    "by_deduced_function": "a destructor behind a barrier",
    "by_deduced_reference": "a destructor behind a barrier",
    "copied": "the compiler refuses its loops: static assertion failed",
    "ends_behind": "a destructor behind a barrier",
}


def test_each_thread_has_what_it_changes(tmp_path):
    kernels = {name: (A + body + LOOK, right) for name, (body, right) in CHANGES.items()} | WHOLE
    for name, (body, count) in EACH.items():
        clear = f"meet(); if (t == 0) {count} = 0; meet();"
        kernels[name] = f"{body} meet(); r = {count}; {clear}", "64"
    source = tmp_path / "places.cu"
    text = program({f"k_{name}": each for name, each in kernels.items()})
    source.write_text(text.replace(MEET, MEET + TYPES))
    binary = executable([str(source)], "cpu")
    assert outcome(binary, "1") == outcome(binary, "0") == (0, "", "")
    refused = {name[2:]: why for name, why in ways.stored(binary).reasons.items() if why}
    assert refused.keys() == REASONS.keys()
    assert all(REASONS[name] in why for name, why in refused.items())
