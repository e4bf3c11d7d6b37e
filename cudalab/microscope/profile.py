"""The costs of a kernel's accesses by source line.

The launches that an instrument has traced (backends/trace.py) become a `Profile`. annotate.py lays
it out for a terminal, page.py for a browser, document.py as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

from cudalab import runner
from cudalab.backends.base import Device
from cudalab.backends.trace import Access, Branch, LaunchTrace, Place
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.language import source
from cudalab.microscope.subject import Data, texts_of
from cudalab.system.records import Scalar

SECTOR_BYTES = 32
IN_SECTORS = ("global", "local")  # what is moved in sectors
SECTORS_PER_PASS = 4  # 128 bytes, which shared memory and the L1 cache move at once
BANKS = {32: "32 banks, a warp at a time", 16: "16 banks, half a warp at a time (the lecture's)"}


@dataclass
class Line:
    """The accesses, branches and barriers at one source line of one kernel."""

    place: Place
    _: KW_ONLY
    accesses: list[Access] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    barriers: int = 0  # executed by blocks
    warp_operations: int = 0  # executed by warps

    @property
    def passes(self) -> float:
        """Passes of 128 bytes for its accesses: wavefronts, or 4 sectors of other memory."""
        return sum(passes(access) for access in self.accesses)

    @property
    def ideal_passes(self) -> float:
        """The minimum number of passes for the same bytes."""
        return sum(ideal_passes(access) for access in self.accesses)


@dataclass(frozen=True)
class KernelProfile:
    """All traced launches of one kernel together."""

    launches: int
    trace: LaunchTrace  # its numbers are sums; grid and block are those of the first launch

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.trace.kernel

    @property
    def whole(self) -> bool:
        """Whether every block was traced."""
        return self.trace.blocks_traced == self.trace.blocks

    def lines(self) -> dict[Place, Line]:
        """The lines with accesses, branches or barriers, ordered by file and line."""
        by_place: dict[Place, Line] = {}

        def line(place: Place) -> Line:
            return by_place.setdefault(place, Line(place))

        for access in self.trace.accesses:
            line(access.place).accesses.append(access)
        for branch in self.trace.branches:
            line(branch.place).branches.append(branch)
        for place, count in self.trace.barriers.items():
            line(place).barriers += count
        for place, count in self.trace.warp_operations.items():
            line(place).warp_operations += count
        return {
            place: by_place[place] for place in sorted(by_place, key=lambda p: (p.file, p.line))
        }

    def totals(self) -> Totals:
        """The kernel's counts over all lines."""
        return totals(self.trace)


@dataclass(kw_only=True)
class VariantProfile:
    """One variant's kernels and their source files."""

    name: str
    summary: str
    label: str
    order: float = 0
    kernels: list[KernelProfile] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # by the label of the file
    failed: str = ""  # why there are no counts
    exit_code: int = 0

    @property
    def worst_conflict(self) -> tuple[KernelProfile, Access] | None:
        """The access to shared memory with the highest conflict degree; None without accesses."""
        shared = [
            (kernel, access)
            for kernel in self.kernels
            for access in kernel.trace.accesses
            if access.space == "shared" and access.requests
        ]
        return max(
            shared,
            key=lambda one: (one[1].conflict_degree_max, one[1].conflict_degree_mean),
            default=None,
        )

    @property
    def worst_meeting(self) -> Access | None:
        """The atomic with the most lanes in one word, in most turns; None if no two lanes meet."""
        atomics = [
            access
            for kernel in self.kernels
            for access in kernel.trace.accesses
            if access.kind == "atomic" and access.same_address_max > 1
        ]
        return max(
            atomics,
            key=lambda a: (
                a.same_address_max,
                a.ideal_wavefronts / a.requests,
                a.same_address_mean,
            ),
            default=None,
        )

    @property
    def verdict(self) -> str:
        """Whether there are bank conflicts, of what degree, and where."""
        if self.failed:
            return self.failed
        if self.worst_conflict is None:
            text = "no access to shared memory, so no bank conflicts"
        else:
            _, access = self.worst_conflict
            text = "bank conflicts: no"
            if access.conflict_degree_max > 1:
                text = (
                    f"bank conflicts: yes, up to {access.conflict_degree_max}-way "
                    f"(mean {access.conflict_degree_mean:.2f}) at "
                    f"{access.place.file}:{access.place.line}"
                )
        meeting = self.worst_meeting
        if meeting:
            mean = meeting.wavefronts / meeting.requests
            turns = f"; {mean:.1f} wavefronts a request" if mean > 1 else ""
            text += (
                f"; up to {meeting.same_address_max} lanes of an atomic meet in one word "
                f"(mean {meeting.same_address_mean:.2f}{turns})"
            )
            at = f" at {meeting.place.file}:{meeting.place.line}"
            text += " there" if at in text else at
        return text


