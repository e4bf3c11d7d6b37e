"""The JSON of a profile: flat lists with an entry for each kernel, access, branch or barrier.

docs/profile.md describes it. The fields are its keys, in its order.
"""

from dataclasses import asdict, dataclass, fields

from cudalab.backends.trace import Access, Branch, LaunchTrace, Place, Step
from cudalab.microscope import profile as profiles
from cudalab.system import records
from cudalab.system.records import Scalar

SCHEMA = "cudalab-profile/1"


@dataclass(frozen=True, kw_only=True)
class VariantRow:
    """One variant, and whether it has bank conflicts."""

    variant: str
    summary: str
    file: str
    failed: str | None
    verdict: str
    bank_conflicts: bool
    conflict_degree_max: int
    conflict_file: str | None
    conflict_line: int | None


@dataclass(frozen=True)
class _Whose:
    """The kernel that a row belongs to."""

    variant: str
    kernel: str


@dataclass(frozen=True, kw_only=True)
class _Launched(_Whose):
    """The launches of a kernel together; grid and block are those of the first launch."""

    launches: int
    grid: list[int]
    block: list[int]
    blocks: int
    blocks_traced: int
    warps_traced: int


@dataclass(frozen=True, kw_only=True)
class KernelRow(profiles.Totals, _Launched):
    """One kernel, with its counts over all lines."""


@dataclass(frozen=True, kw_only=True)
class AccessCosts:
    """One access, with its most useful ratios."""

    file: str
    line: int
    space: str
    access: str
    buffer: str | None
    bytes_per_lane: int
    requests: int
    lanes: int
    lanes_per_request: float | None
    sectors: int
    ideal_sectors: int
    sectors_per_request: float | None
    ideal_sectors_per_request: float | None
    efficiency: float | None
    wavefronts: int
    ideal_wavefronts: int
    wavefronts_per_request: float | None
    bank_conflicts: int
    conflict_degree_max: int
    conflict_degree_mean: float
    same_address_max: int
    same_address_mean: float
    steps: list[Step]


@dataclass(frozen=True, kw_only=True)
class AccessRow(AccessCosts, _Whose):
    """One access of one kernel."""


@dataclass(frozen=True, kw_only=True)
class BranchRow(_Whose):
    """One branch: how often warps reached it, and how often it split them."""

    file: str
    line: int
    executions: int
    divergent: int
    divergence: float | None
    lanes_first_mean: float | None
    lanes_second_mean: float | None


@dataclass(frozen=True, kw_only=True)
class BarrierRow(_Whose):
    """One barrier of a block or operation of a warp."""

    file: str
    line: int
    kind: str
    executions: int


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole profile."""

    schema: str = SCHEMA
    device: str
    device_name: str
    banks: int
    lab: str
    case: dict[str, Scalar]
    input: str
    variants: list[VariantRow]
    kernels: list[KernelRow]
    accesses: list[AccessRow]
    branches: list[BranchRow]
    barriers: list[BarrierRow]
    notes: list[str]
    items: int = 0  # of the input; 0 in older files
    flops: int = 0

    def requested_bytes(self) -> dict[str, float]:
        """The bytes that each variant's threads request from global memory, by its name.

        Where only some blocks were traced, all are taken to request as much.
        """
        scale = {
            (one.variant, one.kernel): one.blocks / one.blocks_traced
            for one in self.kernels
            if one.blocks_traced
        }
        result: dict[str, float] = {}
        for row in self.accesses:
            if row.space == "global":
                requested = row.lanes * row.bytes_per_lane * scale[row.variant, row.kernel]
                result[row.variant] = result.get(row.variant, 0.0) + requested
        return result


def document(profile: profiles.Profile) -> Document:
    kernels = [
        (_Whose(variant.name, kernel.name), kernel)
        for variant in profile.variants
        for kernel in variant.kernels
    ]
    return Document(
        device=profile.device,
        device_name=profile.device_name,
        banks=profile.banks,
        lab=profile.lab,
        case=profile.case,
        input=profile.input,
        variants=[_variant_row(variant) for variant in profile.variants],
        kernels=[_kernel_row(whose, kernel) for whose, kernel in kernels],
        accesses=[
            AccessRow(**vars(whose), **vars(access_costs(access)))
            for whose, kernel in kernels
            for access in kernel.trace.accesses
        ],
        branches=[
            _branch_row(whose, branch)
            for whose, kernel in kernels
            for branch in kernel.trace.branches
        ],
        barriers=[row for whose, kernel in kernels for row in _barrier_rows(whose, kernel.trace)],
        notes=profile.notes,
        items=profile.items,
        flops=profile.flops,
    )


def to_json(first: Document, compared: Document | None = None) -> dict[str, object]:
    """The JSON of a profile, followed by the profile of another device if there is one."""
    return asdict(first) | ({"compared": asdict(compared)} if compared else {})


def from_json(parsed: dict[str, object]) -> Document:
    """Read a profile; another device's profile in the file is ignored."""
    return records.read(Document, {key: parsed[key] for key in parsed if key != "compared"})


