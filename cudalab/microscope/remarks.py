"""The findings of `sanitize` and the worst lines of a profile as annotations of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.microscope.profile import ideal_passes, passes
from cudalab.output.annotations import Annotation, Related
from cudalab.output.grid import percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cudalab.backends.trace import Access
    from cudalab.microscope.findings import FindingRow
    from cudalab.microscope.profile import KernelProfile, Profile

WORST = 3  # lines of a kernel
WASTED = 0.1  # the share of a kernel's passes that a line must waste


def of_findings(rows: Iterable[FindingRow], file: str) -> list[Annotation]:
    """An annotation for each finding; those without a place are about `file`."""
    return [
        Annotation(
            rule=row.kind,
            title=row.title,
            level="note" if row.note else "error",
            text=row.what,
            advice=row.cure,
            file=row.file or file,
            line=row.line,
            related=_other_end(row),
        )
        for row in rows
    ]


def _other_end(row: FindingRow) -> tuple[Related, ...]:
    if not row.other_file or not row.other_line:
        return ()
    return (Related(file=row.other_file, line=row.other_line, text="the other side"),)


def of_profile(profile: Profile) -> list[Annotation]:
    """An annotation for each line that wastes much of its kernel's time at memory."""
    result = []
    for variant in profile.variants:
        if variant.failed:
            result.append(
                Annotation(
                    rule="not_profiled",
                    title="cannot be profiled",
                    level="error",
                    text=variant.failed,
                    file=variant.label,
                )
            )
        for kernel in variant.kernels:
            result += _worst(kernel)
    return result


def _worst(kernel: KernelProfile) -> Iterator[Annotation]:
    """The lines that waste the most passes, the worst first."""
    lines = kernel.lines().values()
    whole = sum(line.passes for line in lines)
    for line in sorted(lines, key=lambda line: line.ideal_passes - line.passes)[:WORST]:
        wasted = line.passes - line.ideal_passes
        if not whole or wasted < WASTED * whole:
            return
        worst = max(line.accesses, key=lambda access: passes(access) - ideal_passes(access))
        is_shared = worst.space == "shared"
        yield Annotation(
            rule="bank_conflict" if is_shared else "uncoalesced",
            title="bank conflict" if is_shared else "access that is not coalesced",
            level="warning",
            text=f"{kernel.name}: {_cost(worst)}. {percent(wasted / whole)} % of the kernel's "
            "passes are wasted here.",
            file=line.place.file,
            line=line.place.line,
        )


def _cost(access: Access) -> str:
    """A sentence about the cost of an access, beside the minimum for as many bytes."""
    what = f"each {access.kind}" + (f" of {access.buffer}" if access.buffer else "")
    requests = max(access.requests, 1)
    if access.space == "shared":
        return (
            f"{what} takes {access.wavefronts / requests:.1f} wavefronts of shared memory where "
            f"{access.ideal_wavefronts / requests:.1f} suffice (up to "
            f"{access.conflict_degree_max}-way)"
        )
    return (
        f"{what} touches {access.sectors / requests:.1f} sectors of global memory where "
        f"{access.ideal_sectors / requests:.1f} suffice"
    )
