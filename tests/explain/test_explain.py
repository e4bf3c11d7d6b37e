"""The topics of `cudalab explain`: what is drawn is true, what is named exists, pages fit."""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import sys
from collections import Counter
from itertools import accumulate
from pathlib import Path

import click
import numpy as np
import pytest
from command import cudalab
from hypothesis import given, settings
from hypothesis import strategies as st

from cudalab import explain, labs
from cudalab.cli.app import cli
from cudalab.explain import (
    banks,
    bitonic,
    coalescing,
    convergence,
    copies,
    divergence,
    histogram,
    look_back,
    matmul,
    occupancy,
    ordering,
    pivoting,
    reduction,
    rules,
    scan,
    tensor_cores,
)
from cudalab.explain import radixsort as radix
from cudalab.labs import registry
from cudalab.output.page import Commands, Drawing, Heading, Table, Text
from cudalab.predict import gpus

MOST_COLUMNS = 78
COMMANDS = [
    line
    for topic in explain.TOPICS
    for part in explain.page(topic)
    if isinstance(part, Commands)
    for line in part.lines
]
powers = st.integers(1, 6).map(lambda k: 2**k)
small = st.integers(0, 99)


def lists_of_a_power_of_two(elements=small):
    return powers.flatmap(lambda n: st.lists(elements, min_size=n, max_size=n))


def shown(*args, **env):
    done = cudalab("explain", *args, env=os.environ | {"COLUMNS": "80"} | env)
    assert done.stderr == b""
    assert done.returncode == 0
    assert not [line for line in done.stdout.splitlines() if line != line.rstrip()]  # no padding
    return done.stdout


# The rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", banks.MEASURED, ids=lambda m: m.title)
def test_the_rule_gives_what_was_counted(measured):
    assert rules.wavefronts(measured.addresses, measured.size) == measured.wavefronts


@pytest.mark.parametrize(
    ("size", "stride", "counted"),
    [(4, 2, 1), (4, 32, 31), (8, 1, 0), (8, 16, 30), (16, 1, 0), (16, 8, 28), (1, 4, 0)],
)
def test_conflicts_are_wavefronts_beyond_the_least(size, stride, counted):
    assert rules.conflicts(banks.strided(size, stride), size) == counted


@given(st.integers(0, 64), small)
def test_an_odd_stride_never_conflicts(half, start):
    assert rules.wavefronts([4 * (start + (2 * half + 1) * t) for t in range(32)]) == 1


@pytest.mark.parametrize(("size", "ways"), [(4, 1), (2, 2), (1, 4)])
def test_the_old_rule_for_float_short_and_char(size, ways):
    assert rules.steps_then(banks.strided(size, 1)) == ways


def test_a_column_of_a_16_wide_tile():
    columns = {pitch: banks.tile_column(pitch, 16) for pitch in (16, 17)}
    assert [rules.steps_then(columns[pitch]) for pitch in (16, 17)] == [16, 1]
    assert [rules.wavefronts(columns[pitch]) for pitch in (16, 17)] == [8, 1]
    assert rules.wavefronts(banks.tile_rows(17, 16)) == 2


def test_a_32_wide_tile_with_padding_is_clean():
    assert {rules.wavefronts(at(33, 32)) for at in banks.ACCESSES} == {1}


