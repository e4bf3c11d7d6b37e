"""The tree of CUDA C++: what it makes of small texts, and of all that this repository ships."""

import re
from pathlib import Path

import pytest

from cudalab.language.scopes import Scope
from cudalab.language.tokens import tokenize
from cudalab.language.tree import read
from cudalab.language.types import type_of

REPOSITORY = Path(__file__).parents[2]
SHIPPED = sorted(
    path
    for folder in ("kernels", "samples/programs")
    for path in (REPOSITORY / folder).rglob("*.cu*")
    if path.suffix in (".cu", ".cuh")
)


def tree(text, scope=None):
    tokens = tokenize(text)
    code = [token for token in tokens if token.kind != "directive"]
    return read(code, [token for token in tokens if token.kind == "directive"], scope), code


def statement(text, before=""):
    """The last statement of a function's body, its tree in brackets, and the text's types."""
    root, code = tree(f"{before}\nvoid f(int n, float x, int *p) {{ {text} }}")
    function = list(root.of_kind("function"))[-1]
    return function.children[-1].children[-1], code


def shape(node, code):
    """A tree as text: kinds with their children, names and literals as they are."""
    if node.kind in ("name", "literal"):
        return " ".join(token.text for token in code[node.first : node.last])
    inside = " ".join(shape(child, code) for child in node.children)
    return f"({' '.join(filter(None, (node.kind, node.text, inside)))})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 2 * n - 1;", "(binary - (binary + n (binary * 2 n)) 1)"),
        ("n << 1 + n & 3;", "(binary & (binary << n (binary + 1 n)) 3)"),
        ("n = n ? 1 : n = 2;", "(assign = n (conditional n 1 (assign = n 2)))"),
        ("(int)(x) + n;", "(binary + (cast int (group x)) n)"),
        ("(n)-1;", "(binary - (group n) 1)"),
        ("(float)-x;", "(cast float (unary - x))"),
        ("(unknown)x;", "(cast unknown x)"),
        ("(unknown)(x);", "(call (group unknown) x)"),
        ("(unknown *)(x);", "(cast (group x))"),
        ("-(int)-x * n;", "(binary * (unary - (cast int (unary - x))) n)"),
        ("p[n]++;", "(unary _++ (index p n))"),
        ("*p++ = 1;", "(assign = (unary * (unary _++ p)) 1)"),
        ("n < x > (p);", "(binary > (binary < n x) (group p))"),
        ("g<4>(n);", "(call g < 4 > n)"),
        ("A<B<int>>::c(n);", "(call A < B < int > > :: c n)"),
        ("n < 1 && x > (n);", "(binary && (binary < n 1) (binary > x (group n)))"),
        ("static_cast<int>(x);", "(named_cast static_cast x)"),
        ("unsigned(x) >> 1;", "(binary >> (construct unsigned x) 1)"),
        ("k<<<n, 2>>>(x);", "(call (launch k n 2) x)"),
        ("k<int><<<n, n >> 1>>>(x);", "(call (launch k < int > n (binary >> n 1)) x)"),
        ("a.b->c[n](x);", "(call (index (member c (member b a)) n) x)"),
        ("sizeof(int) * n;", "(binary * (sizeof sizeof) n)"),
        ("g(n, (n, 2), {1, n});", "(call g n (group (comma n 2)) (list 1 n))"),
        ("n <<= x, n;", "(comma (assign <<= n x) n)"),
        ("operator+(n, n);", "(call operator + n n)"),
        ('"a" PRIu64 "b";', '"a" PRIu64 "b"'),
        ("this->a;", "(member a this)"),
    ],
)
def test_expressions(text, expected):
    node, code = statement(text)
    assert node.kind == "expression"
    assert shape(node.children[0], code) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int a = 1, *b, c[4];", "a:integer b:pointer c:pointer"),
        ("const unsigned long long a = n;", "a:integer"),
        ("A b(n);", "b:unknown"),
        ("dim3 grid(n, 2);", "grid:class"),
        ("std::vector<std::pair<int, float>> v;", "v:unknown"),
        ("int (*function)(int);", "function:unknown"),
        ("auto a = n + 1;", "a:unknown"),
        ("unknown *a = p;", "a:pointer"),
        ("__shared__ float s[32][33];", "s:pointer"),
        ("[[maybe_unused]] const int &r = n;", "r:integer"),
        ("typedef float Real;", "Real:float"),
        ("int declared(int, float);", "declared:integer"),  # the most vexing parse
        ("T a(U());", "a:unknown"),
    ],
)
def test_declarations(text, names):
    node, _ = statement(text)
    assert " ".join(f"{name.name}:{name.type.kind}" for name in node.names) == names


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("void (*pick(int i))(int *) { return table[i]; }", "pick(i)"),
        ("auto pick(int i) -> void (*)(int *) { return table[i]; }", "pick(i)"),
        ("auto row(int i) -> int (&)[4] { return rows[i]; }", "row(i)"),
        ("int (*row(int i))[4] { return rows + i; }", "row(i)"),
        ("__device__ float (*op(int i))(float, float) { return add; }", "op(i)"),
        ("template <class T> void (*pick(T i))(T *) { return table[i]; }", "pick(i)"),
        ("void (*C::pick(int i) const)(int *) { return table[i]; }", "C::pick(i)"),
        ("struct C { void (*pick(int i) const)(int *) { return table[i]; } };", "pick(i)"),
        ("extern void (*pick(int i, void (*other)(int)))(int);", ""),
        ("void (*table[N])(int *) = {a, b}, (*one)(int *) = a;", ""),
    ],
)
def test_results_that_point_to_functions(text, function):
    root, _ = tree(f"{text} struct S {{ void go(int *p) {{ f<<<1, 1>>>(p); }} }};")
    functions = [
        f"{each.text}({' '.join(name.name for one in each.parameters for name in one.names)})"
        for each in root.of_kind("function")
    ]
    assert functions == [*filter(None, [function]), "go(p)"]
    assert len(list(root.of_kind("launch"))) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int (*table[N])(int);", "table:unknown"),
        ("int (*(*f)(int n))(int m);", "f:unknown"),
        ("int (*const MACRO f)(int);", "f:unknown"),
        ("int (*f(int n))(int m);", "f:unknown"),
    ],
)
def test_pointers_to_functions_have_their_own_name(text, names):
    node, _ = statement(text)
    assert " ".join(f"{name.name}:{name.type.kind}" for name in node.names) == names


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a * b;", "declaration"),
        ("n * x;", "expression"),
        ("a(b);", "expression"),
        ("CHECK(n) n = 2;", "expression"),
        ("FOR(i, n) { n++; }", "macro"),
        ("label: n = 1;", "expression"),
        ("if (int m = n) n = m; else { n = 2; }", "if"),
        ("if constexpr (sizeof(int) == 4) return;", "if"),
        ("for (int i = 0, j = n; i < j; i++, j--) ;", "for"),
        ("for (const auto &each : items) use(each);", "for"),
        ("do n--; while (n > 0);", "do"),
        ("switch (n) { case 1: break; default: n = 2; }", "switch"),
        ("try { n = 1; } catch (const E &e) { n = 2; }", "catch"),
        ('asm volatile("bar.sync 0;" ::: "memory");', "assembly"),
        ("} ) what is this", "unknown"),
    ],
)
def test_statements(text, kind):
    if kind == "unknown":
        root, _ = tree(f"void f() {{ ; {text}")  # it does not fail
        assert any(root.of_kind("unknown"))
    else:
        assert statement(text)[0].kind == kind


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("n + 1", "integer"),
        ("n + 1.0f", "float"),
        ("n < x", "bool"),
        ("p + n", "pointer"),
        ("p[n]", "integer"),
        ("*p", "integer"),
        ("threadIdx.x * n", "integer"),
        ("(unsigned char)x << 2", "integer"),
        ("n ? 1 : 2.0", "float"),
        ("make_float2(x, x).y", "float"),
        ("min(n, 3)", "integer"),
        ("unknown(n)", "unknown"),
        ("v.value", "integer"),
        ("v.next->real", "float"),
        ("v.method(n)", "unknown"),
        ("twice(x)", "float"),
        ("0x1f", "integer"),
        ("1e3", "float"),
        ("T", "integer"),
        ("deduced", "float"),
        ("BIG", "integer"),
        ("nothing", "unknown"),
    ],
)
def test_types(expression, kind):
    before = (
        "struct V { int value : 3; V *next; float real; int method(int); };"
        "float twice(float); template <class T> T dependent(T);"
        "enum { BIG = 7 };"
    )
    node, _ = statement(f"V v; int T = 1; auto deduced = x * n; {expression};", before)
    assert type_of(node.children[0]).kind == kind


