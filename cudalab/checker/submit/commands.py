"""The commands that repeat a test by hand and examine it more closely."""

import shlex
import sys
from dataclasses import dataclass

from cudalab.checker.cases import Test
from cudalab.checker.submit.submission import PIPE_BYTES, Command, Submission
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case
from cudalab.labs.sizes import in_words

IN, OUT = "in.bin", "out.bin"


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Shell commands for one test of one submission."""

    make: tuple[str, ...]  # writes the input, unless the file exists already
    run: str  # writes the answer to stdout
    verify: str  # judges the answer in OUT
    sanitize: str  # looks for races and the like; empty without source code
    refuse: bool  # whether an error is right, not an answer

    def repeat(self) -> list[str]:
        """The commands that repeat the test."""
        if self.refuse:
            return [*self.make, f"{self.run} > {OUT}; echo exit status $?"]
        return [*self.make, f"{self.run} > {OUT}", self.verify]

    def fill(self, look: str) -> str:
        """A finding's command, with this test's commands for {run} and {sanitize}."""
        return look.format(run=self.run, sanitize=self.sanitize)


def of_test(lab: Lab, submission: Submission, test: Test, seed: int) -> Commands:
    """The commands for `test`, whose input was drawn with `seed`."""
    case = lab.complete(dict(test.options))
    words = shlex.join([lab.name, *lab.words(case)])
    made = lab.complete({**test.options, **test.made_with})
    made_words = shlex.join([lab.name, *lab.words(made)])
    source, make = _input(test, f"cudalab gen {made_words} {_data_options(test, seed)}")
    run = _run(submission, words)
    is_kernel = submission.variant is not None
    if test.pipe and not is_kernel:
        run = f"dd if={source} bs={PIPE_BYTES} status=none | {run}"
    else:
        run = f"{run} < {source}"
    if not is_kernel:
        observed = f"cudalab run --sanitize {shlex.join(submission.words)} < {source}"
        sanitizing = " && ".join([*make, observed]) if submission.kind == "program" else ""
    elif test.file is not None or test.cut_bytes:
        sanitizing = " && ".join([*make, sanitize(lab, submission, case, f"--data {source}")])
    else:
        data = _data_options(test, seed) if test.is_small else f"--seed {seed}"
        sanitizing = sanitize(lab, submission, case, data)
    verify = f"cudalab verify {words} {source} {OUT}"
    return Commands(make=make, run=run, verify=verify, sanitize=sanitizing, refuse=test.refuse)


def sanitize(lab: Lab, submission: Submission, case: Case, data: str) -> str:
    """`cudalab sanitize` for a kernel; `data` are the options that name or make its input."""
    words = ["cudalab", "sanitize", lab.name, *lab.words(case), *_source_option(submission)]
    return f"{shlex.join(words)} {data}"


def _source_option(submission: Submission) -> list[str]:
    """The option that names a kernel file or a variant."""
    return [f"--{submission.kind}", *submission.words]


def _data_options(test: Test, seed: int) -> str:
    words = ["--n", in_words(test.size), "--dist", test.dist, "--seed", str(seed)]
    return shlex.join(words)


def _input(test: Test, gen: str) -> tuple[str, tuple[str, ...]]:
    """The input's file, and the commands that write it."""
    cut = f"head -c -{test.cut_bytes}"
    if test.file is None:
        return IN, (f"{gen} | {cut} > {IN}" if test.cut_bytes else f"{gen} > {IN}",)
    file = shlex.quote(str(test.file))
    return (IN, (f"{cut} {file} > {IN}",)) if test.cut_bytes else (file, ())


def _run(submission: Submission, lab_words: str) -> str:
    """The command that reads the input on stdin."""
    if submission.kind == "command":
        first, *rest = submission.words
        if isinstance(submission, Command) and submission.folder and first == sys.executable:
            first = "python3"  # the grader's own is elsewhere
        return shlex.join([first, *rest])
    device = f"--device {submission.device}"
    if submission.kind == "program":
        return f"cudalab run {device} {shlex.join(submission.words)}"
    return f"cudalab {lab_words} {shlex.join(_source_option(submission))} {device}"
