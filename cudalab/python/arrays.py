"""Arrays in memory, in the place of a stream: labs read them as they read stdin."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cudalab.errors import InputError, UsageError, nearest
from cudalab.formats import InputStream, Payload, as_bytes
from cudalab.output.prose import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Array, Case, HostInputs, Inputs


class ArrayPayload(Payload):
    """An array that is in memory already."""

    def __init__(self, stream: InputStream, name: str, array: Array) -> None:
        """Announce `array`."""
        super().__init__(stream, name, array.dtype, array.shape)
        self._array = array

    def array(self) -> Array:
        """The array itself, not a copy."""
        return self._array

    def mapped(self) -> Array:
        """The array itself, not a copy."""
        return self._array


class ArrayStream(InputStream):
    """A stream whose header and arrays are in memory."""

    def __init__(self, name: str, numbers: Sequence[float], arrays: Sequence[Array]) -> None:
        """Begin with `numbers`, the header; the arrays follow. Messages call the stream `name`."""
        self.name, self.size, self.offset = name, None, 0
        self._numbers, self._arrays = tuple(numbers), tuple(arrays)
        self._header, self._num_read = b"", 0

    def scalars(self, layout: str, names: tuple[str, ...]) -> tuple[Any, ...]:
        """The header's numbers. InputError if there are more or fewer than `names`."""
        if len(names) != len(self._numbers):
            noun = "dimension" if self._arrays else "number"
            of = f" of {counted(len(self._arrays), 'array')}" if self._arrays else ""
            shown = f" ({_shape(self._numbers)})" if self._numbers else ""
            raise InputError(
                f"{self.name}: expected {counted(len(names), noun)} ({', '.join(names)}), "
                f"got {counted(len(self._numbers), noun)}{of}{shown}",
                hint=f"`cudalab {self.name} --help` describes the stream",
            )
        try:
            self._header = struct.pack(layout, *self._numbers)
        except (struct.error, OverflowError):
            raise self._unfit(layout, names) from None
        return struct.unpack(layout, self._header)

    def _unfit(self, layout: str, names: tuple[str, ...]) -> InputError:
        """The error about the first number that its place in the header cannot hold."""
        for letter, name, number in zip(layout.lstrip("<"), names, self._numbers, strict=True):
            if letter != "f" and not isinstance(number, int):
                return InputError(f"{self.name}: {name} is an int, got {number!r}")
            try:
                struct.pack(f"<{letter}", number)
            except (struct.error, OverflowError):
                return InputError(f"{self.name}: {name} = {number!r} does not fit into 32 bits")
        return InputError(f"{self.name}: {self._numbers}: the numbers do not fit")

    def payload(self, name: str, dtype: DTypeLike, *shape: int) -> ArrayPayload:
        """The next array. InputError unless it has this shape and type."""
        expected = f"{_shape(shape)} of {np.dtype(dtype).name}"
        if self._num_read == len(self._arrays):
            raise InputError(f"{self.name}: {name} is missing: expected {expected}")
        array = self._arrays[self._num_read]
        if (array.shape, array.dtype) != (shape, np.dtype(dtype)):
            raise InputError(
                f"{self.name}: {name}: expected {expected}, "
                f"got {_shape(array.shape)} of {array.dtype}",
                hint=astype(array, [np.dtype(dtype).name]) if array.shape == shape else None,
            )
        self._num_read += 1
        return ArrayPayload(self, name, array)

    def check_end(self) -> None:
        """Raise an InputError if an array is left that nobody has asked for."""
        left = len(self._arrays) - self._num_read
        if left:
            raise InputError(f"{self.name}: {counted(left, 'array')} more than the lab reads")

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of the stream as a file would hold them."""
        yield self._header
        yield from map(as_bytes, self._arrays)


def read(
    lab: Lab, values: Sequence[ArrayLike], options: Mapping[str, Any]
) -> tuple[ArrayStream, HostInputs, Case]:
    """The lab's inputs and its case: numbers and arrays, in the order of the lab's stream."""
    inputs = [plain(lab.name, value) for value in values]
    arrays = [one for one in inputs if isinstance(one, np.ndarray)]
    numbers = [np.asarray(one).item() for one in inputs if not isinstance(one, np.ndarray)]
    case = case_of(lab, arrays, options)
    if not arrays and not numbers:
        raise InputError(f"{lab.name}: there is no input", hint=f"`cudalab {lab.name} --help`")
    if lab.has_arrays and numbers:
        raise InputError(
            f"{lab.name}: expected arrays, got the number {numbers[0]}",
            hint=f"[{numbers[0]}] is an array of one element",
        )
    if arrays and not lab.has_arrays:
        raise InputError(f"{lab.name}: expected numbers, got an array of {_shape(arrays[0].shape)}")
    stream = ArrayStream(lab.name, numbers or lab.header_of(arrays, case), arrays)
    read_inputs = lab.read(stream, case)
    stream.check_end()
    return stream, read_inputs.load(), case


def plain(name: str, value: ArrayLike) -> Any:
    """A number, or an array in the machine's own order of bytes, of which all elements count."""
    if np.ma.is_masked(value):
        raise InputError(
            f"{name}: a masked array: the lab would compute with what is masked, too",
            hint="array.compressed() leaves it out, array.filled(0) replaces it",
        )
    if np.iscomplexobj(value):
        raise InputError(
            f"{name}: complex numbers: the labs compute with real ones",
            hint="array.real and array.imag are their parts",
        )
    if np.ndim(value):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            raise InputError(
                f"{name}: an array of Python objects, such as numbers of more than 64 bits",
                hint="array.astype('int32') has numbers of the machine",
            )
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if not isinstance(value, (np.ndarray, np.number, int, float)):
        raise InputError(f"{name}: expected an array or a number, got a {type(value).__name__}")
    if isinstance(value, np.ndarray):
        raise InputError(f"{name}: an array without dimensions", hint="array.reshape(1)")
    return value


