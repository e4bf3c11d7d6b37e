"""What a process in the sandbox reports: the records that it writes, and that the judge reads.

The judge believes none of it. A record explains a verdict; the answers are judged by their bytes.
Whatever untrusted code has written may be a link, a pipe, a huge file, or JSON of any shape. It is
read as a regular file of limited size, and as a record with exactly the expected fields and types.
Anything else is `UnreadableError`, which is the submission's failure and never the judge's.
"""

import json
import math
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cudalab.errors import CudalabError, InputError
from cudalab.system import records

OUT = "out"  # the only folder of a box that a kernel's runs may write to
BUILT = "built.json"  # a `Built` by the process that compiles; without an error if it succeeded
BUILDS = "builds.json"  # the builds of a whole program (views.py)
FINDINGS = "findings.json"  # the sanitizer's
ANSWER = "answer.bin"  # the last one, while times are taken
CONFINES, CONFINES_NOT = (
    "it confines kernels",
    "it cannot confine kernels",
)  # a worker's first reply
TOOLCHAIN, NO_DEVICE, KERNEL = "ToolchainError", "NoDeviceError", "KernelError"  # kinds of errors
NOT_BUILT = "NotBuiltError"  # a launch needs the kernel compiled in the other way
CONTRACT = ("CudalabError", "HeaderError")  # a plan cannot launch the kernels of the file


@dataclass(kw_only=True)
class Failure:
    """An error that was expected; empty if there was none."""

    error: str = ""  # the name of its class
    message: str = ""
    hint: str = ""


@dataclass(kw_only=True)
class Built(Failure):
    """How compiling ended, and what the compilers' views of the text show (views.py)."""

    foreign: list[str] = field(default_factory=list)
    tells: list[str] = field(default_factory=list)
    on_gpu: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Launched:
    """A launch of a kernel."""

    kernel: str
    grid: list[int]
    block: list[int]


@dataclass(kw_only=True)
class CaseReport(Failure):
    """The runs on one input."""

    answers: int = 0  # different ones; each is in a file of its own
    runs: int = 0
    overruns: list[str] = field(default_factory=list)
    changed_inputs: list[str] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)
    arguments: dict[str, list[str]] = field(default_factory=dict)  # of each kernel: types in C
    tallies: dict[str, dict[str, int]] = field(default_factory=dict)  # what its threads did
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Reply:
    """How a worker's child has ended."""

    status: int  # negative for a signal
    loaded: (
        bool  # whether the submission's code was loaded: before that, a failure is cudalab's own
    )
    peak_bytes: int


def failure_of(error: CudalabError) -> dict[str, Any]:
    """An expected error, as the fields of a `Failure`."""
    kind = type(error).__name__
    return {"error": kind, "message": error.message, "hint": error.hint or ""}


def input_name(number: int) -> str:
    """The file of an input."""
    return f"input-{number}.bin"


def answer_name(number: int, k: int) -> str:
    """The file of answer `k` to an input."""
    return f"answer-{number}-{k}.bin"


def report_name(number: int) -> str:
    """The file of the `CaseReport` on an input."""
    return f"report-{number}.json"


def unwritten_name(number: int) -> str:
    """The file with a bit for each element that no run on an input has written."""
    return f"unwritten-{number}.bin"


Record = TypeVar("Record")
MAX_RECORD_BYTES = 1 << 20


class UnreadableError(CudalabError):
    """A file that a submission may have written is missing, or not what it should be."""


def read_regular(path: Path, max_bytes: int) -> bytes:
    """The bytes of a regular file that is not too large, and not a link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise UnreadableError(f"{path.name}: cannot be read: {reason}") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            raise UnreadableError(f"{path.name}: not a file of at most {max_bytes:,} bytes")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(fd)


def read_record(kind: type[Record], path: Path) -> Record:
    """The record in a JSON file."""
    return parse_record(kind, read_regular(path, MAX_RECORD_BYTES), path.name)


def parse_record(kind: type[Record], data: bytes, name: str) -> Record:
    """The record in these bytes of JSON."""
    try:
        value = json.loads(data, parse_constant=_no_number, parse_float=_finite)
        return records.read(kind, value)
    except InputError as error:
        raise UnreadableError(f"{name}: {error.message}") from None
    except (ValueError, RecursionError):
        raise UnreadableError(f"{name}: not JSON of the expected kind") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value
