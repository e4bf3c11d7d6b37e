"""The matmul lab: its streams, its data, its bound, and that every variant keeps to it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_inputs import target
from stand_ins import written_out

from cudalab import labs, runner
from cudalab.backends import facts
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.matmul.lab import (
    UNIT,
    draw,
    factors,
    on_tensor_cores,
    relative_bound,
    small_tiles,
)
from cudalab.labs.matmul.plans import deal_squares, whole_waves

LAB = labs.get("matmul")
PRODUCTS = LAB.axes["product"]
TENSOR_CORES = (
    "tensor_cores_bf16x6", "tensor_cores_cluster", "tensor_cores_wide", "aat_tensor_cores",
    "tensor_cores_fp16x3", "tensor_cores_fp16x3_cluster", "tensor_cores_fp16x3_wide",
    "aat_tensor_cores_fp16x3",
)  # fmt: skip
VARIANTS = registry.variants(LAB)
# Edges of every tile in use, k shorter than a tile, one row, one column, more rows than columns.
SHAPES = [(1, 1, 1), (1, 9, 130), (130, 1, 3), (17, 15, 16), (5, 300, 130), (257, 33, 31)]
COVERED = [(variant, p) for variant in VARIANTS for p in PRODUCTS if variant.computes(
    {"product": p, "dtype": "float32"}
)]  # fmt: skip
IN_FLOAT32 = [(variant, p) for variant, p in COVERED if not variant.precision]
LOSSY = [variant for variant in VARIANTS if variant.precision]


def case(which="ab", **options):
    return LAB.complete({"product": which, **options})


def make(which, m, k, n, dist="uniform", seed=1):
    """Inputs with the matrices of `draw`, B as the product wants it stored."""
    a, b = draw(m, k, n, dist, seed)
    if which == "aat":
        return HostInputs({"a": a}, {"m": m, "k": k, "n": m})
    b = b if which == "ab" else np.ascontiguousarray(b.T)
    return HostInputs({"a": a, "b": b}, {"m": m, "k": k, "n": n})


def compute(device, variant, inputs, which):
    if not variant.computes(case(which)):
        pytest.skip(f"computes no {which}")
    missing = variant.missing(device.features)
    if missing:
        pytest.skip(f"requires {', '.join(missing)}")
    watch = runner.Stopwatch()
    step = runner.prepare(LAB, variant, device, inputs, case(which), watch=watch)
    step()
    return device.to_host(step.out)


def read(stream, which="ab", *, shape=False, tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(stream)
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case(which, shape=shape))
        arrays = {name: data.array() for name, data in inputs.arrays.items()}
    return HostInputs(arrays, inputs.params)


# Streams ----------------------------------------------------------------------------------------


def test_the_header_is_n_and_b_follows_a(tmp_path):
    stream = np.int32(2).tobytes() + np.arange(8, dtype="<f4").tobytes()
    inputs = read(stream, tmp_path=tmp_path)
    assert inputs.params == {"m": 2, "k": 2, "n": 2}
    assert inputs.arrays["a"].tolist() == [[0, 1], [2, 3]]
    assert inputs.arrays["b"].tolist() == [[4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("which", "header", "shapes"),
    [
        ("ab", [2, 3, 4], {"a": (2, 3), "b": (3, 4)}),
        ("abt", [2, 3, 4], {"a": (2, 3), "b": (4, 3)}),
        ("aat", [2, 3], {"a": (2, 3)}),
    ],
)
def test_a_shape_in_the_header(tmp_path, which, header, shapes):
    size = sum(rows * cols for rows, cols in shapes.values())
    stream = np.array(header, "<i4").tobytes() + np.zeros(size, "<f4").tobytes()
    inputs = read(stream, which, shape=True, tmp_path=tmp_path)
    assert {name: data.shape for name, data in inputs.arrays.items()} == shapes
    assert inputs.params == {"m": 2, "k": 3, "n": 2 if which == "aat" else 4}


@pytest.mark.parametrize("which", PRODUCTS)
def test_a_stream_cut_at_any_byte_is_refused(tmp_path, which):
    matrices = 1 if which == "aat" else 2
    whole = np.int32(2).tobytes() + np.arange(4 * matrices, dtype="<f4").tobytes()
    for length in range(len(whole)):
        with pytest.raises(InputError, match=f"byte {length}"):
            read(whole[:length], which, tmp_path=tmp_path)
    read(whole, which, tmp_path=tmp_path)


@pytest.mark.parametrize("which", PRODUCTS)
@pytest.mark.parametrize("sizes", [(0, 2, 3), (2, 3, 0), (2, 0, 3)])
def test_matrices_without_elements(which, sizes):
    m, k, n = sizes
    inputs = make(which, m, k, n)
    empty = LAB.empty_answer(inputs, case(which))
    n = m if which == "aat" else n
    if 0 in (m, k, n):
        assert empty.shape == (m, n)
        assert not empty.any()
    else:
        assert empty is None


# Data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", PRODUCTS)
@pytest.mark.parametrize("dist", LAB.distributions)
@pytest.mark.parametrize("n", [0, 1, 2, 33, (3, 5, 4)])
def test_generated_streams_are_read_back(tmp_path, which, dist, n):
    shape = isinstance(n, tuple)
    if shape and which == "aat":
        n = n[:2]
    options = case(which, shape=shape)
    inputs = read(
        b"".join(LAB.generate(options, n, dist, 7)), which, shape=shape, tmp_path=tmp_path
    )
    m, k, columns = (*n, n[0])[:3] if shape else (n, n, n)
    assert inputs.params == {"m": m, "k": k, "n": columns}
    a, b = draw(m, k, columns, dist, 7)
    x, y = factors(inputs, options)
    np.testing.assert_array_equal(x, a)
    np.testing.assert_array_equal(y, a.T if which == "aat" else b)


@pytest.mark.parametrize(("shape", "n"), [(False, (2, 3, 4)), (True, (2, 3)), (True, (2, 3, 4, 5))])
def test_a_size_that_does_not_fit_the_options(shape, n):
    with pytest.raises(UsageError, match="dimensions"):
        next(iter(LAB.generate(case(shape=shape), n, "uniform", 0)))


def test_distributions_are_what_they_promise():
    a, b = draw(40, 64, 30, "uniform", 3)
    assert -1 <= a.min() < -0.9
    assert 0.9 < b.max() < 1
    assert draw(40, 64, 30, "positive", 3)[0].min() >= 0
    integers, _ = draw(40, 64, 30, "integers", 3)
    assert set(np.unique(integers)) == set(range(-8, 8))
    wide, _ = draw(40, 64, 30, "wide", 3)
    assert np.ptp(np.frexp(wide[wide != 0])[1]) > 30
    left, right = (part.astype(np.float64) for part in draw(40, 64, 30, "cancelling", 3))
    a, b = draw(40, 64, 30, "special", 3)
    assert 0.05 < (a == 0).mean() < 0.2
    assert np.isnan(b).any()
    assert np.isinf(b).any()
    assert np.abs(left @ right).max() < 1e-3 * (np.abs(left) @ np.abs(right)).max()


DIGESTS = {
    ("uniform", "ab"): "d2f647786f704a8de9ec9ead9a108d2395e59e3e90309a68516c8e88fbacbd5c",
    ("uniform", "aat"): "1769b0d2d1a03c9367f3d120c14386846cd3b1fe886e6a15624040b10bf0fad9",
    ("uniform", "abt"): "cf0daf9de2e04e3b2c2306d998c5c75c1808637e1d1b1b2fb5a6c49ec8f0a16a",
    ("integers", "ab"): "4fc2819791b77a377e3441e6ecbfb1954fbc2a5a16f5e988ca4d1dd6d7dd2048",
    ("positive", "ab"): "f68b672dec1fcfff7ed06580f0acef8198f66289032e317b866fb14196ec736b",
    ("wide", "ab"): "4bd8bcde800075a6402953db5439f343dee9a2461b7201abb94c9384a13c93d6",
    ("cancelling", "ab"): "8b8f5e0b4fb9e19e8d9ad968b912265190c0f4ffa80ac9bba3d920414428a6db",
}


@pytest.mark.parametrize(("dist", "which", "digest"), [(*key, d) for key, d in DIGESTS.items()])
def test_same_seed_same_bytes(dist, which, digest):
    stream = b"".join(LAB.generate(case(which), 33, dist, 42))
    assert hashlib.sha256(stream).hexdigest() == digest


# The bound --------------------------------------------------------------------------------------


def test_the_reference_against_exact_integers():
    inputs = make("ab", 9, 33, 7, "integers")
    a, b = (inputs.arrays[name].astype(np.int64).tolist() for name in "ab")
    exact = [[sum(x * y for x, y in zip(row, col, strict=True)) for col in zip(*b, strict=True)]
             for row in a]  # fmt: skip
    assert LAB.reference(inputs, case()).tolist() == exact
    assert LAB.compare(np.array(exact, np.float32), inputs, case()) is None


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 12)] * 3),
    dist=st.sampled_from(LAB.distributions),
    seed=st.integers(0, 99),
)
def test_any_order_of_float32_additions_is_within_the_bound(sizes, dist, seed):
    inputs = make("ab", *sizes, dist, seed)
    a, b = inputs.arrays["a"], inputs.arrays["b"]
    order = np.random.default_rng(seed).permutation(sizes[1])
    total = np.zeros((sizes[0], sizes[2]), np.float32)
    with np.errstate(invalid="ignore"):
        for p in order:
            total += np.outer(a[:, p], b[p])
    assert LAB.compare(total, inputs, case()) is None


def test_a_missing_product_and_reduced_precision_are_found():
    inputs = make("ab", 40, 65, 40)
    a, b = factors(inputs, case())
    without_last = (a[:, :-1] @ b[:-1]).astype(np.float32)
    found = LAB.compare(without_last, inputs, case())
    assert found.count > 1500
    assert "times what (k + 2) 2^-24 |A||B| allows, k = 65" in str(found)
    # TF32 keeps ten bits of a factor: 8192 times coarser than float32's.
    coarse = [np.round(part * 2**10) / 2**10 for part in (a, b)]
    assert LAB.compare((coarse[0] @ coarse[1]).astype(np.float32), inputs, case()).count > 1000


def test_the_first_wrong_element_is_named():
    inputs = make("ab", 3, 4, 5, "integers")
    wrong = LAB.reference(inputs, case()).astype(np.float32)
    expected = wrong[1, 2]
    wrong[1, 2] += 1
    found = LAB.compare(wrong, inputs, case())
    assert (found.count, found.total) == (1, 15)
    assert found.first[0][0] == 7
    assert f"expected {expected:.1f}, got {expected + 1:.1f}" in str(found)
    assert "row 1, column 2" in str(found)


def test_nans_and_infinities_are_strict():
    inputs = make("ab", 2, 2, 2, "integers")
    inputs.arrays["a"][0, 0] = np.inf
    inputs.arrays["b"][:] = [[1, 0], [1, 1]]
    right = np.array([[np.inf, np.nan], LAB.reference(inputs, case())[1]], np.float32)
    assert LAB.compare(right, inputs, case()) is None
    for place, value in [((0, 0), -np.inf), ((0, 0), np.nan), ((0, 1), 0), ((1, 0), np.nan)]:
        wrong = right.copy()
        wrong[place] = value
        assert LAB.compare(wrong, inputs, case()).count == 1


# A lossy precision ------------------------------------------------------------------------------


def to_bf16(values):
    """The nearest numbers of 8 bits, ties to even, as float32."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 12)] * 3),
    dist=st.sampled_from(LAB.distributions),
    seed=st.integers(0, 99),
)
def test_sums_of_rounded_factors_are_within_the_lossy_bound(sizes, dist, seed):
    inputs = make("ab", *sizes, dist, seed)
    a, b = (to_bf16(inputs.arrays[name]) for name in "ab")
    total = np.zeros((sizes[0], sizes[2]), np.float32)
    with np.errstate(invalid="ignore"):
        for p in np.random.default_rng(seed).permutation(sizes[1]):
            total += np.outer(a[:, p], b[p])
    assert LAB.compare_at("bf16", total, inputs, case()) is None


