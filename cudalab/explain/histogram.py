"""Histograms without atomics: the layout of a thread's counters, and a warp's lane tags"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cudalab.explain.rules import BANKS, BANKS_THEN, WARP, WORD, steps_then, wavefronts
from cudalab.output.page import IDLE, Heading, Part, commands, drawing, row, table, text

TAGGED = (3, 5, 3, 3, 7, 5, 3, 0)  # the classes that eight lanes count in the drawing
TAG_SHIFT = 27
CELL = 6
WARPS_DRAWN = 500


class Layout(NamedTuple):
    """A variant's byte counters: the place of thread t's counter for a class."""

    variant: str
    formula: str
    place: Callable[[int, int], int]  # from class and t


LAYOUTS = (
    Layout("per_thread_64_linear", "64 * t + class", lambda c, t: 64 * t + c),
    Layout("per_thread_64", "64 * class + slot(t)", lambda c, t: 64 * c + slot_16(t)),
    Layout("per_thread_64_banks32", "128 * class + slot32(t)", lambda c, t: 128 * c + slot_32(t)),
)


def slot_16(t: int) -> int:
    """The slot of thread t of 64: four threads that are 16 apart share a word."""
    return (t >> 4) | ((t & 15) << 2)


def slot_32(t: int) -> int:
    """The slot of thread t of 128: four threads that are 32 apart share a word."""
    return (t >> 5) | ((t & 31) << 2)


def numbers(seed: int) -> Iterator[int]:
    """Random bytes, the same on every machine: the upper bits of a congruential generator."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 56


def data_64() -> list[tuple[str, list[int]]]:
    """Example data for the lanes of a warp: classes below 64."""
    random = numbers(1)
    return [
        ("all equal", [5] * WARP),
        ("lane t: class t", list(range(WARP))),
        ("0, then 2 from lane 16 on", [0] * 16 + [2] * 16),
        ("random", [next(random) >> 2 for _ in range(WARP)]),
    ]


def conflict_cells(classes: Sequence[int]) -> list[str]:
    """The conflicts of each layout, then and now."""
    cells = []
    for layout in LAYOUTS:
        addresses = [layout.place(c, t) for t, c in enumerate(classes)]
        cells.append(f"{steps_then(addresses)} / {wavefronts(addresses)}")
    return cells


