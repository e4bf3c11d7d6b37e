"""Counting, growing, and the command; without nvcc, so that all machines do the same."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace

import documents
import numpy as np
import pytest
from command import cudalab
from traced import trace

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.cli.work import predict as command
from cudalab.cli.work.predict import Request, predict_sizes
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.predict import counts, gpus, ladder, model, show
from cudalab.predict.counts import Cost, KernelCounts, Row
from cudalab.predict.recorder import Recorder
from cudalab.system import records

pytestmark = pytest.mark.xdist_group("predicted ladder")  # one prediction for all

LOAD = Row(("my.cu", 1, "global", "load"), "in", 4)
BARRIER = ("my.cu", 2, "barrier", "block")


def plan(lab, variant, arrays, params, multiprocessors=132):
    """The launches of a variant, of which nothing runs."""
    lab = labs.get(lab)
    subject = counts.Subject(lab, registry.find(lab, variant), lab.complete({}), multiprocessors)
    return counts.recorded(subject, HostInputs(arrays, params))


def test_a_plan_at_full_size_costs_nothing():
    n = 2**31 - 1
    array = np.broadcast_to(np.int32(1), n)  # 8 GB, of which 4 bytes are there
    first, *_, last = plan("reduce", "sequential", {"x": array}, {"n": n})
    assert (first.kernel, first.blocks, first.block) == ("reduce_blocks", 2**23, (256, 1, 1))
    assert first.buffers == {"x": 4 * n, "out": 4 * 2**23}  # y is x again
    assert last.blocks == 1


def test_a_plan_is_one_for_the_gpu():
    x = np.zeros(1 << 24, np.int32)
    for multiprocessors in (28, 132):
        _, launch = plan("histogram", "privatized", {"elements": x}, {"n": x.size}, multiprocessors)
        assert launch.blocks % multiprocessors == 0


def test_an_answer_is_refused():
    recorder = Recorder("cpu", frozenset(), 1)
    with pytest.raises(CudalabError, match="only recorded"):
        recorder.to_host(recorder.empty(1, np.int32))


@pytest.mark.parametrize(("launches", "blocks"), [(1, 16), (100, 5), (10_000, 1)])
def test_of_many_launches_each_has_a_small_sample(monkeypatch, launches, blocks):
    """So that all of them are seen, not only the first ones."""
    seen = []

    class Stop(Exception):  # noqa: N818 - nothing has failed
        """Raised when the device is opened."""

    def opened(**options):
        seen.append(options["blocks"])
        raise Stop

    monkeypatch.setattr(counts, "recorded", lambda *_: [trace()] * launches)
    monkeypatch.setattr(counts, "CheckDevice", opened)
    for chosen in (counts.SAMPLE, None):
        with pytest.raises(Stop):
            counts.traced(SimpleNamespace(), HostInputs({}), chosen)
    assert seen == [blocks, None]


def counted(requests, barriers):
    kernel = KernelCounts([trace()])
    kernel.rows[LOAD] = Cost(requests=requests, sectors=4 * requests, lines=requests)
    kernel.barriers[BARRIER] = barriers
    return {trace().kernel: kernel}


def test_counts_grow_as_powers_of_the_size():
    small, large = counted(1000, 7), counted(4000, 7)  # n^2, and constant
    kernel = counts.grown(small, large, 2, 8, [trace()])[trace().kernel]
    assert kernel.rows[LOAD].requests == pytest.approx(4000 * 64)
    assert kernel.rows[LOAD].lines == pytest.approx(4000 * 64)
    assert kernel.rows[LOAD].wavefronts == 0
    assert kernel.barriers[BARRIER] == pytest.approx(7)


def test_a_kernel_that_was_never_counted_is_refused():
    with pytest.raises(CudalabError, match="new_kernel does not run at sizes"):
        counts.grown({}, counted(1, 1), 2, 2, [trace(kernel="new_kernel")])


def test_a_sample_stands_for_all_blocks():
    launch = trace(blocks=100, blocks_traced=10, warps_traced=80)
    not_traced = trace(blocks=100, blocks_traced=0, warps_traced=0, accesses=(), barriers={})
    (kernel,) = counts.counted([launch, not_traced]).values()
    sampled = sum(access.requests for access in launch.accesses)
    assert sum(cost.requests for cost in kernel.rows.values()) == pytest.approx(20 * sampled)


def test_what_fits_in_l2_comes_from_there():
    gpu = gpus.load("h100")
    kernel = counted(1 << 20, 0)["reduce_blocks"]
    for megabytes, share in ((25, 1.0), (75, 0.5), (200, 0.0)):
        launch = trace(buffers={"in": megabytes * 10**6})
        kernel.launches = [launch]
        work = model.work(kernel, None, gpu, used=1e9)
        moved = work.dram_bytes + work.l2_bytes
        assert moved == min(128 << 20, megabytes * 10**6)
        assert work.l2_bytes / moved == pytest.approx(share)
    kernel.launches = [trace(buffers={"in": 25 * 10**6})]
    assert model.work(kernel, None, gpu, used=1e6).l2_bytes == 1e6  # what was used before
    assert model.work(kernel, None, gpu).l2_bytes == 0
    kernel.launches = 2 * [trace(buffers={"in": 25 * 10**6})]
    assert model.work(kernel, None, gpu).l2_bytes == 25e6


def test_the_largest_launch_decides_how_many_multiprocessors_are_busy():
    kernel = counted(1 << 20, 0)["reduce_blocks"]
    kernel.launches = [trace(blocks=2), trace(blocks=2048), trace(blocks=1)]
    assert model.work(kernel, None, gpus.load("h100")).busy == 2048 / 16  # no more than 16 each
    kernel.launches = [trace(blocks=2), trace(blocks=40)]
    assert model.work(kernel, None, gpus.load("h100")).busy == 40


def test_blocks_that_are_resident():
    gpu = gpus.load("h100")
    assert model.resident_blocks(gpu, 8, 32, 0) == 8  # 64 warps
    assert model.resident_blocks(gpu, 8, 128, 0) == 2  # 65,536 registers
    assert model.resident_blocks(gpu, 1, 16, 0) == 32
    assert model.resident_blocks(gpu, 8, 32, 100 << 10) == 2  # of 228 KB


def predict_one(name, gpu, size, variants="naive,tiled"):
    """The predictions at one size."""
    request = Request(gpu=gpu, variants=variants, sizes=[size])
    return predict_sizes(labs.get(name), request, {})


@pytest.fixture(scope="module")
def predicted():
    """Two rungs, on a machine without nvcc."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvcc, "compilers", lambda: iter(()))
        (result,) = predict_one("transpose", "t4", (256, 192))
    return result


