"""Orders of launches on a GPU: streams, and launches that a graph repeats.

PyCUDA has no call for graphs, so the driver's library is asked directly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cudalab.backends.cuda import driver as cuda
from cudalab.errors import KernelError

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: a capture does not restrict other calls


class Orders(Protocol):
    """The part of a device that says where launches go."""

    recording: Recording | None

    def errors_in_words(self) -> AbstractContextManager[None]:
        """Turn the driver's errors inside the block into a CudalabError."""
        ...

    def change_stream(self, stream: Any) -> Any:
        """Launch in this stream of the driver from now on; returns the one before."""
        ...


class CudaStream:
    """A stream that waits for the default stream, and for which the default stream waits.

    Neither needs an event: that is how the default stream and streams without the flag
    NON_BLOCKING are ordered. In a graph, events say the same.
    """

    def __init__(self, device: Orders, stream: Any) -> None:
        self._device, self._stream = device, stream

    def __enter__(self) -> None:
        """Launch in this stream from here on."""
        if self._device.recording is not None:
            self._device.recording.fork(self._stream)
        self._outer = self._device.change_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        """Launch where launches went before."""
        self._device.change_stream(self._outer)
        if self._device.recording is not None:
            self._device.recording.leave(self._stream)


class Recording:
    """The order of launches in a graph that is being recorded."""

    def __init__(self, driver: Any, stream: Any) -> None:
        """Record what is launched in `stream`, and in the streams that begin meanwhile."""
        self._driver, self.stream = driver, stream
        self._beginning: Any = None  # of the streams that are beside each other
        self._ends: list[Any] = []  # of these streams

    def fork(self, stream: Any) -> None:
        """Let a stream begin where the streams beside it began."""
        if self._beginning is None:
            self._beginning = self._mark(self.stream)
        stream.wait_for_event(self._beginning)

    def leave(self, stream: Any) -> None:
        """Remember how far a stream is: what follows outside of streams waits for it."""
        self._ends.append(self._mark(stream))

    def join(self) -> None:
        """Wait for all streams."""
        for end in self._ends:
            self.stream.wait_for_event(end)
        self._beginning, self._ends = None, []

    def _mark(self, stream: Any) -> Any:
        event = self._driver.Event(self._driver.event_flags.DISABLE_TIMING)
        event.record(stream)
        return event


class CudaGraph:
    """Launches that are made the first time, recorded the second, and repeated from then on.

    Whoever needs them once pays for no graph; and after the first time all kernels are loaded,
    which may not happen while a graph is recorded.
    """

    def __init__(self, device: Orders, driver: Any, launches: Callable[[], None]) -> None:
        self._device, self._driver, self._launches = device, driver, launches
        self._library = cuda.library()
        self._calls = 0
        self._graph = ctypes.c_void_p()  # that can be launched

    def __call__(self) -> None:
        """Launch everything; returns before it has run."""
        self._calls += 1
        if self._calls == 1:
            self._launches()
            return
        if not self._graph:
            with self._device.errors_in_words():
                self._record()
        self._check(self._library.cuGraphLaunch(self._graph, None))

    def _record(self) -> None:
        """Turn the launches into a graph; none of them runs."""
        recorded = ctypes.c_void_p()
        stream = self._driver.Stream()
        handle = ctypes.c_void_p(stream.handle)
        self._check(self._library.cuStreamBeginCapture_v2(handle, _RELAXED))
        self._device.recording = Recording(self._driver, stream)
        outer = self._device.change_stream(stream)
        try:
            self._launches()
            self._device.recording.join()
        finally:
            self._device.change_stream(outer)
            self._device.recording = None
            status = self._library.cuStreamEndCapture(handle, ctypes.byref(recorded))
        self._check(status)
        flags = ctypes.c_ulonglong(0)
        status = self._library.cuGraphInstantiateWithFlags(
            ctypes.byref(self._graph), recorded, flags
        )
        self._library.cuGraphDestroy(recorded)
        self._check(status)

    def _check(self, status: int) -> None:
        if status:
            with self._device.errors_in_words():
                self._driver.Context.synchronize()  # a kernel that crashed has its own words
            raise KernelError(f"a CUDA graph failed: {cuda.reason(self._library, status)}")

    def __del__(self) -> None:
        """Free the graph."""
        if self._graph:
            self._library.cuGraphExecDestroy(self._graph)
