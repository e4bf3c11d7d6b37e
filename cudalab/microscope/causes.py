"""Why a GPU counts other accesses and branches than its source has: what the compiler made of it.

`ours` are the counts of the CPU device's instrument, which runs the source as it stands, `theirs`
those of the instructions that the GPU has executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cudalab.backends.trace import Place

CAUSES = {
    "merged": "The compiler merges neighbouring accesses of a thread into one of 8 or 16 bytes.",
    "kept": "The compiler keeps a value in a register that the source reads again.",
    "predicated": (
        "The machine code has no branch there: the instructions are predicated, an early exit "
        "too, or the value is selected."
    ),
    "partly predicated": (
        "The loop is unrolled or the condition split: of the copies of the branch some are "
        "predicated, others are not."
    ),
}
CLOSE = 0.02  # deviations up to this need no cause
SHOWN = 2  # lines of the source that are named as evidence


def of_accesses(called: str, ours: Mapping[int, int], theirs: Mapping[int, int]) -> tuple[str, str]:
    """Why accesses cost something else, from the requests of each width in bytes a lane.

    Returns a key of CAUSES, or an empty string where it is none of them, and the evidence.
    """
    evidence = f"{called}: {_by_width(ours)} by the source; {_by_width(theirs)} on the GPU"
    if max(theirs, default=0) > max(ours, default=0):
        return "merged", evidence
    return "kept" if sum(theirs.values()) < sum(ours.values()) else "", evidence


def _by_width(requests: Mapping[int, int]) -> str:
    """Such as "1,024 of 4 bytes and 512 of 16 bytes"."""
    found = [f"{requests[width]:,} of {width} bytes" for width in sorted(requests)]
    return " and ".join(found) or "none"


def of_branches(
    ours: Mapping[Place, int], theirs: Mapping[Place, int], kept: Collection[Place]
) -> tuple[str, str]:
    """Why other branches diverge, from how often those of each line do.

    `kept` are the lines whose branch, or a copy of it, the machine code has.
    """
    apart = {at: abs(ours.get(at, 0) - theirs.get(at, 0)) for at in {*ours, *theirs}}
    lines = sorted((at for at in apart if apart[at]), key=lambda at: (-apart[at], at.file, at.line))
    if not lines:
        return "", ""
    said = [
        f"{at.file.rpartition('/')[2]}:{at.line}: {ours.get(at, 0):,} by the source, "
        + (f"{theirs.get(at, 0):,} on the GPU" if at in kept else "no branch on the GPU")
        for at in lines[:SHOWN]
    ]
    if len(lines) > SHOWN:
        said.append(f"and {len(lines) - SHOWN} more")
    gone = all(theirs.get(at, 0) == 0 for at in lines)
    return "predicated" if gone else "partly predicated", "; ".join(said)
