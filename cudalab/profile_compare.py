"""Two devices' counts side by side: the CPU's instrument and a GPU's own counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.grids import Column, Grid

if TYPE_CHECKING:
    from cudalab.profile import Json, KernelProfile, Profile

# What both devices count, and what it is called.
QUANTITIES = {
    "global_load_sectors": "sectors, global loads",
    "global_store_sectors": "sectors, global stores",
    "shared_wavefronts": "wavefronts, shared memory",
    "bank_conflicts": "bank conflicts, shared memory",
    "divergent_branches": "divergent branches",
}


def scaled(kernel: KernelProfile) -> Json:
    """A kernel's totals for all its blocks, where only some were traced."""
    found = kernel.totals()
    factor = kernel.trace.blocks / max(kernel.trace.blocks_traced, 1)
    return {name: round(found[name] * factor) for name in QUANTITIES}


def deviation(here: float, there: float) -> float | None:
    """How far `here` is from `there`, as a part of it; None where nothing is expected."""
    if there:
        return here / there - 1
    return 0.0 if here == 0 else None


def grid(cpu: Profile, cuda: Profile) -> Grid:
    """A line for each kernel and quantity that one of the devices has counted."""
    rows = []
    theirs = {(v.name, k.name): scaled(k) for v in cuda.variants for k in v.kernels}
    for variant in cpu.variants:
        for kernel in variant.kernels:
            here, there = scaled(kernel), theirs.get((variant.name, kernel.name))
            for name, title in QUANTITIES.items():
                if there is None or not (here[name] or there[name]):
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
    columns = [
        Column("variant", right=False),
        Column("kernel", right=False),
        Column("count", right=False),
        Column(cpu.device),
        Column(cuda.device),
        Column("deviation %"),
    ]
    note = (
        "The GPU runs what its compiler made of the source: merged or vectorized accesses, "
        "branches turned into predicates. docs/profile.md says which counters these are."
    )
    return Grid(f"{cpu.lab}: {cpu.device_name} against {cuda.device_name}", columns, rows, [note])
