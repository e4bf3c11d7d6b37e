"""Check mode: what it counts, against arithmetic by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from instrumented import (
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    KERNELS,
    compiled_by,
    launch,
    line_of,
    profiled,
    zeros,
)

from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.trace import Place
from cudalab.language import source

__all__ = ["compiled_by"]
COUNTS = "check_counts.cu"
KINDS = ("load", "store")
STORED = Path(__file__).parents[2] / "docs" / "results" / "local-memory"
pytestmark = pytest.mark.usefixtures("compiled_by")  # reports must not depend on it


def trace(kernel, grid, block, *args, banks=32, **options):
    with CheckDevice(detect=False, count=True, banks=banks, **options) as device:
        launch(device, COUNTS, kernel, grid, block, *args)
    (found,) = device.traces
    return found


def at(found, name, kind=None):
    """The access on the line with the mark @name."""
    place = Place(COUNTS, line_of(name, COUNTS))
    accesses = [a for a in found.accesses if a.place == place and kind in (None, a.kind)]
    assert len(accesses) == 1, accesses
    return accesses[0]


def test_sectors():
    found = trace("global_strides", 1, 32, zeros(1024, FLOAT), zeros(32, FLOAT))
    sectors = {
        "stride1": (4, 4, 1, 0),
        "stride2": (8, 4, 2, 8),
        "stride32": (32, 4, 32, 32),
        "shifted": (5, 4, 2, 2),
        "broadcast": (1, 1, 1, 1),
        "out": (4, 4, 1, 0),
    }
    for name, (touched, ideal, *lines_and_partial) in sectors.items():
        access = at(found, name)
        assert (access.sectors, access.ideal_sectors) == (touched, ideal), name
        assert [access.lines, access.partial_sectors] == lines_and_partial, name
        assert (access.requests, access.lanes, access.bytes_per_lane) == (1, 32, 4)
        assert access.space == "global"
    assert at(found, "stride1").buffer == "in"
    assert at(found, "out").buffer == "out"
    assert at(found, "out").kind == "store"


def test_an_access_outside_of_an_array_counts_with_the_nearest_array():
    found = trace("global_strides", 1, 32, zeros(992, FLOAT), zeros(32, FLOAT))
    access = at(found, "stride32")  # its last lane is one element beyond
    assert (access.buffer, access.lanes, access.sectors) == ("in", 32, 32)


def test_wide_loads_are_one_request():
    found = trace("wide_loads", 1, 32, zeros(128, FLOAT), zeros(32, DOUBLE), zeros(32, FLOAT))
    assert (at(found, "float4").bytes_per_lane, at(found, "float4").sectors) == (16, 16)
    assert (at(found, "double").bytes_per_lane, at(found, "double").sectors) == (8, 8)


def test_accesses_with_a_hint_are_one_request():
    arrays = zeros(128, FLOAT), zeros(32, FLOAT), zeros(128, FLOAT), zeros(32, FLOAT)
    found = trace("hinted", 1, 32, *arrays)
    for name, kind, size in (
        ("hinted_load", "load", 16),
        ("hinted_store", "store", 16),
        ("hinted_word", "load", 4),
        ("hinted_word_out", "store", 4),
    ):
        access = at(found, name)
        assert (access.kind, access.requests, access.bytes_per_lane) == (kind, 1, size), name


def test_bank_conflicts():
    found = trace("shared_strides", 1, 32, zeros(32, FLOAT))
    degrees = {"words1": 1, "words2": 2, "words32": 32, "pairs": 1, "one_word": 1}
    for name, degree in degrees.items():
        access = at(found, name)
        assert (access.wavefronts, access.conflict_degree_max) == (degree, degree), name
        assert access.buffer == "words"
        assert access.ideal_wavefronts == 1
    assert at(found, "fill").requests == 32
    assert found.barriers == {Place(COUNTS, line_of("barrier", COUNTS)): 1}


def test_eight_bytes_are_two_passes():
    """Half-warps: words[2 t] of 16 lanes meet in 16 banks; words[t / 2] of pairs go together."""
    found = trace("shared_doubles", 1, 32, zeros(32, DOUBLE))
    stores, loads = at(found, "doubles", "store"), at(found, "doubles_read", "load")
    assert (stores.requests, stores.wavefronts, stores.conflict_degree_max) == (2, 4, 1)
    assert (loads.requests, loads.wavefronts, loads.conflict_degree_max) == (2, 4 + 1, 2)


def test_sixteen_bytes_are_four_passes():
    found = trace("shared_float4", 1, 32, zeros(128, FLOAT))
    for name, kind in (("float4_store", "store"), ("float4_load", "load")):
        access = at(found, name, kind)
        assert (access.bytes_per_lane, access.wavefronts, access.conflict_degree_max) == (16, 4, 1)


def test_sixteen_banks():
    new = trace("half_warps", 1, 32, zeros(32, FLOAT))
    old = trace("half_warps", 1, 32, zeros(32, FLOAT), banks=16)
    assert (
        at(new, "stride16", "load").wavefronts,
        at(new, "stride16", "load").conflict_degree_max,
    ) == (16, 16)
    assert (
        at(old, "stride16", "load").wavefronts,
        at(old, "stride16", "load").conflict_degree_max,
    ) == (32, 16)
    new = trace("shared_bytes", 1, 32, zeros(32, BYTE))
    old = trace("shared_bytes", 1, 32, zeros(32, BYTE), banks=16)
    assert at(new, "bytes").conflict_degree_max == 1
    assert at(old, "bytes").conflict_degree_max == 4


def test_atomics_that_meet():
    found = trace("same_address", 1, 32, zeros(1), zeros(32))
    assert at(found, "eight").same_address_max == 8
    everyone = at(found, "all", "atomic")
    assert (everyone.same_address_max, everyone.same_address_mean) == (32, 32.0)
    assert everyone.buffer == "counts"


@pytest.mark.parametrize(
    ("line", "turns", "degree"),
    [
        ("increments", 1, 1),
        ("swaps", 8, 1),
        ("increments_of_halves", 1, 1),
        ("increments_of_one_bank", 32, 32),
        ("increments_with_results", 32, 1),
        ("variables", 32, 1),
        ("threes", 4, 1),
        ("maxima_of_one_bank", 32, 8),
        ("floats", 12, 1),
        ("floats_of_one_bank", 592, 32),
        ("longs", 128, 1),
        ("exchanges_of_longs", 2, 2),
    ],
)
def test_atomics_in_shared_memory_take_turns(line, turns, degree):
    found = at(trace("turns", 1, 32, zeros(32), zeros(32)), line, "atomic")
    assert (found.requests, found.wavefronts) == (1, turns)
    assert found.conflict_degree_max == degree
    ideal = {"increments_of_one_bank": 1, "maxima_of_one_bank": 4, "floats_of_one_bank": 3}
    assert found.ideal_wavefronts == ideal.get(line, turns)


def test_lanes_stay_together_where_some_continue():
    found = trace("continues", 1, 32, zeros(512), zeros(32))
    assert (at(found, "every_iteration").requests, at(found, "every_iteration").lanes) == (8, 256)
    most = at(found, "most_iterations")
    assert (most.requests, most.lanes) == (8, 8 * 28)
    assert at(found, "after_loop").requests == 1
    (branch,) = [b for b in found.branches if b.place.line == line_of("continue", COUNTS)]
    assert (branch.executions, branch.divergent) == (8, 8)
    assert (branch.lanes_first, branch.lanes_second) == (8 * 4, 8 * 28)


def test_local_memory_interleaves_the_words_of_the_lanes(compiled_by):
    if compiled_by == "zig":
        pytest.skip("clang gives no hooks to arrays whose address stays in their function")
    names = ("same", "own", "turns", "wide", "some", "loads")
    lines = {name: line_of(f"local_{name}", COUNTS) for name in names}

    def everywhere(*_):
        return frozenset((COUNTS, line, kind) for line in lines.values() for kind in KINDS)

    indices = np.arange(32, dtype=INT) % 4
    found = trace("local_arrays", 1, 32, indices, zeros(32, INT), local=everywhere)
    rows = {
        (name, a.kind, a.bytes_per_lane): (a.requests, a.sectors, a.ideal_sectors)
        for a in found.accesses
        for name, line in lines.items()
        if a.space == "local" and a.place == Place(COUNTS, line)
    }
    assert rows == {
        ("same", "store", 4): (64, 64 * 4, 64 * 4),
        ("own", "store", 4): (1, 32, 4),
        ("turns", "load", 4): (1, 8, 4),
        ("turns", "store", 4): (1, 8, 4),
        ("wide", "store", 8): (16, 16 * 8, 16 * 8),
        ("some", "store", 8): (1, 2, 2),
        ("loads", "load", 4): (1, 16, 4),
        ("loads", "load", 8): (1, 32, 8),
    }


PATTERNS = {  # as in tools/studies/local_memory.cu
    "all at one": lambda _: 5,
    "each its own": lambda lane: lane,
    "two by turns": lambda lane: lane % 2,
    "two halves": lambda lane: lane // 16,
    "quarters": lambda lane: lane // 8,
    "eight by turns": lambda lane: lane % 8,
    "pairs": lambda lane: lane // 2,
    "scattered": lambda lane: lane * 7 % 64,
    "one lane": lambda lane: 9 if lane == 3 else -1,
    "16 lanes at one": lambda lane: 9 if lane < 16 else -1,
    "every other lane at one": lambda lane: 9 if lane % 2 else -1,
    "5 lanes, each its own": lambda lane: lane if lane < 5 else -1,
}


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_local_memory_costs_what_a_gpu_has_counted(width, compiled_by):
    if compiled_by == "zig":
        pytest.skip("clang gives no hooks to arrays whose address stays in their function")

    def in_memory(*_):
        places = {kind: line_of(f"local_{kind}", "local_memory.cu") for kind in KINDS}
        return frozenset(("local_memory.cu", line, kind) for kind, line in places.items())

    stored = [json.loads(path.read_text()) for path in STORED.glob("*.json")]
    measured = {
        row["pattern"]: (row["store_sectors"], row["load_sectors"])
        for each in stored
        for row in each["rows"]
        if row["bytes"] == width
    }
    assert measured.keys() == PATTERNS.keys()
    for name, pattern in PATTERNS.items():
        indices = np.array([pattern(lane) for lane in range(32)], INT)
        with CheckDevice(detect=False, count=True, local=in_memory) as device:
            out = zeros(32 * width, BYTE)
            launch(device, "local_memory.cu", f"local_{width}", 1, 32, indices, out)
        (found,) = device.traces
        local = {a.kind: a.sectors for a in found.accesses if a.space == "local"}
        assert (local["store"], local["load"]) == measured[name], name


def test_local_memory_is_not_counted_where_nvcc_keeps_arrays_in_registers():
    found = trace("local_arrays", 1, 32, zeros(32, INT), zeros(32, INT))
    assert {access.space for access in found.accesses} == {"global"}


def test_an_index_that_is_read_is_read_once():
    indices = np.arange(32, dtype=INT)
    found = trace("read_indices", 1, 32, indices, zeros(32, INT))
    for name, loads in (("shared", 1), ("global", 1), ("loop", 4)):
        line = Place(COUNTS, line_of(f"index_{name}", COUNTS))
        rows = [a for a in found.accesses if a.place == line]
        of_indices = [a for a in rows if a.buffer == "in"]
        assert sum(a.requests for a in of_indices) == loads, name
        assert [a.requests for a in rows if a.kind == "store"] == [loads], name
        changed = [a for a in rows if a.kind == "load" and a.buffer != "in"]
        assert [a.requests for a in changed] == [loads], name
    assert at(found, "neighbours").requests == 8


def test_branches():
    found = trace("branches", 1, 64, zeros(64), zeros(64))
    by_line = {b.place.line: b for b in found.branches}
    quarter = by_line[line_of("quarter", COUNTS)]
    assert (quarter.executions, quarter.divergent) == (2, 2)
    assert (quarter.lanes_first, quarter.lanes_second) == (2 * 8, 2 * 24)
    first_warp = by_line[line_of("first_warp", COUNTS)]
    assert (first_warp.executions, first_warp.divergent) == (2, 0)
    # Of three lanes one goes round twice, one once: both of a warp's first two tests part lanes.
    uneven = by_line[line_of("uneven", COUNTS)]
    assert (uneven.executions, uneven.divergent) == (2 * 3, 2 * 2)


def test_the_ways_of_lanes_are_kept_step_by_step():
    found = trace("branches", 1, 64, zeros(64), zeros(64))
    by_line = {b.place.line: b for b in found.branches}

    def told(name):
        """Each step: how often, and which lanes go on at which line."""
        branch = by_line[line_of(name, COUNTS)]
        return [
            (step.executions, [None if way is None else branch.lines[way] for way in step.ways])
            for step in branch.steps
        ]

    quarter, first_warp, uneven = (line_of(n, COUNTS) for n in ("quarter", "first_warp", "uneven"))
    assert told("quarter") == [(2, [quarter if t % 4 == 0 else first_warp for t in range(32)])]
    assert told("first_warp") == []  # no warp split
    # Each warp asks three times: all of its lanes, those that have gone round, and those again.
    steps = by_line[uneven].steps
    assert [step.executions for step in steps] == [1] * 6
    for number, step in enumerate(steps):
        base, turn = number // 3 * 32, number % 3
        lanes = [(base + lane) % 3 for lane in range(32)]
        taking = [lane for lane in range(32) if step.ways[lane] is not None]
        assert taking == [lane for lane in range(32) if lanes[lane] >= turn]
        staying = {step.ways[lane] for lane in taking if lanes[lane] > turn}
        leaving = {step.ways[lane] for lane in taking if lanes[lane] == turn}
        assert len(staying) == (turn < 2)
        assert len(leaving) == 1
        assert not staying & leaving
    assert sum(step.executions for step in steps) == by_line[uneven].executions


def test_the_ways_of_one_block_are_kept():
    found = trace("branches", 5, 64, zeros(64), zeros(64))
    kept = [branch for branch in found.branches if branch.steps]
    assert len(kept) == 2
    for branch in kept:
        assert 5 * sum(step.executions for step in branch.steps) == branch.executions


@pytest.mark.parametrize(
    ("name", "executions", "divergent", "lanes"),
    [
        ("second_part", 3, 2, (8, 24)),  # in warps 0 and 1
        ("both_parts", 3, 3, (4, 28)),  # once, although two operands part the lanes
        ("either", 3, 2, (8, 24)),  # in warps 1 and 2
        ("nested", 3, 1, (8, 24)),
    ],
)
def test_a_condition_of_several_parts_is_one_branch(name, executions, divergent, lanes):
    found = trace("conditions", 1, 96, zeros(96), zeros(96))
    (branch,) = [b for b in found.branches if b.place.line == line_of(name, COUNTS)]
    assert (branch.executions, branch.divergent) == (executions, divergent)
    assert (branch.lanes_first, branch.lanes_second) == tuple(divergent * n for n in lanes)


def test_the_condition_of_a_loop():
    found = trace("conditions", 1, 32, zeros(96), zeros(96))
    (branch,) = [b for b in found.branches if b.place.line == line_of("loop", COUNTS)]
    assert (branch.executions, branch.divergent) == (5, 4)  # lanes 0, 1, 2, 3 leave one by one


def test_operations():
    """4 x (a multiplication and an addition) and a root, by 32 lanes."""
    found = trace("operations", 1, 32, zeros(64, FLOAT), zeros(32, FLOAT))
    assert found.operations == {"float": 32 * (4 * 2 + 1)}
    assert at(found, "in_function").requests == 4  # of the two loads of a factor one is made


def test_warp_operations():
    found = trace("warp_operations", 1, 64, zeros(64))
    counts = {place.line: count for place, count in found.warp_operations.items()}
    assert counts == {line_of("shuffle", COUNTS): 2 * 5, line_of("vote", COUNTS): 2}


@pytest.mark.parametrize(
    ("variant", "degrees"),
    [
        ("interleaved_strided", [2, 4, 8, 8, 8, 4, 2, 1]),
        ("sequential", [1, 1, 1, 1, 1, 1, 1, 1]),
    ],
)
def test_the_ladder_of_the_reduction(variant, degrees):
    """Level by level: 2 s t of 32 lanes lie on 32 / s banks at most, until lanes run out."""
    found = profiled("reduce", variant, 256).traces[0]
    steps = max((a for a in found.accesses if a.kind == "load"), key=lambda a: len(a.steps)).steps
    assert [step.conflict_degree for step in steps] == degrees


@pytest.mark.parametrize(
    ("variant", "shared_degree", "store_sectors"),
    [("naive", 0, 32), ("tiled", 32, 4), ("tiled_padded", 1, 4)],
)
def test_transpose(variant, shared_degree, store_sectors):
    (found,) = profiled("transpose", variant, 128).traces
    loads = [a for a in found.accesses if a.space == "shared" and a.kind == "load"]
    assert max((a.conflict_degree_max for a in loads), default=0) == shared_degree
    (store,) = [a for a in found.accesses if a.space == "global" and a.kind == "store"]
    assert store.sectors / store.requests == store_sectors


# Which blocks are traced -------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 5, 20, None])
def test_traced_and_fast_blocks_work_together(blocks):
    """Each block goes on from the one before; both builds share the module's variables."""
    with CheckDevice(detect=False, count=True, blocks=blocks, threads=2) as device:
        module = device.compile(source.load(KERNELS / COUNTS, COUNTS), {})
        offset = np.array([100], INT)
        device.copy(offset.view(BYTE), device.constant(module, "offset"))
        handed_on = device.to_device(zeros(20))
        before = device.to_host(device.constant(module, "calls")).view(INT)[0]
        device.launch(module["chain"], 20, 32, handed_on)
        calls = device.to_host(device.constant(module, "calls")).view(INT)[0] - before
    assert device.to_host(handed_on).tolist() == list(range(101, 121))
    assert calls == 20
    (found,) = device.traces
    assert (found.blocks, found.blocks_traced) == (20, blocks or 20)
    assert found.warps_traced == (blocks or 20)
    reads = [a for a in found.accesses if a.space == "constant"]
    assert [a.requests for a in reads] == [blocks or 20]
    assert {a.buffer for a in found.accesses} == {"handed_on", "offset", "calls"}


def test_a_spent_budget_leaves_one_block_of_each_kernel():
    with CheckDevice(detect=False, count=True, budget_s=0) as device:
        module = device.compile(source.load(KERNELS / COUNTS, COUNTS), {})
        for _ in range(2):
            device.launch(module["chain"], 20, 32, device.to_device(zeros(20)))
    assert [found.blocks_traced for found in device.traces] == [1, 0]


@pytest.mark.parametrize("variant", ["decoupled_lookback", "lookback_prefetch"])
def test_look_back_with_a_sample_of_blocks(variant):
    assert profiled("scan", variant, 70_000, blocks=3).traces[0].blocks_traced == 3
