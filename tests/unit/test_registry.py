"""Headers: what is accepted, and the exact message for everything that is not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar

import pytest

from cudalab import labs
from cudalab.errors import ExitCode, HeaderError, NoDeviceError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source

if TYPE_CHECKING:
    from pathlib import Path


class Toy(Lab):
    name = "toy"
    axes: ClassVar = {"dtype": ("int32", "float32"), "op": ("sum", "min")}
    distributions = ("uniform",)
    precisions = ("bf16",)

    plans = SimpleNamespace(dispatch_one_pass=None, dispatch_multi_pass=None)  # only names matter


LAB = Toy()
MINIMAL = ('summary = "Adds"', "order = 1", 'dispatch = "one_pass"')
KERNEL = 'extern "C" __global__ void add(int *x) { x[0] = 1; }\n'


def header(*lines: str) -> str:
    comment = "".join(f"// {line}\n" for line in lines)
    return f"// /// cudalab\n{comment}// ///\n// Adds.\n{KERNEL}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty kernels/toy folder that the registry reads."""
    monkeypatch.setattr(source, "_custom_kernels", tmp_path)
    (tmp_path / "toy").mkdir()
    return tmp_path / "toy"


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / f"{name}.cu"
    path.write_text(header(*lines), encoding="utf-8")
    return path


def message_for(path: Path) -> str:
    with pytest.raises(HeaderError) as caught:
        registry.read_header(path, LAB)
    return caught.value.message


def test_full_header(folder):
    path = write(
        folder,
        "sequential",
        'summary = "Tree, sequential addressing"',
        "order = 2.5",
        'dispatch = "multi_pass"',
        'ladder = "rows"',
        'adds = "no modulo"',
        'defines = { THREADS_PER_BLOCK = 256, OP = "a + b" }  # comments are allowed',
        'requires = ["sm_90a", "inline_ptx"]',
        'applies = { op = ["sum"] }',
        'default = ["cuda", "cpu"]',
        "deterministic = false",
    )
    assert Variant(
        lab="toy",
        name="sequential",
        path=path,
        label="kernels/toy/sequential.cu",
        summary="Tree, sequential addressing",
        order=2.5,
        dispatch="multi_pass",
        ladder="rows",
        adds="no modulo",
        defines={"THREADS_PER_BLOCK": 256, "OP": "a + b"},
        requires=("sm_90a", "inline_ptx"),
        applies={"op": ("sum",)},
        default=("cuda", "cpu"),
        deterministic=False,
    ) == registry.read_header(path, LAB)


