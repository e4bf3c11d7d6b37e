"""The features that the CPU device lacks, where a program uses them, and what misspelt names mean.

MISSING is the only list of their names; a feature that is added is removed from it. A program is
refused with one line that lists everything it lacks, each with the first place that needs it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from cudalab.backends.cpu.compiler.flags import RUNTIME, has_header
from cudalab.errors import NoDeviceError
from cudalab.program import cccl


@dataclass(frozen=True)
class Feature:
    """A feature, and the signs by which a program shows that it needs it."""

    name: str
    _: KW_ONLY
    headers: str = ""  # how the names of its headers begin
    others: str = ""  # the same, of headers that a machine may have
    names: str = ""  # names that nothing else has; their mere use is enough
    unknown: str = ""  # names that other things may have, too; they count if no compiler knows them
    linked: str = ""  # the same of functions that are declared, but that no file defines


# Regular expressions. The first feature that fits is named.
MISSING = (
    Feature("this part of cuBLASLt", unknown=r"cublasLt\w*|CUBLASLT\w*"),
    Feature("cuBLASXt", headers=r"cublasXt", unknown=r"cublasXt\w*"),
    Feature("cuBLAS's old interface", headers=r"cublas\.h"),
    Feature("this part of cuBLAS", unknown=r"cublas\w*"),
    Feature("cuFFT", headers=r"cufft", unknown=r"cufft\w*"),
    Feature("cuSPARSE", headers=r"cusparse", unknown=r"cusparse\w*"),
    Feature("cuSOLVER", headers=r"cusolver", unknown=r"cusolver\w*"),
    Feature("this part of cuRAND", headers=r"curand", unknown=r"curand\w*"),
    Feature("cuDNN", headers=r"cudnn", unknown=r"cudnn\w*"),
    Feature("cuTENSOR", headers=r"cutensor", unknown=r"cutensor\w*"),
    Feature("CUTLASS", headers=r"cutlass/"),
    Feature("CuTe", headers=r"cute/"),
    Feature("NPP", headers=r"npp", names=r"nppi\w+"),
    Feature("nvJPEG", headers=r"nvjpeg", names=r"nvjpeg\w+"),
    Feature("NVRTC", headers=r"nvrtc", names=r"nvrtc[A-Z]\w*"),
    Feature("nvJitLink", headers=r"nvJitLink", names=r"nvJitLink\w*"),
    Feature("this part of NVTX", headers=r"nvToolsExt|nvtx3/", unknown=r"nvtx\w*"),
    Feature("NVML", headers=r"nvml\.h", names=r"nvml[A-Z]\w*"),
    Feature("NCCL", others=r"nccl", names=r"nccl[A-Z]\w*"),
    Feature("this part of tensor cores", unknown=r"nvcuda|wmma"),
    Feature("small floating point", headers=r"cuda_fp[468]", names=r"__nv_fp[468]\w*"),
    Feature(
        "OpenGL",
        headers=r"cuda_gl_interop|cudaGL",
        others=r"GL/|GLFW/|glad/",
        names=r"cudaGL\w*|cudaGraphicsGL\w*|gl[A-Z]\w+Buffers?",
        linked=r"gl(?:u|ut|ew|fw|X)?[A-Z]\w+|gladLoad\w+",
    ),
    Feature("EGL", headers=r"cuda_egl|cudaEGL", others=r"EGL/", names=r"cu(?:da)?EGL\w*"),
    Feature("VDPAU", headers=r"cuda_vdpau|cudaVDPAU"),
    Feature("Direct3D", headers=r"cuda_d3d", others=r"d3d1"),
    Feature("Vulkan", others=r"vulkan/"),
    Feature("graphics interoperation", names=r"cudaGraphics\w*"),
    Feature("NvSci", headers=r"nvsci|cudla", names=r"NvSci\w*"),
    Feature("external memory", names=r"cuda(?:Import)?External\w*"),
    Feature("MPI", others=r"mpi\.h", names=r"MPI_[A-Z]\w*"),
    Feature("Boost", others=r"boost/"),
    Feature("OpenMP with this compiler", others=r"omp\.h"),
    Feature("this part of CUDA graphs", unknown=r"cuda(?:Graph|UserObject)\w*"),
    Feature("memory shared between processes", names=r"cu(?:da)?Ipc\w*"),
    Feature(
        "modules of the driver interface",
        names=r"cu(?:Module|Link|Library|Func)[A-Z]\w*|cuLaunch\w*Kernel\w*|CU(?:module|function)",
    ),
    Feature(
        "this part of the driver interface",
        headers=r"cudaTypedefs",
        unknown=r"cu[A-Z]\w+|CU[a-z]\w+",
    ),
    Feature("thread block clusters", names=r"__cluster_dims__|this_cluster|cluster_group"),
    Feature("this part of memory pools", unknown=r"cudaMemPool\w*"),
)
# CCCL's parts, which are missing unless it is installed.
_CCCL = (("thrust/", "Thrust"), ("cub/", "CUB"), ("", "libcu++"))
# Names of CUDA's that belong to no feature.
_CUDA_NAME = re.compile(r"cu(?:da)?[A-Z]\w+|__\w+|atomic\w+")
_CUDA_HEADER = re.compile(
    r"cu(?:da|b/|blas|fft|rand|sparse|solver|Complex|pti|file|dnn|tensor|tlass/|te/)|thrust/"
    r"|nv(?:/|rtc|ml\.h|jpeg|tx|Tools|cuvid|vm|blas|JitLink|fatbin|PTX)|npp|mma\.h"
    r"|sm_\d|crt/|cooperative_groups|(?:channel|driver|device|surface|texture|vector|library)_\w+\.h"
)
_CUDA_SPACE = re.compile(r"cooperative_groups|cg|cuda|nvcuda|thrust|cub")


class Lacking:
    """The features a program lacks, each with the name that gives it away and its place."""

    def __init__(self) -> None:
        """Start empty."""
        self._places: dict[str, str] = {}
        self.hint = ""

    def __bool__(self) -> bool:
        """Whether anything is missing."""
        return bool(self._places)

    def add(self, feature: str, place: str, name: str = "") -> None:
        """Record the first place that needs a feature."""
        if not any(known.partition(": ")[0] == feature for known in self._places):
            self._places[f"{feature}: {name}" if name else feature] = place

    def add_header(self, header: str, place: str) -> None:
        """Record an #include of a missing header that is NVIDIA's or belongs to a feature."""
        if _is_own(header):
            return None
        if cccl.is_part(header):
            library = next(name for prefix, name in _CCCL if header.startswith(prefix))
            self.hint = cccl.why_missing()
            return self.add(library if self.hint else f"<{header}>", place)
        for feature in MISSING:
            if _begins(feature.headers, header) or _begins(feature.others, header):
                return self.add(feature.name, place)
        if _CUDA_HEADER.match(header) and not close_header(header):
            self.add(header, place)
        return None

    def add_name(self, name: str, place: str, space: str = "") -> None:
        """Record a name unknown to the compiler that is CUDA's or in one of CUDA's namespaces."""
        for feature in MISSING:
            if re.fullmatch(f"{feature.names}|{feature.unknown}", name):
                return self.add(feature.name, place, name)
        if _CUDA_NAME.fullmatch(name):
            if not meant(name):
                self.add(name, place)
        elif _CUDA_SPACE.match(space):
            self.add(f"{space}::{name}", place)
        return None

    def add_linked(self, name: str, place: str) -> None:
        """Record a function that no file defines, if it belongs to a feature."""
        for feature in MISSING:
            if feature.linked and re.fullmatch(feature.linked, name.partition("(")[0]):
                self.add(feature.name, place, name.partition("(")[0])

    def error(self) -> NoDeviceError:
        """The error that lists everything."""
        each = ", ".join(f"{what} ({place})" for what, place in self._places.items())
        return NoDeviceError(f"not supported on the CPU device: {each}", hint=self.hint or None)


