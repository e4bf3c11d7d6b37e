"""Kernel files of labs: written for the host's compiler, and compiled once for each source.

A kernel runs in one of two ways. As loops over the threads of a block, which regions/ writes, it is
faster by far. Fibers run every kernel.
"""
# ruff: noqa: PLC0415 - a kernel that is cached must start at once

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.toolchain import cached, find_compiler, run
from cudalab.backends.cpu.kernel_runtime import check_runtime_library, runtime_library, searched
from cudalab.errors import CudalabError, KernelCompileError
from cudalab.language.source import Source, blank_comments, is_own, quoted, with_defines
from cudalab.output.progress import stage
from cudalab.system.cache import disk_full, place_of

if TYPE_CHECKING:
    from collections import Counter

    from cudalab.backends.cpu.compiler import pipeline
    from cudalab.backends.cpu.regions import Place

_LINE = re.compile(r'^#line (?P<line>\d+) "(?P<file>[^"]+)"$', re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\n]+?):\d+:(?:\d+:)? (?:fatal )?error: ", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]?([^>\"\n]*)[^\n]*$", re.MULTILINE)
# Headers whose functions never wait for other threads.
_PLAIN_HEADERS = frozenset(
    {"cuda_runtime.h", "device_launch_parameters.h", "cuda_fp16.h", "cuda_bf16.h", "stdio.h"}
    | {"assert.h", "math_constants.h", "math.h", "stdint.h", "limits.h", "float.h", "string.h"}
    | {"stddef.h", "cassert", "cmath", "cstdint", "climits", "cfloat", "cstdio", "cstddef"}
    | {"type_traits", "limits"}
)
LOOPS = "loops over the threads of a block"
FIBERS = "cudalab_fibers"  # the symbol with the reasons for fibers
# Macros for kernels, in whose place loops have variables and functions.
_LOCAL_HERE = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim"),
    *(f"__syncthreads_{vote}" for vote in ("count", "and", "or")),
)
_WARP = 32
_GREATEST_INDEX = 2**31 - 1 - 1024  # of a thread in a grid: regions.h counts on it
_EXPORTS = "cudalab exports"  # what compilers call the text behind a kernel file


class Parts(NamedTuple):
    """A kernel file, with its defines in front."""

    text: str
    kernels: tuple[str, ...]
    exports: str = ""  # of its variables
    # Conversions and shifts have a GPU's results. cudalab's own files need no others than the
    # processor's, which are faster.
    exact: bool = True


def library(
    source: Source,
    defines: Mapping[str, str | int],
    check: Callable[[Path], None] = lambda _: None,
    *,
    loops: bool = True,
    observed: bool = False,
) -> Path:
    """Compile a kernel file. KernelCompileError with the messages.

    The threads of its kernels become `loops` where that is possible. If it is `observed`, they are
    fibers, and the library has hooks for check mode and tables of call sites. `check` inspects the
    library before it is stored.
    """
    text, kernels = with_defines(source.text, defines), tuple(source.kernels)
    parts = Parts(text, kernels, exact=not is_own(source.path))
    runtime = str(check_runtime_library() if observed else runtime_library())
    loops &= not observed
    stem = Path(source.label).stem + ("-check" if observed else "")
    words = ["loops" if loops else "fibers", "exact" if parts.exact else ""]
    words += [os.environ.get(flags.QUICK, "")]
    made_of = (text, *kernels, *flags.with_users(flags.KERNEL), runtime, *words)
    library = cached("cpu", stem, *made_of, suffix=".so")
    if not (library.exists() or (library := place_of(library)).exists()):
        from cudalab.backends.cpu.compiler import pipeline

        def make(folder: Path) -> Path:
            made, name = folder / "library.so", "0.cpp" if observed else "source.cpp"
            fitting = (flags.FITTING,) if parts.exact else ()
            own = flags.check_flags(fitting) if observed else (*flags.kernel_flags(), *fitting)
            command = [*find_compiler().compile, *own, *searched(own)]
            unit = pipeline.Unit(str(folder / name), command)
            units = pipeline.Units(folder=folder, names=[name], compiled=[unit], observed=observed)
            _compile(parts, source.label, units, loops=loops)
            done = find_compiler().link(made, [*units.objects, runtime], shared=True)
            if done.returncode:
                raise _rejected(done.stderr or done.stdout, text)
            check(made)
            return made

        with stage(f"compiling {source.label}{', instrumented' if observed else ''}"):
            pipeline.build(library, make)
    return library


