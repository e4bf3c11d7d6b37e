"""Misspelt names and headers: which ones were meant, by those that CUDA and the program have."""

import difflib
import re
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from cudalab.backends.cpu.compiler.flags import RUNTIME

_CUDA_NAME = re.compile(r"cu(?:da)?[A-Z]\w+|__\w+|atomic\w+")
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


def is_cuda_name(name: str) -> bool:
    """Whether a name looks like one of CUDA's, such as cudaMalloc or __syncthreads."""
    return bool(_CUDA_NAME.fullmatch(name))


def is_barrier(name: str) -> bool:
    """Whether a name is a barrier's, which is unknown only where it is not called."""
    return re.fullmatch(r"__syncthreads(?:_and|_or|_count)?", name) is not None


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
