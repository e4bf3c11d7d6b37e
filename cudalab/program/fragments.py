"""Reading statements of kernels that load and multiply fragments and have no other effect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cudalab.language.tokens import OPENING, closing, closing_angle, opening_angle, tokenize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudalab.language.tokens import Token

# How many of a function's first arguments are fragments.
_CALLS = {"load_matrix_sync": 1, "fill_fragment": 1, "mma_sync": 4}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_TYPES = frozenset(
    {"auto", "bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double"}
    | {"half", "__half", "__nv_bfloat16", "nv_bfloat16", "size_t", "ptrdiff_t", "uint", "dim3"}
    | {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_QUALIFIERS = frozenset({"const", "constexpr", "__restrict__", "__restrict"})
_CONVERSIONS = frozenset({"__float2half", "__float2bfloat16"}) | _TYPES
_FUNCTIONS = frozenset({"sizeof", "alignof", "decltype", "min", "max"}) | _CONVERSIONS
# A loop over the elements of a fragment, its tokens joined by spaces.
_ROUNDING = re.compile(
    r"for \( (?:unsigned int|unsigned|int|size_t|auto) (?P<i>\w+) = 0 ;"
    r" (?P=i) < (?P<tile>\w+(?: \[ \w+ \])*) \. num_elements ;"
    r" (?:(?P=i) \+ \+|\+ \+ (?P=i)) \) (?:\{ )?"
    r"(?P=tile) \. x \[ (?P=i) \] = (?:(?:nvcuda :: )?wmma :: )?"
    r"__float_to_tf32 \( (?P=tile) \. x \[ (?P=i) \] \) ;(?: \})?$"
)
_EFFECTS = frozenset({"{", "asm", "__asm__", "new", "delete", "throw", "volatile", "co_await"})


@dataclass(frozen=True)
class Names:
    """What the names in a program stand for."""

    aliases: frozenset[str]  # types of fragments
    pure: frozenset[str]  # macros with parameters that may be called in a stretch
    impure: frozenset[str]  # macros with an effect


def names(files: Iterable[tuple[list[Token], list[Token]]]) -> Names | None:
    """The names in files, given their tokens and directives; None if they use no fragments."""
    aliases: set[str] = set()
    macros: dict[str, tuple[bool, list[Token]]] = {}
    uses = False
    for tokens, directives in files:
        for i, token in enumerate(tokens):
            uses |= token.text == "mma_sync"
            if token.text == "fragment" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
                aliases |= _alias(tokens, i)
        for directive in directives:
            macros |= _macro(directive)
    if not uses:
        return None
    impure: set[str] = set()
    while True:  # until no macro names another one that has an effect
        pure = frozenset(name for name, (called, _) in macros.items() if called) - impure
        reader = Reader([], Names(frozenset(), pure, frozenset(impure)))
        worse = {name for name, (_, body) in macros.items() if not reader.is_pure(body)} - impure
        if not worse:
            return Names(frozenset(aliases), pure, frozenset(impure))
        impure |= worse


def _macro(directive: Token) -> dict[str, tuple[bool, list[Token]]]:
    """The macro that a directive defines, by name: whether it has parameters, and its body."""
    words = tokenize(directive.text.lstrip().removeprefix("#").replace("\\\n", "  "))
    if len(words) < 2 or words[0].text != "define":
        return {}
    called = len(words) > 2 and words[2].text == "(" and words[2].start == words[1].end
    end = closing(words, 2) if called else 1
    return {words[1].text: (called, words[(end or 1) + 1 :])}


def _alias(tokens: list[Token], i: int) -> set[str]:
    """The name that the type `fragment<...>` at `i` gets in a `using` or a `typedef`."""
    end = closing_angle(tokens, i + 1)
    begin = _begin_of_name(tokens, i)
    if end is None or begin == 0:
        return set()
    if tokens[begin - 1].text == "typedef" and tokens[end + 1].kind == "name":
        return {tokens[end + 1].text}
    if tokens[begin - 1].text == "=" and tokens[begin - 3].text == "using":
        return {tokens[begin - 2].text}
    return set()


def _begin_of_name(tokens: list[Token], i: int) -> int:
    """The index where the qualified name that ends at `i` begins."""
    while i > 0 and tokens[i - 1].text == "::":
        i -= 2 if i > 1 and tokens[i - 2].kind == "name" else 1
    return i


@dataclass(kw_only=True)
class Stretch:
    """What the statements of a stretch contain."""

    calls: int = 0
    products: int = 0
    variables: set[str] = field(default_factory=set)  # its own, which it may assign
    constants: set[str] = field(default_factory=set)  # its own, which it may not: references
    own: set[str] = field(default_factory=set)  # names of its own fragments
    types: list[tuple[int, int]] = field(default_factory=list)  # and where their types are
    roundings: list[tuple[int, int, str]] = field(default_factory=list)  # of all elements to tf32
    arguments: list[str] = field(default_factory=list)  # names of fragments in calls
    used: set[str] = field(default_factory=set)  # names in expressions

    @property
    def outer(self) -> list[str]:
        """The fragments from outside, each once."""
        return [name for name in dict.fromkeys(self.arguments) if name not in self.own]


class Reader:
    """Reads the statements that a stretch may consist of."""

    def __init__(self, tokens: list[Token], names: Names) -> None:
        self.tokens, self.names = tokens, names
        self.stretch = Stretch()
        self.conditions = 0  # around the statement, which may differ between lanes

    def _text(self, i: int) -> str:
        return self.tokens[i].text if i < len(self.tokens) else ""

    # Statements ----------------------------------------------------------------------------------

    def statement(self, i: int) -> int | None:
        """The index behind the statement at `i`, or None if it may have another effect."""
        text = self._text(i)
        if text == "{":
            return self._compound(i)
        if text in ("for", "while", "if"):
            return self._controlled(i)
        if text == ";":
            return i + 1
        end = i
        while self._text(end) not in (";", "{", "}", ""):
            end = (closing(self.tokens, end) or end) + 1 if self._text(end) in OPENING else end + 1
        if self._text(end) != ";":
            return None
        accepted = self._call(i, end) or self._declaration(i, end) or self._assignment(i, end)
        return end + 1 if accepted else None

    def _compound(self, i: int) -> int | None:
        end = closing(self.tokens, i)
        before = set(self.stretch.variables)
        here: int | None = i + 1
        while here is not None and here != end:
            here = self.statement(here)
        self.stretch.variables = before
        return None if here is None else here + 1

    def _controlled(self, i: int) -> int | None:
        keyword = self._text(i)
        differs = keyword != "for" and self._text(i + 1) != "constexpr"
        rounding = self._rounding(i) if keyword == "for" else None
        if rounding is not None:
            return rounding
        i += 2 if self._text(i + 1) == "constexpr" else 1
        end = closing(self.tokens, i) if self._text(i) == "(" else None
        if end is None:
            return None
        before = set(self.stretch.variables)
        if not self._header(i + 1, end) if keyword == "for" else not self._pure(i + 1, end):
            return None
        self.conditions += differs
        behind = self.statement(end + 1)
        if keyword == "if" and behind is not None and self._text(behind) == "else":
            behind = self.statement(behind + 1)
        self.conditions -= differs
        self.stretch.variables = before
        return behind

    def _rounding(self, i: int) -> int | None:
        """The index behind the loop at `i`, if it calls __float_to_tf32 for all elements."""
        body = (closing(self.tokens, i + 1) or i) + 1
        end = closing(self.tokens, body) if self._text(body) == "{" else body
        while end is not None and self._text(end) not in (";", "}", ""):
            end += 1
        if end is None:
            return None
        match = _ROUNDING.match(" ".join(self._text(k) for k in range(i, end + 1)))
        if match is None:
            return None
        tile = match["tile"].replace(" ", "")
        condition = next(k for k in range(i, end) if self._text(k) == "<")
        until = next(k for k in range(i, end) if self._text(k) == "num_elements")
        self.stretch.arguments.append(tile.partition("[")[0])
        self.stretch.used |= set(re.findall(r"\w+", tile.partition("[")[2]))
        self.stretch.roundings.append((condition + 1, until, "1"))
        statement = f"{{ ::nvcuda::wmma::round_to_tf32({tile}); }}"
        self.stretch.roundings.append((body, end, statement))
        return end + 1

    def _header(self, begin: int, end: int) -> bool:
        """Whether a `for` has only effects on its own variables."""
        parts = _split(self.tokens, begin, end, ";")
        if len(parts) != 3:
            return False
        (a, b), (c, d), (e, f) = parts
        first = a == b or self._declaration(a, b) or self._assignment(a, b)
        return first and self._pure(c, d) and self._assignment(e, f)

    def _call(self, i: int, end: int) -> bool:
        """Whether this is a call of a function of `mma.h`."""
        while self._text(i) in ("nvcuda", "wmma", "::"):
            i += 1
        count = _CALLS.get(self._text(i))
        if count is None or self._text(i + 1) != "(" or closing(self.tokens, i + 1) != end - 1:
            return False
        arguments = _split(self.tokens, i + 2, end - 1, ",")
        for first, last in arguments[:count]:
            if self.tokens[first].kind != "name":
                return False
            self.stretch.arguments.append(self._text(first))
            if any(self._text(k) != "[" for k, _ in _brackets(self.tokens, first + 1, last)):
                return False
            if not self._pure(first + 1, last):
                return False
        self.stretch.calls += 1
        self.stretch.products += self._text(i) == "mma_sync"
        if self._text(i) == "fill_fragment" and not self._is_for_all(*arguments[-1]):
            return False
        return all(self._pure(first, last) for first, last in arguments[count:])

    def _is_for_all(self, begin: int, end: int) -> bool:
        """Whether all lanes fill a fragment with this value: only here they may differ."""
        words = {token.text for token in self.tokens[begin:end] if token.kind == "name"}
        return not self.conditions and words <= _CONVERSIONS

    def _declaration(self, i: int, end: int) -> bool:
        """Whether this declares variables of simple types, or fragments."""
        fragment = self.end_of_fragment(i)
        if fragment is not None:
            self.stretch.types.append((i, fragment))
            for first, last in _split(self.tokens, fragment + 1, end, ","):
                if self.tokens[first].kind != "name" or not self._pure(first + 1, last):
                    return False
                self.stretch.own.add(self._text(first))
            return True
        name = i
        while self.tokens[name].kind == "name" or self._text(name) in ("::", "*", "&"):
            name += 1
        name -= 1
        words = {self._text(k) for k in range(i, name)} - _QUALIFIERS
        if name <= i or self.tokens[name].kind != "name" or self._text(i) in ("*", "&"):
            return False
        if not words - {"*", "&", "::"} or not (words <= _TYPES | {"*", "&"} or "*" in words):
            return False
        if words & {"static", "extern", "volatile", "__shared__", "return", "goto", "case"}:
            return False
        (first, last), *others = _split(self.tokens, name, end, ",")
        return self._declarator(first, last, reference="&" in words) and all(
            self._declarator(a + (self._text(a) == "*"), b) for a, b in others
        )

    def _declarator(self, name: int, end: int, *, reference: bool = False) -> bool:
        if self.tokens[name].kind != "name":
            return False
        if name + 1 != end and not (self._text(name + 1) == "=" and self._pure(name + 2, end)):
            return False
        own = self.stretch.constants if reference else self.stretch.variables
        own.add(self._text(name))
        return True

    def _assignment(self, i: int, end: int) -> bool:
        """Whether this is empty, or assigns to variables of the stretch."""
        return all(
            self._assignment_of_one(first, last)
            for first, last in _split(self.tokens, i, end, ",")
            if first != last
        )

    def _assignment_of_one(self, i: int, end: int) -> bool:
        words = [self._text(k) for k in range(i, end)]
        for sign in "+-":
            if words[:2] == [sign, sign]:
                words = words[2:] + words[:2]
        name, *rest = words
        if name not in self.stretch.variables or name in self.stretch.constants:
            return False
        if rest in (["+", "+"], ["-", "-"]):
            return True
        sign = "".join(rest[:3]).partition("=")[0]
        if sign not in ("", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"):
            return False
        behind = i + 1 + len(sign)
        return self._text(behind) == "=" != self._text(behind + 1) and self._pure(behind + 1, end)

    def end_of_fragment(self, i: int) -> int | None:
        """The index of the last token of the type of a fragment at `i`."""
        if self._text(i) in self.names.aliases:
            return i
        while self._text(i) in ("nvcuda", "wmma", "::"):
            i += 1
        if self._text(i) != "fragment" or self._text(i + 1) != "<":
            return None
        return closing_angle(self.tokens, i + 1)

    # Expressions ---------------------------------------------------------------------------------

    def _pure(self, begin: int, end: int) -> bool:
        return self.is_pure(self.tokens[begin:end])

    def is_pure(self, tokens: list[Token]) -> bool:
        """Whether an expression has no effect; its names are noted."""
        for i, token in enumerate(tokens):
            text, before = token.text, tokens[i - 1] if i else None
            if text in _EFFECTS or text in self.names.impure or text == ";":
                return False
            if token.kind == "name":
                self.stretch.used.add(text)
            touches = before is not None and before.end == token.start
            if text in "+-" and touches and before is not None and before.text == text:
                return False
            if text == "=" and not _is_comparison(tokens, i):
                return False
            if text == "(" and before is not None and self._is_called(tokens, i - 1):
                return False
        return True

    def _is_called(self, tokens: list[Token], i: int) -> bool:
        """Whether what ends at `i`, before a parenthesis, may be a function with an effect."""
        token = tokens[i]
        if token.kind == "name":
            return token.text not in _FUNCTIONS | self.names.pure | {"return"}
        if token.text == ">":
            begin = opening_angle(tokens, i)
            return begin is not None and (not begin or tokens[begin - 1].text not in _CASTS)
        if token.text == ")":
            k = i - 1
            while k >= 0 and (tokens[k].kind == "name" or tokens[k].text in ("*", "::")):
                k -= 1
            is_cast = k >= 0 and tokens[k].text == "(" and tokens[k + 1].kind == "name"
            return not is_cast
        return token.text == "]"


def _is_comparison(tokens: list[Token], i: int) -> bool:
    """Whether the `=` at `i` is part of ==, !=, <= or >=."""

    def joined(k: int) -> str:  # to the one before
        touches = 0 < k < len(tokens) and tokens[k - 1].end == tokens[k].start
        return tokens[k - 1].text if touches else ""

    if joined(i + 1) and tokens[i + 1].text == "=":
        return True
    shift = joined(i) in ("<", ">") and joined(i - 1) == joined(i)
    return joined(i) in ("=", "!", "<", ">") and not shift


def _brackets(tokens: list[Token], begin: int, end: int) -> list[tuple[int, int]]:
    """The first and the last index of what follows one another, each in brackets or one token."""
    result = []
    while begin < end:
        last = closing(tokens, begin) if tokens[begin].text in OPENING else begin
        result.append((begin, last or begin))
        begin = (last or begin) + 1
    return result


def _split(tokens: list[Token], begin: int, end: int, sign: str) -> list[tuple[int, int]]:
    """The parts of tokens[begin:end] between signs outside brackets."""
    parts, first = [], begin
    for i, _ in _brackets(tokens, begin, end):
        if tokens[i].text == sign:
            parts.append((first, i))
            first = i + 1
    return [*parts, (first, end)]
