"""The findings of `sanitize` and the worst lines of a profile as annotations of the source."""

from collections.abc import Iterable, Iterator

from cudalab.backends.trace import Access
from cudalab.microscope.explanations import KINDS
from cudalab.microscope.findings import FindingRow
from cudalab.microscope.profile import KernelProfile, Profile, ideal_passes, passes
from cudalab.output.annotations import Annotation, Related, Rule
from cudalab.output.grid import percent

WORST = 3  # lines of a kernel
WASTED = 0.1  # the share of a kernel's passes that a line must waste
NOT_PROFILED = Rule(
    "not_profiled",
    "variant that cannot be profiled",
    "Its kernels have not run to their end, so nothing is known of what they cost.",
    "Run it first, and under cudalab sanitize: it names the access or the call that fails.",
)
UNCOALESCED = Rule(
    "uncoalesced",
    "access that is not coalesced",
    "Global memory comes in sectors of 32 bytes. Lanes of a warp that use addresses far apart "
    "fetch many of them and use little of each.",
    "Let neighbouring lanes use neighbouring addresses: threadIdx.x belongs into the last index. "
    "Where the data lie otherwise, go through shared memory.",
)
BANK_CONFLICT = Rule(
    "bank_conflict",
    "bank conflict",
    "Shared memory has 32 banks of 4 bytes, and each serves one word at a time. Lanes of a warp "
    "that use different words of one bank wait for each other.",
    "Let neighbouring lanes use neighbouring words, or pad the rows of the array by one element: "
    "tile[32][33].",
)


def of_findings(rows: Iterable[FindingRow], file: str) -> list[Annotation]:
    """An annotation for each finding; those without a place are about `file`."""
    return [
        Annotation(
            rule=rule_of(row.kind),
            title=row.title,
            level="note" if row.note else "error",
            text=row.what,
            advice=row.cure,
            file=row.file or file,
            line=row.line,
            about=row.buffer or "",
            related=_other_end(row),
        )
        for row in rows
    ]


def rule_of(kind: str) -> Rule:
    """What holds for all findings of a kind, whatever else is known of one of them."""
    about = KINDS[kind]
    return Rule(kind, about.title, about.why, about.cure)


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
                    rule=NOT_PROFILED, level="error", text=variant.failed, file=variant.label
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
            rule=BANK_CONFLICT if is_shared else UNCOALESCED,
            level="warning",
            text=f"{kernel.name}: {_cost(worst)}. {percent(wasted / whole)} % of the kernel's "
            "passes are wasted here.",
            file=line.place.file,
            line=line.place.line,
            about=worst.buffer or "",
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
        f"{what} touches {access.sectors / requests:.1f} sectors of {access.space} memory where "
        f"{access.ideal_sectors / requests:.1f} suffice"
    )
