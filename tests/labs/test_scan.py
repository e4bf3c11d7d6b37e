"""The scan lab: its format, its bound for floats, its data, and its variants at their edges."""

from __future__ import annotations

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_inputs import target

from cudalab import labs, runner
from cudalab.errors import UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.scan.lab import DRAWN_ITEMS, identity
from cudalab.language import source

LAB = labs.get("scan")
VARIANTS = [variant.name for variant in registry.variants(LAB)]
DTYPES = LAB.axes["dtype"]


def case(dtype="float32", **given):
    return LAB.complete({"dtype": dtype, **given})


def inputs(items):
    return HostInputs({"items": items}, {"n": len(items)})


def scanned(items, **given):
    return LAB.reference(inputs(items), case(items.dtype.name, **given))


def drawn(dtype, n, dist="uniform", seed=1):
    stream = b"".join(bytes(piece) for piece in LAB.generate(case(dtype), n, dist, seed))
    assert stream[:4] == np.int32(n).tobytes()
    return np.frombuffer(stream[4:], dtype)


def prepared(device, variant, items, the_case):
    chosen = registry.find(LAB, variant)
    return runner.prepare(LAB, chosen, device, inputs(items), the_case, watch=runner.Stopwatch())


def run(device, variant, items, **given):
    step = prepared(device, variant, items, case(items.dtype.name, **given))
    step()
    return device.to_host(step.out)


# The reference -----------------------------------------------------------------------------------


def test_the_course_s_examples():
    bits = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1], np.uint32)
    assert scanned(bits).tolist() == [0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5]
    assert scanned(np.array([3, 1, 7, 0, 4, 1, 6, 3], np.float32)).tobytes() == bytes.fromhex(
        "00000000 00004040 00008040 00003041 00003041 00007041 00008041 0000B041"
    )


ITEMS = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
}


@given(
    st.data(), st.sampled_from(sorted(ITEMS)), *map(st.sampled_from, list(LAB.axes.values())[1:])
)
def test_integers_against_python_s_accumulate(data, dtype, op, kind):
    values = data.draw(st.lists(ITEMS[dtype], max_size=50))
    operator = {"sum": lambda a, b: a + b, "min": min, "max": max}[op]
    start = int(identity(op, np.dtype(dtype)))
    running = list(itertools.accumulate(values, operator, initial=start))
    expected = running[1:] if kind == "inclusive" else running[:-1]
    modulus = 2 ** (8 * np.dtype(dtype).itemsize)
    got = scanned(np.array(values, dtype), op=op, kind=kind)
    assert got.dtype == dtype
    assert [v % modulus for v in got.tolist()] == [v % modulus for v in expected]


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), max_size=50))
def test_float_sums_against_exact_fractions(values):
    items = np.array(values, np.float32)
    exact = [float(sum(map(Fraction, items.tolist()[:i]))) for i in range(len(items))]
    answer = np.array(exact, np.float32)
    assert LAB.compare(answer, inputs(items), case()) is None
    np.testing.assert_allclose(scanned(items), answer, rtol=1e-5, atol=1e-5 * np.abs(items).sum())


