"""Notes on stderr: what a command has chosen, and what it does while the user waits.

All notes of all commands pass through here, so that `--quiet` silences every one of them.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.output.terminal import Waiting

LONG_S = 1.0  # a stage that takes no longer is not worth a line


class _Notes:
    """The state of the notes: whether there are any, and the stages that are shown now."""

    def __init__(self) -> None:
        self.quiet = False
        self.lock = threading.Lock()
        self.long: list[str] = []  # the innermost last
        self.display: Waiting | None = None

    def show(self) -> None:
        """Show the innermost stage, or nothing when the last one has ended."""
        if not self.long:
            if self.display:
                self.display.end()
            self.display = None
            return
        if self.display is None:
            from cudalab.output.terminal import Waiting  # noqa: PLC0415 - imports rich

            self.display = Waiting()
        self.display.show(self.long[-1])


_notes = _Notes()


def silence() -> None:
    """Print no more notes."""
    _notes.quiet = True


def note(text: str) -> None:
    """Print a note on stderr."""
    if not _notes.quiet and sys.stderr is not None:
        print(f"note: {text}", file=sys.stderr, flush=True)  # noqa: T201 - its only purpose


@contextmanager
def stage(what: str, *, once: bool = False) -> Iterator[None]:
    """Say what the block does if it takes more than a second: on a terminal, while it lasts.

    Elsewhere only stages that are not repeated (`once`) are worth a note.
    """
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if _notes.quiet or not (once or on_terminal):
        yield
        return
    running = True

    def begin() -> None:
        with _notes.lock:
            if not running:
                return
            if on_terminal:
                _notes.long.append(what)
                _notes.show()
            else:
                note(what)

    timer = threading.Timer(LONG_S, begin)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with _notes.lock:
            running = False
            if what in _notes.long:
                _notes.long.remove(what)
                _notes.show()
