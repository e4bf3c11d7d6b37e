"""Tests, mistakes and libraries that the sorting labs share."""

from collections.abc import Iterator, Sequence

import numpy as np

from cudalab.labs.evidence import SANITIZE, Evidence, Finding, block_sizes, same_as_input
from cudalab.labs.inputs import Array, Case
from cudalab.labs.keys import from_ordered_bits, ordered_bits
from cudalab.labs.libraries import CUB, CUPY, NUMPY, Compute, Libraries, Problem, Way
from cudalab.labs.teaching import PublicTest, Teaching

# Sizes around those of warps, tiles and blocks; each test shows some typical mistake.
TESTS = (
    PublicTest("nothing at all", 0, "uniform"),
    PublicTest("one key", 1, "uniform"),
    PublicTest("a warp and one", 33, "reversed"),
    PublicTest("equal keys", 1000, "equal"),
    PublicTest("a whole block, few values", 1024, "few"),
    PublicTest("a block and one", 1025, "uniform"),
    PublicTest("sorted already", 2049, "sorted"),
    PublicTest("the ends of the type", 4031, "ends"),  # one less than whole warps
)


class SortLibraries(Libraries):
    """The sorts of NumPy, CuPy and CUB."""

    names = (NUMPY, CUPY, CUB)

    def compute(self, problem: Problem) -> Compute:
        """Sort keys, floats by their bits; pairs by a stable argsort."""
        xp, source, out = problem.xp, problem.first, problem.out
        if problem.case.get("layout") == "pairs":

            def sort_pairs() -> None:
                keys = source[0] if source.dtype.kind == "u" else ordered_bits(source[0], xp)
                order = xp.argsort(keys, kind="stable")
                xp.take(source[0], order, out=out[0])
                xp.take(source[1], order, out=out[1])

            return sort_pairs
        if source.dtype.kind == "f":

            def sort_floats() -> None:
                bits = ordered_bits(source, xp)
                bits.sort()
                out[...] = from_ordered_bits(bits, source.dtype, xp)

            return sort_floats

        def sort_keys() -> None:
            xp.copyto(out, source)
            out.sort()

        return sort_keys

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """CuPy calls CUB's sorts."""
        return [Way(self.compute(problem), ["CUB"])]

    def cub(self, case: Case) -> dict[str, str]:
        """Choose sorting keys or pairs."""
        return {"OPERATION": "sort_pairs" if case.get("layout") == "pairs" else "sort_keys"}


class SortTeaching(Teaching):
    """A lab that sorts keys."""

    libraries = SortLibraries()
    scattered = True

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise wrong orders, lost keys, blocks that were not merged, missing passes."""
        yield from same_as_input(e)
        if e.case.get("layout") != "pairs":
            yield from _key_mistakes(e)


def _key_mistakes(e: Evidence) -> Iterator[Finding]:
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
    output, counts = np.unique(ordered_bits(e.got), return_counts=True)
    input_keys, due = np.unique(ordered_bits(keys), return_counts=True)
    for finding in (_padding(output, counts, input_keys, due), _special_floats(keys, e.got)):
        if finding:
            yield finding
            return
    invented = int(counts[~np.isin(output, input_keys)].sum())
    lost = int(due[~np.isin(input_keys, output)].sum())
    yield Finding(
        "keys lost",
        f"not the keys of the input: {lost:,} are missing, {invented:,} were not there",
        "two keys were written to one place (a scan that is not exclusive, counts that are not "
        "atomic), or a place was never written",
        SANITIZE,
    )


_CHANGES_ZERO = (
    "-0.0 and 0.0 are equal as numbers, but they are different keys: sort the bits, and do no "
    "arithmetic and no comparison with a key on the way"
)
_CHANGES_NAN = (
    "a NaN is a key like any other, and so is its sign: sort the bits; arithmetic, fabsf and fminf "
    "change them, and every comparison with a NaN is false"
)


def _padding(output: Array, counts: Array, keys: Array, due: Array) -> Finding | None:
    """A finding if the smallest key, and no other, is there more often than in the input."""
    expected = dict(zip(keys.tolist(), due.tolist(), strict=True))
    surplus = [
        (key, count - expected.get(key, 0))
        for key, count in zip(output.tolist(), counts.tolist(), strict=True)
        if count > expected.get(key, 0)
    ]
    if len(surplus) != 1 or surplus[0][0] != 0:
        return None
    return Finding(
        "padding among the keys",
        f"{surplus[0][1]:,} of the smallest possible key too many, and other keys are missing",
        "what fills up the last tile must sort behind all keys: pad with the largest key, not with "
        "0, or leave out the places beyond n. (If nothing is padded: places were cleared and no "
        "key was written to them.)",
        SANITIZE,
        root=True,
    )


def _special_floats(keys: Array, got: Array) -> Finding | None:
    """A finding if every key of a special kind has changed: -0.0, a NaN with a sign, any NaN."""
    if keys.dtype.kind != "f":
        return None
    bits, output = keys.view(f"u{keys.itemsize}"), got.view(f"u{keys.itemsize}")
    sign, nan = np.signbit(keys), np.isnan(keys)
    for what, chosen in (
        ("-0.0", sign & (keys == 0)),
        ("NaN with a sign", sign & nan),
        ("NaN", nan),
    ):
        if chosen.any() and not np.isin(bits[chosen], output).any():
            return Finding(
                f"{what} lost",
                f"none of the input's {int(chosen.sum()):,} keys that are {what} is in the answer",
                _CHANGES_ZERO if what == "-0.0" else _CHANGES_NAN,
                SANITIZE,
                root=True,
            )
    return None


def _missing_passes(e: Evidence, keys: Array) -> Iterator[Finding]:
    """Recognise a sort by some of the bits, or from the top bit down."""
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
    backwards = bits[np.lexsort(text.T)]  # lexsort's last key is its primary one
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
