"""Reading expressions of CUDA C++: precedence, casts, calls, launches, members, lambdas."""

from collections.abc import Callable

from cudalab.language.scopes import BASIC, UNKNOWN, Node, Scope
from cudalab.language.specifiers import end_of_name, type_named, type_of_id
from cudalab.language.tokens import KEYWORDS, Words, set_of

_PRECEDENCE = {
    sign: level
    for level, signs in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< > <= >= <=>", "<< >>", "+ -", "* / %", ".* ->*"), 1
    )
    for sign in signs.split()
}
ASSIGNMENTS = set_of("= += -= *= /= %= &= |= ^= <<= >>=")
_PREFIXES = set_of("+ - ! ~ * & ++ -- &&")
CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})
_OPERANDS = ("name", "number", "string", "character")


class Expressions:
    """Reads expressions. What it does not understand becomes a node `unknown`."""

    def __init__(
        self,
        words: Words,
        block: Callable[[int, int, Scope], Node],
        closure: Callable[[int, int, Scope], Node],
        statements: Callable[[int, int, Scope], list[Node]],
    ) -> None:
        """`block` reads what is in braces, `closure` a lambda expression."""
        self.words, self.block, self.closure = words, block, closure
        self.statements = statements

    def whole(self, i: int, end: int, scope: Scope) -> Node:
        """The expression that is all of these tokens; `unknown` if it is not one."""
        if i >= end:
            return Node("empty", i, end)
        node, last = self.comma(i, end, scope)
        if last == end:
            return node
        return Node("unknown", i, end, [node] if node.kind != "unknown" else [], scope=scope)

    def arguments(self, i: int, end: int, scope: Scope) -> list[Node]:
        """The expressions between commas."""
        result = []
        while i < end:
            node, last = self.assignment(i, end, scope)
            if last < end and self.words.texts[last] != ",":  # statements, for a macro
                last = max(self.words.end_of(last, end, ","), i + 1)
                inside = self.statements(i, last, Scope("block", scope))
                node = Node("macro", i, last, inside, scope=scope)
            result.append(node)
            i = last + 1
        return result

    def comma(self, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        """An expression with commas, and the index behind it."""
        node, last = self.assignment(i, end, scope)
        if last >= end or self.words.texts[last] != ",":
            return node, last
        parts = [node]
        while last < end and self.words.texts[last] == ",":
            node, last = self.assignment(last + 1, end, scope)
            parts.append(node)
        return Node("comma", i, last, parts, scope=scope), last

    def assignment(self, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        """An expression without commas outside brackets, and the index behind it."""
        words = self.words
        if words.texts[i] == "throw":
            return self._prefixed("throw", i, i + 1, end, scope)
        left, last = self._binary(i, end, scope, 1)
        if last >= end:
            return left, last
        sign = words.operator(last)
        if sign == "?":
            middle, colon = self.comma(last + 1, end, scope)
            if colon >= end or words.texts[colon] != ":":
                return left, last
            other, behind = self.assignment(colon + 1, end, scope)
            parts = [left, middle, other]
            return Node("conditional", i, behind, parts, at=last, scope=scope), behind
        if sign in ASSIGNMENTS:
            right, behind = self.assignment(last + words.width(last, sign), end, scope)
            return self._two("assign", left, right, sign, last, scope), behind
        return left, last

    def _two(self, kind: str, left: Node, right: Node, sign: str, at: int, scope: Scope) -> Node:
        return Node(kind, left.first, right.last, [left, right], text=sign, at=at, scope=scope)

    def _binary(self, i: int, end: int, scope: Scope, level: int) -> tuple[Node, int]:
        left, last = self._unary(i, end, scope)
        while last < end:
            sign = self.words.operator(last)
            found = _PRECEDENCE.get(sign, 0)
            if found < level:
                break
            at = last
            right, last = self._binary(at + self.words.width(at, sign), end, scope, found + 1)
            left = self._two("binary", left, right, sign, at, scope)
        return left, last

    # Operands -------------------------------------------------------------------------------------

    def _prefixed(self, kind: str, first: int, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        """An operand behind something that began at `first`."""
        text = self.words.operator(first)
        if i >= end:
            return Node("unknown", first, max(i, first + 1), scope=scope), i
        read = self._unary if kind != "throw" else self.assignment
        operand, last = read(i, end, scope)
        return Node(kind, first, last, [operand], text=text, at=first, scope=scope), last

    def _unary(  # noqa: PLR0911 - a kind of operand each
        self, i: int, end: int, scope: Scope
    ) -> tuple[Node, int]:
        words, text = self.words, self.words.texts[i]
        if i >= end:
            return Node("unknown", end, end, scope=scope), end
        sign = words.operator(i)
        if sign in _PREFIXES:
            return self._prefixed("unary", i, i + words.width(i, sign), end, scope)
        if text in ("sizeof", "alignof", "noexcept", "typeid") or text == "__alignof__":
            if words.texts[i + 1] in ("(", "."):
                while words.texts[i + 1] == ".":
                    i += 1
                last = words.behind(i + 1, end)
                return Node("sizeof", i, last, text=text, scope=scope), last
            return self._prefixed("sizeof", i, i + 1, end, scope)
        if text in ("new", "delete"):
            return self._new(i, end, scope)
        if text == "(":
            cast = self._cast(i, end, scope)
            if cast is not None:
                return cast
        return self._postfix(i, end, scope)

    def _new(self, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        words, last = self.words, i + 1
        if words.texts[i] == "delete" and words.texts[last] == "[":
            last += 2
        if words.texts[i] == "delete":
            return self._prefixed("new", i, last, end, scope)
        node = Node("new", i, last, text="new", scope=scope)
        while last < end and (words.kinds[last] == "name" or words.texts[last] in "(::*[{<"):
            behind = words.angle(last, end) or words.skip(last, end)
            if words.texts[last] in ("(", "[", "{"):
                found = (
                    type_of_id(words, i + 1, last, scope) if node.at < 0 < last - i - 1 else None
                )
                if node.at < 0:
                    node.at, node.type = last, (found and found.type) or UNKNOWN
                node.children += self.arguments(last + 1, behind - 1, scope)
            last = behind
        node.last = last
        return node, last

    def _cast(self, i: int, end: int, scope: Scope) -> tuple[Node, int] | None:
        """(T)operand"""
        words, last = self.words, self.words.behind(i, end)
        if last >= end or words.texts[last - 1] != ")":
            return None
        found = type_of_id(words, i + 1, last - 1, scope)
        if found is None:
            return None
        kind, text = words.kinds[last], words.texts[last]
        begins = kind in _OPERANDS and text not in KEYWORDS - CASTS - {"this", "sizeof"}
        if (
            not begins
            and text not in ("(", "~", "!", "::", "[", "{")
            and not (found.is_certain and words.operator(last) in _PREFIXES)
        ):
            return None
        if not found.is_certain and not begins:  # perhaps the call of a function in brackets
            return None
        operand, behind = self._unary(last, end, scope)
        node = Node("cast", i, behind, [operand], text=found.text, at=i, scope=scope)
        node.type = found.type or UNKNOWN
        return node, behind

    def _postfix(self, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        node, last = self._primary(i, end, scope)
        words = self.words
        while last < end:
            text, sign = words.texts[last], words.operator(last)
            if text == "(":
                behind = words.behind(last, end)
                closed = behind - 1 if words.texts[behind - 1] == ")" else behind
                inside = self.arguments(last + 1, closed, scope)
                node = Node("call", i, behind, [node, *inside], at=last, scope=scope)
            elif text == "[":
                behind = words.behind(last, end)
                inside = self.arguments(last + 1, behind - 1, scope)
                node = Node("index", i, behind, [node, *inside], at=last, scope=scope)
            elif (sign in (".", "->") and words.kinds[last + 1] == "name") or text == ".":
                name = last + 1 + (words.texts[last + 1] in ("template", "~"))
                behind = name + 1
                angle = words.angle(behind, end) if words.texts[name - 1] == "template" else None
                if words.texts[behind] == "<" and angle is None:
                    angle = words.angle(behind, end)
                    angle = angle if angle and words.texts[angle] == "(" else None
                behind = angle or behind
                member = words.texts[name]
                node = Node("member", i, behind, [node], text=member, at=last, scope=scope)
            elif sign in ("++", "--"):
                behind = last + words.width(last, sign)
                node = Node("unary", i, behind, [node], text=f"_{sign}", at=last, scope=scope)
            elif sign == "<<" and words.texts[last + 2] == "<":
                launch = self._launch(node, last, end, scope)
                if launch is None:
                    break
                node, behind = launch, launch.last
            else:
                break
            last = min(behind, end)
        return node, last

    def _launch(self, kernel: Node, i: int, end: int, scope: Scope) -> Node | None:
        """kernel<<<configuration>>>; the arguments make it a call"""
        words, close = self.words, i + 3
        while close < end and words.texts[close] not in ";)]}":
            if words.texts[close : close + 4] == [*">>>("]:
                inside = self.arguments(i + 3, close, scope)
                parts = [kernel, *inside]
                return Node("launch", kernel.first, close + 3, parts, at=i, scope=scope)
            close = words.skip(close, end)
        return None

    def _primary(  # noqa: C901, PLR0911, PLR0912 - a kind of operand each
        self, i: int, end: int, scope: Scope
    ) -> tuple[Node, int]:
        words, text, kind = self.words, self.words.texts[i], self.words.kinds[i]
        if kind in ("number", "character"):
            return Node("literal", i, i + 1, text=text, scope=scope), i + 1
        if kind == "string":
            last = i + 1
            while words.kinds[last] == "string" or (
                words.kinds[last] == "name" and words.kinds[last + 1] == "string"
            ):
                last += 1
            return Node("literal", i, min(last, end), text='"', scope=scope), min(last, end)
        if text == "(":
            last = words.behind(i, end)
            if words.texts[i + 1] == "{":
                inner = self.block(i + 1, last - 1, scope)
            else:
                inner = self.whole(i + 1, last - 1, scope)
            return Node("group", i, last, [inner], scope=scope), last
        if text == "{":
            last = words.behind(i, end)
            if words.texts[words.end_of(i + 1, last - 1)] == ";":  # an argument of a macro
                return self.block(i, end, scope), last
            inside = self.arguments(i + 1, last - 1, scope)
            return Node("list", i, last, inside, scope=scope), last
        if text == "[":
            node = self.closure(i, end, scope)
            return node, node.last
        if text == "." and words.kinds[i + 1] == "name":  # a designated initializer
            return Node("name", i, i + 2, text=words.texts[i + 1], scope=scope), i + 2
        if text in CASTS and words.texts[i + 1] == "<":
            return self._named_cast(i, end, scope)
        if text in BASIC and words.texts[i + 1] not in BASIC:
            return self._construct(i, i + 1, end, scope)
        if kind == "name" or text == "::":
            if text == "operator":
                last = i + 1
                while last < end and words.texts[last] != "(":
                    last += 1
                return Node("name", i, last, text="operator", scope=scope), last
            last, name = end_of_name(words, i, end, scope)
            if last == i or (text in KEYWORDS and text != "this"):
                return Node("unknown", i, i + 1, scope=scope), i + 1
            known = type_named(scope, name, i)
            braces = words.texts[last] == "{" and words.texts[words.behind(last, end)] in (
                *",.;(",
                ")",
            )
            if braces or (known is not None and words.texts[last] in ("(", "{")):
                return self._construct(i, last, end, scope)
            return Node("name", i, last, text=name, scope=scope), last
        return Node("unknown", i, i + 1, scope=scope), i + 1

    def _named_cast(self, i: int, end: int, scope: Scope) -> tuple[Node, int]:
        """static_cast<T>(operand)"""
        words, paren = self.words, self.words.angle(i + 1, end)
        if paren is None or words.texts[paren] != "(":
            return Node("unknown", i, i + 1, scope=scope), i + 1
        last, found = words.behind(paren, end), type_of_id(words, i + 2, paren - 1, scope)
        inner = [self.whole(paren + 1, last - 1, scope)]
        node = Node("named_cast", i, last, inner, text=words.texts[i], at=paren, scope=scope)
        node.type = (found and found.type) or UNKNOWN
        return node, last

    def _construct(self, i: int, paren: int, end: int, scope: Scope) -> tuple[Node, int]:
        """T(operands) or T{operands}"""
        words, last = self.words, self.words.behind(paren, end)
        found = type_of_id(words, i, paren, scope)
        if found is None or words.texts[paren] not in ("(", "{"):
            return Node("unknown", i, paren, scope=scope), paren
        inside = self.arguments(paren + 1, last - 1, scope)
        node = Node("construct", i, last, inside, text=found.text, at=paren, scope=scope)
        node.type = found.type or UNKNOWN
        return node, last
