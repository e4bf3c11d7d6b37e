"""Functions, statements and declarations as the passes use them, made from the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache

from cudalab.backends.cpu.regions.words import NotCoveredError, Words, close, of_text
from cudalab.language.scopes import BASIC, Name, Node, Scope
from cudalab.language.specifiers import CLASS_KEYS
from cudalab.language.tokens import ATTRIBUTES, Token, closing_angle, names_in, spaced, split, texts
from cudalab.language.tree import Reader

TYPES = BASIC | {"auto"}
_QUALIFIERS = frozenset({"const", "typename", "struct", "volatile"})
# Words that begin what declares no variable of each thread.
_NO_LOCALS = frozenset({"static", "constexpr", "__shared__", "extern"})
_BEFORE_DECLARATION: tuple[list[str], ...] = ([], ["const"], [";"], ["{"], ["}"], ["("])
_NOT_TYPED = frozenset(
    {"__device__", "__host__", "inline", "static", "__forceinline__", "__noinline__", "extern"}
    | {"__inline__", "__inline"}  # as g++ and NVIDIA's examples have it, too
    | {"constexpr", "__global__"}
)
LOOPS = ("for", "while", "do")
_CONTROLLING = ("if", *LOOPS)
_ALIGNING = frozenset({"__align__", "alignas"})
DEFAULT_BOUND = "1024"


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
        """Whether it is declared to run on a GPU."""
        return any(word.text in ("__device__", "__global__") for word in self.head)

    @property
    def template_names(self) -> set[str]:
        """The names of the template's parameters."""
        return names_in(self.template) - TYPES - {"template", "class", "typename"}

    @property
    def template_parameters(self) -> list[Words]:
        """The parameters of its template, without their defaults."""
        parts = [(part, texts(part)) for part in split(self.template[2:-1])]
        return [part[: words.index("=")] if "=" in words else part for part, words in parts]

    @property
    def returns_nothing(self) -> bool:
        return texts(self.returns) == ["void"]


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
            inside = (each for each in node.children if each.kind in (*_CONTROLLING, "block"))
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


# Functions ----------------------------------------------------------------------------------------


def functions(root: Node, words: Words) -> list[Function]:
    """The functions that are defined at the top level; everything else is ignored."""
    found = []
    for outer in root.children:
        node, template = outer, words[:0]
        while node.kind in ("template", "linkage"):
            if node.kind == "template":
                template = words[node.first : node.children[0].first]
            node = node.children[0]
        if node.kind == "namespace":
            raise NotCoveredError(f"{words[node.first].place}: a namespace")
        if node.kind == "function" and (function := _function(words, node, outer.first, template)):
            found.append(function)
    return found


def _function(words: Words, node: Node, start: int, template: Words) -> Function | None:
    """The function that a node defines, whose head begins at `start`; None for an operator."""
    block = next(child for child in node.children if child.kind == "block")
    head, name = words[start : block.first], node.text.rpartition("::")[2]
    if words[node.at - 2].text == "~":  # a destructor
        return None
    named = max(i for i in range(start, node.at) if words[i].text == name)
    bounds, typed, i = DEFAULT_BOUND, list[Token](), node.first
    while i < named:
        if words[i].text in ATTRIBUTES and words[i + 1].text == "(":
            end = close(words, i + 1)
            if words[i].text == "__launch_bounds__":
                bounds = spaced(split(words[i + 2 : end])[0])
            i = end
        elif words[i].text not in _NOT_TYPED and words[i].kind != "string":
            typed.append(words[i])
        i += 1
    specialized = words[named + 1 : node.at]
    if not typed or "operator" in texts(head) or (specialized and len(template) != 3):
        return None
    parameters = (parameter_of(words[each.first : each.last]) for each in node.parameters)
    return Function(
        name=name,
        template=template,
        returns=typed,
        parameters=[each for each in parameters if each],
        body=words[block.first + 1 : block.last - 1],
        statements=[],
        is_kernel="__global__" in texts(head),
        bounds=bounds,
        head=head,
        specialized=specialized,
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
    """The names by which the class, function or other entity after `head` can be used."""
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
