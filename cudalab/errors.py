"""The errors that a user can cause, the exit status of each, and how messages say what to do."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Self

_ROOT = Path(__file__).parents[1]  # the clone's folder, or the one that packages are installed in


class ExitCode(IntEnum):
    """The process's exit status; scripts and graders rely on these numbers."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Make a member that is an int with a meaning."""
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    OK = 0, "the answer is complete"
    ERROR = 1, "bad input, out of memory, or a kernel that crashed"
    USAGE = 2, "wrong command line"
    WRONG_ANSWER = 3, "the verdict is negative: a wrong answer, kernel or speed"
    NO_DEVICE = 4, "no such device, no compiler, or a feature that the device lacks"
    COMPILE_ERROR = 5, "the compiler rejected a kernel"
    TIME_LIMIT = 6, "ended by `--kill-after`"
    RUN_FAILED = 125, "`run` could not start the program; otherwise the program's own status"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"

    @classmethod
    def of_all(cls, codes: Iterable[int]) -> int:
        """The status of several pieces of work: a wrong answer first, then a failure."""
        codes = set(codes)
        return cls.WRONG_ANSWER if cls.WRONG_ANSWER in codes else max(codes, default=cls.OK)


class CudalabError(Exception):
    """A failure with a `message` (what, where, expected and got) and a `hint` (what to do next)."""

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(CudalabError):
    """The bytes on stdin do not follow the lab's format."""


class KernelError(CudalabError):
    """A kernel failed while running: a crash, a deadlock, a divergent barrier."""


class DeviceMemoryError(CudalabError):
    """An allocation did not fit in the device's memory."""


class HeaderError(CudalabError):
    """A variant's header is missing, malformed or contradicts another's."""


class UsageError(CudalabError):
    """The command line asks for something that does not exist."""

    exit_code = ExitCode.USAGE


class WrongAnswer(CudalabError):  # noqa: N818 - a verdict, not a malfunction
    """A result differs from the reference."""

    exit_code = ExitCode.WRONG_ANSWER


class NoDeviceError(CudalabError):
    """The device, its compiler or a feature that the variant requires is missing."""

    exit_code = ExitCode.NO_DEVICE


class KernelCompileError(CudalabError):
    """The compiler rejected a kernel's source; the message names its file and line."""

    exit_code = ExitCode.COMPILE_ERROR


class ToolchainError(CudalabError):
    """Compilation failed through no fault of a kernel: a full disk, a broken compiler."""


class NotBuiltError(CudalabError):
    """A kernel would have to be compiled where nothing may be compiled any more."""


class TimeLimitError(CudalabError):
    """A worker was ended by `--kill-after`."""

    exit_code = ExitCode.TIME_LIMIT


def end_by_closed_pipe() -> None:
    """End this process by SIGPIPE, like any Unix filter; Python ignores the signal by default."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known names that begin with `name` or are closest to it, or list all."""
    from difflib import SequenceMatcher, get_close_matches  # noqa: PLC0415 - only errors need it

    names = list(known)
    near = [one for one in names if len(name) > 2 and one.startswith(name)]
    if not 0 < len(near) <= 3:
        # A name of three letters is half of many others: `gpu` of `cpu`.
        close = get_close_matches(name, names, n=3, cutoff=0.6 if len(name) > 3 else 0.7)
        likeness = {one: SequenceMatcher(None, one, name).ratio() for one in close}
        near = [one for one in close if likeness[one] >= likeness[close[0]] - 0.25]
    return f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(names)}"


def install_command(*extras: str) -> str:
    """The command that adds extras to this Python: `pip install -e '.[plot]'` in a clone."""
    names = f"[{','.join(extras)}]"
    is_clone = (_ROOT / "pyproject.toml").is_file()
    folder = "." if _is_here() else str(_ROOT)
    what = f"-e {shlex.quote(folder + names)}" if is_clone else shlex.quote("cudalab" + names)
    return f"{_pip()} install {what}"


def _pip() -> str:
    """The pip of this Python: by its path unless it is the one that the shell takes."""
    own = Path(sys.executable).with_name("pip")
    if not own.is_file() or shutil.which("pip") == str(own):
        return "pip"
    if _is_here() and own.is_relative_to(_ROOT):
        own = own.relative_to(_ROOT)
    return shlex.quote(str(own))


def _is_here() -> bool:
    """Whether the shell is in the clone's own folder."""
    return _ROOT.samefile(Path())
