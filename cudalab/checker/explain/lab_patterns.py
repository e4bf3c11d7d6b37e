"""The patterns that wrong answers of each lab have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cudalab.checker.explain.evidence import SANITIZE, TILES, Finding, block_sizes, tile_of
from cudalab.labs.keys import from_ordered_bits, ordered_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudalab.checker.explain.evidence import Evidence
    from cudalab.labs.inputs import Array

    Rule = Callable[[Evidence], Iterator[Finding]]


def _same_as_input(e: Evidence) -> Iterator[Finding]:
    if e.input().dtype == e.got.dtype and e.same(e.input()):
        yield Finding(
            "the input itself",
            "the answer is the input, unchanged",
            "the kernel copies, or the result is read from the wrong buffer",
        )


def _sort(e: Evidence) -> Iterator[Finding]:
    if e.case.get("layout") == "pairs":
        return
    keys, got = e.input(), e.got
    if e.same(e.expected[::-1]):
        yield Finding(
            "descending", "sorted in descending order", "the comparison is the wrong way round"
        )
        return
    yield from _other_orders(e, keys)
    if not np.array_equal(np.sort(ordered_bits(got)), np.sort(ordered_bits(keys))):
        yield from _lost_keys(e, keys)
        return
    for block in block_sizes(e):
        if block < got.size and e.same(_sorted_blocks(keys, block)):
            yield Finding(
                "only within blocks",
                f"each {block:,} keys are sorted, but the blocks are not merged",
                "blocks cannot wait for each other inside a kernel: the passes over all keys are "
                "launches of their own, with the counts of all blocks scanned in between",
                "cudalab explain radixsort",
            )
            return
    yield from _missing_passes(e, keys)


def _other_orders(e: Evidence, keys: Array) -> Iterator[Finding]:
    bits = keys.view(f"u{keys.itemsize}")
    as_unsigned = np.sort(bits).view(keys.dtype)
    as_signed = np.sort(keys.view(f"i{keys.itemsize}")).view(keys.dtype)
    if e.same(as_signed) or np.array_equal(e.got.view(bits.dtype), as_signed.view(bits.dtype)):
        yield Finding(
            "sorted as signed",
            "sorted as signed integers: keys from 2^31 on come first",
            "the keys are unsigned, but were compared as int: use unsigned int, and no sign flip",
            "cudalab explain radixsort",
        )
    elif np.array_equal(e.got.view(bits.dtype), as_unsigned.view(bits.dtype)):
        yield Finding(
            "sorted as unsigned",
            "sorted by their bits as unsigned integers: negative keys come last",
            "flip the sign bit of integers (all bits of negative floats) before the first pass, "
            "and back after the last",
            "cudalab explain radixsort",
        )


def _lost_keys(e: Evidence, keys: Array) -> Iterator[Finding]:
    have, counts = np.unique(ordered_bits(e.got), return_counts=True)
    want, due = np.unique(ordered_bits(keys), return_counts=True)
    invented = int(counts[~np.isin(have, want)].sum())
    lost = int(due[~np.isin(want, have)].sum())
    yield Finding(
        "keys lost",
        f"not the keys of the input: {lost:,} are missing, {invented:,} were not there",
        "two keys were written to one place (a scan that is not exclusive, counts that are not "
        "atomic), or a place was never written",
        SANITIZE,
    )


def _missing_passes(e: Evidence, keys: Array) -> Iterator[Finding]:
    """Sorted by some bits only, or from the top bit down."""
    bits = ordered_bits(keys)
    width = 8 * keys.itemsize
    got = ordered_bits(e.got)
    for low in range(1, width):
        mask = bits.dtype.type((1 << low) - 1)
        if np.array_equal(got, bits[np.argsort(bits & mask, kind="stable")]):
            yield Finding(
                "passes missing",
                f"sorted by the lowest {low} bits only",
                f"keys have {width} bits: the passes end too early, or the last one's result is "
                "in the other buffer",
                "cudalab explain radixsort",
            )
            return
        high = bits.dtype.type(width - low)
        if low % 4 == 0 and np.array_equal(got, bits[np.argsort(bits >> high, kind="stable")]):
            yield Finding(
                "passes missing",
                f"sorted by the highest {low} bits only",
                "the passes begin too late: the first digit is that of bit 0",
                "cudalab explain radixsort",
            )
            return
    text = np.unpackbits(
        bits.astype(f">u{keys.itemsize}").view(np.uint8).reshape(len(bits), -1), axis=1
    )
    backwards = bits[np.lexsort(text.T)]  # the last key given is the first one looked at
    if np.array_equal(got, backwards):
        yield Finding(
            "most significant bit first",
            "sorted by the bits in reverse: the last pass was that of bit 0",
            "passes of a stable sort go from the least significant digit to the most: bit 0 first",
            "cudalab explain radixsort",
        )


def _sorted_blocks(keys: Array, block: int) -> Array:
    pieces = [np.sort(ordered_bits(keys[at : at + block])) for at in range(0, len(keys), block)]
    return from_ordered_bits(np.concatenate(pieces), keys.dtype)


def _scan(e: Evidence) -> Iterator[Finding]:
    other = "inclusive" if e.case["kind"] == "exclusive" else "exclusive"
    twin = e.lab.reference(e.inputs, e.case | {"kind": other})
    if e.got.size > 1 and e.same(twin):
        yield Finding(
            f"{other} instead of {e.case['kind']}",
            f"this is the {other} scan",
            f"the {e.case['kind']} one is asked for: "
            + ("element 0 is 0, each place has the sum of all before it" if other == "inclusive"
               else "each place has the sum up to and with its own item"),
            "cudalab explain scan",
        )  # fmt: skip
        return
    if e.case["op"] != "sum":
        return
    items = e.input()
    for block in block_sizes(e):
        if block >= e.got.size:
            continue
        alone = [items[at : at + block] for at in range(0, len(items), block)]
        if e.same(np.concatenate([_scanned(piece, e) for piece in alone])):
            yield Finding(
                "only within blocks",
                f"each {block:,} items are scanned on their own: the sum begins anew in each block",
                "scan the block sums and add them back to the blocks",
                "cudalab explain scan",
            )
            return
    if e.same(np.cumsum(items[::-1], dtype=items.dtype)[::-1]):
        yield Finding(
            "from the right", "scanned from the last item to the first", "reverse the index"
        )


def _scanned(items: Array, e: Evidence) -> Array:
    wide = np.float64 if items.dtype.kind == "f" else items.dtype
    sums: Array = np.cumsum(items, dtype=wide)
    return sums if e.case["kind"] == "inclusive" else np.concatenate([[0], sums[:-1]])


def _reduce(e: Evidence) -> Iterator[Finding]:
    case, x = e.case, e.input("x")
    if case["op"] == "mean" and e.same(e.expected * _reduced_items(e)):
        yield Finding(
            "not divided", "this is the sum", "divide by the number of items for the mean"
        )
        return
    if case["op"] == "max" and not e.got[e.wrong].any() and (e.expected[e.wrong] < 0).all():
        yield Finding(
            "maximum from 0",
            "0 where all items are negative",
            "a maximum starts from the least value of the type, or from the first item, not from 0",
        )
        return
    if case["along"] != "all" or case["op"] not in ("sum", "sumsq", "dot"):
        return
    terms = x.astype(np.float64)
    if case["op"] != "sum":
        terms = terms * (e.input("y") if "y" in e.inputs.arrays else terms)
    yield from _partial_sums(e, terms if x.dtype.kind == "f" else _integer_terms(e, x))


def _integer_terms(e: Evidence, x: Array) -> Array:
    other = e.input("y") if "y" in e.inputs.arrays else x
    return x if e.case["op"] == "sum" else x * other


def _partial_sums(e: Evidence, terms: Array) -> Iterator[Finding]:
    n = len(terms)

    def total(part: Array) -> Array:
        return np.atleast_1d(part.sum(dtype=terms.dtype))

    if e.same(total(terms[:-1])):
        yield Finding(
            "the last item is missing",
            "the sum of all items but the last",
            "off by one: i < n, not i < n - 1",
            SANITIZE,
        )
    elif e.same(total(terms[1:])):
        yield Finding(
            "the first item is missing", "the sum of all items but the first", "start at 0"
        )
    elif n > 1 and e.same(2 * total(terms)):
        yield Finding("twice the sum", "every item is counted twice", "two threads add each item")
    else:
        for block in block_sizes(e):
            whole = n // block * block
            if 0 < whole < n and e.same(total(terms[:whole])):
                yield Finding(
                    "the last partial block",
                    f"the sum of the first {whole:,} items: the last {n - whole:,} are missing",
                    f"n is no multiple of {block:,}: launch ceil(n / block) blocks, and load 0 "
                    "beyond the end",
                    SANITIZE,
                )
                return
            if block < n and e.same(total(terms[:block])):
                yield Finding(
                    "only the first block",
                    f"the sum of the first {block:,} items",
                    "every block leaves a partial sum: these must be added too, by a second launch",
                    "cudalab explain reduction",
                )
                return
        if n >= 64 and e.same(total(terms.reshape(-1)[::2][: n // 2])):
            yield Finding("every other item", "the sum of every other item", "a stride of 2")


def _reduced_items(e: Evidence) -> int:
    params = e.inputs.params
    return int(params.get("n") or params["cols" if e.case["along"] == "rows" else "rows"])


def _histogram(e: Evidence) -> Iterator[Finding]:
    n, total = e.inputs.params["n"], int(e.got.sum(dtype=np.uint64))
    got, expected = e.got.astype(np.int64), e.expected.astype(np.int64)
    differences = (expected - got)[e.wrong]
    if (differences % 256 == 0).all() and (differences > 0).all():
        yield Finding(
            "byte counters overflow",
            f"counts are too small by multiples of 256, such as [{e.wrong[0]}] by "
            f"{differences[0]:,}",
            "a counter of one byte holds 255: a thread may count at most 63 words of 4 bytes "
            "before it adds them up",
            "cudalab explain histogram",
        )
    elif np.array_equal(np.roll(expected, 1), got) or np.array_equal(np.roll(expected, -1), got):
        yield Finding(
            "off by one class", "every count is in the class beside its own", "classes begin at 0"
        )
    elif total == 0:
        yield Finding(
            "zeros", "all counts are 0", "nothing is counted: does the kernel run at all?"
        )
    elif total < n and (differences >= 0).all():
        lost = n - total
        tail = next((b for b in (4, 16, *block_sizes(e)) if n % b == lost), 0)
        if tail and lost < tail:
            yield Finding(
                "the last partial block",
                f"{lost:,} elements are not counted: n mod {tail:,}",
                f"the last n mod {tail:,} elements do not fill a word or a block: count them too",
            )
        else:
            yield Finding(
                "counts lost",
                f"the counts add up to {total:,}, but there are {n:,} elements",
                "two threads read a counter, both add one, one of the two is lost: atomicAdd, "
                "also in shared memory",
                SANITIZE,
            )
    elif total > n and (differences <= 0).all():
        yield Finding(
            "counted twice",
            f"the counts add up to {total:,}, but there are {n:,} elements",
            "counters that are not cleared first, or elements that two threads count",
        )


def _matmul(e: Evidence) -> Iterator[Finding]:
    rows, cols = e.inputs.params["m"], e.inputs.params["n"]
    if e.case["product"] == "aat":
        a = np.asarray(e.inputs.arrays["a"], np.float64)
        b = a.T
    else:
        a, b = (np.asarray(e.inputs.arrays[name], np.float64) for name in ("a", "b"))
        b = b if e.case["product"] == "ab" else b.T
    k = a.shape[1]
    if min(rows, cols, k) > 1:
        if rows == cols and e.same((a @ b).T):
            yield Finding("transposed", "this is the transpose of the product", "c[row * n + col]")
        elif rows == cols == k:
            for says, product in (
                ("B A", b @ a), ("A B transposed", a @ b.T), ("A transposed B", a.T @ b),
            ):  # fmt: skip
                if e.same(product):
                    yield Finding(
                        "another product", f"this is {says}, not A B", "rows of A, columns of B"
                    )
                    return
    for tile in tile_of(e)[:1] or TILES:
        whole = k // tile * tile
        if tile < k and e.same(a[:, :tile] @ b[:tile]):
            yield Finding(
                "only the first tile along k",
                f"the sum has only the first {tile} of {k} products",
                "each block walks over all tiles of its row of A and its column of B",
                "cudalab explain matmul",
            )
            return
        if 0 < whole < k and e.same(a[:, :whole] @ b[:whole]):
            yield Finding(
                "the last partial tile along k",
                f"the sum lacks the last {k - whole} of {k} products",
                "walk over ceil(k / tile) tiles, and load 0 for what is outside",
                "cudalab explain matmul",
            )
            return


def _transpose(e: Evidence) -> Iterator[Finding]:
    matrix = np.asarray(e.inputs.arrays["matrix"])
    rows, cols = matrix.shape
    if e.same(matrix) and min(rows, cols) > 1:
        yield Finding(
            "the input itself", "the matrix as it was", "out[c * rows + r] = in[r * cols + c]"
        )
        return
    for tile in tile_of(e)[:1] or TILES:
        if rows % tile == 0 == cols % tile and rows == cols and rows > tile:
            tiles = matrix.reshape(rows // tile, tile, cols // tile, tile)
            if e.same(np.ascontiguousarray(tiles.transpose(2, 1, 0, 3)).reshape(cols, rows)):
                yield Finding(
                    "tiles moved, not transposed",
                    f"each tile of {tile} is in its new place, but not transposed itself",
                    "read the tile of shared memory with x and y exchanged",
                )
                return


def _solve(e: Evidence) -> Iterator[Finding]:
    a, f = (np.asarray(e.inputs.arrays[name], np.float64) for name in ("a", "f"))
    x = e.got.astype(np.float64)
    if not np.isfinite(x).all() or x.size == 0:
        return
    if not x.any():
        yield Finding("zeros", "x is 0", "the iteration did not begin, or x was never written")
    elif np.allclose(a @ x, -f, rtol=1e-3, atol=1e-3 * float(np.abs(f).max())):
        yield Finding(
            "the sign", "A x = -f", "the course's iteration is x + alpha (A x - f): mind the sign"
        )
    elif x.size > 1 and np.allclose(a.T @ x, f, rtol=1e-3, atol=1e-3 * float(np.abs(f).max())):
        yield Finding("transposed", "x solves the transposed system", "a[row * n + col]")
    else:
        diagonal = np.diag(a)
        if diagonal.all() and e.same(f / diagonal):
            yield Finding("one iteration", "x is f over the diagonal", "iterate until it converges")
        elif (np.abs(diagonal) < 1e-6 * np.abs(a).max()).any():
            yield Finding(
                "needs pivoting",
                "there are zeros or tiny numbers on the diagonal",
                "exchange rows so that each pivot is the greatest of its column",
            )
        else:
            yield Finding(
                "not converged",
                "x does not solve the system as well as it must",
                "more iterations, a smaller tolerance, or another method",
                "cudalab explain convergence",
            )


def _table(e: Evidence) -> Iterator[Finding]:
    step = float(np.asarray(e.inputs.arrays["step"])[0])
    x = np.arange(e.got.size) * step
    for pattern, values, cause in (
        ("sine without the root", np.sin(x), "y = sin(sqrt(x))"),
        ("root without the sine", np.sqrt(x), "y = sin(sqrt(x))"),
        ("off by one", np.sin(np.sqrt(x + step)), "x = i * step, and i begins at 0"),
    ):
        if e.same(values):
            yield Finding(pattern, f"this is a table of something else: {pattern}", cause)
            return


OF_LABS: dict[str, list[Rule]] = {
    "radixsort": [_same_as_input, _sort],
    "bitonic": [_same_as_input, _sort],
    "scan": [_scan, _same_as_input],
    "reduce": [_reduce],
    "histogram": [_histogram],
    "matmul": [_matmul],
    "transpose": [_transpose],
    "solve": [_solve],
    "table": [_table],
}
