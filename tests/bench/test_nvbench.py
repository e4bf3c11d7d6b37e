"""Results in NVBench's JSON: what is written can be read, by comparisons and by its own tools."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench_documents import document, row, table

from cudalab.bench import comparison, nvbench
from cudalab.bench.document import as_json
from cudalab.errors import InputError

# One state as NVBench 0.2 writes it, without what a comparison does not read.
THEIRS = {
    "meta": {"argv": ["copy"], "version": {"json": {"string": "1.0.0"}}},
    "devices": [{"id": 0, "name": "Some GPU"}],
    "benchmarks": [
        {
            "name": "copy",
            "axes": [{"name": "Bytes", "type": "int64", "flags": "", "values": []}],
            "states": [
                {
                    "name": "Device=0 Bytes=1024",
                    "device": 0,
                    "axis_values": [{"name": "Bytes", "type": "int64", "value": "1024"}],
                    "summaries": [
                        {
                            "tag": "nv/cold/time/gpu/mean",
                            "data": [{"name": "value", "type": "float64", "value": "0.002"}],
                        },
                        {
                            "tag": "nv/json/bin:nv/cold/sample_times",
                            "data": [
                                {"name": "filename", "type": "string", "value": "a.json-bin/0.bin"},
                                {"name": "size", "type": "int64", "value": "9"},
                            ],
                        },
                    ],
                    "is_skipped": False,
                },
                {"name": "Device=0 Bytes=0", "axis_values": None, "summaries": None,
                 "is_skipped": True, "skip_reason": "nothing to copy"},
            ],
        }
    ],
}  # fmt: skip


def stored(folder, seconds=(0.002,) * 9, **changed):
    (folder / "a.json-bin").mkdir(parents=True)
    (folder / "a.json-bin" / "0.bin").write_bytes(np.array(seconds, "<f4").tobytes())
    (folder / "a.json").write_text(json.dumps(THEIRS | changed))
    return nvbench.load(folder / "a.json")


def test_results_come_back_from_nvbench_s_json(tmp_path):
    rows = [row("slow", 2.0), row("fast", 0.5), row("fast", 0.25, cache="hot"), row("wrong", None)]
    ours = document(table(rows), table([row("other", 3.0)], lab="scan", dtype="float32"))
    nvbench.write(tmp_path / "a.json", ours)
    nvbench.write(tmp_path / "a.json", ours)  # replaces the first
    theirs = nvbench.load(tmp_path / "a.json")
    assert theirs.environment.device_name == "Test GPU"
    found = comparison.compare(ours, theirs)
    assert [(one.name, one.verdict) for one in found.verdicts] == [
        ("slow", comparison.SAME),
        ("fast", comparison.SAME),
        ("fast (hot)", comparison.SAME),
        ("wrong", comparison.NOT_TIMED),
        ("other", comparison.SAME),
    ]
    assert [one.old_ms for one in found.verdicts] == pytest.approx([2.0, 0.5, 0.25, None, 3.0])
    assert found.verdicts[0].new_ms == pytest.approx(2.0)


def test_the_file_has_what_nvbench_s_tools_read(tmp_path):
    nvbench.write(tmp_path / "a.json", document(table([row("fast", 0.5), row("wrong", None)])))
    whole = json.loads((tmp_path / "a.json").read_text())
    assert whole["meta"]["version"]["json"]["string"] == "1.0.0"
    assert whole["devices"] == [{"id": 0, "name": "Test GPU", "number_of_sms": 4}]
    (bench,) = whole["benchmarks"]
    assert (bench["name"], bench["index"], bench["devices"]) == ("reduce", 0, [0])
    assert [axis["name"] for axis in bench["axes"]][:4] == ["variant", "n", "dist", "cache"]
    assert [one["value"] for one in bench["axes"][0]["values"]] == ["fast", "wrong"]
    state, skipped = bench["states"]
    assert (skipped["is_skipped"], skipped["skip_reason"]) == (
        True,
        "WRONG: 1 of 4 elements differ",
    )
    summaries = {one["tag"]: one["data"] for one in state["summaries"]}
    (mean,) = summaries["nv/cold/time/gpu/mean"]
    assert (mean["type"], float(mean["value"])) == ("float64", pytest.approx(0.0005))
    file, size = summaries["nv/json/bin:nv/cold/sample_times"]
    assert (file["value"], size["value"]) == ("a.json-bin/0.bin", "6")
    assert len(np.fromfile(tmp_path / file["value"], "<f4")) == 6


def test_times_of_the_host_are_no_gpu_s(tmp_path):
    emulated = document(table([row("fast", 0.5, device="cpu", emulated=True, clock="host")]))
    emulated.environment = emulated.environment.__class__(
        **{**vars(emulated.environment), "device": "cpu", "emulated": True}
    )
    nvbench.write(tmp_path / "a.json", emulated)
    assert "nv/cold/time/gpu" not in (tmp_path / "a.json").read_text()
    found = comparison.compare(emulated, nvbench.load(tmp_path / "a.json"))
    assert [one.verdict for one in found.verdicts] == [comparison.SAME]


def test_another_program_s_states_are_compared_by_their_names(tmp_path):
    old, new = stored(tmp_path / "old"), stored(tmp_path / "new", [0.003] * 9)
    one, skipped = comparison.compare(old, new).verdicts
    assert (one.key.lab, one.name, one.verdict) == ("copy", "Device=0 Bytes=1024", "SLOWER")
    assert (one.old_ms, one.new_ms) == pytest.approx((2.0, 3.0))
    assert skipped.verdict == comparison.NOT_TIMED


def test_without_samples_nothing_is_judged(tmp_path):
    old, new = (stored(tmp_path / name) for name in ("old", "new"))
    (tmp_path / "new" / "a.json-bin" / "0.bin").unlink()
    new = nvbench.load(tmp_path / "new" / "a.json")
    assert comparison.compare(old, new).verdicts[0].verdict == comparison.NO_SAMPLES


def test_both_formats_are_read(tmp_path):
    path = tmp_path / "ours.json"
    path.write_text(as_json(document(table([row("fast", 0.5)]))))
    assert nvbench.load(path).tables[0].rows[0].name == "fast"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"benchmarks": [{"name": "copy"}]}, "KeyError: 'states'"),
        ({"benchmarks": 1}, "TypeError"),
        ({"devices": [{}]}, "KeyError: 'id'"),
    ],
)
def test_a_broken_file_is_named(tmp_path, changed, message):
    with pytest.raises(InputError, match=rf"a\.json: is not as NVBench writes it: {message}"):
        stored(tmp_path, **changed)


def test_a_file_with_too_few_samples_is_named(tmp_path):
    with pytest.raises(InputError, match=r"0\.bin: 9 samples are expected"):
        stored(tmp_path, [0.002] * 8)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1}'])
def test_any_other_file_is_an_error_as_ever(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"a\.json"):
        nvbench.load(path)