def test_the_lossy_bound_is_that_of_rounding_to_8_bits():
    inputs = make("ab", 40, 65, 40)
    inputs.arrays["a"][:] = inputs.arrays["b"][:] = 1 + 2.0**-8  # half way: rounded down to 1
    rounded = np.full((40, 40), 65, np.float32)
    assert LAB.compare_at("bf16", rounded, inputs, case()) is None
    expected = LAB.reference(inputs, case())
    allowed = relative_bound(65, "bf16") * expected
    assert (np.abs(rounded - expected) / allowed).min() > 0.95
    # One product of 65 is missing; or factors have a bit less than they should.
    assert LAB.compare_at("bf16", rounded - 1, inputs, case()).count == 1600
    inputs.arrays["a"][:] = inputs.arrays["b"][:] = 1 + 2.0**-7
    assert "bf16 allows" in str(LAB.compare_at("bf16", rounded, inputs, case()))


@pytest.mark.parametrize("dist", [dist for dist in LAB.distributions if dist != "special"])
def test_a_lossy_answer_is_wrong_in_float32(dist):
    inputs = make("ab", 40, 65, 40, dist)
    a, b = (to_bf16(inputs.arrays[name]).astype(np.float64) for name in "ab")
    found = LAB.compare((a @ b).astype(np.float32), inputs, case())
    if dist == "integers":  # which have 4 bits
        assert found is None
    else:
        assert found.count > 1400


