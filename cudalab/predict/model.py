"""The model: how long a kernel takes, from its counts, its code and a GPU. docs/predict.md.

Each term is the time that one part of the GPU would need alone; they overlap in part.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, prod

from cudalab.backends.trace import LaunchTrace
from cudalab.errors import CudalabError
from cudalab.predict.code import Code, chains, frequencies
from cudalab.predict.counts import KernelCounts
from cudalab.predict.gpus import Gpu
from cudalab.predict.instructions import Key

SECTOR_BYTES, LINE_BYTES = 32, 128
BLOCK_SHARED = 1024  # bytes that the system takes of each block's shared memory
REGISTERS_TOGETHER = 256  # are given to a warp
SCHEDULERS = 4  # of a multiprocessor; each issues one instruction in a cycle
INTEGERS_KEPT = 0.5  # of PTX's: the assembler joins two additions, or a shift and an addition
WITHOUT_CODE = Code(blocks=[], registers=32, shared_bytes=0, local_bytes=0)


@dataclass(frozen=True)
class Constants:
    """What no GPU's manual says: fitted to the H100's stored results by tools/predict."""

    overlap: float = 2.82  # 1: the parts wait for one another; large: the slowest alone counts
    barrier_cycles: float = 183.0  # for a warp to wait for its block
    partial_per_cycle: float = 29.8  # stored sectors of which a request covers a part; whole GPU
    begin_us: float = 2.01  # of a step: until its first launch is under way, with nothing in caches


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of all launches of one kernel: all that the times depend on, besides the GPU."""

    kernel: str
    launches: int
    blocks: int  # of all launches
    busy: float  # multiprocessors that work at a time in the largest launch
    warps_per_block: int
    registers: int  # of a thread
    shared_bytes: int  # of a block
    dram_bytes: float
    l2_bytes: float  # that L2 has from the launch before
    l1_turns: float  # lines, wavefronts and shuffles: one at a time in a multiprocessor
    partial: float  # sectors that a store covers in part
    atomics: float  # sectors
    instructions: float  # as warps issue them; those of one unit follow
    float_instructions: float
    integer_instructions: float
    slow_instructions: float
    double_instructions: float
    barriers: float  # that warps wait at
    cycles: float  # that each warp needs alone, summed up


# Counting together --------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Sums:
    """The costs of a kernel's accesses, over all lines of its source."""

    executed: dict[Key, float] = field(default_factory=lambda: defaultdict(float))  # times bytes
    turns: dict[Key, float] = field(default_factory=dict)  # of a request
    sectors: dict[Key, float] = field(default_factory=dict)  # of a request to global memory
    traffic: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # by buffer
    l1_turns: float = 0.0
    partial: float = 0.0
    atomics: float = 0.0
    is_staged: bool = False  # in shared memory


def _sums(counts: KernelCounts, code: Code) -> _Sums:
    sums, parts = _Sums(), code.parts()
    for row, cost in counts.rows.items():
        _, _, space, kind = row.key
        sums.executed[row.key] += cost.requests * row.bytes
        if space == "global":
            sums.traffic[row.buffer] += SECTOR_BYTES * cost.sectors
            sectors = cost.sectors / max(cost.requests, 1.0)
            sums.sectors[row.key] = max(sums.sectors.get(row.key, 1.0), sectors)
            sums.atomics += cost.sectors if kind == "atomic" else 0.0
            sums.partial += cost.partial if kind == "store" else 0.0
        if space == "shared" or kind != "atomic":  # L2 carries out atomics of global memory
            turns = cost.wavefronts if space == "shared" else cost.lines
            each = turns / max(cost.requests, 1.0)
            sums.turns[row.key] = max(sums.turns.get(row.key, 1.0), each)
            sums.l1_turns += turns * parts.get(row.key, 1.0)
        sums.is_staged |= space == "shared"
    for key, executions in counts.barriers.items():
        sums.executed[key] += executions
        sums.l1_turns += executions * parts.get(key, 1.0) if key[3] == "warp" else 0.0
    return sums


def _moved(counts: KernelCounts, sums: _Sums, launch: LaunchTrace) -> float:
    """The bytes that a launch moves: no more of a buffer than it has."""
    part = launch.blocks / counts.blocks
    return sum(min(part * b, launch.buffers.get(name, b)) for name, b in sums.traffic.items())