def is_cuda_name(name: str) -> bool:
    """Whether a name looks like one of CUDA's, such as cudaMalloc or __syncthreads."""
    return bool(_CUDA_NAME.fullmatch(name))


def is_cuda_header(name: str) -> bool:
    """Whether a header is one of CUDA's."""
    return bool(_CUDA_HEADER.match(name) and not _is_own(name)) or has_header(name)


def _is_own(header: str) -> bool:
    """Whether a header is a program's own: NVIDIA's with this ending are in folders."""
    return header.endswith(".cuh") and "/" not in header


def is_missing_header(name: str) -> bool:
    """Whether a header is one of NVIDIA's that the CPU device lacks."""
    if _is_own(name) or has_header(name) or (cccl.is_part(name) and cccl.has(name)):
        return False
    return bool(_CUDA_HEADER.match(name)) or any(_begins(each.headers, name) for each in MISSING)


def _begins(pattern: str, name: str) -> bool:
    return bool(pattern and re.match(pattern, name))


# Misspelt names -----------------------------------------------------------------------------------


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"\b(?!\w*cudalab|CUDALAB)[A-Za-z_]\w{3,}\b")
_WORD = re.compile(r"[A-Z]*[a-z]{2,}|[A-Z]{2,}")
_CLOSE = 0.8  # of difflib's ratio: one letter of five
_CLOSER = 0.9  # for a name that is one word, which says less
_NEAR = 0.75  # for the names of a program, which are few
_LONG = 8  # letters of a part of a name that says which one it is
# Words and functions that every program may use, and headers.
_COMMON = frozenset(
    {"return", "printf", "sizeof", "float", "double", "unsigned", "signed", "void", "include"}
    | {"malloc", "calloc", "free", "memset", "memcpy", "struct", "const", "static", "int"}
    | {"long", "char", "bool", "while", "else", "break", "continue", "switch", "template"}
    | {"typename", "main", "std", "vector", "string", "size_t", "fprintf", "stderr", "stdout"}
    | {"exit", "abs", "sqrtf", "fabsf", "fmaxf", "fminf", "rand", "srand", "atoi", "threadIdx"}
    | {"blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "float2", "float4", "int2"}
    | {"int4", "uint3"}
)
_HEADERS = frozenset(
    {"cstdio", "cstdlib", "cmath", "cstring", "cassert", "cstdint", "climits", "cfloat"}
    | {"iostream", "iomanip", "fstream", "sstream", "vector", "string", "algorithm", "numeric"}
    | {"random", "chrono", "memory", "utility", "functional", "stdio.h", "stdlib.h", "math.h"}
    | {"string.h", "time.h", "assert.h", "stdint.h", "limits.h", "float.h", "stdbool.h"}
    | {"sys/time.h"}
)


def meant(name: str) -> str:
    """The name that was meant; empty if `name` may be one of CUDA's that the CPU device lacks.

    Such a name is made of words that other names have: cudaMemPoolSetAccess. In a misspelt name a
    word is like no other, as in cudaMaloc, or an ending is missing, or it is in the wrong case.
    """
    known = _known()
    if name in known.names:  # in a header that the program does not include
        return ""
    for each in (f"{name}_t", f"{name}s", f"{name}__", known.by_lower_case.get(name.lower(), "")):
        if each in known.names:
            return each
    # The shortest name that goes on where this one ends within a word: cudaDeviceSync.
    longer = [x for x in known.names if x.startswith(name) and x[len(name) :][:1].islower()]
    if len(name) >= _LONG and longer:
        return min(longer, key=len)
    words = _WORD.findall(name)
    if len(words) != 1 and set(words) <= known.words:
        return ""
    close = difflib.get_close_matches(name, known.names, cutoff=_CLOSE if words[1:] else _CLOSER)
    return max(close, key=lambda each: _likeness(each, name), default="")


def close(name: str, own: Iterable[str] = (), said: str = "") -> str:
    """The name that was meant by one that need not be CUDA's; empty if there is none.

    `own` are the program's names, and the compiler has `said` another one.
    """
    program = set(own)
    bare = name.strip("_").lower()
    same = _known().bare.get(bare, "") or next(
        (x for x in sorted(program) if x.lower() == bare), ""
    )
    if same or said in program:
        return same or said
    known = program | (_COMMON - {name}) | ({said} if _likeness(said, name)[0] >= _CLOSE else set())
    found = difflib.get_close_matches(name, known, cutoff=_NEAR) if name[2:] else []
    if found:
        return max(found, key=lambda each: _likeness(each, name))
    ends = [each for each in _known().names if each.startswith("cuda") and each.endswith(name)]
    ends = ends if len(name) >= _LONG else []
    return min(ends, key=len, default="")


def close_header(path: str) -> str:
    """The header that was meant; empty if there is none."""
    name = path.rpartition("/")[2]
    own = {each.name for each in _headers() if "cudalab" not in (each.parent.name, each.name[:7])}
    known = own | _HEADERS
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE)), "")


