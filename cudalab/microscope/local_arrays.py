"""What a profile says of local arrays that it does not count."""

import re
from collections.abc import Collection, Iterable

from cudalab.backends.trace import Place
from cudalab.language import kernel_file, source
from cudalab.microscope.profile import VariantProfile

SPILL = "spill"  # see predict/local_memory.py


def note(
    variant: VariantProfile,
    used: Iterable[Place],
    in_memory: Collection[tuple[str, int, str]] | None,
    *,
    by_gcc: bool,
) -> str:
    """What there is to say of lines that index local arrays, and of spills; "" if there is nothing.

    `used` are the lines that have used memory of their own thread. `in_memory` are the accesses
    that nvcc makes in local memory, which are counted, and the lines where functions begin that
    spill; None if there was no nvcc to say so. Accesses have hooks if g++ has compiled the
    instrumented build (`by_gcc`).
    """
    known = in_memory or ()
    counted = {(file, line) for file, line, kind in known if kind != SPILL}
    spilling = {(file, line) for file, line, kind in known if kind == SPILL}
    if counted and not by_gcc:
        at = ", ".join(f"{file}:{line}" for file, line in sorted(counted))
        return f"{variant.name}: local memory is not counted ({at}): it takes g++, here is clang"
    uncounted = {(one.file, one.line) for one in used} - counted
    at = _listed(
        variant, (one for one in uncounted if _indexes(variant.texts.get(one[0], ""), one[1]))
    )
    said = []
    if at and in_memory is None:
        said.append(
            f"local arrays are not counted (lines {at}): nvcc decides whether they are in "
            "registers or in local memory, and it is not here or refuses the file"
        )
    elif at:
        said.append(f"nvcc keeps local arrays in registers, or leaves them out (lines {at})")
    if spilling:
        said.append(
            "nvcc has too few registers, and spills to local memory, which is not counted, in the "
            f"functions that begin at lines {_listed(variant, spilling)}"
        )
    return f"{variant.name}: {'; '.join(said)}" if said else ""


def _listed(variant: VariantProfile, lines: Iterable[tuple[str, int]]) -> str:
    """Lines in words, first those of the variant's own file."""
    ordered = sorted(lines, key=lambda one: (one[0] != variant.label, one))
    return ", ".join(
        str(line) if file == variant.label else f"{file}:{line}" for file, line in ordered
    )


def _indexes(text: str, number: int) -> bool:
    """Whether a line names an element of an array that the file declares in a function."""
    lines = source.lines_of(source.blank_comments(text))
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    arrays = kernel_file.read(text).local_arrays
    return any(re.search(rf"\b{name}\s*\[", line) for name in arrays)
