"""The reduce lab: its cases, streams, reference, bounds, data, and variants on odd shapes."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from fractions import Fraction
from functools import reduce
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalab import labs, runner
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.base import Job
from cudalab.labs.inputs import HostInputs
from cudalab.language import source

LAB = labs.get("reduce")
INTEGERS = ("int32", "uint32", "int64")
FLOATS = ("float32", "float64")
VARIANTS = registry.variants(LAB)


def case(**given):
    return LAB.complete(given)


def vectors(dtype, *arrays):
    data = [np.array(array, dtype) for array in arrays]
    return HostInputs(dict(zip("xy", data, strict=False)), {"n": len(data[0])})


def matrix(data):
    return HostInputs({"x": data}, {"rows": data.shape[0], "cols": data.shape[1]})


# Cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "dtype"),
    [
        ({}, "int32"),
        ({"op": "max"}, "int32"),
        ({"op": "mean"}, "float32"),
        ({"op": "dot"}, "float32"),
        ({"along": "rows"}, "float32"),
        ({"along": "cols", "op": "min"}, "float32"),
        ({"along": "rows", "dtype": "int64"}, "int64"),
        ({"op": "dot", "dtype": "uint32"}, "uint32"),
        ({"op": "mean", "dtype": "float64"}, "float64"),
        ({"op": None, "along": None, "dtype": None}, "int32"),
    ],
)
def test_the_type_depends_on_the_operation(given_, dtype):
    assert LAB.complete(given_)["dtype"] == dtype


@pytest.mark.parametrize("along", ["rows", "cols"])
def test_a_dot_product_of_rows_is_refused(along):
    with pytest.raises(UsageError, match=f"two vectors: it has no --{along}"):
        case(op="dot", along=along)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_mean_of_integers_is_refused(dtype):
    with pytest.raises(UsageError, match=f"mean of {dtype} items is no {dtype}"):
        case(op="mean", dtype=dtype)


def test_the_kernels_are_told_type_and_operation():
    assert LAB.kernel_defines(case(op="sumsq", dtype="int64")) == {"T": "long long", "OP_SUMSQ": 1}


# Streams -----------------------------------------------------------------------------------------


def read(tmp_path, data, **given):
    path = tmp_path / "in.bin"
    path.write_bytes(data)
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case(**given))
        inputs.arrays = {name: array.array() for name, array in inputs.arrays.items()}
    return inputs


def test_the_course_s_vector(tmp_path):
    stream = bytes.fromhex(
        "0A000000 01000000 02000000 03000000 04000000 05000000"
        "06000000 07000000 08000000 09000000 0A000000"
    )
    answer = LAB.reference(read(tmp_path, stream), case())
    assert (answer.dtype, answer.tobytes()) == (np.int32, bytes.fromhex("37000000"))


def test_a_dot_product_reads_two_arrays(tmp_path):
    inputs = read(tmp_path, struct.pack("<i4f", 2, 1, 2, 3, 4), op="dot")
    assert inputs.arrays["x"].tolist() == [1, 2]
    assert inputs.arrays["y"].tolist() == [3, 4]


def test_a_matrix_has_two_sizes(tmp_path):
    inputs = read(tmp_path, struct.pack("<2i6f", 2, 3, *range(6)), along="cols")
    assert inputs.params == {"rows": 2, "cols": 3}
    assert inputs.arrays["x"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("header", "given_", "missing"),
    [
        ((0,), {"op": "min"}, "n = 0: nothing has no minimum"),
        ((0,), {"op": "max", "dtype": "float64"}, "n = 0: nothing has no maximum"),
        ((0,), {"op": "mean"}, "n = 0: nothing has no mean"),
        ((3, 0), {"op": "mean", "along": "rows"}, "rows = 3, cols = 0: nothing has no mean"),
        ((0, 3), {"op": "min", "along": "cols"}, "rows = 0, cols = 3: nothing has no minimum"),
    ],
)
def test_nothing_has_no_extreme_and_no_mean(tmp_path, header, given_, missing):
    with pytest.raises(InputError, match=missing):
        read(tmp_path, np.array(header, "<i4").tobytes(), **given_)


@pytest.mark.parametrize(
    ("header", "given_", "answer"),
    [
        ((0,), {}, [0]),
        ((0,), {"op": "sumsq"}, [0]),
        ((0,), {"op": "dot"}, [0]),
        ((0,), {"op": "prod", "dtype": "float64"}, [1]),
        ((2, 0), {"along": "rows"}, [0, 0]),
        ((2, 0), {"along": "cols"}, []),
        ((0, 2), {"along": "cols", "op": "prod"}, [1, 1]),
        ((0, 2), {"along": "rows", "op": "max"}, []),
    ],
)
def test_the_answer_to_nothing(tmp_path, header, given_, answer):
    inputs = read(tmp_path, np.array(header, "<i4").tobytes(), **given_)
    empty = LAB.empty_answer(inputs, case(**given_))
    assert (empty.dtype, empty.tolist()) == (case(**given_)["dtype"], answer)


@pytest.mark.parametrize(
    ("params", "along", "expected"),
    [
        ({"n": 9}, "all", 1),
        ({"rows": 2, "cols": 3}, "rows", 2),
        ({"rows": 2, "cols": 3}, "cols", 3),
    ],
)
def test_the_answer_has_one_value_for_each_result(tmp_path, params, along, expected):
    path = tmp_path / "out.bin"
    path.write_bytes(np.arange(expected, dtype="<f4").tobytes())
    with path.open("rb") as file:
        answer = LAB.read_answer(
            InputStream(file.fileno()), HostInputs({}, params), case(along=along, dtype="float32")
        )
    assert answer.tolist() == list(range(expected))


# The reference -----------------------------------------------------------------------------------


def in_python(x, y, op):
    """The exact result, in Python's integers or fractions."""
    match op:
        case "sum":
            return sum(x)
        case "prod":
            return reduce(mul, x)
        case "min" | "max":
            return min(x) if op == "min" else max(x)
        case "sumsq":
            return sum(a * a for a in x)
        case "mean":
            return sum(x) / len(x)
        case "dot":
            return sum(a * b for a, b in zip(x, y, strict=True))


