"""What all parts of the grammar draw from: random numbers, the names in scope, a side's text."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeVar

VERSION = 3
# Names that the CPU device's own text uses or has used, beside those that anybody would take.
NAMES = [
    "t_", "x_", "y_", "z_", "row_", "lane_", "first_", "index", "B_", "min", "max", "swap", "lane",
    "row", "first", "last", "value", "block", "count", "step", "self", "body", "word", "mask",
    "result", "thread", "threads", "warp", "lanes", "slot", "all", "some", "number", "position",
    "region", "entry", "round", "rounds", "call", "left", "right", "size", "begin", "end", "at",
    "T", "I", "F", "N", "B", "std", "dim", "here", "live", "kept", "memory", "saturated", "cell",
]  # fmt: skip
INTEGERS = ("int", "unsigned", "short", "unsigned short", "signed char", "unsigned char",
            "long long", "unsigned long long")  # fmt: skip
NARROW = INTEGERS[2:6]
T = TypeVar("T")
# From these seeds on kernels have only forms that can be loops over threads, from the second on
# also branches and loops by warps, and more conversions and shifts beyond the width, from the third
# on mostly one operation with the operands at which it goes wrong, from the fourth on also
# operations of a warp on numbers of both signs, and arrays of a thread, and from the fifth on
# mostly one change of a variable that is the same in all threads, and from the sixth on mostly
# pointers and references to a thread's variables that are used beyond a barrier, and from the
# seventh on mostly plain arithmetic that a compiler turns into vectors. From the eighth on kinds of
# kernels take turns, and a variable is stepped up or down before threads meet. From the ninth on
# objects of a small class are changed through something else before they do; there is little else
# in a file, since one operator that may change anything makes a compiler careful everywhere. From
# the tenth on warps and blocks go through loops that end in every way there is.
PLAIN, BY_WARPS, EDGES, SHARP, ALONE = 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000
LENT, VECTORS, STEPPED, FEW = 6_000_000, 7_000_000, 8_000_000, 9_000_000
ENDLESS = 10_000_000


@dataclass
class Variable:
    """A local variable, and its type."""

    name: str
    kind: str


@dataclass
class Scope:
    """What the statements of a function may name."""

    variables: list[Variable] = field(default_factory=list)
    arrays: list[Variable] = field(default_factory=list)  # of eight elements
    pairs: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)  # ints that are only read
    data: str = "data"  # 256 ints in global memory
    results: bool = False  # whether `return` gives an int
    objects: list[Variable] = field(default_factory=list)  # of a kernel's own classes


class Draws:
    """The random numbers of a seed, and the text for one side: "cuda" or "host"."""

    def __init__(self, seed: int, side: str) -> None:
        """Begin at the first number of a seed."""
        self.random = random.Random(seed * 7919 + VERSION)  # noqa: S311 -- texts
        self.seed, self.host = seed, side == "host"
        self.plain, self.has_warps, self.has_edges = seed >= PLAIN, seed >= BY_WARPS, seed >= EDGES
        self.sharp, self.is_alone, self.lends = seed >= SHARP, seed >= ALONE, seed >= LENT
        self.in_vectors, self.has_few = seed >= VECTORS, FEW <= seed < ENDLESS
        self.is_endless = seed >= ENDLESS
        self.steps = STEPPED <= seed < FEW
        self.scope = Scope()
        self.count = 0
        self.names = self.random.sample(NAMES, len(NAMES))
        self.functions: list[str] = []  # the text of the kernel's own functions
        self.calls: list[str] = []  # expressions of an int that call them, {0} and {1} are ints

    def both(self, cuda: str, host: str) -> str:
        """Give the text of this side."""
        return host if self.host else cuda

    def chance(self, share: float) -> bool:
        """Draw true with this probability."""
        return self.random.random() < share

    def choice(self, items: list[T] | tuple[T, ...]) -> T:
        """Draw one of them."""
        return self.random.choice(items)

    def new(self, prefix: str) -> str:
        """Name something that has no other name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def name(self) -> str:
        """Name something as a user would, or as our own text does."""
        return self.names.pop() if self.names else self.new("v")

    def ints(self) -> list[str]:
        """Name the variables of type int."""
        return [v.name for v in self.scope.variables if v.kind == "int"]

    def some_int(self) -> str:
        """Draw a variable of type int."""
        return self.choice(self.ints())
