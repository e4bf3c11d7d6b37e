"""Compiles kernel files of labs, and the runtime that they are linked with: once for each source.

A library is stored in the user's cache under a hash of everything that went into it: source,
runtime, compiler, flags and the processor's features (homes are shared between machines). The
header that every kernel begins with is kept there as g++ has read it: that takes as long as the
rest of a small kernel.
"""
# ruff: noqa: PLC0415 - a kernel that is cached must start at once

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.backends.cpu import flags, tiers
from cudalab.backends.cpu.toolchain import cached, find_compiler, key, run
from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError, ToolchainError
from cudalab.output.progress import stage
from cudalab.system.cache import disk_full, place_of

if TYPE_CHECKING:
    from collections import Counter

    from cudalab.backends.cpu import pipeline
    from cudalab.backends.cpu.regions import Place

_HEADER = flags.RUNTIME / "kernels" / "cudalab_cpu.h"
_LINE = re.compile(r'^#line (?P<line>\d+) "(?P<file>[^"]+)"$', re.MULTILINE)
_ERROR = re.compile(r"^(?P<file>[^\n]+?):\d+:(?:\d+:)? (?:fatal )?error: ", re.MULTILINE)
# What a plain run from the cache needs nothing of.
_IMPORTED_LATE = (
    "backends.cpu.assembly", "backends.cpu.pipeline", "backends.cpu.regions", "language.nvcc_rules",
)  # fmt: skip
LONGEST_NAME = 60  # letters of a source file's name that a name in the cache has


def look_up() -> None:
    """Look up once what each compilation asks for, before processes are forked."""
    for module in _IMPORTED_LATE:
        import_module(f"cudalab.{module}")
    key()
    with suppress(CudalabError):
        flags.kernel_flags()
        flags.check_flags()
        find_compiler().version()


# The runtime -------------------------------------------------------------------------------------


def runtime_library() -> Path:
    """The compiled scheduler (runtime.cpp) that every kernel library links against."""
    return _runtime("runtime", "grids/runtime.cpp", flags.KERNEL, flags.kernel_flags)


def check_runtime_library() -> Path:
    """The compiled scheduler of check mode (check.cpp), with its instruments."""
    own = (*flags.KERNEL, "-fno-omit-frame-pointer", *flags.CHECK)
    return _runtime("check-runtime", "check/check.cpp", own, flags.check_flags)


def runtime_files(*, check: bool) -> list[Path]:
    """The schedulers, and the headers of their kernels: what another cache needs of this one."""
    made = [(runtime_library(), flags.kernel_flags())]
    if check:
        made.append((check_runtime_library(), flags.check_flags()))
    headers = [_precompiled(own) for _, own in made]
    return [library for library, _ in made] + [path for path in headers if path.is_file()]


def quick_files() -> list[Path]:
    """The header as quickly compiled kernels begin with it, made once: see `runtime_files`."""
    quick = flags.optimized(flags.QUICK_OPTIMIZED)
    header = _precompiled(quick)
    if not header.is_file() and not find_compiler().is_clang:
        with stage("compiling the header of all kernels, once", once=True):
            _precompile(quick)
    return [header] if header.is_file() else []


def runtime_failure(messages: str) -> ToolchainError:
    """The error for cudalab's own code failing to compile."""
    return disk_full(messages) or ToolchainError(
        f"the CPU device's own runtime does not compile:\n{messages.strip()}"
    )


def _runtime(
    stem: str, name: str, own: tuple[str, ...], of_kernels: Callable[[], tuple[str, ...]]
) -> Path:
    """The library of a source; the header of its kernels is precompiled with flags of theirs."""
    own = flags.with_users(own)
    library = cached("cpu", stem, *own, suffix=".so")
    if not (library.exists() or (library := place_of(library)).exists()):
        from cudalab.backends.cpu.pipeline import build

        def make(folder: Path) -> Path:
            made, compiler = folder / "library.so", find_compiler()
            command = [*compiler.compile, *own, *flags.for_runtime()]
            done = run([*command, "-c", str(flags.RUNTIME / name), "-o", f"{made}.o"])
            if not done.returncode:
                done = compiler.link(made, [f"{made}.o"], shared=True)
            if done.returncode:
                raise runtime_failure(done.stderr or done.stdout)
            with suppress(NoDeviceError):
                _precompile(of_kernels())
            return made

        with stage("compiling the CPU device's runtime, once", once=True):
            build(library, make)
    return library


