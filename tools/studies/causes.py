"""Why a GPU's counts of accesses and branches differ from the source, from what it executed.

counters.py gives the counts of one kernel on both devices (`here`, the CPU's instrument, and
`there`) and the instructions that the GPU executed, by line of the source (`code`).
"""

from collections import Counter
from typing import Any

from cudalab.backends.trace import Place
from cudalab.microscope import compare, ncu

Counts = dict[str, Any]

CAUSES = {
    **compare.CAUSES,
    "asynchronous": (
        "`cp.async` (`LDGSTS`) goes from global to shared memory without a register. The counters "
        "of stores leave it out; that of sectors counts, for copies of 16 bytes, the pieces of "
        "shared memory that are filled: 16 where all lanes copy the same 16 bytes."
    ),
    "other traffic": (
        "The counter of the whole kernel includes waits for other traffic, and differs from run to "
        "run; that of the instructions agrees."
    ),
}
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
    """A key of CAUSES and the evidence for it; two empty strings if nothing explains it."""
    if quantity == "divergent_branches":
        return _of_branches(here["lines"]["branches"], code)
    kinds = _ACCESSES[quantity]
    if quantity == "bank_conflicts":
        conflicts = sum(
            row[ncu.WAVEFRONTS] - row[ncu.IDEAL_WAVEFRONTS]
            for row in code
            if _accessed(row)[:2] in kinds
        )
        if abs(here[quantity] - conflicts) <= compare.CLOSE * conflicts:
            return "other traffic", f"{conflicts:,} conflicts by instruction"
    apart = {kind: here[count] - there[count] for kind, count in kinds.items()}
    kind = max(apart, key=lambda one: abs(apart[one]))
    return _of_accesses(kind, here["lines"]["accesses"], code)


def _accessed(row: Counts) -> tuple[str, str, int]:
    """The memory that an instruction accesses, how, and its bytes per lane."""
    return ncu.memory_access(row["opcode"].lstrip("@")) or ("", "", 0)


def _of_accesses(
    kind: tuple[str, str], accesses: list[list[Any]], code: list[Counts]
) -> tuple[str, str]:
    """Why accesses of one kind cost more or less than the source says."""
    ours: Counter[int] = Counter()
    for _, _, space, access, width, requests in accesses:
        if (space, access) == kind:
            ours[width] += requests
    theirs: Counter[int] = Counter()
    asynchronous = 0
    for row in code:
        *accessed, width = _accessed(row)
        if tuple(accessed) == kind and row[ncu.EXECUTED]:
            theirs[width] += row[ncu.EXECUTED]
        if ncu.ASYNCHRONOUS in row["opcode"]:
            asynchronous += row[ncu.EXECUTED]
    reason, evidence = compare.of_accesses(f"{' '.join(kind)}s", ours, theirs)
    if asynchronous and kind in {("global", "load"), ("shared", "store")}:
        return "asynchronous", f"{evidence}, {asynchronous:,} LDGSTS"
    return reason, evidence


def _of_branches(branches: list[list[Any]], code: list[Counts]) -> tuple[str, str]:
    """Why a different number of branches diverges."""
    ours = Counter({Place(file, line): divergent for file, line, _, divergent in branches})
    theirs: Counter[Place] = Counter()
    kept = set()
    for row in code:
        if ncu.is_branch(row["opcode"].lstrip("@")) and row[ncu.EXECUTED]:
            place = Place(row["file"], row["line"])
            theirs[place] += row[ncu.DIVERGENT]
            if "@BRA" in row["opcode"]:
                kept.add(place)
    return compare.of_branches(ours, theirs, kept)
