"""Why a GPU counts other accesses and branches than the source has: read off what it executed.

truth.py gives the counts of one kernel on both devices (`here`, the CPU's instrument, and `there`)
and the instructions that the GPU executed, by line of the source (`code`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cudalab.backends import ncu

if TYPE_CHECKING:
    from collections.abc import Iterable

    Counts = dict[str, Any]
    Line = tuple[str, int]

CAUSES = {
    "merged": "The compiler merges neighbouring accesses of a thread into one of 8 or 16 bytes.",
    "kept": "The compiler keeps a value in a register that the source reads again.",
    "asynchronous": (
        "`cp.async` (`LDGSTS`) goes from global to shared memory without a register: the counters "
        "of stores leave it out, and those of sectors count a sector again for each lane that "
        "copies it to another place."
    ),
    "predicated": (
        "The machine code has no branch there: the instructions are predicated, an early exit "
        "too, or the value is selected."
    ),
    "partly predicated": (
        "The loop is unrolled or the condition split: of the copies of the branch some are "
        "predicated, others are not."
    ),
    "other traffic": (
        "The counter of the whole kernel includes waits for other traffic; that of the "
        "instructions agrees."
    ),
}
CLOSE = 0.02  # deviations up to this need no cause
SHOWN = 2  # lines of the source that are named as evidence
# Quantity -> the accesses that make it up, and the count of each that is compared.
_ACCESSES = {
    "global_load_sectors": {("global", "load"): "global_load_sectors"},
    "global_store_sectors": {("global", "store"): "global_store_sectors"},
    "shared_wavefronts": {
        ("shared", "load"): "shared_load_wavefronts",
        ("shared", "store"): "shared_store_wavefronts",
        ("shared", "atomic"): "shared_atomic_wavefronts",
    },
    "bank_conflicts": {
        ("shared", "load"): "shared_load_wavefronts",
        ("shared", "store"): "shared_store_wavefronts",
    },
}


def cause(quantity: str, here: Counts, there: Counts, code: list[Counts]) -> tuple[str, str]:
    """A key of CAUSES and the evidence for it; two empty strings where nothing explains it."""
    if quantity == "divergent_branches":
        return _of_branches(here["lines"]["branches"], code)
    kinds = _ACCESSES[quantity]
    if quantity == "bank_conflicts":
        conflicts = sum(
            row[ncu.WAVEFRONTS] - row[ncu.IDEAL_WAVEFRONTS]
            for row in code
            if _accessed(row)[:2] in kinds
        )
        if abs(here[quantity] - conflicts) <= CLOSE * conflicts:
            return "other traffic", f"{conflicts:,} conflicts by instruction"
    apart = {kind: here[count] - there[count] for kind, count in kinds.items()}
    kind = max(apart, key=lambda one: abs(apart[one]))
    return _of_accesses(kind, here["lines"]["accesses"], code)


def _accessed(row: Counts) -> tuple[str, str, int]:
    """The memory that an instruction accesses, how, and its bytes a lane."""
    return ncu.memory_access(row["opcode"].lstrip("@")) or ("", "", 0)


def _of_accesses(
    kind: tuple[str, str], accesses: list[list[Any]], code: list[Counts]
) -> tuple[str, str]:
    """Why accesses of one kind cost something else: how many of which width there are."""
    ours: dict[int, int] = defaultdict(int)
    for _, _, space, access, width, requests in accesses:
        if (space, access) == kind:
            ours[width] += requests
    theirs: dict[int, int] = defaultdict(int)
    asynchronous = 0
    for row in code:
        *found, width = _accessed(row)
        if tuple(found) == kind and row[ncu.EXECUTED]:
            theirs[width] += row[ncu.EXECUTED]
        if "LDGSTS" in row["opcode"]:
            asynchronous += row[ncu.EXECUTED]
    evidence = f"{' '.join(kind)}s: {_by_width(ours)} here; {_by_width(theirs)} there"
    if asynchronous and kind in {("global", "load"), ("shared", "store")}:
        return "asynchronous", f"{evidence}, {asynchronous:,} LDGSTS"
    if max(theirs, default=0) > max(ours, default=0):
        return "merged", evidence
    if sum(theirs.values()) < sum(ours.values()):
        return "kept", evidence
    return "", evidence


def _by_width(requests: dict[int, int]) -> str:
    """Such as "1,024 of 4 bytes and 512 of 16"."""
    found = [f"{requests[width]:,} of {width} bytes" for width in sorted(requests)]
    return " and ".join(found) or "none"


def _of_branches(branches: list[list[Any]], code: list[Counts]) -> tuple[str, str]:
    """Why other branches diverge: lines whose branch the machine code does not have, or in part."""
    ours = _by_line((file, line, divergent) for file, line, _, divergent in branches)
    jumps = [row for row in code if ncu.is_branch(row["opcode"].lstrip("@")) and row[ncu.EXECUTED]]
    theirs = _by_line((row["file"], row["line"], row[ncu.DIVERGENT]) for row in jumps)
    kept = {(row["file"], row["line"]) for row in jumps if "@BRA" in row["opcode"]}
    lines = sorted({*ours, *theirs}, key=lambda at: -abs(ours.get(at, 0) - theirs.get(at, 0)))
    apart = [at for at in lines if ours.get(at, 0) != theirs.get(at, 0)]
    if not apart:
        return "", ""
    said = [
        f"{file.rpartition('/')[2]}:{line}: {ours.get((file, line), 0):,} here, "
        + (f"{theirs.get((file, line), 0):,} there" if (file, line) in kept else "no branch there")
        for file, line in apart[:SHOWN]
    ]
    if len(apart) > SHOWN:
        said.append(f"and {len(apart) - SHOWN} more")
    gone = all(theirs.get(at, 0) == 0 for at in apart)
    return "predicated" if gone else "partly predicated", "; ".join(said)


def _by_line(found: Iterable[tuple[str, int, int]]) -> dict[Line, int]:
    sums: dict[Line, int] = defaultdict(int)
    for file, line, count in found:
        sums[file, line] += count
    return {at: count for at, count in sums.items() if count}
