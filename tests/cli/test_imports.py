"""What is imported when: a command must not wait for modules that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = """
import sys
from cudalab.cli.app import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
# Slow to import, and needed by other commands, on other devices or for what is not cached yet.
OTHERS = {"rich", "pygments", "matplotlib", "pycuda", "subprocess", "difflib", "fractions"}
FLOORS = {"bench", "checker", "explain", "microscope", "program", "python", "verify"}
OURS = {f"cudalab.{name}" for name in FLOORS} | {
    f"cudalab.cli.{name}" for name in ("bench", "check", "instruments", "run", "watch")
}
PARTS_OF_NUMPY = {f"numpy.{name}" for name in ("fft", "ma", "polynomial", "random", "testing")}
FOR_NEW_KERNELS = {"cudalab.language.nvcc_rules", "cudalab.backends.cpu.assembly"}
THREADS = PROGRAM.replace("*sys.modules", "os.environ.get('OPENBLAS_NUM_THREADS')")


def imported(*words, stdin=b"", check=True):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], input=stdin, capture_output=True, check=check
    )
    return {*done.stderr.decode().splitlines()[-1].split()}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"]])
def test_help_imports_neither_numpy_nor_a_device(words):
    modules = imported(*words)
    assert "cudalab.cli.app" in modules
    devices = {"numpy", "ctypes", "hashlib", "cudalab.backends.cpu", "cudalab.backends.cuda"}
    program = {"cudalab.cli.run", "cudalab.program", "subprocess"} if words[0] == "run" else set()
    assert not modules & ((OTHERS | OURS | devices) - program)


def test_a_run_of_a_compiled_lab_imports_only_what_it_uses():
    keys = np.arange(10, dtype=np.uint32)
    stdin = np.int32(keys.size).tobytes() + keys.tobytes()
    words = ("radixsort", "--device", "cpu")
    imported(*words, stdin=stdin)  # compiles it, unless another test did
    modules = imported(*words, stdin=stdin)
    assert "cudalab.backends.cpu.device" in modules
    assert not modules & (OTHERS | OURS | PARTS_OF_NUMPY | FOR_NEW_KERNELS)


@pytest.mark.parametrize(("given", "used"), [(None, b"1"), ("3", b"3")])
def test_a_run_of_a_lab_has_one_thread_for_linear_algebra(monkeypatch, given, used):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    done = subprocess.run(
        [sys.executable, "-c", "import os" + THREADS, "radixsort", "--device", "cpu"],
        input=bytes(4), capture_output=True, check=True,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == used


def test_a_command_does_not_import_what_others_do(tmp_path):
    """The work of `check`, `grade` and `selftest`, of a GPU's cures and of measuring takes time."""
    judging = {f"cudalab.checker.{name}" for name in ("judge", "selftest", "grading", "sandbox")}
    cuda = {"cudalab.backends.cuda.why", "cudalab.backends.cuda.nvcc", "cudalab.cli.documents"}
    measuring = {"cudalab.bench.suite", "cudalab.bench.measure", "cudalab.output.live"}
    assert not imported("show", "radixsort", "digit_4bit") & (cuda | OTHERS)
    assert not imported("new", "reduce", str(tmp_path / "my.cu")) & (judging | cuda | {"rich"})
    words = ("check", "reduce", "--kernel", str(tmp_path / "my.cu"), "--no-time")
    checking = imported(*words, check=False)  # an empty kernel is wrong
    assert not checking & {"tarfile", "sqlite3", "cudalab.checker.selftest"}
    stored = next((Path(__file__).parents[2] / "docs/results/bench").glob("*.json"))
    assert not imported("bench", "--compare", str(stored), str(stored)) & (measuring | cuda)
    assert not imported("report", "reduce", "--from", str(stored)) & (measuring | cuda | {"rich"})


def test_a_new_program_imports_nothing_that_explains_mistakes(tmp_path):
    program = tmp_path / "new.cu"
    program.write_text("__global__ void k() {} int main() { k<<<1, 1>>>(); }", encoding="utf-8")
    build = f"from cudalab.program.build import executable; executable([{str(program)!r}], 'cpu')"
    code = f"import sys; {build}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    modules = {*done.stderr.decode().splitlines()[-1].split()}
    assert "cudalab.program.rewrite" in modules
    assert not modules & {f"cudalab.program.{name}" for name in ("messages", "wording")}
