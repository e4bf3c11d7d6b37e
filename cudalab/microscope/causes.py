"""Why a GPU's counts of accesses and branches differ from the source: the compiler's changes.

`ours` are the counts of the CPU device's instrument, which runs the source as it stands, `theirs`
those of the instructions that the GPU has executed.
"""

from collections.abc import Collection, Mapping

from cudalab.backends.trace import Place

CAUSES = {
    "merged": "The compiler merges neighbouring accesses of a thread into one of 8 or 16 bytes.",
    "split": "The compiler splits an access of 8 or 16 bytes into several of 4.",
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
CLOSE = 0.02  # deviations up to this part are not explained
SHOWN = 2  # source lines that are named as evidence


def of_accesses(called: str, ours: Mapping[int, int], theirs: Mapping[int, int]) -> tuple[str, str]:
    """Why costs of accesses differ, derived from the requests of each width in bytes per lane.

    Returns a key of CAUSES, or an empty string if none applies, and the evidence.
    """
    evidence = f"{called}: {_by_width(ours)} by the source; {_by_width(theirs)} on the GPU"
    if max(theirs, default=0) > max(ours, default=0):
        return "merged", evidence
    if sum(theirs.values()) > sum(ours.values()) and _bytes(theirs) == _bytes(ours):
        return "split", evidence
    return "kept" if sum(theirs.values()) < sum(ours.values()) else "", evidence


def _bytes(requests: Mapping[int, int]) -> int:
    """Bytes per lane, of all requests."""
    return sum(width * number for width, number in requests.items())


def _by_width(requests: Mapping[int, int]) -> str:
    """A text such as "1,024 of 4 bytes and 512 of 16 bytes"."""
    parts = [f"{requests[width]:,} of {width} bytes" for width in sorted(requests)]
    return " and ".join(parts) or "none"


def of_branches(
    ours: Mapping[Place, int], theirs: Mapping[Place, int], compiled: Collection[Place]
) -> tuple[str, str]:
    """Why divergence differs, derived from how often the branches of each line diverge.

    `compiled` are the lines that have a branch in the machine code.
    """
    differences = {at: abs(ours.get(at, 0) - theirs.get(at, 0)) for at in {*ours, *theirs}}
    lines = sorted(
        (at for at in differences if differences[at]),
        key=lambda at: (-differences[at], at.file, at.line),
    )
    if not lines:
        return "", ""
    evidence = [
        f"{at.file.rpartition('/')[2]}:{at.line}: {ours.get(at, 0):,} by the source, "
        + (f"{theirs.get(at, 0):,} on the GPU" if at in compiled else "no branch on the GPU")
        for at in lines[:SHOWN]
    ]
    if len(lines) > SHOWN:
        evidence.append(f"and {len(lines) - SHOWN} more")
    gone = all(theirs.get(at, 0) == 0 for at in lines)
    return "predicated" if gone else "partly predicated", "; ".join(evidence)
