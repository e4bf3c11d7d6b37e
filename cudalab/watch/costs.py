"""What a kernel's accesses and branches cost, as the worker counts it for the watcher.

It is counted on each save, so on inputs that take no time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, Size
from cudalab.microscope.profile import KernelProfile, Profile
from cudalab.microscope.remarks import of_profile
from cudalab.output.grid import percent

MAX_ELEMENTS = 4096  # of an input
# What is counted, the same for each version, unlike what a budget allows: blocks of a launch, and
# launches of a kernel before only every fourth is.
BLOCKS, LAUNCHES = 4, 8
MAX_ORDER = 65  # of a square matrix: one more than whole warps and tiles have


def small_sizes(lab: Lab, case: Case) -> tuple[Size, ...]:
    """The sizes that a watcher looks at: the first is sanitized, the last is counted.

    They are the sanitizer's own, as far as they are small, and for most labs a larger one.
    """
    sizes = lab.teaching.sizes(case)
    small = [one for one in sizes.sanitized if is_small(one, is_order=sizes.is_order)]
    if not sizes.is_order and len(small) < len(sizes.sanitized):
        small.append(MAX_ELEMENTS)
    return tuple(small or sizes.sanitized[:1])


def is_small(size: Size, *, is_order: bool) -> bool:
    """Whether inputs of a size are looked at on each save; it may be the order of a matrix."""
    if isinstance(size, int):
        return size <= (MAX_ORDER if is_order else MAX_ELEMENTS)
    return size[0] * size[-1] <= MAX_ELEMENTS


COSTS, FINDINGS = "costs.json", "findings.jsonl"  # the files of a worker in its box
DIVERGENT = 0.1  # the share of a kernel's branches that a line must split to be named
WHOLE_LINE = 0.1  # the share of its own executions in which a line must split, besides


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A line that wastes much of its kernel's time, in words."""

    kind: str  # bank_conflict, uncoalesced, divergence
    title: str
    file: str
    line: int
    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of one version on one input."""

    input: str
    lines: list[Cost] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=dict)  # see `counts_of`
    failed: str = ""  # why there are none


def costs_of(profile: Profile) -> Costs:
    """The lines of a profile of one variant that are worth a word, and its counts."""
    (variant,) = profile.variants
    if variant.failed:
        return Costs(input=profile.input, failed=variant.failed)
    texts = {label: text.splitlines() for label, text in variant.texts.items()}

    def code(file: str, line: int) -> str:
        lines = texts.get(file, [])
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""

    lines = [
        Cost(
            kind=one.rule.name,
            title=one.rule.title,
            file=one.file,
            line=one.line,
            code=code(one.file, one.line),
            text=one.text,
        )
        for one in of_profile(profile)
    ]
    for kernel in variant.kernels:
        for file, line, text in _divergent(kernel):
            title = "divergent branch"
            lines.append(
                Cost(
                    kind="divergence",
                    title=title,
                    file=file,
                    line=line,
                    code=code(file, line),
                    text=text,
                )
            )
    return Costs(input=profile.input, lines=lines, counts=counts_of(variant.kernels))


def _divergent(kernel: KernelProfile) -> Iterator[tuple[str, int, str]]:
    """The lines whose branches split many warps: file, line, and a sentence."""
    whole = sum(branch.executions for branch in kernel.trace.branches)
    for line in kernel.lines().values():
        executed = sum(branch.executions for branch in line.branches)
        split = sum(branch.divergent for branch in line.branches)
        if executed and split >= max(DIVERGENT * whole, WHOLE_LINE * executed):
            text = (
                f"{kernel.name}: {percent(split / executed)} % of the warps that come here split, "
                "and run both sides one after the other."
            )
            yield line.place.file, line.place.line, text


def counts_of(kernels: list[KernelProfile]) -> dict[str, float]:
    """What a variant does, counted: by these numbers two of them may be compared.

    Blocks that were not traced count like those that were.
    """
    counts: dict[str, float] = {}
    for kernel in kernels:
        trace, totals = kernel.trace, kernel.totals()
        scale = trace.blocks / trace.blocks_traced if trace.blocks_traced else 0.0
        threads = trace.block[0] * trace.block[1] * trace.block[2]
        one = {
            "launches": float(kernel.launches),
            "blocks": float(trace.blocks),
            "threads": float(trace.blocks * threads),
            "global requests": scale * totals.global_requests,
            "global sectors": scale * totals.global_sectors,
            "shared requests": scale * totals.shared_requests,
            "shared wavefronts": scale * totals.shared_wavefronts,
            "split branches": scale * totals.divergent_branches,
            "barriers": scale * totals.barriers,
            "warp operations": scale * totals.warp_operations,
        }
        counts = {name: counts.get(name, 0.0) + number for name, number in one.items()}
    return counts
