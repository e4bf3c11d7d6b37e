"""What the accesses of a kernel cost, by source line: put together, named and written as JSON.

The launches that an instrument has traced (trace.py) become a `Profile`. It is printed by
annotate.py, drawn by profile_page.py, and its JSON is described in docs/profile.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cudalab import runner
from cudalab.errors import CudalabError, UsageError
from cudalab.formats import InputStream, write_all
from cudalab.labs import registry
from cudalab.labs.inputs import HostInputs
from cudalab.language import source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from cudalab.backends.base import Device
    from cudalab.backends.trace import Access, Branch, LaunchTrace, Place
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, HostInputs, Size

Json = dict[str, Any]

SCHEMA = "cudalab-profile/1"
SECTOR_BYTES = 32
SECTORS_PER_PASS = 4  # 128 bytes: what shared memory, and the cache beside it, move at once
BANKS = {32: "32 banks, a warp at a time", 16: "16 banks, half a warp at a time (the lecture's)"}
_FILE_BEGINS = re.compile(r'^#line 1 "(?P<label>(?:\\.|[^"\\])*)"$', re.MULTILINE)


@dataclass
class Line:
    """What happens at one line of the source, in one kernel."""

    place: Place
    accesses: list[Access] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    barriers: int = 0  # by blocks
    warp_operations: int = 0  # by warps

    @property
    def passes(self) -> float:
        """Turns of 128 bytes that its accesses take: wavefronts, or 4 sectors of global memory."""
        return sum(passes(access) for access in self.accesses)

    @property
    def ideal_passes(self) -> float:
        """What the same bytes need at least."""
        return sum(ideal_passes(access) for access in self.accesses)


@dataclass(frozen=True)
class KernelProfile:
    """All traced launches of one kernel, put together."""

    launches: int
    trace: LaunchTrace  # its numbers are sums; grid and block are those of the first launch

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.trace.kernel

    @property
    def whole(self) -> bool:
        """Whether every block was traced."""
        return self.trace.blocks_traced == self.trace.blocks

    def lines(self) -> dict[Place, Line]:
        """What happens at each line, in the order of file and line."""
        found: dict[Place, Line] = {}

        def line(place: Place) -> Line:
            return found.setdefault(place, Line(place))

        for access in self.trace.accesses:
            line(access.place).accesses.append(access)
        for branch in self.trace.branches:
            line(branch.place).branches.append(branch)
        for place, count in self.trace.barriers.items():
            line(place).barriers += count
        for place, count in self.trace.warp_operations.items():
            line(place).warp_operations += count
        return {place: found[place] for place in sorted(found, key=lambda p: (p.file, p.line))}

    def totals(self) -> Json:
        """The kernel's counts over all lines."""
        return totals(self.trace)


@dataclass
class VariantProfile:
    """One variant's kernels and the source files that they are made of."""

    name: str
    summary: str
    label: str
    order: float = 0
    kernels: list[KernelProfile] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)  # label of a file -> its text
    failed: str = ""  # why there are no counts
    exit_code: int = 0

    @property
    def worst_conflict(self) -> tuple[KernelProfile, Access] | None:
        """The access to shared memory with the highest degree; None without any access."""
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
        """The atomic whose lanes meet most in one word; None where they never meet."""
        atomics = [
            access
            for kernel in self.kernels
            for access in kernel.trace.accesses
            if access.kind == "atomic" and access.same_address_max > 1
        ]
        return max(atomics, key=lambda a: (a.same_address_max, a.same_address_mean), default=None)

    @property
    def verdict(self) -> str:
        """Whether there are bank conflicts, of what degree, and where."""
        if self.failed:
            return self.failed
        if self.worst_conflict is None:
            said = "no access to shared memory, so no bank conflicts"
        else:
            _, access = self.worst_conflict
            said = "bank conflicts: no"
            if access.conflict_degree_max > 1:
                said = (
                    f"bank conflicts: yes, up to {access.conflict_degree_max}-way "
                    f"(mean {access.conflict_degree_mean:.2f}) at "
                    f"{access.place.file}:{access.place.line}"
                )
        meeting = self.worst_meeting
        if meeting:
            said += (
                f"; up to {meeting.same_address_max} lanes of an atomic meet in one word "
                f"(mean {meeting.same_address_mean:.2f})"
            )
            at = f" at {meeting.place.file}:{meeting.place.line}"
            said += " there" if at in said else at
        return said


