"""`cudalab grade`: a class's submissions, killed, resumed, attacked; and its parts."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import documents
import pytest

from cudalab import labs
from cudalab.backends.trace import Finding, Place
from cudalab.checker import verdicts
from cudalab.checker.grading import batch, cluster, similar, store, summary, unpack
from cudalab.checker.grading.unpack import Entry
from cudalab.checker.sandbox import sandbox
from cudalab.checker.submit.skeleton import skeleton
from cudalab.errors import CudalabError, ExitCode, UsageError
from cudalab.microscope import sanitize

ROOT = Path(store.__file__).parents[3]
ATTACKS = ROOT / "tests" / "attacks" / "generate.py"
OPTIONS = ("--quick", "--no-time", "--no-sanitize", "--device", "cpu", "--kill-after", "3",
           "--memory", "600M", "--language", "any")  # fmt: skip
SUM = """
import struct, sys, time
data = sys.stdin.buffer.read()
(n,) = struct.unpack_from("<i", data)
time.sleep({sleep})
sys.stdout.buffer.write(struct.pack("<I", sum(struct.unpack_from(f"<{{n}}i", data, 4)) % 2**32))
"""


@pytest.fixture(scope="module")
def attacks():
    spec = importlib.util.spec_from_file_location("attacks", ATTACKS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def grade(folder, out, *options, wait=True):
    command = [sys.executable, "-m", "cudalab", "grade", folder, "--lab", "reduce", "--out", out]
    started = subprocess.Popen(
        [*map(str, command), *OPTIONS, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if not wait:
        return started
    said, errors = started.communicate(timeout=500)
    return started.returncode, said + errors


def results(out):
    with sqlite3.connect(out / "results.sqlite") as db:
        rows = db.execute("SELECT name, state, attempts, report FROM submissions").fetchall()
    return {row[0]: (row[1], row[2], json.loads(row[3]) if row[3] else None) for row in rows}


def simple(folder, count, sleep=0.0):
    folder.mkdir()
    for number in range(count):
        text = SUM.format(sleep=sleep)
        if number % 3 == 2:
            text = text.replace(") % 2**32", ") % 2**32 ^ 1")
        (folder / f"s{number:02d}.py").write_text(text)
    return {f"s{number:02d}": number % 3 != 2 for number in range(count)}


def test_attacks_and_right_ones_get_their_verdicts(tmp_path, attacks):
    """A part of the class that the documentation's figures come from, small enough for a test."""
    folder = tmp_path / "class"
    kinds = attacks.hand_ins("reduce", attacks.random.Random(1))
    wanted = {}
    for number, (name, file_name, text, verdict) in enumerate(kinds):
        slow = "sleeps" in name or "loop" in name or "broken" in name
        if name.startswith(("cheat", "wrong", "right-program", "right-sequential")) and not slow:
            folder.mkdir(exist_ok=True)
            attacks.write(folder, name, file_name, text, number)
            wanted[name] = verdict
    assert len(wanted) > 25
    code, said = grade(folder, tmp_path / "out")
    assert code == 0, said
    found = results(tmp_path / "out")
    got = {name: "pass" if found[name][2]["passed"] else "fail" for name in wanted}
    # What never computes again is only seen when times are taken; and what is open in other
    # sandboxes, bubblewrap keeps out.
    seen_through = {"cheat-only_once"}
    if sandbox.choose("auto").kind != "bwrap":
        seen_through |= {name for name, verdict in wanted.items() if verdict == "open"}
    expected = {name: "pass" if verdict == "pass" else "fail" for name, verdict in wanted.items()}
    assert {name for name in wanted if got[name] != expected[name]} <= seen_through


