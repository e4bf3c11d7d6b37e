"""Tensor cores: products of small matrices, and how narrow numbers add up to wide ones"""

import math
import random
import struct
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

PARTS = 3
TERMS = 4096  # of the sums in the table
UNIT = 2.0**-24  # half a unit of a float's last place
PI = 3.14159274101257324  # as a float


class Format(NamedTuple):
    """A format of numbers that tensor cores multiply."""

    name: str
    exponent: int  # bits, as are these
    fraction: int


FORMATS = (
    Format("float32", 8, 23),
    Format("tf32", 8, 10),
    Format("bfloat16", 8, 7),
    Format("float16", 5, 10),
)


def to_bfloat16(x: float) -> float:
    """The nearest bfloat16 number of a finite float, to even if there are two."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    bits += 0x7FFF + (bits >> 16 & 1)
    (rounded,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))
    return float(rounded)


def to_float(x: float) -> float:
    """The nearest float."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", x))
    return float(rounded)


def parts(x: float) -> list[float]:
    """A float as a sum of bfloat16 numbers, each the rounded remainder of those before."""
    found: list[float] = []
    for _ in range(PARTS):
        found.append(to_bfloat16(x - sum(found)))
    return found


def bits(x: float) -> str:
    """The sign, the exponent and the fraction of a bfloat16 number."""
    (word,) = struct.unpack("<I", struct.pack("<f", x))
    written = f"{word >> 16:016b}"
    return f"{written[0]} {written[1:9]} {written[9:]}"


# The products of parts that are added up, by how many; a part i and a part j give 2^-8(i + j).
KEPT: dict[int, list[tuple[int, ...]]] = {
    1: [(0, 0)],
    3: [pair for pair in product(range(PARTS), repeat=2) if sum(pair) < 2],
    6: [pair for pair in product(range(PARTS), repeat=2) if sum(pair) < 3],
    9: list(product(range(PARTS), repeat=2)),
}


def errors(seed: int = 1) -> list[tuple[str, str]]:
    """The errors of a sum of products from so many products of parts, and of one in floats.

    The sum itself is exact but for the last row: only what the parts lose is seen.
    """
    rng = random.Random(seed)  # noqa: S311 - an example
    x = [to_float(rng.gauss(0, 1)) for _ in range(TERMS)]
    y = [to_float(rng.gauss(0, 1)) for _ in range(TERMS)]
    exact = math.fsum(a * b for a, b in zip(x, y, strict=True))
    size = math.fsum(abs(a * b) for a, b in zip(x, y, strict=True))
    split = [(parts(a), parts(b)) for a, b in zip(x, y, strict=True)]
    rows: list[tuple[str, str]] = []
    for count, kept in KEPT.items():
        value = math.fsum(p[i] * q[j] for p, q in split for i, j in kept)
        rows.append((f"{count} of 9 products", f"{abs(value - exact) / size / UNIT:.3g}"))
    value = 0.0
    for a, b in zip(x, y, strict=True):
        value = to_float(value + to_float(a * b))
    rows.append(("floats, one sum after another", f"{abs(value - exact) / size / UNIT:.3g}"))
    return rows


def lane(r: int, c: int) -> int:
    """The lane that holds element (r, c) of an 8 x 8 piece of a result (PTX: mma, wgmma)."""
    return 4 * r + c // 2


def fragment() -> Iterator[str]:
    """The lanes that hold the elements of an 8 x 8 piece."""
    yield row("", (f"c={c}" for c in range(8)), 5)
    for r in range(8):
        yield row(f"row {r}", (lane(r, c) for c in range(8)), 5)


def page() -> Iterator[Part]:
    """What a tensor core does, what it loses, and how parts win it back."""
    yield text(
        """
        A multiprocessor of an H100 has 128 lanes that multiply and add two floats in a cycle: 128
        products. Its four tensor cores multiply small matrices instead: 2,048 products of 16-bit
        numbers in a cycle, since a number that is read once is used in many of them. Memory and
        shared memory have to keep up, which is what the upper rungs of a matrix product are about.

        The matrices are spread over the registers of a warp (mma) or lie in shared memory, read by
        four warps together (wgmma, sm_90). The result is in registers. A lane holds pairs of
        neighbours; this is who holds what of an 8 x 8 piece:
        """
    )
    yield drawing(fragment())
    yield Heading("What the numbers keep; the sum is a float in each case")
    yield table(
        ("format", "exponent", "fraction", "relative error of a number"),
        [
            (one.name, f"{one.exponent} bits", f"{one.fraction} bits", f"2^-{one.fraction + 1}")
            for one in FORMATS
        ],
    )
    yield from _parts()
    yield text(
        """
        Six products at the tensor cores' rate are still several times as fast as the lanes' floats.
        Two parts of float16 and three products are faster yet: 11 bits each, and a sign between
        them, if the numbers are scaled so that the second part does not vanish (Ootomo and Yokota,
        2022).

        One trap is left: tensor cores truncate where they add, and a sum over all of k that stays
        inside of them loses bits with every step. So a stage is summed there, and stages are added
        up by ordinary float additions.
        """
    )
    yield commands(
        "cudalab show matmul tensor_cores_bf16     # one part: 2^-8 is lost",
        "cudalab show matmul tensor_cores_bf16x6   # three parts, six products",
        "cudalab show matmul tensor_cores_fp16x3   # two scaled parts, three products",
        "cudalab bench matmul --variants tensor_cores_bf16x6,tensor_cores_fp16x3",
        "cudalab show solve lu_tensor_cores        # the same for updates of LU",
    )


def _parts() -> Iterator[Part]:
    """A float as three numbers of 16 bits, and what their products keep."""
    yield text(
        """
        So a product on tensor cores is not one of floats: up to 1/256 or 1/2048 of a number is lost
        before anything is multiplied. A checker whose tolerance is that of floats rejects it.

        But a float is a sum of three bfloat16 numbers, exactly, because they have a float's
        exponents and 8 bits each, with the leading one:
        """
    )
    yield drawing([f"{PI:.17f}", *(f"{part:+.17f}   {bits(part)}" for part in parts(PI))])
    yield text(
        f"""
        A product of two such sums has nine products of parts. The one of part i and part j is
        smaller by 2^-8 for each step of i + j, so the last three are below what a float keeps. This
        is a sum of {TERMS:,} products of normal numbers, each way; the errors are relative to the
        sum of the magnitudes, in units of 2^-24:
        """
    )
    yield table(("from", "error, 2^-24"), errors())
