"""Measures on a GPU: events, cold caches, held launches, the clock and the bandwidth."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cudalab.backends import base
from cudalab.backends.cuda import driver
from cudalab.backends.cuda.memory import own, shared_words, wait
from cudalab.language import source as sources

# A held stream must be released before the driver's queue of about 1024 launches is full, which
# would block forever; the host takes 10 ms to fill it. Copies take much longer than their launch.
HOLD_LIMIT_NS = 100_000_000
CLOCK_NS = 20_000
COPY_BYTES = 512 << 20
COPIES = 10
SWEEP_THREADS = 256


class Opened(base.Device, Protocol):
    """The parts of an open device that the meter needs."""

    def errors_in_words(self) -> AbstractContextManager[None]:
        """Turn the driver's errors inside the block into a CudalabError."""
        ...


class CudaTimer:
    """Two events on the default stream; resolution about 0.5 µs."""

    def __init__(self, device: Opened, driver: Any) -> None:
        self._device = device
        self._start, self._stop = driver.Event(), driver.Event()

    def start(self) -> None:
        """Mark the beginning."""
        with self._device.errors_in_words():
            self._start.record()

    def stop(self) -> None:
        """Mark the end."""
        with self._device.errors_in_words():
            self._stop.record()

    @property
    def ms(self) -> float:
        """Milliseconds between start and stop; waits until the device has passed stop."""
        with self._device.errors_in_words():
            wait(self._stop)
            return float(self._stop.time_since(self._start))


class CudaHold:
    """The stream waits in a kernel for the host to write the hold's ticket."""

    def __init__(self, flags: np.ndarray[Any, Any], ticket: int) -> None:
        """`flags`: the ticket that may pass, and the last one that did not wait for it."""
        self._flags = flags
        self._ticket = ticket

    def release(self) -> None:
        """Release the stream."""
        self._flags[0] = self._ticket

    @property
    def expired(self) -> bool:
        """Whether the kernel gave up waiting; known after `synchronize`."""
        return bool(self._flags[1] == self._ticket)


class _Measuring:
    """The kernels of measure.cu and the memory they need, for as long as the context lives."""

    def __init__(self, device: Opened, driver: Any, l2_bytes: int) -> None:
        self.kernels = device.compile(
            sources.load(Path(__file__).with_name("measure.cu"), "measure.cu"), {}
        )
        self.flags, self.flags_buffer = shared_words(driver, 2)
        self.tickets = 0
        self.holding = False
        self.cycles_and_ns = device.empty(2, np.uint64)
        # Twice the cache, because its lines are replaced more or less at random.
        self.sweep = device.empty((max(2 * l2_bytes, 32 << 20) // 16, 4), np.uint32)


class CudaMeter:
    """Measures on an open GPU; kernels and memory are created when needed."""

    def __init__(self, device: Opened, driver: Any, l2_bytes: int) -> None:
        """Measure on `device`, whose L2 cache holds `l2_bytes`."""
        self._device, self._driver, self._l2_bytes = device, driver, l2_bytes
        self._measuring: _Measuring | None = None

    def release(self) -> None:
        """Release the memory when the device is closed."""
        self._measuring = None

    def timer(self) -> CudaTimer:
        """A timer that the device itself reads."""
        with self._device.errors_in_words():  # of a kernel that crashed before
            return CudaTimer(self._device, self._driver)

    def fill(self, buffer: base.Buffer, value: int) -> None:
        """Set every byte of `buffer` to `value`, in the order of launches."""
        if buffer.nbytes:
            with self._device.errors_in_words():
                self._driver.memset_d8_async(own(buffer).address, value, buffer.nbytes)

    def _measure(self) -> _Measuring:
        if self._measuring is None:
            with self._device.errors_in_words():
                self._measuring = _Measuring(self._device, self._driver, self._l2_bytes)
            # The first launch of a kernel loads it, which may wait for the device: not in a hold.
            self.flush()
            self.clock_mhz()
            self._hold(self._measuring, ticket=0)
        return self._measuring

    def flush(self) -> None:
        """Write, then read, twice as much memory as the L2 cache holds."""
        measure = self._measure()
        if not measure.holding:  # it may wait for the device
            _reset_persisting_lines()
        n = measure.sweep.shape[0]
        for kernel in ("write_words", "read_words"):
            blocks = -(-n // SWEEP_THREADS)
            self._device.launch(
                measure.kernels[kernel], blocks, SWEEP_THREADS, measure.sweep, np.uint32(n)
            )

    @contextmanager
    def held(self) -> Iterator[CudaHold]:
        """Keep the stream waiting in a kernel of one thread until the block ends."""
        measure = self._measure()
        _reset_persisting_lines()
        measure.tickets += 1
        measure.holding = True
        hold = CudaHold(measure.flags, measure.tickets)
        self._hold(measure, measure.tickets)
        try:
            yield hold
        finally:
            hold.release()
            measure.holding = False

    def _hold(self, measure: _Measuring, ticket: int) -> None:
        numbers = np.uint32(ticket), np.uint64(HOLD_LIMIT_NS)
        self._device.launch(measure.kernels["hold_stream"], 1, 1, measure.flags_buffer, *numbers)

    def clock_mhz(self) -> float:
        """Clock cycles of a multiprocessor by the nanoseconds they took, over 20 microseconds."""
        measure = self._measure()
        kernel = measure.kernels["measure_clock"]
        self._device.launch(kernel, 1, 1, measure.cycles_and_ns, np.uint64(CLOCK_NS))
        cycles, ns = self._device.to_host(measure.cycles_and_ns).tolist()
        return 1e3 * float(cycles) / float(ns)

    def bandwidth(self) -> float:
        """The best of ten copies of 512 MiB, or of what fits a quarter of the free memory."""
        with self._device.errors_in_words():
            free, _ = self._driver.mem_get_info()
        nbytes = min(COPY_BYTES, free // 4)
        source, target = self._device.empty(nbytes, np.uint8), self._device.empty(nbytes, np.uint8)
        self._device.copy(source, target)  # the first touches the memory
        timers = [self.timer() for _ in range(COPIES)]
        for timer in timers:
            timer.start()
            self._device.copy(source, target)
            timer.stop()
        best_ms = min(timer.ms for timer in timers)
        return float(2 * nbytes / 1e6 / best_ms)


def _reset_persisting_lines() -> None:
    """Lines of the L2 cache that were marked to stay would survive a flush. PyCUDA has no call."""
    driver.library().cuCtxResetPersistingL2Cache()
