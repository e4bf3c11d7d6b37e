"""Compilers side by side: no more at once than processors, and nothing that one says is lost."""

from __future__ import annotations

import pytest

from cudalab.backends.cpu.compiler import commands, toolchain
from cudalab.errors import NoDeviceError


def test_no_more_compilers_run_than_there_are_processors(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "usable_cores", lambda: 2)
    # Each has a file while it runs, and leaves a mark if it sees more than one other.
    script = "touch $0; sleep 0.05; [ $(ls | wc -l) -le 2 ] || touch ../crowded; rm $0; exit 1"
    (tmp_path / "running").mkdir()
    monkeypatch.chdir(tmp_path / "running")
    said = commands.run_all([["sh", "-c", script, f"{i}"] for i in range(7)])
    assert said.count("failed without a message") == 7
    assert not (tmp_path / "crowded").exists()


def test_the_messages_of_those_that_fail_are_whole():
    long = 1 << 17  # more than a pipe holds
    each = [
        ["sh", "-c", f"head -c {long} /dev/zero | tr '\\0' a; printf '\\377'; exit 1"],
        ["sh", "-c", "echo a warning; exit 0"],
        ["sh", "-c", "echo wrong >&2; exit 3"],
    ]
    said = commands.run_all(each)
    assert said == "a" * long + "\ufffd" + "wrong\n"  # in the order of the commands


def test_a_compiler_that_cannot_be_started_is_named(tmp_path):
    with pytest.raises(NoDeviceError, match="missing cannot be started: No such file"):
        commands.run_all([[str(tmp_path / "missing")]])


def test_zig_s_library_is_compiled_once_and_only_for_programs_that_may_need_it(
    monkeypatch, tmp_path
):
    """For `check`, which compiles each program with a cache of its own."""
    archive, calls, program = tmp_path / "libc++.a", tmp_path / "calls", tmp_path / "zig"
    archive.write_bytes(b"!<arch>\n")
    program.write_text(f"#!/bin/sh\necho >> {calls}\necho lld a.o {archive} -o a >&2\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(toolchain, "cache_dir", lambda _: tmp_path)
    zig = toolchain.Zig("zig c++", (str(program), "c++"), "a compiler")
    assert zig.libraries('int main() { puts("no C++"); }') == ()
    for text in ("std::vector<int> v;", "using namespace std;", "int *x = new int;"):
        (kept,) = zig.libraries(text)
        assert kept.read_bytes() == archive.read_bytes()
        assert kept != archive
    assert calls.read_text() == "\n"
    other = toolchain.Zig("zig c++", (str(program), "c++"), "another compiler")
    assert other.libraries("throw 1;") != [kept]


def test_how_many_have_finished_is_told():
    told = []
    commands.Compilers([["true"]] * 3).finish(lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
