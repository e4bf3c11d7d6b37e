"""Grading on several machines: Dask distributes the tasks, this process stores the results.

The tasks of a worker that dies go to another one; a submission cannot kill its worker, because it
runs in a sandbox there as well. Workers need cudalab, and may have GPUs, each for one check at a
time.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.checker.grading import batch, unpack
from cudalab.errors import CudalabError, NoDeviceError, install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudalab.checker.grading.store import Store
    from cudalab.checker.grading.unpack import Entry
    from cudalab.checker.verdicts import Report

    Result = Callable[[], tuple[Report, frozenset[int]]]

TRIES = 5  # for a task that keeps losing its worker
CONNECT_S = 20
LOCAL = "local"


def run(
    store: Store,
    entries: dict[str, Entry],
    task: batch.Task,
    scheduler: str,
    progress: batch.Progress,
) -> None:
    """Judge all waiting submissions on the cluster `scheduler`; "local:N" is N processes here."""
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
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra
    except ImportError:
        raise NoDeviceError("--scheduler needs Dask", hint=install_command("cluster")) from None
    with ExitStack() as stack:
        try:
            target: Any = scheduler
            if scheduler.partition(":")[0] == LOCAL:
                workers = int(scheduler.partition(":")[2] or 2)
                target = stack.enter_context(
                    LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                    )
                )
            client = stack.enter_context(Client(target, timeout=CONNECT_S))
        except (OSError, ValueError, RuntimeError) as error:
            raise CudalabError(
                f"no cluster at {scheduler}: {error}",
                hint="`dask scheduler` starts one, `dask worker tcp://…` adds a machine to it",
            ) from None
        yield client


def _results(
    client: Any, store: Store, entries: dict[str, Entry], task: batch.Task, waiting: list[str]
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


def packed(entry: Entry) -> tuple[str, bytes]:
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