def test_counts_are_those_of_the_accesses(predicted):
    naive, tiled = predicted.rungs
    assert (naive.variant, tiled.variant) == ("naive", "tiled")
    assert naive.low_ms < naive.ms < naive.high_ms
    (kernel,) = naive.kernels
    assert kernel.dram_bytes == 2 * 4 * 256 * 192
    assert kernel.partial == 256 * 192  # each element has a sector of its own
    (kernel,) = tiled.kernels
    assert kernel.partial == 0


def test_without_nvcc_the_table_says_so(predicted):
    assert any("no nvcc here" in one for one in predicted.notes)
    assert not predicted.rungs[0].compiled
    assert records.read(ladder.Prediction, asdict(predicted)) == predicted


def test_another_gpu_needs_no_counting(predicted, monkeypatch):
    """Unless the launch plan asks for its multiprocessors."""
    monkeypatch.setattr(nvcc, "compilers", lambda: iter(()))
    monkeypatch.setattr(counts, "traced", lambda *_: pytest.fail("counted again"))
    (again,) = predict_one("transpose", "a100", (256, 192))
    assert [one.kernels[0].partial for one in again.rungs] == [
        one.kernels[0].partial for one in predicted.rungs
    ]
    assert again.rungs[0].ms < predicted.rungs[0].ms