def astype(array: Array, names: Sequence[str]) -> str | None:
    """How to make an array of one of these types, of the same kind if there is one."""
    if array.dtype.kind not in "biuf":
        return None
    alike = [name for name in names if np.dtype(name).kind == array.dtype.kind]
    return f"array.astype('{[*alike, *names][0]}')"


def _by_axis(lab: Lab, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with the command's flags, such as rows=True, as values: along="rows"."""
    axis_of = {value: axis for axis in lab.flags for value in lab.axes[axis][1:]}
    chosen: dict[str, Any] = {}
    for name, value in options.items():
        axis = axis_of.get(name)
        if axis is None:
            chosen[name] = value
        elif not isinstance(value, bool):
            raise UsageError(f"{lab.name}: {name} is True or False, got {value!r}")
        elif value:
            if chosen.get(axis, options.get(axis, name)) != name:
                other = chosen.get(axis, options.get(axis))
                raise UsageError(f"{lab.name}: {name} and {axis}={other!r} exclude each other")
            chosen[axis] = name
    return chosen


def case_of(lab: Lab, arrays: Sequence[Array], options: Mapping[str, Any]) -> Case:
    """The case of the arrays and options. UsageError for an option that the lab does not have."""
    own = [option.key for option in lab.options]
    known = [axis for axis in lab.axes if axis not in lab.derived] + own
    chosen = {**lab.options_of(arrays), **_by_axis(lab, options)}
    for name, value in chosen.items():
        if name not in known:
            raise UsageError(f"{lab.name} has no option '{name}'", hint=nearest(name, known))
        values = lab.axes.get(name)
        if values and value is not None and value not in values:
            raise UsageError(
                f"{lab.name}: {name} is one of {', '.join(values)}, got {value!r}",
                hint=astype(arrays[0], values) if name == "dtype" and arrays else None,
            )
    case = lab.complete(chosen)
    if case.get("text"):
        raise UsageError("text is for the command: arrays are binary", hint="leave it out")
    return case


def shaped(answer: Array, lab: Lab, inputs: Inputs, case: Case) -> Array:
    """The elements of an answer, in the shape that the lab gives it."""
    announced = lab.read_answer(_Announced(), inputs, case)
    return answer.reshape(-1).view(announced.dtype).reshape(announced.shape)


class _Announced(InputStream):
    """A stream of which only the shape and the type are of interest."""

    def __init__(self) -> None:
        self.name, self.size, self.offset = "answer", None, 0

    def payload(self, name: str, dtype: DTypeLike, *shape: int) -> ArrayPayload:
        """An array that takes no memory."""
        del name
        return ArrayPayload(self, "answer", np.broadcast_to(np.zeros((), dtype), shape))


def _shape(shape: Sequence[float]) -> str:
    return " x ".join(f"{size:,}" for size in shape) or "one element"
