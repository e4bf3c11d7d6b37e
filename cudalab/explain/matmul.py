"""Matrix products: how often numbers are read from global and from shared memory"""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, table, text

N = 1024
FLOAT_BYTES = 4


class Tiling(NamedTuple):
    """A variant whose blocks compute bm x bn elements of C, and whose threads tm x tn of them."""

    variant: str
    bm: int
    bn: int
    tm: int
    tn: int

    def global_reads(self, n: int) -> Fraction:
        """Numbers of A and B that a block reads for each of its elements."""
        return Fraction(n * (self.bm + self.bn), self.bm * self.bn)

    def intensity(self) -> Fraction:
        """Floating-point operations per byte read; each element takes 2 n operations."""
        return 2 * N / (self.global_reads(N) * FLOAT_BYTES)

    def shared_reads(self) -> Fraction:
        """Numbers read from shared memory per multiplication."""
        return Fraction(self.tm + self.tn, self.tm * self.tn)


LADDER = (
    Tiling("naive", 1, 1, 0, 0),
    Tiling("tiled", 16, 16, 1, 1),
    Tiling("register_tiled_1d", 64, 64, 8, 1),
    Tiling("register_tiled_2d", 128, 128, 8, 8),
    Tiling("large_tiles", 128, 256, 8, 16),
)


def picture(size: int, tile: int) -> list[str]:
    """The tiles that one block reads, step by step, for its tile of C."""
    across = size // tile
    mine_row, mine_col = 1, 2

    def line(text_of_column: list[str]) -> str:
        return "|".join(f" {cell:^3} " for cell in text_of_column)

    lines = [f"{'A':^{6 * across}}   {'B':^{6 * across}}   {'C':^{6 * across}}"]
    for r in range(across):
        a = [f"s{k + 1}" if r == mine_row else "." for k in range(across)]
        b = [f"s{r + 1}" if k == mine_col else "." for k in range(across)]
        c = ["C" if (r, k) == (mine_row, mine_col) else "." for k in range(across)]
        lines.append("    ".join(map(line, (a, b, c))))
    return lines


def page() -> Iterator[Part]:
    """Tiles, then the ladder in numbers."""
    yield text(
        """
        An element of C = A B is the product of a row of A and a column of B: 2 n numbers are read
        for 2 n operations. Neighbouring elements need the same rows and columns, so a block that
        computes a tile of C can read each number into shared memory once and use it for a whole
        row or column of the tile: 16 x 16 tiles need a 16th of the reads. In this drawing a block
        computes the tile C in four steps; in step k it loads the two tiles "s k", waits, multiplies
        them, and waits again:
        """
    )
    yield drawing(picture(64, 16))
    yield Heading(f"Global memory reads per element, shared memory reads per product, n = {N}")
    yield table(
        ("variant", "block", "thread", "global reads", "flop per byte", "shared reads"),
        [
            (
                each.variant,
                f"{each.bm} x {each.bn}",
                f"{each.tm} x {each.tn}" if each.tm else "1 x 1",
                f"{float(each.global_reads(N)):,g}",
                f"{float(each.intensity()):.3g}",
                f"{float(each.shared_reads()):g}" if each.tm else "",
            )
            for each in LADDER
        ],
    )
    yield text(
        """
        Shared memory is then the limit: with one element per thread, each product takes two reads
        from it. A thread that keeps several elements in registers uses each number that it reads
        for several of them. The last rungs hide the remaining latency: they load the next tiles
        while the current ones are multiplied.

        Each step needs two barriers: one after the tiles are loaded, since threads use what others
        loaded, and one before the next tiles replace them.
        """
    )
    yield commands(
        "cudalab list matmul",
        "cudalab show matmul tiled",
        "cudalab bench matmul --variants naive,tiled --n 512",
        "cudalab bench matmul --variants tiled --sweep TILE=8,16,32",
        "cudalab bench matmul --variants all",
    )
