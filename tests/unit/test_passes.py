"""The passes that make loops of kernels, each on small texts."""

import pytest

from cudalab.backends.cpu.regions import PASSES, loops
from cudalab.backends.cpu.regions.analysis import Analysis
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.gathering import gathered
from cudalab.backends.cpu.regions.lambdas import named
from cudalab.backends.cpu.regions.normal_forms import (
    branched,
    counted_first,
    own_counters,
    renamed,
)
from cudalab.backends.cpu.regions.strides import Strides
from cudalab.backends.cpu.regions.syntax import locals_of, statements
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, read
from cudalab.language.tokens import spaced

SUM = "template <typename F> __device__ int sum(F f) { __syncthreads(); return f(); } "


def unit(body, *, before="", is_program=False):
    text = f'{before}extern "C" __global__ void k(int* out, int n) {{ {body} }}'
    return Unit(read(text), "", PASSES.normalize, is_program=is_program)


def after(run, body, **how):
    """What a pass makes of a kernel's statements, in one line."""
    own = unit(body, **how)
    return spaced(word for each in run(own, own.kernels()[0]) for word in each.words)


def in_words(text):
    return spaced(read(text))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("x = 1; { y = 2; }", ["simple", "block"]),
        ("if (x < 1) y = 2; else { z = 3; }", ["if"]),
        ("if constexpr (N) y = 2;", ["if constexpr"]),
        ("for (int i = 0; i < n; ++i, --j) y += i;", ["for"]),
        ("for (auto e : list) y += e;", ["other"]),
        ("while (x >>= 1); do { --x; } while (x > 0);", ["while", "do"]),
        ("switch (x) { case 1: break; default: ; }", ["other"]),
        ("struct P { int x; }; const T<A<int>> q(1);", ["other", "simple"]),
        ("auto f = [&](int i) { return i; }; return f(1);", ["simple", "simple"]),
        ("x++; y[i]--; ++z; p->n++; __syncthreads();", ["simple"] * 5),
    ],
)
def test_statements_are_those_of_the_tree(text, kinds):
    words = read(text)
    found = statements(words)
    assert [each.kind for each in found] == kinds
    assert [word.text for each in found for word in each.words] == [word.text for word in words]


@pytest.mark.parametrize(
    ("text", "written", "names"),
    [
        ("struct P { int x; } p;", "struct P { int x ; } ; P p ;", ["p"]),
        ("union { int a; } u, *v;", "union _0 { int a ; } ; _0 u , * v ;", ["u", "v"]),
        ("const struct { int x; } p = {1};", "struct _0 { int x ; } ; const _0 p = { 1 } ;", ["p"]),
        ("enum : int { A } e = A;", "enum _0 : int { A } ; _0 e = A ;", ["e"]),
        ("struct P { int x; };", "struct P { int x ; } ;", []),
        ("struct P;", "struct P ;", []),
        ("struct P p, q = {1};", "struct P p , q = { 1 } ;", ["p", "q"]),
        ("struct P p{1};", "struct P p { 1 } ;", ["p"]),
        ("struct P p{};", "struct P p { } ;", ["p"]),
        ("struct P *p = &q;", "struct P * p = & q ;", ["p"]),
    ],
)
def test_variables_stand_apart_from_their_class(text, written, names):
    found = statements(read(text))
    words = [word.text.replace("cudalab_class", "") for each in found for word in each.words]
    assert " ".join(words) == written
    assert [
        local.name for each in found if each.kind == "simple" for local in each.declared
    ] == names


