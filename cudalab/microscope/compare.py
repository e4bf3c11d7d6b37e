"""Compares the counts of the CPU device's instrument with a GPU's own counters."""

from collections import Counter
from collections.abc import Collection, Mapping

from cudalab.backends.trace import Access, Kind, Place, Space
from cudalab.microscope.profile import KernelProfile, Profile, passes
from cudalab.output.grid import Column, Grid

# The quantities that both devices count, with their titles.
QUANTITIES = {
    "global_load_sectors": "sectors, global loads",
    "global_store_sectors": "sectors, global stores",
    "shared_wavefronts": "wavefronts, shared memory",
    "bank_conflicts": "bank conflicts, shared memory",
    "divergent_branches": "divergent branches",
}
# The accesses that a quantity counts: memory space and kinds.
_ACCESSES: dict[str, tuple[Space, tuple[Kind, ...]]] = {
    "global_load_sectors": ("global", ("load",)),
    "global_store_sectors": ("global", ("store",)),
    "shared_wavefronts": ("shared", ("load", "store", "atomic")),
    "bank_conflicts": ("shared", ("load", "store", "atomic")),
}


def scaled(kernel: KernelProfile) -> dict[str, int]:
    """A kernel's totals, scaled to all its blocks if only some were traced."""
    sums = kernel.totals()
    return {name: round(getattr(sums, name) * _factor(kernel)) for name in QUANTITIES}


def deviation(here: float, there: float) -> float | None:
    """The relative deviation of `here` from `there`; None if that is 0 and `here` is not."""
    if there:
        return here / there - 1
    return 0.0 if here == 0 else None


def why(name: str, here: KernelProfile, there: KernelProfile) -> str:
    """The cause of a quantity's deviation and the evidence for it; empty if unknown."""
    if name == "divergent_branches":
        cause, evidence = of_branches(
            _divergent(here), _divergent(there), {one.place for one in there.trace.branches}
        )
    else:
        space, kinds = _ACCESSES[name]
        costs = {kind: (_cost(here, space, kind), _cost(there, space, kind)) for kind in kinds}
        kind = max(kinds, key=lambda kind: abs(costs[kind][0] - costs[kind][1]))
        ours, theirs = _widths(here, space, kind), _widths(there, space, kind)
        cause, evidence = of_accesses(f"{space} {kind}s", ours, theirs)
    return f"{CAUSES[cause]} {evidence}" if cause else ""


def _factor(kernel: KernelProfile) -> float:
    """The factor from counts of the traced blocks to counts of all blocks."""
    return kernel.trace.blocks / max(kernel.trace.blocks_traced, 1)


def _divergent(kernel: KernelProfile) -> dict[Place, int]:
    """How often the branches of each line diverge."""
    factor = _factor(kernel)
    return {one.place: round(factor * one.divergent) for one in kernel.trace.branches}


def _accesses(kernel: KernelProfile, space: Space, kind: Kind) -> list[Access]:
    return [one for one in kernel.trace.accesses if (one.space, one.kind) == (space, kind)]


def _cost(kernel: KernelProfile, space: Space, kind: Kind) -> float:
    return _factor(kernel) * sum(map(passes, _accesses(kernel, space, kind)))


def _widths(kernel: KernelProfile, space: Space, kind: Kind) -> dict[int, int]:
    """The number of requests by bytes per lane."""
    requests_of: Counter[int] = Counter()
    for one in _accesses(kernel, space, kind):
        requests_of[one.bytes_per_lane] += one.requests
    return {width: round(_factor(kernel) * requests) for width, requests in requests_of.items()}


def grid(cpu: Profile, cuda: Profile) -> Grid:
    """A line for each kernel and quantity that one of the devices has counted."""
    rows, notes = [], []
    theirs = {(v.name, k.name): k for v in cuda.variants for k in v.kernels}
    for variant in cpu.variants:
        for kernel in variant.kernels:
            gpu = theirs.get((variant.name, kernel.name))
            if gpu is None:
                continue
            here, there = scaled(kernel), scaled(gpu)
            for name, title in QUANTITIES.items():
                if not (here[name] or there[name]):
                    continue
                off = deviation(here[name], there[name])
                rows.append(
                    [
                        variant.name,
                        kernel.name,
                        title,
                        f"{here[name]:,}",
                        f"{there[name]:,}",
                        "" if off is None else f"{100 * off:+.1f}",
                    ]
                )
                far = off is None or abs(off) > CLOSE
                if far and (cause := why(name, kernel, gpu)):
                    notes.append(f"{variant.name}, {title}: {cause}")
    columns = [
        Column("variant", right=False),
        Column("kernel", 5, right=False),
        Column("count", right=False),
        Column(cpu.device),
        Column(cuda.device),
        Column("off %"),
    ]
    return Grid(
        f"{cpu.lab}: {cpu.device_name} against {cuda.device_name}", columns, rows, notes=notes
    )


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