def test_scopes_and_shadowing():
    text = (
        "float x; void f(float y) { int x = y; { float x = y; g(x); } g(x); }  void h() { g(x); }"
    )
    root, _ = tree(text)
    calls = [node.children[1] for node in root.of_kind("call")]
    assert [type_of(call).kind for call in calls] == ["float", "integer", "float"]


def test_a_name_is_known_behind_its_declaration_only():
    root, _ = tree("float x; void f() { g(x); int x = 1; g(x); }")
    calls = [node.children[1] for node in root.of_kind("call")]
    assert [type_of(call).kind for call in calls] == ["float", "integer"]


def test_members_are_known_before_they_are_declared():
    root, _ = tree("struct A { int f() { return x; } float x; };")
    (value,) = (node.children[0] for node in root.of_kind("return"))
    assert type_of(value).kind == "float"


def test_a_members_body_outside_its_class_knows_the_class():
    text = "float x; namespace a { struct B { void f(); int x; }; } void a::B::f() { g(x); }"
    (call,) = tree(text)[0].of_kind("call")
    assert type_of(call.children[1]).kind == "integer"


def test_an_unknown_base_may_have_any_variable():
    text = "float x; template <class T> struct A : Base<T> { void f() { g(x); } };"
    (call,) = tree(text)[0].of_kind("call")
    assert type_of(call.children[1]).kind == "unknown"


