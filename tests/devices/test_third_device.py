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
CODE = '''
"""A device like the CPU's, and one that cannot measure."""

from cudalab.backends.cpu.device import CpuDevice


class MirrorDevice(CpuDevice):
    """The CPU device by another name."""

    name = "mirror"


class TimelessDevice(CpuDevice):
    """A device without a meter."""

    name = "timeless"
    meter = None
'''
LINES = """
    "mirror": Kind("cudalab.backends.mirror:MirrorDevice", HOST, defaults_of="cpu"),
    "timeless": Kind("cudalab.backends.mirror:TimelessDevice", HOST, defaults_of="cpu"),
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with two more devices, and what its tests need beside it."""
    folder = tmp_path_factory.mktemp("third")
    package = Path(cudalab.__file__).parent
    shutil.copytree(package, folder / "cudalab")
    for name in ("kernels", "tests", "pyproject.toml"):
        (folder / name).symlink_to(REPOSITORY / name)
    (folder / "cudalab" / "backends" / "mirror").mkdir()
    (folder / "cudalab" / "backends" / "mirror" / "__init__.py").write_text(CODE)
    registry = folder / "cudalab" / "backends" / "__init__.py"
    text, count = re.subn(
        r'^    "cpu": Kind\(.*\n', rf"\g<0>{LINES[1:]}", registry.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    registry.write_text(text)
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


def test_a_third_device_passes_the_contract(copy):
    contract = "tests/devices/test_backend_contract.py"
    done = run(copy, "pytest", contract, "--device", "mirror", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout[-2000:]
    assert re.search(r"\d{3} passed", done.stdout)


def test_a_device_without_a_meter_is_not_measured(copy):
    done = run(copy, "cudalab", "bench", "reduce", "--device", "timeless", "--n", "4096")
    assert done.returncode == 1
    assert "nothing can be measured on the timeless device: it has no meter" in done.stderr