def _variant_row(variant: profiles.VariantProfile) -> VariantRow:
    worst = variant.worst_conflict
    degree = worst[1].conflict_degree_max if worst else 0
    place = worst[1].place if worst and degree > 1 else None
    return VariantRow(
        variant=variant.name,
        summary=variant.summary,
        file=variant.label,
        failed=variant.failed or None,
        verdict=variant.verdict,
        bank_conflicts=degree > 1,
        conflict_degree_max=degree,
        conflict_file=place.file if place else None,
        conflict_line=place.line if place else None,
    )


def _kernel_row(whose: _Whose, kernel: profiles.KernelProfile) -> KernelRow:
    trace = kernel.trace
    return KernelRow(
        **vars(whose),
        launches=kernel.launches,
        grid=list(trace.grid),
        block=list(trace.block),
        blocks=trace.blocks,
        blocks_traced=trace.blocks_traced,
        warps_traced=trace.warps_traced,
        **vars(kernel.totals()),
    )


# What an access and its row have by the same name.
_COUNTS = {one.name for one in fields(Access)} & {one.name for one in fields(AccessCosts)}


def access_costs(access: Access) -> AccessCosts:
    """The counts of an access and their ratios."""
    counts = {name: getattr(access, name) for name in _COUNTS}
    return AccessCosts(
        **vars(access.place),
        **counts | {"steps": list(access.steps)},
        access=access.kind,
        lanes_per_request=profiles.ratio(access.lanes, access.requests),
        sectors_per_request=profiles.ratio(access.sectors, access.requests),
        ideal_sectors_per_request=profiles.ratio(access.ideal_sectors, access.requests),
        efficiency=profiles.ratio(profiles.ideal_passes(access), profiles.passes(access)),
        wavefronts_per_request=profiles.ratio(access.wavefronts, access.requests),
        bank_conflicts=access.wavefronts - access.ideal_wavefronts,
    )


def _branch_row(whose: _Whose, branch: Branch) -> BranchRow:
    return BranchRow(
        **vars(whose),
        **vars(branch.place),
        executions=branch.executions,
        divergent=branch.divergent,
        divergence=profiles.ratio(branch.divergent, branch.executions),
        lanes_first_mean=profiles.ratio(branch.lanes_first, branch.divergent),
        lanes_second_mean=profiles.ratio(branch.lanes_second, branch.divergent),
    )


def _barrier_rows(whose: _Whose, trace: LaunchTrace) -> list[BarrierRow]:
    counts: list[tuple[str, dict[Place, int]]] = [
        ("block", trace.barriers),
        ("warp", trace.warp_operations),
    ]
    return [
        BarrierRow(**vars(whose), **vars(place), kind=kind, executions=executions)
        for kind, by_place in counts
        for place, executions in by_place.items()
    ]
