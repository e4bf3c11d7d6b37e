"""Macros that a file defines, and what their bodies say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cudalab.language.scopes import Name, Node, Scope
from cudalab.language.syntax import Words
from cudalab.language.tokens import Token, tokenize
from cudalab.language.tree import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    Edit = tuple[int, int, str]

_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?P<params>\([^)]*\))?")


@dataclass(kw_only=True)
class Macro:
    """One `#define`; positions are those of the file."""

    name: str
    params: str
    start: int  # of the body
    end: int
    tokens: list[Token]  # of the body
    edits: list[Edit] = field(default_factory=list)

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters."""
        return re.findall(r"\w+", self.params)

    @property
    def words(self) -> set[str]:
        """The names in the body."""
        return {token.text for token in self.tokens if token.kind == "name"}


def macros(directives: Iterable[Token]) -> list[Macro]:
    """The macros that directives define."""
    result = []
    for directive in directives:
        match = _DEFINE.match(directive.text)
        if match is None:
            continue
        start = directive.start + match.end()
        tokens = [
            token._replace(start=token.start + start, end=token.end + start)
            for token in tokenize(directive.text[match.end() :])
        ]
        result.append(
            Macro(
                name=match["name"],
                params=match["params"] or "",
                start=start,
                end=directive.end,
                tokens=tokens,
            )
        )
    return result


def read_body(macro: Macro, scope: Scope) -> tuple[Words, Node]:
    """The words and the tree of a macro's body, in braces and with a semicolon behind it."""
    inner = Scope("function", scope, is_opaque=True)  # variables are those of its users
    for name in macro.parameters:
        inner.declare(Name(name, "variable"))
    before = Token("sign", "{", macro.start, macro.start)
    after = [Token("sign", text, macro.end, macro.end) for text in ";}"]
    words = Words([before, *macro.tokens, *after])
    return words, Reader(words).statement(0, len(words), inner)
