"""Comparing an answer with the reference, bit for bit."""

import numpy as np
import pytest

from cudalab.labs.compare import compare_exact, show


def test_equal_answers_have_no_mismatches():
    for dtype in (np.uint8, np.int32, np.float32, np.uint64, np.float64):
        values = np.arange(7).astype(dtype)
        assert compare_exact(values.copy(), values) is None
    assert compare_exact(np.empty(0, np.int32), np.empty(0, np.int32)) is None


def test_bits_decide_not_values():
    nan, other_nan = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32).reshape(2, 1)
    assert compare_exact(nan, nan) is None
    assert str(compare_exact(other_nan, nan)) == (
        "1 of 1 elements differ\n  [0] expected nan (0x7fc00000), got nan (0x7fc00001)"
    )
    zero = np.zeros(1, np.float32)
    assert str(compare_exact(-zero, zero)) == (
        "1 of 1 elements differ\n  [0] expected 0.0 (0x00000000), got -0.0 (0x80000000)"
    )


def test_the_first_five_are_listed():
    expected = np.arange(1_000_000, dtype=np.uint32)
    got = expected.copy()
    got[10:20] += 1
    found = compare_exact(got, expected)
    assert (found.count, found.total) == (10, 1_000_000)
    assert str(found) == (
        "10 of 1,000,000 elements differ\n"
        "  [10] expected 10, got 11\n"
        "  [11] expected 11, got 12\n"
        "  [12] expected 12, got 13\n"
        "  [13] expected 13, got 14\n"
        "  [14] expected 14, got 15\n"
        "  … and 5 more"
    )


def test_findings_come_before_the_elements():
    found = compare_exact(np.array([1], np.int32), np.array([-1], np.int32))
    found.findings.append("off by two")
    assert str(found) == "1 of 1 elements differ\noff by two\n  [0] expected -1, got 1"


def test_matrices_count_in_c_order():
    expected = np.zeros((3, 4), np.float32)
    got = expected.copy()
    got[1, 2] = 0.5
    found = compare_exact(got, expected)
    assert (found.count, found.total, found.first) == (1, 12, [(6, "0.0 (0x00000000)", "0.5")])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.1), "0.1"),
        (np.float64(-0.0), "-0.0 (0x8000000000000000)"),
        (np.float32(np.inf), "inf"),
        (np.int32(-7), "-7"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
    ],
)
def test_show(value, expected):
    assert expected == show(value)
