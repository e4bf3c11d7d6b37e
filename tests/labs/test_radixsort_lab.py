"""The radixsort lab on the host: its order, its data, its reference and its verdicts."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalab import labs
from cudalab.errors import UsageError
from cudalab.formats import InputStream
from cudalab.labs.inputs import HostInputs
from cudalab.labs.keys import draw, from_ordered_bits, ordered_bits

LAB = labs.get("radixsort")
DTYPES = LAB.axes["dtype"]

# The documented order of float keys, from the smallest bit pattern to the largest.
FLOAT32_LADDER = [
    0xFFFFFFFF,  # -NaN, all payload bits set
    0xFF800001,  # -NaN, the least payload
    0xFF800000,  # -inf
    0xFF7FFFFF,  # the most negative finite number
    0xBF800000,  # -1
    0x80000001,  # the largest negative number
    0x80000000,  # -0
    0x00000000,  # +0
    0x00000001,
    0x3F800000,
    0x7F7FFFFF,
    0x7F800000,  # +inf
    0x7F800001,  # +NaN
    0x7FFFFFFF,
]
FLOAT64_LADDER = [
    0xFFFFFFFFFFFFFFFF,
    0xFFF0000000000000,
    0x8000000000000001,
    0x8000000000000000,
    0x0000000000000000,
    0x0000000000000001,
    0x7FF0000000000000,
    0x7FFFFFFFFFFFFFFF,
]


def case(dtype: str, layout: str = "keys") -> dict[str, str]:
    return LAB.complete({"dtype": dtype, "layout": layout})


def sort(keys: np.ndarray) -> np.ndarray:
    return LAB.reference(HostInputs({"keys": keys}, {"n": len(keys)}), case(keys.dtype.name))


def patterns(dtype: str) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any bit patterns: NaNs, infinities and signed zeros included."""
    size = np.dtype(dtype).itemsize
    words = st.integers(0, 2 ** (8 * size) - 1)
    return st.lists(words, max_size=40).map(lambda bits: np.array(bits, f"u{size}").view(dtype))


any_keys = st.sampled_from(DTYPES).flatmap(patterns)


@pytest.mark.parametrize(
    ("ladder", "dtype"), [(FLOAT32_LADDER, np.float32), (FLOAT64_LADDER, np.float64)]
)
def test_float_keys_have_the_documented_order(ladder, dtype):
    bits = np.array(ladder, f"u{np.dtype(dtype).itemsize}")
    ordered = ordered_bits(bits.view(dtype))
    assert (ordered[1:] > ordered[:-1]).all()
    shuffled = bits.view(dtype)[::-1].copy()
    np.testing.assert_array_equal(bits, sort(shuffled).view(bits.dtype))


def test_int32_keys_have_the_order_of_their_values():
    values = np.array([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], np.int32)
    assert ordered_bits(values).tolist() == [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1]


@settings(deadline=None)
@given(any_keys)
def test_ordered_bits_have_an_inverse(keys):
    back = from_ordered_bits(ordered_bits(keys), keys.dtype)
    assert back.dtype == keys.dtype
    assert back.tobytes() == keys.tobytes()


def python_order(key: tuple[float, int]) -> tuple[int, float, float]:
    """Where Python's own numbers put a (value, bits) pair; NaNs go outside, by sign and payload."""
    value, bits = key
    if math.isnan(value):
        negative = bits >> 63 or (bits >> 31 == 1)
        return (-1, 0, -bits) if negative else (1, 0, bits)
    return (0, value, math.copysign(1, value))


@settings(deadline=None)
@given(any_keys)
def test_the_reference_against_python_s_sort(keys):
    before = keys.tobytes()
    bits = keys.view(f"u{keys.itemsize}").tolist()
    expected = [bits for _, bits in sorted(zip(keys.tolist(), bits, strict=True), key=python_order)]
    answer = sort(keys)
    assert answer.dtype == keys.dtype
    assert answer.view(f"u{keys.itemsize}").tolist() == expected
    assert keys.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dist", LAB.distributions)
def test_generated_streams_are_read_back(tmp_path, dtype, dist):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case(dtype), 1001, dist, 1)))
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case(dtype))
        keys = inputs.arrays["keys"].array()
    assert inputs.params == {"n": 1001}
    assert keys.dtype == dtype
    assert path.stat().st_size == 4 + keys.nbytes
    check_shape(keys, dist)


