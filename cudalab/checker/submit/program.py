"""What is compiled, whatever it is, and a whole CUDA program as a submission.

A program is compiled as by `cudalab run`, then run by itself. Its runtime reads in a number of its
environment what a run is for. Every run has one, so that a program that looks around sees no
difference. include/cudalab/judged_run.h reads it.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from cudalab.backends import facts
from cudalab.backends.cpu import kernel_runtime
from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.running import Limits, Outcome, User
from cudalab.checker.sandbox.sandbox import Sandbox
from cudalab.checker.submit import foreign, reports, submission, views
from cudalab.checker.verdicts import Why
from cudalab.errors import NoDeviceError
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.microscope.findings import Findings
from cudalab.system.cache import cache_dir

COMPILE_LIMITS = Limits(seconds=120, cpu_seconds=240, memory_bytes=4 << 30, disk_bytes=512 << 20)
FINDINGS, MAX_FINDINGS_BYTES = "findings.json", 1 << 22
_LEFT_OUT = re.compile(r"^cudalab: (\d{1,18}) launches left out$", re.MULTILINE)
VARIABLE = "CUDALAB_RUN"
_FACTOR, _BITS = 0x9E3779B97F4A7C15, 64


@dataclass(kw_only=True)
class Compiled:
    """A submission that is compiled once, in a folder that all its runs share and only read."""

    sandbox: Sandbox
    device: str
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    _folder: Path | None = field(default=None, init=False, repr=False)
    _group: int | None = field(default=None, init=False, repr=False)  # that may read it; or all may
    built_as: reports.Built = field(default_factory=reports.Built, init=False, repr=False)

    @property
    def built(self) -> Path:
        assert self._folder is not None, "compile first"
        return self._folder

    def begin(self) -> Box:
        """A box to compile in, which stays until `close`."""
        if self.sandbox.own_users and not self.sandbox.bwrap:  # runs see each other's folders
            group = User.claim()
            self._stack.callback(group.release)
            self._group = group.uid
        box = self._stack.enter_context(self._box())
        self._folder = box.path
        return box

    def _box(self, *, own_code: bool = True, **options: Any) -> AbstractContextManager[Box]:
        groups = (self._group,) if self._group is not None else ()
        if own_code:
            options["groups"] = (*groups, *self.sandbox.readers)
        else:
            options |= {"groups": groups, "hidden": tuple(self.sandbox.imports.own())}
        return self.sandbox.box(gpu=facts(self.device).driver, **options)

    def finish(self) -> str:
        """Protect what was compiled, and summarise."""
        protect(self.built, self._group)
        return "compiled by nvcc" if facts(self.device).nvcc else "compiled for the CPU device"

    def box(self, **options: Any) -> AbstractContextManager[Box]:
        """A box for one run; without `own_code` it has none of cudalab's, which has the answers."""
        return self._box(readable=(self.built,), **options)

    def close(self) -> None:
        """Remove the folder."""
        self._stack.close()


def raise_reported(path: Path, folder: Path) -> reports.Built:
    """What compiling in a folder has reported in a file, unless it is a failure.

    UnreadableError if there is no report. It is believed: nothing of the submission has run yet.
    """
    built = reports.read_record(reports.Built, path)
    if built.foreign:
        raise foreign.CompileFailure(
            Why.FOREIGN,
            "\n".join(built.foreign[:3]),
            "nvcc compiles no such thing for a GPU, or it hides accesses from the sanitizer",
        )
    message, hint = built.message.replace(f"{folder}/", ""), built.hint
    if built.error == reports.NO_DEVICE:
        raise NoDeviceError(message, hint or None)
    if built.error:
        why = Why.GRADER if built.error == reports.TOOLCHAIN else Why.COMPILE
        raise foreign.CompileFailure(why, message, hint)
    return built


def unfinished(outcome: Outcome, hint: str) -> foreign.CompileFailure:
    """The failure of compiling that ended without a result and without a message."""
    broken = submission.failure(outcome)
    if (
        outcome.status == submission.PYTHON_RAISED
    ):  # in cudalab: nothing of the submission has run yet
        return foreign.CompileFailure(
            Why.GRADER, f"cudalab itself failed: {submission.last_line(outcome)}"
        )
    return foreign.CompileFailure(
        broken.why if outcome.reason else Why.COMPILE,
        f"compiling did not finish: {broken.says or 'nothing was compiled'}",
        hint,
    )


def protect(folder: Path, group: int | None = None) -> None:
    """Make the compiled and inspected files read-only for the runs, and for those of a `group`."""
    for_folder, for_file = (0o755, 0o644) if group is None else (0o750, 0o640)
    for path, folders, files in os.walk(folder):
        if reports.OUT in folders and Path(path) == folder:
            folders.remove(reports.OUT)
        for name in (*folders, *files):
            one = Path(path, name)
            if os.getuid() == 0:
                os.lchown(one, 0, group or 0)
            if not one.is_symlink():
                one.chmod(for_folder if one.is_dir() else for_file)
    if os.getuid() == 0:
        os.lchown(folder, 0, group or 0)
    folder.chmod(for_folder)


def copy_runtime(cache: Path, *, check: bool) -> None:
    """Copy cudalab's compiled schedulers, so that no box has to compile them again."""
    from cudalab.backends.cpu import kernel_runtime  # noqa: PLC0415 - not for a GPU

    copy_made(kernel_runtime.runtime_files(check=check), "cpu", cache)


