"""A lab: its stream, its data, its reference and its launch plans.

A lab knows nothing of click, rich or a concrete device. To add one, add its folder here, with a
`LAB` object in lab.py and launch plans in plans.py, and its folder of kernels. A module teaching.py
in the folder is optional: see cudalab/labs/teaching.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES, Buffer, Device, Dim, Module
from cudalab.errors import UsageError, nearest
from cudalab.formats import InputStream, write_all
from cudalab.labs.compare import Accuracy, Mismatches, nearest_to_bound
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size
from cudalab.language import source

if TYPE_CHECKING:
    from cudalab.labs.header import Variant
    from cudalab.labs.teaching import Teaching

PLAN = "dispatch_"  # prefix of the launch plans' functions
PLANS, TEACHING = "plans", "teaching"  # the modules beside lab.py


@dataclass(frozen=True)
class Option:
    """A command-line option of one lab that is not an axis; its value is in the case, too."""

    name: str  # "--max-iter": the case has "max_iter"
    type: type  # bool makes a flag
    help: str
    _: KW_ONLY
    default: Any = None
    bare: Any = None  # value of the option when it stands alone
    runs_only: bool = False  # gen and verify have no use for it

    @property
    def key(self) -> str:
        """Its name in the case."""
        return self.name.removeprefix("--").replace("-", "_")


Launch = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The input of a launch plan: the device, the compiled kernels, the inputs on the device."""

    device: Device
    kernels: Module
    variant: Variant
    buffers: dict[str, Buffer]
    params: dict[str, Any]
    case: Case

    @property
    def defines(self) -> Mapping[str, int | str]:
        """The defines in the variant's header, as numbers for this device."""
        return self.variant.on(self.device).defines

    def launch(
        self,
        kernel: str,
        grid: Dim,
        block: Dim,
        *args: Buffer | np.generic | int,
        shared_bytes: int = 0,
    ) -> Launch:
        """A launch of the kernel called `kernel`, which a step makes; integers become `unsigned`.

        CudalabError if the file does not define it.
        """
        given = (np.uint32(arg) if isinstance(arg, int) else arg for arg in args)
        bound = partial(self.device.launch, self.kernels[kernel], grid, block, *given)
        return partial(bound, shared_bytes=shared_bytes) if shared_bytes else bound

    def define(
        self,
        name: str,
        otherwise: int | None = None,
        *,
        at_least: int = 1,
        at_most: int = 2**31 - 1,
    ) -> int:
        """The variant's integer define `name`, with which its kernels were compiled.

        `otherwise` is the value if the header has none. HeaderError if the plan cannot use it.
        """
        value = self.defines.get(name, otherwise)
        if value is None:
            raise self.variant.error("defines", f"defines: {name} is missing")
        if isinstance(value, int) and (name not in self.defines or at_least <= value <= at_most):
            return value
        is_large = isinstance(value, int) and value > at_most
        expected = f"{at_most:,} or less" if is_large else f"{at_least} or more"
        raise self.variant.error(
            "defines", f"defines: {name} = {value!r}: the launch plan needs an integer, {expected}"
        )


@dataclass(frozen=True)
class Step:
    """The launches of one computation; `out` is the answer. Inputs stay intact: it can repeat."""

    run: Launch
    out: Buffer
    _: KW_ONLY
    reads_back: bool = (
        False  # waits for results between launches, so it cannot be queued for timing
    )
    notes: list[str] = field(default_factory=list)  # of the last run, for stderr
    # Raises InputError if kernels detected bad inputs; not part of the time.
    check: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        """Launch everything once, then check whether the inputs were valid."""
        self.run()
        self.check()


def in_order(*launches: Launch) -> Launch:
    """Return a function that makes the launches one after the other."""

    def run() -> None:
        for launch in launches:
            launch()

    return run


