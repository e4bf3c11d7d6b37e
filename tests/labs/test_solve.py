"""The solve lab: its streams and text, its systems, its policy, its methods and their refusals."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_inputs import target
from stand_ins import written_out

from cudalab import labs, runner
from cudalab.errors import CudalabError, InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.base import Job
from cudalab.labs.inputs import HostInputs
from cudalab.labs.solve import factors, iterations, launches, spectrum, systems
from cudalab.labs.solve.factors import (
    UNIT,
    BlockedFactors,
    ChainedFactors,
    Factors,
)
from cudalab.labs.solve.iterations import chebyshev_coefficients
from cudalab.labs.solve.lab import CHOLESKY_N, TENSOR_CORES_N, quick_iteration
from cudalab.labs.solve.launches import arguments
from cudalab.labs.solve.residual import backward_error
from cudalab.labs.solve.tensor_factors import (
    CholeskyFactors,
    LookAheadFactors,
    TensorFactors,
)
from cudalab.language import source
from cudalab.language.source import parameter_names

LAB = labs.get("solve")
DTYPES = LAB.axes["dtype"]
VARIANTS = registry.variants(LAB)
DIRECT = (
    "gauss_jordan", "lu_partial_pivot", "lu_substitution_chain", "lu_blocked_panel",
    "complete_pivot",
)  # fmt: skip
LU_ON_TENSOR_CORES = {"lu_tensor_cores": TensorFactors, "lu_look_ahead": LookAheadFactors}
ON_TENSOR_CORES = (*LU_ON_TENSOR_CORES, "cholesky_tensor_cores")
ITERATIONS = (
    "richardson", "richardson_coalesced", "jacobi", "chebyshev", "conjugate_gradient",
    "conjugate_gradient_one_launch", "conjugate_gradient_scaled",
)  # fmt: skip
SOLVABLE = tuple(name for name in LAB.distributions if name not in systems.UNSOLVABLE)
COURSE = [[1, 2], [3, 4]]
TRIDIAGONAL = [-2.5, -4, -4.5, -4, -2.5]


def case(dtype="float32", **options):
    return LAB.complete({"dtype": dtype, **options})


def system(a, f, dtype="float32"):
    a, f = np.array(a, dtype), np.array(f, dtype)
    return HostInputs({"a": a, "f": f}, {"n": len(f)})


def make(n, dist="random", dtype="float32", seed=1):
    return system(*systems.draw(n, dist, seed, np.dtype(dtype)), dtype)


def compute(device, name, inputs, options):
    """Return x and what the run says. Without a name the policy chooses."""
    if name is None:
        chosen = LAB.choose(inputs, options, device)
        default = registry.default(LAB, options, device.name)
        variant = registry.find(LAB, chosen) if chosen else default
    else:
        variant = registry.find(LAB, name)
    watch = runner.Stopwatch()
    step = runner.prepare(LAB, variant, device, inputs, options, watch=watch)
    step()
    return device.to_host(step.out), step.notes


def read(stream, tmp_path, **options):
    path = tmp_path / "in.bin"
    path.write_bytes(stream)
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case(**options))
        arrays = {
            name: data if isinstance(data, np.ndarray) else data.array()
            for name, data in inputs.arrays.items()
        }
    return HostInputs(arrays, inputs.params)


# Streams and options ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_n_then_a_then_f(tmp_path, dtype):
    stream = np.int32(2).tobytes() + np.arange(6, dtype=dtype).tobytes()
    inputs = read(stream, tmp_path, dtype=dtype)
    assert inputs.params == {"n": 2}
    assert inputs.arrays["a"].tolist() == [[0, 1], [2, 3]]
    assert inputs.arrays["f"].tolist() == [4, 5]
    assert inputs.arrays["a"].dtype == dtype


def test_a_stream_cut_at_any_byte_is_refused(tmp_path):
    whole = np.int32(2).tobytes() + np.arange(6, dtype="<f4").tobytes()
    for length in range(len(whole)):
        with pytest.raises(InputError, match=f"byte {length}"):
            read(whole[:length], tmp_path)


@pytest.mark.parametrize(
    "text", [b"2\n1 2\n3 4\n5 6\n", b"2 1 2 3 4 5 6", b"\n\t2\r\n1 2.0 3e0\r\n+4 5 .6e1 \r\n"]
)
def test_text_is_numbers_between_white_space(tmp_path, text):
    inputs = read(text, tmp_path, dtype=None, text=True)
    assert inputs.arrays["a"].tolist() == COURSE
    assert inputs.arrays["f"].tolist() == [5, 6]
    assert inputs.arrays["a"].dtype == np.float64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "expected the number of equations, found nothing"),
        (b"two", "expected the number of equations, found 'two'"),
        (b"-1 2", "expected the number of equations, found '-1'"),
        (b"2\n1 2\n3 4\n5\n", "truncated: 5 numbers after n = 2, expected 2 x 2 for A and 2 for f"),
        (b"1\n1,5 2\n", "number 1 is '1,5'"),
        (b"1\n1 2x\n", "number 2 is '2x'"),
    ],
)
def test_text_that_is_refused(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        read(text, tmp_path, dtype=None, text=True)
    assert message in caught.value.message
    assert caught.value.hint


def test_text_answers(device):
    inputs = system(COURSE, [5, 6], "float64")
    options = case(None, text=True)
    answer, _ = compute(device, None, inputs, options)
    written = LAB.encode(lambda: answer, options)
    assert written == b"-4.0000000000e+00\n4.5000000000e+00\n"
    assert LAB.encode(lambda: answer, case("float64")) is None


def test_numbers_after_the_text_are_mentioned(device, tmp_path):
    inputs = read(b"1\n2\n4\n8 9\n", tmp_path, dtype=None, text=True)
    answer, notes = compute(device, None, inputs, case(None, text=True))
    assert answer.tolist() == [2]
    assert "warning: ignored 2 numbers after f" in notes


def test_a_text_answer_is_verified(tmp_path):
    inputs = system(COURSE, [5, 6], "float64")
    options = case(None, text=True)
    path = tmp_path / "out.txt"
    for text, right in [
        (b"-4.0000000000e+00\n4.5000000000e+00\n", True),
        (b"-4 4.5", True),
        (b"-4.0001 4.5", False),
        (b"nan 4.5", False),
    ]:
        path.write_bytes(text)
        with path.open("rb") as file:
            x = LAB.read_answer(InputStream(file.fileno()), inputs, options)
        assert (LAB.compare(x, inputs, options) is None) == right
    path.write_bytes(b"-4")
    with path.open("rb") as file, pytest.raises(InputError, match="1 numbers, expected 2"):
        LAB.read_answer(InputStream(file.fileno()), inputs, options)


def test_text_is_float64():
    assert case(None, text=True)["dtype"] == "float64"
    with pytest.raises(UsageError, match="--text is float64"):
        case("float32", text=True)


@pytest.mark.parametrize(
    "options", [{"alpha": 0.0}, {"alpha": np.nan}, {"tol": 0.0}, {"tol": np.inf}, {"max_iter": 0}]
)
def test_numbers_that_mean_nothing(options):
    with pytest.raises(UsageError, match="--"):
        case(**options)


def test_alpha_is_for_richardson(device):
    for name in (*DIRECT, *(name for name in ITERATIONS if not name.startswith("richardson"))):
        with pytest.raises(UsageError, match="step of Richardson"):
            compute(device, name, make(4, "dominant"), case(alpha=-0.1))


def test_no_unknowns_no_bytes():
    nothing = LAB.empty_answer(HostInputs({}, {"n": 0}), case("float64"))
    assert (nothing.size, nothing.dtype) == (0, np.float64)


# Systems ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dist", LAB.distributions)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 20])
def test_generated_streams_are_read_back(tmp_path, dtype, dist, n):
    stream = b"".join(LAB.generate(case(dtype), n, dist, 5))
    inputs = read(stream, tmp_path, dtype=dtype)
    a, f = systems.draw(n, dist, 5, np.dtype(dtype))
    np.testing.assert_array_equal(inputs.arrays["a"], a)
    np.testing.assert_array_equal(inputs.arrays["f"], f)
    assert np.isfinite(a).all() == (dist != "nan" or n == 0)
    if dtype == "float64":
        text = b"".join(LAB.generate(case(None, text=True), n, dist, 5))
        again = read(text, tmp_path, dtype=None, text=True)
        np.testing.assert_array_equal(again.arrays["a"], a)
        np.testing.assert_array_equal(again.arrays["f"], f)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_are_what_they_promise(dtype):
    def matrix(dist, n=40):
        return make(n, dist, dtype).arrays["a"].astype(np.float64)

    for name in ("dominant", "unsymmetric"):
        a = matrix(name)
        beside = np.abs(a).sum(axis=1) - np.diagonal(a)
        np.testing.assert_allclose(np.diagonal(a), 2 * beside, rtol=1e-6)
        assert bool((a == a.T).all()) == (name == "dominant")
    pivot = matrix("pivot")
    assert not np.diagonal(pivot)[::2].any()
    assert np.linalg.cond(pivot) < 100
    assert np.linalg.matrix_rank(matrix("singular")) == 39
    columns = np.abs(matrix("scaled")).max(axis=0)
    assert columns[:-1].max() > 8 * columns[:-1].min() > 0.3
    assert 0 < columns[-1] <= 2.0**-26
    x = LAB.reference(make(40, "scaled", dtype), case(dtype))
    assert np.abs(x).max() < 100
    assert np.isnan(matrix("nan")).sum() == 1
    for n in (1, 2, 33):
        assert np.linalg.matrix_rank(matrix("singular", n)) == n - 1
    wilkinson = matrix("wilkinson", 4)
    assert wilkinson.tolist() == [[1, 0, 0, 1], [-1, 1, 0, 1], [-1, -1, 1, 1], [-1, -1, -1, 1]]
    assert matrix("tridiagonal", 3).tolist() == [[-2, 1, 0], [1, -2, 1], [0, 1, -2]]


@pytest.mark.parametrize("cond", [1, 10, 1e4])
def test_the_condition_of_spd_is_chosen(cond):
    for n in (2, 33):
        a = make(n, f"spd:{cond}", "float64").arrays["a"]
        assert (a == a.T).all()
        values = np.linalg.eigvalsh(a)
        np.testing.assert_allclose(values, np.geomspace(1 / cond, 1, n), rtol=1e-8)


@pytest.mark.parametrize("dist", ["spd:0.5", "spd:1e9", "spd:many", "dominant:2"])
def test_parameters_that_are_refused(dist):
    with pytest.raises(UsageError):
        systems.draw(4, dist, 0, np.dtype("float32"))


DIGESTS = {
    ("unsymmetric", "float32"): "2e1b7020a1c350ab0c26a29a87efe2cb4d0af7590b9b358a24a13917750fa591",
    ("dominant", "float32"): "df37b311c7c3a63993eb145fe70afd755fdaee64ee3c8f260d9ac69f33429690",
    ("dominant", "float64"): "498bfbc07954b9928dd85eadf5dacff0a094f7c46e83ee48dff082cde2d0d83a",
    ("spd", "float32"): "3790f0ec17ce4aebddcdc8f780723a224f3629d5af64bdcd175e195ea3a2f579",
    ("spd", "float64"): "94fb3d534dd949cf243c3d932d577cd7834b73979d20c5c6f9322a8ef8341be9",
    ("spd:1e4", "float32"): "fa7c1f8f548cd1d205cfcc6ac80e55761e9047503ba745fff550356e6546f8c9",
    ("random", "float32"): "e800d3488b19f460ff61b36194a48bc8bd6cbc3d7c23566549b26ac6476f7b44",
    ("random", "float64"): "4bbb7f265cfaea202b0788efeee7642822800026ded50703f858376c1aa1fe9f",
    ("pivot", "float32"): "f2dc66c5630e858cd06fd7863157afbf7286343e2d4faa6b8e13b67e5b8bf292",
    ("wilkinson", "float32"): "cda23ac29eb9dca6e2a3fcf0b4abc8138806033db746fed29fd1d3d8ed9f935e",
    ("singular", "float32"): "0630db76d85c72add4ff0ef177076774d7b3acc86c5e76a30f94124f48272cfd",
    ("tridiagonal", "float64"): "8f05b75f1341a3da27f4052af9c96abb3a535a49eecdc0907de83d7292a587d4",
}


@pytest.mark.parametrize(("dist", "dtype", "digest"), [(*key, d) for key, d in DIGESTS.items()])
def test_same_seed_same_bytes(dist, dtype, digest):
    stream = b"".join(LAB.generate(case(dtype), 33, dist, 42))
    assert hashlib.sha256(stream).hexdigest() == digest


# The verdict ------------------------------------------------------------------------------------


def test_a_good_answer_to_an_ill_conditioned_system_is_right():
    n = 10
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n)[None, :] + 1.0)
    inputs = system(hilbert, np.ones(n), "float64")
    x = np.linalg.solve(inputs.arrays["a"], inputs.arrays["f"])
    assert LAB.compare(x, inputs, case("float64")) is None
    assert LAB.compare(x * (1 + 1e-6), inputs, case("float64")) is not None


def test_a_wrong_answer_is_described():
    inputs = system(COURSE, [5, 6])
    found = LAB.compare(np.array([-4, 4.6], np.float32), inputs, case())
    assert "the backward error is 0.0" in str(found)
    assert "[1] expected 6, got 6.39999962 as row i of A x" in str(found)
    assert LAB.compare(np.array([-4, 4.6], np.float32), inputs, case(tol=0.1)) is None
    nans = LAB.compare(np.array([np.nan, np.inf], np.float32), inputs, case())
    assert nans.count == 2


def test_the_reference():
    assert LAB.reference(system(COURSE, [5, 6]), case()).tolist() == [-4, 4.5]
    with pytest.raises(CudalabError, match="singular"):
        LAB.reference(make(3, "singular"), case())


# Every variant: right, or a refusal with a reason ------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIRECT)
def test_direct_methods_solve_everything(device, name, dtype):
    """Orders at which tiles end; test_variants.py has larger ones."""
    for n in (1, 2, 3, 31, 32, 33, 65):
        for dist in SOLVABLE:
            inputs = make(n, dist, dtype, seed=n)
            x, notes = compute(device, name, inputs, case(dtype))
            found = LAB.compare(x, inputs, case(dtype))
            assert found is None, f"n = {n}, {dist}: {found}"
            assert "backward error" in notes[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DIRECT, None])
@pytest.mark.parametrize("n", [1, 2, 33, 100])
def test_singular_systems_are_refused(device, name, dtype, n):
    with pytest.raises(CudalabError, match=f"A is singular: in step {n} of {n}") as caught:
        compute(device, name, make(n, "singular", dtype), case(dtype))
    assert caught.value.hint


APPLIES = {
    "richardson": ("dominant", "unsymmetric", "spd", "tridiagonal"),
    "richardson_coalesced": ("dominant", "unsymmetric", "spd", "tridiagonal"),
    "jacobi": ("dominant", "unsymmetric", "tridiagonal"),
    "chebyshev": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient_one_launch": ("dominant", "spd", "tridiagonal"),
    "conjugate_gradient_scaled": ("dominant", "spd", "tridiagonal"),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ITERATIONS)
def test_iterations_solve_what_they_apply_to_and_refuse_the_rest(device, name, dtype):
    for n in (2, 17, 33):
        for dist in LAB.distributions:
            inputs = make(n, dist, dtype, seed=3)
            x, notes, refusal = attempt(device, name, inputs, case(dtype))
            if refusal:
                assert dist not in APPLIES[name], f"n = {n}, {dist}: {refusal}"
                assert len(refusal) > 40
            else:
                found = LAB.compare(x, inputs, case(dtype))
                assert found is None, f"n = {n}, {dist}: {found}"
                assert "iterations" in notes[-1]


def attempt(device, name, inputs, options):
    try:
        return (*compute(device, name, inputs, options), None)
    except CudalabError as error:
        return None, [], error.message


@pytest.mark.parametrize("name", ITERATIONS)
def test_negative_definite_systems(device, name):
    inputs = make(17, "tridiagonal")
    x, _ = compute(device, name, inputs, case())
    assert LAB.compare(x, inputs, case()) is None
    inputs.arrays["a"] *= -1
    x, _ = compute(device, name, inputs, case())
    assert LAB.compare(x, inputs, case()) is None


def check_it_runs(device, name):
    """Skip the test if the device lacks what the variant requires."""
    if missing := registry.find(LAB, name).missing(device.features):
        pytest.skip(f"needs {', '.join(missing)}")


@pytest.mark.parametrize("name", [v.name for v in VARIANTS])
def test_a_zero_right_hand_side(device, name):
    check_it_runs(device, name)
    inputs = make(33, "dominant")
    inputs.arrays["f"][:] = 0
    x, _ = compute(device, name, inputs, case())
    assert not x.any()


@pytest.mark.parametrize("name", [v.name for v in VARIANTS])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(device, name, value):
    check_it_runs(device, name)
    for array, place in (("a", (3, 1)), ("f", 2)):
        inputs = make(20, "dominant")
        inputs.arrays[array][place] = value
        with pytest.raises(InputError, match=f"{array.upper() if array == 'a' else array} holds"):
            compute(device, name, inputs, case())


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 999), data=st.data())
def test_a_x_is_f(n, seed, data):
    """Whatever the default returns satisfies the equations."""
    from cudalab.backends import open_device  # noqa: PLC0415

    scale = data.draw(st.sampled_from([1, 1e-12, 1e12]))
    dist = data.draw(st.sampled_from(SOLVABLE))
    inputs = make(n, dist, "float32", seed)
    inputs.arrays["a"] *= np.float32(scale)
    with open_device("cpu", 2) as device:
        x, _ = compute(device, None, inputs, case())
    assert LAB.compare(x, inputs, case()) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-100, 100])
def test_rows_and_right_sides_of_any_size(device, dtype, exponent):
    inputs = make(40, "random", dtype)
    for name in DIRECT:
        scaled = {key: array.copy() for key, array in inputs.arrays.items()}
        scaled["a"][::2] *= 2.0**exponent
        scaled["f"][::2] *= 2.0**exponent
        x, _ = compute(device, name, HostInputs(scaled, inputs.params), case(dtype))
        plain, _ = compute(device, name, inputs, case(dtype))
        np.testing.assert_allclose(x, plain, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIRECT)
def test_columns_of_any_size(device, name, dtype):
    """Unknowns in other units, by powers of two: the digits stay, and so does what is singular."""
    n, most = 70, 40 if dtype == "float32" else 400
    units = 2.0 ** np.random.default_rng(7).integers(-most, most, n, endpoint=True)
    for dist in ("random", "pivot"):
        inputs = make(n, dist, dtype)
        plain, _ = compute(device, name, inputs, case(dtype))
        inputs.arrays["a"] = (inputs.arrays["a"] * units).astype(dtype)
        x, notes = compute(device, name, inputs, case(dtype))
        np.testing.assert_allclose(x * units, plain, rtol=1e-3)
        assert "turning to" not in " ".join(notes)
        inputs.arrays["a"][:, 41] = inputs.arrays["a"][:, 40] * 2.0**-most
        with pytest.raises(CudalabError, match="A is singular: in step"):
            compute(device, name, inputs, case(dtype))


def test_the_exact_answers_of_the_course(device):
    for name in (*DIRECT, None):
        x, _ = compute(device, name, system(COURSE, [5, 6]), case())
        assert x.tolist() == [-4, 4.5]
        x, _ = compute(device, name, make(5, "tridiagonal"), case())
        assert x.tolist() == TRIDIAGONAL


# Factors by panels ------------------------------------------------------------------------------

# Elections of at most 64 rows (in double 32) at a time, and blocks of two panels (one).
SMALL = {"MAX_THREADS_PER_BLOCK": 64, "BLOCK": 64}


def factorize(device, name, method, inputs, options, **defines):
    """The method after its factorization."""
    ours = registry.find(LAB, name)
    variant = dataclasses.replace(ours, defines={**ours.defines, **defines})
    kernels = device.compile(
        source.load(variant.path, variant.label),
        {**LAB.kernel_defines(options), **variant.defines},
        arch=variant.architecture,
    )
    buffers = {key: device.to_device(array) for key, array in inputs.arrays.items()}
    found = method(
        Job(
            device=device,
            kernels=kernels,
            variant=variant,
            buffers=buffers,
            params=inputs.params,
            case=options,
        )
    )
    found.factorize()
    return found


def scaled_rows(device, found, inputs):
    """A as it was factorized, in float64: scaled, and its rows in the order of the pivots."""
    n = found.n
    scales, column_scales = (
        device.to_host(scales)[:n].astype(np.float64)
        for scales in (found.scales, found.column_scales)
    )
    order = device.to_host(found.row_of)[: found.padded]
    assert sorted(order.tolist()) == list(range(found.padded))
    padded = np.eye(found.padded)
    padded[:n, :n] = inputs.arrays["a"].astype(np.float64) * scales[:, None] * column_scales
    return padded[order]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("defines", [{}, SMALL, {**SMALL, "BLOCK": 128}], ids=str)
def test_factors_multiply_to_the_matrix(device, dtype, defines):
    """Also where pivots are found in several rounds, and panels in several blocks."""
    for n, dist in [(1, "random"), (33, "pivot"), (130, "random"), (257, "pivot"), (400, "random")]:
        inputs = make(n, dist, dtype, seed=n)
        found = factorize(
            device, "lu_blocked_panel", BlockedFactors, inputs, case(dtype), **defines
        )
        work = device.to_host(found.work).astype(np.float64)
        factors = work[: found.padded, : found.padded]
        assert not work[found.padded :].any()
        assert not work[:, found.padded :].any()
        lower, upper = np.tril(factors, -1) + np.eye(found.padded), np.triu(factors)
        # Each of up to n products of a sum is rounded, and so is each partial sum.
        allowed = 2 * n * UNIT[dtype] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled_rows(device, found, inputs))
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"
        # Partial pivoting keeps multipliers below 1 up to the scaling of rows by powers of two,
        # the election of pivots in blocks below a small number.
        assert np.abs(lower).max() < (2 if found.finds_greatest else 20)


@pytest.fixture
def tensor_cores(device, tmp_path, monkeypatch):
    """Tensor cores and the copy engine, written out on the CPU device."""
    if device.name == "cpu":
        written_out(tmp_path, monkeypatch, "wgmma.cuh", "fp16.cuh", "bf16.cuh", "bulk_copy.cuh")
    elif "sm_90a" not in device.features:
        pytest.skip("needs compute capability 9.0")


def block_of(device):
    """The shipped number of columns, or half of it where compiling takes longer than computing."""
    return 128 if device.name == "cpu" else 256


@pytest.mark.usefixtures("tensor_cores")
def test_factors_from_tensor_cores_multiply_to_the_matrix(device):
    """As exactly as floats; looking ahead changes no bit."""
    for n, block in [(33, 128), (300, 128), (420, block_of(device))]:
        inputs = make(n, "random", seed=n)
        found = [
            factorize(device, name, method, inputs, case(), BLOCK=block)
            for name, method in LU_ON_TENSOR_CORES.items()
        ]
        plain, ahead = (device.to_host(one.work) for one in found)
        np.testing.assert_array_equal(plain, ahead)
        padded = found[0].padded
        assert not plain[padded:].any()
        assert not plain[:, padded:].any()
        factors = plain[:padded, :padded].astype(np.float64)
        lower, upper = np.tril(factors, -1) + np.eye(padded), np.triu(factors)
        allowed = n * UNIT["float32"] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled_rows(device, found[0], inputs))
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"


@pytest.mark.usefixtures("tensor_cores")
def test_cholesky_factors_multiply_to_the_matrix(device):
    """Definite matrices of either sign and in any units; U is D times L transposed."""
    for n, block, sign in [(33, 128, 1), (300, 128, -1), (700, block_of(device), 1)]:
        inputs = make(n, "spd:1e3", seed=n)
        units = np.exp2(np.arange(n) % 21 - 10)
        inputs.arrays["a"] = (sign * units[:, None] * inputs.arrays["a"] * units).astype(np.float32)
        found = factorize(
            device, "cholesky_tensor_cores", CholeskyFactors, inputs, case(), BLOCK=block
        )
        found.check()
        work, padded = device.to_host(found.work).astype(np.float64), found.padded
        assert not work[padded:].any()
        assert not work[:, padded:].any()
        lower, upper = np.tril(work[:padded, :padded], -1) + np.eye(padded), np.triu(work)
        upper = upper[:padded, :padded]
        scaled = scaled_rows(device, found, inputs)
        scaled[n:] *= sign
        assert 1 <= np.abs(scaled.diagonal()).min() <= np.abs(scaled.diagonal()).max() < 4
        allowed = n * UNIT["float32"] * (np.abs(lower) @ np.abs(upper))
        error = np.abs(lower @ upper - scaled)
        assert (error <= allowed).all(), f"n = {n}: {(error / (allowed + 1e-300)).max()}"
        # U has the same elements as L, before they were divided by the pivots.
        np.testing.assert_allclose(upper, (lower * upper.diagonal()).T, rtol=4 * UNIT["float32"])


@pytest.mark.usefixtures("tensor_cores")
def test_cholesky_factors_are_for_definite_matrices(device):
    """All others go to LU factors."""
    x, notes = compute(device, "cholesky_tensor_cores", make(200, "spd"), case())
    assert np.isfinite(x).all()
    assert any(note.startswith("cholesky_tensor_cores: 1 refinement") for note in notes)
    unsymmetric = np.eye(300)
    unsymmetric[290, 5], unsymmetric[5, 290] = 0.9, -5
    for inputs, reason in [
        (system(np.diag([2.0, 3, -1, 1]), np.ones(4)), "A is not definite: in step 3 of 4"),
        (system(unsymmetric, np.ones(300)), "backward error"),
    ]:
        x, notes = compute(device, "cholesky_tensor_cores", inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        (turned,) = [note for note in notes if "turning to lu_look_ahead" in note]
        assert reason in turned


def test_large_systems_are_for_tensor_cores():
    a = np.ones((TENSOR_CORES_N, TENSOR_CORES_N), np.float32)
    a[0, 1] = 2
    definite = np.ones((CHOLESKY_N, CHOLESKY_N), np.float32)
    mixed = np.copysign(definite, np.arange(CHOLESKY_N) - 5)
    for matrix, n, dtype, device, chosen in [
        (a, TENSOR_CORES_N, "float32", "cuda", "lu_look_ahead"),
        (a, TENSOR_CORES_N - 1, "float32", "cuda", None),
        (a, TENSOR_CORES_N, "float64", "cuda", None),
        (a, TENSOR_CORES_N, "float32", "cpu", None),
        (definite, CHOLESKY_N, "float32", "cuda", "cholesky_tensor_cores"),
        (-definite, CHOLESKY_N, "float32", "cuda", "cholesky_tensor_cores"),
        (mixed + mixed.T, CHOLESKY_N, "float32", "cuda", None),
        (definite, CHOLESKY_N - 1, "float32", "cuda", None),
        (definite, CHOLESKY_N, "float64", "cuda", None),
        (definite, CHOLESKY_N, "float32", "cpu", None),
    ]:
        inputs = system(matrix[:n, :n], np.ones(n), dtype)
        assert LAB.choose(inputs, case(dtype), target(device)) == chosen
        assert inputs.params["policy"].startswith("auto: ")


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_block_finds_the_pivots_that_a_search_of_the_column_finds(device, dtype):
    for n, dist in [(40, "pivot"), (100, "random"), (300, "random")]:
        inputs = make(n, dist, dtype, seed=n)
        one, other = (
            device.to_host(factorize(device, name, method, inputs, case(dtype)).row_of)
            for name, method in [
                ("lu_blocked_panel", BlockedFactors),
                ("lu_partial_pivot", Factors),
            ]
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_upper_of_equal_rows_is_the_pivot(device, dtype):
    """Elections are the same in every run: ties are decided by place."""
    n = 96
    a = np.where(np.arange(n)[:, None] >= np.arange(n)[None, :], 1, -1).astype(dtype)
    inputs = system(a, np.ones(n), dtype)
    orders = [
        device.to_host(
            factorize(
                device, "lu_blocked_panel", BlockedFactors, inputs, case(dtype), **SMALL
            ).row_of
        )[:n].tolist()
        for _ in range(2)
    ]
    assert orders[0] == orders[1]
    assert orders[0][0] == 0


def test_elections_have_room_for_all_rows():
    method = object.__new__(BlockedFactors)
    method.rows_each = 2
    for method.max_threads in (32, 256, 512):
        for rows in (32, 64, 704, 768, 800, 4096, 16_384, 65_536):
            blocks, threads = method.election(rows)
            assert threads % 32 == 0
            assert 32 <= threads <= method.max_threads
            assert (blocks - 1) * 2 * threads < rows <= blocks * 2 * threads
            assert blocks == 1 or rows > 2 * method.max_threads


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*DIRECT, "small"])
def test_a_permutation_is_undone_exactly(device, name, dtype):
    """Most rows are zero in all columns of a panel: an election must not lose the others."""
    n = 230
    order = np.random.default_rng(3).permutation(n)
    inputs = system(np.eye(n)[order], np.arange(n), dtype)
    variant = small_elections() if name == "small" else registry.find(LAB, name)
    step = runner.prepare(LAB, variant, device, inputs, case(dtype), watch=runner.Stopwatch())
    step()
    np.testing.assert_array_equal(device.to_host(step.out)[order], np.arange(n))
    assert "turning to" not in " ".join(step.notes)


def small_elections():
    variant = registry.find(LAB, "lu_blocked_panel")
    return dataclasses.replace(variant, defines={**variant.defines, **SMALL})


@pytest.mark.parametrize("dtype", DTYPES)
def test_elections_in_rounds_solve_and_refuse(device, dtype):
    small = small_elections()
    for dist in (*SOLVABLE, "singular"):
        inputs = make(230, dist, dtype)
        step = runner.prepare(LAB, small, device, inputs, case(dtype), watch=runner.Stopwatch())
        if dist == "singular":
            with pytest.raises(CudalabError, match="A is singular: in step 230 of 230"):
                step()
            # The verdict is that of a method that searches the whole column.
            assert "turning to lu_partial_pivot" in step.notes[-1]
        else:
            step()
            x = device.to_host(step.out)
            assert LAB.compare(x, inputs, case(dtype)) is None, dist


# Growth, stopping, divergence --------------------------------------------------------------------


def test_norms_of_zero_beside_a_residual_are_no_answer():
    assert backward_error(1.0, 0.0, 0.0, a_norm=0.0) == math.inf
    assert backward_error(0.0, 0.0, 0.0, a_norm=0.0) == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_growing_pivots_are_noticed_and_solved(device, dtype):
    """Pivots from the column double 149 times: beyond float32's range, and beyond its digits."""
    inputs = make(150, "wilkinson", dtype)
    for name in ("lu_partial_pivot", "lu_blocked_panel", "gauss_jordan"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        if name != "gauss_jordan":
            assert any("turning to complete_pivot" in note for note in notes)


def test_max_iter_ends_an_iteration_with_the_residual_reached(device):
    with pytest.raises(CudalabError, match="not converged after 7 iterations, residual") as caught:
        compute(device, "richardson", make(33, "spd"), case(max_iter=7))
    assert "lu_partial_pivot" in caught.value.hint


@pytest.mark.parametrize("dtype", DTYPES)
def test_unknowns_of_different_size_cost_no_iterations(device, dtype):
    """Rows and columns by the same powers of two: badly conditioned, but only by scaling."""
    inputs = make(120, "spd:10", dtype)
    units = 2.0 ** np.random.default_rng(3).integers(-6, 6, 120)
    inputs.arrays["a"] = (inputs.arrays["a"] * units * units[:, None]).astype(dtype)
    inputs.arrays["f"] = (inputs.arrays["f"] * units).astype(dtype)
    counts = []
    for name in ("conjugate_gradient_scaled", "conjugate_gradient"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        counts.append(int(notes[-1].split()[1]))
    assert 3 * counts[0] < counts[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_launch_an_iteration_needs_no_more_iterations(device, dtype, sign):
    """The same method: `conjugate_gradient` only looks at its residual less often."""
    inputs = make(120, "spd:100", dtype)
    inputs.arrays["a"] = sign * inputs.arrays["a"]
    counts = []
    for name in ("conjugate_gradient_one_launch", "conjugate_gradient"):
        x, notes = compute(device, name, inputs, case(dtype))
        assert LAB.compare(x, inputs, case(dtype)) is None
        assert name in notes[-1]
        counts.append(int(notes[-1].split()[1]))
    assert counts[0] <= counts[1] <= counts[0] + 12


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_chain_of_substitutions_gives_what_the_factors_say(device, dtype):
    """Both take the same factors; they add up in another order."""
    for n in (1, 32, 33, 250):
        inputs = make(n, "random", dtype, seed=n)
        solutions = []
        for name, method in [
            ("lu_partial_pivot", Factors),
            ("lu_substitution_chain", ChainedFactors),
        ]:
            found = factorize(device, name, method, inputs, case(dtype))
            device.copy(np.arange(1, found.ld + 1).astype(dtype), found.b)
            found.substitute()
            solutions.append(device.to_host(found.y)[:n].astype(np.float64))
        one, other = solutions
        assert np.linalg.norm(one - other) <= 1e5 * UNIT[dtype] * np.linalg.norm(one)


def test_tol_stops_earlier(device):
    inputs = make(33, "spd")
    counts = []
    for tol in (1e-2, 1e-4, None):
        x, notes = compute(device, "richardson", inputs, case(tol=tol))
        assert LAB.compare(x, inputs, case(tol=tol)) is None
        counts.append(int(notes[-1].split()[1]))
    assert counts[0] < counts[1] < counts[2]


def test_an_unreachable_tol_is_an_error(device):
    for name in ("lu_partial_pivot", "jacobi"):
        with pytest.raises(CudalabError, match="backward error"):
            compute(device, name, make(33, "dominant"), case(tol=1e-14, max_iter=200))


@pytest.mark.parametrize("name", ["lu_partial_pivot", "complete_pivot", "jacobi"])
def test_an_unreachable_tol_is_named_as_the_reason(device, name):
    options = case(tol=1e-30, max_iter=200)
    with pytest.raises(CudalabError, match="--tol asks for 1e-30") as caught:
        compute(device, name, make(33, "dominant"), options)
    assert "rounding" in caught.value.hint
    assert "lu_partial_pivot" not in caught.value.hint


def test_direct_methods_say_that_they_ignore_max_iter(device):
    warning = "warning: ignored --max-iter: {} does not iterate"
    for name in (*DIRECT, None):
        _, notes = compute(device, name, make(9), case(max_iter=1))
        assert warning.format(name or registry.default(LAB, case(), device.name).name) in notes
    _, notes = compute(device, None, make(150, "dominant"), case(max_iter=1))
    assert "turning to lu_partial_pivot" in " ".join(notes)
    assert "ignored" not in " ".join(notes)
    _, notes = compute(device, "lu_partial_pivot", make(9), case())
    assert "ignored" not in " ".join(notes)


def test_divergence_is_detected(device):
    inputs = make(17, "spd")
    with pytest.raises(CudalabError, match=r"richardson diverges: after \d+ iterations, residual"):
        compute(device, "richardson", inputs, case(alpha=0.5))
    x, notes = compute(device, "richardson", inputs, case(alpha=-0.5))
    assert LAB.compare(x, inputs, case()) is None
    assert notes[0] == "richardson: alpha = -0.5: given"


def test_a_given_alpha_means_that_iteration(device):
    inputs = system([[2, -1], [-1, 2]], [1, 1])
    x, notes = compute(device, None, inputs, case(alpha=-0.5))
    np.testing.assert_allclose(x, [1, 1], rtol=1e-5)
    assert notes[0].startswith("richardson: alpha = -0.5")
    with pytest.raises(CudalabError, match="diverges"):
        compute(device, None, system(COURSE, [5, 6]), case(alpha=-0.1))


# Steps from the spectrum ------------------------------------------------------------------------


def richardson_step(a):
    a = np.array(a, np.float64)
    radii = np.abs(a).sum(axis=1) - np.abs(np.diagonal(a))
    return spectrum.richardson_step(
        np.diagonal(a),
        radii,
        symmetric=bool((a == a.T).all()),
        product=lambda v: a @ v,
        transposed=lambda v: a.T @ v,
        matrix=lambda: a,
    )


def radius(a, alpha):
    return np.abs(1 + alpha * np.linalg.eigvals(np.array(a, np.float64))).max()


@pytest.mark.parametrize("dist", ["dominant", "unsymmetric", "spd", "spd:1e4", "tridiagonal"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_chosen_alpha_converges(dist, sign):
    for n in (1, 2, 17, 60):
        a = sign * make(n, dist, "float64").arrays["a"]
        alpha, _ = richardson_step(a)
        assert radius(a, alpha) < 1
        assert np.sign(alpha) == -np.sign(a[0, 0])


def test_the_sign_of_alpha_is_not_that_of_the_lecture():
    """|alpha| |A| < 1 is not enough: with alpha > 0 a positive definite matrix diverges."""
    a = [[2, 1], [1, 2]]
    alpha, _ = richardson_step(a)
    assert alpha == pytest.approx(-0.5)
    assert radius(a, -alpha) > 1
    assert radius(a, 0.1) > 1


def test_no_alpha_converges_on_the_course_s_system(device):
    for alpha in np.linspace(-3, 3, 601):
        assert radius(COURSE, alpha) >= 1
    with pytest.raises(spectrum.NoStepError, match="no alpha converges: the eigenvalues of A"):
        compute(device, "richardson", system(COURSE, [5, 6]), case())
    with pytest.raises(spectrum.NoStepError, match="A is symmetric with eigenvalues of both signs"):
        richardson_step([[1, 2], [2, 1]])


def test_complex_eigenvalues_right_of_zero():
    a = [[1, 5, 0], [-5, 1, 0], [3, 0, 2]]
    alpha, why = richardson_step(a)
    assert radius(a, alpha) < 1
    best = min(radius(a, -step) for step in np.linspace(1e-3, 0.2, 2000))
    assert radius(a, alpha) <= best * (1 + 1e-4)
    assert "real parts from 1 to 2" in why


def test_a_large_matrix_with_a_definite_symmetric_part(monkeypatch):
    monkeypatch.setattr(spectrum, "SMALL_N", 16)
    n = 60
    upper = np.triu(systems.draw(n, "random", 3, np.dtype("float64"))[0], 1) / np.sqrt(n)
    a = 2 * np.eye(n) + upper - upper.T
    alpha, why = richardson_step(a)
    assert radius(a, alpha) < 1
    assert "symmetric part" in why
    with pytest.raises(spectrum.NoStepError, match="no alpha is known to converge"):
        richardson_step(a - 2 * np.eye(n) + np.diag(np.arange(n) % 2 - 0.5))


@pytest.mark.parametrize("n", [1, 2, 10, 50, 300])
def test_lanczos_finds_the_ends_of_the_spectrum(n):
    a = systems.draw(n, "spd:1000", 2, np.dtype("float64"))[0]
    found = spectrum.lanczos(lambda v: a @ v, n, float(np.abs(a).sum(axis=1).max()))
    values = np.linalg.eigvalsh(a)
    assert found.definite
    assert found.high >= values[-1] * (1 - 1e-6)
    assert found.high <= 1.1 * values[-1]
    assert found.low <= 2 * values[0] or n > spectrum.LANCZOS_STEPS


def test_chebyshev_coefficients_give_chebyshev_s_polynomial():
    low, high, steps = 1.0, 9.0, 6
    values = np.linspace(low, high, 50)
    error, step = np.ones_like(values), np.zeros_like(values)
    for _, (c1, c2) in zip(range(steps), chebyshev_coefficients(low, high), strict=False):
        step = c1 * step + c2 * values * error  # f - A x = A times the error
        error = error - step

    def polynomial(x):
        return np.cosh(steps * np.arccosh(x + 0j)).real

    expected = polynomial((high + low - 2 * values) / (high - low)) / polynomial(10 / 8)
    np.testing.assert_allclose(error, expected, atol=1e-12)


# The policy -------------------------------------------------------------------------------------


def dominant(n, factor, *, symmetric=False):
    a = systems.draw(n, "random", 4, np.dtype("float64"))[0]
    a = a + a.T if symmetric else a
    np.fill_diagonal(a, 0)
    np.fill_diagonal(a, factor * np.abs(a).sum(axis=1).max())
    return a.astype(np.float32)


def test_the_policy_chooses_by_the_matrix():
    assert quick_iteration(dominant(400, 2), 1e-5)[0] == "jacobi"
    name = "conjugate_gradient_scaled"
    assert quick_iteration(dominant(400, 1.1, symmetric=True), 1e-5)[0] == name
    for a, why in [
        (make(100, "random").arrays["a"], "not strictly diagonally dominant"),
        (make(400, "tridiagonal").arrays["a"], "not strictly diagonally dominant"),
        (make(400, "pivot").arrays["a"], "not strictly diagonally dominant"),
        (np.full((300, 300), np.nan, np.float32), "not strictly diagonally dominant"),
        (dominant(200, 1.01), "which is not much"),
    ]:
        variant, reason = quick_iteration(a, 1e-5)
        assert variant is None
        assert why in reason


def test_the_policy_keeps_its_promise_about_iterations(device):
    for a in (dominant(200, 3), dominant(200, 1.5, symmetric=True)):
        inputs = system(a, np.ones(200))
        x, notes = compute(device, None, inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0].startswith("auto: ")
        promised = int(notes[0].split("about ")[1].split()[0])
        assert int(notes[-1].split()[1]) <= promised + 4  # measured at every fourth or later


def test_the_policy_says_what_it_did(device):
    direct = registry.default(LAB, case(), device.name).name
    for dist, variant in [
        ("random", direct),
        ("unsymmetric", "jacobi"),
        ("dominant", "conjugate_gradient_scaled"),
    ]:
        inputs = make(200, dist)
        x, notes = compute(device, None, inputs, case())
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0].startswith(f"auto: {variant}: ")
        assert notes[-1].startswith(f"{variant}: ")
        assert "residual" in notes[-1]


def test_a_policy_that_was_wrong_turns_to_lu(device):
    """An iteration that the policy chose, and that then does not converge or does not apply."""
    for name, dist, max_iter in [
        ("conjugate_gradient", "random", 1000),
        ("conjugate_gradient_scaled", "random", 1000),
        ("conjugate_gradient_scaled", "tridiagonal", 3),
        ("jacobi", "tridiagonal", 3),
        ("richardson", "pivot", 1000),
    ]:
        inputs = make(70, dist)
        inputs.params["policy"] = "auto: a wrong guess"
        x, notes = compute(device, name, inputs, case(max_iter=max_iter))
        assert LAB.compare(x, inputs, case()) is None
        assert notes[0] == "auto: a wrong guess"
        assert "turning to lu_partial_pivot" in " ".join(notes)
        assert notes[-1].startswith("lu_partial_pivot: ")


def test_the_policy_reads_a_stream_in_order(device, tmp_path):
    path = tmp_path / "in.bin"
    path.write_bytes(b"".join(LAB.generate(case(), 100, "dominant", 9)))
    with path.open("rb") as file:
        inputs = LAB.read(InputStream(file.fileno()), case())
        x, _ = compute(device, None, inputs, case())
    assert LAB.compare(x, make(100, "dominant", seed=9), case()) is None


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_step_can_be_repeated(device, variant):
    check_it_runs(device, variant.name)
    inputs = make(40, "dominant")
    step = runner.prepare(LAB, variant, device, inputs, case(), watch=runner.Stopwatch())
    answers = []
    for _ in range(2):
        step()
        answers.append((device.to_host(step.out).tobytes(), list(step.notes)))
    one, two = answers
    assert one == two


def test_every_row_of_the_ladder_is_there():
    assert [variant.name for variant in VARIANTS] == [
        *ITERATIONS, "gauss_jordan", "lu_partial_pivot", "lu_substitution_chain",
        "lu_blocked_panel", *ON_TENSOR_CORES, "complete_pivot",
    ]  # fmt: skip
    assert all(one.order < two.order for one, two in pairwise(VARIANTS))


# Launches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_arguments_are_called_as_the_kernels_call_their_parameters(
    device, request, monkeypatch, variant
):
    """Only their order counts, so a name in the wrong place would be believed."""
    if variant.name in ON_TENSOR_CORES:
        request.getfixturevalue("tensor_cores")
    called = []

    def recorded(**named):
        called.append(list(named))
        return arguments(**named)

    for module in (launches, factors, iterations):
        monkeypatch.setattr(module, "arguments", recorded)
    kernels = parameter_names(source.load(variant.path, variant.label).text).values()
    # What changes with every launch of a loop is not among those prepared before it.
    known = [*kernels, *(names[:-1] for names in kernels)]
    for dist in ("dominant", "spd"):
        with suppress(CudalabError):  # what it does not solve
            compute(device, variant.name, make(70, dist), case())
    assert called
    assert [names for names in called if names not in known] == []
