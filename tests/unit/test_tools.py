"""tools/: what is stored under docs/results."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import pytest
from bench_documents import document, row, table

from cudalab.bench.document import as_json, load
from cudalab.checker.selftest import CHEATS
from tools import gpu_suite, results, selftest
from tools.studies import ladders, targets, tuned_cub
from tools.suites import __main__ as suites
from tools.suites import gpuverify, tables
from tools.suites.__main__ import REFUSED, STOPPED, error, verdict
from tools.suites.program import Program
from tools.suites.tables import judged_at

STORED = sorted(results.FOLDER.rglob("*.json"))


COMMANDS = ("measure", "programs", "sanitizers", "selftest", "suites")
STUDIES = ("accuracy", "counters", "ladders", "patterns", "repeats", "sass", "targets")


@pytest.mark.parametrize("name", [*COMMANDS, *(f"studies {name}" for name in STUDIES)])
def test_a_tool_without_a_command_describes_itself(name):
    words = [sys.executable, "-m", *f"tools.{name}".split()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=results.ROOT)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"python -m tools.{name} " in done.stderr


def test_the_studies_are_listed_with_what_each_is_for():
    words = [sys.executable, "-m", "tools.studies"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=results.ROOT)
    listed = [line.split(maxsplit=1) for line in done.stdout.splitlines()[4:]]
    folder = results.ROOT / "tools" / "studies"
    runnable = [
        path.stem for path in sorted(folder.glob("[a-z]*.py")) if "\ndef main(" in path.read_text()
    ]
    assert [name for name, _ in listed] == runnable
    assert {*STUDIES, "loops", "tiers"} < {*runnable}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def measured(tmp_path):
    """A file of bench with a line of the targets: a sum beside CUB."""
    cub = row("cub", 0.2, kind="baseline")
    path = tmp_path / "bench.json"
    sums = table([row("single_pass", 0.1), cub], n=1 << 16)
    path.write_text(as_json(document(sums)), encoding="utf-8")
    return path


def samples(found):
    """Every list of samples in a document."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from [value] if key in ladders.SAMPLES else samples(value)
    elif isinstance(found, list):
        for value in found:
            yield from samples(value)


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.relative_to(results.FOLDER)))
def test_statistics_are_stored_and_samples_are_not(path):
    assert not any(samples(results.read(path)))


def test_a_ladder_is_stored_without_samples(folder, measured):
    assert any(samples(results.read(measured)))
    ladders.store([load(measured)])
    path = folder / "bench" / "test-gpu.json"
    assert not any(samples(results.read(path)))
    (before,), (after,) = (map(ladders.line, load(p).tables) for p in (measured, path))
    assert before == after
    assert after[2:5] == ["`single_pass` 0.1", "`single_pass` 0.1", "1"]
    assert after[-1].startswith("2.00 (")


def test_a_target_is_stored_without_samples(folder, measured):
    targets.main("add", str(measured))
    stored = results.read(folder / "targets" / "test-gpu.json")
    assert not any(samples(stored))
    (kept,) = stored["tables"]
    assert kept["rows"][0]["statistics"] == asdict(load(measured).tables[0].rows[0].statistics)
    lines = list(targets.lines(stored))
    assert [line[:4] for line in lines] == [
        ["`reduce` sum, int32", "65,536", "`single_pass`", "2.00"]
    ]
    missing = targets.not_measured(stored)
    assert missing.startswith(
        "\nNot measured on this device: `reduce` sum, int32 (n = 128,000,000, "
    )
    assert "65,536" not in missing.partition(";")[0]


