"""The rewriting of CUDA C++ for a host's compiler: tokens, declarations, edits."""

import pytest
from whole_programs import rewrite

from cudalab.backends.cpu.compiler import cccl
from cudalab.errors import NoDeviceError
from cudalab.language.tokens import Lines, brackets, closing, closing_angle, opening, tokenize
from cudalab.program.files import File, gather, included, is_for_host
from cudalab.program.observed.build import inlined
from cudalab.program.rewrite import edited
from cudalab.program.rewrite.parsed import Parsed, read


def rewritten(text, label="a.cu"):
    (answer,) = rewrite([File(label, label, text)], ["0-a.cpp"])
    first, rest = answer.split("\n", 1)
    assert first == f'#line 1 "{label}"'
    assert rest.count("\n") == text.count("\n") + 1  # lines keep their numbers
    return rest[:-1]


@pytest.mark.skipif(cccl.installed() is None, reason="needs Thrust's headers")
@pytest.mark.parametrize("observed", [False, True])
def test_what_a_header_includes_of_thrust_brings_the_algorithms_too(observed):
    source = File("a.cu", "a.cu", '#include "b.h"\nint main() { thrust::sort(a, a + 3); }\n')
    header = File("b.h", "b.h", "#include <thrust/device_vector.h>\n")
    source.includes = {(9, 14): 1}
    first, _ = edited([source, header], ["0-a.cpp", "1-b.cpp"], observed=observed)
    assert first.rewritten().startswith('#include <thrust/sort.h>\n#line 1 "a.cu"\n')
    source.includes = {}  # nothing of the program includes Thrust, and the compiler says so
    (alone,) = edited([source], ["0-a.cpp"], observed=observed)
    assert alone.rewritten().startswith('#line 1 "a.cu"\n')


@pytest.mark.parametrize(("header", "for_host"), [("cuda_runtime.h", False), ("vector", True)])
def test_a_file_for_the_host_reaches_no_header_of_cuda_through_others(tmp_path, header, for_host):
    (tmp_path / "main.cpp").write_text('#include "a.h"\nint main() {}\n')
    (tmp_path / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "b.h").write_text(f'#include "a.h"\n#include <{header}>\n')
    files = gather([str(tmp_path / "main.cpp")], [])
    assert included(files, 0) == {0, 1, 2}
    assert included(files, 1) == {1, 2}
    assert is_for_host(files, 0) == for_host


def test_an_instance_is_enlisted_where_its_address_is_taken_and_not_where_it_is_launched():
    kernel = "template <class T> __global__ void k(T *p) {}\n"
    text = rewritten(f"{kernel}void f(int *p) {{ k<int><<<1, 2>>>(p); use(&k<int>, k<char>); }}\n")
    launch, _, uses = text.rpartition(";")[0].partition("use(")
    assert "cudalab_enlisted" not in launch
    assert uses == (
        '::cudalab::cudalab_enlisted(&k<int>, "k<int>"), '
        '::cudalab::cudalab_enlisted(k<char>, "k<char>"))'
    )


def test_a_header_of_the_program_may_have_the_name_of_one_that_is_missing(tmp_path):
    (tmp_path / "main.cu").write_text('#include "cufft_plans.h"\nint main() {}\n')
    with pytest.raises(NoDeviceError, match=r"cuFFT \(.*main.cu:1\)"):
        edited(gather([str(tmp_path / "main.cu")], []), ["0-main.cpp"])
    (tmp_path / "cufft_plans.h").write_text("#include <cstdio>\n")
    main, _ = edited(gather([str(tmp_path / "main.cu")], []), ["0-main.cpp", "1-plans.cpp"])
    assert '#include "1-plans.cpp"\n' in main.rewritten()


def words(text):
    return [token.text for token in tokenize(text)]


# Tokens ------------------------------------------------------------------------------------------


def test_comments_and_spaces_are_no_tokens():
    assert words("a // b <<< c\n/* d\n */ e") == ["a", "e"]
    assert words("a // continued \\\n b\nc") == ["a", "c"]


def test_literals_are_whole():
    assert words(r'f("a\"b", u8"<<<", L"x", "")') == [
        *("f", "(", r'"a\"b"', ",", 'u8"<<<"', ",", 'L"x"', ",", '""', ")"),
    ]
    assert words('R"x(a)" // )x" b') == ['R"x(a)" // )x"', "b"]
    assert words(r"'\'' '<' U'y'") == [r"'\''", "'<'", "U'y'"]


