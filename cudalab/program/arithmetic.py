"""Conversions and shifts in device code that C++ leaves undefined: the edits that define them.

A conversion of a floating-point number that does not fit into an integer, and a shift by more
places than there are bits, have a value on a GPU. The functions of cudalab/arithmetic.h have it,
too; here they are put in place of casts, assignments and shifts that may need it. Whatever consists
of integers only stays as it is, and so do arguments of functions that the program does not define.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from cudalab.language.tokens import (
    closing,
    closing_angle,
    end_of_expression,
    opening,
    opening_angle,
)
from cudalab.program.declarations import (
    FLOATS,
    INTEGER,
    INTEGER_VECTORS,
    INTEGERS,
    QUALIFIERS,
    without_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cudalab.language.tokens import Token
    from cudalab.program.declarations import Names

    Edit = tuple[int, int, str]

_HEADS = frozenset({"if", "while", "for", "switch"})
_STREAMS = frozenset({"cout", "cerr", "clog"})
_MAX_CERTAIN_SHIFT = 31
# What may stand before the first token of an operand.
_BEFORE_OPERAND = frozenset("(,=[?:<>+-*/%&|^!~{;}") | {"return", "else", "do", "case"}


def closures(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """The bodies of lambda expressions for the device: `[=] __device__ (int i) { … }`."""
    for i, token in enumerate(tokens[:-3]):
        if token.text != "]" or tokens[i + 1].text not in ("__device__", "__host__"):
            continue
        start = i + 1
        while start < len(tokens) - 1 and tokens[start].text not in ("(", "{", ";"):
            start += 1
        if tokens[start].text == "(":
            start = (closing(tokens, start) or start) + 1
        end = closing(tokens, start) if tokens[start].text == "{" else None
        if end is not None:
            yield start, end


def edits(
    tokens: list[Token],
    functions: Iterable[tuple[int, int]],
    names: Names,
    *,
    divisions: bool = False,
) -> Iterator[list[Edit]]:
    """The edits for all device functions, which are ranges of tokens; some belong together.

    `divisions` are edited, too, for processors that do not stop at a division by zero.
    """
    for start, end in functions:
        function = _Function(tokens, start, end, names, divisions=divisions)
        for i in range(start + 1, end):
            function.edits = []
            function.visit(i)
            if function.edits:
                yield function.edits


class _Function:
    """A device function, with the edits of the last visit."""

    def __init__(
        self, tokens: list[Token], start: int, end: int, names: Names, *, divisions: bool
    ) -> None:
        self.tokens, self.start, self.end, self.names = tokens, start, end, names
        self.divisions = divisions
        self.edits: list[Edit] = []
        self.returned = self._integer_result()

    def visit(self, i: int) -> None:
        """Edit what begins at tokens[i]."""
        text = self.tokens[i].text
        if text in "<>" and self._is_shift(i):
            self._shift(i)
        elif text in "/%" and self.divisions:
            self._division(i)
        elif text == "(":
            self._cast(i)
        elif text == "=":
            self._assignment(i)
        elif text == "return" and self.returned:
            self._wrap_expression(i + 1, f"::cudalab::fit<{self.returned}>(")
        elif self.tokens[i].kind == "name" and self.tokens[i + 1].text in "<(":
            if text in self.names.parameters and self.tokens[i - 1].text not in (".", "->"):
                self._arguments(i)
            else:
                self._function_style(i)

    # Shifts ---------------------------------------------------------------------------------------

    def _is_shift(self, i: int) -> bool:
        tokens, sign = self.tokens, self.tokens[i].text
        if not self._adjacent(i, sign) or tokens[i - 1].text in (sign, "operator"):
            return False
        if self._adjacent(i + 1, sign):  # a launch
            return False
        if sign == ">":
            outer = opening_angle(tokens, i + 1)
            if outer is not None and not {"=", "?", "!", "|", "+", "-", "/"} & {
                token.text for token in tokens[outer : i + 1]
            }:
                return False  # the end of two argument lists
        return tokens[i + 2].kind not in ("string", "character") and not self._in_stream(i)

    def _in_stream(self, i: int) -> bool:
        while i > self.start and self.tokens[i].text not in (";", "{", "}"):
            if self.tokens[i].text in _STREAMS:
                return True
            i -= 1
        return False

    def _shift(self, i: int) -> None:
        tokens = self.tokens
        if self._adjacent(i + 1, "="):
            first, last = i + 3, end_of_expression(tokens, i + 3)
            if not self._is_certain(first, last):
                self._insert(tokens[first].start, "::cudalab::by + (")
                self._insert(tokens[last - 1].end, ")")
        elif not self._is_certain(i + 2, i + 3) or tokens[i + 3].text in "+-*/%.":
            self._insert(tokens[i + 1].end, " ::cudalab::by + ")

    def _division(self, i: int) -> None:
        tokens = self.tokens
        first = i + 2 if self._adjacent(i, "=") else i + 1
        match = INTEGER.fullmatch(tokens[first].text)
        if match and int(re.sub(r"[uUlLzZ']", "", match[0]), 0):
            return
        if first == i + 1:
            self._insert(tokens[i].end, " ::cudalab::zero_too ->* ")
        else:
            self._insert(tokens[first].start, "::cudalab::zero_too ->* (")
            self._insert(tokens[end_of_expression(tokens, first) - 1].end, ")")

    def _is_certain(self, first: int, last: int) -> bool:
        """Whether a number of places is a literal that every integer has."""
        match = INTEGER.fullmatch(self.tokens[first].text)
        return (
            last == first + 1
            and match is not None
            and int(re.sub(r"[uUlLzZ']", "", match[0]), 0) <= _MAX_CERTAIN_SHIFT
        )

    # Casts ----------------------------------------------------------------------------------------

    def _is_type(self, first: int, last: int) -> bool:
        """Whether tokens[first:last] are an integer type, or one that may be."""
        words = [token.text for token in self.tokens[first:last] if token.text not in ("std", "::")]
        words = [word for word in words if word not in QUALIFIERS]
        if len(words) == 1 and words[0] in self.names.types:
            return True
        return bool(words) and all(word in self.names.integer_types for word in words)

    def _cast(self, i: int) -> None:
        """(T)operand"""
        tokens, end = self.tokens, closing(self.tokens, i)
        if end is None or end > i + 6 or not self._is_type(i + 1, end) or not self._is_prefix(i):
            return
        last = self._end_of_operand(end + 1)
        if last is None or self.names.is_integer(tokens[end + 1 : last]):
            return
        words = self._type(i + 1, end)
        self.edits.append((tokens[i].start, tokens[end].end, f"::cudalab::cast<{words}>("))
        self._insert(tokens[last - 1].end, ")")

    def _function_style(self, i: int) -> None:
        """static_cast<T>(operand), T(operand) and make_uchar4(operands)"""
        tokens, name = self.tokens, self.tokens[i].text
        if name == "static_cast":
            angle = closing_angle(tokens, i + 1)
            if angle is None or not self._is_type(i + 2, angle):
                return
            paren, words = angle + 1, self._type(i + 2, angle)
        elif tokens[i + 1].text != "(":
            return
        elif name.startswith("make_") and name[5:] in INTEGER_VECTORS:
            paren, words = i + 1, name[5:]
        elif self._is_type(i, i + 1) and tokens[i - 1].text in _BEFORE_OPERAND - set("{;}<>"):
            paren, words = i + 1, name
        else:
            return
        end = closing(tokens, paren)
        if end is None or end == paren + 1 or self.names.is_integer(tokens[paren + 1 : end]):
            return
        makes = name.startswith("make_")
        if tokens[end + 1].text == ".":  # an object of a class: Reduce(memory).Sum(x)
            return
        if not makes and (end_of_expression(tokens, paren + 1) != end or self._declares(paren)):
            return
        which = "make" if makes else "cast"
        self.edits.append((tokens[i].start, tokens[paren - 1].end, f"::cudalab::{which}<{words}>"))

    def _arguments(self, i: int) -> None:
        """The arguments of a call of the program's own function"""
        if self.tokens[i + 1].text != "(":
            return
        first, types = i + 2, self.names.parameters[self.tokens[i].text]
        for kind in types:
            last = end_of_expression(self.tokens, first)
            if kind and any(token.text == "<" for token in self.tokens[first:last]):
                return  # perhaps a comma between template arguments
            if kind:
                self._wrap_expression(first, f"::cudalab::fit<{kind}>(")
            if self.tokens[last].text != ",":
                return
            first = last + 1

    def _declares(self, paren: int) -> bool:
        """Whether a bracket holds types, as in the type of a function."""
        after = self.tokens[paren + 1].text
        return after in INTEGERS | FLOATS | {"*", "&", "void"}

    def _is_prefix(self, i: int) -> bool:
        """Whether an operand may begin at tokens[i]."""
        before = self.tokens[i - 1].text
        if before == ")":  # of another cast
            first = opening(self.tokens, i - 1)
            return first is not None and (
                self._is_type(first + 1, i - 1)
                or {token.text for token in self.tokens[first + 1 : i - 1]}
                <= self.names.float_types
            )
        return before in _BEFORE_OPERAND

    def _end_of_operand(self, i: int) -> int | None:
        """The index behind the operand of a cast; None if there is none."""
        tokens = self.tokens
        while tokens[i].text in ("-", "+", "!", "~", "*", "&"):
            i += 1
        if tokens[i].text == "(":
            end = closing(tokens, i)
            if end is not None and self._is_cast_type(i + 1, end):
                return self._end_of_operand(end + 1)
        start = self._end_of_primary(i)
        if start is None:
            return None
        i = start
        while True:
            text = tokens[i].text
            if text in ("(", "["):
                i = (closing(tokens, i) or i) + 1
            elif text in (".", "->"):
                i += 2
            elif text in "+-" and self._adjacent(i, text) and not self._starts_operand(i + 2):
                i += 2  # x++
            else:
                return i

    def _end_of_primary(self, i: int) -> int | None:
        """The index behind a name, a number or an expression in brackets."""
        tokens = self.tokens
        if tokens[i].text == "(":
            end = closing(tokens, i)
            return None if end is None else end + 1
        if tokens[i].kind not in ("name", "number") and tokens[i].text != "::":
            return None
        i += 1
        while tokens[i].text == "::" or tokens[i - 1].text == "::":
            i += 1
        if tokens[i].text == "<":  # perhaps of a call with template arguments
            angle = closing_angle(tokens, i)
            if angle is not None and tokens[angle + 1].text == "(":
                return angle + 1
        return i

    def _is_cast_type(self, first: int, last: int) -> bool:
        texts = {token.text for token in self.tokens[first:last]}
        return self._is_type(first, last) or (
            bool(texts) and texts <= self.names.float_types | {"*", "const"}
        )

    def _starts_operand(self, i: int) -> bool:
        token = self.tokens[i]
        return token.kind in ("name", "number") or token.text == "("

    # Assignments ----------------------------------------------------------------------------------

    def _assignment(self, i: int) -> None:
        """T x = value; x = value; x += value"""
        tokens, before = self.tokens, self.tokens[i - 1]
        if self._adjacent(i, "=") or (before.end == tokens[i].start and before.text in "=!<>%&|^"):
            return
        updates = before.end == tokens[i].start and before.text in "+-*/"
        last = i - 1 if updates else i
        first = self._start_of_target(last - 1)
        if first is None:
            return
        names = without_fields(self._outside(first, last))
        if not names or self.names.is_float(names[-1].text):
            return
        end = end_of_expression(tokens, i + 1)
        value = tokens[i + 1 : end]
        if not value or value[0].text == "{" or self.names.is_integer(value):
            return
        if any(token.text == "<" for token in value) and tokens[end].text == ",":
            return  # perhaps a comma between template arguments
        declared_type = self._declared_type(first)
        if declared_type is not None:
            if declared_type and not updates:
                self._wrap_expression(i + 1, f"::cudalab::fit<{declared_type}>(")
        elif updates:
            self._insert(tokens[first].start, "::cudalab::into(")
            self._insert(tokens[last - 1].end, ")")
        else:
            target = self._text(first, last)
            self._wrap_expression(i + 1, f"::cudalab::fit<decltype({target})>(")

    def _start_of_target(self, i: int) -> int | None:
        """The index where the expression begins that ends at tokens[i] and is assigned to."""
        tokens = self.tokens
        while i > self.start:
            text = tokens[i].text
            if text in (")", "]"):
                begins = opening(tokens, i)
                if begins is None:
                    return None
                before = tokens[begins - 1]
                called = before.kind == "name" or before.text in (")", "]")
                if text == ")" and (not called or self._ends_head(begins - 1)):
                    i = begins
                    break
                i = begins - 1
                continue
            if tokens[i].kind != "name":
                return None
            if tokens[i - 1].text not in (".", "->", "::"):
                break
            i -= 2
        while tokens[i - 1].text == "*" and tokens[i - 2].text in (*";{}(),=*", "else", "do"):
            i -= 1
        return i

    def _ends_head(self, i: int) -> bool:
        """Whether tokens[i] ends what stands before a statement, such as `for (...)`."""
        begins = opening(self.tokens, i) if self.tokens[i].text == ")" else None
        return bool(begins) and self.tokens[(begins or 1) - 1].text in _HEADS

    def _declared_type(self, first: int) -> str | None:
        """The integer type that the declaration of tokens[first] begins with.

        None if it is no declaration, "" if it has another type.
        """
        tokens, i = self.tokens, first - 1
        words = QUALIFIERS | self.names.integer_types | self.names.types
        if tokens[i].text in (*"{};(),=:", "else", "do"):
            if tokens[i].text != ",":
                return None
            while i > self.start and tokens[i].text not in (";", "{", "}"):  # int a = 1, b = 2
                i = (opening(tokens, i) or i) - 1 if tokens[i].text in (")", "]") else i - 1
                if tokens[i + 1].text == "(":
                    return ""
            last = i + 1
            while tokens[last].text in words:
                last += 1
            return self._type(i + 1, last) if self._is_type(i + 1, last) else ""
        while tokens[i].text in words:
            i -= 1
        is_declaration = tokens[i].text in (*";{}(",) and self._is_type(i + 1, first)
        return self._type(i + 1, first) if is_declaration else ""

    def _integer_result(self) -> str:
        """The type that the function returns; "" if that is no integer."""
        tokens, i = self.tokens, self.start - 1
        for j in range(self.start, self.end):
            if tokens[j].text == "]" and tokens[j + 1].text in ("(", "{"):
                return ""  # a closure has returns of its own
        while i > 0 and tokens[i].text != ")":
            if tokens[i].text in (";", "}", "{"):
                return ""
            i -= 1
        name = (opening(tokens, i) or 0) - 1
        if name < 1 or tokens[name].kind != "name":
            return ""
        first = name
        while first and tokens[first - 1].text in self.names.integer_types | self.names.types:
            first -= 1
        return self._text(first, name) if self._is_type(first, name) else ""

    # Text -----------------------------------------------------------------------------------------

    def _adjacent(self, i: int, text: str) -> bool:
        """Whether `text` follows tokens[i] at once."""
        after = self.tokens[i + 1]
        return after.text == text and after.start == self.tokens[i].end

    def _outside(self, first: int, last: int) -> list[Token]:
        """The tokens of an expression outside square brackets."""
        result, i = [], first
        while i < last:
            if self.tokens[i].text == "[":
                i = closing(self.tokens, i) or last
            else:
                result.append(self.tokens[i])
            i += 1
        return result

    def _text(self, first: int, last: int) -> str:
        tokens = self.tokens[first:last]
        gaps = ["" if a.end == b.start else " " for a, b in itertools.pairwise(tokens)]  # as in i++
        return "".join(a.text + gap for a, gap in zip(tokens, [*gaps, ""], strict=True))

    def _type(self, first: int, last: int) -> str:
        """The text of a type without its qualifiers."""
        words = (token.text for token in self.tokens[first:last])
        return " ".join(word for word in words if word not in QUALIFIERS)

    def _insert(self, position: int, text: str) -> None:
        self.edits.append((position, position, text))

    def _wrap_expression(self, i: int, call: str) -> None:
        end = end_of_expression(self.tokens, i)
        if end > i and not self.names.is_integer(self.tokens[i:end]):
            self._insert(self.tokens[i].start, call)
            self._insert(self.tokens[end - 1].end, ")")
