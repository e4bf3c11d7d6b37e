"""Radix sort: splitting by one bit with a scan, the order of the passes, float keys"""

import struct
from collections.abc import Iterable, Iterator, Sequence

from cudalab.explain.scan import exclusive
from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

KEYS = (4, 1, 7, 2, 5, 0, 6, 3, 1, 2, 7)  # their last bits are the course's example
BITS = 3
CELL = 5
FLOATS = (-2.0, -1.0, -0.0, 0.0, 1.0, 2.0)


def bits_of(keys: Iterable[int], bit: int) -> list[int]:
    return [key >> bit & 1 for key in keys]


def places(b: Sequence[int]) -> list[int]:
    """The place of each key after a pass: i - s[i] for zeros, Nz + s[i] for ones."""
    s, zeros = exclusive(b), len(b) - sum(b)
    return [zeros + s[i] if one else i - s[i] for i, one in enumerate(b)]


def split(keys: Sequence[int], bit: int) -> list[int]:
    """The keys after a pass: zeros first, then ones, both in their previous order."""
    moved = list(keys)
    for key, place in zip(keys, places(bits_of(keys, bit)), strict=True):
        moved[place] = key
    return moved


def passes(keys: Sequence[int], order: Iterable[int]) -> list[tuple[int, list[int]]]:
    """Each bit, and the keys after its pass."""
    steps, now = [], list(keys)
    for bit in order:
        now = split(now, bit)
        steps.append((bit, now))
    return steps


def split_drawn() -> list[str]:
    """The pass of bit 0, from the keys to their places."""
    b = bits_of(KEYS, 0)
    s, zeros = exclusive(b), len(b) - sum(b)
    ones_before = [zeros + s[i] if one else "" for i, one in enumerate(b)]
    zeros_before = ["" if one else i - s[i] for i, one in enumerate(b)]
    return [
        row("i", range(len(b)), CELL),
        row("key", KEYS, CELL),
        row("b", b, CELL),
        row("s", s, CELL),
        row("i - s", zeros_before, CELL),
        row("Nz + s", ones_before, CELL),
        row("moved", split(KEYS, 0), CELL),
    ]


def passes_drawn(order: Iterable[int]) -> list[str]:
    """The keys in binary after each pass."""
    lines = [row("keys", (f"{key:0{BITS}b}" for key in KEYS), CELL)]
    for bit, now in passes(KEYS, order):
        lines.append(row(f"bit {bit}", (f"{key:0{BITS}b}" for key in now), CELL))
    return lines


def float_bits(value: float) -> int:
    """The bit pattern of a float32."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits


def flipped(bits: int) -> int:
    """The unsigned number that sorts like the float with these bits."""
    return bits ^ (0xFFFFFFFF if bits >> 31 else 0x80000000)


def page() -> Iterator[Part]:
    """One pass, all passes, a mistake, and floats."""
    yield text(
        """
        A pass looks at one bit b of each key. The exclusive scan s of b is the number of ones
        before a key, so i - s[i] is the number of zeros before it, which is where a zero goes.
        Ones go after all Nz zeros, to Nz + s[i]. Every thread can compute its own key's place.
        """
    )
    b = bits_of(KEYS, 0)
    yield Heading(f"The pass of bit 0: {sum(b)} ones, Nz = {len(b) - sum(b)} zeros")
    yield drawing(split_drawn())
    yield Heading("All passes, the least significant bit first")
    yield drawing(passes_drawn(range(BITS)))
    sorted_ = passes(KEYS, range(BITS))[-1][1]
    wrong = passes(KEYS, range(BITS - 1, -1, -1))[-1][1]
    yield text(
        f"""
        A pass keeps the order of keys whose bits are equal (it is stable), so the order from
        earlier passes is preserved among the zeros and among the ones. The result is
        {" ".join(map(str, sorted_))}.

        From the most significant bit down to bit 0 this does not work: the last pass sorts by bit 0
        and preserves the previous order only among keys whose bit 0 is equal. The same keys become
        {" ".join(map(str, wrong))}.
        """
    )
    yield Heading("float32 keys: flipped before the first pass, and back after the last")
    yield table(
        ("key", "bits", "sorted as"),
        [(f, f"{float_bits(f):08x}", f"{flipped(float_bits(f)):08x}") for f in FLOATS],
    )
    yield text(
        """
        Floats are ordered like their bit patterns, except that the sign bit has the wrong order and
        negative numbers are in reverse. So all bits of negative numbers are flipped, and the sign
        bit of the others. (For signed integers, the sign bit of all keys is flipped.)

        32 passes read and write all keys 32 times. Digits of 4 or 8 bits take only 8 or 4 passes;
        each key then needs its rank among all keys with the same digit, not just zeros or ones.
        """
    )
    yield commands(
        "cudalab show radixsort split_1bit",
        "cudalab gen radixsort --n 8 --dtype float32 > in.bin",
        "cudalab radixsort --dtype float32 --variant split_1bit < in.bin > out.bin",
        "cudalab bench radixsort --variants split_1bit,digit_4bit,digit_8bit",
    )
