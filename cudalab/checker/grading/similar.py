"""Identical and near-identical submissions: digests, and fingerprints that survive renaming.

Winnowing (Schleimer, Wilkerson, Aiken 2003): of the hashes of all runs of RUN tokens, the least of
each WINDOW is kept, so any common part of RUN + WINDOW - 1 tokens leaves a common fingerprint.
Names are all one token and comments are none. What many submissions share, or the lab's own files
hold, is no sign of copying.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RUN, WINDOW = 12, 8
ALIKE = 0.75  # of the fingerprints of the smaller one
LEAST = 8  # fingerprints, below which everything is alike
COMMON = 0.5  # of all submissions: a part that so many have was given to them
_COMMENT = re.compile(  # of C++ and of Python
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?!include|define|if|pragma)[^\n]*", re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|<<<|>>>|[^\s\w]")
_WORDS = frozenset(
    """
    for while if else return switch case break continue do struct template const extern static
    void int unsigned float double char long size_t bool auto def import from in not and or lambda
    __global__ __device__ __shared__ __constant__ __syncthreads __syncwarp threadIdx blockIdx
    blockDim gridDim atomicAdd x y z
    """.split()  # noqa: SIM905 - a list of strings is no easier to read
)


@dataclass(frozen=True)
class Pair:
    """Two submissions and the part of the smaller one's fingerprints that both have."""

    one: str
    two: str
    share: float


def tokens(text: str) -> list[str]:
    """The code without comments; every name of the author's is N, every number 0."""
    found = []
    for token in _TOKEN.findall(_COMMENT.sub(" ", text)):
        if token[0].isdigit():
            found.append("0")
        elif token[0].isalpha() or token[0] == "_":
            found.append(token if token in _WORDS else "N")
        else:
            found.append(token)
    return found


def fingerprints(text: str) -> frozenset[int]:
    """Hashes of runs of tokens, one at least of each window."""
    words = tokens(text)
    hashes = [
        int.from_bytes(
            hashlib.blake2b(" ".join(words[i : i + RUN]).encode(), digest_size=8).digest(), "little"
        )
        for i in range(len(words) - RUN + 1)
    ]
    return frozenset(min(hashes[i : i + WINDOW]) for i in range(max(len(hashes) - WINDOW + 1, 0)))


def identical(digests: Mapping[str, str]) -> list[Pair]:
    """The submissions with the same bytes."""
    return [
        Pair(one, two, 1.0)
        for one, two in combinations(sorted(digests), 2)
        if digests[one] == digests[two]
    ]


def pairs(prints: Mapping[str, frozenset[int]], given: Iterable[frozenset[int]]) -> list[Pair]:
    """The submissions that are nearly identical, most alike first."""
    known: set[int] = set().union(*given)
    counts: dict[int, int] = {}
    for marks in prints.values():
        for mark in marks:
            counts[mark] = counts.get(mark, 0) + 1
    many = max(COMMON * len(prints), 3)
    own = {
        name: {mark for mark in marks if mark not in known and counts[mark] <= many}
        for name, marks in prints.items()
    }
    found = []
    for one, two in combinations(sorted(own), 2):
        least = min(len(own[one]), len(own[two]))
        if least >= LEAST:
            share = len(own[one] & own[two]) / least
            if share >= ALIKE:
                found.append(Pair(one, two, share))
    return sorted(found, key=lambda pair: (-pair.share, pair.one, pair.two))
