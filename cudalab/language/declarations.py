"""Reading declarations: namespaces, templates, classes, aliases, and what they declare."""

from collections.abc import Callable

from cudalab.language import specifiers, tokens
from cudalab.language.declarators import Declarators
from cudalab.language.scopes import UNKNOWN, Name, Node, Scope, Type, pointer_to
from cudalab.language.specifiers import (
    CLASS_KEYS,
    DEDUCED,
    Specifiers,
    end_of_name,
    named,
    type_named,
)

# What may begin a declaration with arguments of its own.
_WITH_ARGUMENTS = tokens.ATTRIBUTES | DEDUCED | tokens.KEYWORDS | {"explicit"}


class Declarations:
    """Reads declarations."""

    def __init__(
        self,
        words: tokens.Words,
        declarators: Declarators,
        members: Callable[[Node, int, Scope], Node],
    ) -> None:
        """`members` reads what is declared in a class."""
        self.words, self.declarators, self.members = words, declarators, members

    def read(self, node: Node, i: int, scope: Scope) -> Node:
        """Read the declarations from `i` to the end of `node`, which become its children."""
        end = node.last - 1 if node.kind in ("namespace", "class") else node.last
        while i < end:
            child = self.declaration(i, end, scope)
            node.children.append(child)
            i = max(child.last, i + 1)
        return node

    def declaration(  # noqa: PLR0911 - a kind of declaration each
        self, i: int, end: int, scope: Scope
    ) -> Node:
        """The declaration at `i`, outside functions."""
        words, texts, text = self.words, self.words.texts, self.words.texts[i]
        if text in (";", "}", ")", "]"):
            return Node("empty" if text == ";" else "unknown", i, i + 1)
        if text == "template":
            return self._template(i, end, scope)
        if text in ("public", "private", "protected") and texts[i + 1] == ":":
            return Node("label", i, i + 2)
        if text == "namespace" or (text == "inline" and texts[i + 1] == "namespace"):
            return self._namespace(i, end, scope)
        if text == "extern" and words.kinds[i + 1] == "string":
            if texts[i + 2] == "{":
                node = Node("namespace", i, words.behind(i + 2, end))
                return self.read(node, i + 3, scope)
            inner = self.declaration(i + 2, end, scope)
            return Node("linkage", i, inner.last, [inner])
        if text in ("static_assert", *tokens.ASSEMBLY):
            return Node("assembly", i, min(words.end_of(i, end) + 1, end), text=text)
        if words.kinds[i] == "name" and texts[i + 1] == "(" and text not in _WITH_ARGUMENTS:
            behind = words.behind(i + 1, end)
            if words.kinds[behind] == "name" and texts[behind] not in tokens.BEHIND_PARAMETERS:
                return Node("macro", i, behind, text=text)  # which stands for declarations
        return self.simple(i, end, scope)

    def _template(self, i: int, end: int, scope: Scope) -> Node:
        words, angle = self.words, self.words.angle(i + 1, end)
        if angle is None:  # an explicit instantiation
            last = min(words.end_of(i, end) + 1, end)
            return Node("instantiation", i, last)
        inner = Scope("template", scope)
        k = i + 2
        while k < angle - 1:
            k = self._template_parameter(k, angle - 1, inner)
        child = self.declaration(angle, end, inner)
        for declared in inner.names.pop("", []):
            scope.declare(declared)
        return Node("template", i, child.last, [child], scope=inner)

    def _template_parameter(self, i: int, end: int, scope: Scope) -> int:
        words, texts = self.words, self.words.texts
        last, depth = i, 0
        while last < end and (texts[last] != "," or depth):
            depth += (texts[last] == "<") - (texts[last] == ">")
            last = words.skip(last, end)
        if texts[i] in ("typename", "class", "template"):
            k = i
            while k < last and texts[k] != "=":
                k += 1
            if words.kinds[k - 1] == "name" and k - 1 > i:
                name = texts[k - 1]
                scope.declare(Name(name, "type", Type(text=name), is_template=texts[i][1] == "e"))
        else:
            found = specifiers.read(words, i, last, scope)
            if found.type is not None:
                self.declarators.read(Node("parameter", i, last), found, last, scope, only=True)
        return last + 1

    def _namespace(self, i: int, end: int, scope: Scope) -> Node:
        words, k = self.words, i
        while k < end and words.texts[k] not in ("{", ";", "="):
            k = words.skip(k, end)
        if words.texts[k] != "{":
            last = min(words.end_of(k, end) + 1, end)
            if words.texts[k] == "=":
                found = named(scope, words.text(k + 1, last - 1).replace(" ", ""))
                if found is not None and found.scope is not None:
                    short = Name(words.texts[k - 1], "namespace", scope=found.scope)
                    scope.declare(short)
            return Node("alias", i, last)
        inner = scope
        for name in (words.texts[j] for j in range(i, k) if words.kinds[j] == "name"):
            if name not in ("namespace", "inline"):
                inner = inner.inner(name, "namespace")
        node = Node("namespace", i, words.behind(k, end), text=words.text(i, k), scope=inner)
        return self.read(node, k + 1, inner)

    def simple(self, i: int, end: int, scope: Scope) -> Node:
        """Variables, functions, classes, typedefs and using declarations."""
        words, texts = self.words, self.words.texts
        if texts[i] == "using":
            return self._using(i, end, scope)
        first, is_typedef = i, texts[i] == "typedef"
        i += is_typedef
        node = Node("alias" if is_typedef else "declaration", first, first, scope=scope)
        key = self._class_key(i, end)
        if key is not None and (class_node := self._class(key, end, scope)) is not None:
            node.children.append(class_node)
            before = frozenset(texts[i:key]) & tokens.QUALIFIERS
            found = Specifiers(class_node.type, class_node.last, words=before, text="")
        else:
            found = specifiers.read(words, i, end, scope)
        node.words, node.at = found.words, found.last
        if found.type is None and words.texts[found.last] in (";", "{", "}", ""):
            last = words.behind(found.last, end) if texts[found.last] == "{" else found.last + 1
            node.kind, node.last = "unknown", min(max(last, first + 1), end)
            return node
        return self.declarators.read(node, found, end, scope)

    def _using(self, i: int, end: int, scope: Scope) -> Node:
        words, texts = self.words, self.words.texts
        last = min(words.end_of(i, end) + 1, end)
        node = Node("alias", i, last, scope=scope)
        if texts[i + 1] == "namespace":
            found = named(scope, words.text(i + 2, last - 1).replace(" ", ""))
            if found is not None and found.scope is not None:
                scope.used.append(found.scope)
        elif texts[i + 2] == "=":
            type_ = self._whole_type(i + 3, last - 1, scope)
            self.declarators.declare(node, Name(texts[i + 1], "type", type_, i), scope)
        else:
            name = words.text(i + 1, last - 1).removeprefix("typename ").replace(" ", "")
            known = named(scope, name)
            short = name.rpartition("::")[2]
            if known is not None and known.name:
                scope.declare(known)
            elif type_named(scope, name) is None:
                scope.declare(Name(short, "unknown", position=i))
        return node

    def _whole_type(self, i: int, last: int, scope: Scope) -> Type:
        found = specifiers.read(self.words, i, last, scope)
        type_, k = found.type or UNKNOWN, found.last
        while k < last and self.words.texts[k] in tokens.POINTERS:
            type_ = pointer_to(type_) if self.words.texts[k] == "*" else type_
            k += 1
        return type_ if k == last else UNKNOWN

    def _class_key(self, i: int, end: int) -> int | None:
        """The index of `struct` and the like, if a class may be defined or declared here."""
        while i < end and self.words.texts[i] in tokens.QUALIFIERS | tokens.ATTRIBUTES:
            attribute = self.words.texts[i] in tokens.ATTRIBUTES and self.words.texts[i + 1] == "("
            i = self.words.skip(i + 1, end) if attribute else i + 1
        return i if self.words.texts[i] in CLASS_KEYS else None

    def _class(self, i: int, end: int, scope: Scope) -> Node | None:
        """The definition or the declaration of a class or an enumeration; None for its use."""
        words, texts, key = self.words, self.words.texts, self.words.texts[i]
        k = i + 1 + (texts[i + 1] in ("class", "struct"))
        while texts[k] in tokens.ATTRIBUTES or (texts[k] == texts[k + 1] == "["):
            k = words.behind(k if texts[k] == "[" else k + 1, end)
        first = k
        while words.kinds[k] == "name" and words.kinds[k + 1] == "name" and texts[k + 1] != "final":
            k += 1  # a macro, or the class of a variable
        behind, name = end_of_name(words, k, end, scope)
        behind = words.angle(behind, end) or behind  # of a specialization that has bases
        if k > first and self._is_variable(first, behind, end, scope):
            return None
        brace = behind + (texts[behind] == "final")
        if texts[brace] == ":":
            while brace < end and texts[brace] not in ("{", ";"):
                brace = brace + 1 if texts[brace] == "<" else words.skip(brace, end)
        if texts[brace] != "{":
            if texts[behind] != ";" or not name:
                return None
            outer = scope.outside_templates()
            if key != "enum" and outer.own(name) is None:
                outer.inner(name, "class").is_opaque = True
            return Node("class", i, behind, text=name)
        last = words.behind(brace, end)
        if key == "enum":
            return self._enumeration(i, brace, last, name, scope)
        return self._members(i, behind, brace, last, name, scope)

    def _is_variable(self, first: int, behind: int, end: int, scope: Scope) -> bool:
        """Whether the second of two names declares a variable of the class that the first names."""
        if self.words.texts[behind] != "{":
            return self.words.texts[behind] == ";"
        inside = self.words.texts[behind + 1 : self.words.behind(behind, end) - 1]
        known = named(scope, self.words.texts[first])
        is_class = known is not None and known.kind == "class"
        return ";" not in inside and (bool(inside) or is_class or scope.kind == "block")

    def _members(self, i: int, behind: int, brace: int, last: int, name: str, scope: Scope) -> Node:
        outer = scope.outside_templates()
        short = name.rpartition("::")[2]
        inner = outer.inner(short, "class") if short else Scope("class", outer)
        inner.parent, inner.is_opaque = scope, False
        type_ = Type("class", name, scope=inner)
        if short:
            outer.define(short, type_, is_template=scope.kind == "template")
        bases = self.words.texts[behind:brace]
        for base in (
            word for k, word in enumerate(bases) if self.words.kinds[behind + k] == "name"
        ):
            known = named(scope, base)
            if known is not None and known.scope is not None:
                inner.used.append(known.scope)
            elif base not in ("public", "private", "protected", "virtual", "final"):
                inner.is_opaque = True
        node = Node("class", i, last, text=name, type=type_, scope=inner)
        self.members(node, brace + 1, inner)
        if short == "" and self.words.texts[last] == ";":  # an anonymous union
            outer.used.append(inner)
        return node

    def _enumeration(self, i: int, brace: int, last: int, name: str, scope: Scope) -> Node:
        words, outer = self.words, scope.outside_templates()
        node = Node("enum", i, last, text=name, type=Type("integer", bits=32), scope=scope)
        inner = Scope("class", scope)
        if name:
            outer.declare(Name(name, "class", node.type, scope=inner))
        k = brace + 1
        while k < last - 1:
            value = Name(words.texts[k], "variable", node.type)
            inner.declare(value)
            if words.texts[i + 1] not in ("class", "struct"):
                outer.declare(value)
            k = words.end_of(k, last - 1, ",") + 1
        if words.texts[i + 1] in ("class", "struct"):
            node.type = Type("class", name)
        return node

    def declares(  # noqa: PLR0911 - a form of declaration each
        self, i: int, end: int, scope: Scope
    ) -> bool:
        """Whether a statement is a declaration."""
        words, texts, text = self.words, self.words.texts, self.words.texts[i]
        if text in CLASS_KEYS or text in tokens.ATTRIBUTES or (text == "[" and texts[i + 1] == "["):
            return True
        if text in tokens.QUALIFIERS:
            return True
        found = specifiers.read(words, i, end, scope)
        if found.type is None or (text in tokens.KEYWORDS):
            return False
        k, signs = found.last, 0
        while texts[k] in tokens.POINTERS or (texts[k] == "&&" and found.is_certain):
            k, signs = k + 1, signs + 1
        if texts[k] == "[" and (found.type or UNKNOWN).is_auto:
            return True
        if texts[k] == "(" and texts[k + 1] in ("*", "&") and found.is_certain:
            return texts[words.behind(k, end)] in ("(", "[")  # a pointer to a function or array
        if words.kinds[k] != "name" or texts[k] in tokens.KEYWORDS - {"operator"}:
            return False
        behind = words.operator(k + 1)
        if found.is_certain and not signs:
            return True
        return behind in ("=", ";", ",", "[", "(", "{", ":") or texts[k + 1] in tokens.ATTRIBUTES
