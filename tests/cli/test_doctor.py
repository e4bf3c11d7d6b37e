"""`cudalab doctor` on machines that lack one thing each."""

from __future__ import annotations

import json
import os
import re
from types import SimpleNamespace

import command
import pytest

from cudalab.backends.cpu.compiler import toolchain
from cudalab.checker import doctor
from cudalab.errors import NoDeviceError

COMMENT = re.compile(r" #|, or ")  # a line to type is nothing but that


def ran(*words, columns="", **env):
    env = {**os.environ, "COLUMNS": columns, **env}
    return command.cudalab("doctor", *words, text=True, env=env)


def by_name(rows):
    return {row.name: row for row in rows}


def test_every_row_has_a_cure_or_is_ok():
    done = ran("--json", "-")
    document = json.loads(done.stdout)
    assert (done.returncode == 0) is document["usable"] is True
    for row in document["checks"]:
        assert row["ok"] == (not row["cure"] and not row["advice"]), row
        assert not COMMENT.search(row["cure"]), row
    assert {row["part"] for row in document["checks"]} == {
        "machine", "CPU device", "checker", "GPU",
    }  # fmt: skip


def test_a_terminal_gets_lines_that_fit_and_a_pipe_whole_ones():
    wide, narrow = ran(), ran(columns="60")
    shown = [line for line in narrow.stdout.splitlines() if "fix: sudo" not in line]
    long_words = [line for line in shown if len(line) > 60 and " " in line.strip()]
    assert not long_words
    assert max(map(len, wide.stdout.splitlines())) > 80


def test_a_machine_without_a_compiler_cannot_be_used():
    done = ran(CXX="no-such-compiler")
    assert done.returncode == 4
    assert "MISSING  compiler: no such compiler: no-such-compiler" in done.stdout
    assert "         fix: unset CXX\n              or set it to g++ or clang++\n" in done.stdout


def test_a_compiler_that_compiles_nothing_is_missing(tmp_path):
    """It is there, and has a version: only trying it shows that it is of no use."""
    fake = tmp_path / "fake-g++"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo fake 1.0 && exit 0\nexit 1\n')
    fake.chmod(0o755)
    done = ran(CXX=str(fake), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 4
    assert "MISSING  compiler" in done.stdout


def test_a_cache_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.touch()
    done = ran(XDG_CACHE_HOME=str(file))
    assert done.returncode == 0
    assert f"no       cache: {file}/cudalab cannot be written to" in done.stdout
    line = "         fix: export XDG_CACHE_HOME=DIR\n"
    assert f"{line}              DIR is a folder that you can write to\n" in done.stdout


def test_little_memory_and_space(monkeypatch):
    little = SimpleNamespace(free=1 << 20)
    monkeypatch.setattr(doctor.machine, "available_memory", lambda: 1 << 20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: little)
    rows = by_name(doctor._rows("machine", doctor._room()))
    assert not rows["memory"].ok
    assert rows["disk of TMPDIR"].cure == "export TMPDIR=DIR"
    assert rows["disk of TMPDIR"].advice == "DIR is a folder where there is more space"
    assert rows["disk of the cache"].mark == "no"  # some commands still work


@pytest.mark.parametrize(
    ("bwrap", "cure"),
    [(None, "sudo apt install bubblewrap"), ("/usr/bin/bwrap", None)],
)
def test_no_sandbox_has_its_reason(monkeypatch, bwrap, cure):
    monkeypatch.setattr(doctor.shutil, "which", lambda _: bwrap)
    monkeypatch.setattr(doctor.sandbox, "_bubblewrap", lambda: "namespaces are not allowed")
    monkeypatch.setattr(doctor.sandbox, "_other_users", lambda: "only root can")
    row = doctor._sandbox()
    assert not row.ok
    assert "bwrap: namespaces are not allowed; user: only root can" in row.message
    assert "cudalab doctor" not in row.message
    assert row.cure == cure if cure else row.cure != "sudo apt install bubblewrap"


def test_a_gpu_that_is_absent_does_not_make_a_machine_useless(monkeypatch):
    gone = doctor.why.Check("driver", "there is none", advice="take a machine with a GPU")
    monkeypatch.setattr(doctor.why, "checks", lambda: iter([gone]))
    row = by_name(doctor.rows())["driver"]
    assert (row.mark, row.needed, row.cure, row.advice) == ("no", False, "", gone.advice)


def test_a_missing_compiler_points_here(monkeypatch):
    monkeypatch.setattr(toolchain.shutil, "which", lambda *_: None)
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(NoDeviceError) as caught:
        toolchain.find_compiler.__wrapped__()
    assert "cudalab doctor" in caught.value.hint