def test_a_plan_that_asks_for_the_multiprocessors_is_counted_for_each_number(monkeypatch):
    monkeypatch.setattr(nvcc, "compilers", lambda: iter(()))
    blocks = []
    for gpu in ("t4", "h100", "h200"):
        if gpu == "h200":  # has as many as an H100
            monkeypatch.setattr(counts, "traced", lambda *_: pytest.fail("counted again"))
        (result,) = predict_one("histogram", gpu, 1 << 22, "privatized")
        blocks.append(max(one.blocks for one in result.rungs[0].kernels))
    assert blocks[0] != blocks[1] == blocks[2]


def test_the_page_has_each_rung_below_the_roof(predicted):
    gpu = gpus.load("t4")
    chart = show.roofline(predicted, predicted.rungs, gpu)
    assert [point.label for point in chart.points] == ["naive", "tiled"]
    for point in chart.points:  # each element is read and written once: 8 bytes
        assert point.x == pytest.approx(1 / 8)
        assert 0 < point.y < chart.roof.at(point.x)
    html = show.page([predicted], gpu)
    assert html.count("<svg") == 2
    assert "latency</th>" in html


def test_what_a_gpu_lacks_is_refused():
    (result,) = predict_one("matmul", "a100", 64, "async_copy_deep")
    assert "requires sm_90, shared_224kb" in result.rungs[0].failed
    kernel = counted(1, 0)["reduce_blocks"]
    kernel.launches = [trace(shared_bytes=100 << 10)]
    with pytest.raises(CudalabError, match="102,400 bytes of shared memory"):
        model.work(kernel, None, gpus.load("t4"))


def test_json_on_stdout_is_all():
    words = ("--variants", "naive", "--n", "64,128", "--gpu", "h100", "--json", "-")
    done = cudalab("predict", "transpose", *words)
    assert done.returncode == 0, done.stderr.decode()
    small, large = documents.checked(done.stdout, "predict")["predictions"]
    assert (small["size"], large["size"]) == ("64", "128")
    assert small["rungs"][0]["ms"] < large["rungs"][0]["ms"]


def test_ties_have_no_winner():
    about = {"order": 0.0, "summary": ""}
    rungs = [
        ladder.Rung(variant=name, ms=ms, terms_ms={"DRAM": ms, "L1": 0.0}, **about)
        for name, ms in (("a", 2.0), ("b", 1.05), ("c", 1.0))
    ]
    prediction = ladder.Prediction(
        gpu="GPU", assumed=[], lab="reduce", case={}, size="1", rungs=rungs, notes=[]
    )
    grid = show.grid(prediction)
    assert [row[3] for row in grid.rows] == ["", "1.90 ×", "≈ 1.05 ×"]  # noqa: RUF001
    assert grid.notes[0].endswith("c ≈ b, a")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("reduce",), 2, "--gpu"),
        (("reduce", "--gpu", "nothing"), 2, "GPU 'nothing' is unknown"),
        (("reduce", "--gpu", "t4", "--variants", "nothing"), 2, "nothing"),
        (("solve", "--gpu", "t4", "--variants", "jacobi", "--n", "32"), 1, "on the host"),
    ],
)
def test_mistakes(words, status, message):
    done = cudalab("predict", *words)
    assert done.returncode == status
    assert message in done.stderr.decode()
    assert done.stdout == b""


