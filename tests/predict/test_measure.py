"""The kernels that measure a GPU: they compile, they do what they count, and the file is whole.

Times mean nothing on the CPU device; `pytest --device cuda` runs the same on a GPU.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext

import numpy as np
import pytest
from command import cudalab

from cudalab.backends.base import DeviceInfo, WrappedDevice
from cudalab.backends.cuda import nvcc
from cudalab.errors import NoDeviceError
from cudalab.predict import gpus, measure

STEPS = 37


class Few(WrappedDevice):
    """A device with two multiprocessors."""

    multiprocessors = 2


@pytest.fixture(scope="module")
def bench(device):
    return measure.Bench(Few(device))


def test_the_kernels_compile_for_every_architecture_without_a_warning(tmp_path):
    try:
        compiler = nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)
    known = nvcc.architectures(compiler)
    codes = [
        f"-gencode=arch=compute_{n},code=sm_{n}" for n in (70, 75, 80, 86, 89, 90, 100)
        if f"sm_{n}" in known
    ]  # fmt: skip
    path = measure.Path(measure.__file__).with_name("measure.cu")
    flags = (*nvcc.FLAGS, "-Werror", "all-warnings", "-fatbin", "-o", str(tmp_path / "all"))
    done = subprocess.run(
        [compiler, *codes, *flags, str(path)], capture_output=True, text=True, check=False
    )
    assert len(codes) >= 5
    assert (done.returncode, done.stderr) == (0, "")


def test_chains_take_every_step(bench):
    """The end of each chain tells how many steps were taken."""
    for level, stride in (("l1", 1), ("l2", 16)):
        links = bench.links(measure.NEAR_LINKS, stride)
        seen = [bench.follow(level, links, steps) for steps in range(measure.NEAR_LINKS + 1)]
        assert sorted(seen[:-1]) == [stride * i for i in range(measure.NEAR_LINKS)]
        assert seen[-1] == seen[0] == 0
    lanes = np.arange(32)
    assert (bench.chain("follow_shared", steps=STEPS) == STEPS % 32).all()
    assert (bench.chain("pass_round", steps=STEPS) == (lanes + STEPS) % 32).all()
    numbers = np.float32(1), np.float32(0.5)
    assert (bench.chain("chain_floats", *numbers, steps=STEPS) == lanes + STEPS / 2).all()
    assert bench.cycles() > 0


def values_of(threads):
    """What each thread's chains begin with."""
    return np.arange(threads)[:, None] + np.arange(measure.CHAINS)


def test_rates_execute_every_instruction(bench):
    threads = 64
    begin = values_of(threads)
    bits = begin.astype(np.uint32)
    counted = bits.copy()
    for _ in range(STEPS):
        bits = (bits << np.uint32(7) | bits >> np.uint32(25)) ^ np.uint32(5)
        counted = np.bitwise_count(counted) + np.uint32(5)
    expected = {
        "rate_of_floats": ((np.float32(1), np.float32(0.5)), begin + STEPS / 2),
        "rate_of_doubles": ((np.float64(1), np.float64(0.5)), begin + STEPS / 2),
        "rate_of_integers": ((np.uint32(5),), bits),
        "rate_of_slow": ((np.uint32(5),), counted),
    }
    for name, (numbers, ends) in expected.items():
        sums = ends.sum(axis=1, dtype=numbers[0].dtype)
        result = bench.rate(name, *numbers, threads=threads, steps=STEPS)
        assert (result == np.tile(sums, 2)).all(), name


def test_shared_memories_are_used_as_often_as_counted(bench):
    words = bench.device.to_device(np.zeros(256, np.uint32))
    bench.launch("add_turns", 3, 64, words, np.uint32(16))
    added = bench.device.to_host(words)
    assert added.sum() == 3 * 64 * 16  # each request: 32 lanes, each in a sector of its own
    assert (added.reshape(32, 8) == 12).all()
    source = bench.device.to_device(np.arange(4000, dtype=np.uint32).reshape(-1, 4))
    target = bench.device.to_device(np.zeros((1000, 4), np.uint32))
    bench.launch("copy_turns", 2, 256, source, target, np.uint32(999), np.uint32(2))
    copied = bench.device.to_host(target).ravel()
    assert (copied[:3996] == np.arange(3996)).all()
    assert (copied[3996:] == 0).all()


class Timer:
    """A timer by a clock that nobody reads."""

    ms = 2.0

    def start(self):
        """Begin."""

    def stop(self):
        """End."""


class Meter:
    """As a GPU's, on any device."""

    held = staticmethod(nullcontext)
    timer = Timer

    def flush(self):
        """Evict nothing."""

    def bandwidth(self):
        """2 TB/s."""
        return 2000.0

    def clock_mhz(self):
        """1.5 GHz."""
        return 1500.0


def test_a_file_is_written_and_read(device, monkeypatch, tmp_path):
    for name, value in {"STEPS": 64, "LINKS": 64, "SAMPLES": 1, "LAUNCHES": 4}.items():
        monkeypatch.setattr(measure, name, value)
    info = DeviceInfo(
        name="My GPU",
        cores=2,
        capability=(8, 6),
        max_threads=64,
        max_threads_per_core=256,
        max_blocks_per_core=16,
        registers_per_block=65536,
        shared_core_bytes=100 << 10,
        l2_bytes=1 << 20,
    )
    gpu = measure.measure(Few(device), Meter(), info)
    path = tmp_path / "mine.toml"
    path.write_text(gpus.text(gpu))
    assert gpus.load(str(path)) == gpu
    assert gpu.origins("documented") == ["l1_kb"]
    assert gpu.origins("assumed") == []
    assert (gpu.name, gpu.architecture, gpu.warps, gpu.l1_kb) == ("My GPU", "sm_86", 8, 128)
    # Copied: half of L2 read and half of it written, in each of 100 turns, in 2 ms.
    assert gpu.l2_gb_per_s == pytest.approx(100 * (1 << 19) / 2e6, rel=1e-3)
    assert gpu.launch_us == 500
    # Two blocks of 256 threads, 32 turns; 1,500 cycles in a microsecond.
    assert gpu.atomics_per_cycle == pytest.approx(2 * 256 * 32 / (2000 * 1500), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("cpu", "--measure", "-"), 2, "--measure is for GPUs"),
        (("--measure", "-", "--json", "-"), 2, "--json"),
    ],
)
def test_mistakes(words, status, message):
    done = cudalab("device", *words)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr.decode()


def test_without_a_gpu_nothing_is_written(tmp_path):
    path = tmp_path / "gpu.toml"
    done = cudalab("device", "--measure", path, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 4
    assert b"CUDA device" in done.stderr
    assert not path.exists()
