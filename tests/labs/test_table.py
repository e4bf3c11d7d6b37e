"""The table lab: its format, its two bounds, and its step in constant memory."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalab import labs, runner
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.labs.table.lab import tolerance

LAB = labs.get("table")
VARIANTS = {"accurate": "accurate", "fast": "fast_intrinsic"}  # accuracy -> its variant
UNIT = 2.0**-24


def case(accuracy="accurate"):
    return LAB.complete({"accuracy": accuracy})


def inputs(n, step):
    return HostInputs({"step": np.array([step], np.float32)}, {"n": n})


def read(tmp_path, stream):
    path = tmp_path / "in.bin"
    path.write_bytes(stream)
    with path.open("rb") as file:
        return LAB.read(InputStream(file.fileno()), case())


def header(n, step):
    return np.int32(n).tobytes() + np.float32(step).tobytes()


def test_the_stream_is_n_and_the_step(tmp_path):
    found = read(tmp_path, bytes.fromhex("0A000000 0AD7233C"))
    assert found.params == {"n": 10}
    assert found.arrays["step"] == np.float32(0.01)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"", "truncated header: ends at byte 0, expected 8 bytes for n, step"),
        (header(3, 1)[:7], "truncated header: ends at byte 7, expected 8 bytes for n, step"),
        (header(-1, 1), "n = -1 at byte 0: must not be negative"),
        (header(3, -1), "step = -1 at byte 4"),
        (header(3, math.inf), "step = inf at byte 4"),
        (header(3, math.nan), "step = nan at byte 4"),
        (header(1000, 1e38), r"step = 1e\+38 at byte 4"),
    ],
)
def test_streams_that_break_the_format(tmp_path, stream, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, stream)


def sine(x):
    """The sine of a Decimal by its series, to many more digits than a double has."""
    with localcontext() as context:
        context.prec = 80
        total, term, k = Decimal(0), x, 1
        while abs(term) > Decimal(10) ** -60:
            total += term
            term *= -x * x / ((k + 1) * (k + 2))
            k += 2
        return total


@given(st.integers(1, 100), st.floats(0, 4, width=32))
def test_the_reference_against_the_series(n, step):
    i = n - 1
    with localcontext() as context:
        context.prec = 80
        expected = float(sine((i * Decimal(step)).sqrt()))
    got = LAB.reference(inputs(n, step), case())[i]
    assert abs(got - expected) <= 1.001 * UNIT * abs(expected) + 1e-14


@pytest.mark.parametrize("accuracy", VARIANTS)
@pytest.mark.parametrize(
    ("n", "step"), [(1, 0.5), (1000, 0.01), (1000, 0), (257, 1e6), (300, 1e-40), (2**20 + 1, 0.1)]
)
def test_variants_are_within_their_bound(device, accuracy, n, step):
    answer = run(device, accuracy, n, step)
    found = LAB.compare(answer, inputs(n, step), case(accuracy))
    assert found is None, found
    assert answer[0] == 0
    if step == 0:
        assert not answer.any()


def run(device, accuracy, n, step):
    made = prepared(device, accuracy, n, step)
    made()
    return device.to_host(made.out)


def prepared(device, accuracy, n, step):
    chosen = registry.find(LAB, VARIANTS[accuracy])
    watch = runner.Stopwatch()
    return runner.prepare(LAB, chosen, device, inputs(n, step), case(accuracy), watch=watch)


@pytest.mark.parametrize("accuracy", VARIANTS)
def test_tables_with_different_steps_can_take_turns(device, accuracy):
    """Both are the same module, which has one constant `step`."""
    one, two = prepared(device, accuracy, 100, 0.01), prepared(device, accuracy, 100, 0.5)
    one(), two(), one()
    for made, step in ((one, 0.01), (two, 0.5)):
        found = LAB.compare(device.to_host(made.out), inputs(100, step), case(accuracy))
        assert found is None, found


def test_the_bounds():
    roots = np.array([0, 0.5, 1, 2 * math.pi, 100 * math.pi])
    accurate = tolerance(roots, case())
    fast = tolerance(roots, case("fast"))
    assert accurate[0] == 0
    np.testing.assert_allclose(accurate, UNIT * (2 * roots + 4 * np.minimum(roots, 1)), rtol=2e-3)
    assert (fast > accurate).all()
    # What PTX promises of sin.approx, plus the rounding of the argument, is within the bound.
    assert fast[3] >= 2.0**-20.5 + 2 * UNIT * roots[3]
    assert fast[4] >= 2.0**-14.7 + 2 * UNIT * roots[4]


def test_verdicts():
    n, step = 1000, 0.01
    right = LAB.reference(inputs(n, step), case())
    roots = np.sqrt(np.arange(n) * float(np.float32(step)))
    assert LAB.compare(right, inputs(n, step), case()) is None
    wrong = right.copy()
    wrong[500] += 2.0**-19
    found = str(LAB.compare(wrong, inputs(n, step), case()))
    assert found.startswith("1 of 1,000 elements differ\n  [500] expected 0.78")
    assert (
        LAB.compare(np.sin(roots + 5e-7).astype(np.float32), inputs(n, step), case("fast")) is None
    )
    assert LAB.compare(np.sin(roots + 5e-6).astype(np.float32), inputs(n, step), case("fast"))
    wrong[500] = np.nan
    assert LAB.compare(wrong, inputs(n, step), case("fast")).count == 1


def test_no_value_beyond_a_sine_is_taken():
    """Arguments of 10^9 have no right digit left, but 2 is no sine of anything."""
    n, step = 3, 1e18
    got = LAB.reference(inputs(n, step), case())
    assert LAB.compare(got, inputs(n, step), case("fast")) is None
    got[2] = 2
    assert LAB.compare(got, inputs(n, step), case("fast")).count == 1


def test_generated_headers():
    stream = b"".join(LAB.generate(case(), 7, "step:0.25", 0))
    assert stream == header(7, 0.25)
    assert b"".join(LAB.generate(case(), 7, "step", 0)) == header(7, 0.01)
    assert b"".join(LAB.generate(case(), 5, "random", 42)) == bytes.fromhex("05000000 9068123F")
    for dist in ("step:x", "step:-1", "step:nan", "step:1e39"):
        with pytest.raises(UsageError, match="the step of a table is a number"):
            list(LAB.generate(case(), 7, dist, 0))
    with pytest.raises(UsageError, match="table has no data of size"):
        list(LAB.generate(case(), (2, 3), "step", 0))


def test_a_table_of_nothing():
    assert LAB.empty_answer(inputs(0, 1), case()).size == 0
    assert LAB.empty_answer(inputs(1, 1), case()) is None
