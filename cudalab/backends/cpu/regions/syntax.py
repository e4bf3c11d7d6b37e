"""Functions, statements and declarations, as far as barriers and locals ask for them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.words import NotCoveredError, Words, close, spaced, texts
from cudalab.language.tokens import closing_angle, split

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = frozenset(
    {"void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed"}
    | {"auto"}
)
_POINTING = frozenset({"*", "&", "const", "&&", "__restrict__"})
_QUALIFIERS = frozenset({"const", "typename", "struct", "volatile"})
# Words that begin no declaration of a local variable.
_STATEMENTS = frozenset(
    {"return", "break", "continue", "goto", "delete", "new", "throw", "else", "case", "default"}
    | {"using", "typedef", "static_assert", "static", "constexpr", "__shared__", "extern", "asm"}
    | {"operator", "sizeof", "this", "__asm__", "struct", "class", "union", "enum"}
)
_NOT_TYPED = frozenset(
    {"__device__", "__host__", "inline", "static", "__forceinline__", "__noinline__", "extern"}
    | {"__inline__", "__inline"}  # as g++ and NVIDIA's examples have it, too
    | {"constexpr", "__global__"}
)
_ALIGNING = frozenset({"__align__", "alignas"})
_WITH_ARGUMENTS = frozenset({"__launch_bounds__", "__attribute__", "__maxnreg__", "__align__"})
DEFAULT_BOUND = "1024"


@dataclass(eq=False)
class Statement:
    """A statement and the statements in it."""

    kind: str  # simple, block, if, if constexpr, for, while, do; other: only moved as a whole
    own: Words  # a simple statement's words; else its words without those of what follows
    condition: Words = field(default_factory=list)
    _: KW_ONLY
    first: Words = field(default_factory=list)  # of a for loop, as is `step`
    step: Words = field(default_factory=list)
    parts: list[Statement] = field(default_factory=list)  # of a block; then, else; a loop's body

    @cached_property
    def declared(self) -> list[Local]:
        """The variables that it declares itself, a `for` loop in its first part."""
        return locals_of(self.own if self.kind == "simple" else self.first)

    @property
    def inside(self) -> list[Statement]:
        """The statements of a block, or this one."""
        return self.parts if self.kind == "block" else [self]

    @property
    def words(self) -> Words:
        """All words of the statement, in the order of the text."""
        if self.kind in ("simple", "other"):
            return self.own
        if self.kind == "block":
            inside = [word for part in self.parts for word in part.words]
            return [self.own[0], *inside, self.own[-1]]
        if self.kind == "do":
            body, end = self.parts[0].words, self.own[1:]
            return [self.own[0], *body, *end[:2], *self.condition, *end[2:]]
        if self.kind == "for":
            body, own = self.parts[0].words, self.own
            head = [*own[:2], *self.first, own[2], *self.condition, own[3], *self.step, own[4]]
            return [*head, *body]
        opening = 3 if self.kind == "if constexpr" else 2
        words = [*self.own[:opening], *self.condition, self.own[opening], *self.parts[0].words]
        return [*words, *self.own[opening + 1 :], *(self.parts[1].words if self.parts[1:] else [])]

    def walk(self) -> Iterator[Statement]:
        """Visit this statement and all in it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(kw_only=True)
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
        """What a variable `= …` is set to."""
        return self.value[1:] if self.value and self.value[0].text == "=" else self.value


@dataclass
class Parameter:
    """A parameter of a function."""

    words: Words  # its declaration, without a default
    name: str
    default: Words

    @property
    def is_reference(self) -> bool:
        return "&" in texts(self.words)

    @property
    def is_constant(self) -> bool:
        """Whether the function cannot change what is passed by reference."""
        return "const" in texts(self.words) and "*" not in texts(self.words)


@dataclass(eq=False, kw_only=True)
class Function:
    """The definition of a function at namespace scope."""

    name: str
    template: Words  # `template <...>`, or nothing
    returns: Words
    parameters: list[Parameter]
    body: Words
    statements: list[Statement]
    is_kernel: bool
    bounds: str  # the most threads of a block, as the text says
    head: Words  # all up to the body
    specialized: Words  # `<int>`, of a template's specialization
    numbers: tuple[int, ...] = ()  # the places of its template's parameters that are its own

    @property
    def is_device(self) -> bool:
        """Whether the text says that a GPU runs it."""
        return any(word.text in ("__device__", "__global__") for word in self.head)

    @property
    def template_names(self) -> set[str]:
        """The names of its template's parameters."""
        names = {word.text for word in self.template if word.kind == "name"}
        return names - TYPES - {"template", "class", "typename"}

    @property
    def returns_nothing(self) -> bool:
        return texts(self.returns) == ["void"]


# Statements ---------------------------------------------------------------------------------------


def statements(words: Words) -> list[Statement]:
    """The statements of a function's body."""
    result, i = [], 0
    while i < len(words):
        statement, i = _statement(words, i)
        result.append(statement)
    return result