def banks_drawn(threads: int = 10) -> list[str]:
    """The banks of the first threads' counters when all of them count class 5."""
    plain = Layout("", "64 * class + t", lambda c, t: 64 * c + t)
    linear, permuted, permuted_32 = LAYOUTS
    lines = [f"{'thread':<34}" + "".join(f"{t:4d}" for t in range(threads))]
    for layout, banks in (
        (linear, BANKS),
        (plain, BANKS_THEN),
        (permuted, BANKS_THEN),
        (permuted_32, BANKS),
    ):
        cells = (layout.place(5, t) // WORD % banks for t in range(threads))
        lines.append(f"{layout.formula:<24}{banks:>3} banks " + "".join(f"{c:4d}" for c in cells))
    return lines


class Round(NamedTuple):
    """One round of the lane tag."""

    written: dict[int, int]  # class -> the lane whose write remains
    counters: dict[int, int]  # class -> tag and count
    pending: list[bool]  # the lanes that must try again


def tagged_rounds(classes: Sequence[int]) -> list[Round]:
    """The rounds until all lanes have counted; the last lane's write to a counter remains."""
    pending = [True] * len(classes)
    counters = dict.fromkeys(classes, 0)
    rounds = []
    while any(pending):
        count_mask = (1 << TAG_SHIFT) - 1
        tagged = {
            lane: (counters[c] & count_mask) + 1 | lane << TAG_SHIFT
            for lane, c in enumerate(classes)
            if pending[lane]
        }
        written = {classes[lane]: lane for lane in tagged}
        for lane, value in tagged.items():
            counters[classes[lane]] = value
        pending = [
            waits and counters[classes[lane]] != tagged[lane] for lane, waits in enumerate(pending)
        ]
        rounds.append(Round(written, dict(counters), pending))
    return rounds


def tag_drawn(classes: Sequence[int]) -> list[str]:
    """The result of each lane's addition in each round."""
    lines = [row("lane", range(len(classes)), CELL), row("class", classes, CELL)]
    waiting = [True] * len(classes)
    for number, each in enumerate(tagged_rounds(classes), 1):
        shown = [
            ("again" if each.pending[lane] else "done") if waits else IDLE
            for lane, waits in enumerate(waiting)
        ]
        lines.append(row(f"round {number}", shown, CELL))
        waiting = each.pending
    return lines


def collision_degree(classes: Sequence[int]) -> int:
    """The number of lanes in the most frequent class."""
    return max(Counter(classes).values())


def mean_degree(draw: Callable[[Iterator[int]], int]) -> float:
    """The mean collision degree of WARPS_DRAWN warps with random classes."""
    random = numbers(7)
    warps = [[draw(random) for _ in range(WARP)] for _ in range(WARPS_DRAWN)]
    return sum(map(collision_degree, warps)) / WARPS_DRAWN


def page() -> Iterator[Part]:
    """Layouts for 64 classes, lane tags for 256 classes."""
    yield text(
        """
        Threads that count in one table must not lose each other's additions; atomics make sure of
        that. Before shared memory had atomics, and even now if the data make many lanes wait for
        one counter, each thread or each warp counts in a table of its own.
        """
    )
    yield from _by_thread()
    yield from _by_warp()
    yield commands(
        "cudalab gen histogram --n 1e6 --dist binomial > in.bin",
        "cudalab profile histogram --data in.bin   # are there bank conflicts?",
        "cudalab histogram --plot < in.bin > out.bin",
        "cudalab histogram --bins 64 --variant per_thread_64_linear < in.bin > out.bin",
        "cudalab show histogram warp_tagged",
        "cudalab bench histogram --variants all --dist equal",
        "cudalab bench histogram --variants all --bins 64",
    )


def _by_thread() -> Iterator[Part]:
    """A table for each thread: in which banks its counters lie."""
    yield Heading("64 classes: a byte counter for each thread and class")
    yield text(
        f"""
        No two threads share a counter, so the only question is in which bank it lies. If the
        counters of a thread are together (linear), the data decide. If the counters of a class are
        together, and the bits of t are permuted so that four neighbours do not share a word, thread
        t always uses bank t & 15 of {BANKS_THEN}, regardless of the data. For {BANKS} banks the
        same is done with 128 threads. The variants are per_thread_64_linear, per_thread_64 (slot)
        and per_thread_64_banks32 (slot32).
        """
    )
    yield drawing(
        [
            "slot(t)   = t >> 4 | (t & 15) << 2",
            "slot32(t) = t >> 5 | (t & 31) << 2",
            "",
            *banks_drawn(),
        ]
    )
    yield Heading("Cost of a warp's accesses to its counters, then / now")
    yield table(
        ("a warp counts", "linear", "slot", "slot32"),
        [(title, *conflict_cells(classes)) for title, classes in data_64()],
    )
    yield text(
        f"""
        "16 / 2" means 16 steps of a half-warp on {BANKS_THEN} banks and 2 wavefronts of a warp on
        {BANKS}. On {BANKS} banks threads t and t + 16 of the second layout conflict if their
        classes differ by an even number. A byte holds 255, so a thread may count 63 words of data
        (252 bytes) before the counters are added up; 255 words would overflow if all data are
        equal.
        """
    )


def _by_warp() -> Iterator[Part]:
    """A table for each warp: the rounds until all its lanes have counted."""
    yield Heading("256 classes: a table for each warp, with the writer's lane in the top five bits")
    yield text(
        """
        A lane reads its counter, writes it back incremented, with its own lane number in bits 27 to
        31, and reads it again. If the tag is its own, the addition has succeeded; otherwise another
        lane wrote the same counter, and it tries again. All lanes stay until the last one is done.
        The hardware decides which of several writes remains; in this drawing it is the last lane's.
        """
    )
    yield drawing(tag_drawn(TAGGED))
    rounds = tagged_rounds(TAGGED)
    busiest = Counter(TAGGED).most_common(1)[0][0]
    yield text(
        f"""
        Class {busiest} was counted {collision_degree(TAGGED)} times, so there were {len(rounds)}
        rounds, the collision degree of the data. After each round its counter contained
        {", ".join(f"0x{each.counters[busiest]:08x}" for each in rounds)}
        (mask 0x{(1 << TAG_SHIFT) - 1:08x} for the count).
        """
    )
    yield Heading(f"Rounds for {WARP} lanes")
    yield table(
        ("data", "rounds"),
        [
            ("lane t: class t", collision_degree(range(WARP))),
            ("random, 256 classes, mean", f"{mean_degree(next):.1f}"),
            ("binomial, 9 classes, mean", f"{mean_degree(lambda r: next(r).bit_count()):.1f}"),
            ("all equal", collision_degree([0] * WARP)),
        ],
    )