def test_numbers_with_separators_and_exponents():
    assert words("1'000'000 0x1p-3 1.5e+10f .5 1..2") == [
        *("1'000'000", "0x1p-3", "1.5e+10f", ".5", "1..2"),
    ]


def test_an_apostrophe_in_a_directive_opens_nothing():
    assert words("#error don't\na") == ["#error don't", "a"]


def test_a_directive_may_go_on():
    assert words("#define A \\\n b /* c\n d */ e\nf") == ["#define A \\\n b /* c\n d */ e", "f"]


def test_signs_are_single_characters():
    assert words("a<<<b>>>(c)->d::e") == [
        *("a", "<", "<", "<", "b", ">", ">", ">", "(", "c", ")", "->", "d", "::", "e"),
    ]


def test_brackets_belong_together_by_their_kind():
    tokens = tokenize("f(a[b) { c(]; } )")
    assert sorted(brackets(tokens)) == [(1, 5), (6, 11)]
    assert closing(tokens, 0) == 5  # of the first bracket from there on
    assert closing(tokens, 3) is None
    assert opening(tokens, 11) == 6
    assert opening(tokens, 12) is None


def test_angles():
    tokens = tokenize("f<g<(a > b)>, 3>(x)")
    assert closing_angle(tokens, 1) == 12
    assert closing_angle(tokenize("a < b; c > d"), 1) is None


def test_lines():
    lines = Lines("a\nbc\n\nd")
    assert [lines[i] for i in (0, 1, 2, 4, 5, 6)] == [1, 1, 2, 2, 3, 4]


# Launches ----------------------------------------------------------------------------------------

KERNEL = "__global__ void k(int *a, int n);\n"
CLOSURE = "[=](auto&... cudalab_a) CUDALAB_CLOSURE { k(cudalab_a...); }"
CALL = f'::cudalab::cudalab_typed_call(k, {CLOSURE}, "k", ::cudalab::cudalab_config('


@pytest.mark.parametrize(
    ("launch", "configuration"),
    [
        ("k<<<1, 2>>>(a, n);", "1, 2"),
        ("k <<< 1, 2 >>> (a, n);", " 1, 2 "),
        ("k << <1, 2>> >(a, n);", "1, 2"),
        ("k<<<g[i], f(x, y), (a > b) * 4, s>>>(a, n);", "g[i], f(x, y), (a > b) * 4, s"),
        ("k<<<n >> 2, sizeof(T<int>)>>>(a, n);", "n >> 2, sizeof(T<int>)"),
        ("k<<<1, size<int>>>>(a, n);", "1, size<int>"),
        ("k<<<{1, 2}, dim3{3}>>>(a, n);", "{1, 2}, dim3{3}"),
        ("k<<<1, 2 /* >>>( */>>>(a, n);", "1, 2 /* >>>( */"),
    ],
)
def test_launch(launch, configuration):
    arguments = launch[launch.rindex("(") :]
    between = " " if ">>> (" in launch else ""
    assert rewritten(f"{KERNEL}void f() {{ {launch} }}\n").splitlines()[1] == (
        f"void f() {{ {CALL}{configuration})){between}{arguments} }}"
    )


@pytest.mark.parametrize(
    ("kernel", "prefix"),
    [
        ("t<256>", ""),
        ("t<int, N * 2>", "else "),
        ("a::b::t<decltype(x)>", "if (x) "),
        ("::t", "return "),
        ("Space<int>::t", ""),
    ],
)
def test_expression_that_is_launched(kernel, prefix):
    typed = f"[=](auto cudalab_t) -> decltype(cudalab_t({kernel}))"
    typed += f" {{ return cudalab_t({kernel}); }}"
    closure = f"[=](auto&... cudalab_a) CUDALAB_CLOSURE {{ {kernel}(cudalab_a...); }}"
    call = f'{typed}, {closure}, "{kernel}"'
    assert rewritten(f"void f() {{ {prefix}{kernel}<<<1, 2>>>(x); }}") == (
        f"void f() {{ {prefix}::cudalab::cudalab_any_call({call},"
        " ::cudalab::cudalab_config(1, 2))(x); }"
    )


