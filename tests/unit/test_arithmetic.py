"""What the rewriter puts in place of conversions and shifts in device code."""

import pytest
from whole_programs import rewrite

from cudalab.program.files import File

CALL = "::cudalab::cudalab_"


def body(statement, before=""):
    """The rewritten statement of a kernel."""
    text = f"{before}\n__global__ void k(int n, float f, int *a, float *b) {{\n{statement}\n}}\n"
    return rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0].split("\n")[-4]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a[0] = (int)f;", "a[0] = ::cudalab::cudalab_cast<int>(f);"),
        ("n = 2 * f;", "n = ::cudalab::cudalab_fit<int>(2 * f);"),
        (
            "const unsigned i = f, j = n;",
            "const unsigned i = ::cudalab::cudalab_fit<unsigned>(f), j = n;",
        ),
        ("n += f;", "::cudalab::cudalab_into(n) += f;"),
        (
            "for (;;) ((int*)a)[n] = b[n];",
            "for (;;) ((int*)a)[n] = ::cudalab::cudalab_fit<int>(b[n]);",
        ),
        ("*a = b[n];", "*a = ::cudalab::cudalab_fit<int>(b[n]);"),
        ("b[(int)b[0] + n] = 1;", "b[::cudalab::cudalab_cast<int>(b[0]) + n] = 1;"),
        (
            "g(static_cast<int>(f), int(f));",
            "g(::cudalab::cudalab_cast<int>(f), ::cudalab::cudalab_cast<int>(f));",
        ),
        ("b[0] = (float)(int)f;", "b[0] = (float)::cudalab::cudalab_cast<int>(f);"),
        ("g(-(int)-f * n);", "g(-::cudalab::cudalab_cast<int>(-f) * n);"),
        ("g(make_uchar4(f, f, f, 0));", "g(::cudalab::cudalab_make<uchar4>(f, f, f, 0));"),
        (
            "g(make_int4(f, 2), make_int2(f));",
            "g(make_int4(f, 2), make_int2(f));",
        ),  # of helper_math.h
        ("n xor_eq 1 << n;", "n xor_eq 1 << ::cudalab::cudalab_by + n;"),
        (
            "if (not n and 1 << n) a[0] = f;",
            f"if (not n and 1 << {CALL}by + n) a[0] = {CALL}fit<int>(f);",
        ),
        ("n = n bitor 1 << n;", "n = n bitor 1 << ::cudalab::cudalab_by + n;"),
        ("n = 1 << n - 1;", "n = 1 << ::cudalab::cudalab_by + (n - 1);"),
        ("n >>= n, n = 0;", "n >>= ::cudalab::cudalab_by + (n), n = 0;"),
        (
            "if (n < n >> n) n = 1 << 40;",
            "if (n < n >> ::cudalab::cudalab_by + n) n = 1 << ::cudalab::cudalab_by + 40;",
        ),
    ],
)
def test_what_has_no_value_in_cpp_is_replaced(statement, expected):
    assert body(statement) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "a[n] = (int)threadIdx.x + n / 2;",
        "n = 1 << 5 | n >> 31;",
        "b[0] = 2 * f; f += 3;",
        "for (int i = n; i < 10; i += blockDim.x) b[i] = f;",
        "int *p = a; float g = (float)n;",
        "size_t bytes = n * sizeof(int);",
        "pair<pair<int>> p(n);",
    ],
)
def test_what_has_one_stays(statement):
    assert body(statement) == statement


def test_a_stream_is_not_shifted():
    line = 'inline __host__ __device__ void print(int n) { std::cout << n << "\\n"; }'
    assert line in rewrite([File("a.cu", "a.cu", line)], ["0-a.cpp"])[0]


def test_divisions_where_no_processor_stops_at_zero(monkeypatch):
    assert body("n = a[0] / n % 7;") == "n = a[0] / n % 7;"
    monkeypatch.setenv("CXX", "aarch64-linux-gnu-g++")
    assert body("n = a[0] / n % 7;") == "n = a[0] / ::cudalab::cudalab_zero_too ->* n % 7;"
    assert body("n %= n - 1;") == "n %= ::cudalab::cudalab_zero_too ->* (n - 1);"


def test_host_code_stays():
    text = "int f(float x, int n) { return (int)x << n; }\n"
    assert rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0].split("\n")[1] + "\n" == text


def test_names_of_types_and_constants_are_known():
    before = "using Key = unsigned;\ntypedef float Real;\n#define WIDTH 16"
    statement = "Key key = a[0]; key += WIDTH; Real real = 2 * f; real += key;"
    assert body(statement, before) == statement


def test_an_object_of_a_class_is_no_conversion():
    before = "typedef int Sum;\ntypedef Reduction<int> Reduce;"
    assert body("a[0] = Sum(f);", before).endswith("::cudalab::cudalab_cast<Sum>(f);")
    assert "cast" not in body("a[0] = Reduce(memory).all(n);", before)


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("M({ n = f; })", f"M({{ n = {CALL}fit<int>(f); }})"),
        ("M(1, { n = f; }, 2);", f"M(1, {{ n = {CALL}fit<int>(f); }}, 2);"),
        ("M(if (n) a[0] = 1 << n;)", f"M(if (n) a[0] = 1 << {CALL}by + n;)"),
        ("M(int r = f; r <<= n);", f"M(int r = {CALL}fit<int>(f); r <<= {CALL}by + (n));"),
        ("M(n, { 1, n });",) * 2,
    ],
)
def test_statements_that_a_macro_is_given(statement, after):
    assert body(statement, "#define M(...) __VA_ARGS__").endswith(after)