def test_only_precisions_of_the_lab_are_judged():
    inputs = make("ab", 2, 2, 2)
    with pytest.raises(ValueError, match="transpose has no precision 'bf16'"):
        labs.get("transpose").compare_at("bf16", inputs.arrays["a"], inputs, {})


@pytest.mark.parametrize("variant", LOSSY, ids=lambda variant: variant.name)
def test_a_lossy_product_is_never_the_default(variant):
    assert variant.title == f"{variant.name} ({variant.precision})"
    assert not variant.default
    for n in (1, 16, 256, 640, 1000, 1280, 2048, 4096, 8192):
        for which in PRODUCTS:
            chosen = LAB.choose(
                HostInputs({}, dict.fromkeys("mkn", n)), case(which), target("cuda")
            )
            assert variant.name not in (chosen or [])


@pytest.mark.cuda
@pytest.mark.parametrize("variant", LOSSY, ids=lambda variant: variant.name)
@pytest.mark.parametrize("which", PRODUCTS)
def test_a_lossy_product_is_refused_in_float32(device, variant, which):
    inputs = make(which, 130, 200, 140)
    got = compute(device, variant, inputs, which)
    assert LAB.compare_at(variant.precision, got, inputs, case(which)) is None
    assert LAB.compare(got, inputs, case(which)).count > got.size / 2


