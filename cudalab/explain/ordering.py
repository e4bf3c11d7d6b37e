"""The memory model: what a thread may see of another thread's writes, and when"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from typing import NamedTuple

from cudalab.output.page import Heading, Part, commands, drawing, table, text


class Step(NamedTuple):
    """A load (its value has a name) or a store of 1, with what it orders; or a fence."""

    kind: str  # "load", "store" or "fence"
    place: str = ""
    name: str = ""  # of a loaded value
    orders: str = ""  # "release", "acquire" or nothing

    @property
    def written(self) -> str:
        """The step as a line of a program."""
        if self.kind == "fence":
            return "__threadfence()"
        if self.kind == "load":
            return f"{self.name} = {self.place}" + (".load(acquire)" if self.orders else "")
        return f"{self.place}.store(1, release)" if self.orders else f"{self.place} = 1"


Thread = tuple[Step, ...]


class Litmus(NamedTuple):
    """Two threads, and the outcome that surprises."""

    title: str
    threads: tuple[Thread, Thread]
    surprise: dict[str, int]


def store(place: str, orders: str = "") -> Step:
    """A store of 1; all places are 0 at first."""
    return Step("store", place, orders=orders)


def load(place: str, name: str, orders: str = "") -> Step:
    """A load whose value gets a name."""
    return Step("load", place, name, orders)


FENCE = Step("fence")
MESSAGE = {"f": 1, "d": 0}
BOTH_EARLY = {"p": 0, "q": 0}
MESSAGES = (
    Litmus(
        "plain", ((store("data"), store("flag")), (load("flag", "f"), load("data", "d"))), MESSAGE
    ),
    Litmus(
        "a fence in the writer only",
        ((store("data"), FENCE, store("flag")), (load("flag", "f"), load("data", "d"))),
        MESSAGE,
    ),
    Litmus(
        "a fence on each side",
        ((store("data"), FENCE, store("flag")), (load("flag", "f"), FENCE, load("data", "d"))),
        MESSAGE,
    ),
    Litmus(
        "release and acquire",
        (
            (store("data"), store("flag", "release")),
            (load("flag", "f", "acquire"), load("data", "d")),
        ),
        MESSAGE,
    ),
)
DEKKER = (
    Litmus("plain", ((store("a"), load("b", "p")), (store("b"), load("a", "q"))), BOTH_EARLY),
    Litmus(
        "release and acquire",
        (
            (store("a", "release"), load("b", "p", "acquire")),
            (store("b", "release"), load("a", "q", "acquire")),
        ),
        BOTH_EARLY,
    ),
    Litmus(
        "a fence on each side",
        ((store("a"), FENCE, load("b", "p")), (store("b"), FENCE, load("a", "q"))),
        BOTH_EARLY,
    ),
)

WORDS = (
    ("x = 1", "no", "no"),
    ("volatile", "as relaxed", "no; the compiler keeps each access"),
    ("atomicAdd(&x, 1)", "yes", "no: relaxed"),
    ("__threadfence()", "-", "all before with all after, for the whole device"),
    ("__threadfence_block()", "-", "the same, as threads of the block see it"),
    ("atomic_ref, release / acquire", "yes", "what is before / what is after"),
    ("__syncthreads()", "-", "all, between the threads of the block, which wait"),
    ("__syncwarp(mask)", "-", "all, between the lanes of the mask, which wait"),
    ("the end of a kernel", "-", "all, for what follows in its stream"),
)


def keeps(first: Step, second: Step) -> bool:
    """Whether a thread's steps take effect in this order, if they touch different places.

    A fence orders all before it with all after it; a release what comes before it, an acquire what
    comes after it.
    """
    fences = "fence" in (first.kind, second.kind)
    same = first.place == second.place
    return fences or same or first.orders == "acquire" or second.orders == "release"


def orders(thread: Thread) -> Iterator[tuple[Step, ...]]:
    """The orders in which the steps of a thread may take effect."""
    for order in permutations(range(len(thread))):
        place = {step: at for at, step in enumerate(order)}
        pairs = ((i, j) for j in range(len(thread)) for i in range(j))
        if all(place[i] < place[j] or not keeps(thread[i], thread[j]) for i, j in pairs):
            yield tuple(thread[i] for i in order)


def merged(one: Sequence[Step], two: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """All ways in which the steps of two threads may alternate."""
    if not one or not two:
        yield (*one, *two)
        return
    yield from ((one[0], *rest) for rest in merged(one[1:], two))
    yield from ((two[0], *rest) for rest in merged(one, two[1:]))


def outcomes(threads: Iterable[Thread]) -> set[tuple[tuple[str, int], ...]]:
    """What the loads may see, over all orders and all ways to alternate."""
    found = set()
    for one, two in product(*map(orders, threads)):
        for steps in merged(one, two):
            memory: dict[str, int] = {}
            seen: dict[str, int] = {}
            for step in steps:
                if step.kind == "store":
                    memory[step.place] = 1
                elif step.kind == "load":
                    seen[step.name] = memory.get(step.place, 0)
            found.add(tuple(sorted(seen.items())))
    return found


def is_possible(litmus: Litmus) -> bool:
    """Whether the surprising outcome is among them."""
    return tuple(sorted(litmus.surprise.items())) in outcomes(litmus.threads)


def picture(litmus: Litmus) -> Iterator[str]:
    """Both threads side by side."""
    one, two = ([step.written for step in thread] for thread in litmus.threads)
    for left, right in zip(one, two, strict=True):
        yield f"    {left:<28}{right}"


def verdicts(tests: Sequence[Litmus]) -> list[tuple[object, ...]]:
    """A row for each form of a test."""
    return [
        (
            litmus.title,
            len(outcomes(litmus.threads)),
            "possible" if is_possible(litmus) else "impossible",
        )
        for litmus in tests
    ]


def page() -> Iterator[Part]:
    """Two litmus tests, the words of CUDA, scopes, and what a race is."""
    yield text(
        """
        A thread's loads and stores to different places need not take effect in the order of the
        program: the compiler moves them, and so does the hardware, which has several ways to
        memory. The thread itself never notices. Others do. All places are 0 at first.

        A message: the left thread writes data and raises a flag; the right one reads the flag and
        then the data. Can it see the flag (f = 1) and old data (d = 0)?
        """
    )
    yield drawing(picture(MESSAGES[0]))
    yield Heading("All orders that the rules allow, tried")
    yield table(("ordered by", "outcomes", "f = 1 and d = 0"), verdicts(MESSAGES))
    yield text(
        """
        A fence in the writer alone is a common mistake: the reader may still read the data before
        it reads the flag. Release and acquire are the pair that belongs to the flag itself, and
        what one writes today: cuda::atomic_ref, or st.release and ld.acquire in PTX.

        Each announces itself and looks at the other. Can both miss each other (p = 0 and q = 0)?
        """
    )
    yield drawing(picture(DEKKER[0]))
    yield table(("ordered by", "outcomes", "p = 0 and q = 0"), verdicts(DEKKER))
    yield text(
        """
        Release and acquire do not help here: a store followed by a load of another place stays
        unordered. That takes a sequentially consistent fence, which __threadfence() is.
        """
    )
    yield Heading("The words of CUDA")
    yield table(("word", "atomic", "orders other accesses"), WORDS)
    yield text(
        """
        Scopes: an order holds for the threads of a scope only, those of a block, of the device or
        of the system. A fence of the block does not help a reader in another block, whose
        multiprocessor has a cache of its own.

        A fence does not wait for anybody, and makes nothing atomic. Two accesses to one place, one
        of them a store, from threads that nothing orders, are a data race unless both are atomic,
        and then the program has no meaning at all. "It has always worked" is one compiler away from
        failing: a loop `while (!flag);` on a plain variable may read it once and never again.
        """
    )
    yield commands(
        "cudalab sanitize scan --variant decoupled_lookback   # flags between blocks",
        "cudalab show scan decoupled_lookback",
        "cudalab show reduce single_pass   # the last block, found by a ticket",
        "cudalab explain look_back",
    )