def test_minimal_header_has_neutral_defaults(folder):
    variant = registry.read_header(write(folder, "a", *MINIMAL), LAB)
    assert (
        variant.defines,
        variant.requires,
        variant.applies,
        variant.default,
        variant.deterministic,
        variant.precision,
        variant.title,
    ) == ({}, (), {}, (), True, "", "a")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (MINIMAL[1:], "1: the header lacks 'summary'"),
        (MINIMAL[::2], "1: the header lacks 'order'"),
        (MINIMAL[:2], "1: the header lacks 'dispatch'"),
        ((), "1: the header lacks 'summary'"),
        ((*MINIMAL, "ordre = 1"), "5: unknown key 'ordre': did you mean order?"),
        (
            (*MINIMAL, "xyz = 1"),
            (
                "5: unknown key 'xyz': expected one of summary, order, dispatch, ladder, adds, "
                "defines, requires, applies, default, deterministic, precision"
            ),
        ),
        (("summary = 1", *MINIMAL[1:]), "2: summary must be one line of text"),
        (('summary = " "', *MINIMAL[1:]), "2: summary must be one line of text"),
        (('summary = "a\\nb"', *MINIMAL[1:]), "2: summary must be one line of text"),
        ((*MINIMAL, 'ladder = ""'), "5: ladder must be one line of text"),
        ((*MINIMAL, "adds = 2"), "5: adds must be one line of text"),
        (('order = "1"', *MINIMAL[::2]), "2: order must be a number, got '1'"),
        (("order = true", *MINIMAL[::2]), "2: order must be a number, got True"),
        (("order = nan", *MINIMAL[::2]), "2: order must be a number, got nan"),
        (
            (*MINIMAL[:2], 'dispatch = "one_pas"'),
            "4: toy has no dispatch 'one_pas': did you mean one_pass?",
        ),
        (
            (*MINIMAL[:2], "dispatch = 7"),
            "4: toy has no dispatch 7: expected one of multi_pass, one_pass",
        ),
        (
            (*MINIMAL, "defines = 256"),
            "5: defines must be a table such as { THREADS_PER_BLOCK = 256 }",
        ),
        ((*MINIMAL, "defines = { T = 1 }"), "5: defines: 'T' cannot be defined"),
        ((*MINIMAL, "defines = { A-B = 1 }"), "5: defines: 'A-B' cannot be defined"),
        (
            (*MINIMAL, "defines = { A = 1.5 }"),
            "5: defines: A must be an integer or a string",
        ),
        (
            (*MINIMAL, "defines = { A = true }"),
            "5: defines: A must be an integer or a string",
        ),
        ((*MINIMAL, 'requires = "sm_80"'), "5: requires must be a list of strings"),
        ((*MINIMAL, "requires = [80]"), "5: requires must be a list of strings"),
        (
            (*MINIMAL, 'requires = ["tensor_core"]'),
            (
                "5: 'tensor_core' is no feature and no compute capability such as sm_80: "
                "did you mean tensor_cores?"
            ),
        ),
        (
            (*MINIMAL, 'requires = ["sm80"]'),
            (
                "5: 'sm80' is no feature and no compute capability such as sm_80: "
                "expected one of inline_ptx, tensor_cores, shared_96kb, shared_160kb, "
                "shared_224kb, bulk_copy, clusters"
            ),
        ),
        (
            (*MINIMAL, 'applies = ["int32"]'),
            '5: applies must be a table such as { dtype = ["int32"] }',
        ),
        (
            (*MINIMAL, 'applies = { dtyp = ["int32"] }'),
            "5: applies: toy has no option 'dtyp': did you mean dtype?",
        ),
        (
            (*MINIMAL, 'applies = { dtype = ["int23"] }'),
            "5: applies: dtype has no value 'int23': did you mean int32?",
        ),
        ((*MINIMAL, 'applies = { op = "sum" }'), "5: applies must be a list of strings"),
        (
            (*MINIMAL, "applies = { op = [] }"),
            "5: applies: op must name at least one value",
        ),
        ((*MINIMAL, 'default = "cuda"'), "5: default must be a list of strings"),
        (
            (*MINIMAL, 'default = ["gpu"]'),
            "5: default: unknown device 'gpu': expected one of cuda, cpu",
        ),
        ((*MINIMAL, "deterministic = 0"), "5: deterministic must be true or false"),
        (
            (*MINIMAL, 'precision = "bf61"'),
            "5: toy has no precision 'bf61': did you mean bf16?",
        ),
        (
            (*MINIMAL, 'precision = "bf16"', 'default = ["cuda"]'),
            "6: a variant of precision bf16 is lossy: it cannot be a default",
        ),
        (
            (*MINIMAL[:2], "dispatch one_pass"),
            "4: the header is not valid TOML: Expected '=' after a key in a key/value pair",
        ),
        (
            (*MINIMAL, "order = 2"),
            "5: the header is not valid TOML: Cannot overwrite a value",
        ),
        (
            (*MINIMAL, 'default = ["cpu"'),
            "5: the header is not valid TOML: Unclosed array",
        ),
    ],
)
def test_bad_header_names_file_and_line(folder, lines, message):
    path = write(folder, "bad", *lines)
    assert f"kernels/toy/bad.cu:{message}" == message_for(path)


def test_line_is_counted_from_the_top_of_the_file(folder):
    path = write(folder, "bad", *MINIMAL, "", "x = 1")
    path.write_text("// Licence\n\n" + path.read_text())
    assert message_for(path).startswith("kernels/toy/bad.cu:8: unknown key 'x'")


