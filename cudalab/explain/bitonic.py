"""Bitonic sort: half-cleaners, alternating or mirrored groups, any number of keys"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from cudalab.labs.base import padded, powers_of_two
from cudalab.output.page import Heading, Part, commands, drawing, row, table, text

# The lecture's sequences: one that goes up and then down, and a rotation of such a sequence.
SEQUENCES = ((1, 3, 4, 7, 6, 5, 2), (5, 7, 6, 4, 2, 1, 3))
SIZES = (8, 1 << 10, 1 << 20)
ITEMS_PER_BLOCK = 1 << 10  # of the variant `shared`
CELL = 6


@dataclass(frozen=True)
class Comparator:
    """Two places; the smaller key goes to the first (`up`) or to the second."""

    low: int
    high: int
    up: bool = True


@dataclass(frozen=True)
class Step:
    """Comparators that work in parallel, in the merge of groups of `size` keys."""

    name: str
    size: int
    comparators: tuple[Comparator, ...]


def goes_up(place: int, size: int, n: int) -> bool:
    """Whether the group of `size` keys around `place` is sorted up; one bit of `place` decides."""
    return size >= n or not (place ^ n) & size


def lows(n: int, stride: int) -> list[int]:
    """The places whose partner, `stride` places to the right, is in their group of 2 * stride."""
    return [low for low in range(n - stride) if not low & stride]


def alternating(n: int) -> list[Step]:
    """The lecture's network."""
    return [
        Step(
            f"B_{2 * stride}",
            size,
            tuple(Comparator(i, i + stride, goes_up(i, size, n)) for i in lows(n, stride)),
        )
        for size in powers_of_two(2, padded(n))
        for stride in reversed(powers_of_two(1, size // 2))
    ]


def mirrored(n: int) -> list[Step]:
    """The network whose merges begin with mirrored partners; no comparator needs a direction."""
    steps = []
    for size in powers_of_two(2, padded(n)):
        pairs = [(i, i ^ (size - 1)) for i in range(n) if not i & (size // 2)]
        steps.append(Step("mirrored", size, tuple(Comparator(i, j) for i, j in pairs if j < n)))
        steps += [
            Step(f"B_{2 * s}", size, tuple(Comparator(i, i + s) for i in lows(n, s)))
            for s in reversed(powers_of_two(1, size // 4))
        ]
    return steps


def all_up(n: int) -> list[Step]:
    """The mistake: the lecture's network without its directions."""
    return [
        Step(step.name, step.size, tuple(Comparator(c.low, c.high) for c in step.comparators))
        for step in alternating(n)
    ]


def after(keys: Sequence[int], step: Step) -> list[int]:
    moved = list(keys)
    for each in step.comparators:
        if (moved[each.low] > moved[each.high]) == each.up:
            moved[each.low], moved[each.high] = moved[each.high], moved[each.low]
    return moved


def run(keys: Sequence[int], steps: Iterable[Step]) -> list[list[int]]:
    """The keys after each step."""
    states = [list(keys)]
    for step in steps:
        states.append(after(states[-1], step))
    return states[1:]


def turns(keys: Sequence[int]) -> int:
    """The number of times a sequence of distinct keys, read as a circle, changes direction."""
    ups = [key < keys[(i + 1) % len(keys)] for i, key in enumerate(keys)]
    return sum(up != ups[i - 1] for i, up in enumerate(ups))


def unrolled(keys: Sequence[int]) -> list[int]:
    """The rotation that begins with the smallest key."""
    first = keys.index(min(keys))
    return [*keys[first:], *keys[:first]]


def with_eight(keys: Sequence[int]) -> list[int]:
    """The keys with an 8 added after the largest one: eight keys, still bitonic."""
    place = keys.index(max(keys)) + 1
    return [*keys[:place], 8, *keys[place:]]


def sorted_of_all(n: int, steps: Sequence[Step]) -> int:
    """The number of the 2^n sequences of zeros and ones that a network sorts."""
    return sum(run(bits, steps)[-1] == sorted(bits) for bits in product((0, 1), repeat=n))


def steps_of(n: int) -> int:
    """The steps of a network for n keys, a power of two: 1 + 2 + ... + log2 n."""
    merges = n.bit_length() - 1
    return merges * (merges + 1) // 2


def launches_in_blocks(n: int) -> int:
    """The launches of `shared`: one for small merges; each further merge has wide steps and one."""
    return 1 + sum(
        (size // ITEMS_PER_BLOCK).bit_length() for size in powers_of_two(2 * ITEMS_PER_BLOCK, n)
    )


def bars() -> list[str]:
    """Both sequences as bars, side by side."""
    lines = []
    for level in range(max(SEQUENCES[0]), 0, -1):
        sides = (" ".join("#" if key >= level else " " for key in keys) for keys in SEQUENCES)
        lines.append("        ".join(sides))
    lines.append("        ".join(" ".join(map(str, keys)) for keys in SEQUENCES))
    return ["    " + line for line in lines]


def cleaned() -> list[str]:
    """B_8, B_4 and B_2 of the last merge, for both sequences with a key 8."""
    steps = [step for step in alternating(8) if step.size == 8]
    lines = []
    for keys in map(with_eight, SEQUENCES):
        lines.append(row("keys", keys, CELL))
        states = run(keys, steps)
        lines += [row(s.name, now, CELL) for s, now in zip(steps, states, strict=True)]
        lines.append("")
    return lines[:-1]


def network_drawn(keys: Sequence[int], steps: Sequence[Step]) -> list[str]:
    """The keys after each step, and the directions of a merge's groups if some go down."""
    both_ways = any(not each.up for step in steps for each in step.comparators)
    lines = [row("keys", keys, CELL)]
    size = 0
    for step, now in zip(steps, run(keys, steps), strict=True):
        if step.size != size:
            size = step.size
            lines.append("")
            if both_ways:
                ways = (goes_up(i, size, len(keys)) for i in range(len(keys)))
                lines.append(row(f"groups: {size}", ("up" if up else "down" for up in ways), CELL))
        lines.append(row(step.name, now, CELL))
    return lines


def page() -> Iterator[Part]:
    """Half-cleaners, the two networks, and their cost."""
    yield from half_cleaners()
    yield from networks(SEQUENCES[1])
    yield from cost()
    yield commands(
        "cudalab show bitonic alternating",
        "cudalab gen bitonic --n 7 --dist bitonic > in.bin",
        "cudalab bitonic --variant alternating < in.bin > out.bin",
        "cudalab bench bitonic --variants global,shared,registers,wide_passes",
    )


def half_cleaners() -> Iterator[Part]:
    """Bitonic sequences, and the comparators that sort them."""
    first, second = SEQUENCES
    yield text(
        """
        A sequence is bitonic if it goes up and then down, or if a rotation of it does: read as a
        circle, it changes direction twice. The lecture's two sequences:
        """
    )
    yield drawing(bars())
    yield text(
        f"""
        They change direction {turns(first)} and {turns(second)} times; the second, starting from
        its smallest key, is {" ".join(map(str, unrolled(second)))}.

        A half-cleaner B_n compares keys n / 2 apart and puts the smaller one into the lower half.
        If the n keys were bitonic, then no key in the lower half is greater than any in the upper
        half, and both halves are bitonic again. So B_n, B_n/2, ..., B_2 sort them: log2 n steps of
        n / 2 comparators, which do not depend on the keys. This is a sorting network.
        """
    )
    yield Heading("B_8, B_4 and B_2, with a key 8 added after the largest")
    yield drawing(cleaned())


def networks(keys: Sequence[int]) -> Iterator[Part]:
    """The lecture's network and the mirrored one, and what each of them sorts."""
    n = len(keys)
    yield text(
        """
        To sort keys in any order, note that any two neighbours are bitonic. Sort pairs alternately
        up and down, and groups of four are bitonic; sort these alternately up and down, and groups
        of eight are, until one group is left. One bit of i decides whether the group of key i goes
        up or down. If n is not a power of two, imagine padding with the largest possible keys after
        the last one. The padding must stay there, so the group that has both keys and padding goes
        up, and the others alternate from there. Comparators that would reach past n are left out.
        """
    )
    yield Heading("The lecture's network (`alternating`): a bit of the index decides up or down")
    yield drawing(network_drawn(keys, alternating(n)))
    yield text(
        """
        Alternatively, all groups go up. Two of them together are then not bitonic, but they are if
        the second one is read backwards. So the first step of a merge compares mirrored keys, k
        with size - 1 - k; the following steps are the same. No comparator needs a direction, and
        padding never moves.
        """
    )
    yield Heading("Mirrored first steps (`global`, `shared`)")
    yield drawing(network_drawn(keys, mirrored(n)))
    yield text(
        f"""
        A network that sorts all sequences of zeros and ones sorts all sequences. Of the {2**n}
        sequences of length {n}, the first network sorts {sorted_of_all(n, alternating(n))} and the
        second {sorted_of_all(n, mirrored(n))}. With all groups going up and no mirrored step, only
        {sorted_of_all(n, all_up(n))} would be sorted.
        """
    )


def cost() -> Iterator[Part]:
    """Steps, comparators and launches."""
    yield Heading("Cost: log2 n (log2 n + 1) / 2 steps of n / 2 comparators")
    yield table(
        ("keys", "steps, launches of `global`", "comparators", "launches of `shared`"),
        [
            (f"{n:,}", steps, f"{steps * n // 2:,}", launches_in_blocks(n))
            for n in SIZES
            for steps in [steps_of(n)]
        ],
    )
    yield text(
        """
        A step needs all of the previous step, so in global memory each step is a launch that reads
        and writes all keys. Groups that fit into a block are merged in shared memory, with a
        barrier between the steps. A radix sort reads the keys only a few times, for any n.
        """
    )