@pytest.mark.parametrize(
    ("pointer", "prefix"),
    [
        ("(*p)", ""),
        ("table[i]", ""),
        ("table[i][j].kernel", ""),
        ("self->kernel", ""),
        ("pick(1, 2)", "{ "),
        ("(n > 1 ? p : q)", "; "),
    ],
)
def test_pointer_that_is_launched(pointer, prefix):
    assert rewritten(f"void f() {{ {prefix}{pointer}<<<1, 2>>>(x); }}") == (
        f'void f() {{ {prefix}::cudalab::cudalab_typed_call({pointer}, "{pointer}",'
        " ::cudalab::cudalab_config(1, 2))(x); }"
    )


@pytest.mark.parametrize(
    "text",
    [
        '"k<<<1, 2>>>(a)"',
        "// k<<<1, 2>>>(a)",
        "/* k<<<1,\n2>>>(a) */",
        'R"(k<<<1, 2>>>(a))"',
        "a << b < c >> d",
        "operator<< <int>(x)",
        "f<g<h<int>>>(x)",
        "x = a <<b;",
    ],
)
def test_no_launch(text):
    assert rewritten(text) == text


def test_a_launch_over_lines_keeps_them():
    text = f"{KERNEL}void f() {{\n  k\n  <<<\n    1, 2\n  >>>\n  (a,\n n);\n}}\n"
    lines = rewritten(text).splitlines()
    assert lines[5] == "  ))"
    assert lines[7] == " n);"


@pytest.mark.parametrize("body", ["", " { begin();", " { begin(); {", " { for (;;) { one(); }"])
def test_launch_behind_a_macro_that_ends_its_statements(body):
    text = f"#define BEGIN{body}\n{KERNEL}void f() {{ BEGIN t<1, 2><<<1, 2>>>(x); BEGIN g(x); }}"
    assert "BEGIN ::cudalab::cudalab_any_call(" in rewritten(text)
    assert "BEGIN g(x); }" in rewritten(text)


def test_launch_in_a_macro():
    text = "#define GO(k, ...) \\\n  k \\\n  <<<1, \\\n 2>>>(__VA_ARGS__)\nint x;\n"
    lines = rewritten(text).splitlines()
    assert all(line.endswith("\\") for line in lines[:3])
    assert "{ k(cudalab_a...); }, #k, ::cudalab::cudalab_config(" in "".join(lines)
    assert lines[4] == "int x;"


@pytest.mark.parametrize(
    "declarations",
    [
        "template <class T> __global__ void k(T *a);",
        "__global__ void k(int *a); __global__ void k(float *a);",
        "__global__ void k(int *a, int n = 3);",
        "template <> __global__ void k<int>(int *a) {}",
    ],
)
def test_launches_by_their_arguments(declarations):
    assert "cudalab_any_call([=]" in rewritten(f"{declarations} void f() {{ k<<<1, 1>>>(p); }}")


def test_a_kernel_declared_twice_is_one():
    text = "__global__ void k(const int *__restrict__ a, unsigned);\n"
    text += "__global__ void k(const int *a, unsigned n) {}\nvoid f() { k<<<1, 1>>>(p, 1); }\n"
    assert "cudalab_typed_call(k, [=]" in rewritten(text)


def test_what_a_function_declares_by_a_kernels_name_is_called():
    text = f"{KERNEL}void f() {{ auto k = [](int x) {{}}; k(1); s.k(2); }}"
    assert rewritten(text) == text


def test_instance_in_a_namespace_is_enlisted_by_its_whole_name():
    text = "namespace n { template <int N> __global__ void t() {} }\nvoid f() { g(n::t<4>); }\n"
    expected = 'void f() { g(::cudalab::cudalab_enlisted(n::t<4>, "n::t<4>")); }'
    assert rewritten(text).splitlines()[1] == expected


def test_shared_variables_are_static_once():
    text = "__global__ void k() { static const __shared__ int a[4]; }"
    assert rewritten(text).split(" static ::")[0] == text.replace("static ", " ")


# Declarations ------------------------------------------------------------------------------------