@pytest.mark.parametrize("text", ["again: x = 1;", "if (int i = 1; i) x = 1;", "x = 1"])
def test_statements_that_are_not_read_are_refused(text):
    with pytest.raises(NotCoveredError):
        statements(read(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "int x = 1, *const y, z[2][3] = {};",
            ["int|x||= 1", "int|y||", "int|z|[ 2 ] [ 3 ]|= { }"],
        ),
        ("const T::U<int> x(1)", ["const T :: U < int >|x||( 1 )"]),
        ("T (&tile)[8] = tiles[0];", ["T|tile|[ 8 ]|= tiles [ 0 ]"]),
        ("__align__(16) float4 v{1};", ["float4|v||{ 1 }"]),
        ("unsigned long long int s;", ["unsigned long long int|s||"]),
        ("x = 1;", []),
        ("a * b + c;", []),
        ("f(&x);", []),
        ("out[i] = a < b;", []),
        ("return x;", []),
        ("static int s;", []),
        ("__shared__ int s[32];", []),
        ("auto [a, b] = pair;", []),
    ],
)
def test_variables_that_a_statement_declares(text, expected):
    parts = [
        [*map(spaced, (each.spec,)), each.name, spaced(each.array), spaced(each.value)]
        for each in locals_of(read(text))
    ]
    assert ["|".join(each) for each in parts] == expected


@pytest.mark.parametrize(
    ("run", "body", "before", "expected"),
    [
        (
            renamed,
            "int x = 0; for (int x = 1; x < n; ++x) { out[x] = p.x; } x = n;",
            "",
            (
                "int x = 0; for (int x_cudalab_2 = 1; x_cudalab_2 < n; ++x_cudalab_2) "
                "{ out[x_cudalab_2] = p.x; } x = n;"
            ),
        ),
        (
            named,
            "out[0] = sum([&] { return n; });",
            SUM,
            "const auto cudalab_lambda_1 = [&] { return n; }; out[0] = sum(cudalab_lambda_1);",
        ),
        (
            branched,
            "if (n && (n > 2 || __any_sync(~0u, n))) n = 1;",
            "",
            (
                "bool cudalab_chosen_1 = n; if (cudalab_chosen_1) { "
                "bool cudalab_chosen_2 = n > 2; if (!cudalab_chosen_2) "
                "cudalab_chosen_2 = __any_sync(~0u, n); cudalab_chosen_1 = (cudalab_chosen_2); } "
                "if (cudalab_chosen_1) n = 1;"
            ),
        ),
        (
            gathered,
            "for (int i = 0; i < n; ++i) { if (out[i]) { auto g = __cg_here(); } n += i; }",
            "",
            (
                "{ int i = 0; bool cudalab_gathers; do { cudalab_gathers = false; "
                "for (; i < n; ++i) { if (out[i]) { cudalab_gathers = true; break; } n += i; } "
                "if (cudalab_gathers) { { auto g = __cg_here(); } n += i; ++i; } } "
                "while (cudalab_gathers); }"
            ),
        ),
    ],
)
def test_passes_that_normalize(run, body, before, expected):
    assert after(run, body, before=before, is_program=run is gathered) == in_words(expected)
    assert after(run, "out[n] = n ? 1 : 2;") == in_words("out[n] = n ? 1 : 2;")


