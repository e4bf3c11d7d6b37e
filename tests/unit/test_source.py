"""Reading .cu files: which kernels they define, and what an include becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cudalab import labs
from cudalab.checker.explain import diagnose
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.language import source
from cudalab.language.scopes import Scope
from cudalab.language.structure import CudaFile


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `kernels/…` includes are found in."""
    folder = tmp_path / "kernels"
    (folder / "common").mkdir(parents=True)
    (folder / "scan").mkdir()
    monkeypatch.setattr(source, "_custom_kernels", folder)
    return folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__global__ void k() {}", {"k": 0}),
        ("__global__ void k(void) {}", {"k": 0}),
        ("__global__ void k(int n) {}", {"k": 1}),
        ('extern "C" __global__ void k(const T *in, T *__restrict__ out, int n)\n{\n}', {"k": 3}),
        ("static __global__ void\nk(\n  int a, // first, second\n  int b\n)\n{}", {"k": 2}),
        ("__global__ void __launch_bounds__(256) k(int n) {}", {"k": 1}),
        ("__global__ __launch_bounds__(BLOCK(2), 4) void k(int n, int m) {}", {"k": 2}),
        ("__global__ void k(Pair<int, 3> p, int n) {}", {"k": 2}),
        ("__global__ void k(Pair<Vec<int, 2>, 3> p, int n) {}", {"k": 2}),
        ("__global__ void k(int (*f)(int, int), int n) {}", {"k": 2}),
        ("__global__ void k(int n = max(1, 2), int m = 0) {}", {"k": 2}),
        ("template <typename K, int N> __global__ void k(K *a) {}", {"k": 1}),
        ("__global__ void a(int n) {}\n__global__ void b() {}", {"a": 1, "b": 0}),
        ("__global__ void k(int n);\n__global__ void k(int n) {}", {"k": 1}),
        ("__global__ void k(int n);", {}),
        ("__device__ int f(int n) { return n; }", {}),
        ("// __global__ void k(int n) {}", {}),
        ("/* __global__ void k(int n) {}\n*/", {}),
        ('const char *s = "__global__ void k(int n) {}";', {}),
        ('const char *s = R"(__global__ void k(int n) {})";', {}),
        ('const char *s = "/*"; __global__ void k(int n) {} // "*/"', {"k": 1}),
        ("char c = '\"'; __global__ void k(int n) {} // '\"'", {"k": 1}),
        ("__global__ void k(int a /* , int b */, int c) {}", {"k": 2}),
        ("int n = 1'000; __global__ void k(int n) {} // 1'000", {"k": 1}),
        ("#error don't\n__global__ void k(int n) {}", {"k": 1}),
    ],
)
def test_kernels_and_their_parameters(text, expected):
    assert expected == source.find_kernels(text)


def test_blanking_keeps_every_position():
    text = "int a; // one\n/* two\nthree */ \"four\" '5'\n"
    blanked = source.blank_comments(text)
    assert blanked == "int a;       \n      \n                   \n"
    assert source.blank_comments(text, literals=False) == (
        "int a;       \n      \n         \"four\" '5'\n"
    )


def test_source_without_includes_keeps_its_lines(kernels):
    path = kernels / "scan" / "a.cu"
    path.write_text("int x;\n__global__ void k(int n) {}\n")
    loaded = source.load(path, "kernels/scan/a.cu")
    assert loaded.text.startswith('#line 1 "kernels/scan/a.cu"\nint x;\n__global__')
    assert loaded.kernels == {"k": 1}
    assert loaded.files == (path,)


def test_includes_are_inlined_with_line_directives(kernels):
    (kernels / "common" / "ops.cuh").write_text("#pragma once\nint ops;\n")
    (kernels / "scan" / "beside.cuh").write_text('#include "common/ops.cuh"\nint beside;\n')
    path = kernels / "scan" / "a.cu"
    path.write_text('int one;\n  #  include "beside.cuh"  // why\nint three;\n')
    loaded = source.load(path, "kernels/scan/a.cu")
    assert numbered(loaded.text) == {
        "int one;": ("kernels/scan/a.cu", 1),
        "int three;": ("kernels/scan/a.cu", 3),
        "int beside;": ("kernels/scan/beside.cuh", 2),
        "int ops;": ("kernels/common/ops.cuh", 2),
    }
    assert [file.name for file in loaded.files] == ["a.cu", "beside.cuh", "ops.cuh"]
    assert "include" not in loaded.text
    assert "pragma" not in loaded.text  # compilers warn about it outside a header