def integers(dtype):
    limits = np.iinfo(dtype)
    whole = st.integers(int(limits.min), int(limits.max))
    pairs = st.lists(st.tuples(whole, whole), min_size=1, max_size=40)
    return pairs.map(lambda both: (dtype, *(list(values) for values in zip(*both, strict=True))))


@given(st.sampled_from(INTEGERS).flatmap(integers), st.sampled_from(LAB.axes["op"]))
def test_integers_wrap_as_python_s_modulo(data, op):
    dtype, x, y = data
    if op == "mean":
        return
    arrays = (x, y) if op == "dot" else (x,)
    answer = LAB.reference(vectors(dtype, *arrays), case(dtype=dtype, op=op))
    bits = 8 * np.dtype(dtype).itemsize
    assert answer.dtype == dtype
    assert int(answer[0]) % 2**bits == in_python(x, y, op) % 2**bits


def floats(dtype):
    size = np.dtype(dtype).itemsize
    # Products of 12 such numbers stay in the range of normal numbers, as the bounds ask for.
    number = st.one_of(
        st.floats(0.0078125, 128, width=8 * size), st.floats(-128, -0.0078125, width=8 * size)
    )
    pairs = st.lists(st.tuples(number, number), min_size=1, max_size=12)
    return pairs.map(lambda both: (dtype, *(list(values) for values in zip(*both, strict=True))))


@given(st.sampled_from(FLOATS).flatmap(floats), st.sampled_from(LAB.axes["op"]))
def test_floats_are_the_float64_next_to_the_exact_result(data, op):
    dtype, x, y = data
    arrays = (x, y) if op == "dot" else (x,)
    answer = LAB.reference(vectors(dtype, *arrays), case(dtype=dtype, op=op))
    exact = in_python(list(map(Fraction, x)), list(map(Fraction, y)), op)
    assert answer.dtype == np.float64
    magnitude = sum(abs(Fraction(a)) for a in x) if op in ("sum", "mean") else abs(exact)
    if op in ("sumsq", "dot"):
        magnitude = in_python([abs(Fraction(a)) for a in x], [abs(Fraction(a)) for a in y], op)
    # float32 data are reduced in float64, float64 data with twice its digits, then rounded.
    slack = 12 * magnitude / 2**53 if dtype == "float32" else magnitude / 2**90
    assert abs(Fraction(float(answer[0])) - exact) <= slack + abs(exact) / 2**52


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(LAB.axes["op"]), st.randoms())
def test_rows_and_columns_are_vectors(rows, cols, op, random):
    if op == "dot":
        return
    for dtype in ("int32", "float32", "float64"):
        if op == "mean" and dtype == "int32":
            continue
        data = np.array([[random.randint(-99, 99) for _ in range(cols)] for _ in range(rows)])
        data = data.astype(dtype)
        for along, lines in (("rows", data), ("cols", data.T)):
            answer = LAB.reference(matrix(data), case(along=along, op=op, dtype=dtype))
            single = [
                LAB.reference(vectors(dtype, line), case(op=op, dtype=dtype))[0] for line in lines
            ]
            np.testing.assert_array_equal(answer, single)