def test_values_may_span_lines(folder):
    path = write(folder, "wide", *MINIMAL, "requires = [", '  "sm_80",', '  "clusters",', "]")
    assert registry.read_header(path, LAB).requires == ("sm_80", "clusters")


@pytest.mark.parametrize(
    "text",
    [
        KERNEL,
        "",
        "// /// cudalab\n// order = 1\n" + KERNEL,  # never closed
        header(*MINIMAL).replace("/// cudalab", "/// script"),
        header(*MINIMAL).replace("// order", "order"),  # a line that is no comment
    ],
)
def test_missing_header(folder, text):
    path = folder / "bare.cu"
    path.write_text(text)
    assert message_for(path) == (
        "kernels/toy/bare.cu:1: no header: "
        "expected a comment block from `// /// cudalab` to `// ///`"
    )


def test_windows_line_ends_are_read(folder):
    path = folder / "dos.cu"
    path.write_bytes(header(*MINIMAL).replace("\n", "\r\n").encode())
    assert registry.read_header(path, LAB).dispatch == "one_pass"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_header_in_other_encodings(folder, encoding):
    path = folder / "other.cu"
    path.write_text(header(*MINIMAL) + "// gr\u00f6\u00dfer\n", encoding=encoding)
    assert registry.read_header(path, LAB).dispatch == "one_pass"


def test_file_that_is_no_text(folder):
    path = folder / "binary.cu"
    path.write_bytes(b"\xff\xfe\x00")
    assert message_for(path).startswith("kernels/toy/binary.cu: cannot be read as CUDA source: ")


def test_file_that_is_not_there(folder):
    assert message_for(folder / "gone.cu") == "kernels/toy/gone.cu: no such file"


def test_own_file_is_named_as_the_user_names_it(tmp_path):
    path = tmp_path / "my.cu"
    path.write_text(header(*MINIMAL, "x = 1"))
    with pytest.raises(HeaderError, match=r"^work/my\.cu:5: unknown key 'x'"):
        registry.read_header(path, LAB, label="work/my.cu")


def test_variants_stand_in_teaching_order(folder):
    for name, order in (("zero", 0), ("ten", 10), ("b", 2), ("a", 2), ("between", 2.5)):
        write(folder, name, 'summary = "S"', f"order = {order}", 'dispatch = "one_pass"')
    assert [v.name for v in registry.variants(LAB)] == ["zero", "a", "b", "between", "ten"]


def test_no_variants_at_all(folder):
    with pytest.raises(HeaderError) as caught:
        registry.variants(LAB)
    assert caught.value.message == f"no variants of toy in {folder}"


def test_two_defaults_for_one_case(folder):
    write(folder, "one", *MINIMAL, 'applies = { op = ["min"] }', 'default = ["cuda"]')
    write(folder, "two", *MINIMAL, 'default = ["cpu", "cuda"]')
    with pytest.raises(HeaderError) as caught:
        registry.variants(LAB)
    assert caught.value.message == (
        "kernels/toy/two.cu:5: a second default for dtype int32, op min on cuda: "
        "kernels/toy/one.cu is one already"
    )


def test_a_later_default_takes_over_some_cases(folder):
    write(folder, "one", *MINIMAL, 'default = ["cuda"]')
    write(folder, "two", *MINIMAL, 'applies = { op = ["min"] }', 'default = ["cuda"]')
    chosen = [registry.default(LAB, {"dtype": "int32", "op": op}, "cuda") for op in ("sum", "min")]
    assert [variant.name for variant in chosen] == ["one", "two"]


def test_defaults_may_share_a_device_between_cases(folder):
    write(folder, "one", *MINIMAL, 'applies = { op = ["sum"] }', 'default = ["cuda", "cpu"]')
    write(folder, "two", *MINIMAL, 'applies = { op = ["min"] }', 'default = ["cuda"]')
    sums, minima = ({"dtype": "int32", "op": op} for op in ("sum", "min"))
    assert registry.default(LAB, sums, "cuda").name == "one"
    assert registry.default(LAB, minima, "cuda").name == "two"
    with pytest.raises(UsageError) as caught:
        registry.default(LAB, minima, "cpu")
    assert caught.value.message == (
        "no variant of toy is the default for dtype int32, op min on the cpu device"
    )
    assert caught.value.hint == "choose one with --variant: `cudalab list toy`"


