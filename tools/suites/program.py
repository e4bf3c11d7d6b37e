"""What a suite is, and a program in it."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

RIGHT = "right"
RACES = frozenset(
    {
        "race",
        "lost_update",
        "same_word",
        "stream_race",
        "host_race",
        "used_too_early",
        "freed_in_use",
    }
)
BOUNDS = frozenset({"out_of_bounds", "misaligned", "after_free", "crash"})
# The findings that are a mistake's own: another error beside them is none of the suite's.
WANTED = {
    "race": RACES,
    "out of bounds": BOUNDS,
    "null pointer": BOUNDS,
    "uninitialised memory": frozenset({"uninitialised"}),
    "barrier": frozenset({"barrier_divergence", "deadlock", "wrong_mask"}),
    "write to constant memory": BOUNDS,
    "a variable of the host": BOUNDS,
    "an assertion fails": frozenset({"crash"}),
    "a launch that fails": frozenset({"ignored_failure"}),
    "pointers that nobody has set": BOUNDS | {"ignored_failure"},
    "a device pointer in the host's code": frozenset({"host_crash"}),
    "a kernel that is called as a function": frozenset({"host_crash", "ignored_failure"}),
    "memory that is freed twice": frozenset({"ignored_failure"}),
}


@dataclass(frozen=True)
class Program:
    """A program of a suite, and what is known of it."""

    name: str
    truth: str  # "right", or what is wrong with it
    files: tuple[str, ...]
    _: KW_ONLY
    folder: Path = Path()  # where it is run
    options: tuple[str, ...] = ()
    runs: tuple[tuple[str, ...], ...] = ((),)  # the arguments of each run
    what: str = ""  # the truth in words


@dataclass(frozen=True)
class Suite:
    """A suite: the parts of repositories that it takes, and its programs in a copy of those."""

    title: str
    parts: dict[str, str]  # of each repository
    about: str
    _: KW_ONLY
    programs: Callable[[Path], Iterator[Program]]