@given(st.lists(ITEMS["uint32"], min_size=1, max_size=50))
def test_differences_of_a_scan_give_the_items_back(values):
    items = np.array(values, np.uint32)
    inclusive, exclusive = scanned(items, kind="inclusive"), scanned(items)
    np.testing.assert_array_equal(items, inclusive - exclusive)
    np.testing.assert_array_equal(inclusive[:-1], exclusive[1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_exclusive_scan_starts_at_the_identity(dtype):
    items = np.array([5], dtype)
    first = {op: scanned(items, op=op)[0] for op in ("sum", "min", "max")}
    if items.dtype.kind == "f":
        assert first == {"sum": 0, "min": np.inf, "max": -np.inf}
    else:
        limits = np.iinfo(dtype)
        assert first == {"sum": 0, "min": limits.max, "max": limits.min}


def test_the_reference_crosses_the_border_of_its_pieces():
    items = drawn("uint32", DRAWN_ITEMS + 5)
    np.testing.assert_array_equal(
        np.cumsum(items, dtype=np.uint32), scanned(items, kind="inclusive")
    )


# The verdict -----------------------------------------------------------------------------------


def verdict(got, items, **given):
    items = np.asarray(items)
    found = LAB.compare(
        np.asarray(got, items.dtype), inputs(items), case(items.dtype.name, **given)
    )
    return None if found is None else str(found)


def test_exact_sums_leave_no_tolerance():
    ones = np.ones(100_000, np.float32)
    right = np.arange(100_000, dtype=np.float32)
    assert verdict(right, ones) is None
    right[70_000] += 1
    assert (
        verdict(right, ones)
        == "1 of 100,000 elements differ\n  [70000] expected 70000.0, got 70001.0"
    )


def test_ones_past_the_exact_range_may_be_rounded():
    items = np.full(4, 2.0**23 + 1, np.float32)
    right = np.array([0, 2**23 + 1, 2**24 + 2, 3 * 2**23 + 3], np.float64)
    assert verdict(right, items) is None
    assert verdict(right + np.array([0, 0, 2, 2]), items) is None
    assert verdict(right + np.array([0, 1, 0, 0]), items) is not None  # a sum of one item is exact


def test_an_error_beyond_the_bound_is_measured():
    items = drawn("float32", 1000)
    right = scanned(items)
    assert verdict(right, items) is None
    right[500] += 1
    message = verdict(right, items)
    assert message.startswith("1 of 1,000 elements differ\nthe error at [500] is ")
    assert "times its bound" in message


def test_the_other_kind_of_scan_is_recognized():
    items = np.array([3, 1, 7], np.int32)
    assert "this is the inclusive scan: the exclusive one was expected" in verdict(
        scanned(items, kind="inclusive"), items
    )
    floats = drawn("float32", 5000)
    assert "this is the exclusive scan: the inclusive one was expected" in verdict(
        scanned(floats), floats, kind="inclusive"
    )


def test_nans_and_infinities_are_strict():
    items = np.array([1, np.inf, 1, -np.inf, 1, 1], np.float32)
    right = [0, 1, np.inf, np.inf, np.nan, np.nan]
    assert verdict(right, items) is None
    for wrong in (
        [0, 1, np.inf, np.inf, np.inf, np.nan],
        [0, 1, -np.inf, np.inf, np.nan, np.nan],
        [0, 1, 3e38, np.inf, np.nan, np.nan],
        [0, np.nan, np.inf, np.inf, np.nan, np.nan],
    ):
        assert verdict(wrong, items).startswith("1 of 6 elements differ")
    assert verdict([1, 1, 1], np.array([1, np.nan, 0], np.float32), op="min", kind="inclusive")
    assert not verdict(
        [1, np.nan, np.nan], np.array([1, np.nan, 0], np.float32), op="min", kind="inclusive"
    )


def test_nothing_is_promised_where_partial_sums_may_overflow():
    items = np.array([-3e38, 3e38, 3e38, -3e38, 1], np.float32)
    assert verdict([0, -3e38, 0, np.inf, np.nan], items) is None
    assert verdict([0, np.inf, 0, 0, 0], items) is not None


def test_zeros_have_no_sign():
    assert verdict([-0.0, 0.0], np.array([-0.0, 1], np.float32)) is None


def test_the_comparison_writes_neither_side():
    items, got = np.array([1, 2], np.float32), np.array([0, 9], np.float32)
    LAB.compare(got, inputs(items), case())
    assert (items.tolist(), got.tolist()) == ([1, 2], [0, 9])


# The data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dist", LAB.distributions)
@pytest.mark.parametrize("n", [0, 1, 63, 1001])
def test_generated_streams_are_read_back(tmp_path, dtype, dist, n):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case(dtype), n, dist, 1)))
    with path.open("rb") as file:
        announced = LAB.read(InputStream(file.fileno()), case(dtype))
        items = announced.arrays["items"].array()
    assert announced.params == {"n": n}
    assert (items.dtype, len(items)) == (np.dtype(dtype), n)
    if items.dtype.kind == "f":
        assert np.isfinite(items).all() or dist == "nan"
    if n > 100:
        check_shape(items, dist)


