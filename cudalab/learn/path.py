"""The steps of the path, as the folder `steps` describes them: one folder for each.

`step.toml` has the texts and the goal, `start.cu` is what a learner begins with, `solution.cu` one
answer. A goal is a right kernel that has none of some costs, or whose counts are small enough.
"""

from __future__ import annotations

import tomllib
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.errors import UsageError, nearest
from cudalab.language.source import kernels_dir
from cudalab.system import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudalab.watch.changes import Version
    from cudalab.watch.facts import Fact

FOLDER = Path(__file__).parent / "steps"


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
    """What a GPU makes of the step's idea, from the table of the lab's ladder; empty if unknown."""
    if not step.text.rung:
        return ""
    table = kernels_dir() / step.text.lab / "README.md"
    lines = table.read_text(encoding="utf-8").splitlines() if table.is_file() else []
    names: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "rung":
            names = cells
        elif cells[0].startswith(f"[`{step.text.rung}`]"):
            for name, gain, column in zip(names, cells[1:], names[1:], strict=False):
                if column == "times as fast" and gain:
                    gpu = name.removesuffix(", ms")
                    return f"On an {gpu} it is {gain} times as fast as the rung before."
    return ""


@cache
def steps() -> tuple[Step, ...]:
    """All steps in order."""
    folders = sorted(path for path in FOLDER.iterdir() if (path / "step.toml").is_file())
    return tuple(Step(folder, number, _read(folder)) for number, folder in enumerate(folders, 1))


def _read(folder: Path) -> Text:
    parsed: dict[str, Any] = tomllib.loads((folder / "step.toml").read_text(encoding="utf-8"))
    return records.read(Text, parsed)


def find(word: str, among: Iterable[Step] | None = None) -> Step:
    """The step of a number or a name."""
    known = tuple(steps() if among is None else among)
    for step in known:
        if word in (str(step.number), f"{step.number:02}", step.name, step.name.partition("-")[2]):
            return step
    raise UsageError(f"{word}: no such step: {nearest(word, [step.name for step in known])}")
