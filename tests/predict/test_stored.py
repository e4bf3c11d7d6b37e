"""Predictions and measurements in docs/results: what comes first stays as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from bench_documents import document, row, table

from cudalab import labs, runner
from cudalab.backends.cpu.check import CheckDevice
from cudalab.errors import CudalabError
from cudalab.labs.inputs import HostInputs
from cudalab.predict import ladder, model
from cudalab.predict.model import Constants
from tools.predict import counting, outside, part, stored, tables

FOLDER = stored.FOLDER


def real():
    """The rungs that are stored for the H100."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "FOLDER", FOLDER)
        return stored.pairs(stored.FITTED_ON)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "FOLDER", tmp_path)
    monkeypatch.setattr(counting, "FOLDER", tmp_path)
    return tmp_path


def test_a_part_of_a_gpu_has_fewer_multiprocessors():
    whole, part_of_it = stored.gpu_of("h200"), stored.gpu_of("h200:88")
    assert part_of_it.name == "NVIDIA H200, 88 multiprocessors"
    assert replace(part_of_it, name=whole.name, multiprocessors=132.0) == whole


def test_a_prediction_does_not_change(folder):
    counting.write("h200", "nvidia-h200", {})
    written = (folder / "nvidia-h200.json").read_text()
    with pytest.raises(SystemExit, match="do not change any more"):
        counting.write("h100", "nvidia-h200", {})
    assert (folder / "nvidia-h200.json").read_text() == written
    counting.write("h100", stored.FITTED_ON, {})
    counting.write("h100", stored.FITTED_ON, {})  # is fitted on, so it may


def test_times_come_after_predictions_and_replace_those_of_their_size(folder):
    first = document(table([row("serial", 1.0)], n=1024), table([row("serial", 2.0)], n=2048))
    with pytest.raises(CudalabError, match="nothing was predicted for gpu"):
        stored.add("gpu", [first])
    (folder / "gpu.json").write_text("{}")
    stored.add("gpu", [first])
    later = document(table([row("serial", 3.0), row("numpy", 9.0, kind="baseline")], n=2048))
    environment = replace(later.environment, date="2026-02-01")
    stored.add("gpu", [replace(later, environment=environment)])
    assert stored.measured("gpu") == {
        ("reduce", "1,024", "serial"): pytest.approx(1e-3),
        ("reduce", "2,048", "serial"): pytest.approx(3e-3),
    }
    text = json.loads((folder / "measured-gpu.json").read_text())
    assert text["date"].startswith("2026-01-31")
    assert [one.get("date", "") for one in text["tables"]] == ["", "2026-02-01"]


def test_a_rehearsal_of_measuring_a_part(folder):
    done = part.measure(40, 0.01, ["table"], "cpu")
    assert done.environment.device_name.endswith(", 40 multiprocessors")
    assert done.tables[0].timed
    assert list(folder.iterdir()) == []


def test_a_planted_stride_changes_where_a_warp_reads_and_nothing_else():
    lab = labs.get("reduce")
    x = np.arange(2 * 8192, dtype=np.int32)
    inputs, seen = HostInputs({"x": x}, {"n": x.size}), []
    for stride in (1, 32):
        variant = counting.with_stride(stride)
        with CheckDevice(detect=False, count=True) as device:
            answer = runner.run(lab, variant, device, inputs, lab.complete({}))
            assert answer.array() == x.sum(dtype=np.int32)
            loads = [one for one in device.traces[0].accesses if one.space == "global"]
        seen.append([(one.requests, one.sectors) for one in loads if one.kind == "load"])
    requests = x.size // 32
    assert seen == [[(requests, 4 * requests)], [(requests, 32 * requests)]]


def test_numbers_of_a_file_beside_those_of_another():
    text = tables.compared(stored.gpu_of("h200"), stored.gpu_of("h100"))
    assert "| dram_gb_per_s | 4231 | 2987 | 1.42 | measured | measured |" in text
    assert text.count("\n") == 2 + len(stored.gpu_of("h200").sources)


def test_a_kernel_of_others_becomes_a_kernel_file():
    kernel = "template <int B>\n__global__ void __launch_bounds__((B * 2), 1)\n    go(int m) {}\n"
    text = "#include <cublas_v2.h>\n" + kernel
    made = outside.as_file(outside.Kernel(1, "", "go<4>", (8, 8), (64,)), text)
    assert "cublas" not in made
    assert "__device__ __forceinline__ void " in made
    assert 'extern "C" __global__ void __launch_bounds__(64) multiply(' in made
    assert "go<4>(m, n, k, 0.5f, A, B, 3.0f, C);" in made


def test_published_rates():
    readme = "| 1: Naive | `309.0` | 1.3% |\n| 10: Tiles (of warps) |  `21779.3` | 93.7% |\n"
    assert outside.published(readme) == {1: 309.0, 10: 21779.3}


def test_times_follow_the_model_until_they_are_measured(folder):
    _, (first, *_) = real()
    ladders = {("reduce", 1024): [replace(first.rung, ms=1.0)]}
    counting.write("h200", "gpu", ladders)
    counting.again("gpu")
    (rung,) = json.loads((folder / "gpu.json").read_text())["predictions"][0]["rungs"]
    expected = ladder.timed(first.rung, stored.gpu_of("h200"))
    assert rung["ms"] == pytest.approx(expected.ms, rel=1e-5)
    assert rung["ms"] != 1.0
    stored.add("gpu", [document(table([row("serial", 1.0)]))])
    with pytest.raises(SystemExit, match="has been measured"):
        counting.again("gpu")


def test_a_step_takes_time_to_begin():
    gpu = stored.gpu_of("h100")
    assert model.seconds([], gpu, Constants()) == pytest.approx(1e-6 * Constants().begin_us)


def test_the_other_sizes_are_those_of_the_usual_case():
    sizes = {key[:2] for key in stored.targets()}
    assert ("reduce", "65,536") in sizes
    assert all(1e-7 < time < 100 for time in stored.targets().values())


def test_ladders_with_a_low_tau_are_named():
    text = tables.below(0.85)
    assert text.startswith("Ladders with a tau below 0.85: ")
    assert "`radixsort` at 4,194,304 on an NVIDIA H200 (0.84)" in text
    assert tables.below(-1).endswith("none.\n")


def test_what_planted_strides_are_is_said_and_no_change_of_an_unchanged_model(folder, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", folder)
    assert tables.waiting() == "All that are stored have been measured.\n"
    _, (first, *_) = real()
    size = ("reduce", 1 << 20)
    counting.write("h200", "nvidia-h200-planted", {size: [replace(first.rung, variant="serial")]})
    counting.again("nvidia-h200-planted")
    waiting = "* `nvidia-h200-planted`, NVIDIA H200: `reduce` at 1,048,576\n"
    assert tables.waiting().endswith(waiting)
    stored.add("nvidia-h200-planted", [document(table([row("serial", 1.0)], n=1 << 20))])
    text = tables.scores_of("nvidia-h200-planted")
    assert text.startswith("NVIDIA H200, a student's sum with strides planted in it, predicted")
    assert "The model of today" not in text
    written = folder / "nvidia-h200-planted.json"
    today = json.loads(written.read_text())
    today["predictions"][0]["rungs"][0]["kernels"][0]["dram_bytes"] *= 100
    (folder / f"today-{written.name}").write_text(json.dumps(today))
    assert "The model of today: tau" in tables.scores_of("nvidia-h200-planted")