@pytest.mark.parametrize("which", PRODUCTS)
def test_a_ring_of_bulk_copies_loses_no_stage(device, monkeypatch, tmp_path, which):
    """With the copy engine and its barriers written out; also where k is less than the ring."""
    if device.name != "cpu":
        pytest.skip("the copy engine itself runs here")
    written_out(tmp_path, monkeypatch, "bulk_copy.cuh")
    variant = registry.find(LAB, "bulk_copies")
    for m, k, n in [(1, 1, 1), (128, 8, 256), (129, 39, 257), (130, 41, 300), (33, 200, 70)]:
        inputs = make(which, m, k, n)
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.parametrize("which", PRODUCTS)
def test_fragments_of_tensor_cores_lie_as_the_manual_says(device, monkeypatch, tmp_path, which):
    """The kernel's indices, with the instruction written out for a device without it."""
    if device.name != "cpu":
        pytest.skip("the instruction itself runs here")
    written_out(tmp_path, monkeypatch, "mma.cuh", "bf16.cuh")
    variant = registry.find(LAB, "tensor_cores_bf16")
    for m, k, n in [(1, 1, 1), (16, 16, 8), (128, 32, 128), (33, 17, 65), (129, 65, 131)]:
        inputs = make(which, m, k, n)
        got = compute(device, variant, inputs, which).reshape(m, -1)
        a, b = (to_bf16(part.astype(np.float32)) for part in factors(inputs, case(which)))
        exact, magnitude = a.astype(float) @ b, np.abs(a).astype(float) @ np.abs(b)
        assert (np.abs(got - exact) <= (k + 2) * UNIT * magnitude).all(), f"{m} x {k} x {n}"
        assert LAB.compare_at("bf16", got, inputs, case(which)) is None


@pytest.mark.parametrize("which", PRODUCTS)
def test_two_scaled_parts_keep_the_bits_of_a_float(device, monkeypatch, tmp_path, which):
    """Tensor cores, copies and rounding written out: all tiles, also those that need more.

    Blocks have ranges of their own: some are scaled by 2^±30, some are zeros, one has numbers that
    are 2^40 times as large as others, one an infinity, and one a subnormal number. Tiles whose
    numbers differ too much, but not as much as that, have the bits that three parts give.
    """
    if device.name != "cpu":
        pytest.skip("the instructions themselves run here")
    written_out(tmp_path, monkeypatch, "wgmma.cuh", "bulk_copy.cuh", "bf16.cuh", "fp16.cuh")
    variant = registry.find(LAB, "tensor_cores_fp16x3")
    for m, k, n, disturb in [
        (1, 1, 1, None), (130, 96, 259, None), (7, 300, 130, None), (129, 65, 3, "scales"),
        (20, 128, 20, "zeros"), (20, 128, 20, 2.0**-40), (20, 128, 20, np.inf),
        (20, 128, 20, 2.0**-140), (20, 128, 20, -0.0), (131, 130, 133, "wide"), (3, 19, 5, None),
    ]:  # fmt: skip
        inputs = make(which, m, k, n, "wide" if disturb == "wide" else "uniform")
        a = inputs.arrays["a"]
        if disturb == "scales":
            a[:, :32] *= np.float32(2.0**30)
            a[:, 32:64] *= np.float32(2.0**-30)
        elif disturb == "zeros":
            a[:, 64:] = 0
            a[:, 1:64:3] = 0
        elif disturb not in (None, "wide"):
            a[3, 40] = disturb
        got = compute(device, variant, inputs, which).reshape(m, -1)
        found = LAB.compare(got, inputs, case(which))
        assert found is None, f"{m} x {k} x {n}, {disturb}: {found}"
        if disturb in ("wide", 2.0**-40):
            three, two_wide = (
                compute(device, registry.find(LAB, name), inputs, which).reshape(m, -1)
                for name in ("tensor_cores_bf16x6", "tensor_cores_fp16x3_wide")
            )
            assert np.array_equal(got, three), f"{m} x {k} x {n}, {disturb}"
            assert np.array_equal(two_wide, three), f"{m} x {k} x {n}, {disturb}"
        if disturb in (None, "scales", "zeros") and k >= 64:
            left, right = factors(inputs, case(which))
            terms = np.abs(left) @ np.abs(right)
            error = np.abs(got - left @ right) / np.where(terms > 0, terms, 1)
            # Parts are off by 2 units each and leave out a product of 4; without the second parts
            # it would be thousands.
            assert error.max() <= 8 * UNIT, f"{m} x {k} x {n}, {disturb}"


