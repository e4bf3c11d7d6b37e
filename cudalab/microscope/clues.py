"""What the source says about a finding, and the instrument cannot know: branches and names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cudalab.backends.trace import Finding, Place
from cudalab.language.tokens import CLOSING, Lines, Token, opening, tokenize

BIT_FIELDS = "bit fields"  # the detail of a race between two that share a word
_CONDITIONAL = frozenset({"if", "for", "while", "switch"})
_BIT_FIELD = re.compile(r"\b(\w+)\s*:\s*\d+\s*[;,=]")
_MEMBER = re.compile(r"(?:\.|->)\s*(\w+)")
_OF_TYPE = re.compile(r"^index (?P<index>-?\d+) of an array of type \S+?(?P<size>\[.*)")


def with_clues(finding: Finding, texts: Mapping[str, Sequence[str]]) -> Finding:
    """The finding with what the lines of the source, by file, say about it."""
    lines = texts.get(finding.place.file, ())
    other = finding.other_place
    if finding.kind == "barrier_divergence" and finding.note and other:
        same = other.file == finding.place.file
        skipped = same and _skips("\n".join(lines), finding.place.line, other.line)
        return replace(finding, note=not skipped)
    if finding.kind in ("race", "lost_update") and other and not finding.detail:
        one, two = (_bit_fields(place, texts) for place in (finding.place, other))
        return replace(finding, detail=BIT_FIELDS) if len(one | two) > 1 else finding
    match = _OF_TYPE.match(finding.detail)
    if finding.kind == "out_of_bounds" and match and finding.place.line <= len(lines):
        indexed = re.findall(r"(\w+)\s*\[", lines[finding.place.line - 1])
        declared = rf"\w[\s*&]+(\w+)\s*{re.escape(match['size'])}"
        names = {name for name in re.findall(declared, "\n".join(lines)) if name in indexed}
        if len(names) == 1:
            array = f"{names.pop()}{match['size']}"
            return replace(finding, detail=f"index {match['index']} of the array {array}")
    return finding


def _bit_fields(place: Place, texts: Mapping[str, Sequence[str]]) -> set[str]:
    """The bit fields that a line names."""
    lines = texts.get(place.file, ())
    if not 1 <= place.line <= len(lines):
        return set()
    fields = {name for text in texts.values() for name in _BIT_FIELD.findall("\n".join(text))}
    return fields.intersection(_MEMBER.findall(lines[place.line - 1]))


def _skips(text: str, barrier: int, last: int) -> bool:
    """Whether a thread that was last seen at the line `last` has gone around the barrier.

    It has if that is where a branch begins, or another part of it, inside of which the barrier is.
    """
    tokens, lines = tokenize(text), Lines(text)
    on_line = [i for i, token in enumerate(tokens) if lines[token.start] == barrier]
    barriers = [i for i in on_line if "sync" in tokens[i].text] or on_line
    return bool(barriers) and any(
        lines[tokens[first].start] <= last <= lines[tokens[end].start]
        for first, end in _branches(tokens, barriers[0])
    )


def _branches(tokens: list[Token], i: int) -> Iterator[tuple[int, int]]:
    """The conditions of which a statement at `i` depends, from their first to their last token."""
    while i > 0:
        i -= 1
        text = tokens[i].text
        if text in CLOSING:
            other = opening(tokens, i)
            if other is None:
                return
            if text == ")" and other and tokens[other - 1].text in _CONDITIONAL:
                yield other - 1, i
            i = other
            if text == "}":  # of a statement before this one
                i = _before_statements(tokens, i)
        elif text == ";":
            i = _before_statements(tokens, i)
        elif text == "else":
            begin = _begin_of_if(tokens, i)
            yield begin, i
            i = begin


def _before_statements(tokens: list[Token], i: int) -> int:
    """The index of the brace in which the statement that `i` ends, or begins, stands."""
    while i > 0:
        i -= 1
        if tokens[i].text in CLOSING:
            i = opening(tokens, i) or 0
        elif tokens[i].text == "{":
            return i
    return 0


def _begin_of_if(tokens: list[Token], i: int) -> int:
    """The index of the `if` to which the `else` at `i` belongs."""
    pending = 1
    while i > 0 and pending:
        i -= 1
        if tokens[i].text in CLOSING:
            i = opening(tokens, i) or 0
        elif tokens[i].text in ("if", "else"):
            pending += 1 if tokens[i].text == "else" else -1
    return i
