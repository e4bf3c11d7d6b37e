"""The steps of the path, as the folder `steps` describes them: one folder for each.

`step.toml` has the texts and the goal, `start.cu` is what a learner begins with, `solution.cu` one
answer. A goal is a right kernel that has none of some costs, or whose counts are small enough. What
a learner has done is in a text file in the learner's own folder, a line for each step.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cudalab.errors import CudalabError, UsageError, nearest
from cudalab.system import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudalab.watch.changes import Fact, Version


FOLDER = Path(__file__).parent / "steps"
GAINS = Path(__file__).with_name("gains.json")


@dataclass(kw_only=True)
class Text:
    """What `step.toml` holds."""

    title: str
    lab: str
    start_fails: (
        str  # the kind of fact, or the name of the count, that keeps the start from passing
    )
    task: str
    hints: list[str]
    after: str  # why it works, and what it is worth
    rung: str = ""  # of the lab's ladder: what the step was worth on a GPU is that rung's gain
    options: dict[str, str] = field(default_factory=dict)  # the lab's, as on the command line
    without: list[str] = field(default_factory=list)  # kinds of costs that must be gone
    at_most: dict[str, float] = field(default_factory=dict)  # counts


@dataclass(frozen=True)
class Step:
    """A step: its folder, its number from 1, and its texts."""

    folder: Path
    number: int
    text: Text
    _: KW_ONLY

    @property
    def name(self) -> str:
        """The folder's name, such as `07-no-conflicts`."""
        return self.folder.name

    @property
    def start(self) -> str:
        """The file that a learner begins with."""
        return (self.folder / "start.cu").read_text(encoding="utf-8")

    @property
    def solution(self) -> str:
        """One answer."""
        return (self.folder / "solution.cu").read_text(encoding="utf-8")

    def missing(self, version: Version) -> list[str]:
        """What keeps a right version from solving the step, in words; empty if it is solved."""
        text = self.text
        words = [f"{fact.head} is left" for fact in version.facts if _kind(fact) in text.without]
        if (text.at_most or text.without) and not version.counts:
            return ["its accesses could not be counted"]
        return words + [
            f"{name}: {version.counts.get(name, 0):,.0f}, at most {limit:,.0f} are asked for"
            for name, limit in text.at_most.items()
            if version.counts.get(name, 0) > limit
        ]

    def fails(self, version: Version) -> list[str]:
        """The reasons for which a version does not solve the step, by the names of the data."""
        kinds = list(map(_kind, version.facts))
        if not version.right:
            return kinds
        over = [n for n, limit in self.text.at_most.items() if version.counts.get(n, 0) > limit]
        return [kind for kind in kinds if kind in self.text.without] + over

    def solved(self, version: Version) -> bool:
        """Whether a version solves it."""
        return version.right and not self.missing(version)


def _kind(fact: Fact) -> str:
    """The kind of a fact, without the file that it is in."""
    return fact.kind.partition(" in ")[0]


def worth(step: Step) -> str:
    """What a GPU makes of the step's idea, measured in the lab's ladder; empty if unknown."""
    gain = _gains().get(step.name)
    return f"On an {gain[0]} it is {gain[1]} times as fast as the rung before." if gain else ""


@cache
def _gains() -> dict[str, tuple[str, str]]:
    """The GPU and the gain of each step whose rung was measured; `tools.generate` writes them."""
    gains: dict[str, tuple[str, str]] = json.loads(GAINS.read_text(encoding="utf-8"))
    return gains


@cache
def steps() -> tuple[Step, ...]:
    """All steps in order."""
    folders = sorted(path for path in FOLDER.iterdir() if (path / "step.toml").is_file())
    texts = ((folder / "step.toml").read_text(encoding="utf-8") for folder in folders)
    parsed = (records.read(Text, tomllib.loads(text)) for text in texts)
    return tuple(Step(*one) for one in zip(folders, count(1), parsed, strict=False))


def find(word: str, among: Iterable[Step] | None = None) -> Step:
    """The step of a number or a name."""
    known = tuple(steps() if among is None else among)
    for step in known:
        if word in (str(step.number), f"{step.number:02}", step.name, step.name.partition("-")[2]):
            return step
    if word.isdecimal():
        raise UsageError(f"{word}: no such step", hint=f"they are numbered from 1 to {len(known)}")
    raise UsageError(f"{word}: no such step: {nearest(word, [step.name for step in known])}")


NAME = "progress.txt"
HEAD = "# The steps of `cudalab learn`: done or skipped. Edit it as you like.\n"
WORDS = ("done", "skipped")


@dataclass
class Progress:
    """The steps that are done or skipped, by name."""

    folder: Path
    marks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the file; nothing is done if there is none. Lines that say nothing are ignored."""
        marks = {}
        try:
            lines = (folder / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise CudalabError(f"{folder / NAME}: cannot be read: {error.strerror}") from None
        for line in lines:
            word, _, name = line.strip().partition(" ")
            if word in WORDS and name:
                marks[name.strip()] = word
        return cls(folder, marks)

    def mark(self, step: Step, word: str) -> None:
        """Mark a step, and write the file; what is done stays done."""
        if self.marks.get(step.name) != "done":
            self.marks[step.name] = word
        text = HEAD + "".join(f"{word} {name}\n" for name, word in sorted(self.marks.items()))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / NAME).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CudalabError(
                f"{self.folder / NAME}: cannot be written: {error.strerror}"
            ) from None

    def next(self, steps: Sequence[Step]) -> Step | None:
        """The first step that is neither done nor skipped; then the first that was skipped."""
        for seen in ((), ("skipped",)):
            for step in steps:
                if self.marks.get(step.name) in (None, *seen):
                    return step
        return None

    def file(self, step: Step) -> Path:
        """The learner's file of a step, made from its start unless it is there."""
        path = self.folder / f"{step.name}.cu"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text(step.start, encoding="utf-8")
        except OSError as error:
            raise CudalabError(f"{path}: cannot be written: {error.strerror}") from None
        return path
