"""The stage `kernel`: whether a program's own kernels compute its answer.

The program runs once more with every launch left out by the runtime. If its answer is right then,
it was computed elsewhere, whatever the source looks like. A program may ask a kernel whether it
ran, so it also runs with its kernels, but with other data for them than it has put there.
"""

from collections.abc import Callable, Sequence

from cudalab.checker.cases import Test
from cudalab.checker.submit import commands
from cudalab.checker.submit.program import Program
from cudalab.checker.submit.submission import Trial
from cudalab.checker.verdicts import Stage, Status, Why

# A trial, and whether an answer to it is right.
Judged = tuple[Trial, Callable[[bytes], bool]]

MAX_TESTS = 3
MAX_ARGUMENT_BYTES = 4096  # an input of so few may reach a kernel as its arguments


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


def stage(submission: Program, trials: Sequence[Judged]) -> Stage:
    """Run the program without its kernels, then with other data, until an answer is wrong."""
    computed = Stage("kernel", Status.PASSED, says="its kernels compute the answer")
    launches = 0
    for trial, is_right in trials:
        attempt, launches = submission.without_kernels(trial)
        if attempt.why or not is_right(attempt.answers[0]):
            break
    else:
        if not launches:
            return _computed_elsewhere(
                "no kernel is launched (calls of libraries do not count as launches)"
            )
        some = f"{launches:,} launch{'' if launches == 1 else 'es'}"
        return _computed_elsewhere(f"without its {some} every answer is right, too")
    told = [one for one in trials if one[0].path.stat().st_size > MAX_ARGUMENT_BYTES]
    if not told or not submission.gets_other_data:
        return computed
    for trial, is_right in told:
        attempt = submission.with_other_data(trial)
        if attempt.why or not is_right(attempt.answers[0]):
            return computed
    return _computed_elsewhere("its kernels had other data, and every answer is right even so")


def _computed_elsewhere(how: str) -> Stage:
    details = [how, "copy the input to the device, compute there, and copy the answer back"]
    says = "the host computes it"
    return Stage("kernel", Status.FAILED, says=says, details=details, why=Why.NO_KERNEL, cost=1.0)