def _traffic(counts: KernelCounts, sums: _Sums, gpu: Gpu, used: float) -> tuple[float, float]:
    """The bytes that come from DRAM, and those that L2 has from the launches before.

    L2 still holds what those launches have used, if it fits. A buffer that is larger than L2 has
    replaced its own beginning by the time that it is read again. A step begins with an empty L2
    and has used `used` bytes before this kernel.
    """
    dram = kept = 0.0
    for launch in counts.launches:
        moved, footprint = _moved(counts, sums, launch), sum(launch.buffers.values())
        share = min(1.0, max(0.0, 2 - footprint / (1e6 * gpu.l2_mb)))
        here = min(moved * share, used)
        dram += moved - here
        kept += here
        used += moved
    return dram, kept


def _latencies(sums: _Sums, share: float, gpu: Gpu) -> dict[Key, float]:
    """The cycles of each load, if that share of the bytes comes from DRAM.

    Where tiles lie in shared memory, other blocks load the rest of a sector again: L2 has it, and a
    request waits for the slowest of its sectors. Elsewhere the lanes use all of their sectors
    themselves, from L1.
    """
    result = {}
    for key, sectors in sums.sectors.items():
        missed = 1 - (1 - share) ** sectors if sums.is_staged else share
        again = gpu.l2_latency if sums.is_staged else gpu.l1_latency
        result[key] = gpu.dram_latency * missed + again * (1 - missed)
    return result


def works(kernels: Mapping[str, KernelCounts], codes: Mapping[str, Code], gpu: Gpu) -> list[Work]:
    """Sum up the launches of a step, by kernel."""
    result, used = [], 0.0
    for name, counts in kernels.items():
        result.append(work(counts, codes.get(name), gpu, used))
        used += _moved(counts, _sums(counts, WITHOUT_CODE), counts.launches[0])
    return result


