"""Macros that a file defines, and what their bodies say."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from cudalab.language.scopes import Name, Node, Scope
from cudalab.language.tokens import KEYWORDS, Edit, Token, Words, closing_angle, names_in, tokenize
from cudalab.language.tree import Reader

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
        return names_in(self.tokens)


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
    tokens = _joined(macro.tokens)
    types = {
        token.text
        for token, after in pairwise(tokens)
        if after.kind == "name" and after.text not in KEYWORDS
    }
    templates = set(_called_templates(tokens))
    for name in macro.parameters:  # what stands before a name is a type
        kind = "type" if name in types else "function" if name in templates else "variable"
        inner.declare(Name(name, kind))
    before = Token("sign", "{", macro.start, macro.start)
    after = [Token("sign", text, macro.end, macro.end) for text in ";}"]
    words = Words([before, *tokens, *after])
    return words, Reader(words).statement(0, len(words), inner)


def _called_templates(tokens: list[Token]) -> Iterator[str]:
    """The names before template arguments that are launched or called: `f<T><<<`, `f<T>(`."""
    for i in range(len(tokens) - 1):
        close = closing_angle(tokens, i + 1) if tokens[i + 1].text == "<" else None
        if close is not None and tokens[i].kind == "name":
            after = "".join(each.text for each in tokens[close + 1 : close + 4])
            if after == "<<<" or after[:1] == "(":
                yield tokens[i].text


def _joined(tokens: list[Token]) -> list[Token]:
    """The tokens of a macro's body with the names that `##` makes as one each: `a##b`."""
    result: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        joins = [each.text for each in tokens[i : i + 2]] == ["#", "#"]
        if joins and result and i + 2 < len(tokens):
            before, after = result.pop(), tokens[i + 2]
            token = before._replace(text=f"{before.text}##{after.text}", end=after.end)
            i += 2
        result.append(token)
        i += 1
    return result