def test_find_names_the_nearest(folder):
    write(folder, "tiled_padded", *MINIMAL)
    write(folder, "naive", *MINIMAL)
    assert registry.find(LAB, "naive").name == "naive"
    with pytest.raises(UsageError) as caught:
        registry.find(LAB, "tiled_paded")
    assert caught.value.message == "toy has no variant 'tiled_paded'"
    assert caught.value.hint == "did you mean tiled_padded? (`cudalab list toy` describes them)"
    with pytest.raises(UsageError) as caught:
        registry.find(LAB, "xyz")
    assert caught.value.hint == (
        "expected one of naive, tiled_padded (`cudalab list toy` describes them)"
    )


@pytest.mark.parametrize("name", ["../toy/naive", "", "naive.cu", "/etc/passwd"])
def test_find_reads_no_other_folder(folder, name):
    write(folder, "naive", *MINIMAL)
    with pytest.raises(UsageError, match="has no variant"):
        registry.find(LAB, name)


def test_applies(folder):
    write(folder, "sums", *MINIMAL, 'applies = { op = ["sum"] }')
    write(folder, "all", *MINIMAL)
    sums = registry.find(LAB, "sums")
    registry.check_applies(sums, LAB, {"dtype": "float32", "op": "sum"})
    with pytest.raises(UsageError) as caught:
        registry.check_applies(sums, LAB, {"dtype": "float32", "op": "min"})
    assert caught.value.message == "variant sums does not compute op min: only sum"
    assert caught.value.hint == "variants that do: all"


def test_features(folder):
    write(folder, "ptx", *MINIMAL, 'requires = ["sm_90a", "inline_ptx"]')
    variant = registry.find(LAB, "ptx")
    registry.check_features(variant, "cuda", frozenset({"sm_90a", "inline_ptx", "clusters"}))
    with pytest.raises(NoDeviceError) as caught:
        registry.check_features(variant, "cpu", frozenset({"inline_ptx"}))
    assert caught.value.message == (
        "variant ptx requires sm_90a, which this cpu device does not have"
    )
    assert caught.value.exit_code == ExitCode.NO_DEVICE


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        ((), None),
        (("clusters",), None),
        (("sm_80",), "sm_80"),
        (("sm_80", "sm_100", "sm_90a"), "sm_100"),
        (("sm_90a", "inline_ptx"), "sm_90a"),
    ],
)
def test_architecture(folder, requires, expected):
    variant = registry.read_header(write(folder, "a", *MINIMAL), LAB)
    assert expected == replace(variant, requires=requires).architecture


@pytest.mark.parametrize("name", labs.names())
def test_every_header_of_the_project_is_valid(name):
    lab = labs.get(name)
    assert lab.name == name
    assert registry.variants(lab)
    if type(lab).choose is Lab.choose:  # the lab leaves the choice to the headers
        for device in registry.DEVICES:
            registry.default(lab, lab.complete({}), device)


def test_the_words_of_a_case_are_few():
    reduce, histogram, matmul = (labs.get(name) for name in ("reduce", "histogram", "matmul"))
    assert reduce.words(reduce.complete({})) == []
    rows = reduce.complete({"op": "max", "along": "rows"})
    assert reduce.words(rows) == ["--dtype", "float32", "--op", "max", "--rows"]
    # float32 would be the default with --rows alone.
    rows = reduce.complete({"dtype": "int32", "along": "rows"})
    assert reduce.words(rows) == ["--dtype", "int32", "--rows"]
    assert histogram.words(histogram.complete({"bins": 64})) == ["--bins", "64"]
    assert matmul.words(matmul.complete({"product": "aat", "shape": True})) == ["--aat", "--shape"]
