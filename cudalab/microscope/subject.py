"""The variants that `profile` and `sanitize` look at, their data, and their source."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.errors import UsageError
from cudalab.labs.sizes import in_words
from cudalab.language import source

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, HostInputs, Size

_FILE_BEGINS = re.compile(r'^#line 1 "(?P<label>(?:\\.|[^"\\])*)"$', re.MULTILINE)


@dataclass(frozen=True)
class Data:
    """An input in memory, with a description."""

    inputs: HostInputs
    words: str
    path: Path  # the file that it was read from


def generated(lab: Lab, case: Case, size: Size, dist: str, seed: int, folder: Path) -> Data:
    """A random input."""
    path = folder / "input.bin"
    lab.write_file(path, case, size, dist, seed)
    words = f"n = {in_words(size, ',')}, {dist}, seed {seed}"
    return from_file(lab, case, path, words)


def from_file(lab: Lab, case: Case, path: Path, words: str = "") -> Data:
    """The input in a file. UsageError if there is nothing to compute."""
    inputs = lab.read_file(path, case, str(path))
    words = words or str(path)
    if lab.empty_answer(inputs, case) is not None:
        raise UsageError(f"{lab.name}: {words}: there is nothing to compute or to observe")
    return Data(inputs, words, path)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The variants to look at, with their case and data."""

    lab: Lab
    case: Case
    variants: list[Variant]
    dist: str
    seed: int
    data: Path | None
    confine: Callable[[Subject], None] | None = None  # this process, when the data are there

    def load(self, size: Size, folder: Path) -> Data:
        """Read the file that was named, or generate an input of `size`."""
        if self.data:
            return from_file(self.lab, self.case, self.data)
        return generated(self.lab, self.case, size, self.dist, self.seed, folder)

    def ready(self, sizes: Sequence[Size]) -> list[Data]:
        """The inputs. After that, this process confines itself if it is asked to."""
        result = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                result.append(self.load(size, Path(folder)))
        if self.confine is not None:
            self.confine(self)
        return result


def texts_of(loaded: source.Source) -> dict[str, str]:
    """The texts of a file and of all that it includes, by their labels in messages."""
    labels = [match["label"] for match in _FILE_BEGINS.finditer(loaded.text)]
    return {
        re.sub(r"\\(.)", r"\1", label): source.read(path, label)
        for label, path in zip(labels, loaded.files, strict=True)
    }