@given(st.lists(st.integers(0, 2**12), min_size=1, max_size=32))
def test_sectors_cover_every_byte(addresses):
    touched = {byte // 32 for address in addresses for byte in range(address, address + 4)}
    assert rules.sectors(addresses) == sorted(touched)


def test_transactions_of_the_first_gpus():
    words = [4 * t for t in range(32)]
    assert rules.transactions_then(words) == 2
    assert rules.transactions_then([at + 4 for at in words]) == 32
    assert rules.transactions_then([at + 64 for at in words]) == 2


def test_a_row_for_each_lane_moves_eight_times_the_bytes():
    costs = {each[0]: each[1:4] for each in map(coalescing.cost, coalescing.PATTERNS)}
    assert costs["x[t]"] == (4, "128", "100 %")
    assert costs["x[1000 * t]"] == (32, "1,024", "12.5 %")


# Trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", reduction.LADDER, ids=lambda rung: rung.name)
@given(lists_of_a_power_of_two())
def test_every_tree_adds_each_item_once(rung, values):
    now = list(values)
    for s in rung.strides(len(values)):
        adds = rung.adds(len(values), s)
        assert len({add.thread for add in adds}) == len(adds)
        assert not {add.to for add in adds} & {add.by for add in adds}
        for add in adds:
            now[add.to] += now[add.by]
    assert now[0] == sum(values)
    assert int(reduction.drawn(rung, values)[-1].split()[0]) == sum(values)


def test_conflicts_and_divergence_of_the_ladder():
    modulo, strided, sequential = map(reduction.levels, reduction.LADDER)
    assert [level.degree for level in strided] == [2, 4, 8, 8, 8, 4, 2, 1]
    assert {level.degree for level in modulo + sequential} == {1}
    assert [level.lanes for level in modulo] == [16, 8, 4, 2, 1, 1, 1, 1]
    assert [level.warps for level in sequential] == [4, 2, 1, 1, 1, 1, 1, 1]


def test_the_ladder_s_blocks_are_those_of_the_kernels():
    lab = labs.get("reduce")
    for name, items, *_ in reduction.barriers():
        defines = registry.find(lab, name).defines
        assert defines["ITEMS_PER_BLOCK"] == items
        assert defines["THREADS_PER_BLOCK"] == reduction.THREADS


def test_shuffles_and_loads_add_up():
    assert reduction.shuffled(reduction.VALUES)[-1].split()[2] == str(sum(reduction.VALUES))
    stores = reduction.on_load(reduction.VALUES, reduction.MORE_VALUES)[-1].split()[1:]
    assert sum(map(int, stores)) == sum(reduction.VALUES) + sum(reduction.MORE_VALUES)
    assert reduction.widths(10**6, 256) == [1_000_000, 3907, 16, 1]


@given(lists_of_a_power_of_two())
def test_both_scans_are_sums_of_what_comes_before(values):
    before = [0, *accumulate(values)][:-1]
    assert scan.exclusive(values) == before
    assert scan.hillis_steele(values)[-1][1] == list(accumulate(values))
    tree = scan.up_sweep(values)[-1][1]
    assert tree[-1] == sum(values)
    assert scan.down_sweep(tree)[-1][1] == before


def test_conflicts_of_the_scan():
    _, _, then, now, padded = zip(*scan.conflict_rows(), strict=True)
    assert max(then) == 16
    assert list(now) == [2, 4, 8, 16, 32, 16, 8, 4, 2, 1]
    assert set(padded) == {1}
    assert scan.conflicts_of_padded(2048) == [2] * 5


def test_additions_of_the_scans():
    assert scan.additions(8) == (17, 14)


def test_branches():
    assert [divergence.sides(branch) for branch in divergence.BRANCHES] == [
        [2, 2],
        [1, 2],
        [1, 1],
        [1, 1],
    ]


# Sorting, histograms, products -------------------------------------------------------------------


def test_the_course_s_example_of_a_split():
    b = radix.bits_of(radix.KEYS, 0)
    assert b == [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1]
    assert scan.exclusive(b) == [0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5]
    assert sum(b) == 6


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_bit_0_first_sorts(keys):
    assert radix.passes(keys, range(3))[-1][1] == sorted(keys)
    assert radix.split(keys, 1) == sorted(keys, key=lambda key: key >> 1 & 1)


def test_bit_0_last_does_not():
    assert radix.passes(radix.KEYS, (2, 1, 0))[-1][1] != sorted(radix.KEYS)


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_flipped_floats_are_in_order(one, two):
    if one < two:
        assert radix.flipped(radix.float_bits(one)) < radix.flipped(radix.float_bits(two))
    assert struct.pack("<I", radix.float_bits(one)) == struct.pack("<f", one)


def test_the_lecture_s_sequences_are_bitonic():
    assert bitonic.SEQUENCES == ((1, 3, 4, 7, 6, 5, 2), (5, 7, 6, 4, 2, 1, 3))
    for keys in bitonic.SEQUENCES:
        assert bitonic.turns(keys) == bitonic.turns(bitonic.with_eight(keys)) == 2
    assert bitonic.turns([1, 3, 2, 4]) == 4
    assert bitonic.turns([1, 2, 3]) == 2


@given(st.lists(small, unique=True, min_size=8, max_size=8), st.integers(0, 7), st.integers(0, 7))
def test_half_cleaners_sort_what_is_bitonic(keys, peak, rotation):
    keys.sort()
    up_and_down = [*keys[:peak], *reversed(keys[peak:])]
    turned = [*up_and_down[rotation:], *up_and_down[:rotation]]
    last_merge = [step for step in bitonic.alternating(8) if step.size == 8]
    assert [step.name for step in last_merge] == ["B_8", "B_4", "B_2"]
    cleaned, *_, done = bitonic.run(turned, last_merge)
    assert max(cleaned[:4]) < min(cleaned[4:])
    assert done == keys


@settings(deadline=None)  # a network of 40 keys is built for each example
@given(st.lists(small, min_size=1, max_size=40))
def test_both_networks_sort_any_number_of_keys(keys):
    for network in (bitonic.alternating, bitonic.mirrored):
        assert bitonic.run([*keys, 0], network(len(keys) + 1))[-1] == sorted([*keys, 0])


def test_both_networks_sort_all_zeros_and_ones():
    for n in range(2, 9):
        assert bitonic.sorted_of_all(n, bitonic.alternating(n)) == 2**n
        assert bitonic.sorted_of_all(n, bitonic.mirrored(n)) == 2**n
    assert bitonic.sorted_of_all(7, bitonic.all_up(7)) < 2**7


def test_groups_of_a_power_of_two_go_up_where_their_bit_is_clear():
    for size in (2, 4):
        ways = [bitonic.goes_up(i, size, 8) for i in range(8)]
        assert ways == [not i & size for i in range(8)]
    assert all(bitonic.goes_up(i, 8, 8) for i in range(8))


def test_the_networks_have_the_steps_and_launches_that_the_table_says():
    for n in (2, 8, 64):
        for network in (bitonic.alternating, bitonic.mirrored):
            assert len(network(n)) == bitonic.steps_of(n)
            assert all(2 * len(step.comparators) == n for step in network(n))
    shared = registry.find(labs.get("bitonic"), "shared")
    assert shared.defines["ITEMS_PER_BLOCK"] == bitonic.ITEMS_PER_BLOCK
    assert [bitonic.launches_in_blocks(1 << k) for k in (3, 10, 11, 12)] == [1, 1, 3, 6]


def test_every_counter_has_its_byte():
    for layout, threads in zip(histogram.LAYOUTS, (64, 64, 128), strict=True):
        taken = {layout.place(c, t) for c in range(64) for t in range(threads)}
        assert taken == set(range(64 * threads))


@given(st.lists(st.integers(0, 63), min_size=32, max_size=32))
def test_permuted_counters_do_not_conflict(classes):
    cells = [[int(n) for n in cell.split(" / ")] for cell in histogram.conflict_cells(classes)]
    _, (slot_then, slot_now), (_, slot32_now) = cells
    assert (slot_then, slot32_now) == (1, 1)
    assert slot_now <= 2


def test_equal_data_conflict_in_the_linear_layout():
    assert histogram.conflict_cells([5] * 32) == ["16 / 16", "1 / 1", "1 / 1"]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=32))