def test_kernels_are_found():
    text = """
    template <int N, class T = A<int>> __global__ void __launch_bounds__(N * 2, 1) t(T x) {}
    extern "C" __global__ void plain(int a, float (*f)(int), B<int, 2> b) { if (a) {} }
    namespace n { static __global__ void __launch_bounds__(BLOCK) inner(void);
    __attribute__((noinline)) __global__ void second() {} }
    struct S { int f() const { return 1; } }; __global__ void last(S s = S{1}) {}
    """
    parsed = Parsed(File("a.cu", "a.cu", text))
    read([parsed])
    kernels = parsed.structure.kernels
    assert [kernel.name for kernel in kernels] == ["t", "plain", "inner", "second", "last"]
    assert [kernel.is_template for kernel in kernels] == [True, False, False, False, False]
    assert [kernel.bounds for kernel in kernels] == ["N * 2", "", "BLOCK", "", ""]
    assert [kernel.body_end is None for kernel in kernels] == [False, False, True, False, False]
    assert [kernel.has_defaults for kernel in kernels] == [False] * 4 + [True]


def test_kernels_are_enlisted_behind_their_bodies():
    text = rewritten("__global__ void __launch_bounds__(64) k(int *a) {\n}\nint x;\n")
    assert text.splitlines()[1] == (
        '} static ::cudalab::cudalab_kernel cudalab_enlisted_k_1(k, "k", (unsigned)(64));'
    )


def test_instance_of_a_template_is_enlisted_where_its_address_is_taken():
    text = "template <int N> __global__ void t(int *a) {}\nvoid f() { g((void *)t<4>, &t<8>); }\n"
    assert rewritten(text).splitlines()[1] == (
        'void f() { g((void *)::cudalab::cudalab_enlisted(t<4>, "t<4>"), '
        '::cudalab::cudalab_enlisted(&t<8>, "t<8>")); }'
    )


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("__device__ int a;", "CUDALAB_DEVICE_DATA int a;"),
        (
            "static __device__ float b[N] = {1, 2};",
            "static CUDALAB_DEVICE_DATA float b[N] = {1, 2};",
        ),
        ("__constant__ S c[sizeof(int)];", "CUDALAB_CONSTANT_DATA S c[sizeof(int)];"),
        ("__device__ __constant__ int a;", "__device__ CUDALAB_CONSTANT_DATA int a;"),
        ("__device__ int (*f)(int) = g;", "CUDALAB_DEVICE_DATA int (*f)(int) = g;"),
        ("__device__ __managed__ int m = 1;", "__device__ CUDALAB_MANAGED_DATA int m = 1;"),
        ("namespace n { __device__ int a; }", "namespace n { CUDALAB_DEVICE_DATA int a; }"),
        ("__device__ __align__(16) int a;", "CUDALAB_DEVICE_DATA __align__(16) int a;"),
        ("__device__ const int *a, *b;", "CUDALAB_DEVICE_DATA const int *a, *b;"),
        ("__constant__ char const* names[2];", "CUDALAB_CONSTANT_DATA char const* names[2];"),
        ("__device__ Box<const int> box;", "CUDALAB_DEVICE_DATA Box<const int> box;"),
        (
            "__device__ int (*f[2])(const int*) = {g, h};",
            "CUDALAB_DEVICE_DATA int (*f[2])(const int*) = {g, h};",
        ),
    ],
)
def test_variables_of_the_device(declaration, expected):
    assert rewritten(declaration) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int f(int x);",
        "__device__ __forceinline__ int f(int x) { return x; }",
        "extern __device__ int elsewhere;",
        "__constant__ const float table[2] = {1, 2};",
        "__device__ const int *const a = nullptr, *b;",
        "__device__ const int *a, b = 3;",
        "struct S { __device__ int f() { return 1; } int x; };",
        "template <class T> __device__ T f(T x) { return 1; }",
        "__device__ auto f(int x) -> int;",
        "int x = 3; void f() { __shared__ int s[4]; }",
    ],
)
def test_what_is_no_variable_of_the_device_stays(text):
    assert rewritten(text) == text


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ("extern __shared__ float s[];", "float* const s = (float*)"),
        (
            "extern __shared__ __align__(16) unsigned char s[];",
            "unsigned char* const s = (unsigned char*)",
        ),
        ("extern volatile __shared__ int s[];", "volatile int* const s = (volatile int*)"),
        ("__shared__ extern n::T s[];", "n::T* const s = (n::T*)"),
        ("extern __shared__ int s[][16];", "int (*const s)[ 16 ] = (int (*)[ 16 ])"),
    ],
)
def test_dynamic_shared_memory(declaration, said):
    inside = rewritten(f"__device__ void f() {{ if (x) {{ {declaration} }} }}")
    assert f"{said}::cudalab::cudalab_dynamic();" in inside
    outside = rewritten(f"namespace n {{ {declaration} }}")
    assert "static constexpr ::cudalab::cudalab_dynamic_array<" in outside