def check_shape(keys: np.ndarray, dist: str) -> None:
    """Assert that 1001 keys look as their distribution promises."""
    order = ordered_bits(keys)
    distinct = len(np.unique(order))
    bits = keys.view(f"u{keys.itemsize}")
    match dist:
        case "uniform":
            assert distinct > 990
            assert 400 < np.count_nonzero(bits >> bits.dtype.type(8 * keys.itemsize - 1)) < 600
        case "sorted":
            assert distinct > 990
            assert (order[1:] >= order[:-1]).all()
        case "reversed":
            assert distinct > 990
            assert (order[1:] <= order[:-1]).all()
        case "equal":
            assert distinct == 1
        case "few":
            assert distinct == 16
        case "half-equal":
            assert 490 < distinct < 502
            assert (order[::2] == order[0]).all()
        case "entropy-0.544" | "entropy-0.201":
            ones = sum(int(word).bit_count() for word in bits) / bits.size / (8 * bits.itemsize)
            expected = 1 / 8 if dist == "entropy-0.544" else 1 / 32
            assert 0.9 * expected < ones < 1.1 * expected
        case "top-byte":
            assert distinct > 200
            assert not (bits << bits.dtype.type(8)).any()
        case "bounded":
            bound = 1 if keys.dtype.kind == "f" else 1_000_000
            assert distinct > 990
            assert ((keys >= 0) & (keys < bound)).all()
            assert 400 < np.count_nonzero(keys < bound / 2) < 600


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_at_the_ends_of_their_type(dtype):
    keys = np.frombuffer(b"".join(LAB.generate(case(dtype), 1001, "ends", 1))[4:], dtype)
    if keys.dtype.kind == "f":
        assert {0, np.inf, -np.inf} <= set(keys.tolist())
        assert (np.signbit(keys) & np.isnan(keys)).any()
        assert (np.signbit(keys) & (keys == 0)).any()
    else:
        assert {np.iinfo(dtype).min, np.iinfo(dtype).max} <= set(keys.tolist())


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("dist", LAB.distributions)
def test_small_streams(dist, n):
    for dtype in DTYPES:
        stream = b"".join(LAB.generate(case(dtype), n, dist, 7))
        assert len(stream) == 4 + n * np.dtype(dtype).itemsize
        assert stream[:4] == np.int32(n).tobytes()


