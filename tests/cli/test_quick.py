"""Every lab and every command once, on a small input: `pytest -m quick`, a verdict in a minute."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cudalab import labs
from cudalab.cli.app import cli

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("lock_of_its_own")]
ROOT = Path(labs.__file__).parents[2]
PATHS = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
KERNEL = ROOT / "kernels" / "reduce" / "sequential.cu"
PROGRAM = ROOT / "tests" / "programs" / "numbers.cu"
SAMPLE = ROOT / "samples" / "radixsort" / "course.uint32"
SHORT_SWEEP = "--sweep THREADS_PER_BLOCK=64 --time-limit 0.1"
# What a command is typed with, and what it then says. {device} is replaced.
COMMANDS = {
    "list": ("list radixsort", "split_1bit"),
    "show": ("show reduce sequential", KERNEL.read_text()),
    "doctor": ("doctor", "ok       compiler: "),
    "device": ("device {device}", "shared memory per block"),
    "gen": ("gen reduce --n 3 --dist all-ones", b"\x03" + bytes(3) + b"\x01\0\0\0" * 3),
    "verify": (f"verify radixsort {SAMPLE}.in.bin {SAMPLE}.out.bin", ""),
    "run": (f"run --device {{device}} {PROGRAM}", PROGRAM.with_suffix(".txt").read_text()),
    "bench": (
        "bench reduce --n 1000 --variants sequential --time-limit 0.1 --device {device}",
        "sequential",
    ),
    "profile": ("profile reduce --n 1000 --variants sequential", "sequential.cu"),
    "sanitize": ("sanitize reduce --n 100", ": clean"),
    "new": ("new reduce my.cu", "my.cu"),
    "predict": ("predict reduce --n 100000 --variants sequential --gpu h100", "sequential"),
    "check": ("check reduce --kernel given.cu --quick --device {device}", "3 of 3 points"),
    "learn": ("learn --list", "0 of 24 done"),
    "watch": ("watch reduce given.cu --once", "8 of 8 tests"),
    "grade": (
        "grade class --lab reduce --out results --quick --device {device}",
        "1 of 1 judged, 1 passed",
    ),
    "selftest": ("selftest --lab table --device {device}", "No verdict was wrong"),
    "report": (
        f"report reduce --n 99 --variants sequential {SHORT_SWEEP} --device {{device}}",
        "sequential",
    ),
    "explain": ("explain banks", "The banks of shared memory"),
    "exercises": ("exercises --size 40 --device {device}", "row means"),
}


def cudalab(folder, *words, stdin=b""):
    done = subprocess.run(
        [sys.executable, "-m", "cudalab", *words],
        input=stdin, capture_output=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": PATHS, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("lab", labs.names())
def test_a_lab_answers_what_it_is_given(tmp_path, device_name, lab):
    given = tmp_path / "in.bin"
    given.write_bytes(cudalab(tmp_path, "gen", lab, "--n", "40"))
    answer = cudalab(tmp_path, lab, "--device", device_name, stdin=given.read_bytes())
    (tmp_path / "out.bin").write_bytes(answer)
    cudalab(tmp_path, "verify", lab, "in.bin", "out.bin")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_its_work(tmp_path, device_name, command):
    line, says = COMMANDS[command]
    (tmp_path / "class").mkdir()
    for copy in (tmp_path / "given.cu", tmp_path / "class" / "anna.cu"):
        shutil.copyfile(KERNEL, copy)
    said = cudalab(tmp_path, *line.format(device=device_name).split())
    assert says in said if isinstance(says, bytes) else says in said.decode()


def test_every_command_is_among_them():
    assert {*cli.list_commands(click.Context(cli))} == {*labs.names(), *COMMANDS}
