"""The tree of CUDA C++: namespaces, classes, functions, statements, declarations, expressions.

It is made of a file's text as the user wrote it, so macros are names like others, and both branches
of an `#if` are there. What is not understood is a node `unknown`, which nobody edits.

A reader of each kind of text calls the others: `tree` reads statements, `declarations` what begins
with a keyword such as `struct`, `specifiers` types, `declarators` the names behind them, and
`expressions` the rest. All declare names in a `Scope` (`scopes`) while they read; `types` says
later what type an expression has. `int x = f(2);` is

    declaration [names: x: int]
        initializer "="
            call
                name "f"
                literal "2"
"""

from collections.abc import Sequence

from cudalab.language.declarations import Declarations
from cudalab.language.declarators import Declarators
from cudalab.language.expressions import Expressions
from cudalab.language.scopes import UNKNOWN, Node, Scope
from cudalab.language.tokens import ASSEMBLY, ATTRIBUTES, KEYWORDS, Token, Words

_JUMPS = frozenset({"break", "continue", "goto"})


def read(
    tokens: Sequence[Token], directives: Sequence[Token] = (), scope: Scope | None = None
) -> Node:
    """The tree of a file's tokens, declared in `scope`."""
    return Reader(Words(tokens, directives)).file(scope or Scope("namespace"))


