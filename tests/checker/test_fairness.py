"""What a submission cannot gain by cheating, and what speed earns."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from checking import CHEATS, checked

from cudalab.backends import open_device
from cudalab.checker.cases import Speed
from cudalab.checker.submit import foreign
from cudalab.checker.submit.guard import COMPARED_BYTES, holds
from cudalab.errors import ExitCode
from cudalab.system import elf


@pytest.mark.parametrize(
    ("cheat", "status", "why"),
    [
        ("empty", 3, "wrong answer"),
        ("takes_input", 3, "changed its input"),
        ("writes_outside", 3, "wrote outside of its memory"),
        ("constructor", 5, "no kernel: host code"),
        ("host_call", 5, "no kernel: host code"),
        ("only_once", 3, "wrong answer"),
        ("remembers", 3, "wrong answer"),
    ],
)
def test_cheating_kernels(cheat, status, why):
    path = CHEATS / f"{cheat}.cu"
    report = checked(
        "reduce", "--kernel", path, "--device", "cpu", "--no-sanitize", "--quick", status=status
    )
    causes = {test["why"] for test in report["tests"]} | {s["why"] for s in report["stages"]}
    assert why in causes


def test_a_clock_of_its_own_changes_nothing():
    """It says that no time has passed; the grader's clock is in another process."""
    report = checked(
        "reduce", "--kernel", CHEATS / "patched_clock.cu", "--device", "cpu", "--no-sanitize",
        "--quick", "--reference", "global_halving", "--speed-points", 10, status=0,
    )  # fmt: skip
    assert report["speed"]["ratio"] > 5
    assert report["speed"]["points"] == 0


def test_points_for_speed():
    rule = Speed(points=10, full=1.2, zero=5)
    assert rule.earned(0.5) == rule.earned(1.2) == 1
    assert 0 < rule.earned(3) < 1
    assert rule.earned(5) == rule.earned(100) == 0
    assert rule.earned(2) > rule.earned(3)


def test_an_import_of_the_system_is_seen(tmp_path):
    compiler = shutil.which("g++") or pytest.skip("no g++")
    source = tmp_path / "x.cpp"
    source.write_text(
        '#include <cmath>\n#include <cstdlib>\nextern "C" int f(float x)'
        ' { return system("id") + (int)sinf(x); }\nint g = rand();\n'
    )
    library = tmp_path / "x.so"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    found = elf.demands(library.read_bytes())
    assert foreign.foreign(found) == ["rand", "system"]
    assert found.constructors > foreign.COMPILERS_OWN
    assert found.destructors == foreign.COMPILERS_OWN
    source.write_text("__attribute__((destructor)) static void late() {}\n")
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    found = elf.demands(library.read_bytes())
    assert (found.constructors, found.destructors) == (1, 2)
    with pytest.raises(ValueError, match="library"):
        elf.demands(library.read_bytes()[:400])
    with pytest.raises(ValueError, match="library"):
        elf.demands(b"no library")


@pytest.mark.cuda
def test_cheats_on_a_gpu(tmp_path):
    for cheat in ("empty", "takes_input", "writes_outside", "remembers", "never_ends"):
        report = checked(
            "reduce", "--kernel", CHEATS / f"{cheat}.cu", "--device", "cuda", "--quick",
            "--kill-after", 5, cwd=tmp_path,
        )  # fmt: skip
        assert report["exit_code"] in (ExitCode.WRONG_ANSWER, ExitCode.TIME_LIMIT), cheat


@pytest.mark.parametrize("at", [None, 0, COMPARED_BYTES - 1, COMPARED_BYTES, 300_000])
def test_one_changed_byte_of_an_input_is_seen(at):
    data = np.arange(300_001, dtype=np.uint64).astype(np.uint8)
    with open_device("cpu", 1) as device:
        buffer = device.to_device(data)
        if at is not None:
            buffer.array[at] ^= 1
        assert holds(device, buffer, data) == (at is None)
        assert not holds(device, buffer, data[:-1])
        assert holds(device, device.to_device(data[:0]), data[:0])
