"""A whole CUDA program as a submission: compiled as by `cudalab run`, then run by itself."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cudalab.backends import facts
from cudalab.backends.cpu import compiler
from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.reading import UnreadableError, parse_record, read_regular
from cudalab.checker.sandbox.running import Limits, Outcome
from cudalab.checker.submit import views
from cudalab.checker.submit.judged_run import JudgedRun
from cudalab.checker.submit.reports import BUILDS, BUILT
from cudalab.checker.submit.sources import copy_sources
from cudalab.checker.submit.submission import (
    COMPILE_LIMITS,
    Attempt,
    Compiled,
    Trial,
    copy_made,
    copy_runtime,
    failure,
    private_copy,
    raise_reported,
    unfinished,
)
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.microscope.findings import Findings

FINDINGS, MAX_FINDINGS_BYTES = "findings.json", 1 << 22
_LEFT_OUT = re.compile(r"^cudalab: (\d{1,18}) launches left out$", re.MULTILINE)


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
        copy_sources(self.files, box.path / "source")
        sources = [path.name for path in self.files]
        if facts(self.device).on_host:
            from cudalab.program import runtime  # noqa: PLC0415 - not for a GPU

            copy_made(runtime.files(check=False), "programs", box.path / "cache")
            copies = [box.path / "source" / name for name in sources]
            copy_made(runtime.libraries(copies), "zig", box.path / "cache")
            (box.path / BUILDS).write_text(json.dumps(views.of_programs()), encoding="utf-8")
        command = ["cudalab.checker.submit.builder", self.device, *sources]
        outcome, _ = self.sandbox.capture(self._python(box, command), box, COMPILE_LIMITS)
        try:
            self.built_as = raise_reported(box.path / BUILT, box.path)
        except UnreadableError:
            raise unfinished(outcome, "is there an endless template, or a huge array?") from None
        summary = self.finish()
        (box.path / "program").chmod(0o755)
        return summary

    def attempt(self, trial: Trial) -> Attempt:
        """Run with the input on stdin."""
        return self._run(trial)

    def without_kernels(self, trial: Trial) -> tuple[Attempt, int]:
        """Run with every launch left out; the number of launches, if the program told it."""
        attempt = self._run(trial, JudgedRun.WITHOUT_KERNELS)
        counts = _LEFT_OUT.findall(attempt.outcome.stderr)
        return attempt, int(counts[-1]) if counts else 0

    @property
    def gets_other_data(self) -> bool:
        """Whether the runtime can give its kernels other data than the program does."""
        return facts(self.device).on_host

    def with_other_data(self, trial: Trial) -> Attempt:
        """Run with other data for the kernels than the program gives them."""
        return self._run(trial, JudgedRun.WITH_OTHER_DATA)

    def _run(self, trial: Trial, run: JudgedRun = JudgedRun.AS_IT_IS) -> Attempt:
        command = [str(self.built / "program")]
        made = self.box(own_code=False, extra_env=run.environment())
        with made as box, trial.opened() as stdin:
            outcome, answer = self.sandbox.capture(command, box, trial.limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def sanitized(self, path: Path, limits: Limits) -> tuple[Outcome, Findings | None, bytes]:
        """Run `cudalab run --sanitize` on an input: its findings if there is a report, its answer.

        The report of a process that was ended is none of its own: the program may have written it.
        """
        from cudalab.program import runtime  # noqa: PLC0415 - as above

        sources = [str(self.built / "source" / one.name) for one in self.files]
        options = ["--device", "cpu", "--sanitize", "--json", FINDINGS]
        command = ["cudalab", "run", *options, *sources]
        made = self.box(extra_env=JudgedRun.AS_IT_IS.environment())
        with made as box, private_copy(path) as file:
            copy_runtime(box.path / "cache", check=True)
            copy_made(runtime.files(check=True), "programs", box.path / "cache")
            copy_made(runtime.libraries(map(Path, sources)), "zig", box.path / "cache")
            box.readable += (compiler.check_runtime_library(),)  # that library names its path
            words = self._python(box, command)
            outcome, answer = self.sandbox.capture(words, box, limits, stdin=file)
            ended = outcome.reason or outcome.status is None or outcome.status < 0
            with suppress(UnreadableError):
                data = read_regular(box.path / FINDINGS, MAX_FINDINGS_BYTES)
                report = None if ended else parse_record(Findings, data, FINDINGS)
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