def work(blocks, *, barriers, shared_bytes=0):
    """A kernel that computes, and waits for as long."""
    zeros = [name for name in model.Work.__annotations__ if name not in ("kernel", "launches")]
    counted = dict.fromkeys(zeros, 0.0) | {"registers": 32, "warps_per_block": 8}
    warps = 8.0 * blocks
    return model.Work(
        kernel="k",
        launches=1,
        **counted
        | {
            "blocks": blocks,
            "busy": min(132, blocks),
            "shared_bytes": shared_bytes,
            "barriers": barriers,
            "instructions": 1000 * warps,
            "cycles": 3000 * warps,
        },
    )


def test_only_other_blocks_work_while_one_waits_at_barriers():
    gpu, k = gpus.load("h100"), model.Constants()
    ideal = 2000 / gpu.cycles_per_s  # eight warps on four schedulers
    alone = model.kernel_seconds(work(132, barriers=1e-6), gpu, k)
    assert alone == pytest.approx(ideal + 2000 / gpu.cycles_per_s, rel=1e-6)
    eight = model.kernel_seconds(work(8 * 132, barriers=1e-6), gpu, k)
    assert 8 * ideal < eight < 8 * ideal + 2000 / gpu.cycles_per_s
    free = model.kernel_seconds(work(132, barriers=0.0), gpu, k)
    assert free < alone  # its warps need not wait for one another


def test_blocks_that_do_not_fit_wait_for_a_place():
    gpu = gpus.load("h100")
    assert model.waves(work(132, barriers=0.0, shared_bytes=200 << 10), gpu) == 1
    assert model.waves(work(133, barriers=0.0, shared_bytes=200 << 10), gpu) == 2


def test_no_time_is_below_the_roofline_or_below_a_part():
    gpu = gpus.load("t4")
    products = 2048**3
    work = model.Work(
        kernel="k", launches=1, blocks=4096, busy=40.0, warps_per_block=8, registers=32,
        shared_bytes=0, dram_bytes=5e7, l2_bytes=0.0, l1_turns=0.0, partial=0.0, atomics=0.0,
        instructions=products / 32, float_instructions=products / 32, integer_instructions=0.0,
        slow_instructions=0.0, double_instructions=0.0, barriers=0.0, cycles=1e9,
    )  # fmt: skip
    one = ladder.timed(ladder.Rung(variant="k", order=1, summary="", kernels=[work]), gpu)
    assert one.low_ms >= 0.9999 * 2e-6 * products / gpu.float_gflops
    assert one.ms >= max(one.terms_ms.values())


def test_a_rung_is_compared_with_the_one_before_on_its_own_ladder():
    names = {"a": "", "rows": "rows", "b": "", "rows_faster": "rows"}
    rungs = [
        ladder.Rung(variant=name, order=i, summary="", ladder=of, ms=8.0 / (i + 1))
        for i, (name, of) in enumerate(names.items())
    ]
    assert ladder.neighbours(rungs) == [None, None, 3.0, 2.0]


def test_a_program_is_not_predicted():
    done = cudalab("predict", "p.cu", "--gpu", "t4")
    assert done.returncode == 2
    assert b"whole programs are not predicted" in done.stderr


@pytest.mark.parametrize(("seconds", "named"), [(1, "12 variants"), (15, "2 variants that were")])
def test_beside_a_kernel_file_is_the_fastest_of_the_lab_as_far_as_time_allows(
    seconds, named, monkeypatch
):
    lab = labs.get("reduce")
    (case, *_) = lab.cases()
    clock = iter(range(0, 10_000, seconds))
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    def timed(variant):
        ms = {"vectorized": 1.0, "single_pass": 2.0, "coarsened": None}.get(variant.name, 3.0)
        about = {"order": variant.order, "summary": "", "ladder": variant.ladder}
        return ladder.Rung(variant=variant.name, ms=ms, **about)

    best, said = command.fastest(lab, case, gpus.load("h100"), timed)
    assert best.variant == "vectorized"
    assert f"vectorized: the fastest of the lab's {named}" in said
    assert ("without --kernel 10 more are" in said) == (seconds == 15)
