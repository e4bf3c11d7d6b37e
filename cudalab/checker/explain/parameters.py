"""Compares a kernel's parameters with what the lab launches it with: their types, their order.

A kernel may read its data as it likes: as vectors, as bytes, or a float as its bits. So a type is
only said to be another one where both are numbers of a known kind and size, and only to explain an
answer that is wrong.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from cudalab.backends.base import C_TYPES
from cudalab.language import source

BYTES = "uint8"  # may hold anything
_NUMBERS = {words: np.dtype(name) for name, words in C_TYPES.items() if name != BYTES} | {
    "size_t": np.dtype("uint64"),
    "unsigned int": np.dtype("uint32"),
    "short": np.dtype("int16"),
    "unsigned short": np.dtype("uint16"),
}


def mismatches(
    text: str, macros: Mapping[str, str | int], launched: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What differs, for each kernel that was `launched` with these types of arguments."""
    names, types = source.parameter_names(text), source.parameter_types(text)
    for kernel, arguments in launched.items():
        declared = types.get(kernel, ())
        for number, (own, passed) in enumerate(zip(declared, arguments, strict=False)):
            words, star, _ = own.partition(" *")
            number_type = _NUMBERS.get(str(macros.get(words, words)))
            passed_type = _NUMBERS.get(passed.removesuffix(" *"))
            if number_type is None or passed_type is None:
                continue
            is_array = passed.endswith(" *")
            if bool(star) != is_array or not _same(number_type, passed_type):
                called = names[kernel][number] or f"number {number}"
                yield f"parameter {called} of kernel {kernel} is {own}, the lab passes {passed}"


def reordered(text: str, contract: str, launched: Iterable[str]) -> Iterator[str]:
    """Kernels whose parameters have the contract's names, in another order."""
    for kernel, own in source.parameter_names(text).items():
        described = re.search(rf"^{re.escape(kernel)}\(([^()]*)\)", contract, re.MULTILINE)
        if kernel not in launched or described is None:
            continue
        wanted = [(re.findall(r"\w+", one) or [""])[-1] for one in described[1].split(",")]
        if own != wanted and sorted(own) == sorted(wanted):
            words = f"are {', '.join(own)}, the lab passes {', '.join(wanted)}"
            yield f"the parameters of kernel {kernel} {words}"


def _same(one: np.dtype[np.generic], other: np.dtype[np.generic]) -> bool:
    """Whether numbers have one kind and size; a sign is a matter of how one reads them."""
    return one.itemsize == other.itemsize and (one.kind == "f") == (other.kind == "f")


def in_c(dtype: np.dtype[np.generic], *, array: bool) -> str:
    """An argument's type in C."""
    return C_TYPES.get(dtype.name, dtype.name) + (" *" if array else "")