def _compile(parts: Parts, label: str, units: pipeline.Units, *, loops: bool) -> None:
    """Compile a kernel file, with a GPU's conversions and shifts if it is to be exact."""
    from cudalab.backends.cpu.compiler import pipeline

    try:
        pipeline.compiled(_writer(parts, units, loops=loops), units)
    except pipeline.RefusedError as error:
        if not parts.exact:
            raise _rejected(error.messages, parts.text) from None
        _compile(parts._replace(exact=False), label, units, loops=loops)  # a wrong file fails again
        first = next(line for line in error.messages.splitlines() if "error:" in line)
        raise KernelCompileError(
            f"{label}: its conversions and shifts cannot be given a GPU's values:\n{first}",
            hint="split the statement into simpler ones, with variables of plain types",
        ) from None


def _writer(parts: Parts, units: pipeline.Units, *, loops: bool) -> pipeline.Write:
    """What writes the text of a kernel file for the compiler."""
    from cudalab.backends.cpu.compiler.pipeline import Written

    @cache
    def expanded(text: str) -> str:
        source = Path(units.compiled[0].path)
        source.write_text(text, encoding="utf-8")
        return run((*find_compiler().compile, *flags.DEFINED, "-E", str(source))).stdout

    def write(refused: Counter[Place], of_loops: Mapping[str, str]) -> Written:
        ready = for_host(parts, observed=units.observed, refused=tuple(refused.items()))
        plain = [with_fibers(ready)]
        if not loops:
            return Written(plain, plain)
        text, places = with_loops(ready, expanded(_INCLUDE.sub("", ready.text)), of_loops)
        return Written(plain, [text], places)

    return write


# The text ----------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def for_host(parts: Parts, *, observed: bool, refused: tuple[tuple[Place, int], ...] = ()) -> Parts:
    """The file for the host's compiler, in check mode if it is `observed`.

    `refused` has the lines whose conversions and shifts the compiler has refused, and how often.
    """
    from cudalab.language import kernel_file

    file = kernel_file.read(parts.text)
    exports = "".join(f"CUDALAB_SYMBOL({name})\n" for name in file.variables)
    text = file.for_host(observed=observed, exact=parts.exact, refused=dict(refused))
    return parts._replace(text=text, exports=exports)


def with_loops(
    parts: Parts, preprocessed: str, refused: Mapping[str, str]
) -> tuple[str, dict[str, frozenset[Place]]]:
    """The C++ of a file whose kernels are loops, as far as possible; these kernels' lines.

    Kernels whose loops the compiler has `refused` keep their fibers.
    """
    from cudalab.backends.cpu.regions import loops

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
        f'#line 1 "{_EXPORTS}"',
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
        f'#line 1 "{_EXPORTS}"',
        *(f"CUDALAB_KERNEL({name})" for name in parts.kernels),
        _because(parts.kernels, {"": reason} if reasons is None else reasons),
        parts.exports,
    )


def _because(kernels: Sequence[str], reasons: dict[str, str]) -> str:
    """A string in the library that says why kernels have fibers; `""` is for any kernel."""
    lines = [(name, reasons.get(name) or reasons.get("", "")) for name in kernels]
    text = "\\n".join(f"{name}\\t{quoted(reason)[1:-1]}" for name, reason in lines if reason)
    visible = '__attribute__((visibility("default")))'
    return f'extern "C" {visible} const char {FIBERS}[] = "{text}";' if text else ""


def _joined(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


# What the compiler refuses -----------------------------------------------------------------------


def _rejected(messages: str, text: str) -> CudalabError:
    """The error for a kernel file that the compiler rejects."""
    if full := disk_full(messages):
        return full
    if re.search("File (size limit exceeded|too large)", messages):  # in a sandbox
        return KernelCompileError(
            "the compiled kernel is larger than a file may be here",
            hint="is there a huge array with initial values?",
        )
    hint = None
    if re.search(r"\basm\b", text):
        hint = "inline PTX cannot run on the CPU device: declare requires = ['inline_ptx']"
    elif "<<<" in text:
        hint = "a kernel file holds kernels only: cudalab launches them"
    errors = _at_the_end(text, messages) or messages.strip()
    errors = errors.replace("__syncthreads_at", "__syncthreads")  # our function behind the macro
    return KernelCompileError(f"{find_compiler().name} rejected the kernel:\n{errors}", hint)


def _at_the_end(text: str, messages: str) -> str:
    """The error of a text that ends too early, where a compiler blames what we have put behind it.

    Empty for other errors.
    """
    marks, first = list(_LINE.finditer(text)), _ERROR.search(messages)
    names = {mark["file"] for mark in marks}
    if _EXPORTS not in messages or not first or not marks or first["file"] in names:
        return ""
    line = int(marks[-1]["line"]) + text.rstrip().count("\n", marks[-1].end() + 1)
    return (
        f"{marks[-1]['file']}:{line}: error: the file ends here, inside of something: a bracket or "
        "a semicolon is missing"
    )


# How a kernel runs -------------------------------------------------------------------------------


def described(reason: str) -> str:
    """How a kernel runs that has no loops over threads, and why."""
    from cudalab.backends.cpu.regions.in_step import ALONE

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
