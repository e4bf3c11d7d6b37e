"""The runtime of whole programs: its parts, those of every program and those that some use.

A plain program is linked with their objects. An observed program has objects of its own, and the
runtime API as a separate library. All are made once for each compiler, like the header that every
program begins with. The parts that call the host's BLAS open it when the program runs: NumPy's
wheel brings one, and so does the package `scipy-openblas32`.
"""
# ruff: noqa: PLC0415 - a program that is cached must start at once

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.toolchain import cached, find_compiler
from cudalab.output.progress import stage
from cudalab.system.cache import explain_full_disk

FIRST = "dynamic_shared"  # behind the static shared memory of the program
ALWAYS = (
    *("memory", "copies", "calls", "device", "streams", "background", "children", "functions"),
    *("c_library", "c_calls"),
)
# Linked into the program itself, though the others may be a library of their own. The last one ends
# the section of the device's variables.
OF_PROGRAM = ("trigonometry", "sections")
OF_PLAIN = (*ALWAYS, "launch", *OF_PROGRAM)
OF_OBSERVED = ("heap",)  # linked into a program in check mode
OF_CHECK = ("observe", "order")  # the runtime's own, there
# The parts that run kernels, or that kernels call: only their own speed matters.
_QUICK = ("launch", "sampling", "trigonometry", "random", "tensor_cores", "tiles")
_CAPTURES = r"\bcuda(Stream|Thread)\w*Captur"
_GRAPHS = rf"\bcudaGraph|{_CAPTURES}"
_BLAS = r'#\s*include\s*[<"]cublas'
_RANDOM = r'#\s*include\s*[<"]curand'
_GENERATORS = r'#\s*include\s*[<"]curand\.h|\bcurandGenerator_t\b|\bcurandCreateGenerator'
_FRAGMENTS = r'#\s*include\s*[<"](crt/)?mma\.h'
_TEXTURES = (
    r"\b(?:tex(?:ture|[123]D|Cubemap)|surf(?:ace|[123]D|Cubemap)"
    r"|cuda\w*(?:Array|Texture|Surface|3D))"
)
# The parts that a program has only if its text names what they implement.
_OPTIONAL = {
    "graphs": _GRAPHS,
    "graph_nodes": _GRAPHS,
    "graph_instances": _GRAPHS,
    "captures": _CAPTURES,
    "driver": r"\bcu(Init|Get|Driver|Device|Ctx|Mem|Stream|Event|Profiler|LaunchHost)\w*\s*\(",
    "library": rf"{_BLAS}|{_GENERATORS}",
    "blas": _BLAS,
    "blas_batches": _BLAS,
    "blas_lt": r'#\s*include\s*[<"]cublasLt',
    "random": _RANDOM,
    "generators": _GENERATORS,
    "tensor_cores": _FRAGMENTS,
    "tiles": _FRAGMENTS,
    "arrays": _TEXTURES,
    "textures": _TEXTURES,
    "sampling": _TEXTURES,
    "pools": r"\bcuda(Malloc\w*Async|FreeAsync|MemPool|Device[GS]et(Default)?MemPool)",
}
OPTIONAL = tuple(_OPTIONAL)


def used(texts: Iterable[str]) -> tuple[str, ...]:
    """The optional parts that programs with these texts use."""
    texts = list(texts)
    return tuple(
        part for part, named in _OPTIONAL.items() if any(re.search(named, text) for text in texts)
    )


@cache
def sources() -> dict[str, str]:
    """The file of each part: those that only some programs have are in the runtime's optional/."""
    return {file.stem: str(file) for file in flags.RUNTIME.rglob("*.cpp")}


def flags_of(part: str) -> tuple[str, ...]:
    """The compiler's flags for a part."""
    # With -O1 it is compiled in two thirds of the time.
    return flags.PART if part in _QUICK else (*flags.PART, "-O1")


# Making them -------------------------------------------------------------------------------------


PRECOMPILED = "cudalab_program.h"  # the header that g++ reads once
_SPECIAL = "cudalab/special_functions.h"
_SPECIAL_FUNCTION = re.compile(
    r"\b(?:assoc_laguerre|assoc_legendre|beta|comp_ellint_[123]|cyl_bessel_[ijk]|cyl_neumann"
    r"|ellint_[123]|expint|hermite|laguerre|legendre|riemann_zeta|sph_(?:bessel|legendre|neumann))"
    r"[fl]?\b"
)
HOST_LIBRARY = "libhost.so"
# Added to the flags of kernel files: programs use exceptions, main must be visible, nvcc takes
# arrays of variable length in functions of the host, and the C library, which the interpreter has
# loaded before the program, must not be what assert() in a kernel calls. No other library puts
# functions in the place of the program's, so that each of them can be inlined.
OBSERVED_PROGRAM = (
    *("-fexceptions", "-frtti", "-fvisibility=default", "-pthread", "-UNDEBUG", "-Wno-vla"),
    "-fno-semantic-interposition",
    *("-D__assert_fail=cudalab_assert_fail", flags.FITTING),
)
_OBSERVED = ("-fPIC", "-fno-omit-frame-pointer")


def libraries(sources: Iterable[Path]) -> Sequence[Path]:
    """The libraries, of the cache `zig`, that a program may need: compiled once, with zig only."""
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sources)
    return find_compiler().libraries(text)


