"""Coalescing: how a warp's accesses to global memory become few sectors, or many"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cudalab.explain.rules import SECTOR, WARP, WORD, sectors, transactions_then
from cudalab.output.page import Heading, Part, commands, drawing, table, text

SHOWN = 6  # sectors that fit on a line


class Pattern(NamedTuple):
    """The 4-byte items that the 32 lanes of a warp read, by index."""

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
    """The items' offsets in bytes from the start of an aligned array."""
    return [WORD * item for item in items]


def picture(pattern: Pattern) -> str:
    """The sectors that a pattern touches, with a mark for each word that it reads."""
    requested = set(pattern.items)
    touched = sectors(addresses(pattern.items))
    words = SECTOR // WORD
    shown = [
        "".join("#" if s * words + k in requested else "." for k in range(words))
        for s in touched[:SHOWN]
    ]
    more = "" if len(touched) <= SHOWN else f" {len(touched)}"
    return f"{pattern.title:<12}|{'|'.join(shown)}|{more}"


def cost(pattern: Pattern) -> tuple[str, int, str, str, int]:
    """Title, sectors, bytes moved, the fraction of them that is used, transactions then."""
    at = addresses(pattern.items)
    moved = SECTOR * len(sectors(at))
    requested = WORD * len(set(at))
    used = f"{100 * requested / moved:.3g} %"
    return pattern.title, moved // SECTOR, f"{moved:,}", used, transactions_then(at)


def page() -> Iterator[Part]:
    """The rule, drawings of patterns, and their costs."""
    yield text(
        f"""
        The lanes of a warp execute a load together, and memory is read in sectors of {SECTOR}
        aligned bytes. The number of sectors that the {WARP} addresses touch decides the cost, so
        neighbouring lanes should read neighbouring words. A load is coalesced if it touches no more
        sectors than its bytes need. (A cache line is four sectors, 128 bytes.)
        """
    )
    yield Heading("Sectors of eight words that a warp touches; # marks a word that it reads")
    yield drawing(picture(pattern) for pattern in PATTERNS)
    yield Heading("Cost of a load of 4 bytes by each lane")
    yield table(
        ("lane t reads", "sectors", "bytes moved", "used", "transactions then"),
        [cost(pattern) for pattern in PATTERNS],
    )
    yield text(
        """
        "Then" means compute capability 1.0, the first GPUs with CUDA: a half-warp of 16 threads
        needed one transaction of 64 bytes if thread k read word k of an aligned segment, and one
        transaction for each thread otherwise. Today order and alignment matter less, but distance
        still does.

        A matrix is stored row by row. Accesses of lanes that read along a row are coalesced. If
        each lane reads a row of its own, the addresses are a row apart, like x[1000 * t] above;
        such a kernel does use every byte in the end, but only if the caches keep the sectors until
        then. The solution is tiles in shared memory, read along rows and then used along columns.
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
