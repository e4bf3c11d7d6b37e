"""Check mode: races by the PTX memory model, by flags, locks, scopes and volatile accesses."""

from __future__ import annotations

import numpy as np
import pytest
from instrumented import INT, compiled_by, launch, line_of, zeros

from cudalab.backends.cpu.check import CheckDevice

__all__ = ["compiled_by"]
KERNELS = "memory_model.cu"
pytestmark = pytest.mark.usefixtures("compiled_by")  # reports must not depend on it

FENCE, SYNC = "__threadfence", "__syncthreads"
FENCES = 1 | 2 | 4 | 8  # of a lock: both, and for the grid


def found(kernel, grid, block, *args, seed=None):
    with CheckDevice(detect=True, count=False, seed=seed) as device:
        launch(device, KERNELS, kernel, grid, block, *args)
    return device.findings


def race(findings):
    """The kind of race, what is missing and the detail; None if nothing was found."""
    errors = {(f.kind, f.missing, f.detail) for f in findings if not f.note}
    assert len(errors) < 2, errors
    return next(iter(errors), None)


def number(n):
    return np.int32(n)


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "args", "expected"),
    [
        ("cleared_without_barrier", 1, 64, (zeros(64),), ("race", SYNC, "")),
        ("cleared_by_one_block", 4, 64, (zeros(1),), ("race", None, "")),
        ("volatile_sum", 1, 256, (np.ones(256, INT),), ("race", SYNC, "volatile")),
        ("volatile_stores", 2, 1, (zeros(1),), ("race", None, "volatile")),
        ("volatile_store_among_atomics", 2, 1, (zeros(1),), ("race", None, "")),
        ("chain_without_fence", 8, 1, (zeros(8), zeros(8)), ("race", FENCE, "")),
        ("packed_chain", 8, 1, (zeros(8, np.uint64), zeros(8)), None),
        ("counts_in_block_scope", 4, 1, (zeros(1),), ("race", None, "scope")),
        ("counts_in_block_scope", 1, 64, (zeros(1),), None),
        ("handed_over_in_block_scope", 2, 1, (zeros(1), zeros(2)), ("race", FENCE, "scope")),
    ],
)
def test_what_is_ordered(kernel, grid, block, args, expected):
    assert race(found(kernel, grid, block, *args)) == expected


def test_a_read_that_decides_whether_a_compare_and_swap_is_made():
    assert found("visits", 4, 64, zeros(8), zeros(8), zeros(1)) == []
    findings = found("visits_and_reads", 1, 8, zeros(8), zeros(16), zeros(1))
    elsewhere = line_of("elsewhere", KERNELS)
    assert {f.kind for f in findings} == {"race"}
    assert all(elsewhere in (f.place.line, f.other_place.line) for f in findings)


def test_a_read_that_a_compare_and_swap_checks():
    assert found("adds_by_swap", 4, 64, zeros(1, np.float64)) == []
    findings = found("swaps_another_word", 4, 64, zeros(1), zeros(1))
    unchecked = line_of("unchecked", KERNELS)
    assert {f.kind for f in findings} == {"race"}
    assert all(unchecked in (f.place.line, f.other_place.line) for f in findings)


def test_both_ends_of_a_race_are_named():
    (finding,) = found("handed_over_in_block_scope", 2, 1, zeros(1), zeros(2))
    assert finding.place.line == line_of("read_too_early", KERNELS)
    assert finding.other_place.line == line_of("narrowly_fenced", KERNELS)
    lines = {f.other_place.line for f in found("cleared_without_barrier", 1, 64, zeros(64))}
    assert line_of("cleared", KERNELS) in lines


@pytest.mark.parametrize("way", range(5))
def test_waiting_is_no_race(way):
    assert found("chain", 8, 1, zeros(8), zeros(8), number(way)) == []


@pytest.mark.parametrize(
    ("grid", "block", "parts", "expected"),
    [
        (2, 1, 16 | FENCES, None),
        (2, 1, 16 | FENCES - 1, ("race", FENCE, "lock")),  # none behind the lock
        (2, 1, 16 | FENCES - 2, ("race", FENCE, "lock")),  # a narrow one
        (2, 1, 16 | FENCES - 4, ("race", FENCE, "ticket")),  # none before its end
        (2, 1, 16 | FENCES - 8, ("race", FENCE, "scope")),
        (2, 1, FENCES, ("race", FENCE, "scope")),  # a lock of the block
        (1, 2, 1 | 4, None),
        (1, 2, 4, ("race", FENCE, "lock")),
    ],
)
def test_locks(grid, block, parts, expected):
    data = found("locked", grid, block, zeros(1), zeros(1), number(parts))
    assert race([f for f in data if f.buffer == "data"]) == expected


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(("fence", "expected"), [(1, []), (2, []), (0, ["collected"])])
def test_a_fence_on_either_side_of_a_barrier_publishes(fence, expected, seed):
    args = zeros(1), zeros(256), zeros(1), number(fence)
    places = {f.place.line for f in found("last_block", 4, 64, *args, seed=seed)}
    assert places == {line_of(mark, KERNELS) for mark in expected}


def test_equal_values_are_a_note():
    (warp, block) = found("any_of", 1, 64, np.ones(64, INT), zeros(1))
    assert (warp.kind, block.kind, block.note) == ("same_word", "same_value", True)


def test_an_exchange_on_fresh_memory():
    assert found("exchanged", 1, 1, (1, INT), zeros(1), number(0)) == []
    (finding,) = found("exchanged", 1, 1, (1, INT), zeros(1), number(1))
    assert (finding.kind, finding.place.line) == ("uninitialised", line_of("fresh", KERNELS))


def test_the_bounds_of_a_local_array():
    assert found("local_overrun", 1, 1, zeros(1), number(3)) == []
    (finding,) = found("local_overrun", 1, 1, zeros(1), number(4))
    assert (finding.kind, finding.note, finding.space) == ("out_of_bounds", False, "local")
    assert finding.place.line == line_of("local", KERNELS)
    assert finding.detail == "index 4 of an array of type int[4]"


def test_the_bounds_of_an_array_in_a_struct():
    (finding,) = found("member_overrun", 1, 1, zeros(1), number(4))
    assert (finding.kind, finding.note) == ("out_of_bounds", True)
    assert finding.place.line == line_of("member", KERNELS)


def test_a_block_may_wait_for_a_later_one():
    with CheckDevice(detect=True, count=False, kill_after=20) as device:
        args = zeros(40), zeros(40), number(1)
        _, sums = launch(device, KERNELS, "reverse_chain", 40, 64, *args)
    assert device.findings == []
    assert list(sums) == list(range(40, 0, -1))
    (finding,) = found("reverse_chain", 3, 64, zeros(3), zeros(3), number(0))
    assert (finding.kind, finding.place.line) == ("race", line_of("taken_over", KERNELS))
    assert finding.other_place.line == line_of("left_over", KERNELS)
