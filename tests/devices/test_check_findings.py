"""Check mode: what it finds is there, and what is right is clean."""

from __future__ import annotations

import numpy as np
import pytest
from instrumented import INT, KERNELS, compiled_by, launch, line_of, zeros

from cudalab import labs, runner
from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.trace import Place, Thread
from cudalab.errors import KernelError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.language import source

__all__ = ["compiled_by"]
FINDINGS = "check_findings.cu"
pytestmark = pytest.mark.usefixtures("compiled_by")  # reports must not depend on it


def sanitize(kernel, grid, block, *args, shared_bytes=0, **options):
    """What is found, and the message of a launch that could not go on."""
    stopped = None
    with CheckDevice(detect=True, count=False, **options) as device:
        try:
            launch(device, FINDINGS, kernel, grid, block, *args, shared_bytes=shared_bytes)
        except KernelError as error:
            stopped = error.message
    return device.findings, stopped


def only(found):
    (finding,) = found
    return finding


def marked(name):
    return Place(FINDINGS, line_of(name, FINDINGS))


def thread(block, index):
    return Thread((block, 0, 0), (index, 0, 0))


@pytest.mark.parametrize(
    ("kernel", "threads", "one", "other", "missing"),
    [
        ("missing_barrier", 64, "loaded", "stored", "__syncthreads"),
        ("missing_syncwarp", 32, "loaded_by_lane", "stored_by_lane", "__syncwarp"),
        ("shuffle_is_no_barrier", 32, "after_shuffle", "before_shuffle", "__syncwarp"),
        ("half_a_warp", 32, "half_loaded", "half_stored", "__syncwarp"),
    ],
)
def test_a_race_in_shared_memory(kernel, threads, one, other, missing):
    found, stopped = sanitize(kernel, 1, threads, zeros(64), zeros(64))
    assert stopped is None
    assert {f.kind for f in found} == {"race"}
    race = next(f for f in found if f.access == "load")
    assert (race.place, race.other_place) == (marked(one), marked(other))
    assert race.other_access == "store"
    assert (race.space, race.buffer, race.missing) == ("shared", "values", missing)
    assert race.thread != race.other_thread
    if kernel != "half_a_warp":
        assert race.index == threads - 1 - race.thread.thread[0]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_one_barrier_cures_a_race_in_a_warp_and_between_warps(seed):
    found, _ = sanitize("tree_without_barriers", 1, 64, zeros(64), zeros(1), seed=seed)
    races = [f for f in found if f.place == f.other_place == marked("all_levels")]
    assert {race.missing for race in races} == {"__syncthreads"}
    for race in races:  # the threads that are named need it
        assert race.thread.thread[0] // 32 != race.other_thread.thread[0] // 32
    # In a block of one warp there is only the one kind.
    found, _ = sanitize("tree_without_barriers", 1, 32, zeros(64), zeros(1), seed=seed)
    assert {f.missing for f in found if f.place == marked("all_levels")} == {"__syncwarp"}


@pytest.mark.parametrize("kernel", ["with_barrier", "with_syncwarp"])
def test_barriers_order(kernel):
    threads = 64 if kernel == "with_barrier" else 32
    assert sanitize(kernel, 1, threads, zeros(64), (64, INT)) == ([], None)


def test_volatile_orders_nothing():
    found, _ = sanitize("warp_synchronous", 1, 32, zeros(64), zeros(1))
    race = next(f for f in found if f.place == marked("level8"))
    assert (race.kind, race.missing, race.detail) == ("race", "__syncwarp", "volatile")
    assert race.other_place == marked("level16")


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (1, 64), (3, 32)])
def test_a_lost_update(grid, block):
    finding = only(sanitize("counter", grid, block, zeros(1))[0])
    assert (finding.kind, finding.place, finding.buffer) == (
        "lost_update",
        marked("counted"),
        "out",
    )
    assert sanitize("atomic_counter", grid, block, zeros(1)) == ([], None)


def test_lanes_that_write_one_word_are_a_note():
    finding = only(sanitize("one_wins", 1, 32, zeros(32), zeros(32))[0])
    assert (finding.kind, finding.note, finding.buffer) == ("same_word", True, "winner")
    of_two_warps = sanitize("one_wins", 1, 64, np.arange(64, dtype=INT), zeros(64))[0]
    assert {f.kind for f in of_two_warps} == {"same_word", "race"}  # either may be the last
    equal = sanitize("one_wins", 1, 64, zeros(64), zeros(64))[0]
    assert {(f.kind, f.note) for f in equal} == {("same_word", True), ("same_value", True)}


