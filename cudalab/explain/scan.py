"""Scan: the trees of Hillis and Steele and of Blelloch, drawn with numbers"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from cudalab.explain.reduction import doubling, halving
from cudalab.explain.rules import WARP, WORD, steps_then, wavefronts
from cudalab.output.page import Heading, Part, commands, drawing, links, row, table, text

VALUES = (3, 1, 7, 0, 4, 1, 6, 3)
CELL = 7
BLOCK = 1024  # items in a block of the kernels, two per thread


def exclusive(values: Sequence[int]) -> list[int]:
    """The exclusive scan: each place gets the sum of all values before it."""
    return list(accumulate(values[:-1], initial=0))


def hillis_steele(values: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Each distance, and all values after its step."""
    steps, now = [], list(values)
    for distance in doubling(len(now)):
        now = [v + (now[i - distance] if i >= distance else 0) for i, v in enumerate(now)]
        steps.append((distance, now))
    return steps


def pairs(n: int, stride: int) -> list[tuple[int, int]]:
    """The pairs of places (left, right) at a level of the tree."""
    return [(right - stride, right) for right in range(2 * stride - 1, n, 2 * stride)]


def up_sweep(values: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Each stride, and the tree after its level: the right of a pair becomes the sum of both."""
    tree, steps = list(values), []
    for stride in doubling(len(tree)):
        for left, right in pairs(len(tree), stride):
            tree[right] += tree[left]
        steps.append((stride, list(tree)))
    return steps


def down_sweep(tree: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The levels back from the cleared root: left takes the value of right, right adds left."""
    now, steps = [*tree[:-1], 0], []
    for stride in halving(len(now)):
        for left, right in pairs(len(now), stride):
            now[left], now[right] = now[right], now[right] + now[left]
        steps.append((stride, list(now)))
    return steps


def hillis_steele_drawn() -> list[str]:
    """The additions and sums of each step."""
    lines = [row("place", range(len(VALUES)), CELL), row("value", VALUES, CELL)]
    before: Sequence[int] = VALUES
    for d, now in hillis_steele(VALUES):
        added = [f"+ {before[i - d]}" if i >= d else "" for i in range(len(now))]
        lines += [row(f"d = {d}", added, CELL), row("", now, CELL)]
        before = now
    return [*lines, row("shifted", [0, *before[:-1]], CELL)]


def blelloch_drawn() -> list[str]:
    """The tree upwards, the root cleared, the tree downwards."""
    n = len(VALUES)
    lines = [row("place", range(n), CELL), row("value", VALUES, CELL)]
    tree: list[int] = list(VALUES)
    for stride, tree in up_sweep(VALUES):
        lines += [links(pairs(n, stride), CELL, "└", "+"), row(f"up {stride}", tree, CELL)]
    lines += ["", row("clear", [*tree[:-1], 0], CELL)]
    for stride, now in down_sweep(tree):
        lines += [links(pairs(n, stride), CELL, "<", "+"), row(f"down {stride}", now, CELL)]
    return lines


def padded(i: int) -> int:
    """The place of item i with an unused place after every 32 items."""
    return i + (i >> 5)


def unpadded(i: int) -> int:
    """The place of item i without padding."""
    return i


def degree(
    stride: int, place: Callable[[int], int], rule: Callable[[list[int]], int], n: int = BLOCK
) -> int:
    """The cost of the worst request of a level in a block of n items, one thread per pair."""
    tree = pairs(n, stride)
    warps = [tree[first : first + WARP] for first in range(0, len(tree), WARP)]
    return max(
        rule([WORD * place(pair[side]) for pair in warp]) for warp in warps for side in (0, 1)
    )


def conflict_rows() -> list[tuple[int, int, int, int, int]]:
    """Stride, pairs, and conflicts with 16 banks, 32 banks, and 32 banks with padding."""
    return [
        (
            s,
            len(pairs(BLOCK, s)),
            degree(s, unpadded, steps_then),
            degree(s, unpadded, wavefronts),
            degree(s, padded, wavefronts),
        )
        for s in doubling(BLOCK)
    ]


def conflicts_of_padded(n: int) -> list[int]:
    """The conflicts that padding leaves in a block of n items, level by level."""
    return [ways for s in doubling(n) if (ways := degree(s, padded, wavefronts, n)) > 1]


def additions(n: int) -> tuple[int, int]:
    """The number of additions by Hillis and Steele, and by Blelloch in both sweeps."""
    strides = doubling(n)
    return sum(n - d for d in strides), 2 * sum(len(pairs(n, s)) for s in strides)


def page() -> Iterator[Part]:
    """Both trees, their work, their conflicts, and many blocks."""
    yield text(
        f"""
        An exclusive scan gives each place the sum of all values before it:
        {" ".join(map(str, VALUES))} becomes {" ".join(map(str, exclusive(VALUES)))}.
        """
    )
    yield Heading("Hillis and Steele: each place adds the value 1, 2, 4, ... places to its left")
    yield drawing(hillis_steele_drawn())
    yield text(
        """
        This scan is inclusive: each sum contains the item itself. Shifted by one place it is
        exclusive. A step adds the values from before the step, so it takes two copies of the array
        or two barriers.
        """
    )
    yield Heading("Blelloch: a tree of sums, upwards and downwards")
    yield drawing(blelloch_drawn())
    yield text(
        """
        On the way up, the right element of a pair (+) becomes the sum of both. The root, which is
        the sum of all items, is saved elsewhere and cleared. On the way down, every pair passes on
        the sum of everything to its left: the left element (<) takes the value of the right one,
        and the right one (+) adds the previous value of the left one.
        """
    )
    yield Heading("Additions")
    yield table(
        ("items", "Hillis and Steele", "Blelloch"),
        [(n, *(f"{count:,}" for count in additions(n))) for n in (len(VALUES), 512, BLOCK)],
    )
    yield Heading(f"Bank conflicts of Blelloch's tree at each level, {BLOCK} items: n-way")
    yield table(("stride", "pairs", "16 banks", "32 banks", "32 banks, padded"), conflict_rows())
    left = conflicts_of_padded(2 * BLOCK)
    yield text(
        f"""
        Lanes access every 2s-th item, so more and more of them conflict in a bank. An unused place
        after every 32 items, CONFLICT_FREE_OFFSET(i) = i >> 5, shifts each row of 32 by one bank.
        This is enough for up to {BLOCK} items; with {2 * BLOCK}, {len(left)} levels have conflicts
        again, at most {max(left)}-way.

        If there are more items than fit in a block, each block scans its own items and writes their
        sum; the sums are scanned in the same way, level by level; and each block adds the sum of
        all blocks before it.
        """
    )
    yield commands(
        "cudalab show scan blelloch_padded",
        "cudalab profile scan --variants blelloch,blelloch_padded",
        "cudalab gen scan --n 1e6 > in.bin",
        "cudalab scan --variant blelloch --time < in.bin > out.bin",
        "cudalab bench scan --variants hillis_steele,blelloch,blelloch_padded",
        "cudalab bench scan --variants all",
    )