# The streams are part of the interface: graders keep seeds, not files.
DIGESTS = {
    ("uniform", "uint32"): "a968e4013722f6f371123b1571a29b24da0898153afcfe80c668670ae3c07460",
    ("uniform", "int32"): "a968e4013722f6f371123b1571a29b24da0898153afcfe80c668670ae3c07460",
    ("uniform", "float32"): "a968e4013722f6f371123b1571a29b24da0898153afcfe80c668670ae3c07460",
    ("uniform", "uint64"): "7177c33c8476a4e843206d3c277a8ece407bdc4e05f57e6aff50c0c475bbf0ef",
    ("uniform", "float64"): "7177c33c8476a4e843206d3c277a8ece407bdc4e05f57e6aff50c0c475bbf0ef",
    ("sorted", "uint32"): "676aa2623aa498ed0000cf412c7856624493f085d6c2d84e412036f855a10967",
    ("sorted", "int32"): "50b4113d3abbf290df960cc12ab91bd6779f8881a3e390be048779ebdee668c6",
    ("sorted", "float32"): "bdbfa5430426d2df256dd396f2d716f0a522241df70f6ca57127744ebbec1d50",
    ("sorted", "uint64"): "5afb113a65708e06bcc6b1d5d890ab337051975f2d6035be82012dfbc291c5bf",
    ("sorted", "float64"): "8f145b851fa696bccf17bfccddffc757f2e3f4cdee4ca34276a9fed2b2738964",
    ("reversed", "uint32"): "abbdb0f3cf800a1dbef5d4c90495fcd8a24e5da21090ca8a0b1c95d6024d64de",
    ("equal", "uint32"): "e0da5784b72875c437ffcb18cdd21e3346cf2a9d3d3c6f578189c211b951b06b",
    ("few", "uint32"): "c384ee1b872cbaee6c6d4c2b72f834fdf66cd0994dd1e1b19927ae391be3ad87",
    ("half-equal", "uint32"): "ae7afceb01265824e3bd4539a2c2d2144bc85076a1d7acb5c37d69da49b513ab",
    ("entropy-0.544", "uint32"): "fc71b416205b8d646004535b4d19ba203b02af5dfcceef884d69fb48efe91b2e",
    ("entropy-0.201", "uint32"): "c537120b8b4cec31ff6eabb97fa05a21310679c6b4dca714279520ef79021bdc",
    ("entropy-0.201", "uint64"): "9233cd150427723cc7c2dfb446215561ccbbe71353050e66e58c3dd649342154",
    ("top-byte", "uint32"): "e156cd0afd8d22db9f318eeaf7705056de21afa75e3232c34a1fa772cea3cf60",
    ("ends", "uint32"): "282e33849a3d0fbcae63d7d4e8cde9c4f8447d005a4bfb162697a0dcd62aec27",
    ("ends", "int32"): "ef2bf91376938a09b0981648788ea6856c31661d51dee8d2dae99658cb6c6ac0",
    ("ends", "float32"): "f8dc27d0e95d935874987adc318d3541290e6b6aa88a581447b68808887af80c",
    ("bounded", "uint32"): "e2b8feadcf8d19503a049eaa2079ae80c7161e9baf7de63d4bec7f3ca8f5abbf",
    ("bounded", "int32"): "e2b8feadcf8d19503a049eaa2079ae80c7161e9baf7de63d4bec7f3ca8f5abbf",
    ("bounded", "float32"): "1dab56ec576968024ea27fbd415b183cbbd0b874bf1f3d9b09e3436dd7de3e7c",
    ("bounded", "uint64"): "fea9142d27074d1a37028b03b106e27c90d88644ab20d39c48509c4a967a099a",
    ("bounded", "float64"): "7a8fdb1941f99d33dfbc02cabb05c46b69bf2930be99ddb804ebe76b1aaf7ba1",
}


@pytest.mark.parametrize(("dist", "dtype", "digest"), [(*key, d) for key, d in DIGESTS.items()])
def test_same_seed_same_bytes(dist, dtype, digest):
    stream = b"".join(LAB.generate(case(dtype), 1000, dist, 42))
    assert hashlib.sha256(stream).hexdigest() == digest


def test_other_seed_other_bytes():
    one, two = (b"".join(LAB.generate(case("uint32"), 1000, "uniform", s)) for s in (1, 2))
    assert one != two


def test_a_longer_stream_starts_like_a_shorter_one():
    short, long = (draw(np.dtype("uint32"), n, "uniform", 3) for n in (1000, 1001))
    np.testing.assert_array_equal(short, long[:1000])


def test_no_keys_give_no_bytes():
    nothing = LAB.empty_answer(HostInputs({}, {"n": 0}), case("float32"))
    assert (nothing.size, nothing.dtype) == (0, np.float32)
    assert LAB.empty_answer(HostInputs({}, {"n": 1}), case("float32")) is None


def verdict(got: list[int], keys: list[int], dtype: str = "uint32") -> str | None:
    inputs = HostInputs({"keys": np.array(keys, dtype)}, {"n": len(keys)})
    found = LAB.compare(np.array(got, dtype), inputs, case(dtype))
    return None if found is None else str(found)


def test_the_right_answer_has_no_mismatches():
    assert verdict([1, 2, 2, 3], [2, 3, 1, 2]) is None
    assert verdict([], []) is None


def test_an_unsorted_answer_with_all_keys():
    assert verdict([1, 3, 2, 4], [4, 3, 2, 1]) == (
        "2 of 4 elements differ\n"
        "not sorted: element 2 is smaller than element 1 (1 such place)\n"
        "the same multiset of keys: none lost, none invented\n"
        "  [1] expected 2, got 3\n"
        "  [2] expected 3, got 2"
    )


def test_a_sorted_answer_with_a_wrong_key():
    assert verdict([1, 2, 2, 4], [4, 3, 2, 1]) == (
        "1 of 4 elements differ\n"
        "not the same multiset: some keys of the input are missing, others were not there\n"
        "  [2] expected 3, got 2"
    )