def copy_made(files: Sequence[Path], kind: str, cache: Path) -> None:
    """Copy files of the user's cache, whose folder there is `kind`, to another cache."""
    for path in files:
        target = cache / "cudalab" / kind / path.relative_to(cache_dir(kind))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            continue
        try:
            shutil.copyfile(path, target)
        except OSError:
            target.unlink(missing_ok=True)
            if path.suffix != ".gch":  # large, and only saves time
                raise


# Whole programs ----------------------------------------------------------------------------------


class JudgedRun(Enum):
    """What a run is for, by the two highest bits of the mixed number."""

    AS_IT_IS = (0, 1)
    WITHOUT_KERNELS = (2,)
    WITH_OTHER_DATA = (3,)

    def environment(self) -> dict[str, str]:
        """The variable, with a new number."""
        while True:
            number = secrets.randbits(_BITS)
            if number * _FACTOR % (1 << _BITS) >> (_BITS - 2) in self.value:
                return {VARIABLE: f"{number:016x}"}


@dataclass(kw_only=True)
class Program(Compiled):
    """One or several .cu files with a main function, and the headers beside them."""

    files: Sequence[Path]
    name: str
    kind: str = "program"
    variant: Variant | None = None
    words: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Fill in the words; nothing is compiled yet."""
        self.words = self.words or [path.name for path in self.files]

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile inside the sandbox."""
        del cases
        box = self.begin()
        views.copy_sources(self.files, box.path / "source")
        sources = [path.name for path in self.files]
        if facts(self.device).on_host:
            from cudalab.program import runtime  # noqa: PLC0415 - not for a GPU

            copy_made(runtime.files(check=False), "programs", box.path / "cache")
            copies = [box.path / "source" / name for name in sources]
            copy_made(runtime.libraries(copies), "zig", box.path / "cache")
            (box.path / reports.BUILDS).write_text(
                json.dumps(views.of_programs()), encoding="utf-8"
            )
        command = ["cudalab.checker.submit.builder", self.device, *sources]
        outcome, _ = self.sandbox.capture(self._python(box, command), box, COMPILE_LIMITS)
        try:
            self.built_as = raise_reported(box.path / reports.BUILT, box.path)
        except reports.UnreadableError:
            raise unfinished(outcome, "is there an endless template, or a huge array?") from None
        summary = self.finish()
        (box.path / "program").chmod(0o755)
        return summary

    def attempt(self, trial: submission.Trial) -> submission.Attempt:
        """Run with the input on stdin."""
        return self._run(trial)

    def without_kernels(self, trial: submission.Trial) -> tuple[submission.Attempt, int]:
        """Run with every launch left out; the number of launches, if the program told it."""
        attempt = self._run(trial, JudgedRun.WITHOUT_KERNELS)
        counts = _LEFT_OUT.findall(attempt.outcome.stderr)
        return attempt, int(counts[-1]) if counts else 0

    @property
    def gets_other_data(self) -> bool:
        """Whether the runtime can give its kernels other data than the program does."""
        return facts(self.device).on_host

    def with_other_data(self, trial: submission.Trial) -> submission.Attempt:
        """Run with other data for the kernels than the program gives them."""
        return self._run(trial, JudgedRun.WITH_OTHER_DATA)

    def _run(
        self, trial: submission.Trial, run: JudgedRun = JudgedRun.AS_IT_IS
    ) -> submission.Attempt:
        command = [str(self.built / "program")]
        made = self.box(own_code=False, extra_env=run.environment())
        with made as box, trial.opened() as stdin:
            outcome, answer = self.sandbox.capture(command, box, trial.limits, stdin=stdin)
        return replace(submission.failure(outcome), answers=[answer])

    def sanitized(self, path: Path, limits: Limits) -> tuple[Outcome, Findings | None, bytes]:
        """Run `cudalab run --sanitize` on an input: its findings if there is a report, its answer.

        The report of a process that was ended is none of its own: the program may have written it.
        """
        from cudalab.program import runtime  # noqa: PLC0415 - as above

        sources = [str(self.built / "source" / one.name) for one in self.files]
        options = ["--device", "cpu", "--sanitize", "--json", FINDINGS]
        command = ["cudalab", "run", *options, *sources]
        made = self.box(extra_env=JudgedRun.AS_IT_IS.environment())
        with made as box, submission.private_copy(path) as file:
            copy_runtime(box.path / "cache", check=True)
            copy_made(runtime.files(check=True), "programs", box.path / "cache")
            copy_made(runtime.libraries(map(Path, sources)), "zig", box.path / "cache")
            box.readable += (kernel_runtime.check_runtime_library(),)  # that library names its path
            words = self._python(box, command)
            outcome, answer = self.sandbox.capture(words, box, limits, stdin=file)
            ended = outcome.reason or outcome.status is None or outcome.status < 0
            with suppress(reports.UnreadableError):
                data = reports.read_regular(box.path / FINDINGS, MAX_FINDINGS_BYTES)
                report = None if ended else reports.parse_record(Findings, data, FINDINGS)
                return outcome, report, answer
        return outcome, None, b""

    def known_names(self) -> dict[str, str]:
        """The files' names in the box, and those that their author knows."""
        folder = self.built / "source"
        names = zip(self.files, self.words, strict=True)
        return {str(folder / file.name): word for file, word in names} | {f"{folder}/": ""}

    def _python(self, box: Box, module: Sequence[str]) -> list[str]:
        """The command for a module of cudalab in the box."""
        imports = self.sandbox.imports
        cache = str(box.path / "cache")
        box.extra_env |= {"XDG_CACHE_HOME": cache, "PYTHONPATH": imports.path()}
        return [imports.python, "-P", "-m", *module]
