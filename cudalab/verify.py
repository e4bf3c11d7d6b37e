"""Judging an answer file against the input it answers."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.errors import InputError, WrongAnswer
from cudalab.labs.base import Inputs

if TYPE_CHECKING:
    from cudalab.formats import InputStream, Payload
    from cudalab.labs.base import Array, Case, Lab


def verify(lab: Lab, source: InputStream, answer: InputStream, case: Case) -> Array:
    """Return the answer when it is right. WrongAnswer tells what differs."""
    announced = lab.read(source, case)
    header_bytes = source.offset
    arrays = {name: in_memory(data) for name, data in announced.arrays.items()}
    inputs = Inputs({**arrays}, announced.params)
    try:
        got = lab.read_answer(answer, inputs, case)
    except InputError as error:
        raise WrongAnswer(error.message, hint="the answer is shorter than it must be") from None
    extra = _bytes_left(answer.fd)
    if extra == header_bytes and _same_start(source, answer, header_bytes):
        raise WrongAnswer(
            f"{answer.name}: the header is repeated: an answer is the elements alone",
            hint=f"leave out the first {header_bytes} bytes",
        )
    if extra:
        raise WrongAnswer(
            f"{answer.name}: too long: expected {answer.offset:,} bytes, "
            f"got {answer.offset + extra:,}",
            hint="an answer is the elements of the result and nothing else",
        )
    found = lab.compare(got, inputs, case)
    if found is not None:
        raise WrongAnswer(f"{answer.name}: wrong: {found}")
    return got


def in_memory(data: Array | Payload) -> Array:
    """The array itself; one that is still in a regular file is mapped, not read."""
    if isinstance(data, np.ndarray):
        return data
    stream = data.stream
    if stream.size is None or data.nbytes == 0:
        return data.array()
    mapping = mmap.mmap(stream.fd, 0, access=mmap.ACCESS_READ)
    start = os.lseek(stream.fd, data.nbytes, os.SEEK_CUR) - data.nbytes
    stream.offset += data.nbytes
    array: np.ndarray[Any, Any] = np.frombuffer(
        mapping, data.dtype, data.nbytes // data.dtype.itemsize, start
    )
    return array.reshape(data.shape)


def _same_start(one: InputStream, two: InputStream, num_bytes: int) -> bool:
    """Whether two regular files begin with the same bytes; of a pipe nobody knows."""
    if one.size is None or two.size is None:
        return False
    return os.pread(one.fd, num_bytes, 0) == os.pread(two.fd, num_bytes, 0)


def _bytes_left(fd: int) -> int:
    total = 0
    while piece := os.read(fd, 1 << 20):
        total += len(piece)
    return total