def test_a_lambda_that_is_called_at_once_needs_no_name():
    body = "out[0] = sum([&] { return n; }());"
    assert after(named, body, before=SUM) == in_words(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "int r = 0; for (int i = 0; i < n; ++i) { __syncthreads(); if (++r > 4) break; }",
            "int r = 0; for (int i = 0; i < n; ++i) { __syncthreads(); ++r; if (r > 4) break; }",
        ),
        (
            "int r = 0; while (--r) { __syncthreads(); }",
            "int r = 0; while (true) { --r; if (!(r)) break; __syncthreads(); }",
        ),
        (
            "int r = 0; for (; ++r < n && r; n = 1) __syncthreads();",
            "int r = 0; for (; ; n = 1) { ++r; if (!(r < n && r)) break; __syncthreads(); }",
        ),
        (
            "int r = 0; for (;;) { if (n) { __syncthreads(); } else if (++r == n) n = 2; }",
            "int r = 0; for (;;) { if (n) { __syncthreads(); } else { ++r; if (r == n) n = 2; } }",
        ),
        ("int r = 0; if (--r) __syncthreads();", "int r = 0; --r; if (r) __syncthreads();"),
        (
            "unsigned r = 0; for (;;) { __syncthreads(); if (r++ > 4) break; }",
            (
                "unsigned r = 0; for (;;) { __syncthreads(); unsigned cudalab_before_1; "
                "cudalab_before_1 = r; r++; if (cudalab_before_1 > 4) break; }"
            ),
        ),
        (
            "while (n--) { __syncthreads(); }",
            (
                "while (true) { int cudalab_before_1; cudalab_before_1 = n; n--; "
                "if (!(cudalab_before_1)) break; __syncthreads(); }"
            ),
        ),
        (
            "int r = 0; do __syncthreads(); while (++r < n);",
            "int r = 0; do { __syncthreads(); ++r; } while (r < n);",
        ),
        (
            "int r = 0; do { __syncthreads(); } while (r++ < n);",
            (
                "int r = 0; int cudalab_before_1; do { __syncthreads(); "
                "cudalab_before_1 = r; r++; } while (cudalab_before_1 < n);"
            ),
        ),
        (
            "int r = 0; for (;;) { __syncthreads(); if (n < (out[++r]) || r) break; }",
            "int r = 0; for (;;) { __syncthreads(); ++r; if (n < (out[r]) || r) break; }",
        ),
    ],
)
def test_what_counts_in_a_condition_stands_before_it(body, expected):
    assert after(counted_first, body, is_program=True) == in_words(expected)
    assert after(counted_first, body) == in_words(body)  # a lab's kernel compares the answers


@pytest.mark.parametrize(
    "body",
    [
        "int r = 0; for (;;) { if (++r > 4) break; }",  # threads meet nowhere
        "int r = 0; for (;;) { __syncthreads(); if (n && r++ > 4) break; }",
        "int r = 0; for (;;) { __syncthreads(); if (n ? r++ : 4) break; }",
        "int r = 0; for (;;) { __syncthreads(); if (r, r++) break; }",
        "int r = 0; for (;;) { __syncthreads(); if (r << r++) break; }",
        "int r = 0; for (;;) { __syncthreads(); if (r++ > --n) break; }",
        "int r = 0; for (;;) { __syncthreads(); if ([&] { return r++; }()) break; }",
        "int r = 0; for (;;) { __syncthreads(); if (++r += 2) break; }",
        "int r[2]; for (;;) { __syncthreads(); if (++r[0] > 2) break; }",
        "Number r; for (;;) { __syncthreads(); if (++r > 2) break; }",
        "int* r = out; for (;;) { __syncthreads(); if (++r > out) break; }",
        "for (;;) { __syncthreads(); if (++out[0] > 2) break; }",
        "int r = 0; do { if (n) continue; __syncthreads(); } while (++r < n);",
    ],
)
def test_other_conditions_stay(body):
    assert after(counted_first, body, is_program=True) == in_words(body)


ROUND = "{ out[i] = i; __syncthreads(); }"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f"int i; for (i = 0; i < n; ++i) {ROUND} if (n) for (i = n; i > 0; --i) {ROUND}",
            f"for (int i = 0; i < n; ++i) {ROUND} if (n) for (int i = n; i > 0; --i) {ROUND}",
        ),
        (
            f"int a = 1, i, *p = out; for (i = 0; i < n; ++i) {ROUND}",
            f"int a = 1; int * p = out; for (int i = 0; i < n; ++i) {ROUND}",
        ),
        (
            "unsigned i, j; for (i = 0; i < n; ++i) for (j = i; j < n; ++j) n = j;",
            "for (unsigned i = 0; i < n; ++i) for (unsigned j = i; j < n; ++j) n = j;",
        ),
        (  # a loop in the loop that sets its counter
            "int i; for (i = 0; i < n; ++i) { for (i = i; i < 3; ++i) n = i; }",
            "for (int i = 0; i < n; ++i) { for (i = i; i < 3; ++i) n = i; }",
        ),
        (
            "int i; for (i = 0; i < n; ++i) { for (i = 1; i < 3; ++i) n = i; }",
            "for (int i = 0; i < n; ++i) { for (i = 1; i < 3; ++i) n = i; }",
        ),
        (
            "if (n) { int i; for (i = 0; i < n; ++i) n = i; } for (int i = 0; i < n; ++i) n = i;",
            "if (n) { for (int i = 0; i < n; ++i) n = i; } for (int i = 0; i < n; ++i) n = i;",
        ),
    ],
)
def test_loops_that_first_set_a_counter_declare_it(body, expected):
    assert after(own_counters, body) == in_words(expected)