def test_the_lane_tag_counts_everything(classes):
    rounds = histogram.tagged_rounds(classes)
    counts = {c: tagged & 0x07FFFFFF for c, tagged in rounds[-1].counters.items()}
    assert counts == Counter(classes)
    assert len(rounds) == histogram.collision_degree(classes)


def test_tiles_are_those_of_the_kernels():
    lab = labs.get("matmul")
    for tiling in matmul.LADDER[1:]:
        defines = registry.find(lab, tiling.variant).defines
        tile = defines.get("TILE", 0)
        found = [defines.get(name, tile) for name in ("BM", "BN")]
        assert found == [tiling.bm, tiling.bn]
        assert [defines.get(name, 1) for name in ("TM", "TN")] == [tiling.tm, tiling.tn]


def test_reads_of_a_product():
    naive, tiled, *_ = matmul.LADDER
    assert naive.global_reads(matmul.N) == 2 * matmul.N
    assert tiled.global_reads(matmul.N) * 16 == 2 * matmul.N


# The iteration -----------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [convergence.DEFINITE, convergence.INDEFINITE, ((0, 1), (-1, 1))])
@pytest.mark.parametrize("alpha", [-1.0, -0.3, 0.0, 0.2, 0.9])
def test_the_radius_is_the_largest_eigenvalue(a, alpha):
    expected = np.abs(np.linalg.eigvals(np.eye(2) + alpha * np.array(a, float))).max()
    assert convergence.radius(a, alpha) == pytest.approx(expected)