def test_an_answer_that_is_neither():
    assert verdict([9, 8, 7], [3, 2, 1]) == (
        "3 of 3 elements differ\n"
        "not sorted: element 1 is smaller than element 0 (2 such places)\n"
        "not the same multiset: some keys of the input are missing, others were not there\n"
        "  [0] expected 1, got 9\n"
        "  [1] expected 2, got 8\n"
        "  [2] expected 3, got 7"
    )


def test_a_signed_order_of_unsigned_keys_is_found():
    assert "not sorted: element 1 is smaller than element 0 (1 such place)" in verdict(
        [0x80000000, 1], [1, 0x80000000]
    )


def test_swapped_zeros_and_nans_are_found():
    zeros = np.array([0.0, -0.0], np.float32)
    found = LAB.compare(zeros, HostInputs({"keys": zeros}, {"n": 2}), case("float32"))
    assert found.count == 2
    assert found.findings[0].startswith("not sorted")


def test_the_comparison_writes_neither_side():
    keys = np.array([3, 1, 2], np.uint32)
    got = np.array([3, 2, 1], np.uint32)
    LAB.compare(got, HostInputs({"keys": keys}, {"n": 3}), case("uint32"))
    assert (keys.tolist(), got.tolist()) == ([3, 1, 2], [3, 2, 1])


# Pairs -----------------------------------------------------------------------------------------


def paired(keys, values, dtype="uint32"):
    """Keys and values as a stream holds them: two rows of one array."""
    rows = [np.array(keys, dtype).view(np.uint32), np.array(values, np.uint32)]
    return np.stack(rows).view(dtype)


def pair_inputs(pairs):
    return HostInputs({"keys and values": pairs}, {"n": pairs.shape[1]})


def pair_verdict(got, pairs):
    found = LAB.compare(got, pair_inputs(pairs), case("uint32", "pairs"))
    return None if found is None else str(found)


words = st.integers(0, 2**32 - 1)


@given(
    st.sampled_from(["uint32", "int32", "float32"]),
    st.lists(st.tuples(st.one_of(words, st.integers(0, 2)), words), max_size=40),
)
def test_pairs_against_python_s_stable_sort(dtype, pairs):
    keys = np.array([key for key, _ in pairs], np.uint32).view(dtype)
    rows = paired(keys, [value for _, value in pairs], dtype)
    order = sorted(range(len(pairs)), key=lambda i: ordered_bits(keys)[i])
    answer = LAB.reference(pair_inputs(rows), case(dtype, "pairs"))
    assert answer.view(np.uint32).T.tolist() == [list(pairs[i]) for i in order]


def test_pairs_are_generated_and_read_back(tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case("float32", "pairs"), 100, "few", 1)))
    assert path.read_bytes()[:404] == b"".join(LAB.generate(case("float32"), 100, "few", 1))
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case("float32", "pairs"))
        rows = inputs.arrays["keys and values"].array()
    assert rows.shape == (2, 100)
    assert rows[1].view(np.uint32).tolist() == list(range(100))


def test_no_pairs_give_no_bytes():
    assert LAB.empty_answer(HostInputs({}, {"n": 0}), case("uint32", "pairs")).size == 0


@pytest.mark.parametrize("dtype", ["uint64", "float64"])
def test_pairs_have_keys_as_wide_as_values(dtype):
    with pytest.raises(UsageError, match=f"--pairs sorts keys of 4 bytes, not {dtype}"):
        case(dtype, "pairs")


def test_pairs_define_a_macro():
    assert LAB.kernel_defines(case("int32")) == {"T": "int", "PAIRS": 0}
    assert LAB.kernel_defines(case("int32", "pairs")) == {"T": "int", "PAIRS": 1}


def test_verdicts_on_pairs():
    pairs = paired([2, 1, 2, 1], [10, 11, 12, 13])
    assert pair_verdict(paired([1, 1, 2, 2], [11, 13, 10, 12]), pairs) is None
    assert "equal keys changed order" in pair_verdict(paired([1, 1, 2, 2], [13, 11, 10, 12]), pairs)
    assert "values went astray" in pair_verdict(paired([1, 1, 2, 2], [11, 12, 10, 13]), pairs)
    assert pair_verdict(paired([1, 2, 1, 2], [11, 13, 10, 12]), pairs).startswith(
        "2 of 4 elements differ\nthe keys are wrong; values were not compared\nnot sorted"
    )
