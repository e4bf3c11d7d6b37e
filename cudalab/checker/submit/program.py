"""A whole CUDA program as a submission: compiled as by `cudalab run`, then run by itself."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

from cudalab.backends import emulated
from cudalab.checker.submit.submission import (
    COMPILE_LIMITS,
    CompileFailure,
    blame,
    copy_runtimes,
    copy_sources,
    failure,
    protect,
    read_json,
    slow_pipe,
    worker_failure,
)
from cudalab.checker.verdicts import Why
from cudalab.errors import NoDeviceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.checker.sandbox.sandbox import Limits, Outcome, Sandbox
    from cudalab.checker.submit.submission import Attempt
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case

NO_COMPILER = "NoDeviceError"


@dataclass
class Program:
    """One or several .cu files with a main function, and the headers beside them."""

    files: Sequence[Path]
    sandbox: Sandbox
    name: str
    device: str
    _: KW_ONLY
    kind: str = "program"
    variant: Variant | None = None
    words: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Fill in the words; nothing is compiled yet."""
        self.words = self.words or [path.name for path in self.files]
        self._stack = ExitStack()
        self._built: Path | None = None

    def compile(self, cases: Sequence[Case]) -> str:
        """Compile inside the sandbox."""
        del cases
        box = self._stack.enter_context(self.sandbox.box(gpu=not emulated(self.device)))
        copy_sources(self.files, box.path / "source")
        cache = box.path / "cache"
        if emulated(self.device):
            copy_runtimes(cache, programs=True)
        imports = self.sandbox.imports
        box.extra_env |= {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": imports.path()}
        sources = [path.name for path in self.files]
        command = [imports.python, "-m", "cudalab.checker.submit.builder", self.device, *sources]
        outcome, _ = self.sandbox.capture(command, box, COMPILE_LIMITS)
        if read_json(box.path, "compiled.json") is None:
            self._not_compiled(read_json(box.path, "failed.json"), worker_failure(outcome))
        protect(box.path)
        (box.path / "program").chmod(0o755)
        self._built = box.path
        return "compiled for the CPU device" if emulated(self.device) else "compiled by nvcc"

    def attempt(
        self,
        case: Case,
        path: Path,
        limits: Limits,
        *,
        pipe: bool = False,
        second: Path | None = None,
    ) -> Attempt:
        """Run with the input on stdin."""
        del case, second
        assert self._built is not None, "compile first"
        with ExitStack() as stack:
            box = stack.enter_context(
                self.sandbox.box(readable=(self._built,), gpu=not emulated(self.device))
            )
            file = path.open("rb")  # the stack closes it
            stack.callback(file.close)
            stdin = stack.enter_context(slow_pipe(path)) if pipe else file.fileno()
            command = [str(self._built / "program")]
            outcome, answer = self.sandbox.capture(command, box, limits, stdin=stdin)
        return replace(failure(outcome), answers=[answer])

    def sanitized(self, path: Path, limits: Limits) -> Outcome:
        """Run `cudalab run --sanitize` on an input; its report is on stderr."""
        assert self._built is not None, "compile first"
        with self.sandbox.box(readable=(self._built,)) as box, path.open("rb") as file:
            cache = box.path / "cache"
            copy_runtimes(cache, programs=True)
            imports = self.sandbox.imports
            box.extra_env |= {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": imports.path()}
            sources = [str(self._built / "source" / one.name) for one in self.files]
            command = [imports.python, "-m", "cudalab", "run", "--device", "cpu", "--sanitize"]
            return self.sandbox.capture([*command, *sources], box, limits, stdin=file)[0]

    def close(self) -> None:
        """Remove the compiled program."""
        self._stack.close()

    def _not_compiled(self, failed: dict[str, str] | None, broken: Attempt) -> None:
        if failed is not None and failed.get("error") == NO_COMPILER:
            raise NoDeviceError(str(failed.get("message")), str(failed.get("hint") or "") or None)
        if failed is not None:
            raise CompileFailure(
                blame(failed), str(failed.get("message")), str(failed.get("hint") or "")
            )
        graders = broken.outcome.reason or broken.why is Why.GRADER
        raise CompileFailure(
            broken.why if graders else Why.COMPILE,
            f"compiling did not finish: {broken.says or 'nothing was compiled'}",
            "is there an endless template, or a huge array?",
        )