def test_the_wrong_condition_is_wrong_both_ways():
    diverges, _, converges, _ = map(convergence.fate, convergence.ALPHAS)
    assert diverges.naive < 1 < diverges.radius
    assert diverges.residuals[-1] > 1000 * diverges.residuals[0]
    assert converges.radius < 1 < converges.naive
    assert converges.residuals[-1] < converges.residuals[0] / 1000


@given(st.floats(-10, 10).filter(lambda alpha: abs(alpha) > 1e-6))
def test_no_alpha_converges_for_the_course_s_matrix(alpha):
    assert convergence.radius(convergence.INDEFINITE, alpha) > 1


def test_residuals_are_those_of_the_iteration():
    a, f = np.array(convergence.DEFINITE, float), np.array(convergence.RIGHT_SIDE)
    x = np.zeros(2)
    for residual in convergence.residuals(convergence.DEFINITE, convergence.RIGHT_SIDE, -0.3, 8):
        assert residual == pytest.approx(np.abs(a @ x - f).max())
        x += -0.3 * (a @ x - f)


def test_the_plot_has_a_mark_for_each_iteration():
    lines = convergence.residual_plot()
    assert sum(line.count("c") for line in lines[:-1]) >= 15
    assert all("x" in line or "*" in line or "o" in line for line in convergence.radius_plot()[:-3])


# The upper rungs ---------------------------------------------------------------------------------

# What NVIDIA's cuda_occupancy.h (CUDA 13.0) answers for compute capability 9.0.
OCCUPANCY = {
    (256, 32, 0): 8, (256, 96, 0): 2, (128, 96, 0): 5, (32, 32, 0): 32, (1024, 64, 0): 1,
    (100, 40, 0): 12, (256, 32, 48): 4, (384, 168, 192): 1, (64, 255, 5): 4, (512, 40, 100): 2,
}  # fmt: skip


@pytest.mark.parametrize(("block", "blocks"), OCCUPANCY.items())
def test_a_multiprocessor_holds_as_many_blocks_as_nvidia_s_calculator_says(block, blocks):
    assert occupancy.resident(gpus.load("h100"), occupancy.Block(*block))[0] == blocks


@given(st.integers(1, 9), st.integers(1, 4))
def test_one_warp_issues_in_a_cycle_and_waits_for_its_loads(warps, loads):
    lines = occupancy.schedule(warps, loads, 60)
    assert all(sum(mark == "#" for mark in cycle) <= 1 for cycle in zip(*lines, strict=True))
    for line in lines:
        waits = [len(part) for part in line.rstrip(".").replace("#", " ").split()]
        assert set(waits) <= {occupancy.LATENCY}


@given(st.integers(1, 8), st.integers(1, 20))
def test_a_tile_is_used_when_it_has_arrived_and_overwritten_when_it_was_used(stages, tiles):
    times = copies.pipeline(stages, tiles)
    for i, tile in enumerate(times):
        assert tile.arrives - tile.copy == copies.COPY
        assert tile.compute >= tile.arrives
        assert i == 0 or tile.compute >= times[i - 1].done
        assert i < stages or tile.copy >= times[i - stages].done
    if stages == 1:
        assert times[-1].done == tiles * (copies.COPY + copies.COMPUTE)


