"""Running kernels in check mode, for the tests of it, under one compiler or the other."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from lab_inputs import drawn

from cudalab import labs, runner
from cudalab.backends.cpu.check import CheckDevice
from cudalab.backends.cpu.compiler import flags, toolchain
from cudalab.labs import registry
from cudalab.language import source

KERNELS = Path(__file__).parent / "kernels"
COMPILERS = ("g++", "zig")
INT, FLOAT, DOUBLE, BYTE = np.int32, np.float32, np.float64, np.uint8


@pytest.fixture(params=COMPILERS)
def compiled_by(request, monkeypatch):
    """The compiler that kernels are built with; at the end what was found before."""
    use(request.param, monkeypatch)
    yield request.param
    forget_compiler()


def use(name, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    if name == "zig":
        if toolchain.find_spec("ziglang") is None:
            pytest.skip("the ziglang package is not installed")
        monkeypatch.setenv("PATH", "")
    forget_compiler()
    if name not in toolchain.find_compiler().name:
        pytest.skip(f"{name} is not installed")


def forget_compiler():
    toolchain.find_compiler.cache_clear()
    flags._hooks.cache_clear()


def launch(device, file, kernel, grid, block, *args, shared_bytes=0):
    """Launch on copies of arrays, (n, dtype) for memory without values, or scalars; the copies."""
    module = device.compile(source.load(KERNELS / file, file), {})
    on_device = [
        arg if isinstance(arg, np.generic)
        else device.empty(*arg) if isinstance(arg, tuple)
        else device.to_device(arg)
        for arg in args
    ]  # fmt: skip
    device.launch(module[kernel], grid, block, *on_device, shared_bytes=shared_bytes)
    return [device.to_host(arg) for arg in on_device if not isinstance(arg, np.generic)]


def line_of(name, file):
    """The line with the mark @name."""
    text = (KERNELS / file).read_text(encoding="utf-8")
    marked = [n for n, line in enumerate(text.splitlines(), 1) if re.search(rf"@{name}\b", line)]
    assert len(marked) == 1, name
    return marked[0]


def zeros(n, dtype=INT):
    return np.zeros(n, dtype)


def profiled(lab_name, variant_name, n, **options):
    """The traces of a variant, whose answer must be right."""
    lab = labs.get(lab_name)
    variant = registry.find(lab, variant_name)
    case = next(case for case in lab.cases() if variant.computes(case))
    inputs = drawn(lab, case, n, lab.distributions[0], seed=1)
    with CheckDevice(**({"detect": False, "count": True} | options)) as device:
        answer = runner.run(lab, variant, device, inputs, case, watch=runner.Stopwatch())
    assert lab.compare(answer.array(), inputs, case) is None
    return device
