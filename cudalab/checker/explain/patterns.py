"""Patterns of wrong elements, from the most specific to the most general."""

from collections.abc import Callable, Iterator

import numpy as np

from cudalab.labs import evidence
from cudalab.labs.evidence import SANITIZE, Evidence, Finding

Rule = Callable[[Evidence], Iterator[Finding]]

FEW = 3  # so few wrong elements form no pattern
HALF, BFLOAT = 2.0**-10, 2.0**-7  # relative errors of numbers with 11 and with 8 bits


def findings(evidence: Evidence, mistakes: Rule) -> list[Finding]:
    """The patterns that fit, best first; `mistakes` are those of the lab."""
    rules: list[Rule] = [_untouched, mistakes, *_GENERAL]
    result: list[Finding] = []
    for rule in rules:
        for one in rule(evidence):
            seen = [other.pattern for other in result]
            # Elements that were never written are NaN too; that adds nothing.
            known = "not all written" in seen and one.pattern == "NaN or infinity"
            explained = any(other.root for other in result)
            if one.pattern not in seen and not known and not explained:
                result.append(one)
            if one.pattern == "never written":
                return result  # no other pattern means anything
    return result


# Any lab -----------------------------------------------------------------------------------------


def _untouched(e: Evidence) -> Iterator[Finding]:
    """Elements that still hold the garbage that the memory was filled with."""
    unwritten = e.launches.unwritten
    if unwritten is None or len(unwritten) < e.got.size:
        return
    missed = e.wrong[unwritten[e.wrong]]
    count = len(missed)
    if count == 0 or count < len(e.wrong) // 2:
        return
    if count == e.got.size:
        yield Finding(
            "never written",
            "not one element of the answer was written",
            "the kernel does not write its output, or returns before it does",
            SANITIZE,
        )
        return
    place = evidence.where(e, missed)
    yield Finding(
        "not all written",
        f"{count:,} elements were never written{place}",
        "no thread handles these elements: is the grid ceil(n / block), and does the last block "
        "handle its part?",
        SANITIZE,
    )


def _zeros(e: Evidence) -> Iterator[Finding]:
    wrong = e.got[e.wrong]
    if len(wrong) > FEW and not wrong.any():
        place = evidence.where(e, e.wrong)
        yield Finding(
            "zeros",
            f"all wrong elements are 0{place}",
            "they were cleared and never computed, or their threads return early",
        )


def _not_finite(e: Evidence) -> Iterator[Finding]:
    if e.got.dtype.kind != "f":
        return
    bad = e.wrong[~np.isfinite(e.got[e.wrong]) & np.isfinite(e.expected[e.wrong])]
    if len(bad):
        yield Finding(
            "NaN or infinity",
            f"{len(bad):,} elements are NaN or infinite, the first is [{bad[0]:,}]",
            "memory that was never written was read: the checker fills it with NaN. Check the "
            "bounds of every load, and that shared memory is written before it is read",
            SANITIZE,
        )


def _rounding(e: Evidence) -> Iterator[Finding]:
    """Wrong everywhere, but only in the last digits."""
    if e.got.dtype.kind != "f" or e.expected.dtype.kind != "f" or len(e.wrong) <= FEW:
        return  # one number may be off by anything
    got, expected = e.got[e.wrong].astype(np.float64), e.expected[e.wrong].astype(np.float64)
    scale = np.maximum(np.abs(expected), float(np.median(np.abs(e.expected))) or 1.0)
    relative = np.abs(got - expected) / scale
    worst = float(relative.max(initial=0)) if np.isfinite(relative).all() else np.inf
    if worst < 4 * HALF:
        yield Finding(
            "too few digits",
            f"right in the first digits only: the relative error is up to {worst:.1e}",
            "half precision, TF32 or fast intrinsics on the way, or a long chain of additions: "
            "accumulate in float32, pairwise",
        )
    elif worst < 4 * BFLOAT:
        yield Finding(
            "too few digits",
            f"right in two digits: the relative error is up to {worst:.1e}",
            "bfloat16 on the way: it has 8 significant bits, float32 has 24",
        )


def _positions(e: Evidence) -> Iterator[Finding]:
    """Patterns in the positions of the wrong elements."""
    n, wrong = e.got.size, e.wrong
    if n <= 1 or len(wrong) == n:
        return
    if e.shape:
        yield from _matrix_positions(e)
    if len(wrong) == 1 and wrong[0] in (0, n - 1):
        which = "first" if wrong[0] == 0 else "last"
        yield Finding(
            f"the {which} element",
            f"only the {which} element is wrong",
            "off by one: check the bounds, i < n and not i < n - 1 or i <= n",
            SANITIZE,
        )
        return
    if len(wrong) > FEW:
        yield from _strides(e)
    if not e.shape:
        yield from _ranges(e)