def is_known(name: str) -> bool:
    """Whether one of the CPU device's headers has a name."""
    return name in _known().names


def _likeness(one: str, other: str) -> tuple[float, int]:
    """How similar two names are: by their letters, then by their common beginning."""
    equal = (a == b for a, b in zip(one, other, strict=False))
    return difflib.SequenceMatcher(None, one, other).ratio(), sum(takewhile(bool, equal))


@cache
def _headers() -> tuple[Path, ...]:
    """The CPU device's headers."""
    folders = (RUNTIME / "include", RUNTIME / "kernels", *RUNTIME.glob("optional/*/include"))
    return tuple(each for folder in folders for each in folder.rglob("*") if each.is_file())


class _Known(NamedTuple):
    """What the CPU device's headers, and so CUDA's, have."""

    names: frozenset[str]
    by_lower_case: dict[str, str]
    bare: dict[str, str]  # CUDA's words with underscores, by what is between them in lower case
    words: frozenset[str]  # that the names are made of


@cache
def _known() -> _Known:
    names: set[str] = set()
    for header in _headers():
        names.update(_NAME.findall(_COMMENT.sub("", header.read_text(encoding="utf-8"))))
    marked = [name for name in sorted(names) if name.startswith("__") and name[2:3].islower()]
    marked.remove("__thread")  # the compiler's
    return _Known(
        frozenset(names),
        {name.lower(): name for name in names},
        {name.strip("_").lower(): name for name in marked},
        frozenset(word for name in names for word in _WORD.findall(name)),
    )
