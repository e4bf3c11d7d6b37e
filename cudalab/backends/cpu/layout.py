"""Whether the structures of the runtime lie in memory as Python's mirrors of them say."""

import ctypes
from collections.abc import Iterator, Sequence

from cudalab.errors import ToolchainError

Mirror = type[ctypes.Structure]


def check(runtime: ctypes.CDLL, mirrors: Sequence[Mirror]) -> None:
    """Compare the mirrors with `cudalab_layout` of a runtime that has just been loaded."""
    count = ctypes.c_uint()
    runtime.cudalab_layout.restype = ctypes.POINTER(ctypes.c_uint)
    values = runtime.cudalab_layout(ctypes.byref(count))
    theirs = iter(values[: count.value])
    for mirror in mirrors:
        for what, ours in _described(mirror):
            there = next(theirs, None)
            if there != ours:
                raise ToolchainError(
                    f"the CPU device's runtime has another {mirror.__name__} than Python: "
                    f"{what} is {there}, not {ours}"
                )
    if next(theirs, None) is not None:
        raise ToolchainError("the CPU device's runtime has structures that Python does not know")


def _described(mirror: Mirror) -> Iterator[tuple[str, int]]:
    yield "the size", ctypes.sizeof(mirror)
    for name, *_ in mirror._fields_:
        field = getattr(mirror, name)
        yield f"the offset of {name}", field.offset
        yield f"the size of {name}", field.size
