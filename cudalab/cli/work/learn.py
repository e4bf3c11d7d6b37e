"""What `learn` does: lead from step to step of the path through the course."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudalab import labs
from cudalab.cli.work.verdict import print_lines, show_passing
from cudalab.errors import ExitCode
from cudalab.learn.path import Progress, Step, find, steps, worth
from cudalab.output.prose import filled

if TYPE_CHECKING:
    from cudalab.watch.changes import Version
    from cudalab.watch.resident import Desk

KEYS = "h hint · n next · s solution · l list · q quit"


class NextError(Exception):
    """The learner goes on to the next step."""


def learn(
    *,
    step: str | None,
    folder: Path,
    as_list: bool,
    hints: int | None,
    solution: bool,
    kill_after: float,
) -> int:
    """Show what was asked for, or begin a lesson."""
    progress = Progress.read(folder)
    chosen = find(step) if step else progress.next(steps())
    if as_list:
        _list(progress)
        return ExitCode.OK
    if chosen is None:
        click.echo("All steps are done. `cudalab learn STEP` opens one again.")
        return ExitCode.OK
    if solution:
        click.echo(chosen.solution, nl=False)
        return ExitCode.OK
    if hints is not None:
        _task(chosen, progress.file(chosen))
        for number in range(hints):
            _hint(chosen, number)
        return ExitCode.OK

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from cudalab.watch.resident import Desk

        with Desk() as desk:
            # The task and one verdict, for a pipe.
            run = Lesson(chosen, progress, desk, kill_after)
            _task(chosen, run.path)
            click.echo()
            return ExitCode.OK if run.judge(stamp=False) else ExitCode.WRONG_ANSWER
    return _interactive(chosen, progress, kill_after)


def _list(progress: Progress) -> None:
    done = sum(progress.marks.get(one.name) == "done" for one in steps())
    for one in steps():
        mark = {"done": "x", "skipped": "-"}.get(progress.marks.get(one.name, ""), " ")
        click.echo(f"[{mark}] {one.number:>2} {one.text.lab:<10} {one.text.title}")
    click.echo(f"{done} of {len(steps())} done; `cudalab learn STEP` opens one")


def _task(step: Step, path: Path) -> None:
    """Print the task, on one screen."""
    head = f"Step {step.number} of {len(steps())}: {step.text.title}"
    click.echo(f"\n{click.style(head, bold=True)}\n")
    for paragraph in step.text.task.strip().split("\n\n"):
        click.echo(filled(" ".join(paragraph.split())) + "\n")
    click.echo(f"Your file: {path}")


def _hint(step: Step, number: int) -> None:
    text = " ".join(step.text.hints[number].split())
    click.echo(filled(f"Hint {number + 1} of {len(step.text.hints)}: {text}"))


def _after(step: Step) -> None:
    """Print what a solved step has shown."""
    click.echo(click.style("\nSolved.", fg="green", bold=True))
    for paragraph in step.text.after.strip().split("\n\n"):
        click.echo(filled(" ".join(paragraph.split())) + "\n")
    gain = worth(step)
    if gain:
        click.echo(filled(gain) + "\n")
    click.echo(f"A model answer: cudalab learn {step.number} --solution")


@dataclass
class Lesson:
    """A step that somebody works at."""

    step: Step
    progress: Progress
    desk: Desk
    kill_after: float
    hints: int = field(default=0, init=False)
    before: Version | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Make the file."""
        from cudalab.watch.watching import KernelWatcher

        self.path = self.progress.file(self.step)
        lab = labs.get(self.step.text.lab)
        self.watcher = KernelWatcher(
            lab, self.path, str(self.path), self.desk, options=dict(self.step.text.options),
            kill_after=self.kill_after, climbs=False,
        )  # fmt: skip

    def judge(self, *, stamp: bool) -> bool:
        """Judge the file as it is, and print the verdict; whether the step is solved."""
        from cudalab.watch.changes import lines

        show_passing("judging")
        version = self.watcher.judge()
        show_passing("")
        printed = list(lines(version, self.before))
        if [text for text, _ in printed] == ["no change"]:  # though it may be solved now
            printed = [(f"still {version.verdict}", printed[0][1])]
        print_lines(printed, time.strftime("%H:%M:%S") if stamp else "")
        self.before = version
        if self.step.solved(version):
            self.progress.mark(self.step, "done")
            _after(self.step)
            return True
        if version.right:
            print_lines([("right, but not yet the answer", "cost")], "")
            for words in self.step.missing(version):
                print_lines([(f"  {words}", "")], "")
        return False

    def key(self) -> None:
        """Do what a key says, if one was pressed."""
        if not select.select([sys.stdin], [], [], 0)[0]:
            return
        pressed = os.read(sys.stdin.fileno(), 1).decode(errors="replace").lower()
        if pressed in ("q", "\x04", ""):
            raise KeyboardInterrupt
        if pressed == "n":
            raise NextError
        if pressed == "h":
            if self.hints < len(self.step.text.hints):
                _hint(self.step, self.hints)
                self.hints += 1
            else:
                click.echo("There are no more hints; s prints the model answer.")
        elif pressed == "s":
            click.echo(self.step.solution)
        elif pressed == "l":
            _list(self.progress)


def _interactive(step: Step, progress: Progress, kill_after: float) -> int:
    """Go from step to step until the learner leaves."""
    from cudalab.watch.following import Follower
    from cudalab.watch.resident import Desk

    current: Step | None = step
    try:
        with _keys():
            while current is not None:
                with Desk() as desk:
                    run = Lesson(current, progress, desk, kill_after)
                    _task(current, run.path)
                    click.echo(click.style(KEYS, dim=True))
                    try:
                        for _text in Follower(run.path).versions(run.key):
                            if run.judge(stamp=True):
                                click.echo(click.style(KEYS, dim=True))
                    except NextError:
                        if progress.marks.get(current.name) != "done":
                            progress.mark(current, "skipped")
                following = steps()[current.number :]
                current = following[0] if following else None
    except KeyboardInterrupt:
        click.echo("Until next time: `cudalab learn` goes on here.")
        return ExitCode.OK
    click.echo("That was the last step.")
    return ExitCode.OK


@contextmanager
def _keys() -> Iterator[None]:
    """Let a key act without Enter."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