def _ranges(e: Evidence) -> Iterator[Finding]:
    """A contiguous wrong part that begins or ends at a block's edge."""
    n, first, last = e.got.size, int(e.wrong[0]), int(e.wrong[-1])
    if len(e.wrong) < 0.8 * (last - first + 1):
        return
    blocks = evidence.block_sizes(e)
    block = next((b for b in blocks if first % b == 0), 0)
    if last >= n - 2 and first > 0 and block:
        if first == block and n > 2 * block:
            yield Finding(
                "only the first block",
                f"right up to [{first - 1:,}], wrong from [{first:,}] on: one block of {block:,}",
                "the index lacks blockIdx.x * blockDim.x, or the blocks' results are not combined",
                "cudalab explain reduction",
            )
        elif n - first < block:
            yield Finding(
                "the last partial block",
                f"wrong from [{first:,}] on: the last block has only {n - first:,} of {block:,} "
                "elements",
                "n is not a multiple of the block: guard loads and stores with if (i < n), but not "
                "the __syncthreads()",
                SANITIZE,
            )
        else:
            yield Finding(
                f"from {first} on",
                f"right up to [{first - 1:,}], wrong from [{first:,}] to the end",
                "what limits the work to the first elements: the grid, a shared array, a level of "
                "the recursion?",
                SANITIZE,
            )
    elif first == 0 and last < n - 1 and any((last + 1) % b == 0 for b in blocks):
        yield Finding(
            f"up to {last}",
            f"wrong up to [{last:,}], right after it",
            "does the first block do something that the others do not?",
            SANITIZE,
        )


def _strides(e: Evidence) -> Iterator[Finding]:
    """Wrong elements at the same position in each group of 2, 4, ... elements."""
    for period in sorted({2, 4, 8, 16, *evidence.BLOCKS, *evidence.block_sizes(e)}):
        places = np.unique(e.wrong % period)
        if len(places) > max(1, period // 8) or e.got.size < 2 * period:
            continue
        possible = sum(-(-(e.got.size - int(p)) // period) for p in places)
        if len(e.wrong) < 0.8 * possible or possible < FEW + 1:
            continue
        ending = {1: "st", 2: "nd", 3: "rd"}.get(period % 10, "th")
        ending = "th" if period % 100 in (11, 12, 13) else ending
        which = f"place {places[0]}" if len(places) == 1 else f"{len(places)} places"
        yield Finding(
            f"every {period}{ending}",
            f"{which} of every {period:,} elements: [{e.wrong[0]:,}], [{e.wrong[1]:,}], …",
            _stride_cause(period, int(places[0]), e),
            SANITIZE,
        )
        return


def _stride_cause(period: int, place: int, e: Evidence) -> str:
    edge = "first" if place == 0 else "last" if place == period - 1 else "same"
    if period in evidence.block_sizes(e) or period > 32:
        return (
            f"the {edge} element of each block: how neighbouring blocks meet, or an index that is "
            "off by one at the block's edge"
        )
    if period == 32:
        return f"the {edge} lane of each warp: the mask or the distance of a warp operation"
    return "some lanes do different work: the stride of the loop, or part of a vector load"


def _matrix_positions(e: Evidence) -> Iterator[Finding]:
    rows, cols = e.shape or (1, e.got.size)
    row, col = e.wrong // cols, e.wrong % cols
    for tile in evidence.tile_of(e)[:1] or evidence.TILES:
        edge_rows, edge_cols = rows // tile * tile, cols // tile * tile
        outside = (row >= edge_rows) | (col >= edge_cols)
        if outside.all() and (edge_rows or edge_cols) and (rows % tile or cols % tile):
            yield Finding(
                "the last partial tile",
                f"only elements beyond row {edge_rows:,} or column {edge_cols:,} are wrong: the "
                f"tiles of {tile} that are not whole",
                "the matrix is not a multiple of the tile: load 0 for what is outside, store only "
                "what is inside, and let every thread reach __syncthreads()",
                "cudalab explain matmul",
            )
            return
        inside = (row < tile) & (col < tile)
        right = np.ones((rows, cols), bool)
        right[row, col] = False
        if not inside.any() and right[:tile, :tile].all() and not right[tile:, tile:].any():
            if rows > tile and cols > tile:
                yield Finding(
                    "only the first block",
                    f"only the first tile of {tile} x {tile} is right",
                    "the indices lack blockIdx.x and blockIdx.y",
                )
            return
    if (row == col).all():
        yield Finding(
            "the diagonal", "only elements of the diagonal are wrong", "a test such as row == col"
        )


_GENERAL: list[Rule] = [_zeros, _not_finite, _positions, _rounding]