def numbered(text: str) -> dict[str, tuple[str, int]]:
    """Each line of code with the file and the number that a compiler would report."""
    lines, file, number = {}, "", 0
    for line in text.splitlines():
        if line.startswith("#line "):
            _, first, label = line.split(" ", 2)
            file, number = label.strip('"'), int(first) - 1
        elif line.strip():
            lines[line.strip()] = (file, number)
        number += 1
    return lines


def test_a_header_is_inlined_once_however_it_is_spelled(kernels):
    (kernels / "common" / "ops.cuh").write_text("int ops;\n")
    path = kernels / "scan" / "a.cu"
    path.write_text('#include "common/ops.cuh"\n#include "../common/ops.cuh"\n')
    assert source.load(path).text.count("int ops;") == 1


def test_includes_that_include_each_other_end(kernels):
    (kernels / "scan" / "a.cuh").write_text('#include "b.cuh"\nint a;\n')
    (kernels / "scan" / "b.cuh").write_text('#include "a.cuh"\nint b;\n')
    path = kernels / "scan" / "c.cu"
    path.write_text('#include "a.cuh"\n')
    text = source.load(path).text
    assert text.index("int b;") < text.index("int a;")
    assert text.count("int a;") == text.count("int b;") == 1


def test_includes_are_named_relative_to_the_user_s_file(tmp_path):
    (tmp_path / "mine.cuh").write_text("int mine;\n")
    path = tmp_path / "my.cu"
    path.write_text('#include "mine.cuh"\n')
    assert '#line 1 "homework/mine.cuh"' in source.load(path, "homework/my.cu").text


def test_includes_in_comments_and_of_the_system_stay(kernels):
    path = kernels / "scan" / "a.cu"
    path.write_text('// #include "gone.cuh"\n/*\n#include "gone.cuh"\n*/\n#include <math.h>\n')
    assert "#include <math.h>" in source.load(path).text


def test_kernels_of_includes_are_listed(kernels):
    (kernels / "common" / "fill.cuh").write_text("__global__ void fill(int *x, int n) {}\n")
    path = kernels / "scan" / "a.cu"
    path.write_text('#include "common/fill.cuh"\n')
    assert source.load(path).kernels == {"fill": 2}


def test_headers_of_cuda_are_left_to_the_compiler(kernels):
    path = kernels / "scan" / "a.cu"
    path.write_text('#include "cuda_runtime.h"\n#include <device_launch_parameters.h>\nint one;\n')
    text = source.load(path).text
    assert "#include <cuda_runtime.h>\n#include <device_launch_parameters.h>\nint one;" in text


def test_missing_include_names_file_and_line(kernels):
    path = kernels / "scan" / "a.cu"
    path.write_text('int one;\n#include "comon/ops.cuh"\n')
    with pytest.raises(CudalabError) as caught:
        source.load(path, "kernels/scan/a.cu")
    assert caught.value.message == (
        'kernels/scan/a.cu:2: cannot find the included file "comon/ops.cuh"'
    )
    assert caught.value.hint == f"searched the file's own folder and {kernels}"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_comments_in_any_encoding(tmp_path, encoding):
    path = tmp_path / "x.cu"
    path.write_text("// f\u00fcr alle\nint x;\n", encoding=encoding)
    assert source.load(path, "x.cu").text == '#line 1 "x.cu"\n// f\u00fcr alle\nint x;\n\n'


def test_missing_file(tmp_path):
    with pytest.raises(CudalabError) as caught:
        source.load(tmp_path / "gone.cu", "gone.cu")
    assert caught.value.message == "gone.cu: no such file"


@pytest.mark.parametrize("content", ["// \u00fc\nx\n".encode("utf-16"), None])
def test_file_that_is_no_text(tmp_path, content):
    path = tmp_path / "x.cu"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(CudalabError, match=r"^x\.cu: cannot be read as CUDA source: "):
        source.load(path, "x.cu")


def test_labels_are_quoted(tmp_path):
    path = tmp_path / "x.cu"
    path.write_text("")
    assert source.load(path, 'a "b" \\.cu').text.startswith('#line 1 "a \\"b\\" \\\\.cu"\n')


def test_the_installed_kernels_are_found():
    assert (source.kernels_dir() / "radixsort").is_dir()


# One file ----------------------------------------------------------------------------------------


