"""The command in a process of its own, where a kernel may crash or hang, and what it reports."""

import logging
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from cudalab import errors

# -P: a folder named cudalab in the current one is not the package.
COMMAND = [sys.executable, "-P", "-m", "cudalab"]

_ERRORS: dict[int, type[errors.CudalabError]] = {
    error.exit_code: error
    for error in (
        errors.UsageError,
        errors.NoDeviceError,
        errors.KernelCompileError,
        errors.TimeLimitError,
    )
}
_ERROR = re.compile(r"^Error: (?P<message>.*?)(?:^Hint: (?P<hint>.*))?\Z", re.MULTILINE | re.DOTALL)
_INVALID = re.compile(r"^Invalid value for '--(?P<option>\w+)': ")

_log = logging.getLogger("cudalab")


def call(*words: str) -> str:
    """Run `cudalab WORDS` and return its stdout. Raises the command's error if it fails."""
    done = finished(*words)
    if done.returncode != errors.ExitCode.OK:
        raise error_of(done.returncode, done.stderr)
    return done.stdout


def finished(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `cudalab WORDS` to its end; its notes are logged if it succeeds."""
    done = subprocess.run(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode == errors.ExitCode.OK:
        for note in done.stderr.splitlines():
            _log.info(note)
    return done


def without_folder(text: str, folder: str | Path) -> str:
    """The text with the files of a temporary folder called by their names alone."""
    return text.replace(f"{folder}{os.sep}", "")


def error_of(status: int, stderr: str) -> errors.CudalabError:
    """The error that a command reported by its exit status and on stderr."""
    reported = _ERROR.search(stderr)
    if reported is None:
        return errors.CudalabError(f"the command ended with status {status}: {stderr.strip()}")
    kind, hint = _ERRORS.get(status, errors.CudalabError), reported["hint"]
    message = _INVALID.sub(r"\g<option>: ", reported["message"].strip())
    return kind(message, hint.strip() if hint else None)


HEIGHT_PX = 640


@dataclass(frozen=True, repr=False)
class Page:
    """The same report twice; whoever displays it takes the form that suits it."""

    text: str
    html: str  # a whole document

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text, for the prompt of a terminal."""
        return self.text

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style and the notebook's stay apart."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{HEIGHT_PX}" '
            'style="border: 0"></iframe>'
        )