@dataclass(kw_only=True)
class Profile:
    """The result of one call of `cudalab profile` on one device."""

    device: str
    device_name: str
    banks: int
    lab: str
    case: dict[str, Scalar]
    input: str  # a description of the input
    items: int = 0  # elements that the lab computes from it
    flops: int = 0  # floating-point operations, if they are the lab's limit
    variants: list[VariantProfile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Counting ----------------------------------------------------------------------------------------


def passes(access: Access) -> float:
    """Passes of 128 bytes: wavefronts of shared memory, else a quarter of the sectors."""
    if access.space == "shared":
        return float(access.wavefronts)
    return access.sectors / SECTORS_PER_PASS if access.space in IN_SECTORS else 0.0


def ideal_passes(access: Access) -> float:
    """The minimum number of passes for the same bytes."""
    if access.space == "shared":
        return float(access.ideal_wavefronts)
    return access.ideal_sectors / SECTORS_PER_PASS if access.space in IN_SECTORS else 0.0


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The counts of a kernel over all its lines, in the form of the JSON."""

    global_load_requests: int
    global_store_requests: int
    global_atomic_requests: int
    global_load_sectors: int
    global_store_sectors: int
    global_sectors: int
    global_ideal_sectors: int
    global_efficiency: float | None
    shared_load_requests: int
    shared_store_requests: int
    shared_load_wavefronts: int
    shared_store_wavefronts: int
    shared_atomic_wavefronts: int
    shared_requests: int
    shared_wavefronts: int
    shared_ideal_wavefronts: int
    bank_conflicts: int
    conflict_degree_max: int
    branches: int
    divergent_branches: int
    divergence: float | None
    barriers: int
    warp_operations: int
    operations: dict[str, int]
    arithmetic_intensity: float | None
    local_load_requests: int = 0  # of lines whose arrays nvcc does not keep in registers
    local_store_requests: int = 0
    local_load_sectors: int = 0
    local_store_sectors: int = 0

    @property
    def global_requests(self) -> int:
        """Loads, stores and atomics."""
        return self.global_load_requests + self.global_store_requests + self.global_atomic_requests


def totals(trace: LaunchTrace) -> Totals:
    """The counts of a kernel over all its lines."""
    by_space = {
        space: [access for access in trace.accesses if access.space == space]
        for space in ("global", "shared", "local")
    }
    by_kind: dict[str, Any] = {}
    for one in fields(Totals):
        match one.name.split("_"):  # such as global_load_requests
            case [space, ("load" | "store" | "atomic") as kind, count]:
                same_kind = [access for access in by_space[space] if access.kind == kind]
                by_kind[one.name] = _sum(same_kind, count)
    memory, shared = by_space["global"], by_space["shared"]
    sectors, ideal_sectors = _sum(memory, "sectors"), _sum(memory, "ideal_sectors")
    wavefronts, ideal_wavefronts = _sum(shared, "wavefronts"), _sum(shared, "ideal_wavefronts")
    executed = sum(branch.executions for branch in trace.branches)
    divergent = sum(branch.divergent for branch in trace.branches)
    floats = trace.operations.get("float", 0) + trace.operations.get("double", 0)
    return Totals(
        **by_kind,
        global_sectors=sectors,
        global_ideal_sectors=ideal_sectors,
        global_efficiency=ratio(ideal_sectors, sectors),
        shared_requests=_sum(shared, "requests"),
        shared_wavefronts=wavefronts,
        shared_ideal_wavefronts=ideal_wavefronts,
        bank_conflicts=wavefronts - ideal_wavefronts,
        conflict_degree_max=max((a.conflict_degree_max for a in shared), default=0),
        branches=executed,
        divergent_branches=divergent,
        divergence=ratio(divergent, executed),
        barriers=sum(trace.barriers.values()),
        warp_operations=sum(trace.warp_operations.values()),
        operations=dict(trace.operations),
        arithmetic_intensity=ratio(floats, SECTOR_BYTES * sectors) if floats else None,
    )


def _sum(accesses: Iterable[Access], name: str) -> int:
    return sum(int(getattr(access, name)) for access in accesses)


def ratio(part: float, whole: float) -> float | None:
    """A part divided by the whole; None if the whole is 0."""
    return part / whole if whole else None


def merged(traces: Iterable[LaunchTrace]) -> list[KernelProfile]:
    """Merge the launches of each kernel; kernels are ordered by their first launch."""
    by_kernel: dict[str, list[LaunchTrace]] = {}
    for trace in traces:
        by_kernel.setdefault(trace.kernel, []).append(trace)
    return [_merged(each) for each in by_kernel.values()]


def _merged(traces: list[LaunchTrace]) -> KernelProfile:
    accesses: dict[tuple[Any, ...], list[Access]] = {}
    branches: dict[tuple[Place, int], list[Branch]] = {}
    barriers: dict[Place, int] = {}
    warp_operations: dict[Place, int] = {}
    operations: dict[str, int] = {}
    for trace in traces:
        seen: dict[tuple[Any, ...], int] = {}  # a line may hold several accesses of one kind
        for access in trace.accesses:
            key = (access.place, access.space, access.kind, access.bytes_per_lane, access.buffer)
            seen[key] = seen.get(key, 0) + 1
            accesses.setdefault((*key, seen[key]), []).append(access)
        for branch in trace.branches:
            place = (branch.place,)
            seen[place] = seen.get(place, 0) + 1
            branches.setdefault((branch.place, seen[place]), []).append(branch)
        _add(barriers, trace.barriers)
        _add(warp_operations, trace.warp_operations)
        _add(operations, trace.operations)
    whole = replace(
        traces[0],
        blocks=sum(trace.blocks for trace in traces),
        blocks_traced=sum(trace.blocks_traced for trace in traces),
        warps_traced=sum(trace.warps_traced for trace in traces),
        accesses=tuple(merged_access(each) for each in accesses.values()),
        branches=tuple(_merged_branch(each) for each in branches.values()),
        barriers=barriers,
        warp_operations=warp_operations,
        operations=operations,
    )
    return KernelProfile(len(traces), whole)


def _add(total: dict[Any, int], more: dict[Any, int]) -> None:
    for key, count in more.items():
        total[key] = total.get(key, 0) + count


def merged_access(parts: Sequence[Access]) -> Access:
    """Merge several accesses of one place and kind."""
    requests = sum(part.requests for part in parts)

    def mean(name: str) -> float:
        weighted = sum(part.requests * float(getattr(part, name)) for part in parts)
        return weighted / requests if requests else 0.0

    return replace(
        parts[0],
        requests=requests,
        lanes=_sum(parts, "lanes"),
        sectors=_sum(parts, "sectors"),
        ideal_sectors=_sum(parts, "ideal_sectors"),
        lines=_sum(parts, "lines"),
        partial_sectors=_sum(parts, "partial_sectors"),
        wavefronts=_sum(parts, "wavefronts"),
        ideal_wavefronts=_sum(parts, "ideal_wavefronts"),
        conflict_degree_max=max(part.conflict_degree_max for part in parts),
        conflict_degree_mean=mean("conflict_degree_mean"),
        same_address_max=max(part.same_address_max for part in parts),
        same_address_mean=mean("same_address_mean"),
        steps=next((part.steps for part in parts if part.steps), ()),
        addresses=next((part.addresses for part in parts if part.steps), ()),
    )


def _merged_branch(parts: list[Branch]) -> Branch:
    """Several launches of a branch; the first one in which a warp splits is shown step by step."""
    shown = max(parts, key=lambda part: any(len({*step.ways} - {None}) > 1 for step in part.steps))
    return replace(
        parts[0],
        executions=sum(part.executions for part in parts),
        divergent=sum(part.divergent for part in parts),
        lanes_first=sum(part.lanes_first for part in parts),
        lanes_second=sum(part.lanes_second for part in parts),
        steps=shown.steps,
        lines=shown.lines,
    )


# Running -----------------------------------------------------------------------------------------


def profile_variant(
    lab: Lab,
    variant: Variant,
    device: Device,
    traces: Callable[[], Sequence[LaunchTrace]],
    data: Data,
    case: Case,
) -> VariantProfile:
    """Run a variant once; `traces` returns the launches that the instrument has traced.

    The profile of a variant that cannot run has the reason instead of counts.
    """
    result = VariantProfile(
        name=variant.name, summary=variant.summary, label=variant.label, order=variant.order
    )
    try:
        loaded = source.load(variant.path, variant.label)
        result.texts = texts_of(loaded)
        registry.check_features(variant, device.name, device.features)
        step = runner.prepare(lab, variant, device, data.inputs, case)
        step()
        device.synchronize()
        result.kernels = merged(traces())
    except CudalabError as error:
        result.failed, result.exit_code = error.message, int(error.exit_code)
    return result