def _statement(words: Words, start: int) -> tuple[Statement, int]:
    """The statement that begins at `start`, and where it ends."""
    text = words[start].text
    if text == "{":
        end = close(words, start)
        inside = statements(words[start + 1 : end])
        return Statement("block", [words[start], words[end]], parts=inside), end + 1
    if text == "if":
        return _branch(words, start)
    if text in ("for", "while", "switch"):
        return _loop(words, start)
    if text == "do":
        body, i = _statement(words, start + 1)
        end = close(words, i + 1)
        own = [words[start], *words[i : i + 2], *words[end : end + 2]]
        return Statement("do", own, words[i + 2 : end], parts=[body]), end + 2
    i = start
    while i < len(words) and words[i].text != ";":
        if i == start + 1 and words[i].text == ":" and words[start].kind == "name":
            raise NotCoveredError(f"{words[start].place}: a label")
        i = close(words, i) + 1 if words[i].text in ("(", "[", "{") else i + 1
    kind = "other" if text in ("struct", "class", "union", "enum") else "simple"
    return Statement(kind, words[start : i + 1]), i + 1


def _branch(words: Words, start: int) -> tuple[Statement, int]:
    kind, opening = "if", start + 1
    if words[opening].text == "constexpr":
        kind, opening = "if constexpr", opening + 1
    end = close(words, opening)
    condition = words[opening + 1 : end]
    if ";" in texts(condition):
        raise NotCoveredError(f"{words[start].place}: an if with a declaration")
    own = [*words[start : opening + 1], words[end]]
    then, i = _statement(words, end + 1)
    parts = [then]
    if i < len(words) and words[i].text == "else":
        own.append(words[i])
        otherwise, i = _statement(words, i + 1)
        parts.append(otherwise)
    return Statement(kind, own, condition, parts=parts), i


def _loop(words: Words, start: int) -> tuple[Statement, int]:
    end = close(words, start + 1)
    head = words[start + 2 : end]
    if words[start].text == "switch":
        i = close(words, end + 1) + 1
        return Statement("other", words[start:i]), i
    body, i = _statement(words, end + 1)
    if words[start].text == "while":
        return Statement("while", [*words[start : start + 2], words[end]], head, parts=[body]), i
    semicolon = words[end]._replace(text=";")
    pieces = split([*head, semicolon], ";")[:-1]
    if len(pieces) != 3:
        return Statement("other", words[start:i]), i
    first, condition, step = pieces
    own = [*words[start : start + 2], semicolon, semicolon, words[end]]
    return Statement("for", own, condition, first=first, step=step, parts=[body]), i


# Declarations -------------------------------------------------------------------------------------


def locals_of(words: Words) -> list[Local]:
    """The variables that a simple statement, or the first part of a `for`, declares."""
    words = words[:-1] if words and words[-1].text == ";" else words
    i, typed = 0, False
    while i < len(words) and words[i].text in _ALIGNING:
        i = close(words, i + 1) + 1
    align = words[:i]
    while texts(words[i : i + 2]) == ["[", "["]:  # an attribute
        i = close(words, i) + 1
    start = i
    if i >= len(words) or words[i].text in _STATEMENTS:
        return []
    while i < len(words) and words[i].text in _QUALIFIERS | TYPES:
        typed |= words[i].text in TYPES
        i += 1
    if not typed:
        i = _end_of_type(words, i)
    while i < len(words) and words[i].text in ("const", *TYPES):
        i += 1
    spec = words[start:i]
    while i < len(words) and words[i].text in _ALIGNING:  # behind the type, too
        end = close(words, i + 1) + 1
        align, i = [*align, *words[i:end]], end
    result = []
    for part in split(words[i:]) if _may_name(words, i) else ():
        local = _declared(spec, part)
        if local is None:
            return []
        local.align = align
        result.append(local)
    return result


def _may_name(words: Words, i: int) -> bool:
    """Whether the name of a variable may follow its type: in most statements an operator does."""
    if i >= len(words):
        return False
    return (
        words[i].kind == "name"
        or words[i].text in _POINTING
        or texts(words[i : i + 2]) == ["(", "&"]
    )


def _end_of_type(words: Words, i: int) -> int:
    """The index after a type's name that begins at `i`; the end of `words` if there is none."""
    if i < len(words) and words[i].text == "::":
        i += 1
    if i >= len(words) or words[i].kind != "name":
        return len(words)
    i += 1
    while i < len(words):
        if words[i].text == "<" and (angle := closing_angle(words, i)):
            i = angle + 1
        elif words[i].text == "::":
            i += 2
        else:
            break
    return i


