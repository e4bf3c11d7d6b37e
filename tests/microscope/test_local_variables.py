"""Local variables: their ends and values, as AddressSanitizer and valgrind see them on a host.

Each case is the body of a function that a kernel of one thread calls, and a program for the host,
too.
"""

import json
import os
import shutil
import subprocess
import sys

import command
import pytest

HEAD = """#include <cstdio>
#include <cstring>
#ifdef __CUDACC__
#define BOTH __device__ __noinline__
#else
#define BOTH __attribute__((noinline))
#endif
#ifdef __CUDACC__
#define SHARED(type, name, n) __shared__ type name[n]
#else
#include <cstdlib>
#define SHARED(type, name, n) type* const name = (type*)malloc(n * sizeof(type))
struct float4 { float x, y, z, w; };
#endif
struct Pair { int a, b; };
struct Nest { Pair p; int q[2]; };
struct Over : Pair { int c; };
struct Padded { char c; int i; short s; };
struct Bits { unsigned a : 3, b : 5, c : 9; };
struct Many { int v[10]; };
struct Plus { BOTH int operator()(int a, int b) const { return a + b; } };
struct Zero { int a, b = 0; BOTH Zero() : a(1) {} };
struct Init { int a = 1, b = 2; };
struct Half { int a, b; BOTH Half() { a = 1; } };
struct Given { int a, b; BOTH Given(int x) : a(x) {} };
struct Member { Half h; int tail; };
struct Child : Half { int c = 1; };
template <class T> struct Two { T first, second; };
union Word { int i; float f; };
union Wide { long long l; int i[2]; };
struct Box {
    int items[4];
    BOTH void fill(int n) { for (int i = 0; i < n; ++i) items[i] = i; }
    BOTH int* begin() { return items; }
};
struct Base { BOTH virtual int get(const int* p, int i) { return p[i]; } };
struct Derived : Base { BOTH int get(const int* p, int i) override { return p[i] + 1; } };
BOTH int first(Pair p) { return p.a; }
BOTH int both(Pair p) { return p.a + p.b; }
BOTH int second(const Pair& p) { return p.b; }
BOTH int last_of(Many m) { return m.v[9]; }
BOTH Pair made(int n) { Pair p; p.a = n; return p; }
BOTH Pair paired(int n) { return {n, n}; }
BOTH Many many(int n) { Many m; for (int i = 0; i < 10; ++i) m.v[i] = n + i; return m; }
BOTH Many listed(int n) { return {{n, 1, 2, 3, 4, 5, 6, 7, 8, n}}; }
BOTH int left(int n) { int a[16], b[4]; a[0] = b[0] = n; return a[0]; }
BOTH int plain(int n) { int d[] = {n, 1, 2, 3, 4, 5, 6, 7, 8}; int* p = d; return p[n]; }
template <class F> BOTH int apply(F f, int a) { return f(a, a); }
BOTH void fill(int* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
template <class T> BOTH void move(T* to, const T* p, int n) { while (n--) to[n] = p[n]; }
BOTH void turn(int* p, int n) {
    for (int i = 0; i < n / 2; ++i) { int t = p[i]; p[i] = p[n - 1 - i]; p[n - 1 - i] = t; }
}
BOTH int total(const int* p, int n) { int s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; }
BOTH void add(int& sum, int x) { sum += x; }
BOTH void set(int* p) { *p = 5; }
template <class T, int N> BOTH T last(T (&v)[N], int i) { return v[N - 1 + i]; }
template <class T> BOTH T sum_of(const T* p, int n) {
    T sum = T(0);
    while (n--) sum += p[n];
    return sum;
}
BOTH Many some(int n) { Many m; m.v[0] = n; return m; }
BOTH Many passed(Many m) { return m; }
template <class T> BOTH void exchange(T& a, T& b) { T t = a; a = b; b = t; }
BOTH int beyond(int& x, int n) { int* p = &x; return p[n - 3]; }
BOTH int of_number(int x, int n) { int* p = &x; return p[n - 3]; }
BOTH int of_object(Pair x, int n) { int* p = &x.a; return p[n - 2]; }
#define LOCAL(name, n) int name[n]
#ifdef __CUDACC__
__device__
#endif
Padded kept;
BOTH int deep(int* p, int n) { p[n] = n; return n ? deep(p, n - 1) + p[n] : p[0]; }
"""
# `n` is 4.
PAST_AN_END = {
    "handed_on": "int a[4]; fill(a, n + 1); return a[0];",
    "before": "int a[4] = {1, 2, 3, 4}; int* p = a; return p[n - 5];",
    "initialised": "int a[4] = {1, 2, 3, 4}; return total(a, n + 1);",
    "rows": "int m[2][3] = {}; int* p = &m[0][0]; p[n + 2] = 1; return m[1][2];",
    "reference": "int a[4] = {}; int (&r)[4] = a; int* p = &r[0]; return p[n];",
    "bytes": 'char b[4]; memcpy(b, "abcdefgh", n + 2); return b[0];',
    "set": "char b[4]; memset(b, 1, n + 3); return b[0];",
    "wide": "int a[4] = {}; long long v; memcpy(&v, a + n - 1, 8); return (int)v;",
    "cast": "short a[4] = {}; int* p = (int*)(a + n); *p = 3; return a[0];",
    "template": "float f[3] = {}; float* p = f; return (int)sum_of(p, n);",
    "member": "Box b; b.fill(n + 1); return b.items[0];",
    "begin": "Box b = {}; int* p = b.begin(); return p[n];",
    "scalar": "int x = 3; int* p = &x; return p[n - 3];",
    "one": "int x; set(&x); int* p = &x; p[n - 5] = 1; return x;",
    "structure": "Pair s = {1, 2}; Pair* p = &s; return p[n - 3].a;",
    "lambda": "int a[4] = {}; int* p = a; auto f = [=](int i) { return p[i]; }; return f(n);",
    "recursion": "int a[4]; return deep(a, n);",
    "virtual": "int a[4] = {}; Derived d; Base* b = &d; return b->get(a, n);",
    "in_a_loop": "int s = 0; for (int k = 0; k < 3; ++k) { int a[2]; fill(a, k + 1); } return s;",
    "two": "int a[2] = {}, b[2] = {}; int* p = a; p[n - 2] = 7; return b[0];",
    "pointers": "int x = 1, y = 2; int* v[2] = {&x, &y}; int** q = v; return *q[n - 2];",
    "using": "using Row = int[4]; int v[2][4] = {}; Row* r = v; return r[n - 2][0];",
    "behind_goto": "int i = 0; re: if (++i < n) goto re; int a[4] = {}; int* p = a; return p[n];",
    "before_goto": "int a[4]; if (n > 9) goto out; fill(a, n + 1); return a[0]; out: return 2;",
    "last_case": "switch (n) { case 1: n = 0; default: int a[4]; fill(a, n + 1); return a[1]; }",
    "unsized": "int d[] = {n, 1, 2, 3}; int* p = d; return p[n];",
    "unsized_rows": "int d[][2] = {{n, 1}, {2, 3}}; int* p = &d[0][0]; return p[n];",
    "text": 'char s[] = "abc"; char* p = s; return p[n];',
    "sized_text": 'char s[4] = "abc"; char* p = s; return p[n];',
    "aligned": "alignas(16) int a[4]; fill(a, n + 1); return a[0];",
    "auto_number": "auto x = 3; auto* p = &x; return p[n - 3];",
    "auto_object": "auto m = listed(n); int* p = m.v; return p[n + 6];",
    "copy": "Pair q = paired(n); int* p = &q.a; return p[n - 2];",
    "by_call": "Many m = listed(n); return total(m.v, n + 7);",
    "constructed": "Half h; int* p = &h.a; return p[n - 2];",
    "constructed_with": "Given g(n); int* p = &g.a; p[n - 2] = 1; return g.a;",
    "captured": "int a[2] = {}; auto f = [=](int i) { auto* p = a; return p[i]; }; return f(n);",
    "referred_to": "int x = 3; int& r = x; int* p = &r; return p[n - 3];",
    "by_reference": "int x = 3; return beyond(x, n);",
    "of_parameter": "return of_number(n, n);",
    "of_object_parameter": "return of_object(paired(n), n);",
    "in_lambda": "auto f = [](int i) { int a[4] = {}; int* p = a; return p[i]; }; return f(n);",
    "defined": "struct S { int v[3]; } r, s = {{1, 2, 3}}; int* p = s.v; r = s; return p[n - 1];",
}
WITHOUT_A_VALUE = {
    "sum": "int sum; for (int i = 0; i < n; ++i) sum += i; return sum;",
    "branch": "int x; if (n > 4) x = 1; return x + 1;",
    "element": "int a[4]; a[0] = 1; return a[n - 2];",
    "partial": "int a[4]; fill(a, n - 1); return total(a, n);",
    "handed_on": "int a[4]; return total(a, n);",
    "reference": "int sum; add(sum, n); return sum;",
    "decided": "bool has; for (int i = 0; i < n; ++i) if (i == 9) has = 1; return has ? 1 : 2;",
    "double": "double d; d = d + n; return (int)d;",
    "again": "int s = 0; for (int i = 0; i < 2; ++i) { int x; if (i) x = 3; s += x; } return s;",
    "diagonal": "int m[3][3]; for (int i = 0; i < 3; ++i) m[i][i] = i; return m[0][n - 3];",
    "switch": "int x; switch (n) { case 1: x = 2; break; case 2: x = 3; } return x * 2;",
    "lambda": "int x; auto f = [&] { return x + 1; }; return f();",
    "index": "int i, a[4] = {}; return a[i & 3];",
    "template": "float f[2]; f[0] = 1; return (int)sum_of(f, n - 2);",
    "pointer": "int a[2]; int* p = a + (n - 3); return *p + 1;",
    "array_end": "int a[5]; fill(a, n); return last(a, 0) + 1;",
    "bytes": "char b[4]; memset(b, 1, n - 1); return b[n - 1] + 1;",
    "update": "unsigned x; x |= n; return x;",
    "field": "float4 v; v.x = n; return (int)(v.y + 1);",
    "fields": "Pair p; p.a = n; if (n > 4) p.b = 1; return p.b + 1;",
    "whole": "Pair p; return p.a + 1;",
    "in_member": "Box b; b.items[0] = 1; return b.items[n - 2] + 1;",
    "by_member": "Box b; b.fill(n - 1); return total(b.begin(), n);",
    "objects": "Pair p[3]; p[0].a = 1; p[1].b = 2; return p[n - 3].a + 1;",
    "nested": "Nest s; s.p.a = 1; s.q[0] = 2; return s.q[n - 3] + 1;",
    "of_base": "Over o; o.c = n; Pair& p = o; return p.a + 1;",
    "to_object": "Pair p; Pair* q = &p; q->a = 1; return q->b + 1;",
    "object": "Pair p; p.a = 1; return second(p);",
    "update_of_field": "Pair p; p.a += n; return p.a;",
    "union": "Word u; return u.i + 1;",
    "of_template": "Two<double> t; t.first = 1; return (int)t.second;",
    "address": "int* p; if (n > 4) p = &n; return p ? 1 : 2;",
    "padded": "Padded p; p.c = 1; p.i = 2; return p.s + 1;",
}
# In a copy, of which nobody says what it is; bytes are listed, as chance may have made them.
WITHOUT_A_VALUE |= {
    "initialised": "Pair p; p.a = 1; Pair q = p; return q.b + 1;",
    "assigned": "Pair p, q; p.a = 1; q = p; return q.b + 1;",
    "by_value": "Pair p; p.a = 1; return both(p);",
    "many": "Many m; m.v[0] = 1; return last_of(m);",
    "kept": "Pair q = made(n); return q.b + 1;",
    "kept_many": "Many m = some(n); return m.v[9] + 1;",
    "kept_auto": "auto m = some(n); return m.v[9] + 1;",
    "handed_through": "Many m = passed(some(n)); return m.v[8] + 1;",
    "swapped": "Pair p, q = {1, 2}; p.a = 3; exchange(p, q); return q.b + 1;",
    "part": "Nest s; s.p.a = 1; Nest t = s; return t.q[1] + 1;",
    "element_of": "Pair p[2]; p[0].a = 1; Pair q = p[0]; return q.b + 1;",
    "by_pointer": "Pair p; p.a = 1; Pair* q = &p; Pair r = *q; return r.b + 1;",
    "vector": "float4 v; v.x = n; float4 w = v; return (int)(w.y + 1);",
    "captured": "Pair p; p.a = n; auto f = [=] { return p.b + 1; }; return f();",
    "words": "int b[4], c[4]; b[0] = 1; memcpy(c, b, 16); return c[n - 1] + 1;",
    "constructed": "Half h; return h.b + 1;",
    "constructed_with": "Given g(n); return g.b + 1;",
    "constructed_copy": "Half h, k; k = h; Half l = k; return l.b + 1;",
    "constructed_member": "Member m; return m.tail + 1;",
    "constructed_base": "Child c; return c.b + c.c;",
    "constructed_array": "Half h[3]; return h[n - 2].b + 1;",
    "behind_goto": "int i = 0, s; again: if (++i < n) goto again; return s + i;",
    "past_goto": "if (n > 4) goto out; int x; return x + 1; out: return 2;",
    "in_case": "switch (n) { case 4: int a[2]; a[0] = 1; return a[n - 3] + 1; case 5:; } return 0;",
    "last_case": "switch (n) { case 1: n = 0; default: int x; if (n > 4) x = 1; return x + 1; }",
    "aligned": "alignas(16) int a[4]; fill(a, n - 1); return a[3] + 1;",
    "defined": "struct S { int u, v; } s; s.u = 1; return s.v + 1;",
}
LISTED = {
    "returned": "return made(n).b + 1;",
    "bytes": "char b[8], c[8]; b[0] = 1; memcpy(c, b, 8); return c[n] + 1;",
    "in_macro": "LOCAL(a, 4); a[0] = 1; return a[n - 1] + 1;",
    "bits": "Bits f; f.a = 1; Bits g = f; return g.c + 1;",
}
# Numbers that are copied, also in memory that the threads of a block share.
WITHOUT_A_VALUE |= {
    "copied": "int x, y; y = x; return y + 1;",
    "copied_twice": "int x, y, z; y = x; z = y; if (z > n) return 1; return 2;",
    "shared": "SHARED(int, s, 8); s[0] = n; return s[n - 3] + 1;",
    "shared_copy": "SHARED(int, s, 8); SHARED(int, t, 8); s[0] = n; move(t, s, 8); return t[n];",
    "shared_sum": "SHARED(int, s, 8); s[0] = n; for (int i = 0; i < 7; ++i) s[i] += s[i + 1]; "
    "return s[0];",
    "shared_in_branch": "SHARED(int, s, 8); s[0] = n; if (s[n - 3] > 2) return 1; return 2;",
    "shared_index": "SHARED(int, s, 8); fill(s, n); return s[s[n] & 3];",
    "shared_float": "SHARED(float, s, 8); SHARED(float, t, 8); s[1] = n; move(t, s, 8); "
    "return (int)(2 * t[n - 2]);",
    "shared_double": "SHARED(double, s, 8); SHARED(double, t, 8); s[1] = n; move(t, s, 8); "
    "return (int)(t[1] + t[n - 2]);",
    "shared_long": "SHARED(long long, s, 4); SHARED(long long, t, 4); move(t, s, 4); "
    "t[0] = n; return (int)(t[n - 3] >> 1);",
    "shared_vector": "SHARED(float4, s, 4); SHARED(float4, t, 4); s[0].x = n; move(t, s, 4); "
    "return (int)(t[n - 3].x + 1);",
    "shared_byte": "SHARED(char, s, 8); s[1] = n; return s[n - 2] + 1;",
    "into_variable": "SHARED(int, s, 8); int x; s[0] = n; x = s[n - 1]; return x * 2;",
    "out_of_variable": "SHARED(int, s, 8); int x; if (n > 4) x = 1; s[n] = x; return s[4] * 2;",
    "there_and_back": "SHARED(int, s, 8); int x, y; s[n] = x; y = s[4]; s[2] = y; return !s[2];",
    "into_array": "SHARED(int, s, 8); int a[8]; s[3] = n; move(a, s, 8); return total(a, n);",
    "reversed": "SHARED(int, s, 8); s[0] = n; turn(s, 8); return s[n - 4];",
}
# What AddressSanitizer does not see: it looks at what lies there.
FAR = {
    "index": "int a[4] = {}, i[2] = {0, 40}; return a[i[n - 3]];",
    "rows": "int m[2][4] = {}, i[2] = {0, 100000}; return m[i[n - 3]][1];",
}
# What valgrind does not see: the place still has the value of the round before.
OF_BEFORE = {
    "again": "int s = 0; for (int i = 0; i < 2; ++i) { int x; if (!i) x = 3; s += x; } return s;",
    "field": "int s = 0; while (s < 6) { Pair p; if (!s) p.a = 3; s += p.a; } return s;",
}
RIGHT = {
    "handed_on": "int a[4]; fill(a, n); return total(a, n);",
    "later": "int x; if (n > 4) x = 1; else x = 2; return x;",
    "set": "int x; set(&x); return x;",
    "member": "Box b; b.fill(n); return b.items[n - 1];",
    "copy": "Box b; b.fill(n); Box c; c = b; Box d = c; return d.items[1];",
    "pair": "Pair p; p.a = n; p.b = p.a; Pair* q = &p; return q->b;",
    "loop": "for (int i = 0; i < 3; ++i) { int x, a[2]; x = i; a[0] = x; n += a[0]; } return n;",
    "leaves": "while (n--) { int a[2]; fill(a, 2); if (a[1] == n) return n; } return 0;",
    "recursion": "int a[5]; return deep(a, n);",
    "bytes": 'char b[8]; memcpy(b, "abcdefg", 8); return b[n];',
    "shadowed": "int x = 1; { int x[2]; x[0] = 2; x[1] = x[0]; n += x[1]; } return x + n;",
    "switch": "switch (n) { case 4: { int x; x = 1; return x; } case 5: int y; y = 2; return y; }",
    "end": "int a[4]; int* p = a; for (int* e = a + n; p != e; ++p) *p = 1; return a[3];",
    "lambda": "int a[4]; fill(a, n); auto f = [=] { return a[2]; }; return f();",
    "pointer": "int x = 1, y; int* p; p = &x; y = *p; int** q = &p; return **q + y;",
    "unsized": 'int d[] = {1, 2, 3}; const char s[] = "ab"; return d[n - 2] + s[1];',
    "twice": "int a[2]; fill(a, 2); int b[2]; fill(b, 2); return a[0] + b[1];",
    "sizes": "int a[4]; fill(a, sizeof(a) / sizeof(a[0])); return total(a, sizeof a / 4);",
    "const": "const int w[3] = {1, 2, 3}; const int* p = w; return sum_of(p, 3);",
    "union": "union { int i; float f; } u; u.f = 1; return u.i;",
    "goto": "int i = 0; again: int x; x = i; if (++i < 2) goto again; return x;",
    "ternary": "int a[2] = {1, 2}, b[2] = {3, 4}; int* p = n ? a : b; return p[1];",
    "reference": "int sum; sum = 0; add(sum, n); return sum;",
    "virtual": "int a[4]; fill(a, n); Derived d; Base* b = &d; return b->get(a, 3);",
    "volatile": "volatile int v[2]; v[0] = n; v[1] = v[0]; return v[1];",
    "short": "short s; char c; s = n; c = (char)s; return s + c;",
    "bits": "struct { unsigned a : 3, b : 5; } f; f.a = 1; f.b = 2; return f.a + f.b;",
    "named_bits": "Bits f; f.a = 1; f.b = 2; f.c = n; Bits g = f; return g.a + g.b + g.c;",
    "field": "float4 v; v.x = n; return (int)v.x;",
    "padding": "Padded p; p.c = n; p.i = 2; p.s = 3; Padded q = p; return q.c + q.i + q.s;",
    "many": "Many m; m = many(n); Many k = m; return k.v[9] + last_of(m);",
    "in_braces": "Many m; m = listed(n); return m.v[9];",
    "assigned": "Pair p; p = paired(n); Over o; (Pair&)o = p; o.c = n; Over u = o; return u.b;",
    "empty": "Plus plus; Plus other = plus; return apply(plus, n) + apply(other, n);",
    "word": "Word u; u.f = 1; return u.i;",
    "constructed": "Zero z; Init i; return z.a + z.b + i.a + i.b;",
    "set_fields": "Pair p, q; memset(&p, 0, sizeof p); memcpy(&q, &p, sizeof p); return q.b;",
    "by_cast": "float4 v; float* f = (float*)&v; for (int i = 0; i < 4; ++i) f[i] = i; return v.w;",
    "objects": "Pair p[2]; for (int i = 0; i < 2; ++i) p[i] = Pair{i, i}; return p[n - 3].a;",
    "behind_others": "return left(n) + plain(n);",
    "one_of": "Pair p, q = {3, 4}; p.a = 1; const Pair& r = n ? p : q; return r.a;",
}
# They copy an object in part without a value.
IN_PART = {
    "in_part": "Pair p; p.a = n; Pair q = p; Pair r; r = q; return r.a;",
    "by_value": "Pair p; p.a = n; return first(p);",
    "returned": "return made(n).a;",
    "swapped": "Pair p, q; p.a = n; q.a = 1; Pair t = p; p = q; q = t; return p.a + q.a;",
    "chosen": "Pair p; p.a = n; Pair q = p; if (n > 4) q.a += q.b; return q.a;",
    "wide": "Wide u; u.i[0] = n; long long all = u.l; return (int)all;",
    "of_wide": "Wide u[2]; u[1].i[0] = n; long long all = u[n - 3].l; return (int)all;",
    "piece": "Many m; m.v[9] = n; return last_of(m);",
    "captured": "Pair p; p.a = n; auto f = [=] { return p.a; }; return f();",
}
RIGHT |= IN_PART
RIGHT |= {
    "padding_kept": "Padded p; p.c = n; p.i = 2; p.s = 3; kept = p; return kept.i;",
    "jumps": "int i = 0; if (n < 0) goto out; { int a[2]; fill(a, 2); i = a[1]; } out: return i;",
    "cases": "switch (n) { case 4: int y; y = 2; return y; default: y = 3; return y; }",
    "duff": "int s = 0; switch (n) { do { case 4: int k; k = s; s = k + 1; } while (s < 3); } "
    "return s;",
    "aligned": "alignas(16) float4 v[2]; v[0].x = n; alignas(8) int a = n; return (int)v[0].x + a;",
    "rows": "int d[][2] = {{1, 2}, {3, 4}}; return d[1][n - 3] + (int)(sizeof d / sizeof d[0]);",
    "copies": "Many m = many(n), k = m; auto a = k; Many b(a); return b.v[9];",
    "objects_given": "Given g(n), h = g; g.b = h.a; Given k = g; return k.b;",
    "constants": "Pair p{1, 2}; Pair q(p); Many m = {{7, 8, 9}}; return q.b + m.v[2] + p.a;",
    "constant_objects": "Given g(3); Zero z; Init i; auto t = g; return g.a + z.b + i.b + t.a;",
    "defined": "struct S { int u, v; } s = {n, 1}, *p = &s, t[2] = {{1}}; S u = s; p->u = u.v;"
    "return s.u + t[1].v; ",
    "closure": "int a[2] = {n, 1}; auto f = [=] { return a[1]; }; auto g = f; return g();",
    "closure_of_reference": "int x; auto f = [&](int i) { x = i; }; f(n); return x;",
    "parameters": "return of_number(n, 3) + of_object(paired(n), 2);",
}
RIGHT |= {
    "copied": "int x, y, z; y = x; z = y; x = n; y = x; return y;",
    "rolled": "int a, b, c; for (int i = 0; i < n; ++i) { a = b; b = c; c = i; } return b + c;",
    "shared_copy": "SHARED(int, s, 8); SHARED(int, t, 8); s[n] = n; move(t, s, 8); return t[4];",
    "shared_float": "SHARED(float, s, 8); SHARED(float, t, 8); s[n] = 2; move(t, s, 8); "
    "move(s, t, 8); return (int)t[n];",
    "shared_double": "SHARED(double, s, 8); SHARED(double, t, 8); s[n] = 2; move(t, s, 8); "
    "return (int)(t[4] * t[4]);",
    "shared_vector": "SHARED(float4, s, 4); SHARED(float4, t, 4); float4 v = {1, 2, 3, 4}; "
    "s[1] = v; move(t, s, 4); return (int)(t[n - 3].y + t[1].w);",
    "shared_tile": "SHARED(int, s, 8); int r[8]; s[n] = 3; move(r, s, 8); move(s, r, 8); "
    "r[2] = 4; return r[2] + s[4];",
    "overwritten": "SHARED(int, s, 8); SHARED(int, t, 8); move(t, s, 8); fill(t, 8); return t[n];",
    "reversed": "SHARED(int, s, 8); s[0] = n; turn(s, 8); return s[7];",
    "unset_as_a_number": "SHARED(int, s, 2); SHARED(int, t, 2); t[0] = s[0]; s[1] = -5123163; "
    "t[1] = s[1]; return (t[1] + 5123163) / n;",
}
FOUND = [
    ("out_of_bounds", PAST_AN_END),
    ("out_of_bounds", FAR),
    ("uninitialised", WITHOUT_A_VALUE),
    ("uninitialised", OF_BEFORE),
]


