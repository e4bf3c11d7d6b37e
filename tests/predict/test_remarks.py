"""What `check` and `report` say of a GPU that is not there."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest
from bench_documents import document, row, table
from checking import cudalab, kernel

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.checker import cases, judge, outputs
from cudalab.checker.options import Settings
from cudalab.checker.sandbox import sandbox
from cudalab.checker.submit import predicting
from cudalab.checker.submit.kernel import TIMING_LIMITS, Kernel
from cudalab.cli.work.report import predict
from cudalab.output.listing import Cell
from cudalab.predict import gpus, ladder
from cudalab.system import records

T4 = gpus.load("t4")


def rung(name, ms, limit="DRAM", **rest):
    """One prediction."""
    return ladder.Rung(variant=name, order=1.0, summary="", ms=ms, limit=limit, **rest)


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (8.0, "about 4.0 times slower than sequential (8 ms, 2 ms), because of uncoalesced"),
        (0.5, "about 4.0 times faster than sequential"),
        (2.9, "about as fast as sequential"),
    ],
)
def test_the_comparison_in_words(ms, words):
    (text,) = predicting.sentences(rung("my.cu", ms, "L1"), rung("sequential", 2.0), T4, 1 << 20)
    assert text.startswith("a model, not a measurement: on an NVIDIA T4 with n = 1,048,576 ")
    assert words in text
    assert text.endswith("sequential is limited by the bytes that it reads and writes")


def test_what_the_model_does_not_know_is_not_said(monkeypatch):
    """No time, another way of predicting, no rung at all, or no JSON."""
    theirs = rung("sequential", 2.0)
    assert predicting.sentences(rung("my.cu", None, failed="why"), theirs, T4, 1) == []
    monkeypatch.setattr(ladder, "predict", lambda *_: [theirs])
    lab = labs.get("reduce")

    def said(rungs):
        prediction = ladder.Prediction(
            gpu="", assumed=[], lab="reduce", case={}, size="1", rungs=rungs, notes=[]
        )
        data = records.text(ladder.Predictions(predictions=[prediction])).encode()
        mine = SimpleNamespace(lab=lab, predicted=lambda *_: data if rungs else b"{")
        return predicting.remarks(mine, lab.complete({}), T4, None)

    assert len(said([rung("my.cu", 8.0)])) == 1
    assert said([rung("my.cu", 8.0, compiled=False)]) == []
    assert said([theirs, theirs]) == []
    assert said([]) == []


def submission(tmp_path):
    """A right kernel in a sandbox."""
    path, lab = kernel(tmp_path, "reduce", "sequential"), labs.get("reduce")
    return Kernel(lab=lab, path=path, sandbox=sandbox.choose("auto"), device="cpu", label="my.cu")


def test_a_submission_is_counted_in_its_sandbox(tmp_path):
    with closing(submission(tmp_path)) as mine:
        mine.compile([mine.lab.complete({})])
        data = mine.predicted(["--n", "5000"], gpus.text(T4), TIMING_LIMITS)
    mine = predicting._read(data)
    assert mine.ms > 0
    assert mine.kernels[0].blocks == 20 + 1


def test_a_remark_is_no_points(tmp_path, monkeypatch):
    monkeypatch.setattr(predicting, "remarks", lambda *_: ["a model says so"])
    mine = submission(tmp_path)
    plan = cases.public(mine.lab, {}, mine.variant, quick=True)
    settings = Settings(seed=3, sanitize=False, timing=False, predict_on=T4)
    report = judge.check(mine.lab, mine, plan, mine.sandbox, settings)
    assert report.notes[-1] == "a model says so"
    assert report.points == report.max_points
    assert Cell("a model says so") in outputs._last_lines(report)


def test_a_report_has_the_variants_that_were_measured(monkeypatch):
    monkeypatch.setattr(nvcc, "compilers", lambda: iter(()))
    monkeypatch.setattr(type(labs.get("reduce").teaching), "bench_size", lambda *_: 5000)
    measured = document(table([row("sequential", 1.0), row("my.cu", 2.0)]))
    grid = predict(labs.get("reduce"), measured, "t4")
    assert [line[0] for line in grid.rows] == ["sequential"]
    assert "by a model" in grid.title


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "reduce", "--predict", "t5", "--kernel", __file__), "GPU 't5' is unknown"),
        (("report", "reduce", "--predict", "t5"), "GPU 't5' is unknown"),
        (("check", "reduce", "--predict", "t4", "--variant", "serial"), "is for --kernel"),
    ],
)
def test_mistakes(words, message):
    done = cudalab(*words, status=2)
    assert done.stdout == ""
    assert message in done.stderr
