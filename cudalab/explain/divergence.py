"""Divergence: both sides of a branch within a warp are executed, one after the other"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cudalab.explain.reduction import LADDER, THREADS, Rung, levels
from cudalab.explain.rules import WARP
from cudalab.output.page import Heading, Part, commands, drawing, table, text

TWO_WARPS = 2 * WARP


class Branch(NamedTuple):
    """if (condition) ... else ..."""

    title: str
    condition: Callable[[int], bool]


BRANCHES = (
    Branch("t % 2", lambda t: t % 2 == 1),
    Branch("t < 40", lambda t: t < 40),
    Branch("t < 32", lambda t: t < 32),
    Branch("t & 32", lambda t: t & WARP != 0),
)


def sides(branch: Branch) -> list[int]:
    """The number of sides of the branch that each of two warps executes."""
    return [
        len({branch.condition(t) for t in range(first, first + WARP)})
        for first in range(0, TWO_WARPS, WARP)
    ]


def marks(condition: Callable[[int], bool], first: int = 0) -> str:
    """A mark for each lane of a warp that takes the branch."""
    return "".join("#" if condition(t) else "." for t in range(first, first + WARP))


def lanes(rung: Rung, stride: int, warp: int) -> str:
    """The lanes of a warp that add at a level of a reduction."""
    working = {add.thread for add in rung.adds(THREADS, stride)}
    return marks(working.__contains__, warp * WARP)


def page() -> Iterator[Part]:
    """The rule, then the reduction that demonstrates it in the course."""
    yield text(
        f"""
        The {WARP} lanes of a warp share their instructions. If some take a branch and others do
        not, the warp executes both sides, each with the lanes of the other side switched off. A
        branch costs nothing extra if all lanes of each warp agree.
        """
    )
    yield Heading("if (...) in two warps: # takes the branch, . takes the other side")
    yield drawing(
        f"{branch.title:<7} {marks(branch.condition)} {marks(branch.condition, WARP)}"
        f" {'+'.join(map(str, sides(branch)))}"
        for branch in BRANCHES
    )
    yield text("On the right: the number of sides that each warp executes; 1 is not divergent.")

    slow, fast = LADDER[0], LADDER[2]
    yield Heading(f"The first warp of {THREADS} threads in a reduction: # adds")
    yield drawing(
        [
            f"{'':<6}{slow.name:<{WARP}}  {'':<6}{fast.name}",
            *(
                f"s={one:<4}{lanes(slow, one, 0)}  s={two:<4}{lanes(fast, two, 0)}"
                for one, two in zip(slow.strides(THREADS), fast.strides(THREADS), strict=True)
            ),
        ]
    )
    yield Heading("Warps that run the branch x lanes in each that add")
    yield table(
        ("level", *(rung.name for rung in LADDER)),
        [
            (number, *(f"{at.warps} x {at.lanes}" for at in each))
            for number, each in enumerate(zip(*map(levels, LADDER), strict=True), 1)
        ],
    )
    total = [sum(at.warps for at in levels(rung)) for rung in LADDER]
    yield text(
        f"""
        All three add {THREADS} values. Over all levels, {total[0]}, {total[1]} and {total[2]} warps
        execute an addition. The remaining divergence is in the last levels, where less than a warp
        has work.

        Since compute capability 7.0 the sides of a branch may take turns: lanes that have diverged
        no longer run in lockstep, and one sees what another wrote only after __syncwarp().
        """
    )
    yield commands(
        "cudalab show reduce interleaved_modulo",
        "cudalab show reduce sequential",
        "cudalab profile reduce --variants interleaved_modulo,sequential",
        "cudalab bench reduce --variants interleaved_modulo,sequential",
    )