def _declared(spec: Words, part: Words) -> Local | None:
    i = 0
    while i < len(part) and part[i].text in _POINTING:
        i += 1
    pointer = part[:i]
    if texts(part[i : i + 2]) == ["(", "&"] and texts(part[i + 3 : i + 4]) == [")"]:
        pointer, name, i = part[i + 1 : i + 2], part[i + 2], i + 4
    elif i < len(part) and part[i].kind == "name":
        name, i = part[i], i + 1
    else:
        return None
    end = i
    while end < len(part) and part[end].text == "[":
        end = close(part, end) + 1
    if end < len(part) and part[end].text not in ("=", "(", "{"):
        return None
    return Local(spec=spec, pointer=pointer, name=name.text, array=part[i:end], value=part[end:])


# Functions ----------------------------------------------------------------------------------------


def functions(words: Words) -> list[Function]:
    """The functions that are defined at the top level; what else is there is of no concern."""
    found = []
    start = i = 0
    while i < len(words):
        text = words[i].text
        if text == ";":
            start = i + 1
        elif text in ("(", "["):
            i = close(words, i)
        elif text == "{":
            end = close(words, i)
            head = words[start:i]
            if texts(head[:1]) in (["namespace"], ["extern"]) and len(head) <= 2 + 2 * (
                head[0].text == "namespace"
            ):
                raise NotCoveredError(f"{words[i].place}: a namespace")
            function = _function(head, words[i + 1 : end])
            if function:
                found.append(function)
            if function or (head and head[-1].text == ")"):
                start = end + 1
            i = end
        i += 1
    return found


def _function(head: Words, body: Words) -> Function | None:
    """The function whose text up to its body is `head`; None for a class or a specialization."""
    whole, template = head, head[:0]
    if head and head[0].text == "template":
        angle = closing_angle(head, 1) or 1
        template, head = head[: angle + 1], head[angle + 1 :]
    words = texts(head)
    if not words or words[0] in ("struct", "class", "union", "enum") or "operator" in words:
        return None
    bounds, typed, i = DEFAULT_BOUND, [], 0
    while i < len(head):
        if head[i].text in _WITH_ARGUMENTS:
            end = close(head, i + 1)
            if head[i].text == "__launch_bounds__":
                bounds = spaced(split(head[i + 2 : end])[0])
            i = end
        elif head[i].text not in _NOT_TYPED and head[i].kind != "string":
            typed.append(head[i])
        i += 1
    opening = next((i for i, word in enumerate(typed) if word.text == "("), 0)
    named = next((i for i, word in enumerate(typed[:opening]) if word.text == "<"), opening)
    if texts(template) != ["template", "<", ">"] or typed[opening - 1].text != ">":
        named = opening
    if named < 2 or typed[named - 1].kind != "name" or "=" in texts(typed[:opening]):
        return None
    parameters = [
        parameter
        for part in split(typed[opening + 1 : close(typed, opening)])
        if (parameter := parameter_of(part))
    ]
    return Function(
        name=typed[named - 1].text,
        template=template,
        returns=typed[: named - 1],
        parameters=parameters,
        body=body,
        statements=[],
        is_kernel="__global__" in words,
        bounds=bounds,
        head=whole,
        specialized=typed[named:opening],
    )


def parameter_of(part: Words) -> Parameter | None:
    """The parameter that the words declare; None if they are `void`."""
    words = texts(part)
    default: Words = []
    if "=" in words:
        part, default = part[: words.index("=")], part[words.index("=") + 1 :]
        words = texts(part)
    if words in ([], ["void"]):
        return None
    for i, word in enumerate(words):
        if word == "(" and words[i + 1] == "&" and words[i + 3] == ")":  # a reference to an array
            return Parameter(part, words[i + 2], default)
    plain = words[: words.index("[")] if "[" in words else words
    named = len(plain) > 1 and part[len(plain) - 1].kind == "name" and plain[-1] not in TYPES
    return Parameter(part, plain[-1] if named else "", default)


def _operands(head: Words) -> set[str]:
    """The classes that an operator outside of all classes takes."""
    opening = len(head) - 1 - texts(head[::-1]).index(")")  # `operator()` is in a class
    while texts(head)[opening] != "(":
        opening -= 1
    names: set[str] = set()
    for part in split(head[opening + 1 : close(head, opening)]):
        parameter = parameter_of(part)
        own = parameter.name if parameter else ""
        names |= {word.text for word in part if word.kind == "name" and word.text != own}
    return names - TYPES - _QUALIFIERS


def defined(head: Words) -> set[str]:
    """The names by which one may use what follows `head`: a class, a function, or anything else."""
    if head and head[0].text == "template":
        head = head[(closing_angle(head, 1) or 0) + 1 :]
    words = texts(head)
    for i, word in enumerate(words):
        if word in ("struct", "class", "union") and i + 1 < len(head):
            return set(words[i + 1 : words.index(":") if ":" in words else None])
    if "(" not in words or "=" in words:
        return set(words)
    before = words[: words.index("(")]
    if "operator" in before:
        at = before.index("operator")
        if before[at - 1] != "::":
            return _operands(head)
        before = before[: at - 1]
    if before[-1:] == [">"]:  # a specialization, or what a class template has
        before = before[: len(before) - before[::-1].index("<") - 1]
    return set(before[-1:])