# Variants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "which"), COVERED, ids=lambda v: getattr(v, "name", v))
def test_shapes_that_are_not_square(device, variant, which):
    for number, (m, k, n) in enumerate(SHAPES):
        inputs = make(which, m, k, n, LAB.distributions[number % len(LAB.distributions)])
        got = compute(device, variant, inputs, which)
        found = LAB.compare_at(variant.precision, got, inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.parametrize(("variant", "which"), IN_FLOAT32, ids=lambda v: getattr(v, "name", v))
def test_random_signs_keep_to_the_closer_bound(device, variant, which):
    inputs = make(which, 96, 256, 96)
    got = compute(device, variant, inputs, which)
    a, b = factors(inputs, case(which))
    error = np.abs(got - a @ b) / (np.abs(a) @ np.abs(b))
    assert error.max() <= 4 * np.sqrt(256) * UNIT


@pytest.mark.parametrize(("variant", "which"), COVERED, ids=lambda v: getattr(v, "name", v))
def test_special_values_stay_where_they_belong(device, variant, which):
    inputs = make(which, 20, 19, 18)
    inputs.arrays["a"][3, 5] = np.nan
    inputs.arrays["a"][7, 18] = np.inf
    got = compute(device, variant, inputs, which)
    found = LAB.compare_at(variant.precision, got, inputs, case(which))
    assert found is None, found


# The first product of each variant: their grids are alike. One with its own transpose is not tall.
TALL = {pair[0].name: pair for pair in reversed(IN_FLOAT32) if pair[1] != "aat"}


@pytest.mark.parametrize(("variant", "which"), TALL.values(), ids=TALL)
def test_more_rows_than_a_grid_has_blocks_in_y(device, variant, which):
    two_dimensional = variant.dispatch == "elements"  # the others count all tiles in x
    m = 16 * 65_535 + 5 if two_dimensional or not facts(device.name).on_host else 65_535 + 5
    a = (np.arange(m, dtype=np.float32) % 1021).reshape(m, 1)
    b = np.array([[3]], np.float32)
    inputs = HostInputs({"a": a, "b": b}, {"m": m, "k": 1, "n": 1})
    np.testing.assert_array_equal(compute(device, variant, inputs, which), 3 * a)


# Parts of bfloat16 hold neither infinities nor very large or small numbers. Each of these meets a
# limit of the range in which they do, of the numbers themselves or of their products.
def scaled(power, size):
    """Numbers with 24 significant bits, of random sign, in 2^power * [1, 2)."""
    bits = np.random.PCG64(size[0] + size[1]).random_raw(size[0] * size[1]).reshape(size)
    mantissas = 2**23 + (bits >> np.uint64(41)).astype(np.int64)
    signs = np.where(bits & np.uint64(1), -1.0, 1.0)
    return np.ldexp(signs * mantissas, power - 23).astype(np.float32)


SCALES = {
    "ordinary": (0, 0),
    "beyond-the-largest-in-parts": (127, -90),
    "largest-in-parts": (126, -100),
    "smallest-in-parts": (20, -100),
    "below-the-smallest-in-parts": (20, -101),
    "subnormal-factor": (20, -130),
    "subnormal-products": (-67, -67),
    "smallest-products": (-55, -55),
    "below-the-smallest-products": (-55, -56),
    "largest-products": (59, 59),
    "nearly-infinite-products": (60, 60),
    "infinite-products": (126, 126),
}


@pytest.mark.cuda
@pytest.mark.parametrize("name", TENSOR_CORES)
@pytest.mark.parametrize("which", PRODUCTS)
@pytest.mark.parametrize("scale", SCALES)
def test_tensor_cores_at_the_limits_of_the_range(device, name, which, scale):
    variant = registry.find(LAB, name)
    for m, k, n in [(130, 33, 140), (20, 16, 130), (1, 1, 1), (65, 200, 3)]:
        power_a, power_b = SCALES[scale]
        a, b = scaled(power_a, (m, k)), scaled(power_b, (k, n))
        if which == "aat":
            inputs = HostInputs({"a": a}, {"m": m, "k": k, "n": m})
        else:
            stored = b if which == "ab" else np.ascontiguousarray(b.T)
            inputs = HostInputs({"a": a, "b": stored}, {"m": m, "k": k, "n": n})
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.cuda
@pytest.mark.parametrize("name", TENSOR_CORES)
@pytest.mark.parametrize("which", ["ab", "abt"])
def test_tensor_cores_with_scales_along_k(device, name, which):
    """Large numbers of A meet small ones of B: sums of products that are all alike."""
    variant = registry.find(LAB, name)
    for spread in (20, 60, 120):
        inputs = make(which, 130, 200, 70)
        scales = np.arange(200) * 37 % (2 * spread) - spread
        b = inputs.arrays["b"] if which == "ab" else inputs.arrays["b"].T
        inputs.arrays["a"][:] = np.ldexp(inputs.arrays["a"], scales)
        b[:] = np.ldexp(b, -scales[:, None])
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"2^-{spread} to 2^{spread}: {found}"


@pytest.mark.cuda
@pytest.mark.parametrize("name", TENSOR_CORES)
@pytest.mark.parametrize("which", PRODUCTS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, 1e38, 1e-38, 1e-45])
def test_tensor_cores_keep_a_special_number_to_its_tiles(device, name, which, value):
    variant = registry.find(LAB, name)
    inputs = make(which, 300, 70, 200)
    without = compute(device, variant, inputs, which)
    inputs.arrays["a"][5, 69] = value
    got = compute(device, variant, inputs, which)
    assert LAB.compare(got, inputs, case(which)) is None
    untouched = np.s_[192:, 192:]  # by the first row of tiles, and with --aat the first column
    np.testing.assert_array_equal(got[untouched], without[untouched])
    if which != "aat":
        inputs.arrays["b"].reshape(-1)[-1] = value
        assert LAB.compare(compute(device, variant, inputs, which), inputs, case(which)) is None