@pytest.mark.parametrize(
    ("kernel", "inputs", "kinds"),
    [
        ("in_different_rounds", [], {"same_word", "race"}),
        ("behind_a_loop", [np.arange(32, dtype=INT)], {"same_word"}),
        ("between_barriers", [], {"same_word"}),
    ],
)
def test_lanes_in_one_instruction_and_in_several(kernel, inputs, kinds):
    found, _ = sanitize(kernel, 1, 32, *inputs, zeros(1))
    assert {finding.kind for finding in found} == kinds


@pytest.mark.parametrize("how", range(5))
def test_atomic_operations_that_change_nothing_wait_for_others(how):
    assert sanitize("polled", 1, 64, zeros(1), INT(how), kill_after=20) == ([], None)


def test_atomic_operations_that_change_nothing_are_loads():
    assert sanitize("read_by_atomics", 1, 64, zeros(16)) == ([], None)


def test_what_has_been_recorded_of_a_launch_can_be_given_back():
    with CheckDevice(detect=True, count=False) as device:
        for _ in range(2):
            launch(device, FINDINGS, "blocks_collide", 2, 64, zeros(64))
            device._checker.cudalab_check_release()
        assert [finding.kind for finding in device.findings] == ["race"]
        launch(device, FINDINGS, "counter", 1, 1, zeros(1))
        assert len(device.findings) == 1


def test_blocks_that_collide():
    finding = only(sanitize("blocks_collide", 2, 64, zeros(64))[0])
    assert (finding.kind, finding.missing, finding.space) == ("race", None, "global")
    assert finding.thread.block != finding.other_thread.block


def test_a_neighbour_that_others_write():
    found, _ = sanitize("reads_neighbour", 2, 64, zeros(128), zeros(128), INT(128))
    pairs = {frozenset((f.place.line, f.other_place.line)) for f in found}
    lines = line_of("written", FINDINGS), line_of("neighbour", FINDINGS)
    assert frozenset(lines) in pairs


@pytest.mark.parametrize(
    ("kernel", "grid", "args", "mark", "expected"),
    [
        (
            "off_by_one", 2, (zeros(100), zeros(100), INT(100)), "past_the_end",
            ("store", "global", "out", 100, 0, thread(1, 36)),
        ),
        (
            "before_the_start", 1, (zeros(64), zeros(64)), "before_the_start",
            ("load", "global", "in", -1, -4, thread(0, 0)),
        ),
    ],
)  # fmt: skip
def test_out_of_bounds(kernel, grid, args, mark, expected):
    found, stopped = sanitize(kernel, grid, 64, *args)
    finding = only(found)
    assert stopped is None
    assert (finding.kind, finding.place, finding.bytes) == ("out_of_bounds", marked(mark), 4)
    seen = (finding.access, finding.space, finding.buffer, finding.index, finding.beyond)
    assert (*seen, finding.thread) == expected


def test_an_overrun_of_a_shared_array_spares_its_neighbour():
    finding = only(sanitize("overrun_into_neighbour", 1, 32, zeros(32))[0])
    assert (finding.kind, finding.place) == ("out_of_bounds", marked("overrun"))
    assert (finding.buffer, finding.index, finding.beyond) == ("first", 32, 0)
    found, _ = sanitize("dynamic_overrun", 1, 32, zeros(32), shared_bytes=128)
    assert found[0].place == marked("dynamic_overrun")
    assert (found[0].buffer, found[0].index, found[0].beyond) == ("dynamic", 32, 0)
    assert sanitize("dynamic_overrun", 1, 32, zeros(32), shared_bytes=132) == ([], None)


def test_a_wild_pointer_ends_the_launch():
    found, stopped = sanitize("wild", 1, 32, zeros(32))
    assert (only(found).kind, only(found).place) == ("out_of_bounds", marked("wild"))
    assert only(found).thread == thread(0, 3)
    assert only(found).buffer is None
    assert "kernel wild, block (0,0,0): thread (3,0,0)" in stopped


def test_packed_members_lie_anywhere():
    in_, out = (np.zeros(40, np.uint8) for _ in range(2))
    found, stopped = sanitize("packed", 1, 8, in_, out)
    assert (found, stopped) == ([], None)


