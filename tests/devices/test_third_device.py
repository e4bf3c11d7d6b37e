"""Adding a device: its folder in backends/ and its line in the registry, and every command works.

The devices here are those of the recipe in CONTRIBUTING.md, added to a copy of the package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cudalab

pytestmark = pytest.mark.xdist_group("third_device")  # one copy for all

REPOSITORY = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"
FACTS = """
NUMPY = Facts(
    on_host=True, driver=False, nvcc=False, instrumented=False,
    gpu_times=False, clock="host", many_threads=False,
)
"""
LINES = """
    "mirror": Kind("cudalab.backends.mirror:MirrorDevice", HOST, defaults_of="cpu"),
    "toy": Kind("cudalab.backends.toy:ToyDevice", NUMPY, defaults_of="cpu"),
    "timeless": Kind("cudalab.backends.toy:TimelessDevice", NUMPY, defaults_of="cpu"),
"""
MIRROR = '''
"""The CPU device by another name, for commands that need kernels to run."""

from cudalab.backends.cpu.device import CpuDevice


class MirrorDevice(CpuDevice):
    name = "mirror"
'''
# A test that needs a kernel which the toy has not is none of the toy's.
SKIPS = """
import pytest

from cudalab.backends.toy import NoKernelError


@pytest.hookimpl(wrapper=True)
def without_kernels(item):
    try:
        return (yield)
    except NoKernelError as error:
        pytest.skip(str(error))


pytest_runtest_setup = pytest_runtest_call = without_kernels
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with two more devices, and what its tests need beside it."""
    folder = tmp_path_factory.mktemp("third")
    package = Path(cudalab.__file__).parent
    shutil.copytree(package, folder / "cudalab")
    for name in ("kernels", "tests", "pyproject.toml"):
        (folder / name).symlink_to(REPOSITORY / name)
    (folder / "cudalab" / "backends" / "mirror.py").write_text(MIRROR)
    (folder / "skips.py").write_text(SKIPS)
    toy = folder / "cudalab" / "backends" / "toy"
    shutil.copytree(TOY, toy)
    with (toy / "__init__.py").open("a") as file:
        file.write("\n\nfrom cudalab.backends import facts\n\n")
        file.write("ToyDevice.facts = TimelessDevice.facts = facts(ToyDevice.name)\n")
    registry = folder / "cudalab" / "backends" / "__init__.py"
    text, count = re.subn(
        r'^    "cpu": Kind\(.*\n', rf"\g<0>{LINES[1:]}", registry.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    registry.write_text(text.replace("\nDEVICES = {", f"{FACTS}\nDEVICES = {{"))
    return folder


def run(copy, *words):
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": ""},  # xdist sets it
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("list reduce", "cuda, cpu, mirror"),
        ("device mirror", "mirror device"),
        ("bench reduce --device mirror --n 4096 --time-limit 0.2 --baseline numpy", "serial"),
        ("profile reduce --device mirror --n 1000 --variants sequential", "sequential"),
        ("sanitize reduce --variant sequential --n 1000 --orders 1", "clean"),
        ("check reduce --variant sequential --device mirror --no-time", "11 of 11 points"),
        ("report reduce --device mirror --n 1000 --variants serial --time-limit 0.2", "serial"),
    ],
)
def test_every_command_knows_a_third_device(copy, command, says):
    done = run(copy, "cudalab", *command.split())
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_a_device_that_shares_nothing_with_ours_passes_the_contract(copy):
    contract = "tests/devices/contract"
    words = ("--device", "toy", "-q", "-p", "no:cacheprovider", "-p", "skips", "-n", "0")
    done = run(copy, "pytest", contract, *words)
    assert done.returncode == 0, done.stdout[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) >= 110


def test_a_device_that_breaks_the_contract_is_found(copy):
    """Copies that are views, and arguments that nobody checks."""
    toy = copy / "cudalab" / "backends" / "toy" / "__init__.py"
    good = toy.read_text()
    contract = "tests/devices/contract"
    words = ("--device", "toy", "-q", "-p", "no:cacheprovider", "-p", "skips", "-n", "0")
    try:
        bad = good.replace("buffer.array.copy()", "buffer.array")
        toy.write_text(bad.replace("limits.check_arguments(kernel, args)", "pass"))
        done = run(copy, "pytest", contract, *words, "-k", "answers_stay or wrong_number")
    finally:
        toy.write_text(good)
    assert done.returncode == 1
    assert "2 failed" in done.stdout


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ("profile reduce --device toy --n 1000", 2, "nothing counts what kernels do on the toy"),
        ("bench reduce --device toy --n 1000 --variants sequential", 0, "has no compiler"),
        ("check reduce --device toy --variant sequential --no-time", 3, "has no compiler"),
    ],
)
def test_a_command_refuses_what_a_device_cannot_do(copy, command, status, says):
    done = run(copy, "cudalab", *command.split())
    assert says in done.stdout + done.stderr
    assert done.returncode == status


def test_a_device_without_a_meter_is_not_measured(copy):
    done = run(copy, "cudalab", "bench", "reduce", "--device", "timeless", "--n", "4096")
    assert done.returncode == 1
    assert "nothing can be measured on the timeless device: it has no meter" in done.stderr
