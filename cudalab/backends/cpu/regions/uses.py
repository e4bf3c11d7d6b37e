"""What statements do with variables: each place that names one is a plain read, or may change it.

A plain read is an operand of the language's own operators, an index, a condition, what a copy is
made of, or an argument that a function is known to take by value. Whatever else stands around a
variable's name may change it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cudalab.backends.cpu.regions.given import BUILT_IN, Given
from cudalab.backends.cpu.regions.syntax import Statement
from cudalab.backends.cpu.regions.words import Words, is_dereference
from cudalab.language.scopes import UNKNOWN, Node, Scope, Type
from cudalab.language.tokens import Token, split, texts
from cudalab.language.tree import Reader
from cudalab.language.types import of_variable, type_of

# What language/arithmetic.py puts before the target of an assignment, and before what another
# operand is shifted or divided by.
INTO = ("::", "cudalab", "::", "cudalab_into", "(")
_BY = frozenset({"cudalab_by", "cudalab_zero_too"})
_IDLE = frozenset({"literal", "sizeof", "empty", "jump", "label", "alias", "assembly", "enum"})
_IN_TURN = frozenset({"block", "if", "while", "switch", "do", "else", "expression", "macro"})


class Change(NamedTuple):
    """A place at which a variable may be changed."""

    name: str
    through: bool  # what it points to, or an element of it
    words: Words  # from the name on
    is_plain: bool  # an assignment, as in `x = 1` or `++x`; else anything may be done to it


@dataclass
class Found:
    """What a statement does."""

    changes: list[Change] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)  # the names of the functions
    elsewhere: bool = False  # it may change what has no name here
    pointers: bool = False  # it follows some, by `*` or `->`


class Uses:
    """What the statements of a function do with the variables that they name."""

    def __init__(self, given: Given, scope: Scope, *, returns_reference: bool) -> None:
        """`scope` has the function's parameters."""
        self.given, self.returns_reference = given, returns_reference
        self.scope = Scope("function", Scope("block", scope))
        self.arrays: set[str] = set()  # of each thread
        self.shared: set[str] = set()
        self.lambdas: dict[str, list[Words]] = {}  # the parameters of those that have a name
        self._known: dict[tuple[Token, ...], Found] = {}

    @property
    def locals(self) -> set[str]:
        """The variables declared by the statements that have been looked at."""
        return set(self.scope.names)

    def type_of(self, name: str) -> Type:
        """The type of a variable, as far as the text says it."""
        found = self.scope.find(name)
        return of_variable(found) if found is not None else UNKNOWN

    def changes(self, statements: Iterable[Statement]) -> Iterator[Change]:
        """What statements change themselves, but not those in them."""
        for statement in statements:
            for words in statement.pieces:
                yield from self.of(words).changes

    def of(self, words: Words) -> Found:
        """What a statement, or the part of one, does with variables."""
        key = tuple(words)
        if key not in self._known:
            walk = _Walk(self, words)
            for node in walk.reader.statements(0, len(words), self.scope):
                walk.visit(node)
                walk.found.pointers |= any(map(walk.follows_pointer, node.walk()))
            self._known[key] = walk.found
        return self._known[key]


