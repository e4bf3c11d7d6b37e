"""A wrong answer and all that is known about it, to be matched with patterns of mistakes."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from cudalab.labs.inputs import Array, Case, HostInputs

BLOCKS = (32, 64, 128, 256, 512, 1024, 2048, 4096)  # items of a block, if the header does not say
TILES = (8, 16, 32, 64, 128)
MAX_SHOWN = 4  # launches
MAX_DEFINED = 1 << 20  # a student's header may say anything
# Placeholders of commands in findings; judge.py fills in the test's own.
SANITIZE = "{sanitize}"
BYTES = "{run} | xxd | head"


@dataclass(frozen=True)
class Finding:
    """A pattern that a wrong answer matches."""

    pattern: str  # a short name, for statistics over a class
    says: str  # the symptom
    cause: str  # the likely reason
    look: str = ""  # a command that shows it; may contain {run} and {sanitize}
    _: KW_ONLY
    # Whether it is the cause of whatever else is wrong, such as differences between runs.
    root: bool = False


@dataclass(frozen=True)
class Launches:
    """The division of the work, according to the kernel's header and its run."""

    dispatch: str = ""
    defines: Mapping[str, int | str] = field(default_factory=dict)
    launched: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    unwritten: Array | None = None  # a mask of the elements that no run wrote, if known

    def define(self, *names: str) -> int:
        """The product of integer defines; 0 if one is missing."""
        values = [self.defines.get(name) for name in names]
        return math.prod(v if isinstance(v, int) and 0 < v <= MAX_DEFINED else 0 for v in values)

    def words(self) -> str:
        """The launches in CUDA's notation."""
        shown = [
            f"{name}<<<{_dims(grid)}, {_dims(block)}>>>" for name, grid, block in self.launched
        ]
        more = [f"and {len(shown) - MAX_SHOWN} more"] if len(shown) > MAX_SHOWN else []
        return ", ".join(shown[:MAX_SHOWN] + more)

    @property
    def block_items(self) -> int:
        """Number of elements that a block of a one-dimensional grid handles; 0 if unknown."""
        return (
            self.define("ITEMS_PER_BLOCK")
            or self.define("TILE_ITEMS")
            or self.define("THREADS_PER_BLOCK", "ITEMS_PER_THREAD")
            or self.define("THREADS_PER_BLOCK", "KEYS_PER_THREAD")
            or self.define("THREADS_PER_BLOCK")
        )


def _dims(dims: tuple[int, ...]) -> str:
    """Format dimensions without trailing ones."""
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return str(dims[0]) if len(dims) == 1 else f"dim3{dims}"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A wrong answer of the right length, and all that is known about it."""

    case: Case
    inputs: HostInputs
    got: Array  # flat
    expected: Array  # flat
    wrong: Array  # indices
    launches: Launches
    reference: Callable[[Case], Array]  # the right answer to the same inputs in another case
    shape: tuple[int, int] | tuple[()] = ()  # rows and columns, if the answer is a matrix
    scattered: bool = False  # an element's index does not reveal which block computed it

    def input(self, name: str | None = None) -> Array:
        """An input, flat; the first one by default."""
        arrays = self.inputs.arrays
        array = arrays[name] if name else next(iter(arrays.values()))
        return array.reshape(-1)

    def same(self, other: Array) -> bool:
        """Whether the answer equals `other`; floats need only be close."""
        other = other.reshape(-1)
        if other.shape != self.got.shape:
            return False
        if self.got.dtype.kind != "f":
            return bool(np.array_equal(self.got, other.astype(self.got.dtype, copy=False)))
        scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
        return bool(
            np.allclose(self.got, other, rtol=1e-4, atol=1e-5 * scale + 1e-30, equal_nan=True)
        )


def place_of(evidence: Evidence, index: int) -> str:
    """Describe the place of an element: row and column, block, thread, tile."""
    launches, parts = evidence.launches, []
    if evidence.shape:
        row, col = divmod(index, evidence.shape[1])
        parts.append(f"row {row:,}, column {col:,}")
        tile = tile_of(evidence)
        if tile:
            (down, across) = tile
            parts.append(f"tile ({row // down:,}, {col // across:,})")
    elif launches.block_items and evidence.got.size > 1 and not evidence.scattered:
        items = launches.block_items
        parts.append(f"block {index // items:,}")
        if items == launches.define("THREADS_PER_BLOCK"):
            parts.append(
                f"thread {index % items} (lane {index % 32} of warp {index % items // 32})"
            )
        else:
            parts.append(f"item {index % items:,} of the block")
    return f" ({', '.join(parts)})" if parts else ""


def tile_of(e: Evidence) -> tuple[int, int] | tuple[()]:
    """Rows and columns of a tile of the answer, according to the kernel's header."""
    define = e.launches.define
    square = define("TILE") or define("TILE_DIM")
    if square:
        return square, square
    return (define("BM"), define("BN")) if define("BM") and define("BN") else ()


def block_sizes(e: Evidence) -> list[int]:
    """How many elements a block may have handled: the header's number, else the usual ones."""
    known = e.launches.block_items
    named = {known, e.launches.define("THREADS_PER_BLOCK")} - {0}
    return sorted(named) if named else list(BLOCKS)


def where(e: Evidence, indices: Array) -> str:
    first, last = int(indices[0]), int(indices[-1])
    if len(indices) == e.got.size:
        return ""
    return f", from [{first:,}] to [{last:,}]" if len(indices) > 1 else f": [{first:,}]"


def same_as_input(e: Evidence) -> Iterator[Finding]:
    """Recognise the input, unchanged: possible in any lab whose answer is as long as its input."""
    if e.input().dtype == e.got.dtype and e.same(e.input()):
        yield Finding(
            "the input itself",
            "the answer is the input, unchanged",
            "the kernel copies, or the result is read from the wrong buffer",
        )