def test_a_float64_sum_is_exact_where_float64_loses_everything():
    data = vectors("float64", [1e300, 1.0, -1e300, 2.0**-60])
    assert LAB.reference(data, case(dtype="float64"))[0] == math.fsum([1.0, 2.0**-60])
    big = vectors("float64", [1e8 + 1, 1e8, -1.0], [1e8 - 1, -1e8, -1.0])
    assert LAB.reference(big, case(dtype="float64", op="dot"))[0] == 0.0


# Verdicts ----------------------------------------------------------------------------------------


def verdict(got, inputs, **given):
    chosen = case(**given)
    return LAB.compare(np.atleast_1d(np.array(got, chosen["dtype"])), inputs, chosen)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dist", LAB.distributions)
@pytest.mark.parametrize("op", ["sum", "sumsq", "prod", "mean", "dot"])
def test_any_order_is_within_the_bound(dtype, dist, op):
    chosen = case(dtype=dtype, op=op)
    arrays = arrays_of(chosen, 5000, dist, 3)
    x = arrays[0]
    terms = {"sumsq": x * x, "dot": x * arrays[-1]}.get(op, x)
    accumulate = np.multiply.accumulate if op == "prod" else np.add.accumulate
    for order in (terms, terms[::-1], np.sort(terms)):
        one_by_one = accumulate(order, dtype=dtype)[-1]
        got = one_by_one / x.dtype.type(len(x)) if op == "mean" else one_by_one
        assert LAB.compare(np.array([got]), vectors(dtype, *arrays), chosen) is None


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["sum", "sumsq", "prod", "mean", "dot", "min", "max"])
def test_an_error_beyond_the_bound_is_found(dtype, op):
    chosen = case(dtype=dtype, op=op)
    arrays = arrays_of(chosen, 1000, "uniform", 3)
    inputs = vectors(dtype, *arrays)
    right = LAB.reference(inputs, chosen)
    scale = 1.0 if op in ("prod", "min", "max") else float(np.abs(arrays[0]).sum())
    scale /= len(arrays[0]) if op == "mean" else 1
    wrong = (right + 1001 * np.finfo(dtype).eps * (scale + abs(right))).astype(dtype)
    found = LAB.compare(wrong, inputs, chosen)
    assert found.count == 1
    assert "within" in found.first[0][1]


def test_one_item_has_no_rounding_error():
    one = vectors("float32", [1.0])
    assert verdict(1.0, one, dtype="float32") is None
    assert verdict(np.nextafter(np.float32(1), np.float32(2)), one, dtype="float32").count == 1


@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "prod", "sumsq"])
def test_a_nan_wins(op):
    data = vectors("float32", [1.0, math.nan, math.inf])
    assert verdict(math.nan, data, dtype="float32", op=op) is None
    assert verdict(math.inf, data, dtype="float32", op=op).count == 1
    assert verdict(1.0, data, dtype="float32", op=op).count == 1


def test_infinities_are_strict():
    up = vectors("float32", [1.0, math.inf])
    assert verdict(math.inf, up, dtype="float32") is None
    for wrong in (-math.inf, math.nan, 3e38):
        assert verdict(wrong, up, dtype="float32").count == 1
    assert verdict(math.nan, vectors("float32", [math.inf, -math.inf]), dtype="float32") is None
    assert verdict(math.inf, vectors("float32", [1.0, 2.0]), dtype="float32").count == 1