def test_a_wrong_peer_is_stored_and_named_and_not_compared_with(folder, tmp_path, capsys):
    peers = [
        row("cupy", 4.0, kind="baseline", notes=["CuPy 14.2.0: cuSOLVER's LU factors"]),
        row("cupy (TF32)", None, kind="baseline"),
    ]
    solutions = table([row("lu_graph", 2.0), *peers], lab="solve", n=8192, dtype="float32")
    solutions.dist = "random"
    path = tmp_path / "solve.json"
    path.write_text(as_json(document(solutions)), encoding="utf-8")
    targets.main("add", str(path))
    assert capsys.readouterr().out == "solve n=8,192 cupy (TF32): 1 of 4 elements differ\n"

    stored = results.read(folder / "targets" / "test-gpu.json")
    assert [each["status"] for each in stored["tables"][0]["rows"]] == ["ok", "ok", "WRONG"]
    (line,) = targets.lines(stored)
    assert line[3:] == [
        "2.00 (missed)",
        "2.3 times CuPy 14.2.0: cuSOLVER's LU factors",
        "2026-01-31, ``, driver 1.0, CUDA 13.0",
    ]
    wrong = "cupy (TF32): `solve` random, n = 8,192"
    assert targets.wrong_answers(stored) == f"\nWrong answers, which have no time: {wrong}.\n"


def test_an_interval_is_shown_unless_it_is_narrower_than_the_digits():
    assert targets.in_figures((1.234, 1.226, 1.239)) == "1.23 (1.23 to 1.24)"
    assert targets.in_figures((1.234, 1.232, 1.2349)) == "1.23"


@pytest.mark.parametrize(("status", "stopped"), [(0, False), (3, False), (1, True), (2, True)])
def test_only_a_bench_that_fails_stops_the_targets(monkeypatch, measured, status, stopped):
    def bench(command, **_):
        Path(command[command.index("--json") + 1]).write_bytes(measured.read_bytes())
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(targets.subprocess, "run", bench)
    with pytest.raises(SystemExit) if stopped else nullcontext():
        assert targets.measured(targets.TARGETS[0])["tables"][0]["lab"] == "reduce"


def test_the_last_runs_of_a_target_are_kept(folder, measured):
    for day in range(1, 6):
        run = results.read(measured)
        run["environment"]["date"] = f"2026-01-0{day}T12:00:00+00:00"
        measured.write_text(json.dumps(run), encoding="utf-8")
        targets.main("add", str(measured))
    stored = results.read(folder / "targets" / "test-gpu.json")
    assert [each["date"][:10] for each in stored["tables"]] == [
        f"2026-01-0{day}" for day in (3, 4, 5)
    ]


def test_a_line_for_each_row(tmp_path):
    path = tmp_path / "new" / "a.json"
    results.write_rows(path, {"device": "a GPU"}, [{"n": 1}, {"n": 2}], key="tables")
    assert path.read_text(encoding="utf-8") == (
        '{\n "device": "a GPU",\n "tables": [\n  {"n": 1},\n  {"n": 2}\n ]\n}\n'
    )
    assert results.read(path) == {"device": "a GPU", "tables": [{"n": 1}, {"n": 2}]}


def test_every_published_exploit_is_tried_or_has_a_reason():
    published = tomllib.loads((selftest.FOLDER / "published.toml").read_text())
    cheats = {path.stem for path in CHEATS.iterdir()}
    for trick in published["trick"]:
        assert trick["source"] in published["sources"]
        assert ("tried" in trick) != ("instead" in trick), trick["name"]
        assert cheats.issuperset(trick.get("tried", []))


def test_the_worst_verdict_is_shown():
    rows = [{"name": "a", "verdict": "rejected"}, {"name": "b", "verdict": "passed"}]
    assert selftest.worst(rows, ["a"]) == "rejected"
    assert selftest.worst(rows, ["a", "b"]) == "passed"
    assert not selftest.worst(rows, ["c"])  # not run on that device


