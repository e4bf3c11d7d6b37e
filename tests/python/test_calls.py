"""The functions of `import cudalab`."""

from __future__ import annotations

import traceback
from pathlib import Path

import click
import numpy as np
import pytest

import cudalab
from cudalab import labs
from cudalab.cli.params import case_options
from cudalab.errors import InputError, KernelCompileError, NoDeviceError, TimeLimitError, UsageError
from cudalab.formats import InputStream
from cudalab.python import arrays, command

REPOSITORY = Path(__file__).parents[2]
KERNELS = REPOSITORY / "kernels"
BROKEN = REPOSITORY / "tests" / "broken"
RANDOM = np.random.default_rng(1)
ITEMS = RANDOM.integers(-100, 100, 1000, dtype=np.int32)
CASES = [(name, case) for name in labs.names() for case in labs.get(name).cases()]


@pytest.mark.parametrize("dtype", ["uint32", "int32", "float32", "uint64", "float64"])
def test_sort(device, dtype):
    keys = (RANDOM.standard_normal(1000) * 1000).astype(dtype)
    before = keys.copy()
    assert np.array_equal(cudalab.sort(keys, device=device), np.sort(keys))
    assert np.array_equal(keys, before)


def test_sort_moves_values_with_their_keys(device):
    keys, values = ITEMS % 7, np.arange(1000, dtype=np.uint32)
    sorted_keys, moved = cudalab.sort(keys, values, device=device)
    assert np.array_equal(sorted_keys, np.sort(keys))
    assert np.array_equal(moved, np.argsort(keys, kind="stable"))


def inputs_of(lab, case, folder):
    """A random input of the lab: its bytes, and the arrays or numbers in it."""
    path = folder / "in.bin"
    path.write_bytes(b"".join(lab.generate(case, 64, lab.distributions[0], seed=1)))
    with path.open("rb") as file:
        inputs = lab.read(InputStream(file.fileno()), case).load()
        values = list(inputs.arrays.values())
    if lab.name == "table":  # its stream has numbers only
        values = [inputs.params["n"], values[0].item()]
    return path.read_bytes(), inputs, values


@pytest.mark.parametrize(("name", "case"), CASES, ids=str)
def test_arrays_are_read_as_a_stream_of_them_is(name, case, tmp_path):
    lab = labs.get(name)
    case = lab.complete(case | lab.options_of([]))
    stored, inputs, values = inputs_of(lab, case, tmp_path)
    options = {key: value for key, value in case.items() if key not in lab.derived}
    stream, read, completed = arrays.read(lab, values, options)
    assert completed == case
    assert b"".join(stream.pieces()) == stored
    assert read.params.keys() == inputs.params.keys()
    for array, announced in zip(read.arrays.values(), inputs.arrays.values(), strict=True):
        assert (array.shape, array.tobytes()) == (announced.shape, announced.tobytes())


@pytest.mark.parametrize(("name", "case"), CASES, ids=str)
def test_the_words_of_a_case_choose_it_again(name, case):
    lab = labs.get(name)
    command = click.Command("run", params=case_options(lab, runs=True))
    context = command.make_context("run", lab.words(case, runs=True))
    assert lab.complete(context.params) == case


@pytest.mark.parametrize("name", labs.names())
def test_run_gives_the_answer_in_its_shape(device, name, tmp_path):
    lab = labs.get(name)
    case = lab.complete(lab.options_of([]))
    _, inputs, values = inputs_of(lab, case, tmp_path)
    answer = cudalab.run(name, *values, device=device)
    assert lab.compare(answer, inputs, case) is None
    assert answer.shape == lab.reference(inputs, case).shape


def test_nothing_to_compute_gives_an_empty_answer():
    assert cudalab.sort(np.empty(0, np.uint32), device="cpu").shape == (0,)
    none = np.empty((0, 3), np.float32)
    assert cudalab.run("matmul", none, np.ones((3, 2), np.float32), device="cpu").shape == (0, 2)