def test_arguments_of_the_programs_own_functions():
    before = "__device__ int g(float x, unsigned char c) { return c; }"
    assert body("g(f, f);", before) == "g(f, ::cudalab::cudalab_fit<unsigned char>(f));"


CLASSES = """__device__ void refer(const int& v, int& w);
struct Q { int a; __device__ void put(int v) { a = v; }
__device__ Q(int v, int w = 1) : a(v) {} __device__ Q(const Q&); };
struct M { int a; __device__ M(int v) : a(v) {} __device__ M(float v) : a(v) {} };
namespace own { struct S { __device__ explicit S(unsigned char v); }; }
__device__ int take(Q q) { return q.a; }"""
FIT = "::cudalab::cudalab_fit<int>"


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("auto l = [](float x) -> int { return x; };", f"{{ return {FIT}(x); }};"),
        ("[](int v) { return v; }(f);", f"({FIT}(f));"),
        ("auto l = [](int v, float w) { return v; }; l(f, f);", f"l({FIT}(f), f);"),
        ("auto l = [](int v) { return v; }; (l)(f);", f"(l)({FIT}(f));"),
        ("Q q(f);", f"Q q({FIT}(f));"),
        ("Q q(f, f);", f"Q q({FIT}(f), {FIT}(f));"),
        ("Q q = f;", f"Q q = {FIT}(f);"),
        ("take(f); take(Q(f));", f"take({FIT}(f)); take(Q({FIT}(f)));"),
        ("(Q)f; static_cast<Q>(f);", f"(Q){FIT}(f); static_cast<Q>({FIT}(f));"),
        ("own::S s(f);", "own::S s(::cudalab::cudalab_fit<unsigned char>(f));"),
        ("new Q(f); new int(f); delete a;", f"new Q({FIT}(f)); new int({FIT}(f)); delete a;"),
        ("new float(f); new int[n]; new (a) int(n);",) * 2,
        ("Q q(n); q.put(f);", f"Q q(n); q.put({FIT}(f));"),
        ("const int& r = f; refer(f, n);", f"const int& r = {FIT}(f); refer({FIT}(f), n);"),
        ("int& r = n; refer(n, a[0]);",) * 2,
        ("int Q::*m = &Q::a; Q* q = &o; o.*m += 1; m = &Q::a; q->*m = 3;",) * 2,
        ("M m(f); M(f);", "M m(f); M(f);"),
    ],
)
def test_what_lambda_expressions_and_constructors_are_given(statement, after):
    assert body(statement, CLASSES).endswith(after)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("struct D : Q { __device__ D(float x) : Q(x) {} };", f"Q({FIT}(x)) {{}}"),
        ("struct D { Q q; __device__ D(float x) : q(x) {} };", f"q({FIT}(x)) {{}}"),
        ("struct D { M M; __device__ D(float x) : M(x) {} };", "M(x) {}"),
        ("struct D { float Q; __device__ D(float x) : Q(x) {} };", "Q(x) {}"),
        ("struct D { float x; __device__ operator int() { return x; } };", f"return {FIT}(x);"),
        ("struct D { float x; __device__ float operator()() { return x; } };", "{ return x; }"),
        ("__device__ Q make(float x) { return x; }", f"return {FIT}(x);"),
    ],
)
def test_what_members_bases_and_functions_are_given(text, after):
    made = rewrite([File("a.cu", "a.cu", f"{CLASSES}\n{text}\n")], ["0-a.cpp"])[0]
    assert after in made.split("own { struct S")[1]


def test_lambda_expressions_for_the_device():
    text = "void f() { g([=] __device__ (float x) { return (int)x; }); }"
    made = rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0]
    assert "{ return ::cudalab::cudalab_cast<int>(x); }" in made


def test_functions_that_return_integers():
    text = "template <class T> __device__ T f(float x) { return x; }"
    rewritten = rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0]
    assert "{ return ::cudalab::cudalab_fit<T>(x); }" in rewritten


def test_bit_fields_have_no_references():
    before = "struct Bits { unsigned low : 4, high : 28; };"
    assert body("Bits s; s.low += f;", before) == (
        "Bits s; s.low = ::cudalab::cudalab_fit<unsigned>(s.low + ( f));"
    )
    assert body("Bits s; s.low <<= n; n = s.high >> n;", before) == (
        "Bits s; s.low = +s.low << ::cudalab::cudalab_by + ( n);"
        " n = +s.high >> ::cudalab::cudalab_by + n;"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "bool *q; q[n / 2] = (bool)(n);",
        "float g[2] = {f, f};",
        "auto g = Unknown{.x = f, .y = n};",
        "const T &r = n + f;",
        "n = 1 << (n & 31);",
        "M m; m.x = 2 * f;",
        "bool b = f; b = f > 2;",
        "auto g = f; g += 2;",
        "n = n < f;",
        "float2 v; v.x = f; v.y += v.x;",
        "int4 v; v.x = n;",
    ],
)
def test_what_the_types_exclude_stays(statement):
    assert body(statement, "struct M { float x; };") == statement
