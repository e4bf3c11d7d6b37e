"""Decoupled look-back: a scan that reads its input once, while tiles wait for earlier ones"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field

from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

SUMS = (3, 1, 7, 0, 4, 1, 6, 3)  # of the tiles
READY = (2, 1, 6, 2, 3, 1, 2, 3)  # the step in which a tile knows its own sum
NOTHING, OWN, ALL = "X", "A", "P"  # what a tile has told: nothing, its own sum, that of all so far


@dataclass
class Tile:
    """A tile's state."""

    own: int
    ready: int
    _: KW_ONLY
    status: str = NOTHING
    before: int = 0  # the sum of the earlier tiles that it has looked at
    looks_at: int = -1
    log: list[str] = field(default_factory=list)  # its status after each step

    @property
    def told(self) -> int:
        """The number beside its flag."""
        return self.own if self.status == OWN else self.before + self.own


def run(
    sums: Sequence[int] = SUMS, ready: Sequence[int] = READY, *, chained: bool = False
) -> list[Tile]:
    """Tiles from step to step until all know what comes before them.

    A tile that knows its own sum tells it, and then looks at one earlier tile in each step: it adds
    what that has told, and is done if that was the sum of all before. If `chained`, it waits until
    its predecessor knows all.
    """
    tiles = [Tile(own, when) for own, when in zip(sums, ready, strict=True)]
    step = 0
    while any(tile.status != ALL for tile in tiles):
        seen = [(tile.status, tile.told) for tile in tiles]  # of the step before
        for i, tile in enumerate(tiles):
            if tile.status == NOTHING and step >= tile.ready:
                tile.status, tile.looks_at = (OWN, i - 1) if i else (ALL, -1)
            elif tile.status == OWN:
                status, told = seen[tile.looks_at]
                if status == ALL or (status == OWN and not chained):
                    tile.before += told
                    tile.looks_at -= 1
                if status == ALL:
                    tile.status = ALL
            tile.log.append(tile.status)
        step += 1
    return tiles


def steps(tiles: Sequence[Tile]) -> int:
    """The steps until the last tile is done."""
    return len(tiles[0].log)


def picture(tiles: Sequence[Tile]) -> Iterator[str]:
    """The flags of all tiles after each step."""
    yield row("tile", range(len(tiles)), 4)
    for step in range(steps(tiles)):
        yield row(f"step {step}", (tile.log[step] for tile in tiles), 4)
    yield row("own sum", (tile.own for tile in tiles), 4)
    yield row("before", (tile.before for tile in tiles), 4)


def in_turn(tiles: int) -> list[tuple[int, int, int]]:
    """Steps for tiles that are all ready at once, by both rules."""
    rows = []
    for count in (8, 32, 128, tiles):
        equal = [1] * count, [0] * count
        rows.append((count, steps(run(*equal, chained=True)), steps(run(*equal))))
    return rows


def page() -> Iterator[Part]:
    """The bytes of a scan, the flags, an example, and what has to hold."""
    yield text(
        """
        A scan in three launches reads its input twice: once for the sums of the tiles, once to add
        what comes before each tile. At n items of 4 bytes that is 12 n bytes; one pass moves 8 n.
        For one pass a block has to keep its tile, in registers, until it knows the sum of all tiles
        before it.

        If each tile waits for its predecessor's result the tiles form a chain. Decoupled look-back
        (Merrill and Garland, 2016) lets them go on: as soon as a tile knows its own sum it says so,
        and later tiles add such sums themselves instead of waiting.

        Each tile has one word with a flag and a number: X nothing yet, A its own sum, P the sum of
        all tiles up to it. A tile looks back one by one, adds the As, and stops at the first P.
        Here tile 2 is late, since its block started late:
        """
    )
    yield drawing(picture(run()))
    yield text(
        f"""
        While tile 2 is missing, those behind it collect what stands between, and are done as soon
        as it is: after {steps(run())} steps. A chain needs {steps(run(chained=True))}.
        """
    )
    yield Heading("Steps if all tiles are ready at the same time")
    yield table(("tiles", "chain", "look-back, one at a time"), in_turn(256))
    yield text(
        """
        Each P that a tile reaches becomes a P nearer to the tiles behind it, so about sqrt(2 n)
        steps are enough for n tiles. A warp looks at 32 earlier tiles at once, and on a GPU blocks
        start one after another, so that the nearest P is seldom far.
        """
    )
    yield Heading("What has to hold")
    yield text(
        """
        Progress: a tile may wait only for tiles whose blocks run. Blocks need not start in the
        order of blockIdx, so a block takes its tile's number from an atomic counter, a ticket.
        Whoever has an earlier ticket has started, and never waits for a later one.

        Visibility: a flag must not be seen before its number. Both in one word of 8 bytes, written
        at once, need no fence; otherwise a release store and an acquire load, or a fence on either
        side ("cudalab explain ordering").

        The same bits in each run: which sums a tile adds depends on timing, and so does the
        rounding of floats. Integers do not care. The kernels here add fixed groups of tiles, so
        that a float scan is reproducible.
        """
    )
    yield commands(
        "cudalab show scan reduce_then_scan      # three launches",
        "cudalab show scan decoupled_lookback    # one",
        "cudalab bench scan --variants reduce_then_scan,decoupled_lookback",
        "cudalab show radixsort onesweep         # the same, for 256 digits at once",
    )
