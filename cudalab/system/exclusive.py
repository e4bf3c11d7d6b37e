"""A lock for one measurement at a time on a GPU, and the other processes that use the GPU."""

import csv
import fcntl
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cudalab.errors import CudalabError

QUERY_SECONDS = 10.0
ENDING_S = 3.0  # for which some systems keep the lock of a process that has ended


class BusyError(CudalabError):
    """Another measurement is running on the same device."""


@contextmanager
def alone(gpu: str) -> Iterator[None]:
    """Hold the lock of `gpu` during the block. BusyError names the process that holds it.

    The lock is released when the process ends, however it ends; the file stays. Where the holder
    has ended already, the system is given a moment to release it.
    """
    name = re.sub(r"[^\w.-]+", "-", gpu)
    path = Path(tempfile.gettempdir()) / f"cudalab-bench-{name}.lock"
    fd = _open(path)
    try:
        until = time.monotonic() + ENDING_S
        while not (locked := _try_lock(fd)) and _has_ended(_holder(fd)):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        if not locked:
            holder = _holder(fd)
            raise BusyError(
                f"another cudalab is measuring on GPU {gpu}"
                + (f" (process {holder})" if holder else ""),
                hint="two measurements would slow each other down: wait for the other one, or use "
                f"--device cpu; the lock is {path}",
            )
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        except OSError:  # another user's file: the lock holds, but has no process number
            pass
        yield
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """Open the lock file; another user's file can be locked, but not written."""
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        fd = os.open(path, os.O_RDONLY)
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(fd: int) -> str:
    """The number of the process that holds the lock, or nothing if it could not be written."""
    return os.pread(fd, 32, 0).decode("ascii", "replace").strip()


def _has_ended(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OSError):
        pass
    return False


def visible_gpu() -> str:
    """The UUID of the GPU that will be used, or its number if nvidia-smi is not available.

    Empty if all are hidden.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first in ("", "-1"):
        return ""
    answer = _query(first, "--query-gpu=uuid")
    return answer[0][0] if answer else first


def visible_gpus() -> list[str]:
    """The GPUs that a program may use, named as in CUDA_VISIBLE_DEVICES."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        return [gpu.strip() for gpu in shown.split(",") if gpu.strip() not in ("", "-1")]
    return [row[0] for row in _query(None, "--query-gpu=uuid")]


def other_processes(gpu: str) -> list[str]:
    """Other processes that compute on `gpu`; empty if nvidia-smi is not available."""
    rows = _query(gpu, "--query-compute-apps=pid,process_name")
    own = str(os.getpid())
    return [f"{Path(row[1]).name} ({row[0]})" for row in rows if len(row) == 2 and row[0] != own]


def _query(gpu: str | None, query: str) -> list[list[str]]:
    """The rows that nvidia-smi prints of one GPU, or of all; none if it is missing or fails."""
    selected = ["-i", gpu] if gpu else []
    command = ["nvidia-smi", *selected, query, "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=QUERY_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = csv.reader(done.stdout.splitlines(), skipinitialspace=True)
    return [[cell.strip() for cell in row] for row in rows if row]