@pytest.mark.cuda
@pytest.mark.parametrize("name", TENSOR_CORES)
@pytest.mark.parametrize("which", PRODUCTS)
@pytest.mark.parametrize("dist", LAB.distributions)
def test_tensor_cores_in_many_tiles_and_stages(device, name, which, dist):
    """More tile rows than a band, more blocks along k than stages, tails in all directions."""
    variant = registry.find(LAB, name)
    for m, k, n in [(2_100, 37, 261), (131, 517, 258), (128, 128, 128)]:
        inputs = make(which, m, k, n, dist)
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.cuda
@pytest.mark.parametrize("name", TENSOR_CORES)
def test_no_product_of_parts_is_missing(device, name):
    """Without any of the six or three, these sums would be off by more than 50 units."""
    variant = registry.find(LAB, name)
    inputs = make("ab", 384, 32, 384)
    got = compute(device, variant, inputs, "ab")
    a, b = factors(inputs, case())
    assert (np.abs(got - a @ b) / (np.abs(a) @ np.abs(b))).max() <= 4 * np.sqrt(32) * UNIT


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 31, 32, 64])
def test_every_square_of_a_symmetric_product_is_dealt_once(size):
    dealt = deal_squares(size)
    squares = [(row, col) for row, *columns in dealt.tolist() for col in columns if col >= 0]
    assert sorted(tuple(sorted(pair)) for pair in squares) == [
        (row, col) for row in range(size) for col in range(row, size)
    ]
    assert len(dealt) == -(-len(squares) // 2)  # nearly all in twos
    assert (dealt[:, 1] >= 0).all()


@pytest.mark.parametrize("name", ["aat_symmetric", "aat_tensor_cores"])
def test_a_symmetric_product_in_many_squares(device, name):
    """Squares side by side and apart, on the diagonal and alone; edges in both directions."""
    variant = registry.find(LAB, name)
    for m, k in [(64, 7), (128, 8), (129, 33), (260, 5), (520, 9), (645, 21), (900, 3)]:
        inputs = make("aat", m, k, m)
        got = compute(device, variant, inputs, "aat")
        found = LAB.compare(got, inputs, case("aat"))
        assert found is None, f"{m} x {k}: {found}"
        np.testing.assert_array_equal(got, got.T)


def test_waves_that_are_all_full():
    """Whole tiles fill waves; pieces cover k and are not empty; splitting is never dearer."""
    for tiles, k, at_once in product((1, 7, 131, 132, 133, 288, 512), (1, 64, 777, 3000), (3, 132)):
        whole, pieces, piece_k = whole_waves(tiles, k, 64, at_once, 64)
        assert whole == tiles // at_once * at_once
        assert (pieces - 1) * piece_k < k <= pieces * piece_k
        assert pieces == 1 or piece_k % 64 == 0
        assert -(-(tiles - whole) * pieces // at_once) * piece_k <= k
    assert whole_waves(288, 3000, 64, 132, 64) == (264, 5, 640)  # n = 3000
    assert whole_waves(512, 4096, 64, 132, 64) == (396, 1, 4096)  # the last wave is nearly full


@pytest.mark.parametrize("which", ["ab", "abt", "aat"])
@pytest.mark.parametrize("at_once", [1, 3, 5])
def test_tiles_of_the_last_wave_in_pieces(device, which, at_once):
    """Rows of B at any address, pieces that end inside a stage, tiles that end inside C."""
    variant = registry.find(LAB, "whole_waves")
    defines = {"AT_ONCE": at_once, "PIECE_COST": 1, "ALIGN_FROM": 1}
    variant = replace(variant, requires=(), defines=variant.defines | defines)
    for m, k, n in [(300, 200, 261), (129, 333, 257), (257, 130, 1030)]:
        inputs = make(which, m, k, n)
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.parametrize("which", ["ab", "abt", "aat"])
@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 64])
def test_equal_shares_of_all_steps(device, which, at_once):
    """Shares of several tiles, of parts of two, of a step; tiles of one, two and many blocks."""
    variant = registry.find(LAB, "stream_k")
    variant = replace(variant, defines=variant.defines | {"AT_ONCE": at_once})
    for m, k, n in [(300, 60, 261), (1, 1, 1), (129, 333, 257), (5, 1_000, 3), (257, 9, 1030)]:
        inputs = make(which, m, k, n)
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