def test_nothing_is_sure_where_an_order_overflows():
    data = vectors("float32", [3e38, 3e38, -3e38])
    for possible in (3e38, math.inf):
        assert verdict(possible, data, dtype="float32") is None
    factors = vectors("float32", [1e30, 1e30, 1e-30, 1e-30])
    for possible in (1.0, math.inf):
        assert verdict(possible, factors, dtype="float32", op="prod") is None


def test_zeros_of_both_signs_are_equal():
    zeros = vectors("float32", [0.0, -0.0])
    for op in ("min", "max", "sum", "prod"):
        assert verdict(0.0, zeros, dtype="float32", op=op) is None
        assert verdict(-0.0, zeros, dtype="float32", op=op) is None


def test_the_comparison_writes_neither_side():
    x, got = np.array([[3, 1], [2, 4]], np.float32), np.array([4, 6], np.float32)
    assert LAB.compare(got, matrix(x), case(along="rows")) is None
    assert (x.tolist(), got.tolist()) == ([[3, 1], [2, 4]], [4, 6])


def test_a_forgotten_tail_and_forgotten_blocks_are_named():
    x = np.arange(1000, dtype=np.int32)
    tail = verdict(int(x[:768].sum()), vectors("int32", x))
    assert "the answer for the first 768 of 1,000 items: is the tail left out" in str(tail)
    first = verdict(int(x[:512].sum()), vectors("int32", x))
    assert "the answer for the first 512 of 1,000 items" in str(first)
    assert verdict(7, vectors("int32", x)).findings == []


def test_a_signed_minimum_of_unsigned_items_is_found():
    x = [1, 2**31]
    assert verdict(2**31, vectors("uint32", x), dtype="uint32", op="min").count == 1
    assert verdict(1, vectors("uint32", x), dtype="uint32", op="min") is None


# Data --------------------------------------------------------------------------------------------


def stream(chosen, n, dist, seed):
    return b"".join(bytes(piece) for piece in LAB.generate(chosen, n, dist, seed))


def arrays_of(chosen, n, dist, seed):
    data = np.frombuffer(stream(chosen, n, dist, seed)[4:], chosen["dtype"])
    return np.split(data, 2 if chosen["op"] == "dot" else 1)


# The streams are part of the interface: graders keep seeds, not files.
DIGESTS = {
    ("uniform", "int32", "sum", 1000): "a968e4013722f6f371123b1571a29b24",
    ("uniform", "uint32", "sum", 1000): "a968e4013722f6f371123b1571a29b24",
    ("uniform", "int64", "sum", 1000): "7177c33c8476a4e843206d3c277a8ece",
    ("uniform", "float32", "sum", 1000): "c92ebb21098ad5b0c7d659e9ad391af4",
    ("uniform", "float64", "sum", 1000): "6416388d13dd6ad51777a56ada4bdef2",
    ("cancelling", "int32", "sum", 1000): "edfbd135f633b422ed8e20ec3f328f73",
    ("cancelling", "uint32", "sum", 1000): "edfbd135f633b422ed8e20ec3f328f73",
    ("cancelling", "int64", "sum", 1000): "f75d9c9b44e42a028e028e2787b4e2ba",
    ("cancelling", "float32", "sum", 1000): "45db96f21b947359a048bb118e9daf2c",
    ("cancelling", "float64", "sum", 1000): "22cbae63b72fafd6644da7bae2984fee",
    ("wide-range", "int32", "sum", 1000): "1839d8d02a0ec2f696fb13a315cb6a77",
    ("wide-range", "uint32", "sum", 1000): "2ffcc96b2a2100c3ac601356cb22189e",
    ("wide-range", "int64", "sum", 1000): "957a5b1414df7e1d4d6e4f6319ef9aaf",
    ("wide-range", "float32", "sum", 1000): "e5f4ff7db2798e2b111beecd4dc54db6",
    ("wide-range", "float64", "sum", 1000): "a59ae7835503efb0d7866178b4589088",
    ("nan", "float32", "sum", 1000): "154135ecd2085f0c7275d751ed6fbf0c",
    ("sorted", "int32", "sum", 1000): "34e8e8512da761740ef3e9c11f1ce38f",
    ("reversed", "float32", "max", 1000): "5adbea51f532c60e09442e055830f236",
    ("ends", "int32", "sum", 1000): "ef2bf91376938a09b0981648788ea685",
    ("all-ones", "float32", "sum", 1000): "766bce3dca9469c07b35d3331f884ab4",
    ("uniform", "int32", "prod", 1000): "125cea97e4a60fd71a02a6311b89f939",
    ("uniform", "float32", "prod", 1000): "d08a566afcebe9457b6c64d7ae443f3b",
    ("cancelling", "float32", "prod", 1000): "e50f3067a7ca485839dbb5e28137c39d",
    ("wide-range", "float64", "prod", 1000): "b942cc75186b857af812e544069664e9",
    ("uniform", "float32", "dot", 1000): "9f98267cc69590d44a72e1153ab4edb4",
    ("cancelling", "float32", "dot", 1000): "15c01ddfc2b4e779b2330bbc576f46ea",
    ("cancelling", "int64", "dot", 1001): "8e526cc79a62bd6e070802c7b6be9af9",
    ("uniform", "float32", "sum", (30, 40)): "f4e990f77862ae0558b9f8fba1586db0",
}


