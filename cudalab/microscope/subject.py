"""The variants that `profile` and `sanitize` look at, and their data."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy or a device

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.microscope.profile import Data

KILL_AFTER_S = 120.0  # for looking at a variant


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
        from cudalab.microscope import profile

        if self.data:
            return profile.from_file(self.lab, self.case, self.data)
        return profile.generated(self.lab, self.case, size, self.dist, self.seed, folder)

    def ready(self, sizes: Sequence[Size]) -> list[Data]:
        """The inputs. After that, this process confines itself if it is asked to."""
        result = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                result.append(self.load(size, Path(folder)))
        if self.confine is not None:
            self.confine(self)
        return result