def test_shares_leave_flags_and_ticket_as_they_were(device):
    """A plan runs many times, without anything that clears memory between its launches."""
    variant = registry.find(LAB, "stream_k")
    variant = replace(variant, defines=variant.defines | {"AT_ONCE": 5})
    inputs = make("ab", 300, 100, 300)
    watch = runner.Stopwatch()
    step = runner.prepare(LAB, variant, device, inputs, case("ab"), watch=watch)
    step()
    first = device.to_host(step.out)
    for _ in range(2):
        step()
        np.testing.assert_array_equal(device.to_host(step.out), first)
    assert LAB.compare(first, inputs, case("ab")) is None


@pytest.mark.parametrize("name", ["group_split_k", "group_split_k_80", "group_split_k_wide"])
@pytest.mark.parametrize("which", PRODUCTS)
def test_groups_of_warps_share_a_tile(device, name, which):
    """Steps that fill no stage, groups without one, more stages than the ring has; all edges.

    Rows of B start at multiples of 16, 8 and 4 bytes; copies reach beyond its last row.
    """
    variant = replace(registry.find(LAB, name), requires=())
    for m, k, n in [
        (50, 1, 40), (50, 47, 41), (64, 64, 64), (1, 333, 130), (33, 160, 259), (5, 31, 2),
        (3, 1, 1), (40, 70, 1), (20, 200, 3), (130, 129, 161), (70, 97, 6), (9, 385, 85),
        (1_100, 65, 131),
    ]:  # fmt: skip
        inputs = make(which, m, k, n)
        found = LAB.compare(compute(device, variant, inputs, which), inputs, case(which))
        assert found is None, f"{m} x {k} x {n}: {found}"


@pytest.mark.parametrize("name", ["group_split_k", "group_split_k_80", "group_split_k_wide"])
@pytest.mark.parametrize("n", [64, 66, 67, 69])
def test_columns_behind_a_tile_are_not_its_own(device, name, n):
    """What shifted rows hold of their neighbours, infinities here, stays out of the sums."""
    variant = replace(registry.find(LAB, name), requires=())
    inputs = make("ab", 33, 130, n)
    for col in (0, n - 1):
        inputs.arrays["b"][:, col] = np.inf
        inputs.arrays["a"][:] = np.abs(inputs.arrays["a"]) + 1
    got = compute(device, variant, inputs, "ab")
    assert np.isinf(got[:, [0, -1]]).all()
    assert np.isfinite(got[:, 1:-1]).all()
    assert LAB.compare(got, inputs, case()) is None


