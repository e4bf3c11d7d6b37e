"""The reduction ladder: each rung's additions, with their lanes, conflicts and barriers"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cudalab.explain.rules import WARP, WORD, wavefronts
from cudalab.output.page import IDLE, Heading, Part, commands, drawing, row, table, text

VALUES = (3, 1, 7, 0, 4, 1, 6, 3)
MORE_VALUES = (2, 5, 1, 4, 0, 6, 2, 1)
THREADS = 256  # threads in a block of the kernels
CELL = 8


class Add(NamedTuple):
    """The addition values[to] += values[by] by one thread."""

    thread: int
    to: int
    by: int


class Rung(NamedTuple):
    """A variant's tree in shared memory, one item per thread."""

    name: str
    rule: str
    strides: Callable[[int], list[int]]  # from the number of threads
    adds: Callable[[int, int], list[Add]]  # from the number of threads and the stride


class Level(NamedTuple):
    """The cost of one level of a tree in a block."""

    stride: int
    warps: int  # warps that run the branch
    lanes: int  # maximum number of lanes of a warp that add
    degree: int  # the worst bank conflict of a request


def doubling(places: int) -> list[int]:
    """The strides 1, 2, 4, ... half of the places."""
    return [1 << k for k in range((places - 1).bit_length())]


def halving(places: int) -> list[int]:
    """The same strides in reverse."""
    return doubling(places)[::-1]


def modulo(threads: int, s: int) -> list[Add]:
    """Additions where every 2s-th thread works at its own place."""
    return [Add(t, t, t + s) for t in range(threads) if t % (2 * s) == 0]


def strided(threads: int, s: int) -> list[Add]:
    """Additions where the first threads work at every 2s-th place."""
    return [Add(t, 2 * s * t, 2 * s * t + s) for t in range(threads) if 2 * s * t < threads]


def sequential(threads: int, s: int) -> list[Add]:
    """Additions where the first threads work at their own places."""
    return [Add(t, t, t + s) for t in range(threads) if t < s]


LADDER = (
    Rung("interleaved_modulo", "if (t % (2 * s) == 0) v[t] += v[t + s]", doubling, modulo),
    Rung("interleaved_strided", "i = 2 * s * t; if (i < B) v[i] += v[i + s]", doubling, strided),
    Rung("sequential", "if (t < s) v[t] += v[t + s]", halving, sequential),
)


def drawn(rung: Rung, values: Sequence[int]) -> list[str]:
    """Threads, additions and results of each level; places no longer used are dots."""
    now: list[int | str] = list(values)
    lines = [row("place", range(len(values)), CELL), row("value", now, CELL)]
    for s in rung.strides(len(values)):
        who: list[str] = [""] * len(values)
        sums: list[int | str] = [IDLE] * len(values)
        for add in rung.adds(len(values), s):
            who[add.to] = f"t{add.thread}:{add.to}+{add.by}"
            sums[add.to] = int(now[add.to]) + int(now[add.by])
        now = sums
        lines += [row(f"s = {s}", who, CELL), row("", now, CELL)]
    return lines


