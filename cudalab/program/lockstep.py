"""Kernels whose lanes pass values through volatile shared memory without __syncwarp.

Before Volta the lanes of a warp moved in step, and such code was right; on later GPUs it usually
still is, though CUDA no longer promises it. Here the lanes run one after another. So in functions
that are written like this, every statement that uses such memory becomes two steps of the warp: all
lanes read, then all lanes write.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from cudalab.language.tokens import OPENING, closing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cudalab.language.tokens import Token

    Edit = tuple[int, int, str]

_WAITS = ("__syncwarp", "__syncthreads", "sync", "barrier", "wait", "arrive_and_wait")
_NO_STATEMENTS = frozenset({"if", "else", "for", "while", "do", "switch", "return", "case"})


@dataclass
class _Statement:
    """An assignment or declaration that uses the memory; numbers are indices of tokens."""

    first: int
    sign: int  # of its operator
    last: int  # behind its value
    _: KW_ONLY
    operator: str  # such as "+="; "=" of a declaration, too
    target: str  # what is written, if it is such memory, as text
    uses: set[str]  # what is read of it


def edits(text: str, tokens: list[Token], functions: list[tuple[int, int]]) -> list[Edit]:
    """The edits for all device functions, which are ranges of tokens."""
    made: list[Edit] = []
    for start, end in functions:
        names = _volatile_names(tokens, start, end)
        if not names or any(token.text == "__syncwarp" for token in tokens[start:end]):
            continue
        statements = list(_statements(tokens, start, end, names))
        if _counts_on_steps(tokens, statements):
            for number, statement in enumerate(statements):
                made.append(_in_steps(text, tokens, statement, 2 * number + 1))
    return made


def _volatile_names(tokens: list[Token], start: int, end: int) -> set[str]:
    """Names of volatile shared arrays of a function, and of pointers that may point to some."""
    begin = start
    while begin and tokens[begin - 1].text not in (";", "}", "{"):
        begin -= 1
    is_kernel = any(token.text == "__global__" for token in tokens[begin:start])
    names = set()
    for i in range(start if is_kernel else begin, end):  # a kernel has no pointer to shared memory
        if tokens[i].text != "volatile":
            continue
        first = i
        while tokens[first - 1].kind == "name":
            first -= 1
        last = i
        while tokens[last].kind == "name" or tokens[last].text == "*":
            last += 1
        words = [token.text for token in tokens[first:last]]
        if "__shared__" in words or "*" in words:
            names.add(tokens[last - 1].text)
    return names


def _statements(tokens: list[Token], start: int, end: int, names: set[str]) -> Iterator[_Statement]:
    first = start + 1
    i = first
    while i < end:
        text = tokens[i].text
        if text in ("if", "for", "while", "switch") and tokens[i + 1].text == "(":
            first = i = (closing(tokens, i + 1) or end) + 1
            continue
        if text in (";", "{", "}", "else", "do"):
            statement = _read_statement(tokens, first, i, names) if text == ";" else None
            if statement is not None:
                yield statement
            first = i + 1
        elif text in ("(", "["):
            i = closing(tokens, i) or end
        i += 1


def _read_statement(
    tokens: list[Token], first: int, last: int, names: set[str]
) -> _Statement | None:
    """The assignment tokens[first:last], if it uses an element of the memory."""
    i = first
    while i < last and tokens[i].text != "=":
        if tokens[i].text == ",":
            return None
        i = (closing(tokens, i) or last) + 1 if tokens[i].text in OPENING else i + 1
    if i >= last - 1 or tokens[i + 1].text in ("=", "{") or tokens[first].text in _NO_STATEMENTS:
        return None
    before = tokens[i - 1]
    compound = before.end == tokens[i].start and before.text in "+-*/%&|^"
    if before.text in "=!<>":
        return None
    sign = i - 1 if compound else i
    uses = set(_elements(tokens, i + 1, last, names))
    targets = list(_elements(tokens, first, sign, names))
    is_target = bool(targets) and tokens[first].text in names
    target = targets[0] if is_target else ""
    if compound and is_target:
        uses.add(target)
    if not uses and not target:
        return None
    operator = "".join(token.text for token in tokens[sign : i + 1])
    return _Statement(first, sign, last, operator=operator, target=target, uses=uses)


def _elements(tokens: list[Token], first: int, last: int, names: set[str]) -> Iterator[str]:
    """The elements of the memory in an expression, as text."""
    for i in range(first, last - 1):
        if tokens[i].text in names and tokens[i + 1].text == "[":
            end = closing(tokens, i + 1) or last
            yield "".join(token.text for token in tokens[i : end + 1])


def _counts_on_steps(tokens: list[Token], statements: list[_Statement]) -> bool:
    """Whether a lane reads what another may have written, and nothing between them waits."""
    for i, one in enumerate(statements):
        if one.target and one.uses - {one.target}:
            return True  # s[i] += s[i + 16]
        for other in statements[i + 1 :]:
            if any(token.text in _WAITS for token in tokens[one.last : other.first]):
                break
            if one.target and any(
                use != one.target and use.partition("[")[0] == one.target.partition("[")[0]
                for use in other.uses
            ):
                return True
    return False


def _in_steps(text: str, tokens: list[Token], statement: _Statement, number: int) -> Edit:
    """The edit that makes a statement two steps: the numbers tell its steps from others."""
    s = statement
    begin, end = tokens[s.first].start, tokens[s.last - 1].end
    target = text[begin : tokens[s.sign - 1].end]
    behind = tokens[s.sign + len(s.operator) - 1].end
    value = text[behind:end].strip()
    if s.operator != "=" and s.target:
        value = f"{target} {s.operator[:-1]} ({value})"
        operator = "="
    else:
        operator = s.operator
    value = f"(::cudalab::in_step({number}), {value})"
    if s.target:
        value = f"::cudalab::in_step({number + 1}, {value})"
    return begin, end, f"{target} {operator} {value}"
