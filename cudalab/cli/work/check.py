"""What `check` does: judge a submission, and write the report in the forms that are asked for."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from cudalab.backends import choose_device, device_for
from cudalab.checker import cases, judge, outputs
from cudalab.checker.options import JudgingOptions
from cudalab.checker.platforms import results
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.checker.submit.kernel import Kernel, own_kernel
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Command
from cudalab.checker.verdicts import ANY_DEVICE, Report
from cudalab.cli import params
from cudalab.cli.work.verdict import show_passing
from cudalab.errors import HeaderError, UsageError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.predict import gpus
from cudalab.system.machine import usable_cores

DIRECTLY = "run directly, as you; `cudalab doctor` says what keeps others' files apart"


def check(lab: Lab, *, codegrade: bool, github: bool, exit_style: str, **options: Any) -> int:
    """Judge a submission, write the report, print it unless stdout is taken."""
    files = {name: options.pop(name) for name in (*results.FORMS, "sarif")}
    report, file = judged(lab, **options)
    for name, path in files.items():
        if path is None:
            continue
        if name == "sarif":
            save(path, outputs.sarif(report, file))
        else:
            save(path, results.FORMS[name](report))
    if codegrade:
        click.echo(results.codegrade(report))
    if github:
        click.echo(outputs.github(report, file), nl=False)
    if not (codegrade or github or params.is_stdout(*files.values())):
        outputs.show(report)
    return results.exit_status(report, exit_style)


def judged(lab: Lab, *, keep: Path | None, gpu: str | None, **options: Any) -> tuple[Report, str]:
    """The report, and the name of the file that was judged, if it is one."""
    judging = params.grouped(JudgingOptions, options)
    source = params.grouped(SubmissionOptions, options).completed()
    if source.count != 1:
        raise UsageError(
            "name one submission: --kernel, --program, --variant, or a command behind --",
            hint=f"`cudalab new {lab.name} my.cu` writes a kernel file to begin with",
        )
    if source.submission:
        from cudalab.checker.grading import batch  # a class's: a single file needs no archives

        path = source.submission
        task = batch.Task(
            lab=lab.name, name=path.resolve().name, kind="auto", command="", file="",
            options=options, judging=judging,
        )  # fmt: skip
        return batch.judge_one(task, path.absolute(), jobs=usable_cores())[0], ""
    box = None if source.variant else sandboxes.choose(judging.sandbox)
    if box is not None and box.kind == "none":  # who checks a single file, wrote it
        box = replace(box, words=DIRECTLY)
    if gpu and not source.kernel:
        raise UsageError("--predict is for --kernel")
    predict_on = gpus.load(gpu) if gpu else None
    settings = judging.settings(keep=keep, on_stage=show_passing, predict_on=predict_on)
    try:
        submission = make_submission(lab, source, judging, box)
    except HeaderError as error:
        if box is None:  # a variant's header: not the student's mistake
            raise
        report = judge.refused(
            lab.name, str(source.kernel), "kernel", judging.device, box, settings.seed, error
        )
    else:
        plan = cases.planned(judging, lab, submission.variant, options)
        report = judge.check(lab, submission, plan, submission.sandbox, settings)
    show_passing("")
    return report, str(source.kernel or next(iter(source.program), ""))


@dataclass(frozen=True, kw_only=True)
class SubmissionOptions:
    """The ways to name the submission to check; exactly one is used."""

    kernel: Path | None
    program: tuple[Path, ...]
    submission: Path | None
    variant: str | None
    command: tuple[str, ...]

    def completed(self) -> SubmissionOptions:
        """Return a copy in which --program has all of its files."""
        if self.program and all(word.endswith(".cu") for word in self.command):
            # The shell expands `--program *.cu` to one file of the option and words after it.
            return replace(self, program=(*self.program, *map(Path, self.command)), command=())
        return self

    @property
    def count(self) -> int:
        """Number of submissions that are named."""
        named = (self.kernel, self.program, self.submission, self.variant, self.command)
        return sum(map(bool, named))


def make_submission(
    lab: Lab, source: SubmissionOptions, judging: JudgingOptions, box: sandboxes.Sandbox | None
) -> Kernel | Program | Command:
    """Make the submission; `box` is the sandbox, which only our own variants do without."""
    if source.variant:
        variant = registry.find(lab, source.variant)
        return own_kernel(lab, variant, choose_device(judging.device), judging.threads)
    assert box is not None
    if source.kernel:
        return Kernel(
            lab=lab,
            path=source.kernel,
            sandbox=box,
            device=choose_device(judging.device),
            label=str(source.kernel),
            threads=judging.threads,
        )
    if source.program:
        files = [path for one in source.program for path in program_files(one)]
        name, words = " ".join(map(str, source.program)), [str(path) for path in files]
        return Program(
            files=files, sandbox=box, name=name, device=device_for(judging.device), words=words
        )
    return Command(
        source.command,
        box,
        name=shlex.join(source.command),
        readable=visible(source.command),
        hidden=tuple(path.absolute() for path in (judging.tests,) if path),
        device=ANY_DEVICE if judging.device == "auto" else judging.device,
    )


def program_files(path: Path) -> list[Path]:
    """The source file, or all source files in the folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.cu"))
    if not files:
        raise UsageError(f"{path}: there is no .cu file in this folder")
    return files


def visible(command: tuple[str, ...]) -> tuple[Path, ...]:
    """The paths that a command may read: its own, and the current folder unless home is in it."""
    here = Path.cwd()
    named = tuple(Path(word).absolute() for word in command if Path(word).exists())
    if here == Path("/") or Path.home().is_relative_to(here):
        return named
    return (here, *named)
