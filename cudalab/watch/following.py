"""Following a file that somebody edits: which of its states on disk is a version to judge.

Editors save in three ways: they overwrite the file, write another one and rename it, or remove it
and create it anew. So the name is followed, by looking at it a few times in a second, and a state
counts once it has stayed the same between two looks. A text that cannot be complete gets longer.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

LOOK_S = 0.1  # between two looks
PATIENCE_S = 1.0  # for the rest of a text that cannot be complete
PAIRS = {"}": "{", ")": "(", "]": "["}

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass
class Follower:
    """A file, and the headers that its last version has included."""

    path: Path
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    headers: tuple[Path, ...] = ()  # the caller fills it in, for they are followed as well
    _judged: tuple[str, Stamp] | None = field(default=None, init=False)

    def versions(self, meanwhile: Callable[[], None] = lambda: None) -> Iterator[str]:
        """Each saved text, as it is saved; the first is the present one.

        `meanwhile` is called at each look, which may end this by an exception.
        """
        while True:
            text = self._next(meanwhile)
            yield text

    def _next(self, meanwhile: Callable[[], None]) -> str:
        """Wait for a version that has not been judged."""
        before, since = self._stamp(), self.clock()
        while True:
            meanwhile()
            stamp = self._stamp()
            if stamp != before or stamp[0] is None:
                before, since = stamp, self.clock()
            elif self._judged is None or stamp != self._judged[1]:
                text = self._text()
                still = self.clock() - since
                settled = still >= LOOK_S if text and is_complete(text) else still >= PATIENCE_S
                if text is not None and settled:
                    known, self._judged = self._judged, (text, self._stamp())
                    if known is None or known[0] != text or known[1][1:] != self._judged[1][1:]:
                        return text
            self.sleep(LOOK_S)

    def include(self, headers: Iterable[Path]) -> None:
        """Follow these headers from now on."""
        self.headers = tuple(path for path in headers if path != self.path)
        if self._judged is not None:
            self._judged = (self._judged[0], (self._judged[1][0], *self._stamp()[1:]))

    def _stamp(self) -> Stamp:
        """What tells one state on disk from another; None for a file that is not there."""
        return tuple(map(_stamp_of, (self.path, *self.headers)))

    def _text(self) -> str | None:
        """The text; None if the file has just gone."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def is_complete(text: str) -> bool:
    """Whether a text may be all of a file: it ends with a line, and its brackets are closed.

    Brackets in comments and strings count as well: a text that is odd for another reason is judged
    a second later.
    """
    if not text.endswith("\n"):
        return False
    counts = {letter: text.count(letter) for letter in "".join(PAIRS) + "".join(PAIRS.values())}
    return all(counts[close] >= counts[begin] for close, begin in PAIRS.items())