def test_a_templates_parameter_is_a_type_in_the_template_only():
    text = "template <typename T> void f(T a) { (int)(T)a; } void g(int T) { (int)(T) + T; }"
    casts = [node for node in tree(text)[0].of_kind("cast") if node.children]
    assert [node.children[0].kind for node in casts] == ["cast", "name", "group"]


def test_branches_of_a_condition_that_share_braces():
    text = "void f(int n) {\n#ifdef A\nif (n) {\n#else\nif (!n) {\n#endif\nn = 1; }\n}\nint g() {}"
    assert [node.text for node in tree(text)[0].children] == ["f", "g"]


def test_two_declarations_that_differ_make_a_name_unknown():
    scope = Scope("namespace")
    tree("#if A\ntypedef float T;\nint a;\n#else\ntypedef int T;\nint a;\n#endif", scope)
    assert scope.find("T").type.kind == "unknown"
    assert scope.find("a").type.kind == "integer"


def test_declarations_that_are_added_later_are_merged_with_those_before():
    scope = Scope("namespace")
    tree("int f(int); int f(int); int a;", scope)
    assert scope.find("f").parameters is not None
    tree("int f(float); float a;", scope)
    assert scope.find("f").parameters is None
    assert scope.find("a").type.kind == "unknown"
    tree("int f(char);", scope)
    assert scope.find("f").parameters is None


def test_a_class_is_known_by_its_definition_wherever_it_was_declared_before():
    text = "struct A; template <class T> struct B; struct A { int x; }; template <class T> "
    root, _ = tree(f"{text}struct B {{ T x; }}; void f(A a, B<int> b) {{ g(a.x); g(b.x); }}")
    assert root.scope.find("B").is_template
    assert not root.scope.find("A").is_template
    calls = [node.children[1] for node in root.of_kind("call")]
    assert [type_of(call).kind for call in calls] == ["integer", "unknown"]


def test_a_specialization_with_a_base_is_a_class():
    root, _ = tree("struct B { int x; }; template <> struct A<int> : B { int f() { return x; } };")
    assert [node.text for node in root.of_kind("class")] == ["B", "A"]
    (value,) = (node.children[0] for node in root.of_kind("return"))
    assert type_of(value).kind == "integer"


def test_a_macro_before_a_qualified_type_is_no_type():
    root, _ = tree("API a::B<int> x{1}; API a::C f() { return x; } T A::y = 2; T A::z;")
    names = [[each.name for each in node.names] for node in root.children]
    assert names == [["x"], ["f"], ["y"], ["z"]]


def test_an_initializer_may_name_what_it_initializes():
    root, _ = tree("void f() { auto a = [](int i) { return a(i); }; auto b = b(1) + b; g(b); }")
    (*_, call) = root.of_kind("call")
    assert type_of(call.children[1]).kind == "unknown"


def test_a_member_without_a_type_belongs_to_its_class_outside_of_it():
    text = "struct A { A(); ~A(); operator bool(); int x; }; A::A() { g(x); } A::~A() { g(x); } "
    root, _ = tree(text + "A::operator bool() { return g(x); }")
    assert [node.text for node in root.of_kind("function")] == ["A::A", "A::~A", "A::operator"]
    assert [type_of(call.children[1]).kind for call in root.of_kind("call")] == ["integer"] * 3


def test_lambdas_and_operators():
    text = (
        "struct A { __device__ A operator+(A b) const { return b; } operator int() { return 1; } };"
        "void f() { g([=] __device__ (int i) { return i << 1; }); }"
    )
    root, _ = tree(text)
    assert [node.text for node in root.of_kind("function")] == ["operator", "operator", "f"]
    (closure,) = root.of_kind("lambda")
    assert closure.words == {"__device__"}
    assert [node.text for node in closure.of_kind("binary")] == ["<<"]


