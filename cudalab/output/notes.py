"""Notes on stderr: what a command has chosen by itself. `--quiet` silences them."""

import shutil
import sys
from contextlib import suppress

from cudalab.output.prose import filled


class _State:
    quiet = False
    occupied = False


def silence(quiet: bool) -> None:
    """Print no notes from now on, or print them again."""
    _State.quiet = quiet


def is_silent() -> bool:
    """Whether there are no notes."""
    return _State.quiet


def occupy(occupied: bool) -> None:
    """Take the terminal for a display of one's own, or leave it to others again."""
    _State.occupied = occupied


def is_free() -> bool:
    """Whether stderr is a terminal that no display has taken."""
    return sys.stderr is not None and sys.stderr.isatty() and not _State.occupied


def note(text: str) -> None:
    """Print a note."""
    say(f"note: {text}")


def say(text: str) -> None:
    """Print a line, such as the name of the method that a solver has chosen."""
    if not _State.quiet and sys.stderr is not None:
        with suppress(OSError):  # a note that a full disk does not take is no reason to fail
            print(fitted(text), file=sys.stderr, flush=True)  # noqa: T201 - its only purpose


def fitted(text: str) -> str:
    """A message for stderr: on a terminal, sentences go on in a new line between two words."""
    if sys.stderr is None or not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(
        line if line.startswith(" ") else filled(line, 2, room=width) for line in text.splitlines()
    )


def clear() -> None:
    """Remove the line that a process left on the terminal when it was killed."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
