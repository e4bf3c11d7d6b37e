"""The parts of the runtime of whole programs: those of every program, and those that some use.

Those that call the host's BLAS open it when the program runs: NumPy's wheel brings one, and so does
the package `scipy-openblas32`. Imports nothing heavy, for a program that is cached starts at once.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cudalab.backends.cpu.flags import PART, RUNTIME

FIRST = "dynamic_shared"  # behind the static shared memory of the program
ALWAYS = (
    *("memory", "copies", "calls", "device", "streams", "background", "children", "functions"),
    *("c_library", "c_calls"),
)
# Linked into the program itself, though the others may be a library of their own. The last one ends
# the section of the device's variables.
OF_PROGRAM = ("trigonometry", "sections")
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


def source(part: str) -> Path:
    """The file of a part: those that only some programs have are in the runtime's optional/."""
    (file,) = RUNTIME.rglob(f"{part}.cpp")
    return file


def flags(part: str) -> tuple[str, ...]:
    """The compiler's flags for a part."""
    return PART if part in _QUICK else (*PART, "-O1")  # compiled in two thirds of the time


# The host's BLAS, which programs with cuBLAS open when they run -----------------------------------


BLAS_PATH = "CUDALAB_BLAS"  # the environment variable in which a program finds the library's path
# Where packages for Python have theirs, seen from a folder of `sys.path`.
_FOLDERS = ("numpy.libs", "scipy_openblas64/lib", "scipy_openblas32/lib")


def provide_blas(texts: Iterable[str]) -> None:
    """Set the environment variable for a program with these texts, if it uses cuBLAS.

    Nothing is set if the user has done it, or if there is only the system's library.
    """
    if "blas" in used(texts) and BLAS_PATH not in os.environ:
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