def functions(cases):
    return "".join(f"BOTH int {name}_(int n) {{ {body} }}\n" for name, body in cases.items())


def observed(cases, tmp_path, **environment):
    """The kinds of findings of the kernel of each case; the functions with lines not looked at."""
    kernels = "".join(
        f"__global__ void of_{name}(int* o) {{ *o = {name}_(4); }}\n" for name in cases
    )
    shown = 'cudaMemcpy(&h, o, 4, cudaMemcpyDeviceToHost); printf("%d ", h);'
    calls = "".join(f"of_{name}<<<1, 1>>>(o); {shown}\n" for name in cases)
    main = f"int main() {{ int *o, h; cudaMalloc(&o, 4);\n{calls}cudaFree(o); }}\n"
    file, report = tmp_path / "local.cu", tmp_path / "findings.json"
    file.write_text(HEAD + functions(cases) + kernels + main, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True, env={**os.environ, **environment})
    assert report.exists(), done.stderr
    document = json.loads(report.read_text("utf-8"))
    assert document["launches"] == len(cases), done.stderr
    found = {name: set() for name in cases}
    for finding in document["findings"]:
        kind = f"{finding['kind']}, a note" if finding["note"] else finding["kind"]
        found[finding["kernel"].removeprefix("of_")].add(kind)
    rows = file.read_text("utf-8").splitlines()
    listed = [rows[int(text.split(":")[1]) - 1] for text in document["not_looked_at"]]
    lines = {row.split("(")[0].split()[-1].removesuffix("_") for row in listed}
    return found, lines, dict(zip(cases, done.stdout.split(), strict=True))


