"""A lab is its folder in labs/ and its folder in kernels/: with these two, every command has it.

A copy of the project gets the smallest lab there can be, tests/new_lab, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
NEW_LAB = ROOT / "tests" / "new_lab"
N = 5000

pytestmark = pytest.mark.xdist_group("new_lab")  # one copy for all


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The copy, with an input of the new lab in it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("cudalab", "kernels"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copytree(NEW_LAB / "labs" / "flip", folder / "cudalab" / "labs" / "flip")
    shutil.copytree(NEW_LAB / "kernels" / "flip", folder / "kernels" / "flip")
    cudalab(folder, "gen", "flip", "--n", N, "-o", "in.bin")
    return folder


def cudalab(project, *words, status=0):
    """What `cudalab WORDS` of the copy says on stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "cudalab", *map(str, words)],
        cwd=project, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(project), "COLUMNS": "160"},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_copy_is_what_runs(project):
    code = "import cudalab; print(cudalab.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(project)},
    )  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(project)


def test_it_is_listed_and_described(project):
    assert "Reverses the order of n numbers" in cudalab(project, "list")
    assert "coalesced, one of them backwards" in cudalab(project, "list", "flip")
    assert "flip" in cudalab(project, "--help")
    assert "from the last to the first" in cudalab(project, "flip", "--help")
    assert "__global__ void flip" in cudalab(project, "show", "flip", "naive")


def test_it_runs_and_is_verified(project):
    cudalab(project, "flip", "--device", "cpu", "-i", "in.bin", "-o", "out.bin")
    numbers = np.fromfile(project / "in.bin", "<i4")[1:]
    assert len(numbers) == N
    np.testing.assert_array_equal(np.fromfile(project / "out.bin", "<i4"), numbers[::-1])
    cudalab(project, "verify", "flip", "in.bin", "out.bin")
    cudalab(project, "verify", "flip", "in.bin", "in.bin", status=3)


def test_it_is_measured(project):
    words = ("--device", "cpu", "--n", 3000, "--time-limit", 0.1)
    assert "naive" in cudalab(project, "bench", "flip", *words)
    cudalab(project, "report", "flip", "--device", "cpu", "--n", 3000, "-o", "report.md",
            "--time-limit", 0.1)  # fmt: skip
    assert "Reverses the order of n numbers" in (project / "report.md").read_text()


def test_it_is_looked_at(project):
    assert "flip" in cudalab(project, "profile", "flip", "--variants", "naive", "--n", 2000)
    assert ": clean" in cudalab(project, "sanitize", "flip")


def test_a_student_s_kernel_is_begun_and_checked(project):
    cudalab(project, "new", "flip", "mine.cu")
    words = ("--kernel", "mine.cu", "--device", "cpu", "--no-sanitize")
    assert "never written" in cudalab(project, "check", "flip", *words, "--no-time", status=3)
    empty = (project / "mine.cu").read_text()
    body = "const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;\n"
    body += "    if (i < n) out[i] = in[n - 1 - i];"
    (project / "mine.cu").write_text(empty.replace("// your code", body))
    assert "257 elements" in cudalab(project, "check", "flip", *words)


def test_the_checker_is_tested_with_it(project):
    said = cudalab(project, "selftest", "--device", "cpu", "--lab", "flip")
    assert "1 of 1 variants accepted" in said
