"""Occupancy and latency: how much work must be under way to keep a GPU busy (Little's law)"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from cudalab.explain.rules import WARP
from cudalab.output.page import Heading, Part, commands, drawing, row, table, text
from cudalab.predict import gpus
from cudalab.predict.gpus import Gpu

SHOWN = "h100"
SCHEDULERS = 4  # of a multiprocessor; each has a quarter of its registers and warps
REGISTERS_AT_ONCE = 256  # a warp's registers are handed out in such pieces
SHARED_AT_ONCE = 1024  # bytes that the system keeps of each block's shared memory (sm_80 and later)
LATENCY = 8  # of a load in the drawing, in steps
CYCLES = 26  # that the drawing shows


class Block(NamedTuple):
    """What a block of threads takes."""

    threads: int
    registers: int  # of a thread
    shared_kb: float


BLOCKS = (
    Block(256, 32, 0),
    Block(256, 64, 0),
    Block(256, 96, 0),
    Block(256, 128, 0),
    Block(256, 255, 0),
    Block(1024, 33, 0),
    Block(32, 32, 0),
    Block(256, 32, 48),
    Block(384, 168, 192),
)


def resident(gpu: Gpu, block: Block) -> tuple[int, str]:
    """How many blocks a multiprocessor holds at once, and what allows no more.

    The rules are those of NVIDIA's occupancy calculator: a scheduler has a quarter of the registers
    and holds whole warps.
    """
    warps = math.ceil(block.threads / WARP)
    pieces = math.ceil(block.registers * WARP / REGISTERS_AT_ONCE)
    by_registers = SCHEDULERS * int(gpu.registers / SCHEDULERS // (pieces * REGISTERS_AT_ONCE))
    shared = block.shared_kb * 1024 + SHARED_AT_ONCE
    limits = {
        "warps": int(gpu.warps) // warps,
        "registers": by_registers // warps,
        "blocks": int(gpu.blocks),
        "shared memory": int(gpu.shared_kb * 1024 // shared),
    }
    reason = min(limits, key=lambda name: limits[name])
    return limits[reason], reason


def in_flight(gpu: Gpu) -> float:
    """Bytes that a multiprocessor must have under way: its share of the rate, times the latency."""
    seconds = gpu.dram_latency / gpu.cycles_per_s
    return 1e9 * gpu.dram_gb_per_s * seconds / gpu.multiprocessors


def warps_needed(gpu: Gpu, bytes_per_lane: int) -> int:
    """The warps whose lanes have to wait for so many bytes each to keep the memory busy."""
    return math.ceil(in_flight(gpu) / (WARP * bytes_per_lane))


def schedule(warps: int, loads: int, cycles: int) -> list[str]:
    """What each warp does in each cycle: `#` it issues a load, `.` it waits for its loads.

    One warp issues in a cycle, the first that is ready; a warp waits once it has issued `loads`.
    """
    lines = [""] * warps
    ready, issued = [0] * warps, [0] * warps
    for now in range(cycles):
        able = [w for w in range(warps) if ready[w] <= now]
        chosen = able[0] if able else None
        for w in range(warps):
            lines[w] += "#" if w == chosen else " " if w in able else "."
        if chosen is not None:
            issued[chosen] = (issued[chosen] + 1) % loads
            ready[chosen] = now + 1 + (0 if issued[chosen] else LATENCY)
    return lines


def busy(lines: list[str]) -> str:
    """The share of the cycles in which some warp issues."""
    cycles = len(lines[0])
    return f"{sum('#' in column for column in zip(*lines, strict=True)) / cycles:.0%}"


def pictures() -> Iterator[str]:
    """Some warps with one load each, and half as many with two."""
    for warps, loads in ((2, 1), (4, 1), (2, 2), (8, 1)):
        lines = schedule(warps, loads, CYCLES)
        yield f"{warps} warps, each waits after {loads}: memory is asked in {busy(lines)} of cycles"
        yield from (row(f"  warp {w}", line, 1) for w, line in enumerate(lines))


def page() -> Iterator[Part]:
    """Little's law, what it asks of a kernel, and what limits the resident blocks."""
    yield text(
        f"""
        A load takes hundreds of cycles, and a GPU does not make it shorter: it has other warps to
        run meanwhile. A scheduler issues an instruction of any warp that is ready in each cycle, at
        no cost, since all resident warps keep their registers. So the question is never how long a
        load takes, but whether enough of them are under way.

        Little's law says how many: what is under way = rate x latency. Below, a load takes
        {LATENCY} cycles, and one warp can issue in each cycle; # is a load, . is waiting.
        """
    )
    yield drawing(pictures())
    yield text(
        """
        Two warps with two loads each ask nearly as often as four with one: what counts is the
        number of loads under way. A thread may have several (parallelism among its own
        instructions) in the place of more threads with one each.
        """
    )
    yield Heading("Bytes under way in a multiprocessor that keep its share of the memory busy")
    yield table(
        ("GPU", "GB/s", "latency", "bytes", "warps, 4 bytes a lane", "16 bytes", "4 x 16 bytes"),
        [under_way(gpus.load(name)) for name in gpus.names()],
    )
    yield text(
        """
        If more warps are needed than a multiprocessor holds, a thread has to load more at once:
        float4 instead of float, or several items before the first is used. That is the rung
        "vectorized" of reduce. (A latency that was not measured is assumed: `cudalab device
        --measure` measures a GPU's own.)
        """
    )
    yield from _resident_blocks(gpus.load(SHOWN))
    yield commands(
        "cudalab show reduce vectorized   # several loads before the first is used",
        "cudalab bench reduce --variants warp_shuffle,vectorized",
        "cudalab bench matmul --variants tiled,register_tiled_1d,register_tiled_2d",
        "cudalab predict reduce --gpu t4  # where latency is the limit",
        "cudalab explain roofline         # the limits if enough is under way",
    )