@pytest.mark.parametrize(("key", "digest"), DIGESTS.items(), ids=str)
def test_same_seed_same_bytes(key, digest):
    dist, dtype, op, n = key
    along = "rows" if isinstance(n, tuple) else "all"
    data = stream(case(dtype=dtype, op=op, along=along), n, dist, 42)
    assert hashlib.sha256(data).hexdigest()[:32] == digest


def test_other_seed_other_bytes():
    assert stream(case(), 100, "uniform", 1) != stream(case(), 100, "uniform", 2)


@pytest.mark.parametrize("dist", LAB.distributions)
@pytest.mark.parametrize("dtype", LAB.axes["dtype"])
@pytest.mark.parametrize("op", ["sum", "prod", "dot"])
def test_generated_streams_are_read_back(tmp_path, dist, dtype, op):
    for n in (0, 1, 2, 3, 1001):
        data = stream(case(dtype=dtype, op=op), n, dist, 7)
        inputs = read(tmp_path, data, dtype=dtype, op=op)
        assert inputs.params == {"n": n}
        assert len(data) == 4 + sum(array.nbytes for array in inputs.arrays.values())


def test_matrices_have_any_shape_or_an_order():
    rows = case(along="rows")
    assert len(stream(rows, (3, 5), "uniform", 1)) == 8 + 4 * 15
    assert stream(rows, 4, "uniform", 1) == stream(rows, (4, 4), "uniform", 1)


@pytest.mark.parametrize("n", [(3, 5), (1, 2, 3)])
def test_a_vector_has_no_shape(n):
    with pytest.raises(UsageError, match="no data of size"):
        stream(case(), n, "uniform", 1)


def test_an_unknown_distribution_is_refused():
    with pytest.raises(UsageError, match="distribution zipf"):
        stream(case(), 10, "zipf", 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cancelling_floats_cancel(dtype):
    for op in ("sum", "dot"):
        chosen = case(dtype=dtype, op=op)
        x, *y = arrays_of(chosen, 10_000, "cancelling", 5)
        terms = x.astype(np.float64) * (y[0] if y else 1)
        assert abs(terms.sum()) < 1e-4 * np.abs(terms).sum()
        assert np.abs(x).max() > 1e5


def test_cancelling_integers_are_large_and_their_sum_is_small():
    for dtype in ("int32", "int64"):
        (x,) = arrays_of(case(dtype=dtype), 10_000, "cancelling", 5)
        total = int(LAB.reference(vectors(dtype, x), case(dtype=dtype))[0])
        assert 0 <= total <= 5000 * 255
        assert np.abs(x.astype(np.float64)).max() > np.iinfo(dtype).max / 2


def test_uniform_integers_wrap():
    (x,) = arrays_of(case(), 1000, "uniform", 1)
    assert abs(sum(map(int, x))) > 2**31
    assert (x < 0).any()


@pytest.mark.parametrize("dtype", LAB.axes["dtype"])
def test_the_extremes_are_first_and_last(dtype):
    (rising,) = arrays_of(case(dtype=dtype, op="max"), 1000, "sorted", 3)
    (falling,) = arrays_of(case(dtype=dtype, op="max"), 1000, "reversed", 3)
    assert (rising[1:] >= rising[:-1]).all()
    assert rising[-2] < rising[-1]
    assert falling.tolist() == rising[::-1].tolist()


@pytest.mark.parametrize("dtype", LAB.axes["dtype"])
def test_the_ends_of_a_type(dtype):
    (x,) = arrays_of(case(dtype=dtype, op="max"), 1025, "ends", 3)
    if dtype in FLOATS:
        assert 0 < np.abs(x).max() < np.finfo(dtype).smallest_normal
        assert (np.signbit(x) & (x == 0)).any()
    else:
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1} <= set(x.tolist())


