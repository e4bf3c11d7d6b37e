"""A full disk: the machine's fault, and never a kernel's."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from instrumented import forget_compiler

from cudalab import source
from cudalab.backends import nvcc
from cudalab.backends.cpu import CpuBackend, compiler
from cudalab.cache import cache_dir, disk_full
from cudalab.errors import ExitCode, ToolchainError
from cudalab.program.files import File
from cudalab.program.messages import explain

ASSEMBLER = """ccX.s: Assembler messages:
ccX.s: Fatal error: can't write 20 bytes to section .rodata of k.o: 'No space left on device'
ccX.s: Fatal error: k.o: No such file or directory
"""
MESSAGES = [
    ASSEMBLER,
    "my.cu:6: fatal error: error writing to ccX.s: No space left on device\n    k<<<1, 1>>>();",
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


def test_the_runtime_does_not_compile(cache_in, monkeypatch):
    monkeypatch.setenv("CXX", a_compiler(cache_in, "runtime.cpp:1: error: what is this?"))
    with pytest.raises(ToolchainError, match="own runtime does not compile"):
        compiler.runtime_library()


def test_a_kernel_finds_no_space(cache_in, monkeypatch):
    monkeypatch.setenv("CXX", a_compiler(cache_in, ASSEMBLER, "my.cu"))
    kernel = cache_in / "my.cu"
    kernel.write_text('extern "C" __global__ void set(int *out) { *out = 1; }\n')
    with CpuBackend(1) as device, pytest.raises(ToolchainError, match="no space left"):
        device.compile(source.load(kernel, "my.cu"), {})