def test_killed_in_the_middle_nothing_is_lost_or_done_twice(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    wanted = simple(folder, 12, sleep=0.3)
    first = grade(folder, out, "--jobs", "2", wait=False)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (out / "results.sqlite").exists() and done_in(out) >= 3:
            break
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = results(out)
    finished = {name for name, row in before.items() if row[0] == store.DONE}
    cut_off = {name for name, row in before.items() if row[0] == store.RUNNING}
    assert 3 <= len(finished) < 12
    code, said = grade(folder, out)
    assert code == 0, said
    after = results(out)
    assert {name: row[2]["passed"] for name, row in after.items()} == wanted
    assert all(after[name] == before[name] for name in finished)
    again = {name for name, row in after.items() if row[1] > 1}
    assert again == cut_off
    assert len({row[2]["seed"] for row in after.values()}) == 1


def done_in(out):
    try:
        return sum(row[0] == store.DONE for row in results(out).values())
    except sqlite3.Error:
        return 0


def test_a_second_call_judges_what_is_new_only(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    simple(folder, 2)
    assert grade(folder, out)[0] == 0
    (folder / "late.py").write_text(SUM.format(sleep=0))
    assert grade(folder, out)[0] == 0
    found = results(out)
    assert len(found) == 3
    assert {row[1] for row in found.values()} == {1}
    code, said = grade(folder, out, "--strict")
    assert code == ExitCode.USAGE
    assert "other settings: --strict was not given, is given" in said


def test_what_is_handed_in_again_is_judged_again(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    simple(folder, 3)
    assert grade(folder, out)[0] == 0
    before = results(out)
    assert not before["s02"][2]["passed"]
    (folder / "s02.py").write_text(SUM.format(sleep=0))
    code, said = grade(folder, out)
    assert code == 0
    assert "judged again because they have changed: s02" in said
    after = results(out)
    assert after["s02"][2]["passed"]
    assert {name: row[1] for name, row in after.items()} == {"s00": 1, "s01": 1, "s02": 2}
    assert after["s02"][2]["seed"] == before["s02"][2]["seed"]


def test_a_submission_may_be_removed_before_it_is_judged(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    simple(folder, 2)
    with store.Store(out) as kept:
        kept.add(unpack.entries(folder))
        kept.begin("s00")
        kept.begin("s01")
    (folder / "s01.py").rename(tmp_path / "s01.py")
    with store.Store(out) as kept:
        kept.add(unpack.entries(folder))
        assert kept.waiting() == ["s00"]
        assert {row.name: row.state for row in kept.rows()}["s01"] == store.REMOVED
    (tmp_path / "s01.py").rename(folder / "s01.py")
    with store.Store(out) as kept:
        kept.add(unpack.entries(folder))
        assert kept.waiting() == ["s00", "s01"]


def test_a_removed_submission_is_no_failure_of_the_grader(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    simple(folder, 2, sleep=30)
    first = grade(folder, out, "--jobs", "1", "--kill-after", "60", wait=False)
    while not (out / "results.sqlite").exists() or "running" not in states(out):
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    (folder / "s00.py").write_text(SUM.format(sleep=0))
    (folder / "s01.py").unlink()
    code, said = grade(folder, out, "--kill-after", "60")
    assert code == 0, said
    assert "1 of 1 judged, 1 passed" in said
    assert "removed before they were judged: s01" in said


def states(out):
    try:
        return {row[0] for row in results(out).values()}
    except sqlite3.Error:
        return set()


def test_results_do_not_go_among_the_submissions(tmp_path):
    folder = tmp_path / "class"
    simple(folder, 1)
    for out in (folder, folder / "out"):
        code, said = grade(folder, out)
        assert code == ExitCode.USAGE
        assert "would take it for a submission" in said
    assert [path.name for path in folder.iterdir()] == ["s00.py"]


def test_summary(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    wanted = simple(folder, 3)
    (folder / "=evil.py").write_text("<script>1</script>")
    (folder / "empty").mkdir()
    assert grade(folder, out, "--json", tmp_path / "class.json")[0] == 0
    with (out / "results.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert {name: rows[name]["passed"] == "1" for name in wanted} == wanted
    assert rows["'=evil"]["points"] == "0"  # a formula, were it not for the apostrophe
    assert rows["empty"]["exit_code"] == "5"
    assert rows["s00"]["similar_to"] == "s01" or "s01" in rows["s00"]["similar_to"]
    assert {row["max_points"] for row in rows.values()} == {rows["s00"]["max_points"]}
    text = (out / "summary.html").read_text()
    assert "<svg" in text
    assert "<script>1" not in text
    report = documents.checked((out / "reports" / "s00.json").read_text(), "check")
    assert verdicts.from_json(report).passed
    whole = documents.checked((tmp_path / "class.json").read_text(), "grade")
    found = {one["name"]: one for one in whole["submissions"]}
    assert {name: found[name]["verdict"]["passed"] for name in wanted} == wanted
    assert found["s00"]["similar_to"]
    assert whole["passed"] == sum(wanted.values())


def test_a_race_is_named_by_its_line_and_speed_has_a_page_of_its_own():
    report = verdicts.Report(
        lab="reduce", submission="ben", kind="kernel", device="cpu", sandbox="none",
        sandbox_words="", seed=1, plan="", version="0",
    )  # fmt: skip
    finding = sanitize.finding_row(Finding("race", "k", Place("ben.cu", 15), sanitize.NOBODY), "")
    stage = verdicts.Stage("sanitize", verdicts.Status.FAILED, why=verdicts.Why.SANITIZER)
    stage.findings = [finding]
    raced = replace(report, stages=[stage])
    assert summary.cause(raced) == f"{finding.title}, ben.cu:15"
    unseen = verdicts.Stage("sanitize", verdicts.Status.FAILED, why=verdicts.Why.SANITIZER)
    unseen.says = "it ended before the sanitizer could report"
    assert summary.cause(replace(report, stages=[unseen])) == unseen.says
    for why, said in ((verdicts.Why.CONTRACT, "my.cu: no kernel"), (verdicts.Why.WRONG, "")):
        test = verdicts.Result(
            name="one", size="1", dist="", seed=1, status=verdicts.Status.FAILED, why=why,
            says="my.cu: no kernel",
        )  # fmt: skip
        assert summary.cause(replace(report, tests=[test])) == said
    passed = verdicts.Result(
        name="one", size="1", dist="", seed=1, status=verdicts.Status.PASSED, points=1.0
    )
    timed = {
        name: replace(report, tests=[passed], speed=speed(ratio))
        for name, ratio in (("slow", 3.0), ("fast", 0.5), ("<b>", 1.0))
    }
    page = summary.ranking("by speed", {**timed, "ben": raced})
    assert page.index("fast") < page.index("&lt;b&gt;") < page.index("slow")
    assert "ben" not in page
    assert summary.ranking("by speed", {"ben": raced}) == ""


def speed(ratio):
    return verdicts.SpeedResult(
        reference="tree", size="1 Mi", ms=ratio, reference_ms=1.0, ratio=ratio, low=ratio,
        high=ratio, points=0.0, max_points=0.0, full=1.2, zero=5.0, rounds=5, what="kernels",
    )  # fmt: skip


def test_one_grader_at_a_time(tmp_path):
    with store.Store(tmp_path), pytest.raises(CudalabError, match="another"):
        store.Store(tmp_path)
    with store.Store(tmp_path):
        pass


def test_no_submissions(tmp_path):
    (tmp_path / "class").mkdir()
    assert grade(tmp_path / "class", tmp_path / "out")[0] == ExitCode.USAGE


# Dask --------------------------------------------------------------------------------------------


def test_a_lost_worker_loses_nothing(tmp_path):
    """A worker is killed while it judges; others take its submissions."""
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    folder, out = tmp_path / "class", tmp_path / "out"
    wanted = simple(folder, 8, sleep=0.4)
    running = grade(folder, out, "--scheduler", "local:2", wait=False)
    deadline, killed = time.monotonic() + 120, None
    while time.monotonic() < deadline and killed is None and running.poll() is None:
        time.sleep(0.1)
        if (out / "results.sqlite").exists() and 1 <= done_in(out) <= 5:
            workers = [pid for pid in children(running.pid) if is_worker(pid)]
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                killed = workers[0]
    said, errors = running.communicate(timeout=300)
    assert killed is not None
    assert running.returncode == 0, said + errors
    found = results(out)
    assert {name: row[2]["passed"] for name, row in found.items()} == wanted


def children(pid):
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found += [int(path.name), *children(int(path.name))]
    return found


def is_worker(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"spawn_main" in b" ".join(words) and b"resource_tracker" not in b" ".join(words)


def test_each_worker_has_a_gpu_of_its_own(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")
    for workers, shown in [("local", ["3", "GPU-5"]), ("local:3", ["3", "3", "GPU-5"])]:
        with cluster.connected(workers) as client:
            found = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
        assert sorted(found.values()) == shown


def test_no_cluster_is_an_error(tmp_path):
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    simple(tmp_path / "class", 1)
    code, said = grade(tmp_path / "class", tmp_path / "out", "--scheduler", "tcp://127.0.0.1:9")
    assert code == ExitCode.ERROR
    assert "no cluster at" in said


# Archives ----------------------------------------------------------------------------------------


def test_every_form_is_opened(tmp_path):
    (tmp_path / "in").mkdir()
    inside = tmp_path / "in"
    (inside / "a.cu").write_text("a")
    (inside / "b").mkdir()
    (inside / "b" / "b.cu").write_text("b")
    with zipfile.ZipFile(inside / "c.zip", "w") as archive:
        archive.writestr("c/c.cu", "c")
    for ending, mode in (("tar", "w"), ("tar.gz", "w:gz"), ("tar.xz", "w:xz")):
        with tarfile.open(inside / f"d-{ending}.{ending}", mode) as archive:
            archive.add(inside / "a.cu", "d.cu")
    entries = unpack.entries(inside)
    assert sorted(entry.name for entry in entries) == [
        "a",
        "b",
        "c",
        "d-tar",
        "d-tar.gz",
        "d-tar.xz",
    ]
    for number, entry in enumerate(entries):
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        placed = unpack.place(entry, folder)
        assert [path.name for path in placed.glob("*.cu")] == [f"{entry.name[0]}.cu"]


def test_one_name_for_two_submissions(tmp_path):
    for name in ("a.cu", "a.zip", "a.tar"):
        (tmp_path / name).write_text("")
    assert names_in(tmp_path) == ["a.cu", "a.tar", "a.zip"]


def test_a_name_does_not_depend_on_others(tmp_path):
    """But for those that would have the same one."""
    (tmp_path / "bob.cu").write_text("")
    assert names_in(tmp_path) == ["bob"]
    (tmp_path / "bob").mkdir()
    assert names_in(tmp_path) == ["bob", "bob.cu"]
    (tmp_path / "aaa.cu").write_text("")
    assert names_in(tmp_path) == ["aaa", "bob", "bob.cu"]
    (tmp_path / "bob.cu.zip").write_text("")
    assert names_in(tmp_path) == ["aaa", "bob", "bob.cu", "bob.cu.zip"]


def names_in(folder):
    return sorted(entry.name for entry in unpack.entries(folder))


def test_a_digest_changes_with_the_submission(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "my.cu").write_text("1")
    one = unpack.digest(tmp_path / "a")
    assert one == unpack.digest(tmp_path / "a")
    (tmp_path / "a" / "my.cu").write_text("2")
    two = unpack.digest(tmp_path / "a")
    (tmp_path / "a" / "my.cu").rename(tmp_path / "a" / "your.cu")
    assert len({one, two, unpack.digest(tmp_path / "a")}) == 3


def a_tar(path, *members):
    with tarfile.open(path, "w") as archive:
        for name, kind, target in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = target
            data = b"evil"
            info.size = len(data) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(data))
    return Entry("x", path)


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_archives_stay_inside(tmp_path, name):
    folder = tmp_path / "box"
    folder.mkdir()
    entry = a_tar(tmp_path / "x.tar", (name, tarfile.REGTYPE, ""))
    with pytest.raises(unpack.BadSubmissionError, match="outside"):
        unpack.place(entry, folder)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(name, "evil")
    (tmp_path / "box2").mkdir()
    with suppress(unpack.BadSubmissionError):  # zipfile drops a root, then nothing is outside
        unpack.place(Entry("x", tmp_path / "x.zip"), tmp_path / "box2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box", "box2", "x.tar", "x.zip"]


def test_links_and_devices_are_left_out(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    entry = a_tar(
        tmp_path / "x.tar",
        ("link", tarfile.SYMTYPE, "/etc/passwd"),
        ("hard", tarfile.LNKTYPE, "/etc/passwd"),
        ("device", tarfile.CHRTYPE, ""),
        ("pipe", tarfile.FIFOTYPE, ""),
        ("link/through", tarfile.REGTYPE, ""),
    )
    unpack.place(entry, folder)
    assert [path.name for path in folder.rglob("*")] == ["link", "through"]
    assert (folder / "link").is_dir()
    assert not (folder / "link").is_symlink()


def test_links_in_a_folder_are_left_out(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.cu").symlink_to("/etc/passwd")
    (tmp_path / "in" / "my.cu").write_text("x")
    (tmp_path / "out").mkdir()
    placed = unpack.place(Entry("in", tmp_path / "in"), tmp_path / "out")
    assert [path.name for path in placed.iterdir()] == ["my.cu"]
    (tmp_path / "top.cu").symlink_to("/etc/passwd")
    with pytest.raises(unpack.BadSubmissionError, match="link"):
        unpack.place(Entry("top", tmp_path / "top.cu"), tmp_path / "out")


def test_bombs_are_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(unpack, "MAX_FILES", 50)
    with zipfile.ZipFile(tmp_path / "big.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50 << 20))
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(100):
            archive.writestr(f"f{number}", "")
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 no archive")
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8b no archive")
    for name in ("big.zip", "many.zip", "broken.zip", "broken.tar.gz"):
        folder = tmp_path / f"out-{name}"
        folder.mkdir()
        with pytest.raises(unpack.BadSubmissionError):
            unpack.place(Entry(name, tmp_path / name), folder)


# Parts -------------------------------------------------------------------------------------------


def test_times_are_taken_alone():
    turns, inside, seen = batch.Turns(), [], []
    lock = threading.Lock()

    def work(kind):
        with getattr(turns, kind)():
            with lock:
                inside.append(kind)
                seen.append(tuple(inside))
            time.sleep(0.01)
            with lock:
                inside.remove(kind)

    threads = [
        threading.Thread(target=work, args=("alone" if n % 4 == 0 else "together",))
        for n in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(together == ("alone",) for together in seen if "alone" in together)
    assert max(map(len, seen)) > 1


def judged(seed):
    """The report of a submission that has passed one test."""
    report = verdicts.Report(
        lab="reduce",
        submission="a",
        kind="kernel",
        device="cpu",
        sandbox="bwrap",
        sandbox_words="",
        seed=seed,
        plan="public",
    )
    passed = verdicts.Status.PASSED
    report.tests = [verdicts.Result(name="n", size="1", dist="uniform", seed=seed, status=passed)]
    return report


def test_a_result_is_stored_once(tmp_path):
    with store.Store(tmp_path) as kept:
        kept.add([Entry("a", Path("a.cu"))])
        kept.begin("a")
        report = judged(seed=1)
        kept.finish("a", report, [3, 1])
        with pytest.raises(AssertionError, match="twice"):
            kept.finish("a", judged(seed=2), [])
        (row,) = kept.rows()
        assert (row.state, row.attempts, row.report) == (store.DONE, 1, report)
        assert row.prints == {1, 3}
        kept.add([Entry("a", Path("a.cu"))])
        assert kept.waiting() == []


def test_what_the_grader_failed_at_is_tried_again(tmp_path):
    with store.Store(tmp_path) as kept:
        kept.add([Entry("a", Path("a.cu"))])
        kept.begin("a")

        def fail():
            raise OSError("no space left")

        batch.take(kept, "a", fail)
        (row,) = kept.rows()
        assert row.state == store.BROKEN
        assert "no space left" in row.problem
        kept.add([Entry("a", Path("a.cu"))])
        assert kept.waiting() == ["a"]


def test_settings_stay(tmp_path):
    with store.Store(tmp_path) as kept:
        assert kept.settle({"lab": "scan", "seed": 1})["seed"] == 1
        assert kept.settle({"lab": "scan", "seed": 2})["seed"] == 1
        with pytest.raises(UsageError, match="lab"):
            kept.settle({"lab": "reduce", "seed": 1})


KERNEL = (ROOT / "kernels" / "reduce" / "sequential.cu").read_text()


def test_copies_are_found():
    renamed = KERNEL.replace("values", "shared_items").replace("tid", "thread_number")
    reformatted = renamed.replace("    ", "\t").replace("//", "// my own comment: ")
    other = (ROOT / "kernels" / "scan" / "blelloch.cu").read_text()
    prints = {
        "one": similar.fingerprints(KERNEL),
        "two": similar.fingerprints(reformatted),
        "three": similar.fingerprints(other),
    }
    (pair,) = similar.pairs(prints, [])
    assert (pair.one, pair.two) == ("one", "two")
    assert pair.share > 0.95


def test_equal_bytes_are_found_however_many_have_them(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "out"
    folder.mkdir()
    wrong = KERNEL.replace("i < n ? load", "i < n - 1 ? load")
    empty = skeleton(labs.get("reduce"), "my.cu")
    assert len(similar.fingerprints(empty)) > 0
    for name, text in (("a", wrong), ("b", wrong), ("c", wrong), ("d", empty), ("e", empty)):
        (folder / f"{name}.cu").write_text(text)
    code, said = grade(folder, out)
    assert code == 0, said
    assert "3 pairs (nearly) identical" in said
    with (out / "results.csv").open() as file:
        similar_to = {row["name"]: row["similar_to"] for row in csv.DictReader(file)}
    assert similar_to == {"a": "b c", "b": "a c", "c": "a b", "d": "", "e": ""}


def test_what_everybody_was_given_is_no_copy():
    prints = {name: similar.fingerprints(KERNEL) for name in ("one", "two")}
    assert similar.pairs(prints, [similar.fingerprints(KERNEL)]) == []


def test_formulas_are_defused():
    for text in ("=1+1", "@SUM(A1)", "-2", "+3", "\tx"):
        assert summary._cell(text).startswith("'")
    assert summary._cell("alice") == "alice"