@pytest.mark.parametrize(
    "body",
    [
        "int i; for (i = 0; i < n; ++i) n = 1; out[0] = i;",
        "int i; for (i = 0; i < n; ++i) n = 1; for (i = i + 1; i < n; ++i) n = 2;",
        "int i; for (i = 0; i < n; ++i) n = 1; while (i < n) n = 2;",
        "int i; for (i = 0, n = 1; i < n; ++i) n = 1;",
        "int i; for (i += 0; i < n; ++i) n = 1;",
        "int i = 2; for (i = 0; i < n; ++i) n = 1;",
        "int i; for (; i < n; ++i) n = 1;",
        "int i; for (i = 0; i < n; ++i) n = 1; { int i = 3; out[i] = 1; }",
        "int i; int* p = out; for (i = 0; i < n; ++i) p = &i; for (i = 5; i < n; ++i) n = *p;",
        "int i; for (i = 0; i < n; ++i) keep(i);",  # perhaps by reference
        "int i; switch (n) { case 1: i = 2; out[i] = i; } for (i = 0; i < n; ++i) n = 1;",
        "float* i; for (i = p; i < q; ++i) n = 1;",
        "Complex i; for (i = 0; i < q; ++i) n = 1;",
    ],
)
def test_counters_that_mean_something_elsewhere_stay(body):
    assert after(own_counters, body) == in_words(body)


def test_a_choice_between_calls_becomes_a_branch():
    body = "const int x = n ? __shfl_sync(~0u, n, 0) : 2;"
    made = after(branched, body).partition(" if ")[2]
    expected = "if (n) cudalab_chosen_1 = __shfl_sync(~0u, n, 0); else cudalab_chosen_1 = 2;"
    assert made == f"{in_words(expected)[3:]} {in_words('const int x = cudalab_chosen_1;')}"


def analysed(body, **how):
    own = unit(body, **how)
    return own, Analysis(own, own.kernels())


def test_uniformity_is_a_level_for_each_name():
    _, analysis = analysed("""
        int all = n + blockIdx.x, warp = threadIdx.x / 32, own = threadIdx.x, later = all;
        __syncthreads();
        if (threadIdx.x < 5) later = 1;
        out[own] = all + warp + later;""")
    (facts,) = analysis.facts.values()
    expected = {"all": Level.BLOCK, "warp": Level.WARP, "own": Level.THREAD, "later": Level.THREAD}
    assert {name: facts.levels.names[name] for name in expected} == expected