@given(st.floats(width=32, allow_nan=False, min_value=-(2.0**99), max_value=2.0**99))
def test_three_parts_are_a_float(x):
    if x == 0 or abs(x) > 2.0**-99:
        assert sum(tensor_cores.parts(x)) == x


@given(st.floats(width=32, allow_nan=False, min_value=-(2.0**99), max_value=2.0**99))
def test_a_bfloat16_number_is_the_nearest(x):
    rounded = np.float32(tensor_cores.to_bfloat16(x))
    bits = int(rounded.view(np.uint32))
    assert not bits & 0xFFFF
    neighbours = np.array([max(bits - 65536, 0), bits + 65536], np.uint32).view(np.float32)
    for other in neighbours[np.isfinite(neighbours)]:
        assert abs(float(rounded) - x) <= abs(float(other) - x)


def test_more_products_of_parts_lose_less():
    lost = [float(row[1]) for row in tensor_cores.errors()[:-1]]
    assert lost == sorted(lost, reverse=True)
    assert [len(kept) for kept in tensor_cores.KEPT.values()] == list(tensor_cores.KEPT)
    held = Counter(tensor_cores.lane(r, c) for r in range(8) for c in range(8))
    assert held == dict.fromkeys(range(32), 2)


@given(st.lists(st.tuples(small, st.integers(0, 9)), min_size=1, max_size=20), st.booleans())
def test_every_tile_learns_what_comes_before_it(tiles, chained):
    sums, ready = zip(*tiles, strict=True)
    run = look_back.run(sums, ready, chained=chained)
    assert [tile.before for tile in run] == scan.exclusive(sums)
    assert {tile.status for tile in run} == {look_back.ALL}


def test_looking_back_takes_about_the_square_root():
    for count in (32, 128, 512):
        run = look_back.run([1] * count, [0] * count)
        assert look_back.steps(run) == pytest.approx((2 * count) ** 0.5, abs=2)
        assert look_back.steps(look_back.run([1] * count, [0] * count, chained=True)) == count


@pytest.mark.parametrize("rule", pivoting.RULES)
def test_elimination_solves_what_is_well_behaved(rule):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(12, 12)) + 12 * np.eye(12)
    x = pivoting.solve(a.tolist(), (a @ np.ones(12)).tolist(), rule).x
    assert np.allclose(x, 1, atol=1e-5)


def test_pivots_small_large_and_growing():
    errors = {e: [float(pivoting.error(pivoting.solve(*pivoting.small_pivot(e), rule)))
                  for rule in pivoting.RULES] for e in pivoting.EPSILONS}  # fmt: skip
    assert errors[1e-8][0] == 1
    assert max(errors[1e-8][1:]) < 1e-6
    none, largest, relative = (
        pivoting.solve(*pivoting.large_row(30), rule).x for rule in pivoting.RULES
    )
    assert none == largest != relative
    for n in pivoting.ORDERS:
        grown = pivoting.solve(pivoting.wilkinson(n), [1.0] * n, "largest of the column")
        assert (grown.growth, grown.multiplier) == (2 ** (n - 1), 1)


def test_what_fences_and_flags_forbid():
    possible = {
        litmus.title: ordering.is_possible(litmus)
        for litmus in (*ordering.MESSAGES, *(each._replace(title=f"both: {each.title}")
                                             for each in ordering.DEKKER))
    }  # fmt: skip
    assert possible == {
        "plain": True,
        "a fence in the writer only": True,
        "a fence on each side": False,
        "release and acquire": False,
        "both: plain": True,
        "both: release and acquire": True,
        "both: a fence on each side": False,
    }


def test_threads_without_freedom_alternate_in_every_way():
    one, two = ordering.DEKKER[2].threads
    assert len(list(ordering.orders(one))) == 1
    assert len(list(ordering.merged(one, two))) == 20  # 6 over 3