def blocks_for(items: int, per_block: int) -> int:
    """Number of blocks that cover all items."""
    return -(-items // per_block)


def passes(items: int, per_block: int, max_blocks: int | None = None) -> list[int]:
    """The blocks of each pass over what the pass before has left, an item a block, until one is."""
    blocks = [min(blocks_for(items, per_block), max_blocks or items)]
    while blocks[-1] > 1:
        blocks.append(min(blocks_for(blocks[-1], per_block), max_blocks or items))
    return blocks


def powers_of_two(first: int, last: int) -> list[int]:
    """The powers of two from `first`, which is one, to `last`."""
    return [first << k for k in range((last // first).bit_length())]


def padded(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()


class Lab:
    """A lab of the course. Subclasses fill in the class variables and the methods."""

    name: ClassVar[str]
    # The options that choose a case; the first value is the default.
    axes: ClassVar[dict[str, tuple[str, ...]]]
    # Axes whose values are flags, with their help: {"product": {"aat": ...}} makes --aat.
    flags: ClassVar[dict[str, dict[str, str]]] = {}
    # Axes that `complete` derives from other options; the command line does not offer them.
    derived: ClassVar[frozenset[str]] = frozenset()
    # Formats narrower than the lab's own to which a variant may round its inputs, if it says so in
    # its header: `compare_at` knows what answers to expect then.
    precisions: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[Option, ...]] = ()
    has_arrays: ClassVar[bool] = True  # a stream is more than the numbers of its header
    distributions: ClassVar[tuple[str, ...]]
    answer: ClassVar[str]  # what messages call the answer
    # The variants that `choose` takes, and for which inputs, in a few words for `cudalab list LAB`.
    taken: ClassVar[Mapping[str, str]] = {}
    example_size: ClassVar[str] = "1e6"  # in the examples of the help

    @cached_property
    def plans(self) -> ModuleType:
        """The module plans.py beside lab.py, whose functions dispatch_* launch the variants."""
        return import_module(self._beside(PLANS))

    def dispatches(self) -> list[str]:
        """The launch plans a variant's header may name."""
        names = [name for name in vars(self.plans) if name.startswith(PLAN)]
        return sorted(name.removeprefix(PLAN) for name in names)

    def plan(self, dispatch: str) -> Callable[[Job], Step]:
        """The launch plan called `dispatch`, one of `dispatches()`; it allocates its buffers."""
        plan: Callable[[Job], Step] = getattr(self.plans, PLAN + dispatch)
        return plan

    def compiled(self, variant: Variant, device: Device, case: Case) -> Module:
        """The variant's kernels for a case."""
        return device.compile(
            source.load(variant.path, variant.label),
            {**self.kernel_defines(case), **variant.on(device).defines},
            arch=variant.architecture,
        )

    @cached_property
    def teaching(self) -> Teaching:
        """The `Teaching` of teaching.py beside lab.py, or the defaults if there is none."""
        from cudalab.labs import teaching  # noqa: PLC0415 - a plain run needs none of it

        own = self._beside(TEACHING)
        if find_spec(own) is None:
            return teaching.Teaching()
        result: Teaching = import_module(own).Teaching()
        return result

    def _beside(self, name: str) -> str:
        """The full name of a module beside lab.py."""
        return f"{type(self).__module__.rpartition('.')[0]}.{name}"

    def distribution(self, name: str | None) -> str:
        """The named distribution, or the first. UsageError if the lab does not have it."""
        if name is None:
            return self.distributions[0]
        plain = name.partition(":")[0]  # a parameter may follow
        if plain not in self.distributions:
            raise UsageError(
                f"{self.name} has no distribution '{plain}'",
                hint=nearest(plain, self.distributions),
            )
        return name

    def complete(self, options: Case) -> Case:
        """Make a complete case of options; None means that an option is absent.

        Defaults that depend on other options are decided here. UsageError for options that cannot
        be combined.
        """
        defaults = {axis: values[0] for axis, values in self.axes.items()}
        return defaults | {name: value for name, value in options.items() if value is not None}

    def words(self, case: Case, *, runs: bool = False) -> list[str]:
        """The options of the command line that make `case`, without those that need no mention.

        `runs` includes options that only a run has a use for.
        """
        unused = {option.key for option in self.options if option.runs_only and not runs}
        skipped = self.derived | unused
        values = {
            name: value
            for name, value in case.items()
            if name not in skipped and value is not None and value is not False
        }
        named: Case = {}
        while others := {  # a default may depend on what is named
            name: value
            for name, value in values.items()
            if name not in named and self.complete(named).get(name) != value
        }:
            named |= others
        words = []
        for name in (name for name in values if name in named):
            if name in self.flags:
                words.append(f"--{values[name]}")
            else:
                words.append(f"--{name.replace('_', '-')}")
                words += [] if values[name] is True else [str(values[name])]
        return words

    def cases(self) -> Iterator[Case]:
        """Every complete case, the default one first."""
        seen = []
        for values in product(*self.axes.values()):
            try:
                case = self.complete(dict(zip(self.axes, values, strict=True)))
            except UsageError:
                continue
            if case not in seen:
                seen.append(case)
                yield case

    def options_of(self, arrays: Sequence[Array]) -> Case:
        """The options that inputs in memory imply: their element type, if the lab has several."""
        several = len(self.axes.get("dtype", ())) > 1
        return {"dtype": arrays[0].dtype.name} if several and arrays else {}

    def header_of(self, arrays: Sequence[Array], case: Case) -> tuple[int, ...]:
        """The numbers at the start of a stream of `arrays`: the dimensions of the first one."""
        del case
        shape: tuple[int, ...] = arrays[0].shape
        return shape

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """The macros that the case defines for every kernel: T, its element type in C."""
        return {"T": C_TYPES[case["dtype"]]}

    def choose(self, inputs: Inputs, case: Case, device: Device) -> str | Sequence[str] | None:
        """The variant for these inputs if the user names none; None leaves it to the headers.

        From several, the first whose requirements the device meets is taken; if there is none,
        the headers decide.
        """
        del inputs, case, device
        return None

    def encode(self, answer: Callable[[], Array], case: Case) -> bytes | None:
        """Encode the answer as the case requires, for example as text; None for its plain bytes."""
        del answer, case
        return None

    def finish(self, answer: Callable[[], Array], case: Case) -> None:
        """Do what the case requires besides the answer, after that has been written."""
        del answer, case

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header and announce the arrays. InputError for what the format forbids."""
        raise NotImplementedError

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate a stream of size n from `dist`: same seed, same bytes, on every platform."""
        raise NotImplementedError

    def write_file(self, path: Path, case: Case, n: Size, dist: str, seed: int) -> None:
        """Generate a stream into a file."""
        with path.open("wb") as file:
            write_all(file.fileno(), self.generate(case, n, dist, seed), path.name)

    def read_file(self, path: Path, case: Case, name: str = "") -> HostInputs:
        """The inputs in a file, mapped into memory; errors call it `name`."""
        with path.open("rb") as file:
            return self.read(InputStream(file.fileno(), name or path.name), case).load()

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """The answer, computed on the host by NumPy."""
        raise NotImplementedError

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """Shape and type of the answer to `inputs`: by default, n elements of the case's type."""
        return (inputs.params["n"],), case["dtype"]

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """Read an answer to `inputs` for `verify`; there is no header."""
        shape, dtype = self.answer_form(inputs, case)
        return stream.payload(self.answer, dtype, *shape).array()

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """The differences between an answer and the reference; None if there are none."""
        raise NotImplementedError

    def compare_at(
        self, precision: str, got: Array, inputs: HostInputs, case: Case
    ) -> Mismatches | None:
        """Compare the answer of a variant of `precision`, one of `precisions` or "" for the lab's.

        For variants that declare a loss only: `verify` and `check` do not know the variant.
        """
        if precision:
            raise ValueError(f"{self.name} has no precision {precision!r}")
        return self.compare(got, inputs, case)

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """The right values and error bounds of floats that need not be exact, else None.

        Where a bound is NaN or infinity, any value is accepted.
        """
        del inputs, case
        return None

    def accuracy(self, got: Array, inputs: HostInputs, case: Case) -> Accuracy | None:
        """How close an answer comes to its error bound; None if it must be exact.

        By default that of the element which comes closest.
        """
        bounds = self.bounds(inputs, case)
        return None if bounds is None else nearest_to_bound(got, *bounds)

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """The answer if there is nothing to compute: by default, no elements. Else None."""
        shape, dtype = self.answer_form(inputs, case)
        return None if all(shape) else np.empty(shape, dtype)