def test_views_are_read_as_they_look(device):
    matrix = RANDOM.standard_normal((6, 5)).astype(np.float32)
    transposed = cudalab.run("transpose", matrix.T, device=device)
    assert np.array_equal(transposed, matrix)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cudalab.sort([3, 1, 2]), UsageError, "dtype is one of uint32, .* got 'int64'"),
        (lambda: cudalab.run("redcue", ITEMS), UsageError, "there is no lab 'redcue'"),
        (lambda: cudalab.run("reduce", ITEMS, oq="max"), UsageError, "has no option 'oq'"),
        (lambda: cudalab.run("reduce", ITEMS, op="mix"), UsageError, "op is one of sum, .* 'mix'"),
        (lambda: cudalab.run("reduce", ITEMS, variant="x"), UsageError, "has no variant 'x'"),
        (lambda: cudalab.run("reduce", ITEMS, device="gpu"), UsageError, "no device 'gpu'"),
        (lambda: cudalab.run("reduce"), InputError, "there is no input"),
        (lambda: cudalab.run("reduce", np.float32(3)), InputError, "arrays, got the number 3.0"),
        (lambda: cudalab.run("table", ITEMS), InputError, "numbers, got an array of 1,000"),
        (lambda: cudalab.run("table", 5), InputError, r"2 numbers \(n, step\), got 1 number"),
        (lambda: cudalab.run("reduce", ITEMS, rows=3), UsageError, "rows is True or False, got 3"),
        (lambda: cudalab.run("reduce", ITEMS, kernel="no.cu"), UsageError, "no file 'no.cu'"),
        (lambda: cudalab.sanitize("reduce", kernel="no.cu"), UsageError, "no file 'no.cu'"),
        (lambda: cudalab.profile("reduce", n=-3), UsageError, r"^n: '-3' is not a size"),
        (lambda: cudalab.profile("reduce", n=64, banks=7), UsageError, r"^banks: '7' is unknown"),
        (lambda: cudalab.run("radixsort", ITEMS, ITEMS), InputError, "an array of keys, got 2"),
        (
            lambda: cudalab.run("matmul", np.ones(3, "f4"), np.eye(3, dtype="f4")),
            InputError,
            "A: expected a matrix, got an array of 1 dimension",
        ),
        (lambda: cudalab.run("scan", ITEMS, ITEMS), InputError, "1 array more"),
        (lambda: cudalab.run("reduce", ITEMS, op="dot"), InputError, "y is missing: expected"),
        (
            lambda: cudalab.run("scan", ITEMS.reshape(10, 100)),
            InputError,
            r"expected 1 dimension \(n\), got 2 dimensions of 1 array \(10 x 100\)",
        ),
        (
            lambda: cudalab.run("matmul", np.ones((3, 4), "f4"), np.ones((3, 4), "f4")),
            InputError,
            "B: expected 4 x 4 of float32, got 3 x 4 of float32",
        ),
        (
            lambda: cudalab.run("matmul", np.ones((3, 3)), np.ones((3, 3))),
            InputError,
            "A: expected 3 x 3 of float32, got 3 x 3 of float64",
        ),
        (lambda: cudalab.run("table", 2**31, 0.1), InputError, "n = 2147483648 does not fit"),
        (
            lambda: cudalab.run("solve", np.eye(2), np.ones(2), text=True),
            UsageError,
            "arrays are binary",
        ),
        (
            lambda: cudalab.sort(ITEMS, ITEMS),
            InputError,
            "values: expected uint32 for each of 1,000 keys",
        ),
        (
            lambda: cudalab.run("reduce", ITEMS, variant="serial", kernel=__file__),
            UsageError,
            "variant and kernel exclude each other",
        ),
        (lambda: cudalab.sanitize("reduce", ITEMS, n=10), UsageError, "n is the size of random"),
    ],
)
def test_mistakes_are_errors_of_cudalab(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_hint_is_part_of_the_traceback():
    with pytest.raises(UsageError) as caught:
        cudalab.run("redcue", ITEMS)
    assert "\nHint: did you mean reduce?" in "".join(traceback.format_exception(caught.value))


def test_a_kernel_of_one_s_own(device_name):
    kernel = KERNELS / "reduce" / "sequential.cu"
    answer = cudalab.run("reduce", ITEMS, ITEMS, op="dot", kernel=kernel, device=device_name)
    assert (answer.shape, answer.dtype) == ((1,), np.int32)
    assert answer[0] == ITEMS @ ITEMS


def test_a_kernel_that_crashes_leaves_python_running():
    kernel = BROKEN / "reduce" / "wild_pointer.cu"
    with pytest.raises(cudalab.CudalabError, match="the kernel crashed"):
        cudalab.run("reduce", ITEMS, kernel=kernel, device="cpu")


@pytest.mark.parametrize("call", [cudalab.run, cudalab.profile])
def test_a_kernel_that_does_not_compile(call, tmp_path):
    kernel = tmp_path / "my.cu"
    kernel.write_text((KERNELS / "reduce" / "serial.cu").read_text() + "int x = ;\n")
    with pytest.raises(KernelCompileError, match=r"my\.cu:\d+"):
        call("reduce", ITEMS, kernel=kernel)


def test_profile_is_text_page_and_counts():
    profile = cudalab.profile("reduce", ITEMS, variant="interleaved_strided")
    assert str(profile).startswith("reduce: in.bin, cpu device")
    assert profile._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert profile.document.variants[0].conflict_degree_max == 8


def test_sanitize_names_the_line():
    kernel = BROKEN / "reduce" / "missing_barrier.cu"
    result = cudalab.sanitize("reduce", ITEMS, kernel=kernel)
    assert (result.clean, result.inputs) == (False, ["in.bin"])
    assert {finding.kind for finding in result.findings} == {"race"}


@pytest.mark.parametrize(
    ("status", "stderr", "error", "message", "hint"),
    [
        (2, "note: x\nError: a\nb\nHint: c\nd\n", UsageError, "a\nb", "c\nd"),
        (4, "Error: no GPU\n", NoDeviceError, "no GPU", None),
        (6, "Error: too long\n", TimeLimitError, "too long", None),
        (1, "Traceback\n", cudalab.CudalabError, "ended with status 1: Traceback", None),
        (-9, "", cudalab.CudalabError, "ended with status -9", None),
    ],
)
def test_errors_of_the_command(status, stderr, error, message, hint):
    raised = command.error_of(status, stderr)
    assert (type(raised), raised.hint) == (error, hint)
    assert message in raised.message


def test_dir_shows_the_interface_and_nothing_that_it_is_made_of():
    shown = [name for name in dir(cudalab) if not name.startswith("__")]
    assert shown == sorted(cudalab.__all__)


# Options and arrays as others write them ---------------------------------------------------------


def test_the_command_s_flags_are_options_too():
    reduce, matmul, sort = map(labs.get, ("reduce", "matmul", "radixsort"))
    assert arrays.case_of(reduce, [], {"rows": True})["along"] == "rows"
    assert arrays.case_of(reduce, [], {"rows": False})["along"] == "all"
    assert arrays.case_of(matmul, [], {"aat": True}) == arrays.case_of(
        matmul, [], {"product": "aat"}
    )
    assert arrays.case_of(sort, [], {"pairs": True})["layout"] == "pairs"
    for both in ({"rows": True, "cols": True}, {"along": "cols", "rows": True}):
        with pytest.raises(UsageError, match="exclude each other"):
            arrays.case_of(reduce, [], both)
    with pytest.raises(UsageError, match="no option 'rows'"):
        arrays.case_of(sort, [], {"rows": True})


def test_an_array_in_the_other_order_of_bytes_is_the_same_array():
    _, inputs, _ = arrays.read(labs.get("reduce"), [ITEMS.astype(">i4")], {})
    (items,) = inputs.sources().values()
    assert items.dtype == np.int32
    assert np.array_equal(items, ITEMS)


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (np.ma.array([1, 2], mask=[0, 1], dtype=np.int32), "a masked array", "compressed"),
        (np.array([1j], np.complex64), "complex numbers", "array.real"),
        (np.array(3, np.int32), "without dimensions", "array.reshape(1)"),
        ([2**70, 1], "Python objects", "astype"),
    ],
)
def test_what_a_lab_cannot_read_is_refused_in_python_s_words(value, message, hint):
    with pytest.raises(InputError, match=message) as caught:
        arrays.read(labs.get("reduce"), [value], {})
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("lab", "values", "hint"),
    [
        ("radixsort", [[3, -1]], "array.astype('int32')"),  # a type that holds them
        ("bitonic", [np.array([3.0])], "array.astype('float32')"),
        ("radixsort", [np.array(["a"])], None),
        ("matmul", [np.eye(2), np.eye(2)], "array.astype('float32')"),
        ("matmul", [np.eye(2, dtype=np.float32)], "`cudalab matmul --help` describes the stream"),
        ("solve", [np.eye(2), [1, 2]], "array.astype('float64')"),
    ],
)
def test_the_hint_names_a_type_that_the_lab_reads(lab, values, hint):
    with pytest.raises(cudalab.CudalabError) as caught:
        arrays.read(labs.get(lab), values, {})
    assert caught.value.hint == hint


@pytest.mark.parametrize("value", [None, "abc", {1: 2}])
def test_what_is_no_array_is_called_by_its_type(value):
    with pytest.raises(InputError, match=f"an array or a number, got a {type(value).__name__}"):
        cudalab.sort(value)


def test_sort_ignores_no_mask():
    masked = np.ma.array([3, 1], mask=[0, 1], dtype=np.uint32)
    for keys in ((masked,), (masked, ITEMS[:2].view(np.uint32)), (ITEMS[:2], masked)):
        with pytest.raises(InputError, match="a masked array"):
            cudalab.sort(*keys)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((np.float32(3), 0.25), "n is an int, got 3.0"),
        ((2**40, 0.25), "n = 1099511627776 does not fit into 32 bits"),
        ((3,), r"expected 2 numbers \(n, step\), got 1 number"),
    ],
)
def test_numbers_that_a_header_cannot_hold(numbers, message):
    with pytest.raises(InputError, match=message):
        arrays.read(labs.get("table"), numbers, {})


def test_an_array_of_which_nothing_is_masked_is_taken():
    _, inputs, _ = arrays.read(labs.get("reduce"), [np.ma.array(ITEMS)], {})
    (items,) = inputs.sources().values()
    assert np.array_equal(items, ITEMS)
