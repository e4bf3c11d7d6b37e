"""How a command that has used a GPU ends: at once, but with all that an end owes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Ends as a command on a GPU does. An object that only Python's own end takes away says so.
PROGRAM = """
import atexit, os, sys
sys.modules["pycuda.driver"] = None
from cudalab.cli.failures import leave

class Kept:
    def __del__(self):
        os.write(2, b"Python's own end\\n")

kept = Kept()
atexit.register(os.write, 2, b"at exit\\n")
sys.stdout.write("answer")
leave(3)
"""


def ended(stdout=subprocess.PIPE, **environment):
    left_out = ("LD_PRELOAD", "PYTHONUNBUFFERED")
    inherited = {key: value for key, value in os.environ.items() if key not in left_out}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**inherited, **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def test_at_once():
    done = ended()
    assert (done.returncode, done.stdout, done.stderr) == (3, "answer", "at exit\n")


@pytest.mark.parametrize("tool", ["CUDA_INJECTION64_PATH", "LD_PRELOAD"])
def test_with_a_tool_that_looks_on(tool):
    done = ended(**{tool: ""})
    assert (done.returncode, done.stdout) == (3, "answer")
    assert done.stderr == "at exit\nPython's own end\n"


def test_output_that_cannot_be_written():
    with Path("/dev/full").open("w") as full:
        done = ended(stdout=full)
    assert done.returncode == 120  # of Python's own end
    assert "No space left on device" in done.stderr