class _Walk:
    """Goes through the tree of a statement."""

    def __init__(self, uses: Uses, words: Words) -> None:
        self.uses, self.given, self.own = uses, uses.given, words
        self.reader = Reader(words)
        self.words = self.reader.words
        self.found = Found()
        self.returns_reference = uses.returns_reference

    def visit(self, node: Node, *, lent: bool = False) -> None:
        """Note what a node does; `lent`: whoever has its value may refer to its variable."""
        if node.kind in _IDLE:
            return
        rule = getattr(self, f"_{node.kind}", None)
        if rule is not None:
            rule(node, lent)
        elif node.kind in _IN_TURN:
            self._each(node.children)
        else:
            self._lend_all(node.first, node.last)

    def follows_pointer(self, node: Node) -> bool:
        """Whether an expression itself is what a pointer leads to, as `*p` is in `< *p`, too."""
        if node.kind == "unknown":
            return any(is_dereference(self.own, i) for i in range(node.first, node.last))
        if node.kind == "member":
            return self.words.texts[node.at] == "->"
        is_alone = node.kind == "unary" or (node.children and node.children[0].kind == "unknown")
        return node.text == "*" and bool(is_alone)

    def _each(self, nodes: Iterable[Node], *, lent: bool = False) -> None:
        for node in nodes:
            self.visit(node, lent=lent)

    def _lend_all(self, first: int, last: int) -> None:
        """Lend whatever is named in words that are not understood."""
        self.found.elsewhere = True
        for i in range(first, last):
            if self.own[i].kind == "name" and texts(self.own[i - 1 : i]) not in (["."], ["->"]):
                self._change(i, is_plain=False)

    def _change(self, i: int, *, through: bool = False, is_plain: bool) -> None:
        name = self.own[i].text
        if is_plain or name not in self.uses.shared:
            self.found.changes.append(Change(name, through, self.own[i:], is_plain))

    # Operands -------------------------------------------------------------------------------------

    def _name(self, node: Node, lent: bool) -> None:
        decays = node.text in self.uses.arrays  # to a pointer to its elements
        if lent or decays or self._may_change("conversion", node):
            self._change(node.first, is_plain=False)

    def _may_change(self, sign: str, *operands: Node) -> bool:
        """Whether an operator with these operands may be one of the file's that changes them."""
        if sign not in self.given.operators:
            return False
        return any(type_of(each).kind not in BUILT_IN for each in operands)

    def _group(self, node: Node, lent: bool) -> None:
        self._each(node.children, lent=lent)

    _list = _initializer = _group

    def _comma(self, node: Node, lent: bool) -> None:
        changes = self._may_change(",", *node.children)
        self._each(node.children[:-1], lent=changes)
        self.visit(node.children[-1], lent=lent or changes)

    def _conditional(self, node: Node, lent: bool) -> None:
        self.visit(node.children[0])
        self._each(node.children[1:], lent=lent)

    def _unary(self, node: Node, lent: bool) -> None:
        operand, sign = node.children[0], node.text.lstrip("_")
        if sign in ("++", "--"):
            self._target(operand, lent=lent)
        elif sign == "*" and self._root(operand) in self.uses.arrays:
            self._element(operand, lent)
        else:
            self.visit(operand, lent=sign in ("&", "&&") or self._may_change(sign, operand))

    def _binary(self, node: Node, lent: bool) -> None:
        changes = node.text == ".*" or self._may_change(node.text, *node.children)
        is_operand = self.words.texts[node.first + 3] in _BY  # of the operator before it
        self._each(node.children, lent=changes or (lent and is_operand))

    def _assign(self, node: Node, lent: bool) -> None:
        left, right = node.children
        if left.kind == "binary":  # perhaps a declaration, as `T && x = y`
            self._lend_all(node.first, node.last)
            return
        self._target(left, lent=lent)
        made = right.kind != "list" or self.given.copies(type_of(left), [])
        self.visit(right, lent=not made or self._may_change(node.text, left, right))

    def _index(self, node: Node, lent: bool) -> None:
        base, *indices = node.children
        changes = self._may_change("[]", base)
        self._each(indices, lent=changes)
        if self._root(node) in self.uses.arrays:
            self._element(base, lent)
        else:
            is_pointer = type_of(base).kind == "pointer" and base.kind != "member"
            self.visit(base, lent=changes or (lent and not is_pointer))

    def _element(self, node: Node, lent: bool) -> None:
        """The base of an element of an array."""
        while node.kind in ("index", "group"):
            self._each(node.children[1:])
            node = node.children[0]
        if lent or node.kind != "name":
            self.visit(node, lent=lent)

    def _root(self, node: Node) -> str:
        """The name of which a node is an element, or itself; empty for another expression."""
        while node.kind in ("index", "group") and node.children:
            node = node.children[0]
        return node.text if node.kind == "name" else ""

    def _member(self, node: Node, lent: bool) -> None:
        base = node.children[0]
        if self.words.texts[node.at] == "->":
            self.visit(base, lent=self._may_change("->", base))
            return
        decays = node.text in self.given.array_members
        if base.kind == "name" and not (lent or decays):
            return  # of an object that is not read as a whole
        self.visit(base, lent=lent or decays)

    def _cast(self, node: Node, _: bool) -> None:
        words = self.own[node.first : node.children[0].first] if node.children else []
        copies = self.given.copies(node.type, words)
        self._each(node.children, lent=not copies)

    def _named_cast(self, node: Node, _: bool) -> None:
        words = self.own[node.first : node.at]
        self._each(node.children, lent=not self.given.copies(node.type, words))

    def _construct(self, node: Node, _: bool) -> None:
        words = self.own[node.first : node.at]
        copies = self.given.copies(node.type, words)
        self.found.elsewhere |= not copies
        self._each(node.children, lent=not copies)

    def _call(self, node: Node, _: bool) -> None:
        callee, *arguments = node.children
        words = self.own[callee.first : callee.last]
        if callee.kind == "member":
            self.found.calls.add(callee.text)
            reads = self.given.reads_object(callee.text)
            self.visit(callee.children[0], lent=not reads and self.words.texts[callee.at] == ".")
            named = callee.text
        elif callee.kind == "name":
            named = callee.text
            self.found.calls.add(named)
            found = callee.scope.find(callee.text) if callee.scope else None
            if found is not None and found.kind == "variable":
                self._call_variable(callee, arguments)
                return
        else:
            self.found.elsewhere = True
            self.visit(callee, lent=True)
            self._each(arguments, lent=True)
            return
        for i, argument in enumerate(arguments):
            self.visit(argument, lent=not self.given.reads(named, words, i))

    def _call_variable(self, callee: Node, arguments: list[Node]) -> None:
        """A call of a lambda, a pointer to a function or an object."""
        parameters = self.uses.lambdas.get(callee.text)
        self.found.elsewhere = True
        if parameters is None and "()" in self.given.operators:
            self._change(callee.first, is_plain=False)
        for i, argument in enumerate(arguments):
            known = parameters is not None and i < len(parameters)
            words = parameters[i] if parameters is not None and known else []
            self.visit(argument, lent=not known or bool({"&", "&&", "..."} & set(texts(words))))

    def _new(self, node: Node, _: bool) -> None:
        """`new T[n]`, `new T(x)` and `delete p`."""
        self.found.elsewhere = True
        words = self.own[node.first + 1 : node.at] if node.text == "new" else []
        self._each(node.children, lent=bool(words) and not self.given.copies(node.type, words))

    def _lambda(self, node: Node, _: bool) -> None:
        last = self.words.behind(node.first, node.last) - 1
        for capture in split(self.own[node.first + 1 : last]):
            if "=" in texts(capture[1:]) or "(" in texts(capture) or "{" in texts(capture):
                start = next(i for i, word in enumerate(self.own) if word is capture[0])
                self._lend_all(start, start + len(capture))
        body = node.children[0]
        before = self.returns_reference
        self.returns_reference = bool(
            {"&", "&&", "decltype", "->"} & set(texts(self.own[last + 1 : body.first]))
            and self._returns_reference(last + 1, body.first)
        )
        self.visit(body)
        self.returns_reference = before

    def _returns_reference(self, first: int, last: int) -> bool:
        """Whether a lambda may return a reference, by the words between its captures and body."""
        if self.words.texts[first] == "(":
            first = self.words.behind(first, last)
        behind = set(self.words.texts[first:last])
        return "->" in behind and bool(
            {"&", "&&", "decltype"} & behind | self.given.referring & behind
        )

    # Statements -----------------------------------------------------------------------------------

    def _return(self, node: Node, _: bool) -> None:
        self._each(node.children, lent=self.returns_reference)

    def _for(self, node: Node, _: bool) -> None:
        declared, *rest = node.children
        self.visit(declared)
        if declared.kind == "declaration" and self.words.texts[declared.last] == ":":
            refers = {"&", "&&"} & set(self.words.texts[declared.first : declared.last])
            if refers or self._root(rest[0]) not in self.uses.arrays:
                self.visit(rest[0], lent=True)
            rest = rest[1:]
        self._each(rest)

    def _declaration(self, node: Node, _: bool) -> None:
        spec = self.own[node.first : node.at]
        declarators = {each.name: each for each in node.declarators}
        for each in node.declarators:
            if "__shared__" in node.words:
                self.uses.shared.add(self.own[each.name].text)
            elif each.array < each.value:
                self.uses.arrays.add(self.own[each.name].text)
        for child in node.children:
            declarator = declarators.get(child.at)
            if child.kind == "class":
                self._class(child)
            elif child.kind != "initializer":
                self.visit(child)
            elif declarator is None:  # of structured bindings
                self.visit(
                    child, lent=bool({"&", "&&"} & set(texts(self.own[node.first : child.first])))
                )
            else:
                words = [*spec, *self.own[declarator.first : declarator.name]]
                name = self.own[declarator.name].text
                value = child.children[0]
                if value.kind == "lambda":
                    self.uses.lambdas[name] = [self.own[p.first : p.last] for p in value.parameters]
                copies = self.given.copies(node.type, words)
                copies = copies or self.given.reads_reference(node.type, words)
                self.found.elsewhere |= not copies
                self.visit(child, lent=not copies)

    def _class(self, node: Node, _: bool = False) -> None:
        for child in node.of_kind("declaration"):
            for each in child.declarators:
                if each.array < each.value:
                    self.given.array_members.add(self.own[each.name].text)

    # Assignments ----------------------------------------------------------------------------------

    def _target(self, node: Node, *, lent: bool) -> None:
        """What an assignment changes; `lent`: its value is used as a variable, too."""
        through = False
        while True:
            if node.kind == "group" and node.children:
                node = node.children[0]
            elif node.kind == "comma":
                self._each(node.children[:-1])
                node = node.children[-1]
            elif node.kind == "index":
                self._each(node.children[1:])
                through, node = True, node.children[0]
            elif node.kind == "member":
                through |= self.words.texts[node.at] == "->"
                node = node.children[0]
            elif node.kind == "unary" and node.text == "*":
                through, node = True, node.children[0]
            elif node.kind == "call" and node.children[0].text.endswith(INTO[-2]):
                node = node.children[1]
            else:
                break
        self.found.elsewhere |= through and self._root(node) not in self.uses.arrays
        if node.kind == "name":
            self._change(node.first, through=through, is_plain=not lent or through)
        else:
            self.found.elsewhere = True
            is_value = through and type_of(node).kind == "pointer"
            self.visit(node, lent=not is_value)
