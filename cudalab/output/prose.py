"""Sentences and commands on stdout: wrapped where a terminal ends, whole lines in a pipe."""

import os
import re
import shutil
import sys
from textwrap import wrap

_OPTION = re.compile(r" (?=-|[<>|] )")
MAX_WIDTH = 80  # columns of sentences, however wide the terminal is


def counted(number: int, one: str, many: str = "") -> str:
    """So many of what `one` names: "1 byte", "1,000 bytes"; `many` where an s is not all."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


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


def continued(command: str, width: int) -> str:
    """A command in lines that end in a backslash, broken in front of its options and files."""
    indent = " " * (len(command) - len(command.lstrip()) + 4)
    words: list[str] = []
    for word in _OPTION.split(command):
        if words and words[-1].count("'") % 2:
            words[-1] += f" {word}"  # it is quoted
        else:
            words.append(word)
    lines = words[:1]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return " \\\n".join(lines)
