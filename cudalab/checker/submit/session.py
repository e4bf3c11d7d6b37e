"""A worker in the sandbox, as the judge sees it: one process, which forks a child for each task.

So Python starts and imports once. What a task has used, and whether it broke a limit, is reported
by the watcher; what the worker itself says is read strictly, and can only explain.
"""

import json
import os
import select
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.running import GRACE_S, Limits, Outcome
from cudalab.checker.sandbox.sandbox import Sandbox, remove, tail, without_boxes
from cudalab.checker.submit import reports

START_S = 60.0
MAX_LINE = 4096


class Session:
    """A worker that waits for tasks."""

    def __init__(self, sandbox: Sandbox, box: Box, command: Sequence[str], limits: Limits) -> None:
        """Start it; no task has larger `limits`. OSError if it does not start."""
        self.sandbox, self.box = sandbox, box
        self.out.mkdir(exist_ok=True)
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._pending = b""
        theirs, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        try:
            self._running = sandbox.start(
                command, box, limits, stdin=theirs, stdout=replies, stderr=self._messages
            )
        finally:
            os.close(theirs)
            os.close(replies)
        greeting = self.reply(START_S)
        if greeting not in (reports.CONFINES, reports.CONFINES_NOT):
            outcome = self._running.wait(START_S)
            messages = tail(self._messages)
            self.close()
            sandbox.check_started(outcome, messages)
            last = (messages.strip().splitlines() or [outcome.reason or "no message"])[-1]
            raise OSError(f"the worker could not start: {last}")
        self.confines = greeting == reports.CONFINES

    @property
    def out(self) -> Path:
        """The only folder that the tasks may write to."""
        return self.box.path / reports.OUT

    @contextmanager
    def inputs(self, paths: Sequence[Path]) -> Iterator[list[str]]:
        """Copies of inputs in the box, which all users can read."""
        copies = [self.box.path / reports.input_name(number) for number in range(len(paths))]
        try:
            yield [str(copy_input(path, copy)) for path, copy in zip(paths, copies, strict=True)]
        finally:
            for copy in copies:
                copy.unlink(missing_ok=True)

    def empty(self) -> None:
        """Remove what the tasks have written: untrusted code may have filled the folder."""
        for path in self.out.iterdir():
            if path.is_dir() and not path.is_symlink():
                remove(path)
            else:
                path.unlink(missing_ok=True)

    def work(self, spec: dict[str, Any], limits: Limits) -> tuple[Outcome, reports.Reply | None]:
        """Do a task: its outcome, and the worker's reply unless the worker has ended."""
        self.begin(spec, limits)
        return self.end(self.reply(limits.patience_s), limits)

    def begin(self, spec: dict[str, Any], limits: Limits) -> None:
        """Begin a task."""
        with suppress(OSError):
            self._messages.seek(0)
            self._messages.truncate()
        self._running.begin(self.sandbox.watched(limits))
        rlimits = limits.rlimits()
        self.send(json.dumps({**spec, "rlimits": rlimits}))

    def send(self, line: str) -> None:
        """Send the worker a line; one that has ended gets none, and will not reply."""
        with suppress(OSError):
            os.write(self._commands, f"{line}\n".encode())

    def reply(self, seconds: float) -> str:
        """The worker's next line; empty if it has ended, or says nothing for so long."""
        while b"\n" not in self._pending and len(self._pending) < MAX_LINE:
            readable, _, _ = select.select([self._replies], [], [], seconds)
            piece = os.read(self._replies, MAX_LINE) if readable else b""
            if not piece:
                return ""
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def has_reply(self) -> bool:
        """Whether the worker has said something that nobody has read."""
        return bool(self._pending or select.select([self._replies], [], [], 0)[0])

    def end(self, line: str, limits: Limits) -> tuple[Outcome, reports.Reply | None]:
        """The outcome of a task after the worker's last line about it."""
        if not line:
            self._running.cancel()  # it has ended, or it hangs
        outcome = self._running.used(GRACE_S)
        reply = None
        with suppress(reports.UnreadableError):
            reply = reports.parse_record(reports.Reply, line.encode(), "reply")
        if reply is not None and not outcome.reason:
            peak = min(max(outcome.peak_bytes, reply.peak_bytes), limits.memory_bytes)
            outcome = replace(outcome, status=reply.status, peak_bytes=peak)
        stderr = without_boxes(tail(self._messages))
        return replace(outcome, stderr=stderr), None if outcome.reason else reply

    @property
    def ended(self) -> bool:
        """Whether it has ended, so that another one is needed."""
        return self._running.has_ended

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            os.close(self._commands)
        self._running.cancel()
        self._running.wait(GRACE_S)
        with suppress(OSError):
            os.close(self._replies)
        self._messages.close()


def copy_input(path: Path, copy: Path) -> Path:
    """Copy an input so that all users can read it."""
    shutil.copyfile(path, copy)
    copy.chmod(0o644)
    return copy
