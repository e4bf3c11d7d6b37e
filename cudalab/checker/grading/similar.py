"""Identical and near-identical submissions: digests, and fingerprints that survive renaming.

Winnowing (Schleimer, Wilkerson, Aiken 2003): every RUN consecutive tokens are hashed, and the
smallest hash of each WINDOW is a fingerprint, so that any common part of RUN + WINDOW - 1 tokens
leaves a common fingerprint. All names are the same token, and comments are ignored. Code that many
submissions share, or that the lab's own files contain, is no sign of copying.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

RUN, WINDOW = 12, 8
MIN_SHARE = 0.75  # of the smaller submission's fingerprints
MIN_FINGERPRINTS = 8  # with fewer, everything looks alike
COMMON = 0.5  # code that more than this part of the class has was handed out
_COMMENT = re.compile(  # in C++ and in Python
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
    """Two submissions, and the part of the smaller one's fingerprints that they share."""

    one: str
    two: str
    share: float


def tokens(text: str) -> list[str]:
    """The code without comments; each of the author's names becomes N, each number 0."""
    result = []
    for token in _TOKEN.findall(_COMMENT.sub(" ", text)):
        if token[0].isdigit():
            result.append("0")
        elif token[0].isalpha() or token[0] == "_":
            result.append(token if token in _WORDS else "N")
        else:
            result.append(token)
    return result


def fingerprints(text: str) -> frozenset[int]:
    """Hashes of consecutive tokens, at least one from each window."""
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


def pairs(prints: Mapping[str, frozenset[int]], public: Iterable[frozenset[int]]) -> list[Pair]:
    """Pairs of nearly identical submissions, most similar first; `public` is known to all."""
    known: set[int] = set().union(*public)
    counts: dict[int, int] = {}
    for marks in prints.values():
        for mark in marks:
            counts[mark] = counts.get(mark, 0) + 1
    max_count = max(COMMON * len(prints), 3)
    own = {
        name: {mark for mark in marks if mark not in known and counts[mark] <= max_count}
        for name, marks in prints.items()
    }
    result = []
    for one, two in combinations(sorted(own), 2):
        smaller = min(len(own[one]), len(own[two]))
        if smaller >= MIN_FINGERPRINTS:
            share = len(own[one] & own[two]) / smaller
            if share >= MIN_SHARE:
                result.append(Pair(one, two, share))
    return sorted(result, key=lambda pair: (-pair.share, pair.one, pair.two))
