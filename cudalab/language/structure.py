"""What a file declares outside of functions: functions, kernels and device variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field

from cudalab.errors import KernelCompileError
from cudalab.language import arithmetic
from cudalab.language.macros import macros
from cudalab.language.scopes import Node, Scope
from cudalab.language.tokens import Lines, Words, split, tokenize
from cudalab.language.tree import Reader

_DEVICE = frozenset({"__global__", "__device__"})
_VARIABLES = ("__managed__", "__constant__", "__device__")
# A constant may be read by the host, and is stored elsewhere.
_STORED_ELSEWHERE = frozenset({"extern", "constexpr", "inline", "__shared__"})
_QUALIFIERS = frozenset({"const", "__restrict__", "__restrict", "restrict", "volatile", "struct"})


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A declaration of a `__global__` function."""

    name: str
    scope: str  # `outer::inner::`, for a kernel defined by its qualified name
    types: tuple[str, ...]  # its parameters'
    is_template: bool
    is_inside: bool  # of a namespace or class
    has_defaults: bool
    bounds: str  # the first argument of __launch_bounds__, or nothing
    body: int | None = None  # where a body begins that returns nothing, a position in the text
    body_end: int | None = None  # the closing brace's position in the text; None without a body
    template_parameters: int = 0  # how many a template has; 0 if their number is not certain
    line: int = 0

    @property
    def signature(self) -> str:
        """The types in the same form for all declarations of a kernel."""
        return ", ".join(
            " ".join(word for word in type_.split() if word not in _QUALIFIERS)
            for type_ in self.types
        )

    @property
    def references(self) -> int:
        """A bit for each parameter, set for a reference."""
        return sum(1 << i for i, type_ in enumerate(self.types) if type_.endswith("&"))


@dataclass
class Structure:
    """The declarations in one file; numbers are indices of tokens."""

    kernels: list[Kernel] = field(default_factory=list)
    device_functions: list[Declared] = field(default_factory=list)
    functions: list[tuple[int, int]] = field(default_factory=list)
    _: KW_ONLY
    variables: list[int] = field(default_factory=list)  # words such as `__device__`, to be replaced
    # Names of those outside of all namespaces, and which of them are constant.
    own_variables: dict[str, bool] = field(default_factory=dict)
    host_functions: set[str] = field(default_factory=set)  # names; a kernel may have one of them


@dataclass(frozen=True)
class Declared:
    """A declaration outside of functions, or a lambda expression in one."""

    node: Node
    first: int  # with the head of a template
    _: KW_ONLY
    is_inside: bool

    @property
    def body(self) -> tuple[int, int]:
        """The braces of a function's body; twice the end of the declaration without one."""
        body = next((each for each in self.node.children if each.kind == "block"), None)
        return (body.first, body.last - 1) if body else (self.node.last, self.node.last)


class CudaFile:
    """A text of CUDA C++: its words and macros and, once it is read, what it declares."""

    def __init__(self, text: str) -> None:
        """Find the words and the macros that it defines."""
        self.text, tokens = text, tokenize(text)
        self.directives = [token for token in tokens if token.kind == "directive"]
        self.words = Words([t for t in tokens if t.kind != "directive"], self.directives)
        self.macros, self.lines = macros(self.directives), Lines(text)
        self.root, self.structure = Node("file", 0, 0), Structure()
        self.bodies: list[Node] = []  # functions and lambda expressions for the device

    def read(self, scope: Scope, marks: frozenset[str]) -> None:
        """Read the tree into `scope`; functions for the device have one of these `marks`."""
        self.root = Reader(self.words).file(scope)
        self.structure = _scan(self.root, self.words, self.lines)
        self.bodies = list(arithmetic.device_functions(self.root, self.words, marks))


