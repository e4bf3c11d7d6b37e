"""The verdict on one version of a whole program: what `cudalab run --sanitize` and `--profile` say.

The program is compiled once, for both instruments, and runs twice: first for what is wrong, and
then, if nothing is, for what it costs.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import NoReturn

from cudalab.errors import CudalabError, ExitCode
from cudalab.program.files import File, gather
from cudalab.program.observed import build, report, run, verdict
from cudalab.program.options import folders_of
from cudalab.program.toolkit.rebuild import parts_of
from cudalab.watch.changes import Fact, Version, of_compiler, of_costs, of_findings, placed
from cudalab.watch.costs import costs_of

RUN_S = 4  # a program may take so many times the limit of a launch
LOOK_S = 0.01  # between two looks at whether it has ended
MAX_PRINTED = 20_000  # bytes of what it prints


@dataclass
class ProgramWatcher:
    """Judges the versions of a CUDA program."""

    path: Path
    label: str
    kill_after: float  # seconds for a launch; a program has RUN_S times that
    _: KW_ONLY
    options: Sequence[str] = ()  # nvcc's
    arguments: Sequence[str] = ()  # the program's own
    stdin: Path | None = None  # nothing to read if there is none
    _files: Sequence[File] = field(default=(), init=False)

    def judge(self) -> Version:
        """Judge the present version."""
        try:
            program = parts_of([self.label], self.options)
            self._files = [file for part in program for file in part.files]
            library = build.library(program)
        except CudalabError as error:
            return self._refused(error)
        ran = self._run(library, detect=True)
        if ran.seen is None or ran.failed:
            return self._without_verdict(ran)
        return self._judged(library, ran)

    def headers(self) -> Sequence[Path]:
        """The files that the present version includes, as far as they can be read."""
        try:
            files = gather([self.label], folders_of(self.options))
        except CudalabError:
            files = list(self._files)
        return [Path(file.path) for file in files]

    def _judged(self, library: build.Library, ran: Ran) -> Version:
        assert ran.seen is not None
        found = verdict.judge(self.path.stem, self._files, ran.seen)
        facts = [*of_findings(found.rows), *_of_failures(found, self.label)]
        if os.WIFSIGNALED(ran.status) and found.clean:  # the instrument has seen nothing wrong
            text = "a signal ended it, outside of the kernels"
            facts.append(Fact(kind="crash", about="", text=text))
        notes = list[str]()
        right = found.clean and ran.status == 0
        if right and ran.seen.launches:
            counted = self._run(library, detect=False)
            if counted.seen is not None and not counted.failed:
                profile = report.profile_of(self.path.stem, self._files, counted.seen, None)
                facts += of_costs(costs_of(profile))
            else:
                notes.append("its accesses were not counted: that run did not end in time")
        return Version(
            f"{_ending(ran.status)}; {_found(found, ran.seen)}",
            placed(facts, self.label),
            right=right,
            observed=True,
            exit_code=_exit_code(found, ran.status),
            notes=notes,
            printed=ran.printed,
        )

    def _refused(self, error: CudalabError) -> Version:
        """A version that does not become a program."""
        lines = error.message.splitlines()
        rest = tuple(lines[1:7]) + ((error.hint,) if error.hint else ())
        refusal = Fact(kind="compile", about=error.message, text=lines[0], details=rest)
        return Version(
            "does not compile",
            placed(list(of_compiler(lines)) or [refusal], self.label),
            right=False,
            observed=False,
            exit_code=int(ExitCode.RUN_FAILED),
        )

    def _without_verdict(self, ran: Ran) -> Version:
        """A version that did not end, or of which nothing was observed."""
        limit_s = RUN_S * self.kill_after
        late = Fact(
            kind="time limit",
            about="",
            text=f"it ran for {limit_s:g} s and was ended: a loop that does not end, in the host's "
            "code perhaps. --kill-after sets a quarter of that limit.",
        )
        fact = Fact(kind="run", about=ran.failed, text=ran.failed) if ran.failed else late
        return Version(
            "does not run" if ran.failed else "does not end",
            [fact],
            right=False,
            observed=False,
            exit_code=int(ExitCode.RUN_FAILED if ran.failed else ExitCode.TIME_LIMIT),
            printed=ran.printed,
        )

    def _run(self, library: build.Library, *, detect: bool) -> Ran:
        """Run the program under an instrument, in a process group of its own."""
        with tempfile.TemporaryDirectory() as name:
            result, printed = Path(name, "result"), Path(name, "printed")
            child = os.fork()
            if child == 0:
                self._observe(library, result, printed, detect=detect)
            ended = _wait(child, RUN_S * self.kill_after)
            with printed.open("rb") as file:
                texts = _texts(file.read(MAX_PRINTED))
            if not ended or not result.exists():
                return Ran(printed=texts)
            status, seen, failed = pickle.loads(result.read_bytes())  # noqa: S301 - our own child's
            return Ran(status, seen, failed, printed=texts)

    def _observe(
        self, library: build.Library, result: Path, printed: Path, *, detect: bool
    ) -> NoReturn:
        """In a child: run the program, and store what was seen."""
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # The program reads a file and writes to another one.
            given = os.open(self.stdin or os.devnull, os.O_RDONLY)
            to = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for opened, as_ in ((given, 0), (to, 1), (to, 2)):
                os.dup2(opened, as_)
            outcome: tuple[int, run.Observed | None, str]
            try:
                status, seen = run.observe(
                    library, [self.path.stem, *self.arguments],
                    detect=detect, kill_after=self.kill_after,
                )  # fmt: skip
                outcome = status, seen, ""
            except CudalabError as error:
                outcome = 0, None, error.message
            result.write_bytes(pickle.dumps(outcome))
        except BaseException:  # noqa: BLE001 - nothing may return into the parent's frames
            sys.excepthook(*sys.exc_info())
        os._exit(0)


@dataclass(frozen=True)
class Ran:
    """One run of a program."""

    status: int = 0  # as os.wait() gives it
    seen: run.Observed | None = None  # None if it did not end
    failed: str = ""  # why it did not start
    _: KW_ONLY
    printed: Sequence[str] = ()


def _wait(child: int, limit_s: float) -> bool:
    """Wait for a child, and end its group; whether it ended by itself."""
    end = time.monotonic() + limit_s
    try:
        while time.monotonic() < end:
            if os.waitpid(child, os.WNOHANG)[0]:
                child = 0
                return True
            time.sleep(LOOK_S)
        return False
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _texts(printed: bytes) -> list[str]:
    """The lines of what a program has printed, or a line about it if it is no text."""
    try:
        text = printed.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return ["bytes that are no text"]
    return text.expandtabs().splitlines()


def _ending(status: int) -> str:
    """How a program ended."""
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit status {os.WEXITSTATUS(status)}"


def _found(found: verdict.Verdict, seen: run.Observed) -> str:
    """What the sanitizer says in a few words."""
    if found.errors:
        return f"{found.errors} finding{'s' * (found.errors > 1)}"
    if found.refused:
        return "nothing found before it was refused"
    if not seen.launches:
        return "no kernel was launched"
    partly = any(launch.examined is not None for launch in seen.launches)
    return "no race, no lost barrier, nothing out of bounds" + " as far as examined" * partly


def _of_failures(found: verdict.Verdict, label: str) -> Iterator[Fact]:
    """A fact for each failure that is not a finding of a kernel."""
    for one in found.remarks(label):
        if one.rule in (verdict.FAILED, verdict.IGNORED):
            yield Fact(
                kind=one.rule.title, about=one.text, file=one.file, line=one.line, text=one.text,
                details=(one.rule.cure,),
            )  # fmt: skip
    for text in found.refused:
        yield Fact(kind="refused", about=text, text=text)


def _exit_code(found: verdict.Verdict, status: int) -> int:
    """The exit status of `cudalab run --sanitize`."""
    if not found.clean:
        return int(ExitCode.WRONG_ANSWER)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code  # as a shell has it