def test_parallel_regions_end_where_threads_meet():
    own, analysis = analysed("""
        int x = threadIdx.x; int total = n; __syncthreads(); out[x] = __ballot_sync(~0u, x) + total;
        for (int i = 0; i < n; ++i) { __syncthreads(); } if (n) { out[0] = x; }""")
    body = Body(analysis, own.kernels()[0], PASSES, masked=False)
    parts = PASSES.cut(body, body.facts.statements, True)
    kinds = ["plain", "scalar", "barrier", "call", "plain", "construct", "plain"]
    assert [part.kind for part in parts] == kinds
    assert set(kinds) | {"step"} == PASSES.write.keys()
    assert [part.last for part in parts] == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("for (int i = 2; i <= 64; i *= 2) { if (n >= i) m = i; }", "scalar"),
        ("if (n > 3) { int k = n; m = k; } else m = 2;", "scalar"),
        ("while (m < n) m = 2 * m;", "scalar"),
        ("do { ++m; } while (m < n);", "scalar"),
        ("if (n > 3) { m = 1; x = 2; }", "plain"),  # x is a thread's own
        ("if (x > 3) m = 1;", "plain"),
        ("for (int i = 0; i < n; ++i) m += out[i];", "plain"),  # memory may differ by then
        ("for (int i = 0; i < out[0]; ++i) m += i;", "plain"),
        ("if (n > 3) { m = 1; out[0] = 1; }", "plain"),
        ("if (n > 3) m = atomicAdd(out, 1);", "plain"),
        ("for (; ; ) { m = 1; if (m) break; }", "plain"),
    ],
)
def test_what_only_changes_variables_of_the_block_is_done_once(statement, kind):
    own, analysis = analysed(
        f"int x = threadIdx.x, m = 1; {statement} __syncthreads(); out[x] = m;"
    )
    body = Body(analysis, own.kernels()[0], PASSES, masked=False)
    parts = PASSES.cut(body, body.facts.statements, True)
    (part,) = (each for each in parts if spaced(each.statement.words) == in_words(statement))
    assert part.kind == kind
    assert body.facts.is_scalar_name("m") == (kind == "scalar")


def test_only_what_outlives_a_region_has_a_context_array():
    written = loops("""extern "C" __global__ void k(int* out, int n) {
        int kept = out[threadIdx.x], left = out[0]; out[1] = left; int again = threadIdx.x + n;
        __syncthreads(); out[again] = kept; }""").text
    assert "CUDALAB_VALUES(kept_cudalab_1," in written
    assert written.count("CUDALAB_VALUES(") == 1
    assert written.count("int again = threadIdx . x + n ;") == 3  # for types, and in both regions


@pytest.mark.parametrize(
    "value",
    [
        "out[threadIdx.x]",
        "*(out + threadIdx.x)",
        "(int)*(out + threadIdx.x)",
        "n + (Real)*(out + threadIdx.x)",
        "((Pair*)out + threadIdx.x)->x",
        "at(out + threadIdx.x)",
    ],
)
def test_what_reads_memory_is_not_computed_anew_behind_a_barrier(value):
    before = (
        "struct Pair { int x, y; }; typedef float Real; __device__ int at(int* p) { return *p; }"
    )
    written = loops(f"""{before} extern "C" __global__ void k(int* out, int n) {{
        int kept = {value}; __syncthreads(); out[threadIdx.x ^ 1] = kept; }}""").text
    assert "CUDALAB_VALUES(kept_cudalab_1," in written


@pytest.mark.parametrize(
    ("statement", "is_near"),
    [
        ("out[threadIdx.x + n] = n;", True),
        ("out[threadIdx.x] = out[n] + sizeof(*out);", True),
        ("out[2 * threadIdx.x] = n;", False),
        ("*(out + threadIdx.x) = n;", False),
        ("out[threadIdx.x] = (int)*out;", False),
        ("out[threadIdx.x] = at(out + 2 * threadIdx.x);", False),
    ],
)
def test_neighbours_access_neighbouring_elements(statement, is_near):
    before = "__device__ int at(int* p) { return *p; } "
    own, analysis = analysed(f"__syncthreads(); {statement}", before=before)
    facts = analysis.facts[own.kernels()[0]]
    assert Strides(facts).are_near(facts.statements[-1]) is is_near


@pytest.mark.parametrize("words", ["*out", "< *out", "x y = *out", "x y out->z", "(int)*out"])
def test_a_part_of_an_expression_may_follow_a_pointer(words):
    own = unit("")
    uses = own.uses(own.kernels()[0])
    assert uses.of(read(words)).pointers
    assert not uses.of(read(words.replace("*", "").replace("->", "."))).pointers
    assert not uses.of(read("2 * n < n * 3 && sizeof(*out)")).pointers


def test_a_reference_to_an_element_leads_to_the_array_and_not_to_the_index():
    written = loops("""extern "C" __global__ void k(int* out, int n) {
        int i = n + threadIdx.x, a[4]; int& r = a[i]; __syncthreads(); out[i] = r; }""").text
    assert "int i = n + threadIdx . x" in written  # anew in the second region
    assert "CUDALAB_VALUES(a_cudalab_" in written


