"""What every device must do with a kernel file: errors, the cache, definitions."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from contract import load, run

from cudalab.backends import facts, open_device
from cudalab.backends.base import C_TYPES
from cudalab.checker.submit.program import copy_runtime
from cudalab.errors import ExitCode, KernelCompileError
from cudalab.language import source
from cudalab.system.cache import cache_dir


def test_compile_error(device):
    with pytest.raises(KernelCompileError) as caught:
        load(device, "rejected.cu")
    assert "rejected.cu:4:" in caught.value.message
    assert "undeclared_name" in caught.value.message
    assert caught.value.exit_code == ExitCode.COMPILE_ERROR == 5


def test_every_element_type_is_one_word(device, tmp_path):
    names = {f"T{number}": words for number, words in enumerate(C_TYPES.values())}
    sums = " + ".join(f"({name}(1) == 1)" for name in names)
    text = f'extern "C" __global__ void store(int *out) {{ out[threadIdx.x] = {sums}; }}\n'
    (tmp_path / "own.cu").write_text(text)
    module = device.compile(source.load(tmp_path / "own.cu"), names)
    (out,) = run(device, module, "store", 1, 1, np.zeros(1, np.int32))
    assert out.tolist() == [len(names)]


@pytest.fixture
def own_cache(device_name, tmp_path, monkeypatch):
    """A cache without a compiled kernel; a host's runtime, which takes long, is there."""
    if facts(device_name).on_host:
        copy_runtime(tmp_path / "cache", check=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_dir.cache_clear()
    yield tmp_path / "cache"
    cache_dir.cache_clear()


def works(device, tmp_path):
    module = device.compile(source.load(tmp_path / "own.cu"), {"VALUE": 7})
    (out,) = run(device, module, "store", 1, 4, np.zeros(4, np.int32))
    return out.tolist() == [7] * 4


@pytest.fixture
def own_file(tmp_path):
    """A file that nobody has compiled before."""
    text = 'extern "C" __global__ void store(int *out) { out[threadIdx.x] = VALUE; }\n'
    (tmp_path / "own.cu").write_text(f"// {tmp_path}\n{text}")


@pytest.mark.usefixtures("own_cache", "own_file")
def test_second_compilation_starts_no_compiler(device_name, tmp_path, monkeypatch):
    with open_device(device_name) as device:
        assert works(device, tmp_path)

    def start(*_args, **_kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", start)
    with open_device(device_name) as device:
        assert works(device, tmp_path)


@pytest.mark.usefixtures("own_file")
def test_damaged_cache(device_name, tmp_path, own_cache):
    with open_device(device_name) as device:
        assert works(device, tmp_path)
    entries = [path for path in own_cache.rglob("*") if path.is_file()]
    assert entries
    for path in entries:  # replaced, not overwritten: the module may still be mapped
        half = path.with_name("half")
        half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        half.replace(path)
    with open_device(device_name) as device:
        assert works(device, tmp_path)


@pytest.mark.usefixtures("own_cache")
def test_changed_definitions_are_compiled(device_name, tmp_path):
    (tmp_path / "own.cu").write_text(
        'extern "C" __global__ void store(int *out) { out[0] = VALUE; }\n'
    )
    with open_device(device_name) as device:
        for value in (1, 2):
            module = device.compile(source.load(tmp_path / "own.cu"), {"VALUE": value})
            (out,) = run(device, module, "store", 1, 1, np.zeros(1, np.int32))
            assert out[0] == value
