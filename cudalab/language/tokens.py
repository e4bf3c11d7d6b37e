"""The tokens of CUDA C++: enough to edit code without touching strings and comments.

`tokenize` gives them as a list; `Words` is that list with what the tree is read by: the partner of
each bracket, also where branches of an `#if` share some, and operators of several signs.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\r?\n|[^\n])*)
    |(?P<space>[^\S\n]+|\n|\\\r?\n)  # a newline by itself: a directive may follow
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
               |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<name>[A-Za-z_$]\w*)
    |(?P<sign>->|::|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
Edit = tuple[int, int, str]  # the start and the end of what is replaced, and by what
Place = tuple[str, int]  # a file and a line
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {closing: opening for opening, closing in OPENING.items()}


def set_of(words: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(words.split())


def closure(known: Iterable[str], more: Callable[[set[str]], Iterable[str]]) -> set[str]:
    """What is known, and whatever `more` finds by what is known so far, until it finds nothing."""
    known = set(known)
    while added := set(more(known)) - known:
        known |= added
    return known


ALTERNATIVES = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "xor": "^",
    "bitand": "&",
    "bitor": "|",
    "compl": "~",
    "and_eq": "&=",
    "or_eq": "|=",
    "xor_eq": "^=",
    "not_eq": "!=",
}


class Token(NamedTuple):
    """A token that is not a space or a comment; that of a preprocessed text knows its place."""

    kind: str  # directive (a whole preprocessor line), string, character, number, name or sign
    text: str
    start: int = 0
    end: int = 0
    file: str = ""
    line: int = 0
    namespace: str = ""  # a named one, in which it stands

    @property
    def place(self) -> str:
        """The user's file and line."""
        return f"{self.file}:{self.line}"


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`. Signs are single characters, except `->` and `::`."""
    return [
        Token(match.lastgroup or "", match[0], match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match.lastgroup not in ("space", "comment")
    ]


def brackets(
    tokens: Sequence[Token], directives: Sequence[Token] = (), first: int = 0
) -> Iterator[tuple[int, int]]:
    """The indices where brackets open and close, from token `first` on, in the order of closing.

    The branches of an `#if` among the directives begin with the same brackets open.
    """
    open_: list[int] = []
    saved: list[list[int]] = []
    pending = list(reversed(directives))
    for i in range(first, len(tokens)):
        text = tokens[i].text
        while pending and pending[-1].start < tokens[i].start:
            word = pending.pop().text.lstrip().lstrip("#").lstrip()
            if word.startswith("if"):
                saved.append(list(open_))
            elif word.startswith("el") and saved:
                open_ = list(saved[-1])
            elif word.startswith("endif") and saved:
                saved.pop()
        if text in OPENING:
            open_.append(i)
        elif text in CLOSING:
            depth = len(open_) - 1
            while depth >= 0 and tokens[open_[depth]].text not in (CLOSING[text], "{"):
                depth -= 1  # over what does not close
            if depth >= 0 and tokens[open_[depth]].text == CLOSING[text]:
                yield open_[depth], i
                del open_[depth:]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The index where the first bracket from `opening` on closes; None if it does not."""
    while opening < len(tokens) and tokens[opening].text not in OPENING:
        opening += 1
    pairs = brackets(tokens, first=opening)
    return next((end for start, end in pairs if start == opening), None)


def opening(tokens: Sequence[Token], closing: int) -> int | None:
    """The index where the bracket that closes at `closing` opens; None if it does not."""
    pairs = brackets(tokens[: closing + 1])
    return next((start for start, end in pairs if end == closing), None)


def closing_angle(tokens: Sequence[Token], opening_: int) -> int | None:
    """The index where the template argument list that opens with `<` closes; None if it compares.

    `>>` may be one token, which then closes two lists.
    """
    depth, i = 0, opening_
    while i < len(tokens):
        text = tokens[i].text
        if text == "<":
            depth += 1
        elif text in (">", ">>"):
            depth -= len(text)
            if depth <= 0:
                return i
        elif text in ("(", "["):
            i = closing(tokens, i) or len(tokens)
        elif text in (";", "{", "&&", "||") or text in CLOSING:
            return None
        i += 1
    return None


