"""Macros that device code uses: twins of them whose conversions and shifts have a GPU's values.

Host code and `#if` may use a macro, too, so its definition stays as it is. A second one follows it
under another name, with the edits of arithmetic.py, and device code uses that.
"""

from collections.abc import Iterable, Iterator, Sequence

from cudalab.language import arithmetic
from cudalab.language.macros import Macro, read_body
from cudalab.language.scopes import UNKNOWN, Name, Node, Scope
from cudalab.language.specifiers import type_of_id
from cudalab.language.syntax import Words
from cudalab.language.tokens import Token
from cudalab.language.tree import Reader
from cudalab.language.types import type_of

Edit = tuple[int, int, str]

TWIN = "cudalab_exact_"


def declare(every: Sequence[Macro], scope: Scope) -> frozenset[str]:
    """Declare macros as the types and constants that they stand for, or else as unknown names.

    Returns the words that mark functions for the device: CUDA's own, and macros with them.
    """
    marks = set(arithmetic.DEVICE)
    for macro in every:
        if macro.words & marks and not macro.params:
            marks.add(macro.name)
        size, words = len(macro.tokens), Words(macro.tokens)
        found = type_of_id(words, 0, size, scope) if size and not macro.params else None
        if found is not None and found.is_certain:
            scope.declare(Name(macro.name, "type", found.type or UNKNOWN))
            continue
        type_ = UNKNOWN
        if size and not macro.params and all(scope.own(word) for word in macro.words):
            type_ = type_of(Reader(words).expressions.whole(0, size, scope))
        kind = "variable" if type_.kind != "unknown" else "unknown"
        prefix = not macro.params and (not size or macro.tokens[-1].text in ";{}")
        scope.declare(Name(macro.name, kind, type_, is_prefix=prefix))
    return frozenset(marks)


def edit(every: Sequence[Macro], named: set[str], scope: Scope, *, divisions: bool) -> set[str]:
    """Record the edits of macros; return which of those `named` get a twin."""
    named = set(named)
    while more := {word for each in every if each.name in named for word in each.words} - named:
        named |= more
    for macro in every:
        macro.edits = _edits(macro, scope, divisions=divisions) if macro.name in named else []
    twins = {macro.name for macro in every if macro.edits}
    while more := {each.name for each in every if each.words & twins} & named - twins:
        twins |= more
    return twins


def _edits(macro: Macro, scope: Scope, *, divisions: bool) -> list[Edit]:
    if any(token.text == "#" for token in macro.tokens):  # it makes text or names of its arguments
        return []
    words, body = read_body(macro, scope)
    made = arithmetic.groups(body, words, divisions=divisions)
    return [each for group in made for each in group.edits]


def twin(macro: Macro, text: str, made: Sequence[Edit], twins: set[str]) -> str:
    """The second definition of a macro; `made` are edits of the first that `text` lacks."""
    made = [edit for edit in made if macro.start <= edit[0] < macro.end]
    taken = [(start, end) for start, end, _ in made if start < end]
    edits = [*made, *renamed(macro.tokens, twins), *macro.edits]
    pieces, at = [], macro.start
    for start, end, new in sorted(edits):
        if (start, end, new) not in made and any(a <= start < b for a, b in taken):
            continue
        pieces += [text[at:start], new]
        at = end
    body = "".join([*pieces, text[at : macro.end]])
    name = TWIN + macro.name
    return f"\n#undef {name}\n#define {name}{macro.params}{body}"


def renamed(tokens: Iterable[Token], twins: set[str]) -> list[Edit]:
    """The edits that replace macros by their twins."""
    return [
        (token.start, token.end, TWIN + token.text)
        for token in tokens
        if token.kind == "name" and token.text in twins
    ]


def used(bodies: Sequence[Node], words: Words, twins: set[str]) -> Iterator[arithmetic.Group]:
    """The edits that replace macros by their twins in functions for the device."""
    seen: set[int] = set()
    for node in sorted(bodies, key=lambda each: each.last - each.first):  # the innermost first
        for i in range(node.first, node.last):
            if i not in seen and words.texts[i] in twins:
                seen.add(i)
                edits = renamed([words.tokens[i]], twins)
                yield arithmetic.Group(edits, Node("name", i, i + 1), node)


def defaults(twins: set[str]) -> str:
    """Directives for the top of a file: a macro that is defined elsewhere is its own twin."""
    return "".join(
        f"#ifndef {TWIN}{name}\n#define {TWIN}{name} {name}\n#endif\n" for name in sorted(twins)
    )