# Pages -------------------------------------------------------------------------------------------


def test_every_module_is_a_topic():
    folder = Path(explain.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "exercises", "rules"}
    assert modules == set(explain.TOPICS)


@pytest.mark.parametrize("topic", explain.TOPICS)
def test_a_page_ends_with_commands_and_fits(topic):
    *parts, last = explain.page(topic)
    assert isinstance(last, Commands)
    assert all(isinstance(part, Heading | Text | Drawing | Table) for part in parts)
    for part in (*parts, last):
        if isinstance(part, Drawing | Commands):
            assert max(map(len, part.lines)) <= MOST_COLUMNS
    assert explain.summary(topic)
    assert not explain.summary(topic).endswith(".")


@pytest.mark.parametrize("width", ["40", "60", "80"])
@pytest.mark.parametrize("topic", explain.TOPICS)
def test_no_screen_is_so_narrow_that_a_table_s_words_are_cut(topic, width):
    words = Counter(shown(topic, COLUMNS=width).decode().split())
    for part in explain.page(topic):
        if isinstance(part, Table):
            in_cells = Counter(word for row in part.rows for cell in row for word in cell.split())
            assert not in_cells - words


@pytest.mark.parametrize("topic", explain.TOPICS)
def test_a_page_in_a_pipe_is_plain_text(topic):
    lines = shown(topic).decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line for line in lines)
    assert lines[0][:30] == explain.summary(topic)[:30]
    assert "See it happen" in lines


def test_the_list_has_every_topic():
    text = shown().decode()
    assert all(topic in text for topic in explain.TOPICS)


def test_drawings_survive_a_stdout_of_ascii():
    done = subprocess.run(
        [sys.executable, "-m", "cudalab", "explain", "scan"],
        capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert b"+------+" in done.stdout
    assert done.stdout.isascii()


def test_an_unknown_topic_is_a_usage_error():
    done = cudalab("explain", "bank")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"banks" in done.stderr


# Commands ----------------------------------------------------------------------------------------


def programs(line):
    """The commands of a shell line, without redirections and comments."""
    tokens = shlex.shlex(line, posix=True, punctuation_chars="|<>")
    tokens.whitespace_split = True
    found, skip = [[]], False
    for word in tokens:
        if word == "|":
            found.append([])
        elif word in "<>":
            skip = True
        elif skip:
            skip = False
        else:
            found[-1].append(word)
    return found


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_parses_and_names_variants_that_exist(line, monkeypatch, tmp_path):
    parsed = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.bin").touch()  # what the commands before it have made
    monkeypatch.setattr(click.Command, "invoke", lambda self, ctx: parsed.append((self, ctx)))
    for program, *args in programs(line):
        if program != "cudalab":
            assert program == "printf"
            continue
        parsed.clear()
        cli.main(args, prog_name="cudalab", standalone_mode=False)
        command, context = parsed[-1]
        check_variants(command, context.params)


def check_variants(command, params):
    names = params.get("names") or (params.get("lab"), command.name)
    lab_names = [name for name in names if name in labs.names()]
    if not lab_names:
        assert command.name in ("device", "exercises") or params["topic"] in explain.TOPICS
        return
    (lab,) = map(labs.get, lab_names)
    variants = params.get("variants") or params.get("variant") or "all"
    if command.name == "show":
        assert registry.find(lab, variants)
    elif variants != "all":
        case = lab.complete({name: params.get(name) for name in (*lab.axes, "bins")})
        for name in variants.split(","):
            registry.check_applies(registry.find(lab, name), lab, case)
    if params.get("dist"):
        assert params["dist"].partition(":")[0] in lab.distributions


def test_help_needs_neither_numpy_nor_rich():
    code = (
        "import sys; from cudalab.cli.app import cli;"
        "cli.main(['--help'], standalone_mode=False);"
        "assert not {'numpy', 'rich'} & set(sys.modules), 'too early'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"explain" in done.stdout
    assert b"exercises" in done.stdout
