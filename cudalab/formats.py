"""The course's binary streams: an int32 header, then little-endian elements, and nothing else.

Input is read straight into its destination (a pinned bounce buffer or the CPU device's memory),
so pipes and regular files take the same path, and no input is held in memory twice.
Output is written once, after the last kernel has succeeded.
"""

from __future__ import annotations

import errno
import mmap
import os
import select
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.errors import CudalabError, InputError, end_by_closed_pipe

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

READ_BYTES = 1 << 26  # maximum of one read(): long enough to be cheap, short enough for Ctrl-C
_TEXT = frozenset(b"\t\n\r" + bytes(range(0x20, 0x7F)))
PIPE_BYTES = 1 << 20  # the most that Linux grants without privileges; the default, 64 KiB, is slow


class InputStream:
    """A binary input that tracks its position, so that errors can name the byte."""

    def __init__(self, fd: int, name: str = "stdin") -> None:
        """Read from the file descriptor `fd`; messages call it `name`."""
        self.fd = fd
        self.name = name
        self.offset = 0
        self._is_text = False  # the header's bytes are printable
        self._announced = 0  # bytes of the header and of all payloads announced so far
        status = os.fstat(fd)
        self.size: int | None = None  # total bytes from here on, if the file system knows
        if stat.S_ISREG(status.st_mode):
            self.size = max(status.st_size - os.lseek(fd, 0, os.SEEK_CUR), 0)
        else:
            widen_pipe(fd)

    def header(self, *names: str) -> tuple[int, ...]:
        """Read one non-negative int32 per name. InputError if truncated or negative."""
        values = self.scalars("<" + "i" * len(names), names)
        for position, (name, value) in enumerate(zip(names, values, strict=True)):
            if value < 0:
                raise InputError(
                    f"{self.name}: {name} = {value} at byte {4 * position}: must not be negative",
                    hint=f"the stream starts with {name} as a little-endian int32",
                )
        return tuple(int(value) for value in values)

    def scalars(self, layout: str, names: tuple[str, ...]) -> tuple[Any, ...]:
        """Read the values of a struct `layout`, called `names` in errors."""
        raw = bytearray(struct.calcsize(layout))
        start = self.offset
        got = self._fill(memoryview(raw))
        if got < len(raw):
            raise InputError(
                f"{self.name}: truncated header: ends at byte {start + got}, "
                f"expected {len(raw)} bytes for {', '.join(names)}",
                hint="the stream starts with a binary little-endian int32, not text",
            )
        self._is_text = all(byte in _TEXT for byte in raw)
        return struct.unpack(layout, raw)

    def payload(self, name: str, dtype: DTypeLike, *shape: int) -> Payload:
        """Announce the stream's next array; the length of a regular file is checked at once."""
        payload = Payload(self, name, np.dtype(dtype), shape)
        if self.size is not None:
            start = max(self._announced, self.offset)
            if start + payload.nbytes > self.size:
                raise self.truncated(payload, start, self.size - start)
            self._announced = start + payload.nbytes
        return payload

    def truncated(self, payload: Payload, start: int, got: int) -> InputError:
        """Describe a stream that ends `got` bytes into `payload`."""
        dimensions = " x ".join(str(d) for d in payload.shape)
        hint = "the header's count and the element type (--dtype) determine the length"
        if self._is_text:
            hint = (
                "the input looks like text: it must be binary, as `cudalab gen LAB` writes it; "
                "`cudalab LAB --help` describes it"
            )
        return InputError(
            f"{self.name}: truncated: ends at byte {start + got}, expected byte "
            f"{start + payload.nbytes}: {payload.name} is {dimensions} {payload.dtype.name}, "
            f"got {got // payload.dtype.itemsize} complete elements",
            hint=hint,
        )

    def trailing_bytes(self) -> bool:
        """Whether bytes follow the payload. Never blocks on a pipe that stays open."""
        if self.size is not None:
            return self.offset < self.size
        readable, _, _ = select.select([self.fd], [], [], 0)
        return bool(readable) and len(os.read(self.fd, 1)) > 0

    def _fill(self, view: memoryview) -> int:
        """Read until `view` is full or the stream ends; return the bytes read."""
        filled = 0
        while filled < len(view):
            try:
                got = os.readv(self.fd, [view[filled : filled + READ_BYTES]])
            except OSError as error:
                raise InputError(f"{self.name}: cannot be read: {error.strerror}") from None
            if got == 0:
                break
            filled += got
        self.offset += filled
        return filled


