"""What a learner has done: a text file in the learner's own folder, a line for each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cudalab.errors import CudalabError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cudalab.learn.path import Step

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
        text = HEAD + "".join(
            f"{word} {name}\n" for name, word in sorted(self.marks.items(), key=_by_name)
        )
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


def _by_name(item: tuple[str, str]) -> str:
    return item[0]