def check_shape(items, dist):
    values = items.astype(np.float64)
    magnitudes = np.abs(values[values != 0])
    match dist:
        case "uniform":
            assert len(np.unique(items)) > 990
            if items.dtype.kind == "f":
                assert -1 <= values.min() < -0.9
                assert 0.9 < values.max() < 1
        case "all-ones":
            assert (items == 1).all()
        case "cancelling":
            runs = items[:960].reshape(-1, 64)
            assert len(np.unique(items)) > 900
            assert (runs[:, :32] == -runs[:, :31:-1]).all()
        case "wide-range":
            assert magnitudes.max() / magnitudes.min() > 2**24
        case "bits":
            assert set(values) == {0, 1}
            assert 400 < values.sum() < 600
        case "sorted" | "reversed":
            rising = values if dist == "sorted" else values[::-1]
            assert (np.diff(rising) > 0).all()
            assert np.ptp(rising) > 0.99 * reach(items.dtype)
        case "nan":
            assert 0 < np.isnan(values).sum() < 10 or items.dtype.kind != "f"


def reach(dtype):
    """The distance between the ends of the sorted data."""
    return 2.0 if dtype.kind == "f" else 2.0 ** np.iinfo(dtype).bits


def test_items_at_the_ends_of_their_type():
    items = drawn("int32", 1001, "ends")
    assert {-(2**31), 2**31 - 1, 0} <= set(items.tolist())
    near = drawn("float32", 1001, "ends")
    assert 0 < np.abs(near).max() < np.finfo(np.float32).smallest_normal


DIGESTS = {
    ("bits", "float32"): "4c0aebea72f65abe7b2d35a23c998644c1662aa05a6dd170cb50cd35d7e1f162",
    ("ends", "int64"): "d470088e7f3c6c179a64804eca21fabd51ab74e726531c617dc68add19283583",
    ("sorted", "int32"): "c3bb35ab966bff6efb5ca0f08b432b7172858bf851912fb7ad664493e267d73c",
    ("reversed", "float32"): "60e37263498c912e83cadfadce41d840f651b4ed1ab25346fab51883a455be0e",
    ("reversed", "uint32"): "67305985415ff9efd5d96597f173129b226cbe93fe8c224f19ea9a10f68b5128",
    ("uniform", "float32"): "16245f63f9b4f3ef7679ff9c32f7bed440965a13fcaf6a014973bbaf1cdb86ed",
    ("uniform", "int32"): "60202f0affae194577e6f21b267bc7943da9f0ca83365c610b5894c80cc2180f",
    ("uniform", "float64"): "8c1dafbaa22a39f66ac254f69725c9345abc3fc383aea36a1afba3cb93488b27",
    ("all-ones", "float32"): "766bce3dca9469c07b35d3331f884ab4c316485c396f9d22668b74e2af4218e9",
    ("cancelling", "float32"): "4c089a5105615682c7c2210c6ddd4f35b8522790d38255950987b835ceae8796",
    ("cancelling", "int64"): "ebd9fdbc0494e0b9a4d73aeae3c6d79c62ea7ccfea956e9ae96bd16d3b1baf04",
    ("nan", "float32"): "6ec971cb03c938b0889c03a4d2f4b769abfe8cde2dc71e45fa2f8cf3f9fead45",
    ("wide-range", "float32"): "367f95d035872580ccea31d82f022835851e30e8e3159ea114f56dc2522d2f69",
    ("wide-range", "float64"): "7272bb049733ebb5096191f54f8ba3797141ce16763e03313606daef9ed9027a",
    ("wide-range", "int32"): "76cae503ce56eb53c21f8d8b0bde3232ea29f4d0c7d9684928794a190547e552",
    ("wide-range", "uint32"): "6a36ed9a7d032f7591a9942a4a19312536646b46b4acc36ec030e18a63e5f28b",
}