class Payload:
    """An array in a stream, to be read once, piece by piece."""

    def __init__(
        self, stream: InputStream, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        """Describe an array of `shape` elements of `dtype` (little-endian in the stream)."""
        self.stream = stream
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.nbytes = prod(shape) * dtype.itemsize
        self.seconds = 0.0  # spent waiting for the stream
        self._got = 0

    def readinto(self, view: memoryview) -> None:
        """Fill `view` (bytes) with the next part of the array. InputError if the stream ends."""
        began = time.perf_counter()
        start = self.stream.offset - self._got
        got = self.stream._fill(view)  # noqa: SLF001 - the two classes are one reader
        self._got += got
        self.seconds += time.perf_counter() - began
        if got < len(view):
            raise self.stream.truncated(self, start, self._got)

    def array(self) -> np.ndarray[Any, Any]:
        """Read the whole array into host memory."""
        try:
            array = np.empty(self.shape, self.dtype)
        except (MemoryError, ValueError):
            raise CudalabError(
                f"out of host memory: {self.name} needs {self.nbytes:,} bytes"
            ) from None
        if self.nbytes:
            self.readinto(as_bytes(array))
        return array

    def mapped(self) -> np.ndarray[Any, Any]:
        """The whole array; a regular file is mapped into memory instead of read."""
        stream = self.stream
        if stream.size is None or self.nbytes == 0:
            return self.array()
        mapping = mmap.mmap(stream.fd, 0, access=mmap.ACCESS_READ)
        start = os.lseek(stream.fd, self.nbytes, os.SEEK_CUR) - self.nbytes
        stream.offset += self.nbytes
        elements = self.nbytes // self.dtype.itemsize
        array: np.ndarray[Any, Any] = np.frombuffer(mapping, self.dtype, elements, start)
        return array.reshape(self.shape)


def as_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """View a C-contiguous array as bytes, empty arrays included."""
    return array.reshape(-1).view(np.uint8).data


def widen_pipe(fd: int) -> None:
    """Ask Linux for a larger pipe buffer, without effect if `fd` is not a pipe or Linux refuses."""
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415 - POSIX only

        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def write_all(fd: int, pieces: Iterable[memoryview | bytes], name: str = "stdout") -> int:
    """Write every byte and return their number.

    A closed pipe ends the process by SIGPIPE, like any Unix filter.
    """
    widen_pipe(fd)
    total = 0
    try:
        for piece in pieces:
            view = memoryview(piece)
            view = view.cast("B") if view.nbytes else view
            total += view.nbytes
            while view:
                view = view[os.write(fd, view) :]
    except OSError as error:
        if error.errno == errno.EPIPE:
            end_by_closed_pipe()
        raise CudalabError(
            f"{name}: cannot be written: {error.strerror}",
            hint="the output is incomplete: do not use it",
        ) from None
    return total


def why_unwritable(path: Path) -> str | None:
    """The reason why `path` cannot be written, as far as can be known in advance, or None."""
    folder = path.parent
    if path.is_dir():
        return "is a folder"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK) and not path.exists():
        return f"the folder {folder} is not writable"
    return None


def save(path: Path, text: str) -> None:
    """Write a text, to stdout for "-"; a file is replaced in one step, so it is always complete."""
    if str(path) == "-":
        write_all(1, [text.encode()])
        return
    with output_file(path) as fd:
        write_all(fd, [text.encode()], str(path))


@contextmanager
def output_file(path: Path) -> Iterator[int]:
    """Open `path` for writing; it appears, or is replaced, only if the block succeeds."""
    with _errors_about(path):
        target = path.resolve()
        in_place = target.exists() and not target.is_file()  # a device or a named pipe
        partial = target.parent / f".{target.name}.{os.urandom(3).hex()}.partial"
        if in_place:
            fd = os.open(target, os.O_WRONLY)
        else:
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            yield fd
        finally:
            with _errors_about(path):
                os.close(fd)
        if not in_place:
            with _errors_about(path):
                partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _errors_about(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
