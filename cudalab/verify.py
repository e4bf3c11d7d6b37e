"""The verdict on an answer file, given the input that it answers."""

import os

from cudalab.errors import InputError, WrongAnswer
from cudalab.formats import InputStream
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Array, Case


def verify(lab: Lab, source: InputStream, answer: InputStream, case: Case) -> Array:
    """Return the answer if it is right. WrongAnswer says what differs."""
    announced = lab.read(source, case)
    header_bytes = source.offset
    inputs = announced.load()
    try:
        got = lab.read_answer(answer, inputs, case)
    except InputError as error:
        raise WrongAnswer(error.message, hint="the answer is too short") from None
    extra = 0
    while piece := os.read(answer.fd, 1 << 20):
        extra += len(piece)
    if extra == header_bytes and _same_start(source, answer, header_bytes):
        raise WrongAnswer(
            f"{answer.name}: the header is repeated: an answer has no header, only the elements",
            hint=f"leave out the first {header_bytes} bytes",
        )
    if extra:
        raise WrongAnswer(
            f"{answer.name}: too long: expected {answer.offset:,} bytes, "
            f"got {answer.offset + extra:,}",
            hint="an answer has the elements of the result and nothing else",
        )
    difference = lab.compare(got, inputs, case)
    if difference is not None:
        raise WrongAnswer(f"{answer.name}: wrong: {difference}")
    return got


def _same_start(one: InputStream, two: InputStream, num_bytes: int) -> bool:
    """Whether two regular files begin with the same bytes; False if either is a pipe."""
    if one.size is None or two.size is None:
        return False
    return os.pread(one.fd, num_bytes, 0) == os.pread(two.fd, num_bytes, 0)
