"""Answers of a lab about anything but its computation: sizes, work, tests, mistakes, libraries.

The folder of a lab may hold a module teaching.py with a class `Teaching`, derived from the one
here. Whatever it leaves out has a default that suits any lab.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cudalab.backends import defaults_of
from cudalab.labs.libraries import Libraries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cudalab.labs.evidence import Evidence, Finding
    from cudalab.labs.inputs import Case, HostInputs, Size

Params = dict[str, Any]
OTHERS = "cpu"  # its sizes are for any device that has none of its own


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a lab's inputs by purpose."""

    # Measured by bench when no size is named. Large enough on a GPU that neither launches nor L2
    # decide; small enough on the CPU device, whose slowest variants are a thousand times slower,
    # that a table takes seconds.
    bench: Mapping[str, Size] = field(default_factory=lambda: {"cuda": 1 << 24, OTHERS: 1 << 16})
    # Measured by check against a reference.
    timed: Mapping[str, Size] = field(default_factory=lambda: {OTHERS: 10_000})
    # Small, several blocks, and an end that fills no block: where the sanitizer finds mistakes.
    sanitized: tuple[Size, ...] = (1000, 5000)
    # Printed in a report.
    sample: Size = 8
    is_order: bool = False  # a size is the order of a matrix: the work grows faster than it


class PublicTest(NamedTuple):
    """An input that everybody may know."""

    name: str
    size: Size
    dist: str


class Mutant(NamedTuple):
    """A variant with one mistake in it."""

    variant: str
    old: str
    new: str
    mistake: str
    shows_on_gpu: bool = True  # False: only emulation is sure to show it


class Skeleton(NamedTuple):
    """The kernel file that a student begins with."""

    variant: str  # its header and its plan's kernels
    given: tuple[str, ...] = ()  # includes whose kernels are no part of the exercise


class Exercise(NamedTuple):
    """A task of the course's hand-out: one case, computed from different kinds of memory."""

    title: str
    case: Case
    variants: dict[str, str]  # kind of memory -> variant
    sizes: tuple[int, ...]  # for `generate`; the first is the hand-out's


@dataclass(frozen=True)
class Work:
    """The least that any program which solves the lab must do."""

    items: int  # what elements/s counts
    read_bytes: int  # of the input
    write_bytes: int  # of the answer
    flops: int = 0  # floating-point operations, where they and not the bytes are the limit

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True)
class CourseTime:
    """A time that the course's material prints, on the GPU of its day."""

    ms: tuple[float, ...]  # the hand-out's; then the lecture's, where it prints another
    size: str = ""  # what it was measured on, where it says so

    def __str__(self) -> str:
        """As they are printed."""
        return " / ".join(f"{ms:g}" for ms in self.ms)


class Teaching:
    """The defaults. Subclasses, one a lab, replace what they know better."""

    usual_sizes: ClassVar[Sizes] = Sizes()
    timed_dist: ClassVar[str | None] = None  # of timed inputs; None: the lab's first distribution
    tests: ClassVar[tuple[PublicTest, ...]] = ()
    mutants: ClassVar[tuple[Mutant, ...]] = ()
    skeleton: ClassVar[Skeleton | None] = None  # None: the first variant of the ladder
    course_times: ClassVar[Mapping[str, CourseTime]] = {}  # by variant
    libraries: ClassVar[Libraries] = Libraries()
    scattered: ClassVar[bool] = False  # an element's place in the answer tells no block or thread

    def sizes(self, case: Case) -> Sizes:
        """The sizes of the inputs of a case."""
        del case
        return self.usual_sizes

    def bench_size(self, case: Case, device: str) -> Size:
        """The size that bench measures when none is named. UsageError where one must be named."""
        sizes = self.sizes(case).bench
        return sizes.get(defaults_of(device), sizes[OTHERS])

    def timed_size(self, case: Case, device: str) -> Size:
        """The size that check measures when none is named."""
        sizes = self.sizes(case).timed
        return sizes.get(defaults_of(device), sizes[OTHERS])

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """The inputs of a check; `dispatch` is the launch plan of a kernel file, None a program."""
        del case, dispatch
        return self.tests

    def work(self, inputs: HostInputs, case: Case, answer_bytes: int) -> Work:
        """The least work: every input byte is read, every byte of the answer written."""
        read = sum(data.nbytes for data in inputs.arrays.values())
        return Work(self.items(inputs, case), read, answer_bytes, self.flops(inputs.params))

    def items(self, inputs: HostInputs, case: Case) -> int:
        """How many elements are computed, or read where that are more."""
        del case
        first = next(iter(inputs.arrays.values()))
        return int(inputs.params.get("n", first.size))

    def flops(self, params: Params) -> int:
        """Floating-point operations, where they and not the bytes are the limit; else 0."""
        del params
        return 0

    def own_flops(self, dispatch: str, inputs: HostInputs) -> int:
        """Operations that a variant's algorithm cannot do without; 0 where bytes say more."""
        del dispatch, inputs
        return 0

    def course_time(self, variant: str, case: Case) -> CourseTime | None:
        """The printed time of the same computation, if there is one."""
        del case
        return self.course_times.get(variant)

    def matrix_shape(self, params: Params) -> tuple[int, int] | tuple[()]:
        """Rows and columns of an answer that is a matrix."""
        del params
        return ()

    def mistakes(self, evidence: Evidence) -> Iterator[Finding]:
        """The lab's typical mistakes that would give this wrong answer, most telling first."""
        del evidence
        yield from ()

    def exercises(self) -> Sequence[Exercise]:
        """The hand-out's tasks."""
        return ()
