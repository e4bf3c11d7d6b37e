"""A variant, as the header of its .cu file declares it, and the header itself.

    // /// cudalab
    // summary  = "Tree reduction in shared memory, sequential addressing"
    // order    = 3
    // dispatch = "multi_pass"
    // defines  = { THREADS_PER_BLOCK = 256 }
    // ///

The comment block is TOML. Its keys are the fields of `Variant` after `label`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cudalab.backends import defaults_of
from cudalab.errors import CudalabError, HeaderError
from cudalab.language import source

if TYPE_CHECKING:
    from cudalab.backends.base import Device

ARCHITECTURE = re.compile(r"sm_(\d+)a?")
MULTIPROCESSORS = "MULTIPROCESSORS"  # in a define's product: those of the device


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to compute a lab, as its header declares it."""

    lab: str
    name: str
    path: Path
    label: str  # name of the file in messages
    summary: str
    order: float  # position in the ladder
    dispatch: str  # the lab's plan: dispatch_<dispatch> in its plans.py
    ladder: str = ""  # name of a side ladder, "" for the main one
    adds: str = ""  # what it adds to the rung before it
    defines: dict[str, int | str] = field(default_factory=dict)  # -D flags, read by the host too
    requires: tuple[str, ...] = ()  # features a device must have
    applies: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the cases it computes
    default: tuple[str, ...] = ()  # devices on which it is the default for these cases
    deterministic: bool = True  # gives the same bytes in every run
    # Format to which a lossy variant rounds its inputs, one of the lab's `precisions`.
    precision: str = ""

    @property
    def title(self) -> str:
        """The name in tables, with the precision if that is not the lab's own."""
        return f"{self.name} ({self.precision})" if self.precision else self.name

    def computes(self, case: Mapping[str, Any]) -> bool:
        """Whether this variant covers a case such as {"dtype": "int32"}."""
        return all(case.get(axis) in values for axis, values in self.applies.items())

    def missing(self, features: frozenset[str]) -> list[str]:
        """The variant's requirements that a device with `features` does not meet."""
        return [feature for feature in self.requires if feature not in features]

    def is_default_on(self, device: str) -> bool:
        """Whether the device takes it for the cases it computes if the user names no variant."""
        return defaults_of(device) in self.default

    @property
    def architecture(self) -> str | None:
        """The highest compute capability that it requires, such as "sm_90a"."""
        named = [(int(m[1]), m[0]) for m in map(ARCHITECTURE.fullmatch, self.requires) if m]
        return max(named)[1] if named else None

    def on(self, device: Device) -> Self:
        """The variant on a device: defines such as "4 * MULTIPROCESSORS" become numbers."""
        texts = {
            name: text
            for name, text in self.defines.items()
            if isinstance(text, str) and MULTIPROCESSORS in text
        }
        if not texts:
            return self
        known = {**self.defines, MULTIPROCESSORS: device.multiprocessors}
        try:
            numbers = {name: product_of(text, known) for name, text in texts.items()}
        except (ValueError, ZeroDivisionError):
            raise self.error(
                "defines",
                f"defines: {next(iter(texts.values()))!r} is no product of numbers and "
                f"{MULTIPROCESSORS}",
            ) from None
        return replace(self, defines={**self.defines, **numbers})

    def error(self, key: str, message: str) -> HeaderError:
        """Make an error at the line of the header's `key`."""
        return Header(self.path, self.label).error(key, message)


def product_of(text: str, defines: Mapping[str, int | str]) -> int:
    """The number for a text such as 2*THREADS_PER_BLOCK: factors from the left, / rounds down.

    ValueError if a factor is no number, and no define that is one.
    """
    first, *rest = re.split(r"([*/])", text)
    value = _factor(first, defines)
    for sign, factor in zip(rest[::2], rest[1::2], strict=True):
        number = _factor(factor, defines)
        value = value * number if sign == "*" else value // number
    return value


def _factor(text: str, defines: Mapping[str, int | str]) -> int:
    name = text.strip()
    return int(defines.get(name, name))


class Header:
    """The comment block of a file, with its line numbers."""

    def __init__(self, path: Path, label: str, lab: str = "LAB") -> None:
        """Read the file at `path`, called `label` in messages. HeaderError if it has no header."""
        self.label = label
        try:
            text = source.read(path, label)
        except CudalabError as error:
            raise HeaderError(error.message, error.hint) from None
        block = source.HEADER.search(text)
        if block is None and source.MAIN.search(text):
            raise HeaderError(
                f"{label}: a whole program, not a kernel file: it has a main function and no "
                "header",
                hint=f"cudalab run {label}, or cudalab check {lab} --program {label}",
            )
        if block is None:
            raise HeaderError(
                f"{label}:1: no header: expected a comment block from `// /// cudalab` to `// ///`",
                hint="`cudalab show LAB VARIANT` prints one",
            )
        self.first_line = text.count("\n", 0, block.start()) + 2
        comments = block["toml"].splitlines()
        self.lines = [line.removeprefix("//").removeprefix(" ") for line in comments]

    def values(self) -> dict[str, Any]:
        """The keys with their values. HeaderError if the header is not valid TOML."""
        try:
            return tomllib.loads("\n".join(self.lines))
        except tomllib.TOMLDecodeError as error:
            at = re.search(r"\(at line (\d+)", str(error))
            line = self.first_line + (int(at[1]) if at else len(self.lines)) - 1
            message = re.sub(r" \(at .*\)$", "", str(error))
            raise HeaderError(
                f"{self.label}:{line}: the header is not valid TOML: {message}"
            ) from None

    def error(self, key: str | None, message: str) -> HeaderError:
        """Make an error at the line of `key`, or at the header's first line."""
        line = self.first_line - 1
        for number, text in enumerate(self.lines):
            if key is not None and re.match(rf"\s*\[?{re.escape(key)}\b", text):
                line = self.first_line + number
        return HeaderError(f"{self.label}:{line}: {message}")
