"""What a profile says of local arrays that it does not count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cudalab.language import source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cudalab.backends.trace import Place
    from cudalab.microscope.profile import VariantProfile


def note(
    variant: VariantProfile,
    used: Iterable[Place],
    in_memory: Collection[tuple[str, int, str]] | None,
    *,
    by_gcc: bool,
) -> str:
    """A sentence about the lines that index local arrays; "" where all are counted, or none does.

    `used` are the lines that have used memory of their own thread. `in_memory` are the accesses
    that nvcc makes in local memory, which are counted; None if there was no nvcc to say so. They
    have hooks if g++ has compiled the instrumented build (`by_gcc`).
    """
    if in_memory and not by_gcc:
        at = ", ".join(sorted({f"{file}:{line}" for file, line, _ in in_memory}))
        return f"{variant.name}: local memory is not counted ({at}): it takes g++, here is clang"
    counted = {(file, line) for file, line, _ in in_memory or ()}
    lines = [one for one in used if (one.file, one.line) not in counted]
    at = ", ".join(
        str(one.line) if one.file == variant.label else f"{one.file}:{one.line}"
        for one in sorted(lines, key=lambda one: (one.file != variant.label, one.file, one.line))
        if _indexes(variant.texts.get(one.file, ""), one.line)
    )
    if not at:
        return ""
    if in_memory is None:
        return (
            f"{variant.name}: local arrays are not counted (lines {at}): nvcc decides whether they "
            "are in registers or in local memory, and it is not here or refuses the file"
        )
    return f"{variant.name}: nvcc keeps local arrays in registers, or leaves them out (lines {at})"


def _indexes(text: str, number: int) -> bool:
    """Whether a line names an element of an array that the file declares in a function."""
    lines = source.blank_comments(text).splitlines()
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return any(re.search(rf"\b{name}\s*\[", line) for name in source.local_arrays(text))