class Reader:
    """Reads a file: its declarations, and the statements in its functions."""

    def __init__(self, text: Words | Sequence[Token], *, bodies: bool = True) -> None:
        """Read these words; without `bodies`, functions have blocks with nothing in them."""
        words = text if isinstance(text, Words) else Words(text)
        self.words, self.bodies = words, bodies
        self.expressions = Expressions(words, self._block, self._lambda, self.statements)
        self.declarators = Declarators(words, self.expressions, self._define)
        self.declarations = Declarations(words, self.declarators, self._members)
        self.later: list[list[tuple[Node, int, int]]] = []  # bodies of functions in classes

    def file(self, scope: Scope) -> Node:
        """The whole file."""
        node = Node("file", 0, len(self.words), scope=scope)
        return self.declarations.read(node, 0, scope)

    def _members(self, node: Node, i: int, scope: Scope) -> Node:
        """Read a class: its functions know all of its members."""
        self.later.append([])
        self.declarations.read(node, i, scope)
        for function, first, brace in self.later.pop():
            self._body(function, first, brace)
        return node

    def _define(self, node: Node, first: int, brace: int) -> None:
        """Read the body of a function now, or behind the members of its class."""
        scopes = node.scope.enclosing() if node.scope is not None else ()
        kind = next((each.kind for each in scopes if each.kind in ("class", "block")), "")
        if self.later and kind == "class":
            self.later[-1].append((node, first, brace))
        else:
            self._body(node, first, brace)

    def _body(self, node: Node, first: int, brace: int) -> None:
        """Read the initializers of members, and the body in braces."""
        words, scope = self.words, node.scope or Scope("function")
        if not self.bodies:
            node.children.append(Node("block", brace, words.behind(brace, node.last)))
            return
        k = first
        while k < brace:
            if words.texts[k] in ("(", "{"):
                behind = words.behind(k, brace)
                inside = self.expressions.arguments(k + 1, behind - 1, scope)
                member = Node("name", k - 1, k, text=words.texts[k - 1], scope=scope)
                call = Node("member_initializer", k - 1, behind, [member, *inside], scope=scope)
                node.children.append(call)
                k = behind
            else:
                k += 1
        node.children.append(self._block(brace, node.last, scope))
        while node.children[-1].last < node.last:
            node.children.append(self.statement(node.children[-1].last, node.last, scope))

    def _lambda(self, i: int, end: int, scope: Scope) -> Node:
        """[captures] (parameters) { body }"""
        words, texts, k = self.words, self.words.texts, self.words.behind(i, end)
        inner, device, parameters = Scope("function", scope), set[str](), list[Node]()
        result = UNKNOWN
        while k < end and texts[k] not in ("{", ";", ")", "}"):
            device |= {texts[k]} & {"__device__", "__host__"}
            if texts[k] == "->":
                result, k = self.declarators.result(k + 1, end, inner)
            elif texts[k] == "(" and texts[k - 1] not in ATTRIBUTES:
                behind = words.behind(k, end)
                parameters = self.declarators.parameters(k + 1, behind - 1, inner)
                k = behind
            else:
                k = words.skip(k, end)
        if texts[k] != "{":
            return Node("unknown", i, max(words.behind(i, end), i + 1), scope=scope)
        body = self._block(k, words.behind(k, end), inner)
        node = Node("lambda", i, body.last, [body], scope=inner, words=frozenset(device))
        node.parameters, node.type = parameters, result
        return node

    def _block(self, i: int, end: int, scope: Scope) -> Node:
        """{ statements }"""
        last = self.words.behind(i, end)
        inner = Scope("block", scope)
        inside = self.statements(i + 1, last - (self.words.texts[last - 1] == "}"), inner)
        return Node("block", i, last, inside, scope=inner)

    def statements(self, i: int, end: int, scope: Scope) -> list[Node]:
        """The statements up to `end`."""
        nodes = []
        while i < end:
            nodes.append(self.statement(i, end, scope))
            i = max(nodes[-1].last, i + 1)
        return nodes

    def statement(  # noqa: C901, PLR0911, PLR0912 - a kind of statement each
        self, i: int, end: int, scope: Scope
    ) -> Node:
        """The statement at `i`."""
        words, texts, text = self.words, self.words.texts, self.words.texts[i]
        if text == "{":
            return self._block(i, end, scope)
        if text == ";":
            return Node("empty", i, i + 1)
        if text in ("if", "while", "switch", "for"):
            return self._controlled(i, end, scope)
        if text == "do":
            return self._do(i, end, scope)
        if text == "else":  # without its if: perhaps between directives
            inner = self.statement(i + 1, end, scope)
            return Node("else", i, inner.last, [inner])
        if text in ("case", "default"):
            k = i + 1
            while k < end and texts[k] not in (":", ";", "{", "}"):
                k = words.skip(k, end)
            return Node("label", i, min(k + 1, end), text=text)
        if text in ("return", "co_return"):
            last = words.end_of(i, end)
            inside = [self.expressions.whole(i + 1, last, scope)] if last > i + 1 else []
            return Node("return", i, min(last + 1, end), inside, scope=scope)
        if text in _JUMPS:
            return Node("jump", i, min(words.end_of(i, end) + 1, end), text=text)
        if text == "try" or (text == "catch" and texts[i + 1] == "("):
            inner_scope = Scope("block", scope)
            k = i + 1 if text == "try" else words.behind(i + 1, end)
            if text == "catch":
                self.declarators.parameters(i + 2, k - 1, inner_scope)
            body = self.statement(k, end, inner_scope)
            return Node(text, i, body.last, [body], scope=inner_scope)
        if text in (*ASSEMBLY, "static_assert"):
            return Node("assembly", i, min(words.end_of(i, end) + 1, end), text=text)
        if words.kinds[i] == "name" and texts[i + 1] == ":" and text not in KEYWORDS:
            return Node("label", i, i + 2, text=text)
        known = scope.find(text) if words.kinds[i] == words.kinds[i + 1] == "name" else None
        if known is not None and known.is_prefix:
            name = Node("name", i, i + 1, text=text, scope=scope)
            return Node("macro", i, i + 1, [name], scope=scope)
        if text in ("typedef", "using", "template", "namespace") or self.declarations.declares(
            i, end, scope
        ):
            read_one = (
                self.declarations.simple
                if text not in ("template", "namespace")
                else self.declarations.declaration
            )
            return read_one(i, end, scope)
        return self._expression_statement(i, end, scope)

    def _expression_statement(self, i: int, end: int, scope: Scope) -> Node:
        words, texts = self.words, self.words.texts
        node, last = self.expressions.comma(i, end, scope)
        if texts[last] == ";" and last < end:
            return Node("expression", i, last + 1, [node], scope=scope)
        if node.kind == "call" and node.first == i and node.last == last:
            if texts[last] == "{":  # a macro that begins a loop
                body = self.statement(last, end, scope)
                return Node("macro", i, body.last, [node, body], scope=scope)
            return Node("macro", i, last, [node], scope=scope)  # a macro without a semicolon
        if (node.kind == "name" and texts[last] in ("}", "{", "")) or last >= end:
            return Node("macro", i, max(last, i + 1), [node], scope=scope)
        stop = min(words.end_of(last, end) + 1, end)
        return Node("unknown", i, max(stop, i + 1), scope=scope)

    def _controlled(self, i: int, end: int, scope: Scope) -> Node:
        """if, while, switch and for"""
        words, texts, text = self.words, self.words.texts, self.words.texts[i]
        paren = i + 1
        while texts[paren] not in ("(", ";", "{", "}", "") and paren < end:  # constexpr, or a macro
            paren += 1
        if texts[paren] != "(":
            return Node("unknown", i, min(words.end_of(i, end) + 1, end), scope=scope)
        inner = Scope("block", scope)
        close = words.behind(paren, end)
        node = Node(text, i, close, scope=inner, at=paren)
        node.words = frozenset(texts[i + 1 : paren])
        k = paren + 1
        while k < close - 1:
            stop = words.end_of(k, close - 1)
            if self.declarations.declares(k, stop, inner):
                colon = words.end_of(k, stop, "?:") if text == "for" else stop
                is_range = texts[colon] == ":"
                part = self.declarations.simple(
                    k, colon if is_range else min(stop + 1, close - 1), inner
                )
                node.children.append(part)
                if is_range:
                    node.children.append(self.expressions.whole(colon + 1, stop, inner))
                k = max(stop + 1, part.last)
                continue
            if stop > k:
                node.children.append(self.expressions.whole(k, stop, inner))
            else:
                node.children.append(Node("empty", k, k))
            k = stop + 1
        if close < end:
            body = self.statement(close, end, inner)
            node.children.append(body)
            node.last = body.last
        if text == "if" and texts[node.last] == "else" and node.last < end:
            other = self.statement(node.last + 1, end, inner)
            node.children.append(other)
            node.last = other.last
        return node

    def _do(self, i: int, end: int, scope: Scope) -> Node:
        words = self.words
        body = self.statement(i + 1, end, scope)
        node = Node("do", i, body.last, [body], scope=scope)
        if words.texts[body.last] == "while" and words.texts[body.last + 1] == "(":
            close = words.behind(body.last + 1, end)
            node.children.append(self.expressions.whole(body.last + 2, close - 1, scope))
            node.last = min(close + (words.texts[close] == ";"), end)
        return node
