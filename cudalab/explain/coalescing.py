"""How the accesses of a warp to global memory become few transactions, or many"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cudalab.explain.rules import SECTOR, WARP, WORD, sectors, transactions_then
from cudalab.output.page import Heading, commands, drawing, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudalab.output.page import Part

SHOWN = 6  # sectors that a line has room for


class Pattern(NamedTuple):
    """What the 32 lanes of a warp read, as indices of 4-byte items."""

    title: str
    items: list[int]


PATTERNS = (
    Pattern("x[t]", list(range(WARP))),
    Pattern("x[31 - t]", list(range(WARP))[::-1]),
    Pattern("x[t ^ 1]", [t ^ 1 for t in range(WARP)]),
    Pattern("x[t + 1]", [t + 1 for t in range(WARP)]),
    Pattern("x[2 * t]", [2 * t for t in range(WARP)]),
    Pattern("x[4 * t]", [4 * t for t in range(WARP)]),
    Pattern("x[8 * t]", [8 * t for t in range(WARP)]),
    Pattern("x[1000 * t]", [1000 * t for t in range(WARP)]),
    Pattern("x[0]", [0] * WARP),
)


def addresses(items: Sequence[int]) -> list[int]:
    """Bytes from the start of an aligned array."""
    return [WORD * item for item in items]


def picture(pattern: Pattern) -> str:
    """Its sectors, a mark for each word that is wanted."""
    wanted = set(pattern.items)
    touched = sectors(addresses(pattern.items))
    words = SECTOR // WORD
    shown = [
        "".join("#" if s * words + k in wanted else "." for k in range(words))
        for s in touched[:SHOWN]
    ]
    more = "" if len(touched) <= SHOWN else f" {len(touched)}"
    return f"{pattern.title:<12}|{'|'.join(shown)}|{more}"


def cost(pattern: Pattern) -> tuple[str, int, str, str, int]:
    """Title, sectors, bytes moved, the part of them that is wanted, transactions then."""
    at = addresses(pattern.items)
    moved = SECTOR * len(sectors(at))
    wanted = WORD * len(set(at))
    used = f"{100 * wanted / moved:.3g} %"
    return pattern.title, moved // SECTOR, f"{moved:,}", used, transactions_then(at)


def page() -> Iterator[Part]:
    """The rule, pictures of it, its cost."""
    yield text(
        f"""
        The lanes of a warp execute a load together, and memory is read in sectors of {SECTOR}
        aligned bytes. What counts is how many sectors the {WARP} addresses touch: neighbouring
        lanes should read neighbouring words. A load is coalesced when it touches no more sectors
        than its bytes need. (Lines of the caches are four sectors, 128 bytes.)
        """
    )
    yield Heading("Sectors of eight words that a warp touches; # is a word it wants")
    yield drawing(picture(pattern) for pattern in PATTERNS)
    yield Heading("What a load of 4 bytes by each lane costs")
    yield table(
        ("lane t reads", "sectors", "bytes moved", "of them used", "transactions then"),
        [cost(pattern) for pattern in PATTERNS],
    )
    yield text(
        """
        "Then" is compute capability 1.0, that of the first GPUs with CUDA: a half-warp of 16
        threads got one transaction of 64 bytes if thread k read word k of an aligned segment, and
        one transaction for each thread otherwise. Order and alignment no longer matter so much;
        distance does.

        A matrix is stored row by row. Lanes that go along a row are coalesced. Lanes that each
        take a row of their own read places a row apart, x[1000 * t] above; such a kernel still
        uses every byte in the end, but only if the caches keep the sectors until then. Tiles in
        shared memory are the cure: read along rows, then used along columns.
        """
    )
    yield commands(
        "cudalab show transpose naive     # reads along rows, writes down columns",
        "cudalab profile transpose --variants naive,tiled_padded",
        "cudalab profile matmul --variants naive,uncoalesced --n 128",
        "cudalab bench transpose --variants naive,tiled,tiled_padded",
        "cudalab bench matmul --variants naive,uncoalesced",
        "cudalab bench reduce --rows --variants rows_global,rows_shared_padded",
        "cudalab bench reduce --cols --variants cols_global",
    )