def under_way(gpu: Gpu) -> tuple[object, ...]:
    """A row of the table: a GPU, and the bytes and warps that keep its memory busy."""
    return (
        gpu.name.removeprefix("NVIDIA "),
        f"{gpu.dram_gb_per_s:,.0f}",
        f"{gpu.dram_latency:g}",
        f"{in_flight(gpu):,.0f}",
        f"{warps_needed(gpu, 4)} of {gpu.warps:g}",
        warps_needed(gpu, 16),
        warps_needed(gpu, 64),
    )


def _resident_blocks(gpu: Gpu) -> Iterator[Part]:
    """What limits the blocks of a multiprocessor."""
    yield Heading(
        f"Blocks of a multiprocessor with {gpu.shared_kb:g} KB of shared memory: {gpu.name}"
    )
    yield table(
        ("threads", "registers", "shared, KB", "blocks", "warps", "occupancy", "limit"),
        [occupied(gpu, block) for block in BLOCKS],
    )
    yield text(
        f"""
        Occupancy is the share of the {gpu.warps:g} places for warps that is taken. It is a means,
        not an end. With 255 registers a thread of a matrix product computes 8 x 16 elements; its
        own independent operations keep the units busy at an occupancy of an eighth, and more warps
        with fewer registers would read shared memory more often. A higher occupancy helps a kernel
        that waits and has nothing else to do.

        __launch_bounds__(threads, blocks) tells the compiler how many registers a thread may have.
        If it needs more, values are spilled to local memory, which costs more than the warps bring:
        nvcc -Xptxas -v prints both numbers.
        """
    )


def occupied(gpu: Gpu, block: Block) -> tuple[object, ...]:
    """A row of the table: a block and how many of them a multiprocessor holds."""
    blocks, limit = resident(gpu, block)
    warps = blocks * math.ceil(block.threads / WARP)
    share = f"{warps / gpu.warps:.0%}"
    return block.threads, block.registers, f"{block.shared_kb:g}", blocks, warps, share, limit