@pytest.mark.parametrize("dtype", FLOATS)
def test_wide_range_covers_many_orders(dtype):
    (x,) = arrays_of(case(dtype=dtype), 2000, "wide-range", 1)
    assert np.isfinite(x).all()
    assert np.log2(np.abs(x)).max() - np.log2(np.abs(x)).min() > 50


@pytest.mark.parametrize("dist", LAB.distributions)
def test_products_say_something(dist):
    """Odd integers have odd products; factors near 1 stay in range in any order."""
    for dtype in INTEGERS:
        chosen = case(dtype=dtype, op="prod")
        (x,) = arrays_of(chosen, 5000, dist, 1)
        assert int(LAB.reference(vectors(dtype, x), chosen)[0]) % 2 == 1
    for dtype in FLOATS:
        for n in (1, 2, 50, 5000, 2**20):
            (x,) = arrays_of(case(dtype=dtype, op="prod"), n, dist, 1)
            logs = np.log2(np.abs(x.astype(np.float64)))
            assert logs[logs > 0].sum() < 120
            assert logs[logs < 0].sum() > -120


# Variants ----------------------------------------------------------------------------------------


def step_of(device, variant, inputs, chosen):
    return runner.prepare(LAB, variant, device, inputs, chosen, watch=runner.Stopwatch())


def along_of(variant):
    return variant.applies["along"]


def name_of(variant):
    return variant.name


def check(device, variant, inputs, chosen):
    step = step_of(device, variant, inputs, chosen)
    step()
    found = LAB.compare(device.to_host(step.out), inputs, chosen)
    assert found is None, f"{ {k: v.shape for k, v in inputs.arrays.items()} }: {found}"


SHAPES = [(1, 1), (1, 5000), (5000, 1), (3, 7), (33, 31), (40, 300), (300, 40), (2, 70_001)]
SHAPES += [(70_001, 2), (20_000, 20), (129, 4097), (4097, 129)]


@pytest.mark.parametrize("variant", [v for v in VARIANTS if along_of(v) != ("all",)], ids=name_of)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "sumsq"])
def test_matrices_of_any_shape(device, variant, op):
    for along in set(along_of(variant)) - {"all"}:
        chosen = case(along=along, op=op)
        for shape in SHAPES:
            data = stream(chosen, shape, "uniform", sum(shape))
            inputs = matrix(np.frombuffer(data[8:], np.float32).reshape(shape))
            check(device, variant, inputs, chosen)


@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
@pytest.mark.parametrize("op", ["min", "max"])
def test_a_nan_is_found_wherever_it_is(device, variant, op):
    for along in along_of(variant):
        chosen = case(along=along, op=op, dtype="float32")
        for place in (0, 1, 500, 999):
            x = np.linspace(-5, 5, 1000, dtype=np.float32)
            x[place] = np.nan
            inputs = vectors("float32", x) if along == "all" else matrix(x.reshape(10, 100))
            check(device, variant, inputs, chosen)


@pytest.mark.parametrize("name", ["sequential", "global_halving"])
def test_more_than_65535_blocks(device, name):
    n = 65_536 * 256 + 300
    x = np.arange(n, dtype=np.int32)
    check(device, registry.find(LAB, name), vectors("int32", x), case())


def test_partial_results_are_reduced_on_the_device(device):
    """Whatever n is, the answer on the device is one value."""
    for variant in VARIANTS:
        if "all" in along_of(variant):
            for n in (1, 70_000):
                step = step_of(device, variant, vectors("int32", np.ones(n)), case())
                assert step.out.shape == (1,)


