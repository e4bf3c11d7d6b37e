"""`cudalab learn` in a pipe and in a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import command
import pytest

from cudalab import labs
from cudalab.cli.work import learn as cli_learn
from cudalab.errors import UsageError
from cudalab.learn.path import NAME, Progress, find, steps
from cudalab.watch.changes import Version

ROOT = Path(labs.__file__).parents[2]
END_S = 90.0


def learn(folder, *words, **env):
    return command.cudalab("learn", *words, cwd=folder, text=True, env={**os.environ, **env})


def test_in_a_pipe_it_prints_the_task_and_one_verdict(tmp_path):
    done = learn(tmp_path, COLUMNS="")
    assert done.returncode == 3, done.stderr
    assert "Step 1 of 24: " in done.stdout
    assert "wrong answer" in done.stdout
    assert " ".join(steps()[0].text.task.split("\n\n")[0].split()) in done.stdout  # a whole line
    file = tmp_path / "cudalab-learn" / "01-first-kernel.cu"
    assert file.read_text() == steps()[0].start

    file.write_text(steps()[0].solution)
    done = learn(tmp_path)
    assert done.returncode == 0
    assert "Solved." in done.stdout
    assert "[x]  1 transpose" in learn(tmp_path, "--list").stdout
    assert "done 01-first-kernel" in (tmp_path / "cudalab-learn" / NAME).read_text()
    assert "Step 2 of 24" in learn(tmp_path, "--hints", "0").stdout  # it goes on


def test_hints_and_the_answer(tmp_path):
    done = learn(tmp_path, "no-conflicts", "--hints", "2")
    assert "Hint 2 of 3" in done.stdout
    wrapped = learn(tmp_path, "no-conflicts", "--hints", "3", COLUMNS="60").stdout
    assert max(map(len, wrapped.splitlines())) <= 60
    assert "Hint 3 of 3" not in done.stdout
    assert learn(tmp_path, "6", "--solution").stdout == find("6").solution
    assert learn(tmp_path, "no-conflict").returncode == 2


def test_progress_is_a_text_that_one_may_edit(tmp_path):
    assert Progress.read(tmp_path).next(steps()) is steps()[0]
    (tmp_path / NAME).write_text("a word\ndone 01-first-kernel\n\nskipped 02-coalescing\n")
    progress = Progress.read(tmp_path)
    assert progress.next(steps()) is steps()[2]
    progress.mark(steps()[0], "skipped")
    assert Progress.read(tmp_path).marks["01-first-kernel"] == "done"  # it stays done
    for step in steps()[2:]:
        progress.mark(step, "done")
    assert progress.next(steps()) is steps()[1]  # what was skipped comes at the end
    progress.mark(steps()[1], "done")
    assert progress.next(steps()) is None


def test_a_step_that_is_not_there():
    with pytest.raises(UsageError, match="no such step") as caught:
        find("99")
    assert caught.value.hint == f"they are numbered from 1 to {len(steps())}"
    with pytest.raises(UsageError, match="did you mean 09-shuffles"):
        find("shufles")


def test_keys_in_a_terminal(tmp_path):
    """A verdict at the start, a hint, another verdict on a save, the next step, and away."""
    ours, theirs = pty.openpty()
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "cudalab", "learn"], cwd=tmp_path, stdin=theirs, stdout=theirs,
        stderr=theirs, env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "80", "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)

    def until(expected):
        text, deadline = "", time.monotonic() + END_S
        while expected not in text:
            assert time.monotonic() < deadline, text
            if select.select([ours], [], [], 1)[0]:
                text += os.read(ours, 65536).decode(errors="replace")
        return text

    try:
        until("wrong answer")
        os.write(ours, b"h")
        until("Hint 1 of 3")
        (tmp_path / "cudalab-learn" / "01-first-kernel.cu").write_text(steps()[0].solution)
        until("Solved.")
        os.write(ours, b"n")
        until("Step 2 of 24")
        os.write(ours, b"q")
        until("Until next time")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_step_that_is_solved_without_another_fact_repeats_its_verdict(tmp_path, capsys):
    """Step 4 asks for fewer launches: the kernel was right before."""
    step = find("tree")
    lesson = cli_learn.Lesson(step, Progress(tmp_path), None, 5.0)
    versions = [
        Version("8 of 8 tests", (), right=True, observed=True, exit_code=0, counts=counts)
        for counts in ({"launches": 12.0}, {"launches": 2.0})
    ]
    lesson.watcher = SimpleNamespace(judge=lambda: versions.pop(0))
    assert not lesson.judge(stamp=False)
    assert "launches: 12" in capsys.readouterr().out
    assert lesson.judge(stamp=False)
    said = capsys.readouterr().out
    assert "still 8 of 8 tests" in said
    assert "no change" not in said