def test_misaligned():
    found, stopped = sanitize("misaligned", 1, 32, zeros(64), zeros(128))
    finding = only(found)
    assert (finding.kind, finding.place, finding.bytes) == ("misaligned", marked("misaligned"), 16)
    assert (finding.buffer, finding.index, finding.thread) == ("in", 1, thread(0, 1))
    assert "misaligned" in stopped


def test_uninitialised():
    finding = only(sanitize("uninitialised_shared", 1, 64, zeros(64))[0])
    assert (finding.kind, finding.place) == ("uninitialised", marked("never_written"))
    assert (finding.space, finding.buffer, finding.index) == ("shared", "values", 63)
    finding = only(sanitize("accumulates", 1, 64, (64, INT))[0])
    assert (finding.kind, finding.place) == ("uninitialised", marked("accumulates"))
    assert (finding.space, finding.buffer, finding.count) == ("global", "sums", 64)
    assert sanitize("accumulates", 1, 64, zeros(64)) == ([], None)


def test_objects_in_registers():
    buffers = [zeros(64), *((64 * size, np.uint8) for size in (2, 8, 16))]
    assert sanitize("objects", 1, 64, *buffers, INT(1)) == ([], None)
    findings = sanitize("objects", 1, 64, *buffers, INT(0))[0]
    assert {(f.kind, f.place, f.buffer, f.count) for f in findings} == {
        ("uninitialised", marked("objects"), "s", 64),
        ("uninitialised", marked("objects"), "m", 128),
        ("uninitialised", marked("objects"), "v", 256),
    }


def test_padding_has_no_value():
    buffers = (64, np.float64), (128 * 24, np.uint8)
    assert sanitize("padded", 1, 64, *buffers, INT(1)) == ([], None)
    kinds = {(f.kind, f.buffer) for f in sanitize("padded", 1, 64, *buffers, INT(0))[0]}
    assert kinds == {("uninitialised", "p")}


def test_objects_lie_where_their_members_may():
    buffers = (192 * 12, np.uint8), (192 * 24, np.uint8)
    assert sanitize("inner_objects", 1, 64, *buffers) == ([], None)


@pytest.mark.parametrize(("closed", "waits"), [(0, 0), (0, 1), (1, 0)])
def test_an_asynchronous_copy_that_nobody_waits_for(closed, waits):
    found, stopped = sanitize(
        "async_copies", 1, 64, zeros(64), zeros(64), np.int32(closed), np.int32(waits)
    )
    assert stopped is None
    finding = only(found)
    assert (finding.kind, finding.place) == ("not_arrived", marked("under_way"))
    assert (finding.space, finding.buffer, finding.index) == ("shared", "values", 63)


@pytest.mark.parametrize(
    ("kernel", "args"), [("async_copies", (1, 1)), ("async_stages", (1,)), ("async_stages", (0,))]
)
def test_asynchronous_copies_that_are_awaited(kernel, args):
    numbers = map(np.int32, args)
    assert sanitize(kernel, 1, 64, zeros(64), zeros(64), *numbers) == ([], None)


def test_values_travel_with_copies():
    with CheckDevice(detect=True, count=False) as device:
        module = device.compile(source.load(KERNELS / FINDINGS, FINDINGS), {})
        nothing, something = device.empty(64, INT), device.to_device(zeros(64))
        copies = [device.empty(64, INT), device.empty(64, INT)]
        device.copy(something, copies[0])
        device.launch(module["accumulates"], 1, 64, copies[0])
        assert not device.findings
        device.copy(nothing, copies[1])
        device.launch(module["accumulates"], 1, 64, copies[1])
        assert [f.kind for f in device.findings] == ["uninitialised"]


def test_threads_at_two_barriers():
    finding = only(sanitize("two_barriers", 1, 64, zeros(64))[0])
    assert (finding.kind, finding.note) == ("barrier_divergence", False)
    assert (finding.place, finding.other_place) == (marked("barrier_one"), marked("barrier_two"))
    assert (finding.thread, finding.other_thread) == (thread(0, 0), thread(0, 40))


def test_threads_at_two_barriers_of_one_line():
    finding = only(sanitize("two_barriers_of_a_line", 1, 64, zeros(64))[0])
    assert (finding.kind, finding.note) == ("barrier_divergence", False)
    assert finding.place == finding.other_place == marked("two_of_a_line")


@pytest.mark.parametrize("kernel", ["barrier_in_branch", "barrier_before_the_end"])
def test_threads_that_pass_a_barrier_by(kernel):
    finding = only(sanitize(kernel, 1, 64, zeros(128))[0])
    assert (finding.kind, finding.note, finding.detail) == ("barrier_divergence", False, "left")
    assert finding.place == marked(kernel)
    assert finding.other_thread.thread > finding.thread.thread