def test_the_ticket_resets_itself(device):
    """Five runs of one step, of a single block and of many: each starts with the counter at 0."""
    variant = registry.find(LAB, "single_pass")
    for n in (5, 100_000):
        inputs = vectors("float32", np.linspace(0, 1, n))
        step = step_of(device, variant, inputs, case(dtype="float32"))
        answers = set()
        for _ in range(5):
            step()
            answers.add(device.to_host(step.out).tobytes())
        assert len(answers) == 1
        assert LAB.compare(device.to_host(step.out), inputs, case(dtype="float32")) is None


def test_a_kernel_for_int_sums_needs_neither_level_nor_count(device, tmp_path):
    """What the plan's description promises to a student's first kernel."""
    path = tmp_path / "my.cu"
    path.write_text(
        "// /// cudalab\n"
        '// summary = "mine"\n// order = 1\n// dispatch = "multi_pass"\n'
        "// defines = { THREADS_PER_BLOCK = 1, ITEMS_PER_BLOCK = 100 }\n"
        "// ///\n"
        'extern "C" __global__ void reduce_blocks(const T* x, const T* y, T* out, unsigned n,\n'
        "                                         int level, unsigned count) {\n"
        "    T sum = 0;\n"
        "    for (unsigned i = blockIdx.x * 100; i < n && i < (blockIdx.x + 1) * 100; ++i)\n"
        "        sum += x[i];\n"
        "    out[blockIdx.x] = sum;\n"
        "}\n"
    )
    inputs = vectors("int32", np.arange(12_345))
    check(device, registry.read_header(path, LAB), inputs, case())


def test_each_step_in_the_last_warp_reads_and_writes_between_barriers():
    """Lanes do not run in step: a volatile array without barriers is a race, so is one barrier."""
    text = source.blank_comments(registry.find(LAB, "unrolled_last_warp").path.read_text())
    level = re.search(r"for \(unsigned s = 32;[^}]*}", text)[0]
    steps = re.findall(r"combine\(|__syncwarp\(\)|values\[lane\] =", level)
    assert steps == ["combine(", "__syncwarp()", "values[lane] =", "__syncwarp()"]
    assert "volatile" not in text


def test_every_rung_of_the_ladder_is_there():
    names = [variant.name for variant in VARIANTS if "all" in along_of(variant)]
    ladder = ["interleaved_modulo", "interleaved_strided", "sequential", "first_add_on_load"]
    ladder += ["unrolled_last_warp", "warp_shuffle", "coarsened", "vectorized", "single_pass"]
    assert [name for name in names if name in ladder] == ladder


@pytest.mark.parametrize("exercise", LAB.teaching.exercises(), ids=lambda exercise: exercise.title)
def test_exercises_agree_in_all_kinds_of_memory(device, exercise):
    assert {"global", "shared"} <= set(exercise.variants)
    assert exercise.sizes[0] == 1000
    n = exercise.sizes[0]
    shape = (n,) if exercise.case["along"] == "all" else (n, n)
    data = np.frombuffer(stream(exercise.case, n, "uniform", 1)[4 * len(shape) :], np.float32)
    pair = np.split(data, 2) if exercise.case["op"] == "dot" else None
    inputs = vectors("float32", *pair) if pair else matrix(data.reshape(shape))
    for name in exercise.variants.values():
        variant = registry.find(LAB, name)
        assert variant.computes(exercise.case)
        check(device, variant, inputs, exercise.case)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=600), st.data())
def test_any_integers_through_any_variant(device, numbers, data):
    usable = [variant for variant in VARIANTS if "all" in along_of(variant)]
    variant = data.draw(st.sampled_from(usable))
    check(device, variant, vectors("int32", numbers), case())


def test_a_launch_plan_never_returns_its_input(device):
    """A single item is computed (and squared), not passed through."""
    for variant in VARIANTS:
        if "all" in along_of(variant):
            chosen = case(op="sumsq")
            buffers = {"x": device.to_device(np.array([-7], np.int32))}
            kernels = device.compile(
                source.load(variant.path, variant.label),
                {**LAB.kernel_defines(chosen), **variant.defines},
            )
            job = Job(
                device=device,
                kernels=kernels,
                variant=variant,
                buffers=buffers,
                params={"n": 1},
                case=chosen,
            )
            step = LAB.plan(variant.dispatch)(job)
            step()
            assert step.out is not buffers["x"]
            assert device.to_host(step.out).tolist() == [49]
