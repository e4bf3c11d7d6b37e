"""What the tests of `cudalab run` share: the programs, and how they are run."""

import os
import shutil
import tomllib
from pathlib import Path

import command
import pytest

from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.program.rewrite import edited

ROOT = Path(__file__).parents[1]


PROGRAMS = ROOT / "samples" / "programs"


OWN = Path(__file__).parent / "programs"


SAMPLES = {
    name: (each["files"], each["lab"], each["dtype"])
    for name, each in tomllib.loads((PROGRAMS / "programs.toml").read_text("utf-8")).items()
}


def run(files, device, *options, arguments=(), env=None, **stdin):
    """Run a program of several files, or the one in tests/programs."""
    paths = (
        [str(OWN / files)] if isinstance(files, str) else [str(PROGRAMS / each) for each in files]
    )
    behind = ["--", *arguments] if arguments else []
    return cudalab("run", "--device", device, *options, *paths, *behind, env=env, **stdin)


IS_EMULATED = "CUDALAB_EMULATOR" in os.environ


with_gcc = pytest.mark.skipif("g++" not in find_compiler().name, reason="in g++'s words")
HAS_LINES = shutil.which("addr2line") is not None
with_lines = pytest.mark.skipif(not HAS_LINES, reason="addr2line reads the line of a crash")
natively = pytest.mark.skipif(IS_EMULATED, reason="needs a processor that is not emulated")


def rewrite(files, names):
    """The texts to compile in the place of a program's files."""
    return [each.rewritten() for each in edited(files, names)]


def cudalab(*words, env=None, **stdin):
    if IS_EMULATED and not {"--sanitize", "--profile"}.isdisjoint(words):
        pytest.skip("Python loads the instrumented program, which is for another processor")
    return command.cudalab(*words, env={**os.environ, "COLUMNS": "160", **(env or {})}, **stdin)


MIXED = [str(OWN / "mixed" / name) for name in ("main.cu", "sum.cpp", "sum.c")]
