"""Stretches of kernels that only load and multiply fragments: one lane runs them for its warp.

All lanes of a warp call the functions of `mma.h` together and with the same arguments, so that a
loop with no other effects does the same in every lane. Here each call would be a meeting of all
lanes. Instead they meet once: the last one to arrive runs the stretch with whole tiles, which it
gathers from the lanes' fragments before and gives back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.language.tokens import OPENING, closing
from cudalab.program.fragments import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cudalab.language.tokens import Token
    from cudalab.program.fragments import Names

    Edit = tuple[int, int, str]


class _Finder:
    """Finds the stretches of a function."""

    def __init__(
        self, tokens: list[Token], directives: Sequence[Token], names: Names, body: tuple[int, int]
    ) -> None:
        self.tokens, self.names = tokens, names
        self.conditions = [each.start for each in directives if "pragma" not in each.text]
        self.edits: list[Edit] = []
        self.declared = self._declared(*body)
        if self.declared:
            self._block(body[0] + 1, body[1])

    def _declared(self, begin: int, end: int) -> set[str]:
        """The fragments that the function declares; parameters may be references."""
        start = begin
        while start and self.tokens[start - 1].text not in (";", "}", "{"):
            start -= 1
        reader, declared = Reader(self.tokens, self.names), set()
        for i in range(start, end):
            last = reader.end_of_fragment(i)
            if last is None or self.tokens[i - 1].text in ("::", "<", "static", "__shared__"):
                continue
            k = last + 1
            if [each.text for each in self.tokens[i - 3 : i : 2]] == ["auto", "="]:
                declared.add(self.tokens[i - 2].text)
                continue
            if i < begin:  # a parameter
                if self.tokens[k].text == "&":
                    declared.add(self.tokens[k + 1].text)
                continue
            while self.tokens[k].text != ";" and k < end:
                if self.tokens[k].kind == "name" and self.tokens[k + 1].text in ("[", ",", ";"):
                    declared.add(self.tokens[k].text)
                k = (closing(self.tokens, k) or k) + 1 if self.tokens[k].text in OPENING else k + 1
        return declared

    def _block(self, i: int, end: int) -> None:
        """Look at the statements between two braces."""
        run: list[tuple[int, int]] = []
        reader = Reader(self.tokens, self.names)
        while i < end:
            behind = reader.statement(i)
            if behind is None:
                self._take_pieces(run)
                run, reader = [], Reader(self.tokens, self.names)
                i = self._look_into(i, end)
            else:
                run.append((i, behind))
                i = behind
        if not self._take(run):  # its declarations end with it
            self._take_pieces(run)

    def _look_into(self, i: int, end: int) -> int:
        """Look at what is in a statement, and return the index behind it."""
        text = self.tokens[i].text
        if text == "{":
            close = closing(self.tokens, i) or end
            self._block(i + 1, close)
            return close + 1
        if text in ("for", "while", "if", "switch"):
            i += 2 if self.tokens[i + 1].text == "constexpr" else 1
            return self._look_at((closing(self.tokens, i) or end) + 1, end)
        if text in ("else", "do"):
            return self._look_at(i + 1, end)
        while i < end and self.tokens[i].text != ";":
            i = (closing(self.tokens, i) or end) + 1 if self.tokens[i].text in OPENING else i + 1
        return i + 1

    def _look_at(self, i: int, end: int) -> int:
        """The same for a statement that another one controls."""
        if i >= end:
            return end
        behind = Reader(self.tokens, self.names).statement(i)
        if behind is not None and self._take([(i, behind)]):
            return behind
        return self._look_into(i, end)

    def _take_pieces(self, run: list[tuple[int, int]]) -> None:
        """Take what is between the declarations of a run, whose names may be used behind it."""
        piece: list[tuple[int, int]] = []
        for first, behind in run:
            reader = Reader(self.tokens, self.names)
            alone = reader.statement(first) is not None
            declares = reader.stretch.variables | reader.stretch.constants | reader.stretch.own
            has_scope = self.tokens[first].text in ("{", "for", "while", "if")
            if alone and (has_scope or not declares):
                piece.append((first, behind))
            else:
                self._take(piece)
                piece = []
        self._take(piece)

    def _take(self, run: list[tuple[int, int]]) -> bool:
        """Make the edits for a run of statements if it is a stretch worth the trouble."""
        reader = Reader(self.tokens, self.names)
        if not run or any(reader.statement(first) is None for first, _ in run):
            return False
        s = reader.stretch
        first, last = run[0][0], run[-1][1] - 1
        begin, end = self.tokens[first - 1].end, self.tokens[last].end
        named = s.variables | s.constants | s.used
        if (
            not s.products
            or s.calls == 1
            or not s.outer
            or not self.declared.issuperset(s.outer)
            or named & {*s.outer, *s.own}
            or any(begin < each < end for each in self.conditions)
        ):
            return False
        shares = ", ".join(f"(void*)&{name}" for name in s.outer)
        text = f" {{ void* const cudalab_shares[] = {{{shares}}};"
        text += " ::cudalab::Meeting cudalab_meeting(cudalab_shares);"
        text += " while (cudalab_meeting.begins()) {"
        for i, name in enumerate(s.outer):
            text += f" ::nvcuda::wmma::Borrowed<decltype({name})> cudalab_{name}"
            text += f"(cudalab_meeting, {i}); auto& {name} = cudalab_{name}.tiles;"
        self.edits.append((begin, begin, text))
        self.edits.append((end, end, " } }"))
        for i, k in dict.fromkeys(s.types):
            start, stop = self.tokens[i].start, self.tokens[k].end
            self.edits += [(start, start, "::nvcuda::wmma::Whole<"), (stop, stop, ">")]
        for i, k, instead in dict.fromkeys(s.roundings):
            self.edits.append((self.tokens[i].start, self.tokens[k].end, instead))
        return True


def edits(
    tokens: list[Token],
    directives: Sequence[Token],
    functions: Iterable[tuple[int, int]],
    names: Names,
) -> list[Edit]:
    """The edits for all device functions, which are ranges of tokens."""
    return [edit for body in functions for edit in _Finder(tokens, directives, names, body).edits]