@pytest.mark.parametrize(("dist", "dtype", "digest"), [(*key, d) for key, d in DIGESTS.items()])
def test_same_seed_same_bytes(dist, dtype, digest):
    stream = b"".join(LAB.generate(case(dtype), 1000, dist, 42))
    assert hashlib.sha256(stream).hexdigest() == digest


def test_a_longer_stream_starts_like_a_shorter_one():
    short, long = (drawn("float32", n) for n in (DRAWN_ITEMS - 1, DRAWN_ITEMS + 1))
    np.testing.assert_array_equal(short, long[: DRAWN_ITEMS - 1])


def test_data_that_do_not_exist():
    for n, dist in ((10, "uniform:2"), ((3, 4), "uniform")):
        with pytest.raises(UsageError, match="scan has no data of size"):
            list(LAB.generate(case(), n, dist, 1))


def test_no_items_give_no_bytes():
    nothing = LAB.empty_answer(inputs(np.empty(0, np.int64)), case("int64"))
    assert (nothing.size, nothing.dtype) == (0, np.int64)


# The variants ------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_infinities_and_nans_pass_through_every_variant(device, variant):
    """A block's exclusive sums must not come from subtraction: inf - inf is NaN."""
    items = np.ones(5000, np.float32)
    items[[1, 2500]] = np.inf
    expected = np.full(5000, np.inf, np.float32)
    expected[:2] = [0, 1]
    np.testing.assert_array_equal(expected, run(device, variant, items))
    items[4999] = -np.inf
    assert np.isnan(run(device, variant, items, kind="inclusive")[-1])
    items[:] = 1
    items[4200] = np.nan
    for op in LAB.axes["op"]:
        nans = np.isnan(run(device, variant, items, op=op, kind="inclusive"))
        assert nans.tolist() == [False] * 4200 + [True] * 800


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [1, 512, 1023, 1024, 1025, 4095, 4097])
def test_the_tail_and_the_single_block(device, variant, n):
    """Large-array scans in print drop the tail, and launch nothing for a single block."""
    items = drawn("uint32", n)
    expected = np.cumsum(items, dtype=np.uint32)
    np.testing.assert_array_equal(expected, run(device, variant, items, kind="inclusive"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_three_levels_of_blocks(device, variant):
    items = drawn("uint32", 512 * 512 + 1)
    expected = np.cumsum(items, dtype=np.uint32) - items
    np.testing.assert_array_equal(expected, run(device, variant, items))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_have_the_same_bits_at_every_run(device, variant, dtype):
    items = drawn(dtype, 200_001, "wide-range")
    step = prepared(device, variant, items, case(dtype))
    answers = set()
    for _ in range(4):
        step()
        answers.add(device.to_host(step.out).tobytes())
    assert len(answers) == 1


def test_look_back_over_groups_and_super_groups(device):
    """1026 tiles: the first that look back at a whole super-group are among them."""
    variant = registry.find(LAB, "decoupled_lookback")
    tile = variant.defines["THREADS_PER_BLOCK"] * variant.defines["WORDS_PER_THREAD"]
    items = drawn("int32", 1026 * tile - 3)
    step = prepared(device, "decoupled_lookback", items, case("int32"))
    for _ in range(3):  # each run finds the statuses of the one before
        step()
        expected = np.cumsum(items, dtype=np.int32) - items
        np.testing.assert_array_equal(expected, device.to_host(step.out))


def test_long_arrays_are_scanned_by_large_tiles_on_a_gpu():
    def chosen(n, device, multiprocessors=132):
        return LAB.choose(HostInputs({}, {"n": n}), case("int32"), target(device, multiprocessors))

    assert chosen(1 << 22, "cuda") == "lookback_prefetch"
    assert chosen((1 << 22) - 1, "cuda") is None
    assert chosen(1 << 20, "cuda", 72) == "lookback_prefetch"
    assert chosen((1 << 20) - 1, "cuda", 72) is None
    assert chosen(1 << 28, "cpu") is None


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9000), st.integers(0, 2**32 - 1), st.sampled_from(VARIANTS))
def test_any_size_on_the_cpu(n, seed, variant):
    from cudalab.backends import open_device  # noqa: PLC0415 - this test alone opens a device

    items = drawn("uint32", n, seed=seed)
    with open_device("cpu") as device:
        got = run(device, variant, items)
    np.testing.assert_array_equal(np.cumsum(items, dtype=np.uint32) - items, got)


