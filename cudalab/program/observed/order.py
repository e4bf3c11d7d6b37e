"""Work of a program that nothing orders, as order.cpp reports it, as findings."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cudalab.backends.cpu.check.rows import Tables
from cudalab.backends.cpu.layout import Unordered
from cudalab.backends.trace import Finding, Kind, Place, Thread
from cudalab.microscope.explanations import where

_PROBLEMS = ("stream_race", "host_race", "freed_in_use", "used_too_early", "copy_under_way")
_KINDS: tuple[Kind, ...] = ("load", "store", "atomic")
_VERBS = ("reads", "writes", "changes (atomically)")
NOBODY = Thread((0, 0, 0), (0, 0, 0))


Listener = ctypes.CFUNCTYPE(None, ctypes.POINTER(Unordered))


def finding(
    unordered: Any,
    tables: Tables,
    variables: Mapping[int, str],
    streams: Mapping[tuple[str, int], Sequence[str]],
) -> Finding:
    """Two pieces of work, or one and the host, that use the same bytes in no order."""
    earlier, later = unordered.earlier, unordered.later
    kind = _PROBLEMS[unordered.problem]
    place, other_place = _place(later, tables), _place(earlier, tables)
    words = _Words(place.file, tables, streams)
    memory = variables.get(unordered.region, "")
    memory = memory or f"the memory of {words.line(unordered.file, unordered.line)}"
    one = words.actor(earlier, words.line(earlier.file, earlier.line))
    other = words.actor(later, where(place))
    if kind == "used_too_early":
        one += f" allocates {memory}"
    else:
        one += f" {_VERBS[earlier.kind]} byte {unordered.offset:,} of {memory}"
        one += words.access(earlier)
    other += (
        " frees it" if kind == "freed_in_use" else f" {_VERBS[later.kind]} it{words.access(later)}"
    )
    text = f"{one}; {other}. {_MISSING.get(kind, 'Nothing makes it wait.')}"
    return Finding(
        kind,
        _text(later.name) if later.is_kernel else "",
        place,
        NOBODY,
        access=_KINDS[later.kind],
        space="global",
        other_place=other_place,
        other_access=_KINDS[earlier.kind],
        buffer=memory,
        detail=text.replace("kernel", "Kernel", 1) if text.startswith("kernel ") else text,
        note=kind == "copy_under_way",
    )


@dataclass(frozen=True)
class _Words:
    """What a finding calls lines, streams and pieces of work."""

    file: str  # of the finding: lines there are called by their numbers alone
    tables: Tables
    streams: Mapping[tuple[str, int], Sequence[str]]

    def line(self, file: bytes | None, number: int) -> str:
        same = _text(file) == self.file
        return f"line {number}" if same else f"{_text(file)}:{number}"

    def stream(self, party: Any) -> str:
        if party.stream:
            return ("the default stream", "the thread's default stream")[party.stream - 1]
        at, number = self.line(party.stream_file, party.stream_line), party.stream_number
        names = self.streams.get((_text(party.stream_file), party.stream_line), ())
        if len(names) != 1 and number < len(names):
            return f"stream {names[number]} of {at}"
        called = f"stream {names[0]}" if len(names) == 1 else "the stream"
        return f"{called} of {at}" + (
            f", number {number + 1} of those made there" if number else ""
        )

    def actor(self, party: Any, at: str) -> str:
        if not party.file:
            return "the host"
        call = f"at {at} in {self.stream(party)}"
        name = _text(party.name)
        return f"kernel {name}, launched {call}," if party.is_kernel else f"{name} {call}"

    def access(self, party: Any) -> str:
        """The line of the access, if that is not the line of the call."""
        if not party.place:
            return ""
        of = self.tables.place(party.place)
        return f" at {where(of) if not party.file else self.line(of.file.encode(), of.line)}"


_MISSING = {
    "stream_race": "Nothing makes one wait for the other.",
    "host_race": "Nothing makes the host wait.",
}


def _text(name: bytes | None) -> str:
    return (name or b"").decode(errors="replace")


def _place(party: Any, tables: Tables) -> Place:
    """The line of the call, or of the host's own access."""
    return Place(_text(party.file), party.line) if party.file else tables.place(party.place)
