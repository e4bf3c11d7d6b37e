"""The variants that `profile` and `sanitize` look at, and the options that choose their data."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab.cli.options import (
    EXISTING,
    Sizes,
    dist_option,
    exclude,
    options_present,
    seed_option,
)
from cudalab.errors import CudalabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.microscope.profile import Data


def check_data() -> None:
    """Raise a UsageError if an input file is named together with an option for random data."""
    present = options_present()
    for random in ("sizes", "dist", "seed"):
        if "data" in present and random in present:
            exclude(present["data"], present[random])


class OneSize(Sizes):
    """A single size: 1Mi, 1e6, 2^20, 300x200."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse it."""
        sizes = super().convert(value, param, ctx)
        if len(sizes) != 1:
            self.fail(f"{value!r}: only one size is possible here", param, ctx)
        return sizes


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose the data."""
    for option in (
        click.option(
            "--data",
            type=EXISTING,
            metavar="IN.bin",
            help="Input in the lab's format, instead of random data.",
        ),
        click.option(
            "--n",
            "sizes",
            type=OneSize(),
            metavar="SIZE",
            help="Size, such as 1Mi, 1e6, 2^20 or 300x200.",
        ),
        dist_option,
        seed_option,
    )[::-1]:
        command = option(command)
    return command


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The variants to look at, with their case and data."""

    lab: Lab
    case: Case
    variants: list[Variant]
    dist: str
    seed: int
    data: Path | None

    def load(self, size: Size, folder: Path) -> Data:
        """Read the file that was named, or generate an input of `size`."""
        from cudalab.microscope import profile

        if self.data:
            return profile.from_file(self.lab, self.case, self.data)
        return profile.generated(self.lab, self.case, size, self.dist, self.seed, folder)

    def ready(self, sizes: Sequence[Size]) -> list[Data]:
        """The inputs. If a grader asks for it, this process then confines itself."""
        from cudalab.checker.submit import confine

        result = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                result.append(self.load(size, Path(folder)))
        if confine.is_asked_for():
            from cudalab.backends.base import OnlyBuilds
            from cudalab.backends.cpu.check import CheckDevice

            with CheckDevice(detect=True, count=False) as device:
                builder = OnlyBuilds(device)
                self.lab.compiled(self.variants[0], builder, self.case)
            if not confine.confine():
                raise CudalabError("the process could not be confined")
        return result