def _precompiled(own: tuple[str, ...]) -> Path:
    """The header as g++ has read it with flags; it need not be there."""
    own = tuple(flag for flag in own if flag != flags.FITTING)  # it is the same with and without
    return cached("cpu", "header", *own) / f"{_HEADER.name}.gch"


def _precompile(own: tuple[str, ...]) -> None:
    """Keep the header as g++ reads it with these flags.

    Without it, as on a full disk, the compiler reads the text for each kernel.
    """
    compiler, header = find_compiler(), _precompiled(own)
    if compiler.is_clang:  # which would need an option in each call
        return
    with suppress(OSError):
        header.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=header.parent) as folder:
            made = Path(folder, "header.gch")
            read = ("-x", "c++-header", str(_HEADER), "-o", str(made))
            if run((*compiler.compile, *own, *read)).returncode == 0:
                made.replace(header)


def searched(own: tuple[str, ...]) -> tuple[str, ...]:
    """The include paths, beginning with that of the precompiled header, which g++ prefers."""
    return ("-I", str(_precompiled(own).parent), *flags.for_kernels())


# Kernel files ------------------------------------------------------------------------------------


def kernel_library(
    parts: tiers.Parts,
    label: str,
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
    runtime = str(check_runtime_library() if observed else runtime_library())
    loops &= not observed
    stem = Path(label).stem[:LONGEST_NAME] + ("-check" if observed else "")
    words = ("loops" if loops else "fibers", "exact" if parts.exact else "")
    made_of = (parts.text, *parts.kernels, *flags.with_users(flags.KERNEL), runtime, *words)
    library = cached("cpu", stem, *made_of, suffix=".so")
    if not (library.exists() or (library := place_of(library)).exists()):
        from cudalab.backends.cpu import pipeline

        def make(folder: Path) -> Path:
            made = folder / "library.so"
            units = _units(folder, exact=parts.exact, observed=observed)
            _compile(parts, label, units, loops=loops)
            done = find_compiler().link(made, [*units.objects, runtime], shared=True)
            if done.returncode:
                raise _rejected(done.stderr or done.stdout, parts.text)
            check(made)
            return made

        with stage(f"compiling {label}{', instrumented' if observed else ''}"):
            pipeline.build(library, make)
    return library


def _compile(parts: tiers.Parts, label: str, units: pipeline.Units, *, loops: bool) -> None:
    """Compile a kernel file, with a GPU's conversions and shifts if it is to be exact."""
    from cudalab.backends.cpu import pipeline

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


def _units(folder: Path, *, exact: bool, observed: bool) -> pipeline.Units:
    """The only file of a build, and how it is compiled."""
    from cudalab.backends.cpu.pipeline import Unit, Units

    fitting = (flags.FITTING,) if exact else ()
    own = flags.check_flags(fitting) if observed else (*flags.kernel_flags(), *fitting)
    command = [*find_compiler().compile, *own, *searched(own)]
    name = "0.cpp" if observed else "source.cpp"
    unit = Unit(str(folder / name), command)
    return Units(folder=folder, names=[name], compiled=[unit], observed=observed)


def _writer(parts: tiers.Parts, units: pipeline.Units, *, loops: bool) -> pipeline.Write:
    """What writes the text of a kernel file for the compiler."""
    from cudalab.backends.cpu.pipeline import Written

    @cache
    def expanded(text: str) -> str:
        source = Path(units.compiled[0].path)
        source.write_text(text, encoding="utf-8")
        return run((*find_compiler().compile, *flags.DEFINED, "-E", str(source))).stdout

    def write(refused: Counter[Place], of_loops: Mapping[str, str]) -> Written:
        ready = tiers.for_host(parts, observed=units.observed, refused=tuple(refused.items()))
        plain = [tiers.with_fibers(ready)]
        if not loops:
            return Written(plain, plain)
        text, places = tiers.with_loops(ready, expanded(tiers.to_preprocess(ready)), of_loops)
        return Written(plain, [text], places)

    return write


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
    if tiers.EXPORTS not in messages or not first or not marks or first["file"] in names:
        return ""
    line = int(marks[-1]["line"]) + text.rstrip().count("\n", marks[-1].end() + 1)
    return (
        f"{marks[-1]['file']}:{line}: error: the file ends here, inside of something: a bracket or "
        "a semicolon is missing"
    )
