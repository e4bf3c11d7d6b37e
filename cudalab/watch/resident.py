"""A place to judge version after version of one kernel file, by the judge of `cudalab check`.

`check` starts a worker for each submission, and `cudalab sanitize` as a program beside it. Here one
worker (worker.py) stays: Python starts and imports once, and each version costs what compiling and
running it costs. Everything else is the judge's own: the tests, the verdicts and their words.

A student's own file is judged on the student's own machine, so there is no sandbox around it. Its
code still runs in children of the worker, with the limits and the filter of system calls that
`check` has: it can end itself, but neither the worker nor the watcher.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from cudalab.backends.cpu import kernel_runtime
from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.sandbox.sandbox import Sandbox, remove
from cudalab.checker.submit import reports
from cudalab.checker.submit.kernel import MAX_FINDINGS_BYTES, TIMING_LIMITS, Kernel
from cudalab.checker.submit.program import copy_made, copy_runtime
from cudalab.checker.submit.session import Session, copy_input
from cudalab.checker.submit.submission import CRASHES, Attempt, Trial
from cudalab.checker.verdicts import OUT_OF_TIME
from cudalab.errors import KernelError
from cudalab.labs.inputs import Case
from cudalab.microscope.findings import Findings
from cudalab.microscope.sanitize import crash_row
from cudalab.system.cache import READ_ONLY
from cudalab.watch.costs import COSTS, FINDINGS, Costs

Anything = TypeVar("Anything")

NO_SANDBOX = Sandbox("none", "your own file on your own machine")
WORKER = "cudalab.watch.worker"
RUNTIMES = ("runtime-", "header-", "macros-")  # what every version needs, in the cache


@dataclass
class Desk:
    """A folder and a worker that stay while version after version is judged."""

    sandbox: Sandbox = NO_SANDBOX
    _: KW_ONLY
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _box: Box | None = field(default=None, init=False)
    session: Session | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Make the folder."""
        self._box = self._stack.enter_context(self.sandbox.box())
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker, and remove the folder."""
        if self.session is not None:
            self.session.close()
        self._stack.close()

    @property
    def box(self) -> Box:
        """The folder."""
        assert self._box is not None, "a desk is used in a `with` statement"
        return self._box

    def clear(self) -> None:
        """Remove what the version before has left; what every version needs stays."""
        for path in self.box.path.iterdir():
            if path.name not in (reports.OUT, "cache"):
                remove(path) if path.is_dir() else path.unlink()
        for folder, kept in ((reports.OUT, ()), ("cache/cudalab/cpu", RUNTIMES)):
            for path in (self.box.path / folder).glob("*"):
                if not path.name.startswith(kept or ("\0",)):
                    remove(path) if path.is_dir() else path.unlink()

    def worker(self, command: Sequence[str]) -> Session:
        """The worker; another one if it has ended."""
        if self.session is None or self.session.ended:
            if self.session is not None:
                self.session.close()
            self.session = Session(self.sandbox, self.box, command, TIMING_LIMITS)
        return self.session


@dataclass(kw_only=True)
class ResidentKernel(Kernel):
    """A version of a kernel file, compiled and run by a worker that was there before."""

    desk: Desk
    kill_after: float
    runs: int = 2  # the sanitizer's orders tell, too, whether the answer is always the same
    costs: Costs | None = field(default=None, init=False)
    _out_of_time: Attempt | None = field(default=None, init=False)

    def begin(self) -> Box:
        """The desk's box, without what the version before has left."""
        self.desk.clear()
        self._folder = self.desk.box.path
        copy_made(kernel_runtime.quick_files(), "cpu", self._folder / "cache")
        return self.desk.box

    def _spec(self, mode: str, **rest: Any) -> dict[str, Any]:
        """Threads are fibers, and hardly optimized: on small inputs compiling takes the time."""
        return super()._spec(mode, fibers=True, quick=True, **rest)

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """The desk's box: there is no other."""
        del options
        return nullcontext(self.desk.box)

    def _start(self, box: Box) -> Session:
        box.extra_env.update(self._environment())
        box.extra_env.pop(READ_ONLY, None)  # each task says whether it may write there
        return self.desk.worker([self.sandbox.imports.python, "-P", "-m", WORKER, self.lab.name])

    @contextmanager
    def _worker(self) -> Iterator[Session]:
        yield self._start(self.desk.box)

    def attempt(self, trial: Trial) -> Attempt:
        """Run as every kernel file does, but after a time limit the rest would wait in vain."""
        if self._out_of_time is not None:
            return replace(self._out_of_time, says="not run: an earlier test did not end in time")
        attempt = super().attempt(trial)
        if attempt.why in OUT_OF_TIME:
            self._out_of_time = attempt
        return attempt

    def sanitized(
        self, case: Case, limits: Limits, source: Path | None = None, *, seed: int = 0
    ) -> tuple[Outcome, Findings | None]:
        """Let the worker sanitize it, and count its costs, on small inputs or on `source`."""
        box, session = self.desk.box, self._start(self.desk.box)
        copy_runtime(box.path / "cache", check=True)
        del seed
        data = "" if source is None else str(copy_input(source, box.path / "input.bin"))
        spec = self._spec("observe", case=case, input=data, kill_after=self.kill_after)
        outcome, reply = session.work({**spec, "read_only": False}, limits)
        self.costs = _read(box.path / reports.OUT / COSTS, Costs)
        findings = _read(box.path / reports.OUT / FINDINGS, Findings)
        if findings is not None and reply is not None and reply.status < 0:
            name = signal.Signals(-reply.status)
            row = crash_row(KernelError(f"{name.name} {CRASHES.get(name, '')}".strip()), "crash")
            findings = replace(findings, clean=False, findings=[row, *findings.findings])
        return outcome, believed(findings, reply)

    def close(self) -> None:
        """Leave the desk as it is, for the next version."""


def believed(findings: Findings | None, reply: reports.Reply | None) -> Findings | None:
    """Findings that may be shown: "clean" counts only if the look has come to its end."""
    ended = reply is not None and reply.status == 0
    return findings if ended or (findings is not None and not findings.clean) else None


def _read(path: Path, kind: type[Anything]) -> Anything | None:
    """The last record that was written completely to a file with one in each line."""
    with suppress(reports.UnreadableError):
        lines = reports.read_regular(path, MAX_FINDINGS_BYTES).rpartition(b"\n")[0]
        return reports.parse_record(kind, lines.rpartition(b"\n")[2], path.name)
    return None