def test_host_code_has_no_architecture():
    condition = "\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ > 700\n"
    assert "__CUDA_ARCH__" not in rewritten(f"int f() {{ {condition} return 1; \n#endif\n }}")
    assert "__CUDA_ARCH__" not in rewritten(f"struct S {{ S() {{ {condition}\n#endif\n }} }};")
    for kept in (
        f"__device__ int f() {{ {condition} return 1; \n#endif\n }}",
        f"__host__ __device__ int f() {{ {condition} return 1; \n#endif\n }}",
        f"int main() {{ auto f = [] __device__ () {{ {condition}\n#endif\n }}; }}",
        f"{condition}int x;\n#endif\n",
    ):
        assert rewritten(kept) == kept


def test_what_both_sides_call_has_both_texts(capsys):
    function = "int f() {\n#ifdef __CUDA_ARCH__\n return 1;\n#endif\n return 2; }\n"
    host = "int g() { return f() + M; }\n"
    text = f"__host__ __device__ {function}{host}"
    made = rewrite([File("a.cu", "a.cu", text)], ["0-a.cpp"])[0].partition("\n")[2]
    assert made.startswith(
        "__host__ __device__ int f() { if (::cudalab::cudalab_on_device()) {\n#ifdef __C"
    )
    assert "else {\n#line 1 " in made
    assert "#ifdef CUDALAB_NO_ARCH\n return 1;\n#endif\n return 2; \n#line 5 " in made
    assert "note" not in capsys.readouterr().err
    kept = f"constexpr __host__ __device__ {function}{host}"
    assert rewritten(kept) == kept
    assert "a.cu:2: the host's code sees __CUDA_ARCH__" in capsys.readouterr().err
    rewritten(f"#if __CUDA_ARCH__ > 1\n#define M 1\n#else\n#define M 2\n#endif\n{host}")
    assert "a.cu:2: the host's code sees __CUDA_ARCH__" in capsys.readouterr().err


def test_declarations_of_nothing_are_left_out():
    made = rewritten("void f() { int ; { long ; } short x; }\n__device__ void g() {\nint ; }\n")
    assert made == "void f() {  ; {  ; } short x; }\n__device__ void g() {\n ; }\n"


def test_noinline_is_no_macro():
    assert "__attribute__((noinline)) int f();" in rewritten("__device__ __noinline__ int f();")
    assert rewritten("__attribute__((__noinline__)) int f();") == (
        "__attribute__((__noinline__)) int f();"
    )


# Files -------------------------------------------------------------------------------------------


def test_includes_are_followed(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "lib").mkdir()
    main, a, b = tmp_path / "main.cu", tmp_path / "sub" / "a.cuh", tmp_path / "lib" / "b.h"
    main.write_text('#include "sub/a.cuh"\n#include <cuda_runtime.h>\n# include <b.h>\n')
    a.write_text('#include "../lib/b.h"\n#include "a.cuh"\n#include "missing.h"\nint a;\n')
    b.write_text("int b;\n")
    files = gather([str(main)], [str(tmp_path / "lib")])
    assert [file.path.rpartition("/")[2] for file in files] == ["main.cu", "a.cuh", "b.h"]
    texts = rewrite(files, ["0.cpp", "1.cpp", "2.cpp"])
    assert texts[0].splitlines()[1:4] == [
        '#include "1.cpp"',
        "#include <cuda_runtime.h>",
        '# include "2.cpp"',
    ]
    assert texts[1].splitlines()[1:4] == [
        '#include "2.cpp"',
        '#include "1.cpp"',
        '#include "missing.h"',
    ]


