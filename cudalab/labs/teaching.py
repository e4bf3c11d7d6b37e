"""A lab's knowledge besides its computation: sizes, work, tests, mistakes, libraries.

A lab's folder may have a module teaching.py with a class `Teaching`, derived from the one here.
Whatever it leaves out has a default that suits any lab.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cudalab.backends import defaults_of
from cudalab.labs.libraries import Libraries

if TYPE_CHECKING:
    from cudalab.labs.evidence import Evidence, Finding
    from cudalab.labs.inputs import Case, HostInputs, Size

Params = dict[str, Any]
OTHERS = "cpu"  # its sizes are for all devices without sizes of their own


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a lab's inputs, by purpose."""

    # Measured by bench by default. Large enough that on a GPU neither launches nor L2 dominate;
    # small enough that on the CPU device, whose slowest variants are a thousand times slower, a
    # table takes seconds.
    bench: Mapping[str, Size] = field(default_factory=lambda: {"cuda": 1 << 24, OTHERS: 1 << 16})
    # Measured by check against the reference kernel.
    timed: Mapping[str, Size] = field(default_factory=lambda: {OTHERS: 10_000})
    # For the sanitizer: small, but several blocks, the last one partly filled.
    sanitized: tuple[Size, ...] = (1000, 5000)
    # Shown in a report.
    sample: Size = 8
    is_order: bool = False  # sizes are orders of matrices: the work grows faster than the size


class PublicTest(NamedTuple):
    """A test that students may see."""

    name: str
    size: Size
    dist: str
    large: bool = False  # run once only, and not at all by --quick
    options: Mapping[str, Any] = MappingProxyType({})  # of the lab, besides the chosen ones
    made_with: Mapping[str, Any] = MappingProxyType({})  # other options, to make the input with
    refuse: bool = False  # invalid input: an error is right


class Mutant(NamedTuple):
    """A variant with one mistake in it."""

    variant: str
    old: str
    new: str
    mistake: str
    shows_on_gpu: bool = True  # False: only the emulation reliably shows it


class Skeleton(NamedTuple):
    """The kernel file that a student starts from."""

    variant: str  # whose header and kernels it has
    includes: tuple[str, ...] = ()  # headers whose kernels are not part of the exercise


class Showcase(NamedTuple):
    """Two variants to profile if none is named: one with a costly habit, and one without it."""

    variant: str
    cure: str
    shows: str  # what the first one has and the second one has not


class Exercise(NamedTuple):
    """A task of the course's hand-out: one case, computed in different kinds of memory."""

    title: str
    case: Case
    variants: dict[str, str]  # kind of memory -> variant
    sizes: tuple[int, ...]  # for `generate`; the first is the hand-out's


@dataclass(frozen=True)
class Work:
    """The minimum work of any program that solves the lab."""

    items: int  # the elements of elements/s
    read_bytes: int  # of the input
    write_bytes: int  # of the answer
    flops: int = 0  # floating-point operations, if they and not the bytes are the limit

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True)
class CourseTime:
    """A time from the course's material, measured on the GPU of its day."""

    ms: tuple[float, ...]  # the hand-out's; then the lecture's, if it differs

    def __str__(self) -> str:
        """Format the times as the material prints them."""
        return " / ".join(f"{ms:g}" for ms in self.ms)


class Teaching:
    """The defaults; each lab has a subclass that overrides some of them."""

    topic: ClassVar[str] = "memory"  # of `cudalab explain`: where its lesson begins
    usual_sizes: ClassVar[Sizes] = Sizes()
    timed_dist: ClassVar[str | None] = None  # distribution of timed inputs; None: the lab's first
    tests: ClassVar[tuple[PublicTest, ...]] = ()
    mutants: ClassVar[tuple[Mutant, ...]] = ()
    showcases: ClassVar[tuple[Showcase, ...]] = ()  # the first that computes the case is taken
    skeleton: ClassVar[Skeleton | None] = None  # None: the first variant of the ladder
    course_times: ClassVar[Mapping[str, CourseTime]] = {}  # by variant
    libraries: ClassVar[Libraries] = Libraries()
    scattered: ClassVar[bool] = False  # an element's index does not reveal which block computed it

    def sizes(self, case: Case) -> Sizes:
        """The sizes of the inputs of a case."""
        del case
        return self.usual_sizes

    def bench_size(self, case: Case, device: str) -> Size:
        """The size that bench measures by default. UsageError if the user must name one."""
        sizes = self.sizes(case).bench
        return sizes.get(defaults_of(device), sizes[OTHERS])

    def timed_size(self, case: Case, device: str) -> Size:
        """The size that check measures by default."""
        sizes = self.sizes(case).timed
        return sizes.get(defaults_of(device), sizes[OTHERS])

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """The tests of a check; `dispatch` is a kernel file's launch plan, None for a program."""
        del case, dispatch
        return self.tests

    def work(self, inputs: HostInputs, case: Case, answer_bytes: int) -> Work:
        """The minimum work: every input byte is read, every byte of the answer written."""
        read = sum(data.nbytes for data in inputs.arrays.values())
        return Work(self.items(inputs, case), read, answer_bytes, self.flops(inputs.params))

    def items(self, inputs: HostInputs, case: Case) -> int:
        """Number of elements computed, or of those read if that is larger."""
        del case
        first = next(iter(inputs.arrays.values()))
        return int(inputs.params.get("n", first.size))

    def flops(self, params: Params) -> int:
        """Number of floating-point operations if they are the limit; 0 if the bytes are."""
        del params
        return 0

    def own_flops(self, dispatch: str, inputs: HostInputs) -> int:
        """Minimum number of operations of the plan's algorithm; 0 if the bytes are the limit."""
        del dispatch, inputs
        return 0

    def course_time(self, variant: str, case: Case) -> CourseTime | None:
        """The course's time of the same computation, if there is one."""
        del case
        return self.course_times.get(variant)

    def matrix_shape(self, params: Params) -> tuple[int, int] | tuple[()]:
        """Rows and columns of the answer if it is a matrix, else ()."""
        del params
        return ()

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """The lab's typical mistakes that explain this wrong answer, most specific first."""
        del e
        yield from ()

    def exercises(self) -> Sequence[Exercise]:
        """The tasks of the hand-out."""
        return ()
