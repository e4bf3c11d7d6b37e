"""A full disk: the machine's fault, and never a kernel's."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import command
import pytest
from instrumented import forget_compiler

from cudalab import labs
from cudalab.backends.cpu import kernel_runtime
from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cuda import nvcc
from cudalab.checker import cases, judge
from cudalab.checker.options import Settings
from cudalab.checker.sandbox import sandbox
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.submit import kernel as kernels
from cudalab.checker.submit import reports
from cudalab.checker.submit.foreign import CompileFailure
from cudalab.checker.submit.kernel import Kernel
from cudalab.checker.submit.program import raise_reported, unfinished
from cudalab.checker.submit.submission import Trial
from cudalab.checker.verdicts import Status, Why
from cudalab.errors import ExitCode, ToolchainError
from cudalab.language import source
from cudalab.program.files import File
from cudalab.program.messages import explain
from cudalab.system.cache import cache_dir, disk_full

ROOT = Path(labs.__file__).parents[2]
ASSEMBLER = """ccX.s: Assembler messages:
ccX.s: Fatal error: can't write 20 bytes to section .rodata of k.o: 'No space left on device'
ccX.s: Fatal error: k.o: No such file or directory
"""
MESSAGES = [
    ASSEMBLER,
    "my.cu:6: fatal error: error writing to ccX.s: No space left on device\n    k<<<1, 1>>>();",
    "warning(zcu): unable to write cached ZIR code to /c/zig/z/5bc6: NoSpaceLeft\nerror: no more",
    "/usr/bin/ld: final link failed: Disk quota exceeded",
    str(OSError(28, "No space left on device", "build/source.cpp")),
]


@pytest.fixture
def cache_in(tmp_path, monkeypatch):
    """A cache and a compiler for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_dir.cache_clear()
    forget_compiler()
    yield tmp_path
    cache_dir.cache_clear()
    forget_compiler()


def a_compiler(folder, messages, fails_for="."):
    """g++, but for sources that contain `fails_for`: there it says `messages` and fails."""
    path = folder / "cc"
    works = f'grep -sqe \'{fails_for}\' -- "$@" || exec g++ "$@"'
    path.write_text(f"#!/bin/sh\n{works}\ncat >&2 <<'END'\n{messages}\nEND\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def cudalab(*args, **env):
    return command.cudalab(*args, text=True, env={**os.environ, "COLUMNS": "200", **env})


@contextmanager
def full_disk():
    with Path("/dev/full").open("wb") as file:
        yield file


@pytest.mark.parametrize("messages", MESSAGES)
def test_messages_of_a_full_disk(messages):
    for error in (
        disk_full(messages),
        nvcc.rejection("my.cu", messages),
        explain(messages, [File("my.cu", "my.cu", "\n" * 9)]),
    ):
        assert type(error) is ToolchainError
        assert error.exit_code == ExitCode.ERROR
        assert "XDG_CACHE_HOME" in error.hint


def test_messages_about_a_kernel():
    assert disk_full('my.cu:3:2: error: #error "No space left on device" is what I fear') is None


def test_a_cache_without_space_is_replaced(cache_in, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full_disk())
    folder = cache_dir("cpu")
    assert not folder.is_relative_to(cache_in)
    assert folder.parts[-2:] == ("cudalab", "cpu")  # what a worker gets as its XDG_CACHE_HOME
    assert folder.is_dir()
    assert "no cache in" in capsys.readouterr().err


def test_a_relative_cache_is_ignored(tmp_path, monkeypatch):
    """The XDG base directory specification says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "rel")
    cache_dir.cache_clear()
    assert cache_dir("cpu") == tmp_path / "home" / ".cache" / "cudalab" / "cpu"
    cache_dir.cache_clear()
    assert not Path("rel").exists()


def test_the_runtime_does_not_compile(cache_in, monkeypatch):
    monkeypatch.setenv("CXX", a_compiler(cache_in, "runtime.cpp:1: error: what is this?"))
    with pytest.raises(ToolchainError, match="own runtime does not compile"):
        kernel_runtime.runtime_library()


def test_a_kernel_finds_no_space(cache_in, monkeypatch):
    monkeypatch.setenv("CXX", a_compiler(cache_in, ASSEMBLER, "my.cu"))
    kernel = cache_in / "my.cu"
    kernel.write_text('extern "C" __global__ void set(int *out) { *out = 1; }\n')
    with CpuDevice(1) as device, pytest.raises(ToolchainError, match="no space left"):
        device.compile(source.load(kernel, "my.cu"), {})


def test_a_submission_is_judged_when_there_is_space_again(cache_in):
    """With a compiler that fails, then with g++: the same submission, the same results."""
    folder = cache_in / "class"
    folder.mkdir()
    shutil.copy(ROOT / "kernels" / "reduce" / "sequential.cu", folder / "my.cu")
    words = ("--quick", "--no-time", "--no-sanitize", "--device", "cpu")
    full = {"CXX": a_compiler(cache_in, ASSEMBLER)}
    checked = cudalab("check", "reduce", "--kernel", folder / "my.cu", *words, **full)
    assert checked.returncode == ExitCode.ERROR
    assert "No space left on device" in checked.stdout
    grade = ("grade", folder, "--lab", "reduce", "--out", cache_in / "out", *words)
    first = cudalab(*grade, **full)
    assert first.returncode == ExitCode.ERROR
    assert "not judged: my" in first.stdout
    second = cudalab(*grade)
    assert second.returncode == ExitCode.OK, second.stdout
    assert "1 of 1 judged, 1 passed" in second.stdout


@pytest.fixture
def kernel():
    box, path = sandbox.choose("none"), ROOT / "kernels" / "reduce" / "sequential.cu"
    return Kernel(lab=labs.get("reduce"), path=path, sandbox=box, device="cpu", label="my.cu")


def test_what_the_checker_cannot_write_is_its_own_fault(kernel, monkeypatch):
    def write(_paths, _folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernels.views, "copy_sources", write)
    plan = cases.public(kernel.lab, {}, kernel.variant, quick=True)
    report = judge.check(kernel.lab, kernel, plan, kernel.sandbox, Settings(1))
    assert report.exit_code == ExitCode.ERROR
    assert report.stages[-1].status is Status.BROKEN
    assert "No space left on device" in report.stages[-1].details[0]


def test_a_disk_that_fills_up_while_something_runs_is_not_its_fault(kernel, tmp_path, monkeypatch):
    path = tmp_path / reports.BUILT
    path.write_text('{"error": "ToolchainError", "message": "full"}')
    with pytest.raises(CompileFailure) as raised:
        raise_reported(path, tmp_path)
    assert raised.value.why is Why.GRADER
    assert unfinished(Outcome(1), "").why is Why.GRADER
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    trial = Trial({}, path, Limits())
    reply = reports.Reply(status=1, loaded=True, peak_bytes=0)
    assert kernel._attempt_of(tmp_path, Outcome(1), reply, trial).why is Why.CRASH
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(OSError, match=full.strerror):
        kernel._attempt_of(tmp_path, Outcome(1), reply, trial)
    with kernel.sandbox.box() as box, pytest.raises(OSError, match=full.strerror):
        kernel.sandbox.capture(["true"], box, Limits())
