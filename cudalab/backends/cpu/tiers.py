"""The two ways to run a kernel: loops over the threads of a block, or fibers.

Loops are faster by far; regions/ writes them. Fibers run every kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cudalab.language.source import Source, blank_comments, is_own, quoted, with_defines

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions import Place

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]?([^>\"\n]*)[^\n]*$", re.MULTILINE)
# Headers whose functions never wait for other threads.
_PLAIN_HEADERS = frozenset(
    {"cuda_runtime.h", "device_launch_parameters.h", "cuda_fp16.h", "cuda_bf16.h", "stdio.h"}
    | {
        "assert.h",
        "cassert",
        "math_constants.h",
        "math.h",
        "stdint.h",
        "limits.h",
        "float.h",
        "string.h",
        "stddef.h",
    }
    | {"cmath", "cstdint", "climits", "cfloat", "cstdio", "cstddef", "type_traits", "limits"}
)
FIBERS = "cudalab_fibers"  # the symbol with the reasons for fibers
LOOPS = "loops over the threads of a block"
# Macros for kernels, in whose place loops have variables and functions.
_LOCAL_HERE = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim"),
    *(f"__syncthreads_{vote}" for vote in ("count", "and", "or")),
)
_WARP = 32
_GREATEST_INDEX = 2**31 - 1 - 1024  # of a thread in a grid: regions.h counts on it


EXPORTS = "cudalab exports"  # what compilers call the text behind a kernel file


class Parts(NamedTuple):
    """A kernel file, with its defines in front."""

    text: str
    kernels: tuple[str, ...]
    exports: str = ""  # of its variables
    exact: bool = True  # conversions and shifts have a GPU's results


def parts(source: Source, defines: Mapping[str, str | int]) -> Parts:
    """The text of a .cu file with its defines, and its kernels.

    cudalab's own need no other conversions and shifts than the processor's, which are faster.
    """
    text, kernels = with_defines(source.text, defines), tuple(source.kernels)
    return Parts(text, kernels, exact=not is_own(source.path))


@lru_cache(maxsize=8)
def for_host(parts: Parts, *, observed: bool, refused: tuple[tuple[Place, int], ...] = ()) -> Parts:
    """The file for the host's compiler, in check mode if it is `observed`.

    `refused` has the lines whose conversions and shifts the compiler has refused, and how often.
    """
    from cudalab.language import kernel_file  # noqa: PLC0415 - for new kernels only

    file = kernel_file.read(parts.text)
    exports = "".join(f"CUDALAB_SYMBOL({name})\n" for name in file.variables)
    text = file.for_host(observed=observed, exact=parts.exact, refused=dict(refused))
    return parts._replace(text=text, exports=exports)


def to_preprocess(parts: Parts) -> str:
    """The text whose macros are to be expanded: headers of the compiler have no kernels."""
    return _INCLUDE.sub("", parts.text)


def with_loops(
    parts: Parts, preprocessed: str, refused: Mapping[str, str]
) -> tuple[str, dict[str, frozenset[Place]]]:
    """The C++ of a file whose kernels are loops, as far as possible; these kernels' lines.

    Kernels whose loops the compiler has `refused` keep their fibers.
    """
    from cudalab.backends.cpu.regions import loops  # noqa: PLC0415 - for new kernels only

    others = sorted(set(_INCLUDE.findall(blank_comments(parts.text, literals=False))))
    unknown = [name for name in others if name not in _PLAIN_HEADERS]
    if unknown:
        return with_fibers(parts, f"the file includes {unknown[0]}"), {}
    written = loops(preprocessed, refused=refused)
    if not written.kernels:
        return with_fibers(parts, reasons=written.reasons), {}
    in_loops = [name for name in parts.kernels if name in written.kernels]
    others = [name for name in parts.kernels if name not in written.kernels]
    text = _joined(
        '#include "cudalab_cpu.h"',
        '#include "cudalab/arithmetic.h"' if parts.exact else "",
        "#define CUDALAB_FLAT" if written.flat else "",
        '#include "regions.h"',
        "#undef __global__",
        "#define __global__ inline",  # compiled only where nothing else takes its place
        parts.text,
        *(f"#undef {name}" for name in _LOCAL_HERE),
        written.text,
        f'#line 1 "{EXPORTS}"',
        *(f"CUDALAB_BLOCKS({name}, {int(name in written.by_whole_warps)})" for name in in_loops),
        *(f"CUDALAB_KERNEL({name})" for name in others),
        _because(others, written.reasons),
        parts.exports,
    )
    return text, written.places


def with_fibers(parts: Parts, reason: str = "", reasons: dict[str, str] | None = None) -> str:
    """The C++ of a file in which the threads of all kernels are fibers, and why."""
    return _joined(
        '#include "cudalab_cpu.h"',
        '#include "cudalab/arithmetic.h"' if parts.exact else "",
        parts.text,
        f'#line 1 "{EXPORTS}"',
        *(f"CUDALAB_KERNEL({name})" for name in parts.kernels),
        _because(parts.kernels, {"": reason} if reasons is None else reasons),
        parts.exports,
    )


def described(reason: str) -> str:
    """How a kernel runs that has no loops over threads, and why."""
    from cudalab.backends.cpu.regions.in_step import ALONE  # noqa: PLC0415 - in few processes

    how = "one thread after another" if ALONE in reason else "fibers"
    return f"{how}: {reason}"


def fits_loops(
    grid: tuple[int, int, int], block: tuple[int, int, int], *, flat: bool, whole_warps: bool
) -> bool:
    """Whether loops run the grid: each thread's index is small enough.

    `flat` blocks are rows; those of `whole_warps` have rows of so many threads.
    """
    small = all(b * t <= _GREATEST_INDEX for b, t in zip(grid, block, strict=True))
    fits = small and (not flat or block[1:] == (1, 1))
    return fits and (not whole_warps or block[0] % _WARP == 0)


def _because(kernels: Sequence[str], reasons: dict[str, str]) -> str:
    """A string in the library that says why kernels have fibers; `""` is for any kernel."""
    lines = [(name, reasons.get(name) or reasons.get("", "")) for name in kernels]
    text = "\\n".join(f"{name}\\t{quoted(reason)[1:-1]}" for name, reason in lines if reason)
    visible = '__attribute__((visibility("default")))'
    return f'extern "C" {visible} const char {FIBERS}[] = "{text}";' if text else ""


def _joined(*lines: str) -> str:
    return "\n".join(line for line in lines if line)
