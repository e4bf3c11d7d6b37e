"""Statements and what they declare, as the passes use them: parts of the tree and their words.

The words of a function are one list, of which each statement is a part. A pass that changes some
gives edits of that list to `edited`, which reads the statements anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache

from cudalab.backends.cpu.regions.words import NotCoveredError, Words, close, of_text
from cudalab.language.scopes import BASIC, Name, Node, Scope
from cudalab.language.specifiers import CLASS_KEYS
from cudalab.language.tokens import Token, split, texts
from cudalab.language.tree import Reader

TYPES = BASIC | {"auto"}
# Words that begin what declares no variable of each thread.
_NO_LOCALS = frozenset({"static", "constexpr", "__shared__", "extern"})
_BEFORE_DECLARATION: tuple[list[str], ...] = ([], ["const"], [";"], ["{"], ["}"], ["("])
LOOPS = frozenset({"for", "while", "do"})
_CONTROLLING = LOOPS | {"if"}
_ALIGNING = frozenset({"__align__", "alignas"})


@dataclass(eq=False)
class Statement:
    """A statement of a function's tree: where it stands among the words, and what is in it."""

    kind: str  # simple, block, if, if constexpr, for, while, do; other: only moved as a whole
    text: Words  # the words of the function, of which it is those from `start` up to `end`
    start: int
    end: int
    _: KW_ONLY
    opening: int = 0  # of the bracket around its condition, or around the head of a `for` loop
    closing: int = 0
    condition: Words = field(default_factory=list)
    first: Words = field(default_factory=list)  # of a for loop, as is `step`
    step: Words = field(default_factory=list)
    parts: list[Statement] = field(default_factory=list)  # of a block; then, else; a loop's body
    alone: bool = False  # a part that stands in no block
    declared: Sequence[Local] = ()  # its variables, those of a `for` loop's first part

    @cached_property
    def words(self) -> Words:
        """All words of the statement, in the order of the text."""
        return self.text[self.start : self.end]

    @property
    def head(self) -> Words:
        """A branch or a loop up to its bracket."""
        return self.text[self.start : self.opening + 1]

    @property
    def of_condition(self) -> tuple[int, int]:
        """Where the condition stands among the words."""
        at = self.opening + 1 + (len(self.first) + 1) * (self.kind == "for")
        return at, at + len(self.condition)

    @property
    def within(self) -> tuple[int, int]:
        """Where what is inside a block stands, or the statement."""
        braces = self.kind == "block"
        return self.start + braces, self.end - braces

    @property
    def inside(self) -> list[Statement]:
        """The statements of a block, or this one."""
        return self.parts if self.kind == "block" else [self]

    @property
    def pieces(self) -> tuple[Words, ...]:
        """The statement, or its parts that are no statements."""
        if self.kind in ("simple", "other"):
            return (self.words,)
        return self.first, self.condition, self.step

    def walk(self) -> Iterator[Statement]:
        """Visit this statement and all in it."""
        yield self
        yield from walk(self.parts)


Edit = tuple[int, int, Words]  # where the words that are replaced begin and end; and by which


def edited(own: list[Statement], edits: Iterable[Edit]) -> list[Statement]:
    """The statements of a function, read anew with edits of its words."""
    made = sorted(edits, key=lambda edit: edit[:2])
    if not made:
        return own
    text, result, at = own[0].text, list[Token](), 0
    for start, end, words in made:
        result += [*text[at:start], *words]
        at = end
    return statements([*result, *text[at:]])


def behind(block: Statement, words: Words) -> list[Edit]:
    """The edits that put words at the end of a block, or of a statement that becomes one."""
    place, (start, end) = block.words[0], block.within
    if block.kind == "block":
        return [(end, end, words)]
    return [(start, start, of_text(place, "{")), (end, end, of_text(place, words, "}"))]


def ahead(statement: Statement, words: Words) -> list[Edit]:
    """The edits that put words before a statement, in a block if it stands alone."""
    place, start, end = statement.words[0], statement.start, statement.end
    if not statement.alone:
        return [(start, start, words)]
    return [(start, start, of_text(place, "{", words)), (end, end, of_text(place, "}"))]