def test_a_run_of_the_tests_is_stored_with_its_failures_and_its_end(tmp_path):
    code = "import time\ndef test_right(): time.sleep(0.1)\ndef test_wrong(): assert 0\n"
    (tmp_path / "test_a.py").write_text(code)
    words = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--durations", "1"]
    done = subprocess.run(
        [sys.executable, *words, "--durations-min", "0", "test_a.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    machine = {"device": "A GPU", "driver": "1.0", "date": "2026-01-31", "commit": "abc"}
    text = gpu_suite.stored(machine, done.returncode, done.stdout)
    assert text.startswith("A GPU, 1.0\n2026-01-31\ncommit abc\n\n$ pytest --device cuda -n ")
    *_, slow, failed, last = text.splitlines()
    assert "s call " in slow
    assert failed.startswith("FAILED test_a.py::test_wrong")
    assert last.startswith("1 failed, 1 passed in ")
    interrupted = gpu_suite.stored(machine, 2, "....  [ 28%]\n...  [ 41%]\n")
    assert interrupted.endswith("\n# Ended by its time limit after 41 %.\n")


def test_a_kernel_without_a_host_gets_one_that_launches_it():
    text = """//pass
__global__ void first(int *p, float x) {}
__global__ void __launch_bounds__(64) second(void (*f)(int, int)) {}
template <class T> __device__ void no_kernel(T) {}
"""
    made = gpuverify.with_host(text, "//--blockDim=[64,64] --gridDim=128 --no-inline")
    launches = [line.strip() for line in made.splitlines() if "<<<" in line]
    size = "<<<dim3(4), dim3(64, 16)>>>"
    assert [line.partition("(argument")[0] for line in launches] == [
        f"first{size}",
        f"second{size}",
    ]
    assert [line.count("argument<") for line in launches] == [2, 1]
    assert made.index('#include "kernel.cu"') < made.index("int main")


def test_a_suites_mistake_is_found_by_a_finding_of_its_kind():
    program = Program("racy", "race", ("racy.cu",))
    seen = [("uninitialised", False), ("race", True)]
    stored = verdict(program, [seen], {"compute_sanitizer": ""})
    assert (stored["found"], stored["notes"], stored["others"]) == ("", "race", "uninitialised")
    assert verdict(program, [seen, [("race", False)]], {})["found"] == "race"
    assert verdict(Program("fine", "right", ()), [seen], {})["found"] == "uninitialised"
    assert verdict(program, STOPPED, {})["truth"] == "race: out of time"


def test_a_program_that_its_limit_has_ended_is_not_taken_for_clean(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "LIMIT_S", 2)
    text = (
        "__global__ void k() {}\nint main() { k<<<1, 1>>>(); for (volatile int i = 0;;) i = 1; }\n"
    )
    (tmp_path / "endless.cu").write_text(text)
    program = Program("endless", "right", ("endless.cu",), folder=tmp_path)
    assert suites.findings_of(program, tmp_path / "report.json") == STOPPED


def test_each_mistake_that_is_not_reported_has_a_reason():
    reasons = tables.reasons(results.read_all("sanitize"))
    assert reasons.count("what was said is not stored") <= 3  # of older verdicts
    program = Program("old", "right", ("old.cu",))
    said = error("note: x\nError: no such call")
    stored = verdict(program, f"{REFUSED}: {said}", {})
    assert (stored["truth"], stored["refused"]) == ("right: refused", "no such call")


def test_each_suite_says_when_it_was_judged():
    rows = [
        ("2026-01-31", "abc"),
        ("2026-01-30", "def"),
        ("2026-01-31", "123"),
        ("2026-01-31", "abc"),
    ]
    suite = {"programs": [{"date": date, "commit": commit} for date, commit in rows]}
    said = "2026-01-30, commit `def`; 2026-01-31, commit `abc`, `123`"
    assert judged_at(suite) == said


def test_the_fastest_policy_of_cub_is_compared():
    policies = [[*tuned_cub.OWN, 680.0], [2, 127, 4, 593.2], [512, 19, 0, 705.8]]
    row = {"work": "scan", "n": 1 << 28, "variant": "ours", "us": 577.2, "policies": policies}
    shown = "`scan` 268,435,456 `ours` 577.2 680.0 593.2 2 warps, look-ahead, 127 items each 1.03"
    assert " ".join(tuned_cub.line(row)) == shown
    row["policies"] = policies[:1]
    assert tuned_cub.line(row)[-2:] == ["its own", "1.18"]
