"""Reading what is declared behind specifiers: variables, functions and their parameters."""

from collections.abc import Callable
from dataclasses import replace

from cudalab.language import scopes, specifiers, tokens
from cudalab.language.expressions import Expressions
from cudalab.language.scopes import UNKNOWN, Declarator, Name, Node, Scope, Type
from cudalab.language.specifiers import Specifiers, end_of_name, named
from cudalab.language.tokens import Words


class Declarators:
    """Reads declarators, initializers and heads of functions."""

    def __init__(
        self, words: Words, expressions: Expressions, define: Callable[[Node, int, int], None]
    ) -> None:
        """`define` reads a function's body, given where what precedes it and its brace are."""
        self.words, self.expressions, self.define = words, expressions, define

    def declare(self, node: Node, name: Name, scope: Scope) -> None:
        """Note a name; a template's name is known outside of it."""
        if scope.kind == "template":
            name = replace(name, is_template=True)
        node.names.append(name)
        scope.outside_templates().declare(name)

    def read(
        self, node: Node, found: Specifiers, end: int, scope: Scope, *, only: bool = False
    ) -> Node:
        """Read what is declared behind specifiers; the node ends with it."""
        words, texts, i = self.words, self.words.texts, found.last
        node.type = found.type or UNKNOWN
        while i < end:
            if texts[i] == ";":
                i += 1
                break
            if texts[i] == "," and not only:
                i += 1
                continue
            before, i = i, self._declarator(node, found, i, end, scope)
            if node.kind == "function":
                return node
            if i == before or (i < end and texts[i] not in (",", ";")):
                stop = words.end_of(max(i, before + (i == before)), end)
                brace = next((k for k in range(i, stop) if texts[k] == "{"), None)
                if brace is not None and not only:  # an unknown head of a block
                    stop = words.behind(brace, end)
                else:
                    stop += texts[stop] == ";"
                node.children.append(Node("unknown", i, min(stop, end)))
                i = stop
                break
        node.last = min(max(i, node.first + 1), end)
        return node

    def _declarator(  # noqa: C901, PLR0912 - a form of declarator each
        self, node: Node, found: Specifiers, i: int, end: int, scope: Scope
    ) -> int:
        """Read one declared name with its initializer; the index behind it."""
        words, texts, first = self.words, self.words.texts, i
        type_, reference = found.type or UNKNOWN, False
        while texts[i] in tokens.POINTERS | tokens.ATTRIBUTES | tokens.QUALIFIERS | {"&&"}:
            type_ = scopes.pointer_to(type_) if texts[i] == "*" else type_
            reference |= texts[i] in ("&", "&&")
            attribute = texts[i] in tokens.ATTRIBUTES and texts[i + 1] == "("
            i = words.behind(i + 1, end) if attribute else i + 1
        if reference:
            type_ = replace(type_, is_reference=True)
        if (behind := self._behind_class(i)) > i:
            type_, i = scopes.pointer_to(UNKNOWN), behind
        if texts[i] == ".":  # a pack
            i += 3
        if texts[i] == "(" and texts[i + 1] in ("*", "&"):
            return self._pointer_to_function(node, i, end, type_, scope)
        at, name = i, ""
        if texts[i] == "[" and (found.type or UNKNOWN).is_auto:  # a structured binding
            last = words.behind(i, end)
            for k in range(i + 1, last - 1):
                if words.kinds[k] == "name":
                    self.declare(node, Name(texts[k], "variable", position=k), scope)
            return self._initialize(node, self._initializer(last, end, scope), last, end, scope)
        i, name = self._declared_name(i, end, scope)
        if i == at:
            return i
        if name.rpartition("::")[2] == "operator" and texts[i - 1] != "operator":  # a conversion?
            to, behind = self.result(texts.index("operator", at) + 1, i, scope)
            type_ = to if behind == i else type_
        is_function = texts[i] == "(" and self._declares_function(i, end, scope)
        if is_function:
            return self._function(node, i, end, name, type_, scope)
        array, is_array = i, texts[i] == "["
        while texts[i] == "[":
            inside = self.expressions.whole(i + 1, words.behind(i, end) - 1, scope)
            node.children.append(inside)
            type_, i = scopes.array_of(type_), words.behind(i, end)
        kind, known_from = "type" if node.kind == "alias" else "variable", i
        while texts[i] in tokens.ATTRIBUTES:
            i = words.behind(i + 1, end)
        is_bit_field = texts[i] == ":" and scope.kind == "class"
        i = words.end_of(i, end, ",;") if is_bit_field else i
        value = self._initializer(i, end, scope, type_ if not is_array else UNKNOWN)
        declared = Name(name.rpartition("::")[2], kind, type_, known_from, initializer=value)
        self.declare(node, replace(declared, is_bit_field=is_bit_field), scope)
        if value is not None:  # which may use the name itself
            value.at, value.names = at, node.names[-1:]
        last = self._initialize(node, value, i, end, scope)
        node.declarators.append(Declarator(first, at, array, i, last))
        return last

    def _behind_class(self, i: int) -> int:
        """The index behind `Class::*` of a pointer to a member; `i` for anything else."""
        words, k = self.words, i
        while words.kinds[k] == "name":
            k = words.angle(k + 1, len(words)) or k + 1
            if words.texts[k] != "::":
                return i
            k += 1
        return k + 1 if words.texts[k] == "*" and k > i else i

    def _declared_name(self, i: int, end: int, scope: Scope) -> tuple[int, str]:
        words, texts = self.words, self.words.texts
        start = i
        while words.kinds[i] == "name" or texts[i] in ("::", "~"):
            if texts[i] == "operator":
                k = i + 1
                k = words.behind(k, end) if texts[k] == "(" else k
                while k < end and texts[k] not in ("(", ";"):
                    k += 1
                return k, words.text(start, i) + "operator"
            if texts[i] in tokens.KEYWORDS:
                break
            i += 1
            angle = words.angle(i, end)
            if angle is not None and texts[angle] in ("(", "::"):
                i = angle
            if words.kinds[i] == "name" and words.kinds[i - 1] == "name":
                break
        if i < start + 1:
            return start, ""
        last, name = end_of_name(words, start, i, scope)
        return i, name if last == i else words.text(start, i)  # of a destructor, say

    def _pointer_to_function(self, node: Node, i: int, end: int, type_: Type, scope: Scope) -> int:
        """Read `(*name)(parameters)` or `(*name)[size]` with an initializer.

        `(*name(own parameters))(parameters)` is a function that returns such a pointer.
        """
        words, texts = self.words, self.words.texts
        inner = words.behind(i, end) - 1
        names = [k for k in range(i, inner) if words.kinds[k] == "name"]
        at = next((k for k in names if words.kinds[k + 1] != "name"), i)
        first, array = i, inner + 1
        i = array
        while texts[i] in ("(", "["):
            i = words.behind(i, end)
        own, name = self._declared_name(at, inner, scope)
        if names and texts[own] == "(":
            return self._function(node, own, end, name, UNKNOWN, scope, i)
        if names:
            of = scopes.pointer_to(scopes.pointer_to(type_)) if texts[array] == "[" else UNKNOWN
            kind = "type" if node.kind == "alias" else "variable"
            self.declare(node, Name(texts[at], kind, of, first), scope)
        last = self._initialize(node, self._initializer(i, end, scope), i, end, scope)
        if names:
            node.declarators.append(Declarator(first, at, array, i, last))
        return last

    def _initializer(self, i: int, end: int, scope: Scope, type_: Type = UNKNOWN) -> Node | None:
        """The node of `= value`, `(values)` or `{values}`, which is yet to be read."""
        sign = self.words.texts[i]
        if i >= end or sign not in ("=", "(", "{"):
            return None
        return Node("initializer", i, i, text=sign, type=type_, scope=scope)

    def _initialize(self, node: Node, value: Node | None, i: int, end: int, scope: Scope) -> int:
        """Read an initializer, if there is one, into `node`; the index behind it."""
        if value is None:
            return i
        if value.text == "=":
            inside, value.last = self.expressions.assignment(i + 1, end, scope)
        else:
            value.last = self.words.behind(i, end)
            values = self.expressions.arguments(i + 1, value.last - 1, scope)
            inside = Node("list", i, value.last, values, text=value.text, scope=scope)
        value.children.append(inside)
        node.children.append(value)
        return value.last

    def _declares_function(self, paren: int, end: int, scope: Scope) -> bool:
        """Whether the bracket behind a name holds parameters, not a variable's initializer."""
        words, texts, inside = self.words, self.words.texts, self.words.texts[paren + 1]
        behind = words.behind(paren, end)
        after = texts[behind]
        if after in ("{", "->") or after in tokens.BEHIND_PARAMETERS or inside in (")", "."):
            return True
        in_block = any(each.kind == "block" for each in scope.enclosing())
        if not in_block and (after == ":" or scope.kind == "class"):
            return True
        found = specifiers.read(words, paren + 1, behind - 1, scope)
        if found.type is None:
            return False
        follows, k = texts[found.last], found.last
        if follows == "(":  # T(x): a conversion
            return False
        if found.is_certain:
            return follows in ("*", "&", ",", ")", ".", "=", "[") or words.kinds[k] == "name"
        while texts[k] in tokens.POINTERS:
            k += 1
        named_one = words.kinds[k] == "name" and texts[k + 1] in (",", ")", "=", "[")
        return named_one or (follows in ("*", "&", ",", ")") and not in_block and k != found.last)

    def _function(
        self,
        node: Node,
        paren: int,
        end: int,
        name: str,
        result: Type,
        scope: Scope,
        behind: int = 0,
    ) -> int:
        """Read a function from its parameters on; `node` becomes it, or its declaration.

        `behind` is where its head goes on if something else stands behind the parameters.
        """
        words, texts = self.words, self.words.texts
        close = words.behind(paren, end)
        outer = self._scope_of(name, scope)
        inner = Scope("function", outer)
        node.at, node.text = paren, name
        node.parameters = self.parameters(paren + 1, close - 1, inner)
        k = behind or close
        while (
            texts[k] in tokens.BEHIND_PARAMETERS
            or texts[k] in tokens.ATTRIBUTES
            or texts[k] == "throw"
        ):
            k = words.behind(k + 1, end) if texts[k + 1] == "(" else k + 1
        if texts[k] == "->":
            result, k = self.result(k + 1, end, inner)
        short = name.rpartition("::")[2]
        types = tuple(each.type for each in node.parameters)
        required = sum(not any(each.of_kind("initializer")) for each in node.parameters)
        declared = Name(short, "function", result, parameters=types, required=required)
        if outer is scope or "::" not in name:
            self.declare(node, declared, scope)
        else:
            node.names.append(declared)
        starts = [k]
        while texts[k] == ":" or (texts[k] == "," and len(starts) > 1):  # initializers of members
            k, _ = end_of_name(words, k + 1, end, inner)
            if texts[k] not in ("(", "{"):
                break
            behind = words.behind(k, end)
            starts += [k, behind]
            k = behind
        if texts[k] != "{":
            node.words |= {"function"}
            return words.end_of(k, end, ",;") if texts[k] != "=" else words.end_of(k, end)
        node.kind, node.type, node.scope = "function", result, inner
        node.last = words.behind(k, end)
        while texts[node.last] == "catch" and node.last < end:  # of a function that is a try
            node.last = words.behind(words.behind(node.last + 1, end), end)
        self.define(node, starts[0], k)
        return node.last

    def result(self, k: int, end: int, scope: Scope) -> tuple[Type, int]:
        """The type that a function returns, which stands at `k`, and the index behind it."""
        found, texts = specifiers.read(self.words, k, end, scope), self.words.texts
        result, k = found.type or UNKNOWN, found.last
        while texts[k] in tokens.POINTERS:
            result = scopes.pointer_to(result) if texts[k] == "*" else result
            result = replace(result, is_reference=result.is_reference or texts[k] == "&")
            k += 1
        if texts[k] == "(" and texts[k + 1] in ("*", "&"):  # a pointer to a function or array
            result = UNKNOWN
            while texts[k] in ("(", "["):
                k = self.words.behind(k, end)
        return result, k

    def _scope_of(self, name: str, scope: Scope) -> Scope:
        """The scope in which the body of a function finds its names."""
        space = name.rpartition("::")[0]
        found = named(scope, space) if space else None
        if found is None or found.scope is None:
            if not space:
                return scope
            return Scope("class", scope, is_opaque=True)
        if scope.kind != "template":
            return found.scope
        return Scope("template", found.scope, scope.names)

    def parameters(self, i: int, end: int, scope: Scope) -> list[Node]:
        """Declare parameters in `scope`."""
        words, nodes = self.words, list[Node]()
        while i < end and words.texts[i : i + 2] != ["void", ")"]:
            found = specifiers.read(words, i, end, scope)
            last, depth = max(found.last, i), 0
            while last < end and (words.texts[last] != "," or depth):
                angle = words.angle(last, end)
                last = angle or words.skip(last, end)
            node = Node("parameter", i, last, at=found.last)
            type_ = found.type or UNKNOWN
            if found.type is not None:
                self.read(node, found, last, scope, only=True)
            if node.names:
                type_ = node.names[-1].type if node.names[-1].kind == "variable" else UNKNOWN
            elif "*" in words.texts[found.last : last]:
                type_ = scopes.pointer_to(type_)
            elif "&" in words.texts[found.last : last]:
                type_ = replace(type_, is_reference=True)
            node.type, node.last = type_, last
            nodes.append(node)
            i = last + 1
        return nodes