def test_heads_of_functions():
    text = (
        "template <class T, int N = 4> __global__ void __launch_bounds__(9, 2) k(T *a, int n) {}\n"
        'extern "C" __device__ float g(float, ...) noexcept { return 1; }\n'
        "A::A(int x) : a(x), b{x} { c = x; }\nauto h() -> int { return 1; }\n"
        "API static inline int i(void) { return 0; }\nint main() try { } catch (...) { }\n"
    )
    root, _ = tree(text)
    functions = list(root.of_kind("function"))
    assert [node.text for node in functions] == ["k", "g", "A::A", "h", "i", "main"]
    assert functions[0].words == {"__global__"}
    assert [node.type.kind for node in functions[3:]] == ["integer", "integer", "integer"]
    assert not list(root.of_kind("unknown"))


def test_a_macro_may_stand_for_a_function_before_another_one():
    root, _ = tree("GETTER(id)\n__device__ int f() { return 1; }\n__align__(8) int x;\n")
    assert [node.kind for node in root.children] == ["macro", "function", "declaration"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_children_are_within_their_parents_one_after_the_other(path):
    root, code = tree(path.read_text())
    assert (root.first, root.last) == (0, len(code))
    for node in root.walk():
        at = node.first
        for child in node.children:
            assert at <= child.first <= child.last <= node.last
            at = child.last
    ends = [0, *(child.last for child in root.children)]  # without a gap
    assert [*(child.first for child in root.children), len(code)] == ends
    assert not [node for node in root.of_kind("unknown") if node.first < node.last]


KINDS = {f"{word}_statement": word for word in ("if", "for", "while", "do", "switch", "return")} | {
    "for_range_loop": "for",
    "break_statement": "jump",
    "continue_statement": "jump",
    "goto_statement": "jump",
    "function_definition": "function",
    "lambda_expression": "lambda",
    "expression_statement": "expression",
    "throw_statement": "expression",
}
# What the grammar of tree-sitter does not know, blanked: pragmas and attributes of functions.
UNKNOWN_THERE = re.compile(
    r"^[ \t]*#[ \t]*pragma[^\n]*|__(?:align|launch_bounds)__\s*\((?:[^()]|\([^()]*\))*\)"
    r"|\b__(?:grid_constant|forceinline|noinline|restrict)__\b",
    re.MULTILINE,
)


def test_boundaries_agree_with_those_of_tree_sitter():
    tree_sitter = pytest.importorskip("tree_sitter", reason="an oracle of the extra `test`")
    grammar = pytest.importorskip("tree_sitter_cuda", reason="an oracle of the extra `test`")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    compared, different = 0, []
    for path in SHIPPED:
        text = path.read_text().encode("ascii", "replace").decode()  # a byte for each character
        blanked = UNKNOWN_THERE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        theirs, errors = boundaries_there(parser.parse(blanked.encode()).root_node)
        ours = boundaries(text)
        compared += len(theirs)
        for kind, first, last in theirs ^ ours:
            explained = (
                any(start <= last and end >= first for start, end in errors)
                or text[first:].startswith(("__forceinline__", "__noinline__", "__launch_bounds__"))
                or re.match(r"[^{;]*\) try \{", text[first:])  # it knows no function that is a try
                or re.match(r"\w+ \(&\w+\)\[", text[first:])  # nor references to arrays
                or re.search(r"(?:forceinline|noinline|launch_bounds)__[^;{}]*$", text[:first])
            )
            if not explained:
                different.append(f"{path.name}: {kind} {text[first:last][:60]}")
    assert different == []
    assert compared > 4000


def boundaries(text):
    root, code = tree(text)
    result = set()
    for node in root.of_kind(*KINDS.values(), "assembly"):
        if node.text != "static_assert":
            kind = "expression" if node.kind == "assembly" else node.kind
            result.add((kind, code[node.first].start, code[node.last - 1].end))
    return result


def boundaries_there(root):
    result, errors, nodes = set(), [], [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type == "ERROR" or node.is_missing:
            errors.append((node.start_byte, node.end_byte))
        kind = KINDS.get(node.type)
        has_body = any(child.type == "compound_statement" for child in node.children)
        if (kind == "function" and not has_body) or node.end_byte - node.start_byte == 1:
            continue
        if kind:
            result.add((kind, node.start_byte, node.end_byte))
    return result, errors
