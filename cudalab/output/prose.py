"""Sentences on stdout: wrapped where a terminal ends, whole lines in a pipe."""

import os
import shutil
import sys
from textwrap import wrap

MAX_WIDTH = 80  # columns of sentences, however wide the terminal is


def is_pipe() -> bool:
    """Whether stdout is for a program or a file, which get whole lines without frames."""
    return sys.stdout is None or not (sys.stdout.isatty() or os.environ.get("COLUMNS"))


def columns() -> int:
    """The columns that sentences may take on stdout; 0 for a pipe: any number."""
    return 0 if is_pipe() else min(shutil.get_terminal_size().columns, MAX_WIDTH)


def filled(text: str, indent: int = 0, *, room: int | None = None) -> str:
    """Each line of `text` in at most `room` columns (None: those of stdout; 0: any number).

    What does not fit goes on in a new line behind `indent` spaces more than its first.
    """
    width = columns() if room is None else room
    return "\n".join("\n".join(_wrapped(line, indent, width)) for line in text.split("\n"))


def _wrapped(line: str, indent: int, width: int) -> list[str]:
    if not width or len(line) <= width:
        return [line]
    later = " " * (len(line) - len(line.lstrip()) + indent)
    return wrap(
        line, width, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
