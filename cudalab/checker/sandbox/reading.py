"""The strict reader of all that leaves a sandbox.

Whatever untrusted code has written may be a link, a pipe, a huge file, or JSON of any shape. It is
read as a regular file of limited size, and as a record with exactly the expected fields and types.
Anything else is `Unreadable`, which is the submission's failure and never the judge's.
"""

import json
import math
import os
import stat
from pathlib import Path
from typing import TypeVar

from cudalab.errors import CudalabError, InputError
from cudalab.system import records

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
