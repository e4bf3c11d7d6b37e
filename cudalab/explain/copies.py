"""Asynchronous copies: tiles that are on their way while others are computed"""

from collections.abc import Iterator
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

TILES = 6  # that the drawings show
COPY, COMPUTE = 8, 4  # steps that a tile takes
WIDTH = 66  # steps that fit on a line
KINDS = (
    ("cp.async", "sm_80", "each thread 4 to 16 bytes, past the registers; wait_group"),
    ("bulk copy", "sm_90", "one thread a whole tile; a barrier in shared memory counts bytes"),
    ("tensor map", "sm_90", "the same for boxes of a matrix, with its edges and a swizzle"),
)


class Tile(NamedTuple):
    """When a tile is copied and when it is used, in steps."""

    copy: int  # its first step
    arrives: int
    compute: int
    done: int


def pipeline(stages: int, tiles: int = TILES) -> list[Tile]:
    """The times of tiles that a block copies into a ring of `stages` places and then uses.

    A copy begins when the tile before has begun to be copied, one step later, and its place is
    free: the tile that was there has been used. With one place, copying and computing alternate.
    """
    made: list[Tile] = []
    for i in range(tiles):
        free = made[i - stages].done if i >= stages else 0
        copy = max(free, made[-1].copy + 1 if made else 0)
        compute = max(copy + COPY, made[-1].done if made else 0)
        made.append(Tile(copy, copy + COPY, compute, compute + COMPUTE))
    return made


def picture(stages: int) -> Iterator[str]:
    """A line for each place of the ring: the tiles' numbers, copied in `-` and used in `#`."""
    times = pipeline(stages)
    for place in range(stages):
        line = [" "] * WIDTH
        for number in range(place, TILES, stages):
            tile = times[number]
            line[tile.copy : tile.arrives] = "-" * COPY
            line[tile.arrives : tile.compute] = "." * (tile.compute - tile.arrives)
            line[tile.compute : tile.done] = "#" * COMPUTE
            line[tile.copy] = str(number)
        yield row(f"place {place}", line[:WIDTH], 1)


def costs() -> list[tuple[int, int, str, str]]:
    """The time of many tiles for rings of several sizes, and the share of it that computes."""
    tiles = 100
    rows = []
    for stages in range(1, 6):
        last = pipeline(stages, tiles)[-1].done
        rows.append((stages, last, f"{last / tiles:.2f}", f"{tiles * COMPUTE / last:.0%}"))
    return rows


def page() -> Iterator[Part]:
    """What an ordinary load costs, the ring of stages, and the three kinds of copies."""
    yield text(
        f"""
        An ordinary tiled kernel loads a tile, waits at a barrier, computes, waits at a barrier.
        While it loads it does not compute. Other blocks may fill the gap, if they fit
        ("cudalab explain occupancy"); or the block itself has the next tile under way.

        Below, a tile needs {COPY} steps to arrive (-) and {COMPUTE} to be used (#). With one place
        in shared memory both alternate; with more, the next tiles are already on their way, and a
        tile that has arrived waits for its turn (.).
        """
    )
    for stages in (1, 2, 4):
        yield Heading(f"{stages} place{'s' * (stages > 1)} in shared memory")
        yield drawing(picture(stages))
    yield Heading("100 tiles")
    yield table(("places", "steps", "steps a tile", "computing"), costs())
    yield text(
        f"""
        The law behind it is Little's: {COPY} steps of latency at one tile every {COMPUTE} steps are
        {COPY // COMPUTE} tiles under way, and one more is being used: {COPY // COMPUTE + 1} places.
        Further ones bring nothing but room for copies that are late.

        Registers can hold the next tile (`double_buffered`): load to registers, compute, store to
        shared memory, one barrier. That costs registers and instructions. Three kinds of hardware
        do without:
        """
    )
    yield table(("copy", "since", "who copies, and how one waits"), KINDS)
    yield text(
        """
        cp.async groups are counted: "wait until at most k of my groups are under way". A thread
        waits for its own copies only, so a barrier must follow before another thread reads them. A
        second barrier, before a place is filled again, keeps slow threads from reading the new
        tile: with a ring that is one place larger the same barrier serves both.

        With bulk copies one thread, or one warp, does nothing but fill the ring (the producer), and
        the others compute (the consumers): warps are specialized. Two barriers a place say "full"
        and "empty". Consumers no longer need registers for addresses, and the producer can give
        most of its own to them (setmaxnreg).
        """
    )
    yield commands(
        "cudalab show matmul double_buffered    # through registers",
        "cudalab show matmul async_copy_tiles   # cp.async, two places",
        "cudalab show matmul async_copy_ring    # a ring",
        "cudalab show matmul bulk_copies        # producer and consumers",
        "cudalab bench matmul --variants vectorized,double_buffered,async_copy_tiles",
    )
