"""Failed calls of the runtime API whose result the program ignores."""

import re
from collections.abc import Iterator, Sequence

from cudalab.language.source import quoted
from cudalab.language.tokens import Token, closing, opening, tokenize
from cudalab.program.rewrite.parsed import Parsed

# What a program counts on: bytes that are copied or set, memory that is made or given back, and
# which device is used.
COUNTED_ON = re.compile(
    r"cuda(?:Memcpy|Memset|Malloc|Free|HostAlloc|HostRegister|SetDevice\b|EventElapsedTime)\w*"
)
_API = re.compile(r"cuda[A-Z]")
_CONDITIONAL = frozenset({"if", "for", "while", "switch"})
_BEFORE_STATEMENT = frozenset({"", ";", "{", "}", "else", "do", ":"})


def rewrite(parsed: Parsed) -> None:
    """Tell the runtime before each such call that nobody looks at its result."""
    of_device = {i for body in parsed.bodies for i in range(body.first, body.last)}
    for first, last in _told(parsed.tokens):
        if first not in of_device:
            begin = first - (parsed.tokens[first - 1].text == "::")
            at, end = parsed.tokens[begin].start, parsed.tokens[last].end
            parsed.replace(at, at, "(::cudalab::cudalab_thrown_away(), ")
            parsed.replace(end, end, ")")


def rewritten_c(text: str, path: str) -> str | None:
    """The text of a file in C that tells the runtime so, under its own name; None if none does."""
    tokens = [token for token in tokenize(text) if token.kind != "directive"]
    pieces, end = [f"#line 1 {quoted(path)}\n"], 0
    for first, last in _told(tokens):
        start, stop = tokens[first].start, tokens[last].end
        pieces += [text[end:start], "(cudalab_c_thrown_away(), ", text[start:stop], ")"]
        end = stop
    return "".join([*pieces, text[end:]]) if end else None


def _told(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The calls of which the runtime is told, except those with another call in their arguments.

    The inner call would be taken for the outer one. A call stays what it is, even where a macro has
    its name.
    """
    for first, last in thrown_away(tokens):
        calls = [i for i in range(first, last) if tokens[i + 1].text == "("]
        if [i for i in calls if _API.match(tokens[i].text)] == [first]:
            yield first, last


def thrown_away(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The calls that are statements by themselves: the indices of name and closing parenthesis."""
    for i, token in enumerate(tokens[:-1]):
        if tokens[i + 1].text != "(" or not COUNTED_ON.fullmatch(token.text):
            continue
        end = closing(tokens, i + 1)
        if end is None or end + 1 >= len(tokens) or tokens[end + 1].text != ";":
            continue
        if _begins_statement(tokens, i):
            yield i, end


def _begins_statement(tokens: Sequence[Token], i: int) -> bool:
    """Whether token `i`, with a `::` or a `(void)` before it, is the first of a statement."""
    if i and tokens[i - 1].text == "::":
        i -= 1
    if [each.text for each in tokens[max(i - 3, 0) : i]] == ["(", "void", ")"]:
        i -= 3
    before = tokens[i - 1].text if i else ""
    if before == ")":
        begin = opening(tokens, i - 1)
        return bool(begin) and tokens[(begin or 1) - 1].text in _CONDITIONAL
    if before == ":":  # of a label, or of `a ? b : c`
        j = i - 1
        while j and tokens[j - 1].text not in ("?", ";", "{", "}"):
            j -= 1
        return not j or tokens[j - 1].text != "?"
    return before in _BEFORE_STATEMENT