def test_a_loop_with_a_barrier_goes_around_loops_over_threads():
    written = loops("""extern "C" __global__ void k(int* out, int n) {
        for (int i = 0; i < n; ++i) {
            out[threadIdx.x] += i; __syncthreads(); out[i] = 0; } }""").text
    head, _, rest = written.partition("for ( int i = 0")
    assert "CUDALAB_EACH" not in head
    assert rest.count("CUDALAB_EACH") == 2


def test_words_know_their_places_in_the_users_files():
    text = '# 7 "a.cu"\nint x;\n\nx +=\n1;\n#line 3 "b.cuh"\n#pragma unroll\nx /* \n */ = 2;'
    words = [f"{each.text} {each.place}" for each in read(text)]
    places = [
        "int a.cu:7",
        "x a.cu:7",
        "; a.cu:7",
        "x a.cu:9",
        "+= a.cu:9",
        "1 a.cu:10",
        "; a.cu:10",
    ]
    assert words == [*places, "x b.cuh:4", "= b.cuh:5", "2 b.cuh:5", "; b.cuh:5"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("template <class T> struct A<T*> : B { int x; };", {"A"}),
        ("typedef struct { int x; } P, *Q;", {"P", "Q"}),
        ("struct R { int x; } r, s[4];", {"R", "r", "s"}),
        ("enum E : int { ONE = 1 };", {"E"}),
        ("template <class T> B<T>::B(int i) : x(i) { }", {"B"}),
        ("template <class T> int B<T>::operator()(int i) { return i; }", {"B"}),
        ("A::~A() { }", {"A"}),
        ("C operator+(const A& a, const N::B<int>& b) { return a; }", {"A", "N", "B"}),
        ("auto g = [](int x) { return x; };", {"g"}),
        ("using U = A;", {"U"}),
        ("using N::f;", {"f"}),
        ("MACRO N::A<int, N::B> a{0}, *b;", {"a", "b"}),
        ("__device__ int f(int a), g(int);", {"f", "g"}),
    ],
)
def test_what_is_declared_outside_of_functions_is_known_by_its_names(text, names):
    (declaration,) = unit("", before=text).declarations[:1]
    assert declaration.names == names


def test_a_specialization_in_which_no_threads_meet_stays_as_it_is():
    text = "template <class T> __device__ T f(T a) { return a; } template <> __device__ int f<int>"
    own = unit("", before=f"{text}(int a) {{ return 1; }} ")
    assert [each.specialized for each in own.by_name["f"]] == [[]]
    assert [each.names for each in own.definitions] == [{"f"}]
    own = unit("", before=f"{text}(int a) {{ __syncthreads(); return 1; }} ")
    assert [spaced(each.specialized) for each in own.by_name["f"]] == ["", "< int >"]


def test_what_is_declared_with_a_word_does_not_have_it_in_a_body():
    text = (
        "A x; A f(int a) { return B(); } int g(A* a) { return 1; } using C = A; struct D { A a; };"
    )
    own = unit("", before=text)
    assert own.declared_with({"A", "x_"}) == {"x", "f", "g", "C", "D"}
    assert own.declared_with({"B"}) == set()


def test_numbers_of_a_file_are_those_that_do_not_change():
    text = "enum E { FEW = 4, MANY = 2048, NEXT }; const int N = 16; int changes = 5; "
    assert unit("", before=text).numbers == {"FEW": 4, "MANY": 2048, "N": 16}


def test_a_function_that_cannot_be_read_is_refused_whenever_it_is_asked_for():
    own = unit("out[0] = f(n);", before="__device__ int f(int a) { again: return a; } ")
    for _ in range(2):
        with pytest.raises(NotCoveredError, match="a label"):
            own.called_by(own.kernels()[0])


