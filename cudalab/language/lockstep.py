"""Statements through which the lanes of a warp must go together: `s[i] += s[i ^ 16];`.

On a GPU all lanes of a warp read before any of them writes. Here they run one after another, in
ascending order, so such a statement is cut: `s[i] += cudalab_in_step(2, s[i ^ 16]);` waits between
the values and the writes until all lanes that come here have come. It is left alone if in ascending
order no lane reads what one before it has written.

Before Volta lanes moved in step from statement to statement, too, and such code was right; on later
GPUs it usually still is, though CUDA no longer promises it. Where a function counts on that, what
its lanes have done before ends in front of a statement: `cudalab_step(1);`.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from cudalab.language.device_functions import (
    COMPARING,
    POINTING,
    SIGNS,
    DeviceFunction,
    Element,
    File,
    find_shared,
    split,
)
from cudalab.language.scopes import Scope
from cudalab.language.structure import scan
from cudalab.language.syntax import Words
from cudalab.language.tokens import OPENING, Lines, closing, tokenize
from cudalab.language.tree import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Edit = tuple[int, int, str]

IN_STEP, STEP = "cudalab_in_step", "cudalab_step"

_WAITS = re.compile(r"sync|barrier|^wait$|^arrive_and_wait$", re.IGNORECASE)
_NO_STATEMENTS = frozenset({"if", "else", "for", "while", "do", "switch", "return", "case"})
_HEADS = frozenset({"if", "for", "while", "switch"})
_LOOPS = frozenset({"for", "while", "do"})
_OF_A_WARP = re.compile(r"<(?:3[012]|[12]?\d|warpSize|[A-Z_]*WARP[A-Z_]*)\b|<=(?:31|[12]?\d)\b")


@dataclass
class _Statement:
    """An assignment or declaration that uses the memory; numbers are indices of tokens."""

    first: int
    value: int  # the first token of its value
    last: int  # behind its value
    _: KW_ONLY
    target: Element | None  # what is written, if it is such memory
    uses: list[Element]  # what is read of it
    declares: bool

    @property
    def crosses(self) -> bool:
        """Whether it writes one element and reads others of the same array."""
        return self.target is not None and any(
            use.may_be(self.target) and use.text != self.target.text for use in self.uses
        )


def edits(files: Sequence[File]) -> list[list[Edit]]:
    """The edits for the device functions of files, a list for each of the files."""
    if not _may_share(files):
        return [[] for _ in files]
    functions = [[_Function(file.tokens, each) for each in file.functions] for file in files]
    find_shared(files, [each for own in functions for each in own])
    return [[edit for each in own for edit in each.edits()] for own in functions]


def _may_share(files: Sequence[File]) -> bool:
    """Whether functions may have memory that the lanes of a warp share."""
    words = {token.text for file in files for token in file.tokens}
    words |= {"volatile" for file in files for each in file.directives if "__shared__" in each.text}
    return bool(words & {"__shared__", "volatile"})


def applied(text: str) -> str:
    """A file of its own, with its edits."""
    both = tokenize(text)
    tokens = [token for token in both if token.kind != "directive"]
    directives = [token for token in both if token.kind == "directive"]
    file = File(tokens, directives, [])
    if _may_share([file]):
        words = Words(tokens, directives)
        root = Reader(words).file(Scope("namespace"))
        file = File(tokens, directives, scan(root, words, Lines(text)).device_functions)
    pieces, end = [], 0
    for start, stop, written in sorted(edits([file])[0]):
        pieces += [text[end:start], written]
        end = stop
    return "".join([*pieces, text[end:]])


class _Function(DeviceFunction):
    """A device function, and through which statements its lanes must go together."""

    def edits(self) -> Iterator[Edit]:
        """The edits that let its lanes go in step where they must."""
        if not self.shared or "constexpr" in self.head:
            return
        statements = list(self._statements())
        first, number = 1, 2  # the first is of a step that only old GPUs promise
        for statement in statements:
            end = ""
            if any(self._follows(one, statement) for one in statements):
                at = self.tokens[statement.first].start
                step = f"{STEP}({first or number});"
                yield at, at, f" {step} " if statement.declares else f" {{ {step} "
                end = "" if statement.declares else " }"
                first, number = 0, number + 1
            if self._meets_itself(statement, statements):
                before = self.tokens[statement.value - 1].end
                yield before, before, f" {IN_STEP}({number},"  # a space comes before other edits
                number += 1
                end = f");{end}"
            if end:
                semicolon = self.tokens[statement.last]
                yield semicolon.start, semicolon.end, end if ";" in end else f";{end}"

    def _meets_itself(self, statement: _Statement, statements: list[_Statement]) -> bool:
        """Whether a lane may read what another one writes in the same statement.

        What a lane writes itself, as the other half of an exchange, no other one writes.
        """
        from cudalab.language.indices import Known, never_meet  # noqa: PLC0415 - for new kernels

        target = statement.target
        own = {
            one.target.text
            for one in statements
            if one.target and not self._waits(*sorted((one.first, statement.first)))
        }
        known = Known(lambda name: self.value(name, statement.first), self.by_lane, self.natural)
        return target is not None and any(
            use.text not in own
            and use.may_be(target)
            and not never_meet(target.indices, use.indices, known)
            for use in statement.uses
        )

    def _follows(self, one: _Statement, other: _Statement) -> bool:
        """Whether a statement counts on what another one has done in all lanes before."""
        if not self._conflict(one, other):
            return False
        if one.last < other.first and not self._waits(one.last, other.first):
            return True
        return any(
            start < min(one.first, other.first)
            and max(one.last, other.last) <= end
            and not self._waits(one.last, end)
            and not self._waits(start, other.first)
            for start, end in self._loops
        )

    def _conflict(self, one: _Statement, other: _Statement) -> bool:
        """Whether lanes that go in step make two statements mean something else."""
        if one.target and other.target and not {one.target.root, other.target.root} & self.volatile:
            crosses = one.crosses and other.crosses and one.target.may_be(other.target)
            return crosses and self._is_of_a_warp(other)
        pairs = [(one.target, use) for use in other.uses] + [
            (other.target, use) for use in one.uses
        ]
        return any(
            target.root in self.volatile and use.may_be(target) and use.text != target.text
            for target, use in pairs
            if target
        )

    def _is_of_a_warp(self, statement: _Statement) -> bool:
        """Whether a branch lets no more than a warp come to a statement."""
        tokens = self.tokens
        for i in range(self.start, statement.first):
            if tokens[i].text == "if" and tokens[i + 1].text == "(":
                end = closing(tokens, i + 1) or i
                condition = "".join(token.text for token in tokens[i + 2 : end])
                if _OF_A_WARP.search(condition) and statement.first < self._end(end + 1):
                    return True
        return False

    @cached_property
    def volatile(self) -> set[str]:
        """What of its shared memory is volatile."""
        tokens = self.tokens
        names = set()
        begin = self.parameters[0][0] if self.parameters else self.start
        for i in range(begin, self.end):
            if tokens[i].text == "volatile":
                last = i
                while tokens[last + 1].kind == "name" or tokens[last + 1].text in POINTING:
                    last += 1
                names.add(tokens[last].text)
        return names & self.shared

    @cached_property
    def _loops(self) -> list[tuple[int, int]]:
        """The ranges of its loops."""
        found = []
        for i in range(self.start, self.end):
            if self.tokens[i].text in _LOOPS:
                opening = i + 1
                if self.tokens[i].text != "do":
                    opening = (closing(self.tokens, opening) or self.end) + 1
                found.append((i, self._end(opening)))
        return found

    def _end(self, start: int) -> int:
        """The index behind the statement that begins at `start`."""
        i = start
        while i < self.end and self.tokens[i].text != ";":
            if self.tokens[i].text in OPENING:
                is_block = self.tokens[i].text == "{"
                i = closing(self.tokens, i) or self.end
                if is_block:
                    break
            i += 1
        return i + 1

    def _waits(self, start: int, end: int) -> bool:
        return any(
            token.kind == "name" and _WAITS.search(token.text) for token in self.tokens[start:end]
        )

    def _statements(self) -> Iterator[_Statement]:
        tokens, end = self.tokens, self.end
        first = i = self.start + 1
        while i < end:
            text = tokens[i].text
            if text in _HEADS and tokens[i + 1].text == "(":
                first = i = (closing(tokens, i + 1) or end) + 1
                continue
            is_label = text == ":" and (i == first + 1 or tokens[first].text in ("case", "default"))
            if is_label or text in (";", "{", "}", "else", "do"):
                statement = self._read_statement(first, i) if text == ";" else None
                if statement is not None:
                    yield statement
                first = i + 1
            elif text in ("(", "["):
                i = closing(tokens, i) or end
            i += 1

    def _read_statement(self, first: int, last: int) -> _Statement | None:
        """The assignment or declaration tokens[first:last], if it uses an element."""
        tokens, i = self.tokens, first
        while i < last and tokens[i].text != "=":
            if tokens[i].text in (",", "?"):
                return None
            i = (closing(tokens, i) or last) + 1 if tokens[i].text in OPENING else i + 1
        if (
            i >= last - 1
            or tokens[i + 1].text in ("=", "{")
            or tokens[first].text in _NO_STATEMENTS
        ):
            return None
        sign = i
        while tokens[sign - 1].text in SIGNS and tokens[sign - 1].end == tokens[sign].start:
            sign -= 1
        operator = self.operator_at(sign)
        if operator in COMPARING or tokens[i - 1].text == "!":
            return None
        if len(split(tokens, i + 1, last)) != 1:
            return None
        uses = list(self.elements(i + 1, last))
        target = next(self.elements(first, sign), None)
        declares = any(
            one.kind == "name" and other.kind == "name"
            for one, other in pairwise(tokens[first:sign])
        ) or (tokens[first].kind == "name" and tokens[first + 1].text in ("*", "&", "<", "::"))
        if declares or not target or tokens[first].text != target.root:
            target = None
        elif sign < i:
            uses.append(target)
        if not uses and not target:
            return None
        return _Statement(first, i + 1, last, target=target, uses=uses, declares=declares)
