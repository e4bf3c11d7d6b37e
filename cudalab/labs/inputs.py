"""The case, the size and the inputs of a computation, in a stream or in host memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cudalab.formats import Payload

Array = np.ndarray[Any, Any]
Case = dict[str, Any]  # the options that choose what is computed: {"dtype": "uint32"}
Size = int | tuple[int, ...]  # n, or the dimensions of a lab whose data have a shape


@dataclass
class HostInputs:
    """Inputs in host memory: arrays and numbers by name."""

    arrays: dict[str, Array]
    params: dict[str, Any] = field(default_factory=dict)

    def hold(self, name: str) -> Array:
        """The array called `name`."""
        return self.arrays[name]

    def sources(self) -> Mapping[str, Array]:
        """Everything to be copied to a device."""
        return self.arrays

    def load(self) -> HostInputs:
        """These inputs."""
        return self

    def copy(self) -> HostInputs:
        """A deep copy of the arrays."""
        arrays = {name: np.array(array) for name, array in self.arrays.items()}
        return HostInputs(arrays, self.params)


@dataclass
class StreamInputs:
    """Inputs that a stream announces; each array can be read once, in order."""

    arrays: dict[str, Payload]
    params: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Array] = field(default_factory=dict)

    def hold(self, name: str) -> Array:
        """Read the array called `name` and keep it in host memory."""
        if name not in self.held:
            self.held[name] = self.arrays[name].array()
        return self.held[name]

    def sources(self) -> Mapping[str, Array | Payload]:
        """Everything to be copied to a device: the arrays held, and the rest of the stream."""
        return {**self.arrays, **self.held}

    def load(self) -> HostInputs:
        """Bring everything into host memory; a regular file is mapped, not read."""
        held = self.held
        arrays = {
            name: held[name] if name in held else payload.mapped()
            for name, payload in self.arrays.items()
        }
        return HostInputs(arrays, self.params)


Inputs = HostInputs | StreamInputs


def patterns(raw: np.random.PCG64, count: int, itemsize: int) -> Array:
    """Draw `count` random patterns of `itemsize` bytes: the same on every platform."""
    words = raw.random_raw(-(-count * itemsize // 8))
    return words.astype("<u8", copy=False).view(f"<u{itemsize}")[:count]


def random_pieces(raw: np.random.PCG64, count: int, at_once: int) -> Iterator[tuple[int, Array]]:
    """64 random bits for each of `count` items, and the index of the first, `at_once` at a time."""
    for start in range(0, count, at_once):
        yield start, patterns(raw, min(at_once, count - start), 8)


def uniform(words: Array, dtype: np.dtype[Any]) -> Array:
    """Turn 64 random bits each into integers of all bits, or floats k / 2^23 (2^52) in [-1, 1).

    All operations are exact: the same bits give the same bytes everywhere.
    """
    bits = words.astype("<u8")
    if dtype.kind != "f":
        return (
            (bits >> np.uint64(64 - 8 * dtype.itemsize)).astype(f"<u{dtype.itemsize}").view(dtype)
        )
    digits = np.finfo(dtype).nmant
    whole = (bits >> np.uint64(63 - digits)).astype(np.int64) - (1 << digits)
    return np.asarray(whole * 2.0**-digits, dtype)


def with_nans(values: Array, words: Array) -> Array:
    """The values, floats, with a NaN in about one of 512 places, where the random bits decide."""
    return np.where(words & np.uint64(511), values, values.dtype.type(np.nan))


def ends(words: Array, dtype: np.dtype[Any]) -> Array:
    """Turn 64 random bits each into a value that a careless kernel takes for another one.

    Integers: the ends of the type, their neighbours, and those of 0. The least of a signed type is
    there an odd number of times, for two of them leave a sum as it is. Floats: zeros of both signs,
    and the numbers nearest to them.
    """
    if dtype.kind == "f":
        unsigned = np.dtype(f"<u{dtype.itemsize}")
        sign = (words & np.uint64(1)).astype(unsigned) << unsigned.type(8 * dtype.itemsize - 1)
        nearest = (words >> np.uint64(1) & np.uint64(0xF)).astype(unsigned)
        return np.asarray((nearest | sign).view(dtype))
    limits = np.iinfo(dtype)
    one, low, high = dtype.type(1), dtype.type(limits.min), dtype.type(limits.max)
    middle = np.array([0, 1, 2, high // 2, high // 2 + 1], dtype)
    values = np.concatenate([middle, np.array([low, low + one, high - one, high], dtype)])
    chosen = words % np.uint64(len(values))
    if np.count_nonzero(chosen == len(middle)) % 2 == 0:
        chosen[:1] = np.where(chosen[:1] == len(middle), 0, len(middle))
    return np.asarray(values[chosen])


def special(words: Array, dtype: np.dtype[Any]) -> Array:
    """Turn 64 random bits each into any bits of the type; every other float is a special one.

    These are 0, a number near 0, an infinity and a NaN, of both signs.
    """
    unsigned = np.dtype(f"<u{dtype.itemsize}")
    bits = (words >> np.uint64(64 - 8 * dtype.itemsize)).astype(unsigned)
    if dtype.kind == "f":
        infinity = np.array(np.inf, dtype).view(unsigned)
        kinds = np.array([0, 1, infinity, infinity + unsigned.type(1)], unsigned)
        sign = (words & np.uint64(1)).astype(unsigned) << unsigned.type(8 * dtype.itemsize - 1)
        chosen = kinds[(words >> np.uint64(1)) & np.uint64(3)] | sign
        bits = np.where(words & np.uint64(8), chosen, bits)
    return bits.view(dtype)