# The padding of blelloch_padded ----------------------------------------------------------------

ITEMS_PER_BLOCK = 1024


def offset_4(i):
    return i >> 5


def offset_8(i):
    return (i >> 4) + (i >> 8)


def worst_conflict(offset, item_bytes):
    """Items that one pass of a warp reads from one bank, over all accesses of the tree.

    Items of 8 bytes are served half a warp at a time from 16 banks of their width.
    """
    lanes, banks = (32, 32) if item_bytes == 4 else (16, 16)
    threads = ITEMS_PER_BLOCK // 2
    accesses = [[t + half * threads for t in range(threads)] for half in (0, 1)]
    stride = 1
    while stride < ITEMS_PER_BLOCK:
        left = [(2 * t + 1) * stride - 1 for t in range(threads)]
        active = [i for i in left if i + stride < ITEMS_PER_BLOCK]
        accesses += [active, [i + stride for i in active]]
        stride *= 2
    worst = 0
    for items in accesses:
        for first in range(0, len(items), lanes):
            hit = [(i + offset(i)) % banks for i in items[first : first + lanes]]
            worst = max(worst, *(hit.count(bank) for bank in hit))
    return worst


def test_the_padded_tree_is_free_of_conflicts():
    assert worst_conflict(offset_4, 4) == 1
    assert worst_conflict(offset_8, 8) == 1


def test_the_unpadded_tree_has_them():
    assert worst_conflict(lambda _: 0, 4) == 32
    assert worst_conflict(lambda i: i >> 5, 8) > 1  # words' padding does not serve 8 bytes


def test_the_padding_macro_is_what_was_examined():
    """`i + i >> 5` pads nothing, and an array without room for the pads overruns."""
    text = registry.find(LAB, "blelloch_padded").path.read_text(encoding="utf-8")
    macro = "(sizeof(T) == 8 ? ((i) >> 4) + ((i) >> 8) : ((i) >> 5))"
    assert f"#define CONFLICT_FREE_OFFSET(i) {macro}\n" in text
    common = source.kernels_dir() / "common" / "block" / "blelloch.cuh"
    room = "PADDED_ITEMS = ITEMS_PER_BLOCK + CONFLICT_FREE_OFFSET(ITEMS_PER_BLOCK);"
    assert room in common.read_text(encoding="utf-8")
    for offset in (offset_4, offset_8):
        last = ITEMS_PER_BLOCK - 1
        assert last + offset(last) < ITEMS_PER_BLOCK + offset(ITEMS_PER_BLOCK)


# The bound ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_errors_stay_far_below_the_bound(device, variant):
    """All items round: the sum of n copies of 1 + 2^-23 has no short binary fraction."""
    n = 100_000
    items = np.full(n, 1 + 2.0**-23, np.float32)
    got = run(device, variant, items).astype(np.float64)
    exact = np.arange(n) * (1 + 2.0**-23)
    chain = 2056 + n // 2**19
    assert (np.abs(got - exact) <= chain * 2.0**-24 * exact).all()
    assert LAB.compare(got.astype(np.float32), inputs(items), case()) is None


def test_a_sequential_float_sum_of_small_n_is_within_the_bound():
    items = drawn("float32", 1000)
    got = np.cumsum(items, dtype=np.float32)
    assert LAB.compare(got, inputs(items), case(kind="inclusive")) is None
    assert math.isfinite(got[-1])
