"""Measuring on the CPU device: the host's clock, its caches and its memory."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cudalab.backends.base import Buffer, Device, Module, overwrite
from cudalab.language import source as sources
from cudalab.system.machine import available_memory, last_level_cache

RUN_WORDS = 1 << 15  # per block: 256 KiB
COPY_BYTES = 256 << 20
COPIES = 5


@dataclass
class CpuTimer:
    """The host's clock: launches on this device have ended when `launch` returns."""

    ms: float = 0.0
    _began: float = 0.0

    def start(self) -> None:
        self._began = time.perf_counter()

    def stop(self) -> None:
        """Take the milliseconds since `start`."""
        self.ms = (time.perf_counter() - self._began) * 1e3


class CpuMeter:
    """Measures the work of the host's cores."""

    def __init__(self, device: Device) -> None:
        """Measure on `device`; kernels and memory are created when needed."""
        self._device = device
        self._sweep: tuple[Module, Buffer] | None = None

    def timer(self) -> CpuTimer:
        """The host's clock."""
        return CpuTimer()

    def flush(self) -> None:
        """Add to every word of more memory than the caches hold, on all cores."""
        kernels, words = self._swept()
        (n,) = words.shape
        sizes = np.uint64(n), np.uint64(RUN_WORDS)
        self._device.launch(kernels["write_words"], -(-n // RUN_WORDS), 1, words, *sizes)

    def fill(self, buffer: Buffer, value: int) -> None:
        """Set every byte of `buffer` to `value`."""
        overwrite(self._device, buffer, value)

    def bandwidth(self) -> float:
        """The best of five copies of 256 MiB by all cores, or of a quarter of the free memory."""
        kernels, _ = self._swept()
        n = min(COPY_BYTES, available_memory() // 4) // 8
        source, target = self._device.empty(n, np.uint64), self._device.empty(n, np.uint64)
        overwrite(self._device, source, 1)
        overwrite(self._device, target, 0)
        sizes = np.uint64(n), np.uint64(RUN_WORDS)
        best = float("inf")
        for _ in range(COPIES):
            timer = self.timer()
            timer.start()
            self._device.launch(
                kernels["copy_words"], -(-n // RUN_WORDS), 1, source, target, *sizes
            )
            timer.stop()
            best = min(best, timer.ms)
        return 16 * n / 1e6 / best

    def _swept(self) -> tuple[Module, Buffer]:
        """The kernels of measure.cu, and more memory than the caches hold."""
        if self._sweep is None:
            path = Path(__file__).with_name("measure.cu")
            kernels = self._device.compile(sources.load(path, "measure.cu"), {})
            words = self._device.empty(2 * last_level_cache() // 8, np.uint64)
            overwrite(self._device, words, 0)  # so that its pages exist
            self._sweep = kernels, words
        return self._sweep
