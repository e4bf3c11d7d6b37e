"""What kernels are linked with and begin with, compiled once: the schedulers and the header.

Both are in the user's cache. The header is kept there as g++ has read it: that takes as long as the
rest of a small kernel.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.toolchain import cached, find_compiler, key, run
from cudalab.errors import CudalabError, NoDeviceError, ToolchainError
from cudalab.output.progress import stage
from cudalab.system.cache import disk_full, place_of

_HEADER = flags.RUNTIME / "kernels" / "cudalab_cpu.h"
# What a plain run from the cache needs nothing of.
_IMPORTED_LATE = (
    *("backends.cpu.assembly", "backends.cpu.compiler.pipeline", "backends.cpu.regions"),
    "language.nvcc_rules",
)


def look_up() -> None:
    """Look up what each compilation asks for, once, before processes are forked."""
    for module in _IMPORTED_LATE:
        import_module(f"cudalab.{module}")
    key()
    with suppress(CudalabError):
        flags.kernel_flags()
        flags.check_flags()
        find_compiler().version()


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
        from cudalab.backends.cpu.compiler.pipeline import build  # noqa: PLC0415 - mostly it is cached

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
