"""Misspelt names of CUDA: finds the name that was probably meant."""

import difflib
import re
from functools import cache
from itertools import takewhile

from cudalab.backends.cpu.flags import RUNTIME

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"\b(?!\w*cudalab|CUDALAB)[A-Za-z_]\w{3,}\b")
_WORD = re.compile(r"[A-Z]*[a-z]{2,}|[A-Z]{2,}")
_CLOSE = 0.8  # of difflib's ratio: one letter of five
_CLOSER = 0.9  # for a name that is one word, which says less


def meant(name: str) -> str:
    """The name that was meant; empty if `name` may be one of CUDA's that the CPU device lacks.

    Such a name is made of words that other names have: cudaMemPoolSetAccess. In a misspelt name a
    word is like no other, as in cudaMaloc, or an ending is missing, or it is in the wrong case.
    """
    known = _known()
    if name in known:  # in a header that the program does not include
        return ""
    for each in (f"{name}_t", f"{name}s", f"{name}__", _by_lower_case().get(name.lower(), "")):
        if each in known:
            return each
    words = _WORD.findall(name)
    if len(words) != 1 and set(words) <= _words():
        return ""
    close = difflib.get_close_matches(name, known, cutoff=_CLOSE if words[1:] else _CLOSER)
    return max(close, key=lambda each: _likeness(each, name), default="")


def _likeness(one: str, other: str) -> tuple[float, int]:
    """How similar two names are: by their letters, then by their common beginning."""
    equal = (a == b for a, b in zip(one, other, strict=False))
    return difflib.SequenceMatcher(None, one, other).ratio(), sum(takewhile(bool, equal))


@cache
def _by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in _known()}


@cache
def _known() -> frozenset[str]:
    """The names in the CPU device's headers, which include those of CUDA."""
    names: set[str] = set()
    for folder in (RUNTIME / "include", RUNTIME / "kernels", *RUNTIME.glob("optional/*/include")):
        for header in folder.rglob("*"):
            if header.is_file():
                names.update(_NAME.findall(_COMMENT.sub("", header.read_text(encoding="utf-8"))))
    return frozenset(names)


@cache
def _words() -> frozenset[str]:
    """The words that those names are made of."""
    return frozenset(word for name in _known() for word in _WORD.findall(name))