def work(counts: KernelCounts, code: Code | None, gpu: Gpu, used: float = 0.0) -> Work:
    """Sum up the launches of a kernel, before which a step has used so many bytes."""
    code, first = code or WITHOUT_CODE, counts.launches[0]
    sums = _sums(counts, code)
    per_block = -(-prod(first.block) // 32)
    warps = counts.blocks * per_block
    shared_bytes = code.shared_bytes + first.shared_bytes
    if shared_bytes + BLOCK_SHARED > 1024 * gpu.shared_kb:
        raise CudalabError(
            f"a block of {first.kernel} has {shared_bytes:,} bytes of shared memory, which is more "
            f"than an {gpu.name} gives it"
        )
    resident = resident_blocks(gpu, per_block, code.registers, shared_bytes)
    dram, kept = _traffic(counts, sums, gpu, used)
    share = min(1.0, dram / max(1.0, sum(sums.traffic.values())))
    misses = _latencies(sums, share, gpu)

    often = frequencies(code, sums.executed, warps)
    units: dict[str, float] = defaultdict(float)
    for times, block in zip(often, code.blocks, strict=True):
        for unit, number in block.counts().items():
            units[unit] += times * number

    # Local memory of all resident threads lies in L1 if it fits, else in L2, else in DRAM.
    resident = min(resident, -(-first.blocks // int(gpu.multiprocessors)))
    local, local_latency = 32.0 * code.local_bytes * resident * per_block, gpu.l1_latency
    if local > 1024 * gpu.l1_kb - resident * shared_bytes:
        in_l2 = min(1.0, 1e6 * gpu.l2_mb / (local * gpu.multiprocessors))
        dram += LINE_BYTES * units["local"] * (1 - in_l2)
        kept += LINE_BYTES * units["local"] * in_l2
        local_latency = gpu.l2_latency * in_l2 + gpu.dram_latency * (1 - in_l2)
    alone = chains(code, gpu, misses, local_latency, sums.turns)

    return Work(
        kernel=first.kernel,
        launches=len(counts.launches),
        blocks=counts.blocks,
        busy=busy(gpu, max(launch.blocks for launch in counts.launches)),
        warps_per_block=per_block,
        registers=code.registers,
        shared_bytes=shared_bytes,
        dram_bytes=dram,
        l2_bytes=kept,
        l1_turns=sums.l1_turns + units["local"],
        partial=sums.partial,
        atomics=sums.atomics,
        instructions=sum(units.values()),
        float_instructions=units["float"],
        integer_instructions=units["integer"],
        slow_instructions=units["slow"],
        double_instructions=units["double"],
        barriers=sum(t * block.barriers() for t, block in zip(often, code.blocks, strict=True)),
        cycles=sum(t * cycles for t, cycles in zip(often, alone, strict=True)),
    )


def busy(gpu: Gpu, blocks: int) -> float:
    """How many multiprocessors work at a time, on average until the last one is done."""
    return blocks / ceil(blocks / gpu.multiprocessors)


def resident_blocks(gpu: Gpu, warps: int, registers: int, shared_bytes: int) -> int:
    """The blocks of a kernel that a multiprocessor holds at a time."""
    together = REGISTERS_TOGETHER * -(-registers * 32 // REGISTERS_TOGETHER) * warps
    limits = (
        gpu.blocks,
        gpu.warps // warps,
        gpu.registers // max(together, 1),
        1024 * gpu.shared_kb // (shared_bytes + BLOCK_SHARED),
    )
    return int(max(1, min(limits)))


# The formulas -------------------------------------------------------------------------------------


def terms(w: Work, gpu: Gpu, k: Constants) -> dict[str, float]:
    """The seconds that each part of the GPU needs for all launches of a kernel."""
    rate = w.busy * gpu.cycles_per_s
    alone = (w.cycles + k.barrier_cycles * w.barriers) / (w.blocks * w.warps_per_block)
    integers = INTEGERS_KEPT * w.integer_instructions
    issue = max(
        (w.instructions - w.integer_instructions + integers) / SCHEDULERS,
        32 * w.float_instructions / gpu.float_lanes,
        32 * integers / gpu.integer_lanes,
        32 * w.slow_instructions / gpu.slow_lanes,
        32 * w.double_instructions / gpu.double_lanes,
    )
    return {
        "DRAM": w.dram_bytes / (1e9 * gpu.dram_gb_per_s),
        "L2": w.l2_bytes / (1e9 * gpu.l2_gb_per_s),
        "L1": w.l1_turns / rate,
        "issue": issue / rate,
        "latency": w.launches * waves(w, gpu) * alone / gpu.cycles_per_s,
        "stores": w.partial / k.partial_per_cycle / gpu.cycles_per_s,
        "atomics": w.atomics / gpu.atomics_per_cycle / gpu.cycles_per_s,
    }


def least_seconds(works: Iterable[Work], gpu: Gpu) -> float:
    """The roofline: the bytes at the speed of a copy, or the products at the peak."""
    result = 0.0
    for w in works:
        peak = gpu.float_lanes * gpu.multiprocessors * gpu.cycles_per_s
        products = 32 * w.float_instructions / peak
        result += max(products, w.dram_bytes / (1e9 * gpu.dram_gb_per_s))
    return result


def waves(w: Work, gpu: Gpu) -> int:
    """How many times a launch fills a multiprocessor with blocks."""
    resident = resident_blocks(gpu, w.warps_per_block, w.registers, w.shared_bytes)
    return ceil(blocks_each(w, gpu) / resident)


def blocks_each(w: Work, gpu: Gpu) -> int:
    """The blocks of a launch for the multiprocessor with the largest number."""
    return ceil(w.blocks / w.launches / gpu.multiprocessors)


def kernel_seconds(w: Work, gpu: Gpu, k: Constants, without: Collection[str] = ()) -> float:
    """The time of all launches of a kernel.

    A multiprocessor works for some blocks while others wait, and for some warps while others wait
    if no barrier holds them together. A block or warp that is alone there works and waits in turn.
    The whole takes at least as long as each of its parts.
    """
    parts, p = terms(w, gpu, k), k.overlap
    parts |= dict.fromkeys(without, 0.0)
    longest = max(parts.values())
    alone = 1 / independent(w, gpu)
    rate = gpu.cycles_per_s
    issued = (w.instructions - INTEGERS_KEPT * w.integer_instructions) / (
        w.blocks * w.warps_per_block
    )
    own = alone * norm((parts["L1"], parts["issue"]), p)
    parts["latency"] = max(
        0.0, parts["latency"] - alone * w.launches * waves(w, gpu) * issued / rate
    )
    parts["L1"] *= 1 - alone
    parts["issue"] *= 1 - alone
    return max(longest, own + norm(parts.values(), p))


def independent(w: Work, gpu: Gpu) -> float:
    """How many groups of warps a scheduler has that need not wait for one another."""
    blocks = blocks_each(w, gpu) / waves(w, gpu)
    return max(1.0, blocks * (1 if w.barriers else w.warps_per_block / SCHEDULERS))


def norm(times: Iterable[float], p: float) -> float:
    """The time of parts that overlap: their sum for p = 1, their maximum for a large p."""
    return float(sum(time**p for time in times) ** (1 / p))


def seconds(works: Iterable[Work], gpu: Gpu, k: Constants, without: Collection[str] = ()) -> float:
    """The time of a step: it begins, and then its kernels run one after another.

    The terms of `without` are left out.
    """
    result = k.begin_us * 1e-6
    for w in works:
        result += w.launches * gpu.launch_us * 1e-6 + kernel_seconds(w, gpu, k, without)
    return result