def walk(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Visit statements and all in them."""
    return (each for statement in statements for each in statement.walk())


def variables(statements: Iterable[Statement]) -> Iterator[Local]:
    """The variables that statements, and all in them, declare."""
    return (local for each in walk(statements) for local in each.declared)


@dataclass(frozen=True, kw_only=True)
class Local:
    """A variable that a statement declares."""

    spec: Words  # its type, without what belongs to this one of several variables
    pointer: Words  # `*`, `&` and their `const`
    name: str
    array: Words
    value: Words  # with its `=` or brackets
    align: Words = field(default_factory=list)  # `__align__(16)`, say

    @property
    def is_reference(self) -> bool:
        return "&" in texts(self.pointer) or "&&" in texts(self.pointer)

    @property
    def initializer(self) -> Words:
        """The value that a variable is initialized with."""
        return self.value[1:] if self.value and self.value[0].text == "=" else self.value


# Statements ---------------------------------------------------------------------------------------


def nodes(words: Words) -> list[Node]:
    """The tree of some statements, or of an expression."""
    scope = Scope("block")
    for i, word in enumerate(words[:-5]):  # `T (&name)[4]` names a type
        after, before = texts(words[i + 1 : i + 6]), texts(words[i - 1 : i])
        if after[:2] + after[3:] == ["(", "&", ")", "["] and before in _BEFORE_DECLARATION:
            scope.declare(Name(word.text, "type"))
    return Reader(words).statements(0, len(words), scope)


@lru_cache(maxsize=2**14)  # as below
def expression(words: tuple[Token, ...]) -> Node:
    """The tree of an expression."""
    return Reader(words).expressions.whole(0, len(words), Scope("block"))


def statements(words: Words) -> list[Statement]:
    """The statements of a function's body, or of a part of it."""
    top, text = nodes(words), [*words]
    for start, end, apart in sorted(_apart(words, top), key=lambda edit: -edit[0]):
        text[start:end] = apart
    return [_statement(text, node) for node in (top if len(text) == len(words) else nodes(text))]


def simple(words: Words) -> Statement:
    """A statement of these words, in which there is no other one."""
    return Statement("simple", words, 0, len(words), declared=locals_of(words))


def _apart(words: Words, among: Iterable[Node]) -> Iterator[Edit]:
    """The edits that make two statements of one that defines a class and declares variables."""
    for node in among:
        defined = next((each for each in node.children if each.kind in ("class", "enum")), None)
        if node.kind == "declaration" and defined is not None and node.declarators:
            own = words[defined.first : defined.last]
            name = own[0]._replace(text=defined.text or f"cudalab_class_{node.first}", kind="name")
            head = next(i for i, word in enumerate(own) if word.text in ("{", ":"))
            named = own if defined.text else [*own[:head], name, *own[head:]]
            variable = [*words[node.first : defined.first], name]
            yield node.first, defined.last, [*named, words[node.last - 1], *variable]
        elif node.kind == "block":
            yield from _apart(words, node.children)
        elif node.kind in _CONTROLLING:
            inside = (each for each in node.children if each.kind in _CONTROLLING | {"block"})
            yield from _apart(words, inside)


def _statement(words: Words, node: Node, *, alone: bool = False) -> Statement:
    """The statement that a node of the tree is; `alone`: of a branch or loop, without a block."""
    own = words[node.first : node.last]
    if node.kind in _CONTROLLING:
        return _controlled(words, node, alone=alone)
    if node.kind == "block":
        inside = [_statement(words, child) for child in node.children]
        return Statement("block", words, node.first, node.last, parts=inside)
    if node.kind == "label":
        raise NotCoveredError(f"{own[0].place}: a label")
    if own[-1].text not in (";", "}"):
        raise NotCoveredError(f"{own[0].place}: a statement that is not understood")
    is_other = node.kind == "switch" or (own[0].text in CLASS_KEYS and not node.declarators)
    statement = Statement("other", words, node.first, node.last, alone=alone)
    if not is_other:
        statement.kind, statement.declared = "simple", _locals(words, node)
    return statement


def _controlled(words: Words, node: Node, *, alone: bool) -> Statement:
    """A branch or a loop, with the statements in it."""
    opening = node.children[0].last + 1 if node.kind == "do" else node.at
    end = close(words, opening)
    bodies = [each for each in node.children if (each.last < opening or each.first > end)]
    condition, first, step = words[opening + 1 : end], words[:0], words[:0]
    declared: Sequence[Local] = ()
    kind = "if constexpr" if node.kind == "if" and "constexpr" in node.words else node.kind
    heads = split([*condition, words[end]._replace(text=";")], ";")[:-1]
    if kind == "for" and len(heads) != 3:
        return Statement("other", words, node.first, node.last, alone=alone)
    if node.kind == "if" and len(heads) > 1:
        raise NotCoveredError(f"{words[node.first].place}: an if with a declaration")
    if kind == "for":
        first, condition, step = heads
        declared = _locals(words, node.children[0])
    statement = Statement(kind, words, node.first, node.last, alone=alone)
    statement.opening, statement.closing = opening, end
    statement.first, statement.condition, statement.step = first, condition, step
    statement.declared = declared
    statement.parts = [_statement(words, each, alone=True) for each in bodies]
    return statement


# Declarations -------------------------------------------------------------------------------------


def locals_of(words: Words) -> Sequence[Local]:
    """The variables that the words of a statement declare, or the first part of a `for`."""
    return _declared(tuple(words)) if words else ()


@lru_cache(maxsize=2**14)  # each pass asks for the same statements
def _declared(statement: tuple[Token, ...]) -> Sequence[Local]:
    end = () if statement[-1].text == ";" else (statement[-1]._replace(text=";", kind="sign"),)
    words = [*statement, *end]
    first = nodes(words)[0]
    return _locals(words, first) if first.last == len(words) else ()


def _locals(words: Words, node: Node) -> Sequence[Local]:
    """The variables of each thread that a declaration declares."""
    is_read = all(each.kind != "unknown" for each in node.children)
    if node.kind != "declaration" or words[node.first].text in _NO_LOCALS or not is_read:
        return ()
    spec, align = _without_alignment(words[node.first : node.at])
    if spec and spec[0].text in CLASS_KEYS:  # which a class's name may have before it
        spec = spec[1:]
    result = []
    for each in node.declarators:
        pointer = words[each.first : each.name]
        if texts(pointer) == ["(", "&"]:
            pointer = pointer[1:]
        elif "(" in texts(pointer):
            return ()
        array, value = words[each.array : each.value], words[each.value : each.last]
        name = words[each.name].text
        result.append(
            Local(spec=spec, pointer=pointer, name=name, array=array, value=value, align=align)
        )
    return tuple(result)


def _without_alignment(words: Words) -> tuple[Words, Words]:
    """The specifiers of a declaration without attributes, and its alignment."""
    spec: Words = []
    align: Words = []
    i = 0
    while i < len(words):
        start, is_align = i, words[i].text in _ALIGNING
        if is_align or texts(words[i : i + 2]) == ["[", "["]:
            i = close(words, i + is_align)
            align += words[start : i + 1] if is_align else []
        else:
            spec.append(words[i])
        i += 1
    return spec, align