def test_a_whole_file_has_each_header_once_where_it_is_included_first(kernels):
    (kernels / "common" / "ops.cuh").write_text("#pragma once\nint ops;\n")
    (kernels / "scan" / "part.cuh").write_text('#include "common/ops.cuh"\n\nint part;\n')
    path = kernels / "scan" / "a.cu"
    path.write_text(
        '// /// cudalab\n// order = 1\n// ///\n// One.\n#include "scan/part.cuh"\n'
        '#include "common/ops.cuh"\n#include <math.h>\n\nint a;\n'
    )
    loaded = source.load(path, "kernels/scan/a.cu")
    assert source.headers(loaded) == ["kernels/scan/part.cuh", "kernels/common/ops.cuh"]
    assert source.whole(loaded) == (
        "// /// cudalab\n// order = 1\n// ///\n// One.\n\n"
        "// begin kernels/scan/part.cuh\n\n"
        "// begin kernels/common/ops.cuh\n\nint ops;\n\n// end kernels/common/ops.cuh\n\n"
        "int part;\n\n// end kernels/scan/part.cuh\n\n"
        "#include <math.h>\n\nint a;\n"
    )


def test_a_whole_file_has_one_variant_s_header(kernels):
    (kernels / "scan" / "a.cu").write_text("// /// cudalab\n// order = 1\n// ///\nint a;\n")
    path = kernels / "scan" / "b.cu"
    path.write_text('// /// cudalab\n// order = 2\n// ///\n#include "scan/a.cu"\n')
    assert source.whole(source.load(path, "kernels/scan/b.cu")) == (
        "// /// cudalab\n// order = 2\n// ///\n\n"
        "// begin kernels/scan/a.cu\n\nint a;\n\n// end kernels/scan/a.cu\n"
    )


def test_a_file_without_includes_is_whole_as_it_is(tmp_path):
    path = tmp_path / "x.cu"
    path.write_text("// idea\nint x;\n")
    assert source.whole(source.load(path, "x.cu")) == "// idea\nint x;\n"


@pytest.mark.parametrize("lab", labs.names())
def test_a_whole_variant_is_the_code_that_is_compiled(lab, tmp_path):
    def code(text):
        lines = source.blank_comments(text, literals=False).splitlines()
        return [line.strip() for line in lines if line.strip() and not line.startswith("#line ")]

    for variant in registry.variants(labs.get(lab)):
        loaded = source.load(variant.path, variant.label)
        one_file = tmp_path / f"{variant.name}.cu"
        one_file.write_text(source.whole(loaded))
        again = source.load(one_file)
        assert len(again.files) == 1
        assert "#line" not in source.whole(loaded)
        assert code(again.text) == code(loaded.text)
        declared = registry.read_header(one_file, labs.get(lab))
        assert replace(declared, path=variant.path, label=variant.label) == variant


def test_types_of_parameters():
    text = (
        "__global__ void f(const T* __restrict__ x, float out[], unsigned long long, size_t n=3,\n"
        "                  Pair<int, int> p, const float4 *const a, T, char*) {\n}\n"
        "__global__ void g(void) {}\n"
    )
    types = ["T *", "float *", "unsigned long long", "size_t", "Pair", "float4 *", "T", "char *"]
    assert source.parameter_types(text) == {"f": types, "g": []}


def test_parameters_of_another_type():
    """Vectors, bytes, signs and unknown types are the kernel's own affair."""
    text = "__global__ void f(const T* a, const float4* b, unsigned* c, char* d, Bits* e, int n) {}"
    passed = ["int *", "int *", "int *", "int *", "int *", "unsigned int"]
    assert list(diagnose.mismatches(text, {"T": "int"}, {"f": passed, "other": passed})) == []
    passed = ["float *", "int *", "double *", "unsigned char *", "int *", "int *"]
    assert list(diagnose.mismatches(text, {"T": "int"}, {"f": passed})) == [
        "parameter a of kernel f is T *, the lab passes float *",
        "parameter c of kernel f is unsigned *, the lab passes double *",
        "parameter n of kernel f is int, the lab passes int *",
    ]


@pytest.mark.parametrize("folder", ["kernels", "tests/kernels", "tests/broken", "tests/programs"])
def test_kernels_are_those_of_the_tree(folder):
    paths = sorted((Path(__file__).parents[2] / folder).rglob("*.cu"))
    for path in paths:
        text = source.read(path, path.name)
        file = CudaFile(text)
        file.read(Scope("namespace"), frozenset())
        tree = {one.name: one for one in file.structure.kernels if one.body_end is not None}
        names = source.parameter_names(text)
        in_macros = {name for name in names if any(name in each.params for each in file.macros)}
        assert set(tree) == names.keys() - in_macros, path
        for name, kernel in tree.items():
            own = source.parameter_types(text)[name]
            assert len(kernel.types) == len(own) == len(names[name]), path
            if "<" not in kernel.signature and "::" not in kernel.signature:
                assert kernel.signature == ", ".join(own), path
    assert len(paths) > 20