def test_small_tiles_are_those_with_the_least_work_in_a_multiprocessor():
    small, middle, wide = "group_split_k", "group_split_k_80", "group_split_k_wide"
    for size, expected in [
        ((256, 256, 256), small), ((512, 512, 512), small), ((640, 640, 640), small),
        ((777, 777, 777), middle), ((1000, 1000, 1000), wide), ((1001, 1001, 1001), wide),
        ((1024, 1024, 1024), wide), ((1400, 1400, 1400), wide), ((1280, 1280, 1280), small),
        ((128, 512, 128), small), ((100, 1000, 100), "split_k"), ((300, 3000, 300), "split_k"),
        ((3000, 3000, 40), small), ((2000, 500, 1001), wide), ((3000, 3000, 3), "split_k"),
    ]:  # fmt: skip
        assert small_tiles(*size, 132) == expected


def test_every_row_of_the_ladder_is_there():
    ladder = [
        "naive", "uncoalesced", "tiled", "aat_conflict", "aat_padded", "aat_padded_32",
        "abt_conflict", "abt_padded", "register_tiled_1d", "register_tiled_2d", "vectorized",
        "double_buffered", "async_copy_tiles", "async_copy_ring", "warp_tiles", "large_tiles",
        "read_ahead", "async_copy", "async_copy_deep",
    ]  # fmt: skip
    assert [variant.name for variant in VARIANTS[: len(ladder)]] == ladder


def test_tiles_are_chosen_by_the_sizes_on_a_gpu():
    small, wide = "group_split_k", "group_split_k_wide"
    for n, device, expected in [
        (16, "cuda", None),
        (256, "cuda", [small]),
        (640, "cuda", [small]),
        (1000, "cuda", ["tensor_cores_cluster", wide, small]),
        (1280, "cuda", ["tensor_cores_bf16x6", small]),
        (1536, "cuda", ["tensor_cores_wide", small]),
        (2048, "cuda", ["tensor_cores_fp16x3"]),
        (3000, "cuda", ["tensor_cores_fp16x3_wide"]),
        (4096, "cuda", ["tensor_cores_fp16x3"]),
        (8192, "cuda", ["tensor_cores_fp16x3_wide"]),
        (4096, "cpu", None),
    ]:
        inputs = HostInputs({}, dict.fromkeys("mkn", n))
        assert LAB.choose(inputs, case(), target(device)) == expected
        assert ("policy" in inputs.params) == bool(expected and "tensor" in expected[0])
    square = HostInputs({}, dict.fromkeys("mkn", 4096))
    assert LAB.choose(square, case("aat"), target("cuda")) == ["aat_tensor_cores_fp16x3"]
    assert "aat_tensor_cores_fp16x3" in square.params["policy"]
    lower = HostInputs({}, dict.fromkeys("mkn", 1000))
    assert LAB.choose(lower, case("aat"), target("cuda"))[0] == "aat_tensor_cores"
    thin = HostInputs({}, {"m": 9000, "k": 9000, "n": 40})  # no use for tiles of 128 columns
    assert LAB.choose(thin, case(), target("cuda")) == [small]


def test_tensor_cores_only_where_they_are_no_less_exact():
    for m, k, n, which, expected in [
        (720, 720, 720, "ab", True),
        (512, 1424, 512, "ab", True),
        (512, 4096, 512, "ab", False),
        (720, 4096, 720, "abt", True),
        (4096, 511, 4096, "ab", False),
        (720, 1440, 720, "aat", True),
        (720, 4096, 720, "aat", False),
        (640, 1024, 640, "aat", False),
        (1024, 8192, 1024, "aat", False),
        (1536, 1536, 1536, "aat", False),
        (2048, 8192, 2048, "aat", True),
    ]:
        assert on_tensor_cores(m, k, n, which) == expected


def test_products_of_the_course():
    a = np.array([[1, 2], [3, 4]], np.float32)
    b = np.array([[5, 6], [7, 8]], np.float32)
    params = dict.fromkeys("mkn", 2)
    expected = {
        "ab": [[19, 22], [43, 50]],
        "aat": [[5, 11], [11, 25]],
        "abt": [[17, 23], [39, 53]],
    }
    for which, dtype in product(PRODUCTS, LAB.axes["dtype"]):
        inputs = HostInputs({"a": a} if which == "aat" else {"a": a, "b": b}, params)
        got = LAB.reference(inputs, case(which, dtype=dtype))
        assert got.tolist() == expected[which]