@pytest.mark.parametrize("kernel", ["early_return", "early_return_with_work"])
def test_threads_may_return_early(kernel):
    finding = only(sanitize(kernel, 1, 64, zeros(64), INT(50))[0])
    assert (finding.kind, finding.note, finding.detail) == ("barrier_divergence", True, "left")
    assert sanitize(kernel, 1, 64, zeros(64), INT(64)) == ([], None)


@pytest.mark.parametrize(
    ("kernel", "args", "says"),
    [
        ("full_mask", ("full_mask_in_branch",), "names lane 16, which waits at __syncthreads"),
        ("not_in_mask", ("not_in_mask",), "lane 16 calls a vote with mask 0x0000ffff, which does"),
        ("different_masks", ("different_masks",), "lane 0 with mask 0x0001ffff"),
        ("lane_left", ("reads_a_lane_that_left", INT(20)), "lane 20, which has left the kernel"),
    ],
)
def test_wrong_masks(kernel, args, says):
    name, *numbers = args
    finding = only(sanitize(name, 1, 32, zeros(32), *numbers)[0])
    assert (finding.kind, finding.place) == ("wrong_mask", marked(kernel))
    assert says in finding.detail


def test_an_endless_loop_ends():
    found, stopped = sanitize("endless", 1, 32, zeros(1), kill_after=0.5)
    assert (only(found).kind, only(found).place) == ("infinite_loop", marked("endless"))
    assert "did not end in time" in stopped


def test_another_module_can_be_loaded_after_an_endless_loop():
    """Its constructors are instrumented, too, and run where no loop is to be ended."""
    sanitize("endless", 1, 32, zeros(1), kill_after=0.5)
    lab = labs.get("reduce")
    variant, case = registry.find(lab, "global_halving"), lab.complete({})
    inputs = HostInputs({"x": np.ones(1000, np.int32)}, {"n": 1000})
    with CheckDevice(detect=True, count=False) as device:
        step = runner.prepare(lab, variant, device, inputs, case, watch=runner.Stopwatch())
        step()
        assert device.to_host(step.out) == 1000


def test_a_division_by_zero_is_a_finding_and_the_kernel_goes_on():
    found, stopped = sanitize("divides", 1, 32, zeros(32), INT(0))
    assert (only(found).kind, only(found).place) == ("zero_division", marked("divides"))
    assert (only(found).count, stopped) == (32, None)
    assert sanitize("divides", 1, 32, zeros(32), INT(1)) == ([], None)


@pytest.mark.parametrize("kernel", ["last_block_sums", "last_block_without_fence"])
def test_fences_and_atomics_order_blocks(kernel):
    args = (np.arange(10, dtype=INT), zeros(10), zeros(1, np.uint32), zeros(1))
    found, _ = sanitize(kernel, 10, 64, *args)
    if kernel == "last_block_sums":
        assert not found
    else:
        assert (only(found).kind, only(found).place) == ("race", marked("partials"))
        assert only(found).other_place == marked("partial")


@pytest.mark.parametrize("kernel", ["handed_over", "handed_over_without_fence"])
def test_fences_and_atomics_order_warps(kernel):
    found, _ = sanitize(kernel, 1, 64, zeros(1))
    if kernel == "handed_over":
        assert not found
    else:
        assert (only(found).place, only(found).other_place) == (marked("taken"), marked("handed"))


def test_orders_are_shuffled_by_seed():
    answers = set()
    for seed in (None, None, 1, 1, 2):
        with CheckDevice(detect=False, count=False, seed=seed) as device:
            _, out = launch(device, FINDINGS, "in_order_of_arrival", 4, 64, zeros(1), zeros(256))
        assert sorted(out) == list(range(256))
        answers.add((seed, bytes(out)))
    assert {seed for seed, _ in answers} == {None, 1, 2}
    assert len({answer for _, answer in answers}) == 3


def test_variables_of_functions_and_templates_are_looked_at():
    found, _ = sanitize("variables_apart", 2, 1, INT(4))
    lost = {f.place: f.buffer for f in found if f.kind == "lost_update"}
    names = ("of_function", "of_template")
    assert lost == {marked(name): name for name in names}
    past = only([f for f in found if f.kind == "out_of_bounds" and not f.note])
    assert (past.place, past.buffer, past.beyond) == (marked("past_template"), "of_template", 0)