def split(tokens: Sequence[Token], at: str = ",") -> list[list[Token]]:
    """The parts between the separators that are in no brackets; no part if there is no token."""
    parts: list[list[Token]] = [[]]
    i = 0
    while i < len(tokens):
        end = i
        if tokens[i].text in OPENING:
            end = closing(tokens, i) or len(tokens) - 1
        elif tokens[i].text == "<" and i and tokens[i - 1].kind == "name":
            angle = closing_angle(tokens, i)
            after = tokens[angle + 1].text if angle and angle + 1 < len(tokens) else ""
            if angle and after in ("(", "::", "{"):
                end = angle
        if tokens[i].text == at:
            parts.append([])
        else:
            parts[-1] += tokens[i : end + 1]
        i = end + 1
    return parts if len(parts) > 1 or parts[0] else []


def texts(words: Iterable[Token]) -> list[str]:
    return [word.text for word in words]


def spaced(words: Iterable[Token]) -> str:
    """The words in one line."""
    return " ".join(word.text for word in words)


def names_in(words: Iterable[Token]) -> set[str]:
    return {word.text for word in words if word.kind == "name"}


def called(words: Iterable[Token]) -> Iterator[str]:
    """The names before brackets: what the words may call, and `if` and the like."""
    pairs = pairwise(words)
    return (word.text for word, after in pairs if word.kind == "name" and after.text == "(")


def only_x(words: Iterable[Token], of: str = "threadIdx") -> bool:
    """Whether a text asks for threadIdx, or the like, along the first dimension alone."""
    names = texts(words)
    return all(names[i + 1 : i + 3] == [".", "x"] for i, name in enumerate(names) if name == of)


def has_lambda(words: Sequence[Token]) -> bool:
    """Whether the words contain a lambda, by its bracket, which is no index."""
    return any(
        word.text == "["
        and (i == 0 or (words[i - 1].kind == "sign" and words[i - 1].text not in (")", "]")))
        for i, word in enumerate(words)
    )


class Lines:
    """The line numbers of positions in a text."""

    def __init__(self, text: str) -> None:
        """Record where lines begin."""
        self._starts = [0, *(match.end() for match in re.finditer(r"\n", text))]

    def __getitem__(self, position: int) -> int:
        """The line number, from 1, of `position`."""
        return bisect_right(self._starts, position)


class Places:
    """The files and lines of positions in a text with #line directives."""

    def __init__(self, text: str) -> None:
        """Record where lines begin, and what the directives say."""
        self._lines = Lines(text)
        self._marks = [
            (self._lines[match.end()], match["file"], int(match["line"]))
            for match in re.finditer(r'^#line (?P<line>\d+) "(?P<file>[^"]*)"', text, re.MULTILINE)
        ]

    def __getitem__(self, position: int) -> tuple[str, int]:
        """The file and line of `position`; no file before the first directive."""
        at = self._lines[position]
        behind = bisect_right(self._marks, (at,)) - 1
        if behind < 0:
            return "", at
        line, file, first = self._marks[behind]
        return file, first + at - line - 1


def as_sign(token: Token) -> Token:
    """A token, with `^=` for `xor_eq` and the like."""
    sign = ALTERNATIVES.get(token.text)
    return token._replace(kind="sign", text=sign) if sign else token


# The words of a file ------------------------------------------------------------------------------