def levels(rung: Rung, threads: int = THREADS) -> list[Level]:
    """Warps, lanes and conflicts of each level of a block."""
    costs = []
    for s in rung.strides(threads):
        warps: dict[int, list[Add]] = {}
        for add in rung.adds(threads, s):
            warps.setdefault(add.thread // WARP, []).append(add)
        requests = [
            [WORD * place for place in places]
            for adds in warps.values()
            for places in ([add.to for add in adds], [add.by for add in adds])
        ]
        lanes = max(len(adds) for adds in warps.values())
        costs.append(Level(s, len(warps), lanes, max(map(wavefronts, requests))))
    return costs


def on_load(values: Sequence[int], others: Sequence[int]) -> list[str]:
    """The addition while loading: two items per thread, a block's width apart."""
    width = len(values)
    sums = [a + b for a, b in zip(values, others, strict=True)]
    return [
        row("thread", (f"t{t}" for t in range(width)), CELL),
        row("loads", (f"x[{t}]" for t in range(width)), CELL),
        row("", values, CELL),
        row("and", (f"x[{t + width}]" for t in range(width)), CELL),
        row("", others, CELL),
        row("stores", sums, CELL),
    ]


def shuffled(values: Sequence[int]) -> list[str]:
    """A reduction by shuffles: lane t adds lane t + s's register; upper lanes are not used."""
    now: list[int | str] = list(values)
    lines = [row("lane", range(len(values)), CELL), row("register", now, CELL)]
    for s in halving(len(values)):
        now = [int(now[t]) + int(now[t + s]) if t < s else IDLE for t in range(len(now))]
        lines.append(row(f"down {s}", now, CELL))
    return lines


def widths(n: int, per_block: int) -> list[int]:
    """The number of values left after each launch."""
    left = [n]
    while left[-1] > 1:
        left.append(-(-left[-1] // per_block))
    return left


def barriers() -> list[tuple[str, int, int, int, int]]:
    """Variant, items per block, barriers of a block and of a warp, levels in shared memory.

    There is one barrier after all values are stored and one after each level; each level of the
    last warp takes two warp barriers. Warps that shuffle need a single barrier.
    """
    everything = len(doubling(THREADS))
    last_warp = len(doubling(2 * WARP))
    whole = 1 + everything
    return [
        *((rung.name, THREADS, whole, 0, everything) for rung in LADDER),
        ("first_add_on_load", 2 * THREADS, whole, 0, everything),
        ("unrolled_last_warp", 2 * THREADS, whole - last_warp, 2 * last_warp, everything),
        ("warp_shuffle", 2 * THREADS, 1, 0, 0),
    ]


def page() -> Iterator[Part]:
    """Drawings of the rungs one by one, then their costs in a whole block."""
    yield text(
        f"""
        A block adds its items in a tree: {len(VALUES)} items take {len(doubling(len(VALUES)))}
        levels, {THREADS} take {len(doubling(THREADS))}. The rungs of the ladder build a tree of the
        same depth with different threads and places. In the drawings "t2:4+5" means that thread 2
        adds the value at place 5 to the one at place 4; s is the stride.
        """
    )
    yield from _trees()
    yield from _shortened()
    yield Heading(f"{THREADS} threads: barriers, and levels of the tree in shared memory")
    yield table(("variant", "items", "of the block", "of a warp", "levels"), barriers())
    one, two = (" -> ".join(f"{n:,}" for n in widths(10**6, k)) for k in (THREADS, 2 * THREADS))
    yield text(
        f"""
        The results of all blocks are reduced again in the same way until one is left.
        A million items with {THREADS} per block: {one}; with {2 * THREADS}: {two}.
        """
    )
    yield commands(
        "cudalab list reduce",
        "cudalab show reduce unrolled_last_warp",
        "cudalab profile reduce --variants interleaved_strided,sequential",
        "cudalab sanitize reduce --variant unrolled_last_warp",
        "cudalab gen reduce --n 1Mi > in.bin",
        "cudalab reduce --variant sequential --time < in.bin > out.bin",
        "cudalab bench reduce --variants all",
    )


def _trees() -> Iterator[Part]:
    """The three rungs whose tree is all in shared memory."""
    for number, rung in enumerate(LADDER, 1):
        yield Heading(f"{number}. {rung.name}: {rung.rule}")
        yield drawing(drawn(rung, VALUES))
    yield Heading(f"These three rungs in a block of {THREADS} threads")
    costs = [levels(rung) for rung in LADDER]
    yield table(
        ("level", *(rung.name for rung in LADDER)),
        [
            *(
                (
                    number,
                    *(f"s={at.stride}: {at.warps} x {at.lanes}, {at.degree}-way" for at in level),
                )
                for number, level in enumerate(zip(*costs, strict=True), 1)
            ),
            ("all", *(f"{sum(at.warps for at in each)} warps" for each in costs)),
        ],
    )
    yield text(
        """
        "8 x 16, 1-way" means that 8 warps run the branch, with up to 16 of their 32 lanes, and the
        worst request to shared memory has no conflict. Rung 1 keeps all warps busy with fewer and
        fewer lanes (`cudalab explain divergence`); rung 2 needs few warps, but its lanes conflict
        in the banks (`cudalab explain banks`); rung 3 has neither problem.
        """
    )


def _shortened() -> Iterator[Part]:
    """The rungs that take levels of the tree out of shared memory, or its barriers away."""
    yield Heading("4. first_add_on_load: the first level while loading, 8 threads, 16 items")
    yield drawing(on_load(VALUES, MORE_VALUES))
    yield text(
        """
        The tree of rung 3 follows. In rung 3 half of the threads only load an item; here every
        thread adds at least once, and half as many blocks are needed.
        """
    )
    yield Heading("5. unrolled_last_warp: the last 64 values by one warp, without block barriers")
    yield text(
        """
        The additions are those of rung 3. The other warps exit, and block barriers are no longer
        needed. The lanes need two warp barriers per level (read, __syncwarp(), write,
        __syncwarp()), because lane t reads the value that lane t + s writes at the same level. To
        use a volatile array without barriers is a race on compute capability 7.0 and later, and so
        is a single barrier per level.
        """
    )
    yield Heading("6. warp_shuffle: from register to register, drawn for 8 lanes")
    yield drawing(shuffled(VALUES))
