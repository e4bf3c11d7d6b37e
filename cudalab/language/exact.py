"""Conversions and shifts in device code with a GPU's results: where the edits of arithmetic.py go.

A statement whose edits a host's compiler refuses gets others, if there are any. Else it stays as it
is, with the processor's values, and the function around it refuses to run.

Macros that device code uses get twins: host code and `#if` may use a macro, too, so its definition
stays as it is. A second one follows it under another name, with the edits, and device code uses it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cudalab.errors import KernelCompileError
from cudalab.language import arithmetic
from cudalab.language.macros import Macro, read_body
from cudalab.language.scopes import UNKNOWN, Name, Node, Scope
from cudalab.language.source import quoted
from cudalab.language.specifiers import type_of_id
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit, Place, Token, Words, closure
from cudalab.language.tree import Reader
from cudalab.language.types import type_of

_CONSTANT = {"static", "constexpr"}


class Exact:
    """What gives the device code of some files, which are read into one scope, a GPU's results."""

    def __init__(
        self, files: Sequence[CudaFile], macros: Sequence[Macro], scope: Scope, *, divisions: bool
    ) -> None:
        """Find out which classes device code may make objects of, and which macros need twins.

        `divisions` are edited, too, for processors that do not stop at a division by zero.
        """
        self.divisions = divisions
        bodies = [(each.words.texts, body) for each in files for body in each.bodies]
        names = {name for texts, body in bodies for name in texts[body.first : body.last]}
        self.doubled = _edit_macros(macros, names, scope, divisions=divisions)
        classes = [
            (each.text, file.words.texts[each.first : each.last])
            for file in files
            for each in file.root.of_kind("class")
        ]
        self.classes = closure(
            names,
            lambda known: (name for of, texts in classes if of in known for name in texts),
        )

    def edits(
        self,
        file: CudaFile,
        made: Sequence[Edit],
        lines: Callable[[Node], Sequence[Place]],
        refused: Mapping[Place, int],
    ) -> Iterator[Edit]:
        """The edits for one of the files, but where others have been `made`.

        `lines` gives those of a statement. `refused` says where the compiler has refused edits, and
        how often.
        """
        edited = sorted((start, end) for start, end, _ in made if start < end)
        nodes = (*arithmetic.outermost(file.bodies), *_defaults(file.root, self.classes))
        groups = [
            group
            for node in nodes
            for group in arithmetic.groups(node, file.words, divisions=self.divisions)
        ]
        for group in (*groups, *_used(file, self.doubled)):
            if not group.is_inside(edited):
                yield from _edits_of(group, file.words, lines(group.statement), refused)

    def twins(
        self, macros: Sequence[Macro], text: str, made: Sequence[Edit]
    ) -> Iterator[tuple[Macro, str]]:
        """The macros of a file that get twins, with these; `made` are edits that `text` lacks."""
        for each in macros:
            if each.name in self.doubled:
                yield each, _twin(each, text, made, self.doubled)


def _defaults(root: Node, named: set[str]) -> Iterator[Node]:
    """The declarations of members with default values, of the classes `named` for the device.

    Those in functions are left out, and constants, whose values the compiler checks.
    """
    functions = list(root.of_kind("function", "lambda"))
    for each in root.of_kind("class"):
        local = any(function.first <= each.first < function.last for function in functions)
        if local or each.text not in named:
            continue
        for member in each.children:
            is_value = member.kind == "declaration" and not (member.words & _CONSTANT)
            if is_value and any(child.kind == "initializer" for child in member.children):
                yield member


def _edits_of(
    group: arithmetic.Group, words: Words, lines: Sequence[Place], refused: Mapping[Place, int]
) -> list[Edit]:
    """The edits of a statement that has these lines.

    `refused` says how often the compiler has refused a line.
    """
    worst = max(lines, key=lambda line: refused.get(line, 0))
    times = refused.get(worst, 0)
    edits = [group.edits, group.others][times] if times <= 1 else []
    return edits or [_refusal(group.function, words, worst)]


def _refusal(function: Node, words: Words, line: Place) -> Edit:
    """The edit that makes a function refuse to run, because of a line."""
    body = next((child for child in function.children if child.kind == "block"), None)
    if body is None:  # a class
        raise KernelCompileError(
            f"{line[0]}:{line[1]}: this default value cannot be given a GPU's conversion or shift",
            hint="give the member its value in a constructor",
        )
    brace = words.tokens[body.first].end
    return brace, brace, f" ::cudalab::cudalab_refuse_arithmetic({quoted(f'{line[0]}:{line[1]}')});"


TWIN = "cudalab_exact_"


def declare_macros(every: Sequence[Macro], scope: Scope) -> frozenset[str]:
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


def _edit_macros(
    every: Sequence[Macro], named: set[str], scope: Scope, *, divisions: bool
) -> set[str]:
    """Record the edits of macros; return which of those `named` get a twin."""
    named = closure(
        named,
        lambda known: (word for each in every if each.name in known for word in each.words),
    )
    for macro in every:
        macro.edits = []
        is_text = any(token.text == "#" for token in macro.tokens)  # or names of its arguments
        if macro.name in named and not is_text:
            words, body = read_body(macro, scope)
            for group in arithmetic.groups(body, words, divisions=divisions):
                macro.edits += group.edits
    return closure(
        (macro.name for macro in every if macro.edits),
        lambda twins: (each.name for each in every if each.words & twins and each.name in named),
    )


def _twin(macro: Macro, text: str, made: Sequence[Edit], twins: set[str]) -> str:
    """The second definition of a macro; `made` are edits of the first that `text` lacks."""
    made = [edit for edit in made if macro.start <= edit[0] < macro.end]
    taken = [(start, end) for start, end, _ in made if start < end]
    edits = [*made, *_renamed(macro.tokens, twins), *macro.edits]
    pieces, at = [], macro.start
    for start, end, new in sorted(edits):
        if (start, end, new) not in made and any(a <= start < b for a, b in taken):
            continue
        pieces += [text[at:start], new]
        at = end
    body = "".join([*pieces, text[at : macro.end]])
    name = TWIN + macro.name
    return f"\n#undef {name}\n#define {name}{macro.params}{body}"


def _renamed(tokens: Iterable[Token], twins: set[str]) -> list[Edit]:
    """The edits that replace macros by their"""
    return [
        (token.start, token.end, TWIN + token.text)
        for token in tokens
        if token.kind == "name" and token.text in twins
    ]


def _used(file: CudaFile, twins: set[str]) -> Iterator[arithmetic.Group]:
    """The edits that replace macros by their twins in functions for the device."""
    words, seen = file.words, set[int]()
    for node in sorted(file.bodies, key=lambda each: each.last - each.first):  # the innermost first
        for i in range(node.first, node.last):
            if i not in seen and words.texts[i] in twins:
                seen.add(i)
                edits = _renamed([words.tokens[i]], twins)
                yield arithmetic.Group(edits, Node("name", i, i + 1), node)


def defaults(twins: set[str]) -> str:
    """Directives for the top of a file: a macro that is defined elsewhere is its own twin."""
    return "".join(
        f"#ifndef {TWIN}{name}\n#define {TWIN}{name} {name}\n#endif\n" for name in sorted(twins)
    )