@dataclass
class Profile:
    """What one call of `cudalab profile` found on one device."""

    device: str
    device_name: str
    banks: int
    lab: str
    case: Json
    input: str  # what was computed, in words
    variants: list[VariantProfile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Counting ----------------------------------------------------------------------------------------


def passes(access: Access) -> float:
    """Turns of 128 bytes: wavefronts of shared memory, a quarter of the sectors of global."""
    if access.space == "shared":
        return float(access.wavefronts)
    return access.sectors / SECTORS_PER_PASS if access.space == "global" else 0.0


def ideal_passes(access: Access) -> float:
    """The least for the same bytes."""
    if access.space == "shared":
        return float(access.ideal_wavefronts)
    return access.ideal_sectors / SECTORS_PER_PASS if access.space == "global" else 0.0


def totals(trace: LaunchTrace) -> Json:
    """The counts of a kernel over all its lines, as they stand in the JSON."""
    memory = [access for access in trace.accesses if access.space == "global"]
    shared = [access for access in trace.accesses if access.space == "shared"]
    sectors, ideal = _sum(memory, "sectors"), _sum(memory, "ideal_sectors")
    floats = trace.operations.get("float", 0) + trace.operations.get("double", 0)
    executed = sum(branch.executions for branch in trace.branches)
    divergent = sum(branch.divergent for branch in trace.branches)
    return {
        "global_load_requests": _sum([a for a in memory if a.kind == "load"], "requests"),
        "global_store_requests": _sum([a for a in memory if a.kind == "store"], "requests"),
        "global_atomic_requests": _sum([a for a in memory if a.kind == "atomic"], "requests"),
        "global_load_sectors": _sum([a for a in memory if a.kind == "load"], "sectors"),
        "global_store_sectors": _sum([a for a in memory if a.kind == "store"], "sectors"),
        "global_sectors": sectors,
        "global_ideal_sectors": ideal,
        "global_efficiency": _ratio(ideal, sectors),
        "shared_load_requests": _sum([a for a in shared if a.kind == "load"], "requests"),
        "shared_store_requests": _sum([a for a in shared if a.kind == "store"], "requests"),
        "shared_load_wavefronts": _sum([a for a in shared if a.kind == "load"], "wavefronts"),
        "shared_store_wavefronts": _sum([a for a in shared if a.kind == "store"], "wavefronts"),
        "shared_atomic_wavefronts": _sum([a for a in shared if a.kind == "atomic"], "wavefronts"),
        "shared_requests": _sum(shared, "requests"),
        "shared_wavefronts": _sum(shared, "wavefronts"),
        "shared_ideal_wavefronts": _sum(shared, "ideal_wavefronts"),
        "bank_conflicts": _sum(shared, "wavefronts") - _sum(shared, "ideal_wavefronts"),
        "conflict_degree_max": max((a.conflict_degree_max for a in shared), default=0),
        "branches": executed,
        "divergent_branches": divergent,
        "divergence": _ratio(divergent, executed),
        "barriers": sum(trace.barriers.values()),
        "warp_operations": sum(trace.warp_operations.values()),
        "operations": dict(trace.operations),
        "arithmetic_intensity": _ratio(floats, SECTOR_BYTES * sectors) if floats else None,
    }


def _sum(accesses: Iterable[Access], name: str) -> int:
    return sum(int(getattr(access, name)) for access in accesses)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def merged(traces: Iterable[LaunchTrace]) -> list[KernelProfile]:
    """The launches of each kernel put together, in the order of the first ones."""
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
    """Several accesses of one place and kind as one."""
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
        wavefronts=_sum(parts, "wavefronts"),
        ideal_wavefronts=_sum(parts, "ideal_wavefronts"),
        conflict_degree_max=max(part.conflict_degree_max for part in parts),
        conflict_degree_mean=mean("conflict_degree_mean"),
        same_address_max=max(part.same_address_max for part in parts),
        same_address_mean=mean("same_address_mean"),
        steps=next((part.steps for part in parts if part.steps), ()),
    )


def _merged_branch(parts: list[Branch]) -> Branch:
    return replace(
        parts[0],
        executions=sum(part.executions for part in parts),
        divergent=sum(part.divergent for part in parts),
        lanes_first=sum(part.lanes_first for part in parts),
        lanes_second=sum(part.lanes_second for part in parts),
    )


# JSON --------------------------------------------------------------------------------------------


def document(profile: Profile) -> Json:
    """The whole profile: flat lists, one entry a kernel, access, branch or barrier."""
    kernels, accesses, branches, barriers = [], [], [], []
    for variant in profile.variants:
        for kernel in variant.kernels:
            of = {"variant": variant.name, "kernel": kernel.name}
            kernels.append({**of, **_kernel_row(kernel)})
            accesses += [{**of, **access_row(access)} for access in kernel.trace.accesses]
            branches += [{**of, **_branch_row(branch)} for branch in kernel.trace.branches]
            barriers += [
                {**of, **_place(place), "kind": kind, "executions": count}
                for kind, counts in (
                    ("block", kernel.trace.barriers),
                    ("warp", kernel.trace.warp_operations),
                )
                for place, count in counts.items()
            ]
    return {
        "schema": SCHEMA,
        "device": profile.device,
        "device_name": profile.device_name,
        "banks": profile.banks,
        "lab": profile.lab,
        "case": profile.case,
        "input": profile.input,
        "variants": [_variant_row(variant) for variant in profile.variants],
        "kernels": kernels,
        "accesses": accesses,
        "branches": branches,
        "barriers": barriers,
        "notes": profile.notes,
    }


