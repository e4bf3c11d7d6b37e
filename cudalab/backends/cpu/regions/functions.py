"""What stands at the top level of a file as the passes use it, made from the tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.syntax import TYPES, Statement
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, close
from cudalab.language.scopes import Node, Scope
from cudalab.language.tokens import ATTRIBUTES, Token, names_in, spaced, split, texts

DEFAULT_BOUND = "1024"
_NOT_TYPED = frozenset(
    {"__device__", "__host__", "inline", "static", "__forceinline__", "__noinline__", "extern"}
    | {"__inline__", "__inline"}  # as g++ and NVIDIA's examples have it, too
    | {"constexpr", "__global__"}
)
_QUALIFIERS = frozenset({"const", "typename", "struct", "volatile"})


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
    is_kernel: bool
    bounds: str  # the most threads of a block, as the text says
    head: Words  # all up to the body
    specialized: Words  # `<int>`, of a template's specialization
    scope: Scope  # of its parameters
    numbers: tuple[int, ...] = ()  # the places of its template's parameters that are its own

    @cached_property
    def statements(self) -> list[Statement]:
        """The statements of its body; passes put others in their place."""
        return syntax.statements(self.body)

    @cached_property
    def own_names(self) -> set[str]:
        """The names of its parameters and local variables."""
        variables = {each.name for each in syntax.variables(self.statements)}
        return variables | {each.name for each in self.parameters}

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


@dataclass
class Declaration:
    """A declaration at the top level of a file."""

    node: Node
    words: Words  # with the head of a template
    function: Function | None  # that it defines, unless this stays as it is

    @property
    def head(self) -> Words:
        """All words but a function's body."""
        return self.function.head if self.function else self.words

    @cached_property
    def names(self) -> set[str]:
        """The names by which what it declares can be used.

        An operator is used with its class, or with those of its operands.
        """
        node = self.node
        of_class, colons, name = node.text.rpartition("::")
        if node.kind == "function" and name.startswith(("operator", "~")):
            if colons:
                return {of_class.rpartition("::")[2].partition("<")[0]}
            own = {each.name for parameter in node.parameters for each in parameter.names}
            behind = self.words[node.at - node.last :]  # the operator itself
            operands = behind[: texts(behind).index("{")]
            return names_in(operands) - own - TYPES - _QUALIFIERS
        classes = (each.text for each in (node, *node.children) if each.kind in ("class", "enum"))
        names = {
            *(each.name for each in node.names),
            *(each.rpartition("::")[2] for each in classes),
        }
        is_read = names - {""} and all(each.kind != "unknown" for each in node.children)
        before = self.words[: _until(self.words, "=({[;")]
        return names - {""} | (set() if is_read else names_in(before[-1:]))

    @cached_property
    def entries(self) -> set[str]:
        """The names of classes in it and of their methods."""
        nodes = [each for each in self.node.walk() if each.kind in ("class", "function")]
        return {each.text.rpartition("::")[2] for each in nodes} - {""}

    @property
    def brace(self) -> int:
        """Where its first brace opens among the words; their number if there is none."""
        return _until(self.words, "{")


def _until(words: Words, signs: str) -> int:
    """Where the first of the signs stands; the number of words if there is none."""
    return next((i for i, word in enumerate(words) if word.text in signs), len(words))


def declarations(root: Node, words: Words) -> list[Declaration]:
    """What stands at the top level."""
    found = []
    for outer in root.children:
        node, template = outer, words[:0]
        while node.kind in ("template", "linkage"):
            if node.kind == "template":
                template = words[node.first : node.children[0].first]
            node = node.children[0]
        if node.kind == "namespace":
            raise NotCoveredError(f"{words[node.first].place}: a namespace")
        function = None
        if node.kind == "function":
            function = _function(words, node, outer.first, template)
        found.append(Declaration(node, words[outer.first : node.last], function))
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
    return Function(
        name=name,
        template=template,
        returns=typed,
        parameters=[_parameter(words, each) for each in node.parameters],
        body=words[block.first + 1 : block.last - 1],
        is_kernel="__global__" in texts(head),
        bounds=bounds,
        head=head,
        specialized=specialized,
        scope=node.scope or Scope("function"),
    )


def _parameter(words: Words, node: Node) -> Parameter:
    value = next((each for each in node.children if each.kind == "initializer"), None)
    declared = words[node.first : value.first if value else node.last]
    default = words[value.first + 1 : value.last] if value else []
    return Parameter(declared, node.names[-1].name if node.names else "", default)