@pytest.mark.parametrize(("kind", "cases"), FOUND)
def test_each_mistake_in_local_memory_is_found(kind, cases, tmp_path):
    found, *_ = observed(cases, tmp_path)
    assert {name for name, kinds in found.items() if kinds != {kind}} == set()


def test_an_index_far_beyond_an_array_names_it(tmp_path):
    observed(FAR, tmp_path)
    findings = json.loads((tmp_path / "findings.json").read_text("utf-8"))["findings"]
    assert {each["kernel"]: each["detail"] for each in findings} == {
        "of_index": "index 40 of the array a[4]",
        "of_rows": "index 100000 of the array m[2][4]",
    }


def test_what_is_right_in_local_memory_is_not_blamed(tmp_path):
    found, listed, printed = observed(RIGHT, tmp_path)
    assert {name: kinds for name, kinds in found.items() if kinds} == {}
    assert {name: (value, 0) for name, value in printed.items()} == on_host(RIGHT, tmp_path)
    # Parts of numbers and of fields of bits; a copy of a lambda; what a function returns.
    others = {"closure", "made", "listed"}
    assert listed == {"bytes", "wide", "of_wide", "piece", "named_bits", *others}


def test_what_may_have_no_value_is_listed(tmp_path):
    found, listed, _ = observed(LISTED, tmp_path)
    assert {name: kinds for name, kinds in found.items() if kinds} == {}
    assert listed == {*LISTED, "made"} - {"returned"}


