"""The kernels whose loops a compiler refuses, by the places that its messages name."""

import re
from collections.abc import Iterable, Iterator

from cudalab.backends.cpu.regions.syntax import Function

Place = tuple[str, int]  # a file and a line
_PLACE = re.compile(r"(?:^|\bfrom )(?P<file>[^\s:][^:\n]*):(?P<line>\d+)[:,]", re.MULTILINE)
_ERROR = re.compile(r"^([^\s:][^:\n]*):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_MESSAGE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):", re.MULTILINE)
_REASON = "the compiler refuses its loops"


def places(messages: str) -> frozenset[Place]:
    """The files and lines that a compiler's messages begin with."""
    return frozenset((match["file"], int(match["line"])) for match in _MESSAGE.finditer(messages))


def places_of(functions: Iterable[Function]) -> frozenset[Place]:
    return frozenset(_lines(functions))


def _lines(functions: Iterable[Function]) -> Iterator[Place]:
    for function in functions:
        ends: dict[str, tuple[int, int]] = {}
        for word in (*function.head, *function.body):
            first, last = ends.get(word.file, (word.line, word.line))
            ends[word.file] = min(first, word.line), max(last, word.line)
        for file, (first, last) in ends.items():
            yield from ((file, line) for line in range(first, last + 1))


def blamed(messages: str, kernels: dict[str, frozenset[Place]]) -> dict[str, str]:
    """The kernels, given with their lines, that the messages are about; why each is refused.

    These are the kernels with errors in their lines. If no error is there, as in what a macro of
    ours stands for, they are those that the messages name in any way, else all.
    """
    errors = [((m[1], int(m[2])), m[3]) for m in _ERROR.finditer(messages)]
    why = errors[0][1] if errors else (messages.strip().splitlines() or [""])[0]
    named = [((m["file"], int(m["line"])), why) for m in _PLACE.finditer(messages)]
    for found in (errors, named):
        reasons = {
            name: f"{file}:{line}: {_REASON}: {words}"
            for (file, line), words in reversed(found)
            for name, own in kernels.items()
            if (file, line) in own
        }
        if reasons:
            return reasons
    return {
        name: f"{file}:{line}: {_REASON}: {why}"
        for name, own in kernels.items()
        for file, line in [min(own)]
    }