def _variant_row(variant: VariantProfile) -> Json:
    worst = variant.worst_conflict
    degree = worst[1].conflict_degree_max if worst else 0
    return {
        "variant": variant.name,
        "summary": variant.summary,
        "file": variant.label,
        "failed": variant.failed or None,
        "verdict": variant.verdict,
        "bank_conflicts": degree > 1,
        "conflict_degree_max": degree,
        "conflict_file": worst[1].place.file if worst and degree > 1 else None,
        "conflict_line": worst[1].place.line if worst and degree > 1 else None,
    }


def _kernel_row(kernel: KernelProfile) -> Json:
    trace = kernel.trace
    return {
        "launches": kernel.launches,
        "grid": list(trace.grid),
        "block": list(trace.block),
        "blocks": trace.blocks,
        "blocks_traced": trace.blocks_traced,
        "warps_traced": trace.warps_traced,
        **totals(trace),
    }


def access_row(access: Access) -> Json:
    """One access, with the ratios that are read most."""
    return {
        **_place(access.place),
        "space": access.space,
        "access": access.kind,
        "buffer": access.buffer,
        "bytes_per_lane": access.bytes_per_lane,
        "requests": access.requests,
        "lanes": access.lanes,
        "lanes_per_request": _ratio(access.lanes, access.requests),
        "sectors": access.sectors,
        "ideal_sectors": access.ideal_sectors,
        "sectors_per_request": _ratio(access.sectors, access.requests),
        "ideal_sectors_per_request": _ratio(access.ideal_sectors, access.requests),
        "efficiency": _ratio(ideal_passes(access), passes(access)),
        "wavefronts": access.wavefronts,
        "ideal_wavefronts": access.ideal_wavefronts,
        "wavefronts_per_request": _ratio(access.wavefronts, access.requests),
        "bank_conflicts": access.wavefronts - access.ideal_wavefronts,
        "conflict_degree_max": access.conflict_degree_max,
        "conflict_degree_mean": access.conflict_degree_mean,
        "same_address_max": access.same_address_max,
        "same_address_mean": access.same_address_mean,
        "steps": [
            {"requests": s.requests, "conflict_degree": s.conflict_degree, "sectors": s.sectors}
            for s in access.steps
        ],
    }


def _branch_row(branch: Branch) -> Json:
    return {
        **_place(branch.place),
        "executions": branch.executions,
        "divergent": branch.divergent,
        "divergence": _ratio(branch.divergent, branch.executions),
        "lanes_first_mean": _ratio(branch.lanes_first, branch.divergent),
        "lanes_second_mean": _ratio(branch.lanes_second, branch.divergent),
    }


def _place(place: Place) -> Json:
    return {"file": place.file, "line": place.line}


# Running -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """An input in memory, and what it is in words."""

    inputs: HostInputs
    words: str
    path: Path  # of the file it was read from


def generated(lab: Lab, case: Case, size: Size, dist: str, seed: int, folder: Path) -> Data:
    """An input drawn at random."""
    path = folder / "input.bin"
    with path.open("wb") as file:
        write_all(file.fileno(), lab.generate(case, size, dist, seed), path.name)
    shown = "x".join(f"{d:,}" for d in (size if isinstance(size, tuple) else (size,)))
    return from_file(lab, case, path, f"n = {shown}, {dist}, seed {seed}")


def from_file(lab: Lab, case: Case, path: Path, words: str = "") -> Data:
    """The input in a file. UsageError where nothing is to be computed."""
    with path.open("rb") as file:
        inputs = lab.read(InputStream(file.fileno(), str(path)), case).load()
    words = words or str(path)
    if lab.empty_answer(inputs, case) is not None:
        raise UsageError(f"{lab.name}: {words}: there is nothing to compute, and to look at")
    return Data(inputs, words, path)


def profile_variant(
    lab: Lab,
    variant: Variant,
    device: Device,
    traces: Callable[[], Sequence[LaunchTrace]],
    data: Data,
    case: Case,
) -> VariantProfile:
    """Run a variant once; `traces` gives the launches that the instrument saw meanwhile.

    A variant that cannot run is a profile that says why.
    """
    found = VariantProfile(variant.name, variant.summary, variant.label, variant.order)
    try:
        loaded = source.load(variant.path, variant.label)
        found.texts = texts_of(loaded)
        registry.check_features(variant, device.name, device.features)
        step = runner.prepare(lab, variant, device, data.inputs, case, watch=runner.Stopwatch())
        step()
        device.synchronize()
        found.kernels = merged(traces())
    except CudalabError as error:
        found.failed, found.exit_code = error.message, int(error.exit_code)
    return found


def texts_of(loaded: source.Source) -> dict[str, str]:
    """The file and all it includes: how messages name each, and its text."""
    labels = [match["label"] for match in _FILE_BEGINS.finditer(loaded.text)]
    return {
        re.sub(r"\\(.)", r"\1", label): source.read(path, label)
        for label, path in zip(labels, loaded.files, strict=True)
    }
