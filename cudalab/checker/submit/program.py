"""A whole CUDA program as a submission: compiled as by `cudalab run`, then run by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cudalab.backends import emulated
from cudalab.checker.submit.submission import (
    COMPILE_LIMITS,
    Compiled,
    copy_runtimes,
    copy_sources,
    failure,
    raise_reported,
    read_json,
    unfinished,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.checker.sandbox.sandbox import Box, Limits, Outcome
    from cudalab.checker.submit.submission import Attempt, Trial
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case


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
        command = ["cudalab.checker.submit.builder", self.device, *sources]
        outcome, _ = self.sandbox.capture(self._python(box, command), box, COMPILE_LIMITS)
        if read_json(box.path, "compiled.json") is None:
            raise_reported(box.path)
            raise unfinished(outcome, "is there an endless template, or a huge array?")
        summary = self.finish()
        (box.path / "program").chmod(0o755)
        return summary

    def attempt(self, trial: Trial) -> Attempt:
        """Run with the input on stdin."""
        command = [str(self.built / "program")]
        with self.box() as box, trial.opened() as stdin:
            outcome, answer = self.sandbox.capture(command, box, trial.limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def sanitized(self, path: Path, limits: Limits) -> Outcome:
        """Run `cudalab run --sanitize` on an input; its report is on stderr."""
        sources = [str(self.built / "source" / one.name) for one in self.files]
        command = ["cudalab", "run", "--device", "cpu", "--sanitize", *sources]
        with self.box() as box, path.open("rb") as file:
            return self.sandbox.capture(self._python(box, command), box, limits, stdin=file)[0]

    def _python(self, box: Box, module: Sequence[str]) -> list[str]:
        """The command for a module of cudalab in the box, which gets the compiled runtimes."""
        cache, imports = box.path / "cache", self.sandbox.imports
        if emulated(self.device):
            copy_runtimes(cache, programs=True)
        box.extra_env |= {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": imports.path()}
        return [imports.python, "-m", *module]
