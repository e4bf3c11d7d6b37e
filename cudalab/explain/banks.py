"""The banks of shared memory: conflicts, broadcast, padding; the rules then and now"""

from collections.abc import Iterator
from typing import NamedTuple

from cudalab.explain.rules import BANKS, BANKS_THEN, WARP, WORD, conflicts, steps_then, wavefronts
from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

MEASURED_ON = "an H100 with ncu"
COLUMN_OF = 5  # the column that the drawings read


class Measured(NamedTuple):
    """One request of a warp, and the wavefronts that a GPU counted for it."""

    title: str
    addresses: list[int]  # byte addresses of the 32 lanes
    size: int  # bytes per lane
    wavefronts: int


def strided(size: int, stride: int) -> list[int]:
    """Lane t reads item `stride * t` of `size` bytes."""
    return [size * stride * t for t in range(WARP)]


def tile_rows(pitch: int, width: int) -> list[int]:
    """The first warp of a block with rows of `width` threads stores a tile row by row."""
    return [WORD * (t // width * pitch + t % width) for t in range(WARP)]


def tile_column(pitch: int, width: int) -> list[int]:
    """The same warp reads one column, s[x][p] with x = threadIdx.x: A times its transpose."""
    return [WORD * (t % width * pitch + COLUMN_OF) for t in range(WARP)]


def tile_transposed(pitch: int, width: int) -> list[int]:
    """The same warp reads s[x][y]: one column for each row of the block that it contains."""
    return [WORD * (t % width * pitch + t // width) for t in range(WARP)]


MEASURED = (
    *(Measured(f"float, stride {k}", strided(4, k), 4, n) for k, n in ((1, 1), (2, 2), (4, 4))),
    Measured("float, stride 32", strided(4, 32), 4, 32),
    *(Measured(f"double, stride {k}", strided(8, k), 8, n) for k, n in ((1, 2), (2, 4), (4, 8))),
    Measured("double, stride 16", strided(8, 16), 8, 32),
    *(Measured(f"float4, stride {k}", strided(16, k), 16, n) for k, n in ((1, 4), (2, 8), (4, 16))),
    Measured("float4, stride 8", strided(16, 8), 16, 32),
    Measured("char, stride 1", strided(1, 1), 1, 1),
    Measured("char, stride 4", strided(1, 4), 1, 1),
    Measured("short, stride 1", strided(2, 1), 2, 1),
    Measured("short, stride 2", strided(2, 2), 2, 1),
    Measured("all lanes one float", [0] * WARP, 4, 1),
    Measured("[16][16], store s[y][x]", tile_rows(16, 16), 4, 1),
    Measured("[16][16], load s[x][y]", tile_transposed(16, 16), 4, 8),
    Measured("[16][17], store s[y][x]", tile_rows(17, 16), 4, 2),
    Measured("[16][17], load s[x][y]", tile_transposed(17, 16), 4, 2),
)
TILES = ((16, 16), (16, 17), (32, 32), (32, 33))  # width, and distance of rows in words


ACCESSES = (tile_rows, tile_column, tile_transposed)


def then_and_now() -> list[tuple[str, str, str]]:
    """Conflicts of common accesses: for a half-warp then, and for a warp now."""
    kinds = (
        ("float s[], s[t]", strided(4, 1)),
        ("short s[], s[t]", strided(2, 1)),
        ("char s[], s[t]", strided(1, 1)),
        ("char s[], s[4 * t]", strided(1, 4)),
        ("float s[], s[2 * t]", strided(4, 2)),
        ("float s[], s[3 * t]", strided(4, 3)),
        ("float s[], s[16 * t]", strided(4, 16)),
        ("float s[], s[32 * t]", strided(4, 32)),
        ("float s[], s[0]", [0] * WARP),
    )
    return [(title, degree(steps_then(at)), degree(wavefronts(at))) for title, at in kinds]


def degree(steps: int) -> str:
    """A conflict's degree as text: 2 steps are a 2-way conflict."""
    return "none" if steps == 1 else f"{steps}-way"


def bank_map(pitch: int, rows: int, banks: int) -> list[str]:
    """The banks of the first words of a tile's rows, with column COLUMN_OF marked."""
    lines = []
    for r in range(rows):
        cells = [
            f"[{(r * pitch + c) % banks}]" if c == COLUMN_OF else f"{(r * pitch + c) % banks} "
            for c in range(10)
        ]
        lines.append(row(f"row {r}", cells, 6) + "  ...")
    return lines


def page() -> Iterator[Part]:
    """The rule, the two generations, padding, and measurements."""
    yield text(
        f"""
        Shared memory consists of banks that work in parallel. Word i (4 bytes) lies in bank
        i % {BANKS}. Lanes of a warp that access words in different banks are served at once, and
        so are lanes that access the same word (broadcast); different words in one bank are served
        one after the other. The number of turns ("wavefronts") is the maximum number of words that
        any one bank must serve: a 2-way, 8-way or 32-way conflict.

        The course's GPUs had {BANKS_THEN} banks, and a request came from a half-warp of 16 threads.
        Only one word could be broadcast in each step; lanes that accessed different bytes of
        another word had to wait for each other. So the same access had different conflicts:
        """
    )
    yield table(
        ("lane t reads", f"then: {BANKS_THEN} banks, half-warp", f"now: {BANKS} banks, warp"),
        then_and_now(),
    )
    yield Heading(f"Padding: banks of a tile of floats, column {COLUMN_OF} marked, {BANKS} banks")
    yield drawing(["float s[16][16]", *bank_map(16, 4, BANKS)])
    yield drawing(["float s[16][17]", *bank_map(17, 4, BANKS)])
    yield text(
        f"""
        With [16][16] a column alternates between two banks, with 8 words in each. On {BANKS_THEN}
        banks, all 16 words were in one bank. An unused word at the end of each row shifts the next
        row by one bank, so that the words of a column lie in different banks.

        On {BANKS} banks a warp spans two rows of a tile that is 16 wide. In [16][17] these begin 17
        words apart, so the last word of the second row lies in the same bank as the first word of
        the first row. Row stores are therefore 2-way, and so are reads of two columns at a time,
        s[x][y]. [32][33], with one row per warp, has no conflict in any direction.
        """
    )
    yield from measured()
    yield commands(
        "cudalab show matmul aat_padded   # its comment compares both generations",
        "cudalab profile matmul --aat --variants aat_conflict,aat_padded --banks 16",
        "cudalab profile transpose --variants tiled,tiled_padded",
        "cudalab bench matmul --aat --variants aat_conflict,aat_padded,aat_padded_32",
        "cudalab bench transpose --variants tiled,tiled_padded",
        "cudalab bench reduce --rows --variants rows_shared,rows_shared_padded",
        "cudalab bench scan --variants blelloch,blelloch_padded",
    )


def measured() -> Iterator[Part]:
    """Wavefronts by the rule, beside what a GPU counted."""
    yield Heading("Wavefronts of a warp by this rule; x = threadIdx.x, y = threadIdx.y")
    yield table(
        ("tile", "store s[y][x]", "load s[x][p]", "load s[x][y]"),
        [
            (f"[{width}][{pitch}]", *(wavefronts(at(pitch, width)) for at in ACCESSES))
            for width, pitch in TILES
        ],
    )
    yield Heading(f"One request of a warp: computed by the rule, and counted on {MEASURED_ON}")
    yield table(
        ("access", "wavefronts", "conflicts among them", "counted"),
        [
            (m.title, wavefronts(m.addresses, m.size), conflicts(m.addresses, m.size), m.wavefronts)
            for m in MEASURED
        ],
    )
    yield text(
        """
        Items of 8 bytes are served for half a warp at a time, items of 16 bytes for a quarter, so 2
        and 4 wavefronts are not a conflict. (Loads by lanes that share such items are merged
        further: with one double per pair of lanes they took 1 wavefront, with one float4 per four
        lanes 2. Stores are not merged.)

        Atomic operations take a wavefront for each lane that the fullest bank serves, also if the
        lanes meet in one word: 32 if all add to one, 1 for 32 words in 32 banks, 32 for 32 words
        in one bank. Only an addition of the constant 1 whose result is unused is merged: 1
        wavefront for one word. A compare-and-swap takes two for each lane. A float is added by a
        loop of compare-and-swap: 96 wavefronts if all lanes add to one word, 592 for 32 words in
        one bank.

        Padding needs room in the declaration, and parentheses in a macro: i + i >> 5 means
        (i + i) >> 5.
        """
    )
