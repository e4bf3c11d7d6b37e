"""Grading on several machines: Dask distributes the tasks, this process stores the results.

The tasks of a worker that dies go to another one; a submission cannot kill its worker, because it
runs in a sandbox there as well. Workers need cudalab. A worker judges one submission at a time. On
a machine with several GPUs each worker has one of its own, by dask-cuda's convention: it is the
only GPU that CUDA_VISIBLE_DEVICES shows to the worker.
"""

import io
import logging
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cudalab.checker.grading import batch, unpack
from cudalab.checker.grading.store import Store
from cudalab.checker.verdicts import Report
from cudalab.errors import CudalabError, NoDeviceError, install_command
from cudalab.system.exclusive import visible_gpus

Result = Callable[[], tuple[Report, frozenset[int]]]

TRIES = 5  # for a task that keeps losing its worker
CONNECT_S = 20
LOCAL = "local"
FEWEST_LOCAL = 2  # processes of "local" on a machine with fewer GPUs


def run(
    store: Store,
    entries: dict[str, unpack.Entry],
    task: batch.Task,
    scheduler: str,
    progress: batch.Progress,
) -> None:
    """Judge all waiting submissions on the cluster `scheduler`.

    "local:N" is N processes on this machine, "local" one for each GPU.
    """
    waiting = store.waiting()
    total, done = len(entries), len(entries) - len(waiting)
    progress("", done, total)
    with connected(scheduler) as client:
        for name, result in _results(client, store, entries, task, waiting):
            batch.take(store, name, result)
            done += 1
            progress(name, done, total)


@contextmanager
def connected(scheduler: str) -> Iterator[Any]:
    """A client of a cluster; a cluster of local processes ends with the block."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError:
        raise NoDeviceError("--scheduler needs Dask", hint=install_command("cluster")) from None
    with ExitStack() as stack:
        try:
            target: Any = scheduler
            kind, _, number = scheduler.partition(":")
            if kind == LOCAL:
                target = stack.enter_context(_local_cluster(int(number or 0)))
            client = stack.enter_context(Client(target, timeout=CONNECT_S))
        except (OSError, ValueError, RuntimeError) as error:
            raise CudalabError(
                f"no cluster at {scheduler}: {error}",
                hint="`dask scheduler` starts one, `dask worker tcp://…` adds a machine to it",
            ) from None
        yield client


def _local_cluster(workers: int) -> Any:
    """A cluster of processes on this machine, which share its GPUs; 0 is one for each GPU."""
    from distributed import Nanny, Scheduler, SpecCluster  # noqa: PLC0415 - as above

    gpus = visible_gpus()
    shown = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus] or [{}]
    here = {"host": "127.0.0.1", "dashboard": False}
    worker = {**here, "nthreads": 1, "silence_logs": logging.WARNING}
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": here},
        workers={
            number: {"cls": Nanny, "options": {**worker, "env": shown[number % len(shown)]}}
            for number in range(workers or max(FEWEST_LOCAL, len(gpus)))
        },
        silence_logs=logging.WARNING,
    )


def _results(
    client: Any,
    store: Store,
    entries: dict[str, unpack.Entry],
    task: batch.Task,
    waiting: list[str],
) -> Iterator[tuple[str, Result]]:
    """Each submission's result as it arrives; a task that kept losing its worker is a failure."""
    from distributed import as_completed  # noqa: PLC0415 - as above

    names: dict[str, str] = {}
    tries = dict.fromkeys(waiting, 0)

    def submit(name: str) -> Any:
        tries[name] += 1
        store.begin(name)
        one = replace(task, name=name, payload=packed(entries[name]))
        future = client.submit(judge_packed, one, pure=False)
        names[future.key] = name
        return future

    results = as_completed([])
    for name in waiting:
        try:
            results.add(submit(name))
        except unpack.BadSubmissionError as error:
            yield name, partial(batch.refuse, replace(task, name=name), error)
    for future in results:
        name = names.pop(future.key)
        lost = future.status == "error" and type(future.exception()).__name__ == "KilledWorker"
        if lost and tries[name] < TRIES:
            results.add(submit(name))
        else:
            yield name, future.result


def packed(entry: unpack.Entry) -> tuple[str, bytes]:
    """A submission as one file; a folder becomes an archive."""
    if not entry.path.is_dir():
        if entry.path.is_symlink() or entry.path.stat().st_size > unpack.MAX_BYTES:
            return entry.path.name, b""  # the worker refuses it
        return entry.path.name, entry.path.read_bytes()
    with tempfile.TemporaryDirectory() as name:
        source_folder = unpack.place(entry, Path(name))
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.add(source_folder, arcname=".")
        return f"{entry.path.name}.tar", buffer.getvalue()


def judge_packed(task: batch.Task) -> tuple[Report, frozenset[int]]:
    """Unpack and judge a submission, on a worker."""
    assert task.payload is not None
    file_name, data = task.payload
    with tempfile.TemporaryDirectory(prefix="cudalab-grade-") as name:
        path = Path(name, Path(file_name).name)
        path.write_bytes(data)
        return batch.judge_one(replace(task, payload=None), path)