QUALIFIERS = set_of(
    "const constexpr consteval constinit volatile static inline extern register mutable "
    "friend virtual explicit thread_local typename restrict __restrict __restrict__ __inline "
    "__inline__ __forceinline__ __noinline__ __device__ __host__ __global__ __shared__ "
    "__constant__ __managed__ __grid_constant__ __extension__"
)
ATTRIBUTES = set_of(
    "__launch_bounds__ __attribute__ __declspec __align__ __maxnreg__ __cluster_dims__ "
    "__block_size__ alignas noexcept"
)
# Words that neither begin a type nor are the name of anything.
KEYWORDS = set_of(
    "return if else while for do switch case default break continue goto try catch throw new "
    "delete sizeof alignof operator using typedef namespace template class struct union enum "
    "public private protected asm __asm__ __asm static_cast reinterpret_cast const_cast "
    "dynamic_cast this co_await co_return co_yield static_assert concept requires"
) | frozenset(ALTERNATIVES)
BEHIND_PARAMETERS = frozenset({"const", "volatile", "override", "final", "mutable", "&", "try"})
POINTERS = set_of("* & const volatile __restrict__ __restrict restrict")
ASSEMBLY = frozenset({"asm", "__asm__", "__asm"})
_ALONE = frozenset("(){}[];,?~")  # no operator of several signs begins with them
_OPERATORS = set_of(
    "<<= >>= <=> ... ->* << >> <= >= == != && || += -= *= /= %= &= |= ^= ++ -- .* ->"
)


class Words:
    """The tokens of a file without its directives, by index; behind the end there are none."""

    def __init__(self, tokens: Sequence[Token], directives: Sequence[Token] = ()) -> None:
        """Find the partner of each bracket."""
        self.tokens = list(tokens)
        own = [token.text for token in tokens]
        self.texts = [ALTERNATIVES.get(text, text) for text in own] + [""] * 8
        self.kinds = [token.kind for token in tokens] + ["end"] * 8
        for i in [i for i, text in enumerate(own) if text in ALTERNATIVES]:
            self.kinds[i] = "sign"
        pairs = list(brackets(self.tokens, directives))
        self.partners = {**dict(pairs), **{end: start for start, end in pairs}}

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    def behind(self, opening: int, end: int) -> int:
        """The index behind the bracket that opens here, or `end` if it does not close."""
        partner = self.partners.get(opening)
        return end if partner is None or partner >= end else partner + 1

    def skip(self, i: int, end: int) -> int:
        """The index behind a token, or behind a bracket that opens here."""
        return self.behind(i, end) if self.texts[i] in OPENING else i + 1

    def around(self, i: int) -> int | None:
        """The index of the bracket that opens around a token; None if there is none."""
        i -= 1
        while i >= 0 and self.texts[i] not in OPENING:
            i = self.partners.get(i, i) - 1
        return i if i >= 0 else None

    def adjacent(self, i: int) -> bool:
        """Whether nothing is between a token and the next one."""
        return i + 1 < len(self.tokens) and self.tokens[i].end == self.tokens[i + 1].start

    def operator(self, i: int) -> str:
        """The longest operator that begins here, or the token's text."""
        texts = self.texts
        if self.kinds[i] != "sign" or texts[i] in _ALONE:
            return texts[i]
        joined, k = texts[i], i
        while len(joined) < 3 and self.kinds[k + 1] == "sign" and self.adjacent(k):
            k += 1
            joined += texts[k]
        if joined in _OPERATORS:
            return joined
        return joined[:2] if joined[:2] in _OPERATORS else texts[i]

    def width(self, i: int, operator: str) -> int:
        """The number of tokens of an operator that begins here."""
        k, joined = i, ""
        while len(joined) < len(operator):
            joined += self.texts[k]
            k += 1
        return k - i

    def angle(self, i: int, end: int) -> int | None:
        """The index behind a template argument list that begins here, if it may be one."""
        if self.texts[i] != "<" or self.operator(i) in ("<<", "<=", "<<="):
            return None
        close = closing_angle(self.tokens, i)
        if close is None or close >= end:
            return None
        inside = [self.operator(k) for k in range(i + 1, close)]
        return None if {"||", "=="} & set(inside) else close + 1

    def end_of(self, i: int, end: int, signs: str = ";") -> int:
        """The index of the first of the signs outside brackets; `end` if there is none."""
        while i < end and self.texts[i] not in signs and self.texts[i] not in CLOSING:
            i = self.skip(i, end)
        return min(i, end)

    def text(self, first: int, last: int) -> str:
        """The tokens with spaces where there was something between them."""
        return "".join(
            self.texts[k] + ("" if k == last - 1 or self.adjacent(k) else " ")
            for k in range(first, last)
        )