def _scan(root: Node, words: Words, lines: Lines) -> Structure:
    """The structure of a file that has been read."""
    structure = Structure()
    for each in _declared(root, None, is_inside=False):
        node, (brace, end) = each.node, each.body
        is_function = node.kind in ("function", "lambda")
        if is_function:
            structure.functions.append((brace, end))
            if not _DEVICE.isdisjoint(words.texts[each.first : brace]):
                structure.device_functions.append(each)
        if "__global__" in node.words:
            structure.kernels.append(_kernel(each, words, lines))
        elif node.kind == "function" or "function" in node.words:
            structure.host_functions |= {name.name for name in node.names}
        elif node.kind == "declaration" and each.first == node.first:
            first = next((part.last for part in node.children if part.kind == "class"), node.first)
            texts = words.texts[first : node.last]
            word = next((word for word in _VARIABLES if word in texts), None)
            is_own = not each.is_inside and node.words.isdisjoint({"__shared__", "extern"})
            if word is not None and is_own:
                constant = word == "__constant__"
                structure.own_variables |= {name.name: constant for name in node.names}
            if word is not None and not _is_stored_elsewhere(node, first, words):
                structure.variables.append(first + texts.index(word))
    return structure


def _is_stored_elsewhere(node: Node, first: int, words: Words) -> bool:
    """Whether a variable of a declaration is constant: not only what it points to."""
    texts = words.texts
    begin = node.declarators[0].first if node.declarators else node.last
    is_constant = "const" in _outside_of_angles(texts[first:begin])
    for each in node.declarators:
        own = texts[each.first : each.name]
        behind = own[::-1].index("*") if "*" in own else None
        if is_constant if behind is None else "const" in own[len(own) - behind :]:
            return True
    return not _STORED_ELSEWHERE.isdisjoint(texts[first:begin])


def _outside_of_angles(texts: Sequence[str]) -> Iterator[str]:
    """The words of a type without the arguments of its template."""
    depth = 0
    for text in texts:
        depth += {"<": 1, ">": -1}.get(text, 0)
        if not depth:
            yield text


def _declared(node: Node, first: int | None, *, is_inside: bool) -> Iterator[Declared]:
    """Walk over the declarations in a node; `first` is where a template begins around it."""
    for child in node.children:
        begin = child.first if first is None else first
        if child.kind in ("namespace", "class"):
            named = is_inside or bool(child.text)
            yield from _declared(child, None, is_inside=named)
        elif child.kind in ("linkage", "template"):
            outer = begin if child.kind == "template" else None
            yield from _declared(child, outer, is_inside=is_inside)
        elif child.kind in ("function", "declaration", "lambda"):
            yield Declared(child, begin, is_inside=is_inside)
            if child.kind == "declaration":
                yield from _declared(child, None, is_inside=is_inside)
        elif child.kind == "initializer":
            yield from _declared(child, None, is_inside=is_inside)


def _kernel(each: Declared, words: Words, lines: Lines) -> Kernel:
    """Read the declaration of a `__global__` function."""
    node, texts = each.node, words.texts
    short = node.text.rpartition("::")[2]
    named = next((k for k in range(node.at - 1, node.first, -1) if texts[k] == short), 0)
    if not named:
        line = lines[words.tokens[node.first].start]
        raise KernelCompileError(
            f"line {line}: the name of the kernel cannot be read: nvcc takes letters of ASCII only"
        )
    bounds = ""
    if "__launch_bounds__" in texts[each.first : node.at]:
        at = texts.index("__launch_bounds__", each.first) + 2
        bounds = " ".join(texts[at : words.end_of(at, node.at, ",")])
    template = words.tokens[each.first + 2 : node.first - 1]
    is_defined, is_void = node.kind == "function", "void" in texts[each.first : named]
    is_certain = not {"template", "..."} & set(texts[each.first + 1 : node.first])
    return Kernel(
        name=short,
        scope=node.text.removesuffix(short),
        types=tuple(type_of_parameter(words, parameter) for parameter in node.parameters),
        is_template=each.first != node.first or ">" in texts[named : node.at],
        is_inside=each.is_inside or "::" in node.text,
        has_defaults=any("=" in texts[one.first : one.last] for one in node.parameters),
        bounds=bounds,
        template_parameters=len(split(template)) if is_certain else 0,
        body=words.tokens[node.children[-1].first].end if is_defined and is_void else None,
        body_end=words.tokens[node.last - 1].end if is_defined else None,
        line=lines[words.tokens[named].start],
    )


def type_of_parameter(words: Words, parameter: Node) -> str:
    """The words of a parameter without its name and its default."""
    texts = words.texts[parameter.first : parameter.last]
    texts = texts[: texts.index("=")] if "=" in texts else texts
    for name in parameter.names[-1:]:
        if name.name in texts:
            texts.reverse()
            texts.remove(name.name)
            texts.reverse()
    return " ".join(texts)
