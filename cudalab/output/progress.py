"""What a command does while the user waits: a line on the terminal, with a clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cudalab.output import notes

if TYPE_CHECKING:
    from cudalab.output.live import Waiting

LONG_S = 1.0  # a stage that takes no longer is not worth a line


class _Line:
    """The line on the terminal, while there is a stage that takes long."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stages: list[Stage] = []  # the innermost last
        self.display: Waiting | None = None

    def show(self) -> None:
        """Show the innermost stage; remove the line if there is none."""
        from cudalab.output import live  # noqa: PLC0415 - imports rich

        if self.stages:
            self.display = self.display or live.Waiting()
            self.display.show(self.stages[-1].words)
        elif self.display:
            self.display.end()
            self.display = None


_line = _Line()


class Stage:
    """What a block does, and how far it has come."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.far = ""
        self._first: tuple[int, float] | None = None  # how much was done at first, and when

    @property
    def words(self) -> str:
        """The line: "compiling the runtime: 3 of 12 parts"."""
        return f"{self.what}: {self.far}" if self.far else self.what

    def reach(self, done: int, total: int, of: str) -> None:
        """Say how much of it is done, and how many seconds the rest will take."""
        left, now = "", time.monotonic()
        before, began = self._first = self._first or (done, now)
        took = now - began
        if before < done < total and took >= LONG_S:  # two may end at once
            left = f", about {took / (done - before) * (total - done):.0f} s left"
        with _line.lock:
            self.far = f"{done} of {total} {of}{left}"
            if self in _line.stages:
                _line.show()


@contextmanager
def stage(what: str, *, once: bool = False) -> Iterator[Stage]:
    """Say what the block does if it takes more than a second: on a terminal, while it lasts.

    Elsewhere only a stage that is not repeated (`once`) is worth a note.
    """
    this = Stage(what)
    on_terminal = notes.is_free()
    if notes.is_silent() or not (once or on_terminal):
        yield this
        return
    running = True

    def begin() -> None:
        with _line.lock:
            if running and on_terminal:
                _line.stages.append(this)
                _line.show()
            elif running:
                notes.note(what)

    timer = threading.Timer(LONG_S, begin)
    timer.daemon = True
    timer.start()
    try:
        yield this
    finally:
        timer.cancel()
        with _line.lock:
            running = False
            if this in _line.stages:
                _line.stages.remove(this)
                _line.show()