def test_kernel_of_a_header_is_known_in_the_program(tmp_path):
    (tmp_path / "k.cuh").write_text("__global__ void k(int *a);\n")
    main = tmp_path / "main.cu"
    main.write_text('#include "k.cuh"\nvoid f() { k<<<1, 1>>>(0); }\n')
    assert "cudalab_typed_call(k, [=]" in rewrite(gather([str(main)], []), ["0.cpp", "1.cpp"])[0]


def test_any_bytes_in_comments_survive(tmp_path):
    main = tmp_path / "main.cu"
    main.write_bytes(b"// caf\xe9\nint x;\n")
    (text,) = rewrite(gather([str(main)], []), ["0.cpp"])
    assert b"// caf\xe9\n" in text.encode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("#include <cusolverDn.h>\n", "cuSOLVER (a.cu:1)"),
        ("// x\n  #  include <cuda/ptx>\n", "(a.cu:2)"),
        (
            '__device__ int f() {\n int x;\n asm("mov.u32 %0, %%ctarank;" : "=r"(x));\n}',
            "inline PTX: mov.u32 %0, %ctarank (a.cu:3)",
        ),
        (
            "__global__ void __cluster_dims__(2, 1, 1) k() {}",
            "thread block clusters: __cluster_dims__ (a.cu:1)",
        ),
    ],
)
def test_what_the_device_lacks(text, what):
    with pytest.raises(NoDeviceError) as error:
        rewritten(text)
    assert error.value.message.startswith("not supported on the CPU device: ")
    assert error.value.message.endswith(what)


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        (None, "NVIDIA's headers are an extra: "),
        (cccl.Headers("/old", (2, 8, 2)), "CCCL 2.8.2 in /old is too old; NVIDIA's headers are"),
    ],
)
def test_nvidias_headers_are_an_extra(found, hint, monkeypatch):
    monkeypatch.setattr(cccl, "installed", lambda: found)
    text = '#include "thrust/scan.h"\n#include <cub/cub.cuh>\n#include <cuda/atomic>\n'
    with pytest.raises(NoDeviceError) as error:
        rewritten(text)
    assert error.value.message.endswith(": Thrust (a.cu:1), CUB (a.cu:2), libcu++ (a.cu:3)")
    assert error.value.hint.startswith(hint)
    assert "[libraries]" in error.value.hint


def test_what_only_a_gpu_has_of_nvidias_headers(tmp_path, monkeypatch):
    folder = tmp_path / "cub" / "device"
    folder.mkdir(parents=True)
    for name in ("device_scan.cuh", "device_partition.cuh"):
        (folder / name).touch()
    monkeypatch.setattr(cccl, "installed", lambda: cccl.Headers(str(tmp_path), (3, 5, 0)))
    with pytest.raises(NoDeviceError) as error:
        rewritten(
            "#include <cub/device/device_scan.cuh>\n#include <cub/device/device_partition.cuh>\n"
        )
    assert error.value.message.endswith(": <cub/device/device_partition.cuh> (a.cu:2)")
    assert error.value.hint is None


def test_alignment_of_shared_variables_comes_first():
    assert "alignas(8) __shared__ char a[8];" in rewritten(
        "__global__ void k() { __shared__ alignas(8) char a[8]; }"
    )


def test_assembly_that_is_none_of_ptx_stays():
    for text in (
        'void host() { asm("nop"); }',
        '__device__ void f() { asm volatile("" ::: "memory"); }',
    ):
        assert rewritten(text) == text


def test_functions_that_cuda_has_removed_are_noted_once(capsys):
    rewritten("int main() {\n cudaThreadSynchronize();\n cudaThreadSynchronize();\n}")
    assert capsys.readouterr().err == (
        "note: a.cu:2: nvcc 13 has no cudaThreadSynchronize: use cudaDeviceSynchronize\n"
    )


def test_lines_behind_an_inlined_header_have_their_numbers_whatever_stands_in_front():
    texts = {
        "0-a.cpp": 'int head;\n#line 1 "a.cu"\nint one;\n#include "1-b.cpp"\nint three;\n',
        "1-b.cpp": '#line 1 "b.h"\nint inner;\n',
    }
    rows = inlined("0-a.cpp", texts, set()).splitlines()
    assert rows[rows.index("int three;") - 1] == '#line 3 "a.cu"'
    assert rows[rows.index("int inner;") - 1] == '#line 1 "b.h"'
