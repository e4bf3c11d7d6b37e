"""The transpose lab: its format, its verdicts, and shapes that its variants must withstand."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_inputs import target

from cudalab import labs, runner
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs

LAB = labs.get("transpose")
VARIANTS = [variant.name for variant in registry.variants(LAB)]
CASE = LAB.complete({})


def inputs(matrix):
    rows, cols = matrix.shape
    return HostInputs({"matrix": matrix}, {"rows": rows, "cols": cols})


def case(matrix):
    return LAB.complete({"dtype": matrix.dtype.name})


def read(tmp_path, stream):
    path = tmp_path / "in.bin"
    path.write_bytes(stream)
    with path.open("rb") as file:
        announced = LAB.read(InputStream(file.fileno()), CASE)
        return announced.params, announced.arrays["matrix"].array()


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_reference_moves_every_element(rows, cols):
    matrix = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    answer = LAB.reference(inputs(matrix), CASE)
    assert answer.tobytes() == b"".join(
        matrix[r, c].tobytes() for c in range(cols) for r in range(rows)
    )
    back = LAB.reference(inputs(answer), CASE)
    np.testing.assert_array_equal(matrix, back)


def test_the_stream_is_rows_cols_then_the_matrix(tmp_path):
    header = bytes.fromhex("02000000 03000000")
    params, matrix = read(tmp_path, header + np.arange(6, dtype="<f4").tobytes())
    assert params == {"rows": 2, "cols": 3}
    assert matrix.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"\2\0\0\0\3\0\0", "truncated header: ends at byte 7, expected 8 bytes for rows, cols"),
        (b"\2\0\0\0\xff\xff\xff\xff", "cols = -1 at byte 4: must not be negative"),
        (b"\2\0\0\0\3\0\0\0" + bytes(23), "matrix is 2 x 3 float32, got 5 complete elements"),
    ],
)
def test_streams_that_break_the_format(tmp_path, stream, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, stream)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_a_matrix_without_elements(shape):
    nothing = LAB.empty_answer(inputs(np.empty(shape, np.float32)), CASE)
    assert nothing.shape == shape[::-1]
    assert LAB.empty_answer(inputs(np.empty((1, 1), np.float32)), CASE) is None


DIGESTS = {
    ("uniform", "float32"): "bd0e0648669ce84404ac3dd606b547adeb62d90fe1132c229fbdc6b56ca2a65c",
    ("uniform", "int32"): "4756f31590fb373f4aecb3ea7f275ad5d4495666dba96464f4c04beb96be96ad",
    ("uniform", "float64"): "07c1d5327d88a66ff7cab56b01c8842371523601ba94c9349bfb3ce73d8ec50c",
    ("index", "float32"): "77c067c91e3b7958f8ac2755431b3568acb82b22511d705749e55da803c5ca85",
    ("special", "float32"): "adb24c1f6bc3914c59a1c4f4514c568e57e0643d5b1d9f10e5c7a891bde4b61e",
    ("special", "int32"): "4756f31590fb373f4aecb3ea7f275ad5d4495666dba96464f4c04beb96be96ad",
    ("special", "float64"): "d51d9979378a4371fd7f664b5c5f8f21b3deecdee838450cd44af87fdca3186f",
}


@pytest.mark.parametrize(("dist", "dtype", "digest"), [(*key, d) for key, d in DIGESTS.items()])
def test_same_seed_same_bytes(dist, dtype, digest):
    stream = b"".join(LAB.generate(LAB.complete({"dtype": dtype}), (20, 31), dist, 42))
    assert len(stream) == 8 + 620 * np.dtype(dtype).itemsize
    assert hashlib.sha256(stream).hexdigest() == digest


def test_special_floats_are_of_every_kind():
    stream = b"".join(LAB.generate(CASE, (30, 40), "special", 42))
    special = np.frombuffer(stream[8:], np.float32)
    zeros = special[special == 0]
    for some in (np.isnan(special), np.isinf(special), zeros == 0, np.signbit(zeros)):
        assert 50 < some.sum() < 200


def test_one_number_is_a_square():
    square, shaped = (b"".join(LAB.generate(CASE, n, "index", 0)) for n in (7, (7, 7)))
    assert square == shaped
    assert square[:8] == np.array([7, 7], "<i4").tobytes()
    for n, dist in ((7, "uniform:1"), ((1, 2, 3), "uniform")):
        with pytest.raises(UsageError, match="transpose has no data of size"):
            list(LAB.generate(CASE, n, dist, 0))


def test_verdicts():
    matrix = np.arange(6, dtype=np.int32).reshape(2, 3)
    right = np.ascontiguousarray(matrix.T)
    assert LAB.compare(right, inputs(matrix), case(matrix)) is None
    as_it_was = LAB.compare(matrix.reshape(3, 2), inputs(matrix), case(matrix))
    assert "this is the input as it was, not transposed" in str(as_it_was)
    right[2, 1] = 9
    wrong = str(LAB.compare(right, inputs(matrix), case(matrix)))
    assert "1 of 6 elements differ\nfirst in row 2, column 1 of the answer" in wrong


SHAPES = [(1, 1), (1, 100), (100, 1), (31, 33), (32, 32), (64, 32), (3, 1000), (1000, 3), (65, 129)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_shape(device, variant):
    for dtype in LAB.axes["dtype"]:
        for rows, cols in SHAPES:
            check(device, variant, np.arange(rows * cols).astype(dtype).reshape(rows, cols))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", [(2_097_153, 1), (1, 2_097_153)], ids=["tall", "wide"])
def test_more_than_65_535_blocks_in_either_direction(device, variant, shape):
    check(device, variant, np.arange(2_097_153, dtype=np.int32).reshape(shape))


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_bit_is_changed(device, variant):
    bits = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0x80000000, 1, 0xFF800000], np.uint32)
    check(device, variant, bits.view(np.float32).reshape(2, 3))


def check(device, variant, matrix):
    chosen = registry.find(LAB, variant)
    step = runner.prepare(
        LAB, chosen, device, inputs(matrix), case(matrix), watch=runner.Stopwatch()
    )
    device.copy(np.full(step.out.nbytes, 0xA5, np.uint8), step.out)
    step()
    assert step.out.shape == matrix.shape[::-1]
    found = LAB.compare(device.to_host(step.out), inputs(matrix), case(matrix))
    assert found is None, f"{matrix.shape} {matrix.dtype}: {found}"


def test_a_gpu_moves_vectors_where_all_rows_begin_at_16_bytes():
    def chosen(shape, dtype, device):
        matrix = np.empty(shape, dtype)
        return LAB.choose(inputs(matrix), case(matrix), target(device))

    assert chosen((4, 8), np.float32, "cuda") is None
    assert chosen((2, 6), np.float64, "cuda") is None
    assert chosen((4, 6), np.float32, "cuda") == "tiled_sectors"
    assert chosen((6, 4), np.float32, "cuda") == "tiled_sectors"
    assert chosen((3, 2), np.float64, "cuda") == "tiled_sectors"
    assert chosen((5, 7), np.float32, "cpu") is None
