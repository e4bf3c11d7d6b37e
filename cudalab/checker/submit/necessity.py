"""The stage `kernel`: whether a program's own kernels compute its answer.

The program runs once more with every launch left out by the runtime. If its answer is right then,
it was computed elsewhere, whatever the source looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.checker.submit import commands
from cudalab.checker.verdicts import Stage, Status, Why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cudalab.checker.cases import Test
    from cudalab.checker.submit.program import Program
    from cudalab.checker.submit.submission import Trial

    # A trial, and whether an answer to it is right.
    Judged = tuple[Trial, Callable[[bytes], bool]]

MAX_TESTS = 3


def telling(tests: Sequence[Test], usual: str) -> list[int]:
    """The numbers of a few tests whose answers nobody gives by chance.

    Those with the `usual` distribution come first, for an answer may equal a sorted input; then the
    largest that are soon run.
    """
    sizes = {number: commands.elements(test) for number, test in enumerate(tests)}
    numbers = [number for number in sizes if sizes[number] > 1 and not tests[number].refuse]

    def rank(number: int) -> tuple[bool, bool, int]:
        test = tests[number]
        return test.dist != usual, not commands.is_small(test), -sizes[number]

    return sorted(numbers, key=rank)[:MAX_TESTS]


def stage(submission: Program, trials: Iterable[Judged]) -> Stage:
    """Run the program without its kernels until an answer is wrong."""
    launches = 0
    for trial, is_right in trials:
        attempt, launches = submission.without_kernels(trial)
        if attempt.why or not is_right(attempt.answers[0]):
            return Stage("kernel", Status.PASSED, says="its kernels compute the answer")
    details = [
        f"without its {launches:,} launch{'' if launches == 1 else 'es'} every answer is right, too"
        if launches
        else "no kernel is launched (calls of libraries do not count as launches)",
        "copy the input to the device, compute there, and copy the answer back",
    ]
    says = "the host computes it"
    return Stage("kernel", Status.FAILED, says=says, details=details, why=Why.NO_KERNEL, cost=1.0)