def special_functions(texts: Iterable[str]) -> tuple[str, ...]:
    """The header that the program's own needs behind it, if a text names a function of it."""
    return (_SPECIAL,) if any(map(_SPECIAL_FUNCTION.search, texts)) else ()


class Runtime:
    """Files of the runtime, which compilers make in parallel while the caller continues."""

    def __init__(
        self, folder: Path, parts: Sequence[str], *more: str, header: Sequence[str] = ()
    ) -> None:
        """Start the compilers for what is missing in the folder.

        The objects of the parts are compiled with `more` flags. The header of programs is kept as
        g++ reads it with the flags for a `header`.
        """
        from cudalab.backends.cpu.compiler.commands import Compilers

        folder.mkdir(exist_ok=True)
        compiler = find_compiler()
        self.folder, self.objects = folder, [str(folder / f"{part}.o") for part in parts]
        ways: dict[Path, Sequence[str]] = {}  # the options by which each missing file is made
        for part in parts:
            if not (made := folder / f"{part}.o").exists():
                own = flags.with_users(flags_of(part))
                ways[made] = (*own, *more, *flags.for_runtime(), "-c", sources()[part])
        made = folder / f"{PRECOMPILED}.gch"
        # Clang would need an option in each call.
        if header and not compiler.is_clang and not made.exists():
            text = flags.CUDA_RUNTIME.with_name(PRECOMPILED)
            ways[made] = (*header, "-x", "c++-header", str(text))
        self._built = {_building(made): made for made in ways}
        self._compilers = Compilers(
            [*compiler.compile, *way, "-o", str(built)]
            for built, way in zip(self._built, ways.values(), strict=True)
        )

    def finish(self) -> list[str]:
        """Wait for the compilers and return the object files."""
        with stage("compiling the runtime, once") as known:
            failed = self._compilers.finish(partial(known.reach, of="parts"))
        if failed:
            from cudalab.backends.cpu.kernel_runtime import runtime_failure

            raise runtime_failure(failed)
        for built, made in self._built.items():
            built.replace(made)
        return self.objects


def _building(made: Path) -> Path:
    """Where a file is built before it is moved into place, another place each time.

    A process's number would not do: containers that share a cache count from 1, each for itself.
    """
    return made.with_suffix(f".{os.urandom(8).hex()}")


def plain(optional: Sequence[str] = ()) -> Runtime:
    """Start to make the runtime: the common parts and these `optional` ones."""
    place = cached("programs", "runtime", *flags.with_users(flags.PART))
    header = (*flags.with_users(flags.PROGRAM), *flags.for_programs())
    return Runtime(place, (FIRST, *optional, *OF_PLAIN), header=header)


def files(*, check: bool) -> list[Path]:
    """The parts of the runtime that each program has, made if missing: what another cache needs.

    Not all that is in the folder: other processes may be making more there.
    """
    objects = [Path(one) for one in (observed() if check else plain().finish())]
    header = objects[0].with_name(f"{PRECOMPILED}.gch")
    return [*objects, header] if header.is_file() else objects


@explain_full_disk()
def observed(optional: Sequence[str] = ()) -> list[str]:
    """The objects for an observed program, followed by the library with the runtime API."""
    from cudalab.backends.cpu.kernel_runtime import check_runtime_library, runtime_failure

    checked = check_runtime_library()  # depends on the processor's features, too
    place = cached("programs", "observed", *flags.with_users(flags.PART), checked.name)
    header = flags.check_flags((*OBSERVED_PROGRAM, *flags.for_programs()))
    parts = (*optional, *OF_OBSERVED, *OF_PROGRAM)
    objects = Runtime(place, parts, *_OBSERVED, header=header).finish()
    library = place / HOST_LIBRARY
    if not library.exists():
        apart = cached("programs", "library", *flags.with_users(flags.PART), checked.name)
        shared = Runtime(apart, (*ALWAYS, *OF_CHECK), *_OBSERVED).finish()
        built = _building(library)
        done = find_compiler().link(built, (*shared, str(checked)), shared=True)
        if done.returncode:
            raise runtime_failure(done.stderr)
        built.replace(library)
    return [*objects, str(library)]


# The host's BLAS, which programs with cuBLAS open when they run -----------------------------------


BLAS_PATH = "CUDALAB_BLAS"  # the environment variable in which a program finds the library's path
# Where packages for Python have theirs, seen from a folder of `sys.path`.
_FOLDERS = ("numpy.libs", "scipy_openblas64/lib", "scipy_openblas32/lib")


def provide_blas(texts: Iterable[str]) -> None:
    """Set the environment variable for a program with these texts, if it uses cuBLAS.

    Nothing is set if the user has done it, or if there is only the system's library.
    """
    if BLAS_PATH not in os.environ and any(re.search(_BLAS, text) for text in texts):
        path = find_blas(sys.path)
        if path:
            os.environ[BLAS_PATH] = path


def find_blas(folders: Iterable[str]) -> str | None:
    """The OpenBLAS of NumPy's wheel or of a package of its own."""
    for folder in folders:
        for inside in _FOLDERS:
            place = os.path.join(folder, inside)  # noqa: PTH118 - pathlib is slow to start with
            try:
                names = sorted(os.listdir(place))  # noqa: PTH208 - as above
            except OSError:
                continue
            for name in names:
                if name.startswith("lib") and "openblas" in name and ".so" in name:
                    return os.path.join(place, name)  # noqa: PTH118 - as above
    return None
