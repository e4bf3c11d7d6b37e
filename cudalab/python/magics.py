"""IPython's magics: `%cudalab` runs any command, `%%cu` the CUDA code of a cell.

They work wherever IPython does. Each command has a process of its own, so a kernel that crashes
leaves the notebook as it was, and interrupting the cell ends the command.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import IO, Any

from cudalab import labs
from cudalab.errors import CudalabError, ExitCode, UsageError, nearest
from cudalab.python.command import COMMAND, Page

# The commands that can write a page, and their options that name files; the first one's is a page.
PAGES = {"profile": ("--html", "--json"), "report": ("--output", "-o")}
_SHOWN_FILE = re.compile(r"[^\s'\"<>|=]+\.(?:html|png|svg)\b")


class CellFailed(CudalabError):  # noqa: N818 - the command's own words are above it
    """A cell's command did not succeed. A notebook shows the message, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [self.message]


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to IPython's `shell`: this is what `%load_ext cudalab` calls."""
    shell.register_magic_function(_brief(command), "line", "cudalab")
    shell.register_magic_function(_brief(cell), "cell", "cu")


def _brief(magic: Callable[..., None]) -> Callable[..., None]:
    """The magic with its errors turned into a CellFailed."""

    @wraps(magic)
    def run(*arguments: str) -> None:
        try:
            magic(*arguments)
        except CellFailed:
            raise
        except CudalabError as error:
            hint = f"\nHint: {error.hint}" if error.hint else ""
            raise CellFailed(f"Error: {error.message}{hint}") from None

    return run


def command(line: str) -> None:
    """Run a command: %cudalab COMMAND OPTIONS. The shell reads the line, so <, > and | work.

    `profile` and `report` show their page, and so does a line that names a file of HTML, PNG or SVG
    which the command writes.
    """
    name, _, rest = line.strip().partition(" ")
    program, began = shlex.join(COMMAND), time.time()
    options = PAGES.get(name)
    if options and not any(word.startswith(options) for word in rest.split()):
        with TemporaryDirectory(prefix="cudalab-") as folder:
            page = Path(folder, "page.html")
            written = f"{options[0]} {shlex.quote(str(page))}"
            status, text = stream(f"{program} {name} {written} {rest}", echo=False)
            if page.exists():
                _display(page, text or f"(a page; {options[0]} FILE.html keeps it)")
            else:
                sys.stdout.write(text)
    else:
        status, _ = stream(f"{program} {line}")
        for path in map(Path, dict.fromkeys(_SHOWN_FILE.findall(rest))):
            if path.is_file() and path.stat().st_mtime >= began:
                _display(path, str(path))
    if status != ExitCode.OK:
        meaning = {int(code): f": {code.meaning}" for code in ExitCode}.get(status, "")
        if name == "run":  # another status is the program's own
            meaning = ": the program was not run" if status == ExitCode.RUN_FAILED else ""
        raise CellFailed(f"exit status {status}{meaning}")


def cell(line: str, code: str) -> None:
    """Run the cell: %%cu [--file FILE.cu] [--stdin FILE] [OPTIONS OF cudalab run] [-- ARGUMENTS].

    Or judge it as a kernel of a lab: %%cu LAB [--file FILE.cu] [--n SIZE] [OPTIONS]; --profile,
    --sanitize or --bench does that with it instead. The cell is stored as cell.cu, unless --file
    names another file.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%cu {line}: {error}") from None
    file = _take(words, "--file") or "cell.cu"
    stdin = _take(words, "--stdin")
    # An empty first line, in the place of the magic: messages name the lines of the cell.
    Path(file).write_text(f"\n{code}", encoding="utf-8")
    if words and not words[0].startswith("-"):
        _judge(words[0], file, words[1:])
        return
    at = words.index("--") if "--" in words else len(words)
    program = shlex.join(["run", *words[:at], file, *words[at:]])
    command(f"{program} < {shlex.quote(stdin)}" if stdin else program)


def _judge(lab: str, file: str, words: list[str]) -> None:
    """Check, profile, sanitize or measure a kernel of `lab`."""
    if lab not in labs.names():
        raise UsageError(f"there is no lab '{lab}'", hint=nearest(lab, labs.names()))
    subject = [lab, "--kernel", file]
    for name in ("profile", "sanitize", "bench"):
        if f"--{name}" in words:
            words.remove(f"--{name}")
            command(shlex.join([name, *subject, *words]))
            return
    size = _take(words, "--n")
    with TemporaryDirectory(prefix="cudalab-") as folder:
        tests = ["--quick"]
        if size:
            path = Path(folder, "cell.toml")
            path.write_text(f'[[test]]\nname = "n = {size}"\nn = "{size}"\n', encoding="utf-8")
            tests = ["--tests", str(path)]
        command(shlex.join(["check", *subject, "--no-time", *tests, *words]))


def _take(words: list[str], option: str) -> str | None:
    """Remove an option and its value from the words before `--`; return the value."""
    own = words[: words.index("--")] if "--" in words else words
    if option not in own:
        return None
    at = own.index(option)
    if at + 1 == len(own):
        raise UsageError(f"{option} needs a value")
    del words[at]
    return words.pop(at)


def _display(path: Path, text: str) -> None:
    """Show a page or a picture; a terminal shows `text`."""
    from IPython import display  # noqa: PLC0415 - IPython calls this, so it is there

    show: Callable[[object], None] = display.display
    if path.suffix == ".html":
        show(Page(text, path.read_text(encoding="utf-8")))
    else:
        show({".png": display.Image, ".svg": display.SVG}[path.suffix](filename=str(path)))


GRACE_S = 5.0  # for an interrupted command to end by itself


def stream(line: str, *, echo: bool = True) -> tuple[int, str]:
    """Run a line of shell to its end; return its exit status and its stdout.

    What it writes on stderr is printed, and stdout too if `echo` is set; bytes that are no text are
    counted instead.
    """
    # The PATH on which a pipe's second `cudalab` is this one.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with subprocess.Popen(  # noqa: S602 - the user's own line, as after !
        line,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that all of a pipeline can be interrupted
        env={**os.environ, "PATH": path},
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        # A notebook finds the cell to which a thread's output belongs by the thread's context.
        errors = Thread(target=copy_context().run, args=(_pass_on, child.stderr, sys.stderr))
        errors.start()
        try:
            text = _pass_on(child.stdout, sys.stdout if echo else None)
            status = child.wait()
        except BaseException:
            # Interrupt the command as Ctrl-C does; kill what does not end.
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(GRACE_S)
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            errors.join()
        return status, text


def _pass_on(source: IO[bytes], target: IO[str] | None) -> str:
    """Write each line when it is complete; return all of them."""
    lines, num_bytes, binary = [], 0, False
    for line in source:
        num_bytes += len(line)
        text = None if binary else _text(line)
        if text is None:
            binary = True
            continue
        lines.append(text)
        if target:
            target.write(text)
    if binary and target:
        target.write(f"({num_bytes:,} bytes that are no text: redirect them with > FILE)\n")
    return "".join(lines)


def _text(line: bytes) -> str | None:
    """The line as text; None if it is none."""
    try:
        return None if b"\0" in line else line.decode()
    except UnicodeDecodeError:
        return None
