"""`cudalab device --why`: machines that lack one thing each, and the line that cures it."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from toolkits import toolkit

from cudalab.backends.cuda import driver, nvcc, why
from cudalab.cli.app import cli
from cudalab.errors import NoDeviceError, install_command


class Machine:
    """A machine with a T4 and all that it takes; tests take things away."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.patch = folder, monkeypatch
        self.patch.setattr(nvcc, "SYSTEM", folder / "cuda")
        self.patch.setattr(nvcc, "_nvidia_packages", list)
        self.patch.setattr(why, "_PCI", folder / "pci")
        self.patch.setattr(why, "_IN_DOCKER", folder / "dockerenv")
        self.patch.setattr(driver, "library", lambda: None)
        self.patch.setattr(driver, "release", lambda: driver.Release(12, 4))
        self.patch.setattr(driver, "first_gpu", lambda: driver.Gpu("Tesla T4", "sm_75"))
        self.patch.setattr(why, "_driver_library", lambda: folder / "libcuda.so.1")
        self.patch.setattr(why.sysconfig, "get_path", lambda _: str(folder / "include"))
        others = [path for path in sys.path if not Path(path, "pycuda").is_dir()]
        self.patch.setattr(sys, "path", [str(folder), *others])
        for variable in ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "NVCC_CCBIN"):
            self.patch.delenv(variable, raising=False)
        self.patch.setenv("HOME", str(folder))
        self.patch.setenv("PATH", str(folder / "bin"))
        (folder / "bin").mkdir()
        self.program("g++")
        self.nvcc("12.4")
        for header in ("cuda/include/cuda.h", "cuda/include/curand.h", "include/Python.h"):
            self.file(header)
        for name in pycuda_modules():  # of a machine with a GPU: put back afterwards
            self.patch.delitem(sys.modules, name)
        self.module("VERSION_TEXT = '2026.1'", "")

    def file(self, name, text=""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def program(self, name, body=""):
        self.file(f"bin/{name}", f"#!/bin/sh\n{body}\n").chmod(0o755)

    def nvcc(self, release, body=""):
        (self.folder / "cuda" / "bin" / "nvcc").unlink(missing_ok=True)
        nvcc._answer.cache_clear()
        path = toolkit(self.folder / "cuda", release)
        path.write_text(path.read_text() + body)

    def module(self, package, driver_module):
        self.file("pycuda/__init__.py", package)
        self.file("pycuda/driver.py", driver_module)

    def without(self, *names):
        for name in names:
            path = self.folder / name
            path.rename(path.with_name(f"away-{path.name}"))
        forget_pycuda()

    def missing(self):
        return {check.name: check for check in why.checks() if not check.ok}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    yield Machine(tmp_path, monkeypatch)
    forget_pycuda()


def forget_pycuda():
    """Have the next import look for it again."""
    importlib.invalidate_caches()
    for name in pycuda_modules():
        del sys.modules[name]


def pycuda_modules():
    return [name for name in sys.modules if name.partition(".")[0] == "pycuda"]


def test_nothing_is_missing(machine):
    assert machine.missing() == {}
    assert [check.name for check in why.checks()] == [
        "driver", "GPU", "nvcc", "host compiler", "PyCUDA"
    ]  # fmt: skip


def fail(error):
    def call(*_):
        raise error

    return call


def test_no_driver(machine, monkeypatch):
    monkeypatch.setattr(driver, "library", fail(OSError("libcuda.so.1: cannot open")))
    (only,) = why.checks()
    assert only.name == "driver"
    assert not only.cure
    assert "--device cpu" in only.advice
    machine.file("pci/0000:01:00.0/vendor", "0x10de\n")
    assert machine.missing()["driver"].cure == why.DRIVER
    machine.file("dockerenv")
    assert machine.missing()["driver"].cure == why.CONTAINER


def test_a_stub_is_no_driver(machine, monkeypatch):
    monkeypatch.setattr(driver, "release", lambda: None)
    assert "stub" in machine.missing()["driver"].message


def test_no_gpu(machine, monkeypatch):
    monkeypatch.setattr(driver, "first_gpu", fail(NoDeviceError("no CUDA-capable device")))
    assert "modprobe" in machine.missing()["GPU"].cure
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert machine.missing()["GPU"].cure == "unset CUDA_VISIBLE_DEVICES"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    mismatch = NoDeviceError("system has unsupported display driver / cuda driver combination")
    monkeypatch.setattr(driver, "first_gpu", fail(mismatch))
    assert machine.missing()["GPU"].cure == "sudo reboot"


def test_no_nvcc(machine, monkeypatch):
    machine.without("cuda/bin/nvcc")
    assert machine.missing()["nvcc"].cure == why.TOOLKIT  # no wheel has nvcc 12
    monkeypatch.setattr(driver, "release", lambda: driver.Release(13, 0))
    assert machine.missing()["nvcc"].cure == install_command("nvcc")
    monkeypatch.setattr(driver, "first_gpu", lambda: driver.Gpu("Tesla V100", "sm_70"))
    assert machine.missing()["nvcc"].cure == why.TOOLKIT  # CUDA 13 has dropped it


def test_a_toolkit_that_is_too_new_for_the_driver(machine):
    machine.nvcc("13.0")
    nvcc_check = machine.missing()["nvcc"]
    assert "CUDA 13.0, the driver runs code of CUDA 12 and older" in nvcc_check.message
    assert nvcc_check.cure == why.TOOLKIT


@pytest.mark.parametrize(
    ("messages", "words", "cure"),
    [
        ("gcc: not found\nnvcc fatal : Failed to preprocess host compiler", "finds none", "g++"),
        ("host_config.h:143: error: -- unsupported GNU version! gcc", "accept", "NVCC_CCBIN=g++-"),
    ],
)
def test_a_host_compiler_that_nvcc_refuses(machine, messages, words, cure):
    machine.nvcc("12.4", f'[ "$1" = -cubin ] && echo "{messages}" && exit 1\n')
    check = machine.missing()["host compiler"]
    assert words in check.message
    assert cure in check.advice


def test_pycuda_is_not_installed(machine):
    machine.without("pycuda")
    missing = machine.missing()
    assert list(missing) == ["PyCUDA"]
    path = f"PATH={machine.folder}/cuda/bin:$PATH "
    assert missing["PyCUDA"].cure == path + install_command("cuda12")
    machine.patch.setenv("PATH", f"{machine.folder}/cuda/bin:{os.environ['PATH']}")
    assert machine.missing()["PyCUDA"].cure == install_command("cuda12")


def test_what_building_pycuda_lacks(machine):
    headers = ("cuda/include/cuda.h", "cuda/include/curand.h", "include/Python.h")
    machine.without("pycuda", *headers)
    machine.program("g++", "exit 1")
    missing = machine.missing()
    assert list(missing) == ["cuda.h", "curand.h", "Python.h", "libcuda.so", "PyCUDA"]
    assert missing["libcuda.so"].cure == (
        f"sudo ln -s {machine.folder}/libcuda.so.1 {machine.folder}/libcuda.so"
    )
    # The line that is printed for cuRAND cures it.
    assert os.system(missing["curand.h"].cure) == 0  # noqa: S605 - as a user does
    assert "curand.h" not in machine.missing()
    machine.without("bin/g++")
    assert machine.missing()["g++"].cure == "sudo apt install g++"


def test_a_pycuda_that_cannot_be_imported(machine):
    machine.module("VERSION_TEXT = '2026.1'", "raise ImportError('undefined symbol: cuCtx')")
    check = machine.missing()["PyCUDA"]
    assert "undefined symbol" in check.message
    assert "--force-reinstall" in check.cure


def test_what_is_printed(machine):
    done = CliRunner().invoke(
        cli, ["device", "--why"], catch_exceptions=False, standalone_mode=False
    )
    assert done.return_value == 0, done.output
    assert "ok       GPU: Tesla T4, sm_75\n" in done.output
    machine.without("pycuda")
    done = CliRunner().invoke(
        cli, ["device", "--why"], catch_exceptions=False, standalone_mode=False
    )
    assert done.return_value == 4
    assert CliRunner().invoke(cli, ["device", "cuda", "--why"]).exit_code
    assert f"MISSING  PyCUDA: not installed\n         fix: PATH={machine.folder}" in done.output