def test_the_other_compiler_finds_the_same(tmp_path):
    """But where its read may be one of the bits around a field of bits."""
    pytest.importorskip("ziglang", reason="the other compiler is an extra")
    zig = f"{sys.executable} -m ziglang c++"
    right = {name: set() for name in RIGHT}
    wrong = {name: {"uninitialised"} for name in WITHOUT_A_VALUE} | {"update_of_field": set()}
    for cases, wanted in ((WITHOUT_A_VALUE, wrong), (RIGHT, right)):
        found, listed, _ = observed(cases, tmp_path, CXX=zig)
        assert found == wanted
        assert listed >= {"update_of_field"} & set(cases)
    for cases in (PAST_AN_END, FAR):
        found, *_ = observed(cases, tmp_path, CXX=zig)
        assert found == {name: {"out_of_bounds"} for name in cases}


ON_HOST = """int main(int argc, char** argv) {
    for (int i = 1, status; i < argc; ++i) {
        if (!fork()) return call(argv[i]);
        wait(&status);
        printf(" %d\\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        fflush(stdout);
    }
}
"""


def on_host(cases, tmp_path, *flags, under=(), **environment):
    """What the function of each case prints on the host, and the status of its process.

    All are forked from one, for which a tool `under` which they run starts once.
    """
    calls = "".join(
        f'if (!strcmp(name, "{name}")) return printf("%d", {name}_(4)) < 0;\n' for name in cases
    )
    call = f"int call(const char* name) {{\n{calls}return 9; }}\n"
    system = "#include <sys/wait.h>\n#include <unistd.h>\n"
    file, program = tmp_path / "host.cpp", tmp_path / "host"
    file.write_text(system + HEAD + functions(cases) + call + ON_HOST, encoding="utf-8")
    command = ["g++", "-std=c++17", "-O0", "-g1", "-w", "-fpermissive", *flags, str(file)]
    subprocess.run([*command, "-o", str(program)], check=True)
    done = subprocess.run(
        [*under, program, *cases], capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    rows = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    return {name: (said, int(code)) for name, (said, code) in zip(cases, rows, strict=True)}


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
@pytest.mark.parametrize(("cases", "status"), [(PAST_AN_END, 3), (RIGHT, 0)])
def test_address_sanitizer_says_the_same_of_ends(cases, status, tmp_path):
    done = on_host(
        cases, tmp_path, "-fsanitize=address", ASAN_OPTIONS="exitcode=3:symbolize=0:detect_leaks=0"
    )
    assert {name for name, (_, code) in done.items() if code != status} == set()


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize(
    ("cases", "wrong"), [(WITHOUT_A_VALUE, True), (LISTED, True), (RIGHT, False)]
)
def test_valgrind_says_the_same_of_values(cases, wrong, tmp_path):
    done = on_host(cases, tmp_path, under=("valgrind", "-q", "--error-exitcode=3"))
    assert {name for name, (_, code) in done.items() if (code == 3) != wrong} == set()


BEHIND_THE_END = """
__global__ void sums(const float* in, float* out, int n) {
    __shared__ float tile[32];
    int i = threadIdx.x;
    float own, sum = 0;
    if (i < n) own = in[i];
    tile[i] = i < n ? in[i] : 0;
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum += tile[k] * own;  // anything behind the end
    if (i < n) out[i] = sum;
}
__global__ void hides(const float* in, float* out, int n) {
    __shared__ float tile[32];
    float own;
    if (threadIdx.x < n) own = in[threadIdx.x];
    float twice = 2 * own;  // anything behind the end
    tile[threadIdx.x] = 1;
    if (threadIdx.x < n) out[threadIdx.x] = twice + tile[threadIdx.x];
}
__global__ void shares(const float* in, float* out, int n) {
    __shared__ float tile[32];
    float own;
    if (threadIdx.x < n) own = in[threadIdx.x];
    tile[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = tile[31];  // uninitialised
}
__global__ void elects(float* out) {
    int first, many[2];
    float4 v;
    if (threadIdx.x == 0) first = 7, many[1] = 8, v.y = 9;
    first = __shfl_sync(~0u, first, 0);
    many[1] = __shfl_sync(~0u, many[first - 6], 0);
    v.y = __shfl_sync(~0u, v.y, 0);
    unsigned same;
    if (threadIdx.x == 0) same = 3, v.x = 4;
    same = __shfl_sync(~0u, (int)same, 0);
    v.x = __shfl_sync(~0u, 2 * v.x, 0);
    out[threadIdx.x] = first + many[1] + v.y + same + v.x;
}
__global__ void turns(float* out) {
    float sine, cosine, same, other, whole;
    __sincosf(0, &sine, &cosine);
    sincospif(0, &same, &other);
    const float part = modff(cosine, &whole);
    out[threadIdx.x] = sine + cosine + same + other + whole + part;
}
__global__ void launches(float* out) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (stream) elects<<<1, 32, 0, stream>>>(out);
    cudaStreamDestroy(stream);
}
__global__ void keeps(float* out) {
    float own;
    if (threadIdx.x == 0) own = 7;
    float first = __shfl_sync(~0u, own, 0);
    out[threadIdx.x] = first + own;  // uninitialised
}
int main() {
    float *in, *out;
    cudaMalloc(&in, 128), cudaMalloc(&out, 128);
    cudaMemset(in, 0, 128);
    sums<<<1, 32>>>(in, out, 20);
    shares<<<1, 32>>>(in, out, 20);
    hides<<<1, 32>>>(in, out, 20);
    elects<<<1, 32>>>(out);
    keeps<<<1, 32>>>(out);
    turns<<<1, 32>>>(out);
    launches<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    cudaFree(in), cudaFree(out);
}
"""


def test_what_threads_compute_in_vain_is_a_note(tmp_path):
    file, report = tmp_path / "behind.cu", tmp_path / "findings.json"
    file.write_text(BEHIND_THE_END, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    command.cudalab(*words)
    rows = json.loads(report.read_text("utf-8"))["findings"]
    assert [(one["kernel"], one["kind"], one["note"]) for one in rows] == [
        ("shares", "uninitialised", False),
        ("keeps", "uninitialised", False),
        ("sums", "uninitialised", True),
        ("hides", "uninitialised", True),
    ]


HANDED_ON = """
#define INSIDE (threadIdx.x < n)
__global__ void rolls(const float* in, float* out, int n) {
    __shared__ float tile[32];
    float before, now, next;
    if (INSIDE) now = in[threadIdx.x];
    for (int k = 1; k < 4; ++k) {
        if (INSIDE) next = in[32 * k + threadIdx.x];
        tile[threadIdx.x] = next;
        __syncthreads();
        if (INSIDE && k > 1 && threadIdx.x) out[threadIdx.x] = before + tile[threadIdx.x - 1];
        __syncthreads();
        before = now;
        now = next;
    }
}
__global__ void shifts(const int* in, int* out, int n) {
    __shared__ int one[32], two[32];
    if (INSIDE) one[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    two[31 - threadIdx.x] = one[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = two[threadIdx.x] + 1;  // uninitialised
}
__global__ void sums(const int* in, int* out, int n) {
    __shared__ int part[32];
    if (INSIDE) part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    int sum = part[threadIdx.x];  // uninitialised
    sum += __shfl_down_sync(~0u, sum, 16);
    if (threadIdx.x == 0) *out = sum;
}
__global__ void decides(const int* in, int* out, int n) {
    __shared__ int flag[32];
    if (INSIDE) flag[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (flag[threadIdx.x] == 0) return;  // uninitialised
    out[threadIdx.x] = 1;
}
__global__ void blurs(const int* in, int* out, int n) {
    __shared__ int part[32];
    if (INSIDE) part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    int sum = part[threadIdx.x];  // anything behind the end
    for (int k = 0; k < 32; ++k) sum += k * part[k];
    if (INSIDE) out[threadIdx.x] = sum;
}
__global__ void counts(const int* in, int* out, int n) {
    __shared__ int part[32];
    if (INSIDE) part[threadIdx.x] = in[threadIdx.x];
    int own = part[threadIdx.x];  // uninitialised
    int any = __syncthreads_or(own == 3);
    if (threadIdx.x == 0) *out = any;
}
__global__ void hurries(const int* in, int* out) {
    __shared__ int one[64], two[64];
    one[threadIdx.x] = in[threadIdx.x];
    two[threadIdx.x] = one[63 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = two[63 - threadIdx.x];
}
int main() {
    int *in, *out;
    cudaMalloc(&in, 512), cudaMalloc(&out, 512);
    cudaMemset(in, 0, 512);
    rolls<<<1, 32>>>((float*)in, (float*)out, 20);
    shifts<<<1, 32>>>(in, out, 20);
    sums<<<1, 32>>>(in, out, 20);
    decides<<<1, 32>>>(in, out, 20);
    counts<<<1, 32>>>(in, out, 20);
    hurries<<<1, 64>>>(in, out);
    blurs<<<1, 32>>>(in, out, 20);
    cudaDeviceSynchronize();
    cudaFree(in), cudaFree(out);
}
"""


def test_a_copy_of_what_has_no_value_has_none_and_is_no_mistake(tmp_path):
    """Where it is used, the line is named that has copied it, unless a writer was late."""
    file, report = tmp_path / "copies.cu", tmp_path / "findings.json"
    file.write_text(HANDED_ON, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    command.cudalab(*words)
    rows = json.loads(report.read_text("utf-8"))["findings"]
    lines = [row.partition("//")[0].strip() for row in HANDED_ON.splitlines()]
    found = [(row["kernel"], row["kind"], lines[row["line"] - 1], row["note"]) for row in rows]
    assert found == [
        ("shifts", "uninitialised", "out[threadIdx.x] = two[threadIdx.x] + 1;", False),
        ("sums", "uninitialised", "int sum = part[threadIdx.x];", False),
        ("decides", "uninitialised", "if (flag[threadIdx.x] == 0) return;", False),
        ("counts", "uninitialised", "int own = part[threadIdx.x];", False),
        ("hurries", "race", "one[threadIdx.x] = in[threadIdx.x];", False),
        ("blurs", "uninitialised", "for (int k = 0; k < 32; ++k) sum += k * part[k];", False),
        ("blurs", "uninitialised", "int sum = part[threadIdx.x];", True),
    ]
    assert lines[rows[0]["other_line"] - 1] == "two[31 - threadIdx.x] = one[threadIdx.x];"


LAB = """// /// cudalab
// summary = "Words between others"
// order = 1
// dispatch = "tiles"
// defines = { TILE_DIM = 32, BLOCK_ROWS = 8 }
// ///
struct Padded { char c; T value; };
extern "C" __global__ void transpose(const T* in, T* out, unsigned rows, unsigned cols) {
    const unsigned tiles = (cols + TILE_DIM - 1) / TILE_DIM;
    const unsigned c = blockIdx.x % tiles * TILE_DIM + threadIdx.x;
    for (unsigned k = threadIdx.y; k < TILE_DIM; k += BLOCK_ROWS) {
        const unsigned r = blockIdx.x / tiles * TILE_DIM + k;
        if (r >= rows || c >= cols) continue;
        float sine, cosine;
        __sincosf(0, &sine, &cosine);
        Padded one, other;
        one.c = 1;
        one.FIELD = in[(size_t)r * cols + c];
        other = one;
        out[(size_t)c * rows + r] = other.value + one.value - one.value + (T)sine;
    }
}
"""


@pytest.mark.parametrize(("field", "status"), [("value", 0), ("c", 3)])
def test_kernels_of_labs_have_fields_and_padding(field, status, tmp_path):
    file, report = tmp_path / "padded.cu", tmp_path / "findings.json"
    file.write_text(LAB.replace("FIELD", field), encoding="utf-8")
    words = ["sanitize", "transpose", "--kernel", str(file), "--json", str(report)]
    done = command.cudalab(*words)
    assert done.returncode == status, done.stdout.decode()
    document = json.loads(report.read_text("utf-8"))
    assert document["not_looked_at"] == []


REFUSED = """#include <cstdio>
#include <type_traits>
struct Odd {
    int a[2];
    __device__ Odd(int x) : a{x, x} {}
    Odd(const Odd&) = delete;
};
__global__ void first(int* o, float f) {
    Odd odd(int(f) + 1); int x = (int)(f * 2.0f);
    Odd
        two
        (int(f));
    int z[] = {x, (int)f}; decltype(z) w; w[0] = (int)f;
    o[0] = odd.a[0] + x + two.a[1] + z[1] + w[0];
}
__global__ void second(int* o, float f) {
    int a[2];
    a[0] = (int)f;
    a[1] = (int)(f * 2);
    static_assert(!std::is_reference<decltype(a)>::value,
                  "an array");
    o[0] += a[0] + a[1];
}
int main() {
    int *o, sum;
    cudaMalloc(&o, 4);
    first<<<1, 1>>>(o, 2.5f);
    second<<<1, 1>>>(o, 2.5f);
    cudaMemcpy(&sum, o, 4, cudaMemcpyDeviceToHost);
    printf("%d", sum);
    cudaFree(o);
}
"""


def test_what_the_compiler_refuses_to_put_between_zones_stays_as_it_is(tmp_path):
    file, report = tmp_path / "refused.cu", tmp_path / "findings.json"
    file.write_text(REFUSED, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True)
    assert (done.returncode, done.stdout) == (0, "21")
    assert json.loads(report.read_text("utf-8"))["launches"] == 2


ASKS = """template <class Any> struct Plain { static const bool is = true; };
template <class Any> struct Plain<Any&&> { static const bool is = false; };
"""


def test_a_lab_s_kernel_may_ask_what_its_variables_are(tmp_path):
    file = tmp_path / "asks.cu"
    asks = 'static_assert(Plain<decltype(one)>::is,\n"an object");'
    asks += "int z[1] = {(int)sine}; decltype(z) w; w[0] = (int)cosine;"
    text = LAB.replace("FIELD", "value").replace("        other = one", f"{asks} other = one")
    text = text.replace("struct Padded", f"{ASKS}struct Padded")
    file.write_text(text, encoding="utf-8")
    words = ["sanitize", "transpose", "--kernel", str(file)]
    done = command.cudalab(*words, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


KEPT = """struct Pair { short a, b; };
struct Many { int v[6]; };
__global__ void small(Pair* o) { Pair fresh; o[threadIdx.x] = fresh; }
__global__ void large(Many* o) { Many fresh; o[threadIdx.x] = fresh; }
__global__ void guarded(Many* o, int n) {
    Many many;
    if (threadIdx.x < n) many = o[0];
    Many copy = many;
    if (threadIdx.x < n) o[threadIdx.x] = copy;
}
int main() {
    void* memory;
    cudaMalloc(&memory, 4096);
    cudaMemset(memory, 0, 4096);
    guarded<<<1, 32>>>((Many*)memory, 1);
    small<<<1, 2>>>((Pair*)memory);
    large<<<1, 2>>>((Many*)memory);
    cudaFree(memory);
}
"""


def test_an_object_that_nobody_has_set_and_that_is_kept_is_no_note(tmp_path):
    file, report = tmp_path / "kept.cu", tmp_path / "findings.json"
    file.write_text(KEPT, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words)
    findings = json.loads(report.read_text("utf-8"))["findings"]
    kinds = {(each["kind"], each["kernel"], each["note"]) for each in findings}
    wanted = {("small", False), ("large", False), ("guarded", True)}
    assert (done.returncode, kinds) == (3, {("uninitialised", *each) for each in wanted})


STOPPED = """#include <cstdio>
__device__ __noinline__ void fill(int* p, int n) { for (int i = 0; i < n; ++i) p[i] = i; }
__global__ void stops(int* o) {
    int a[16], b[16], c[16];
    fill(a, 16), fill(b, 16), fill(c, 16);
    if (a[3] + b[3] + c[3] == 9) __trap();
    *o = a[1];
}
__global__ void goes_on(int* o) {
    __attribute__((aligned(4))) int unknown[256];
    fill(unknown, 256);
    *o = unknown[7];
}
int main() {
    int* o;
    cudaMalloc(&o, 4);
    stops<<<1, 1>>>(o);
    printf("%d", cudaDeviceSynchronize() != cudaSuccess);
    cudaDeviceReset();
    cudaMalloc(&o, 4);
    goes_on<<<1, 1>>>(o);
    printf("%d", cudaDeviceSynchronize());
    cudaFree(o);
}
"""


def test_a_kernel_that_has_stopped_leaves_no_variables_behind(tmp_path):
    file, report = tmp_path / "stopped.cu", tmp_path / "findings.json"
    file.write_text(STOPPED, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), str(file)]
    done = command.cudalab(*words, text=True)
    assert (done.returncode, done.stdout) == (3, "10")
    found = [each["kind"] for each in json.loads(report.read_text("utf-8"))["findings"]]
    assert found == ["crash"]


# Constants that an initializer has, or a constructor, may be stored before all else of it.
CONSTANTS = """#include <cstdio>
struct Plain { int a, b = 3; };
struct Three { int a, b, c; };
struct Made { int a, b; __host__ __device__ constexpr Made(int x) : a(x), b(7) {} };
struct Filled { int a, b; __host__ __device__ Filled(int x, int y = 9) : a(x), b(y) {} };
__host__ __device__ constexpr Three three(int x) { return {x, 7, 8}; }
__global__ void kernel(int* out, int x) {
    Plain plain{x};
    Three braced{x, 7}, assigned = {x, 7, x}, typed = Three{x, 7}, folded = three(3);
    Made made(5), other{5}, given(x), copied = Made(x);
    Filled filled(x), both(x, 4), constant(2, 6);
    dim3 whole(1, 2, 3), part(x);
    Three rows[2] = {{x, 7}, {1}};
    int k = 0;
    out[k++] = plain.b;
    out[k++] = braced.b + braced.c + assigned.b + typed.b + folded.b;
    out[k++] = made.b + other.b + given.b + copied.b;
    out[k++] = filled.b * 100 + both.b * 10 + constant.b;
    out[k++] = whole.y * 100 + whole.z * 10 + part.y;
    out[k++] = rows[0].b * 10 + rows[1].a;
}
int main() {
    int *out, host[6];
    cudaMalloc(&out, sizeof host);
    kernel<<<1, 1>>>(out, 5);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    for (int value : host) printf("%d ", value);
    cudaFree(out);
}
"""


def test_objects_have_what_they_are_initialised_with(tmp_path):
    file = tmp_path / "constants.cu"
    file.write_text(CONSTANTS, encoding="utf-8")
    words = ["run", "--device", "cpu", "--sanitize", str(file)]
    done = command.cudalab(*words, text=True)
    assert (done.returncode, done.stdout) == (0, "3 28 28 946 231 71 "), done.stderr
