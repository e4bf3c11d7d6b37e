"""The solve lab: its streams and text, its systems, its verdict."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from solving import COURSE, DIRECT, DTYPES, ITERATIONS, LAB, case, compute, make, system

from cudalab.errors import CudalabError, InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs.inputs import HostInputs
from cudalab.labs.solve import systems


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


# Streams and options ------------------------------------------------------------------------------


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


# Systems ------------------------------------------------------------------------------------------


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


# The verdict --------------------------------------------------------------------------------------


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