def test_a_kernel_with_a_specialization_keeps_its_fibers():
    text = "template <class T> __global__ void k(T* out) { out[threadIdx.x] = 1; } "
    assert loops(text, is_program=True).kernels == ["k"]
    special = "template <> __global__ void k<int>(int* out);"
    assert "several functions k" in loops(text + special, is_program=True).reasons["k"]


def test_a_method_finds_the_position_of_its_thread():
    method = "struct S { int x; __device__ int at() { return METHOD; } };"
    kernel = """extern "C" __global__ void k(int* out, int n) {
        S s{n}; __syncthreads(); out[threadIdx.x] = s.at(); }"""
    for value, is_needed in [("threadIdx.x", True), ("x", False)]:
        written = loops(f"{method.replace('METHOD', value)} {kernel}").text
        behind = written.rpartition("CUDALAB_EACH")[2]
        assert ("::cudalab::set_thread(threadIdx" in behind) is is_needed


def test_a_function_with_barriers_has_its_defaults():
    text = """__device__ int f(int a, int b = 2) { __syncthreads(); return a + b; }
        extern "C" __global__ void k(int* out, int n) { out[threadIdx.x] = f(CALL); }"""
    assert "int b = 2" in loops(text.replace("CALL", "threadIdx.x")).text


def test_what_a_call_meets_behind_a_comma_is_refused():
    text = """extern "C" __global__ void k(int* out, int n) {{ {} __syncthreads(); }}"""
    refused = loops(text.format("out[n] = (n, __ballot_sync(~0u, n));")).reasons["k"]
    assert "__ballot_sync behind a comma" in refused
    for statement in ("out[n] = (__ballot_sync(~0u, n), n);", "out[n] = __ballot_sync(~0u, n), n;"):
        assert loops(text.format(statement)).kernels == ["k"]


def test_a_program_may_hand_over_volatile_memory_in_any_place():
    function = "__device__ int at(int i, volatile int* p) { return p[i]; }"
    text = f"{function} __global__ void k(int* out) {{ out[threadIdx.x] = at(1, out); }}"
    assert loops(text, is_program=True).kernels == ["k"]
    assert loops(text.replace("__global__", 'extern "C" __global__')).kernels == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('asm(""); printf("%d", __shfl_sync(~0u, n, 0));', "printf between warp operations"),
        ("cudaMalloc(&out, n);", "cudaMalloc in a kernel"),
        ("while (atomicAdd(out, 0) == 0) { }", "a loop that waits for other threads"),
        ("while ((int)*out == n) { }", "a loop that waits for other threads"),
        ("auto p = &meets; p();", "the address of meets, which has barriers"),
        ("for (int i = 0; i < n; ++i) out[i] = 0;", "each thread has loops of its own"),
        ("out[0] = Wide() + n; out[1] = Wide();", "__syncthreads in a class or an operator"),
        ("Alias a; out[0] = a + n;", "__syncthreads in a class or an operator"),
        ("Clean c; out[0] = n;", "__syncthreads in a class or an operator"),
        ("out[0] = first(n);", "a library: first"),
        ("out[0] = elsewhere(n);", "elsewhere is in another file"),
        ("auto p = threads; out[0] = p(n);", "__syncthreads in a class or an operator"),
    ],
)
def test_each_pass_that_refuses_gives_its_reason(body, reason):
    before = """__device__ void meets() { __syncthreads(); }
        struct Wide { int x; }; using Alias = Wide; struct Clean { int x; ~Clean(); };
        __device__ Clean::~Clean() { __syncthreads(); }
        __device__ int operator+(const Wide& a, int b) { __syncthreads(); return b; }
        __device__ int first(cuda::atomic<int>* a) { return 1; }
        extern __device__ int elsewhere(int a);
        auto threads = [] __device__ (int i) { __syncthreads(); return i; }; """
    own = unit(body, before=before, is_program=True)
    kernel = own.kernels()[0]
    functions = own.check(kernel)
    reasons = []
    for refuse in PASSES.refuse:
        try:
            refuse(own, functions)
        except NotCoveredError as refused:
            reasons.append(str(refused))
    assert any(reason in each for each in reasons)
