"""What a rung teaches, taken from its own file: its prose, and the lines that are new in it."""

import os
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from cudalab.labs.header import Variant
from cudalab.language import source

SHORTEST, LONGEST = 6, 15  # lines of an excerpt
FEW = 3  # new lines of a variant's own file; the idea is then in a header
# Lines that say little by themselves: declarations, brackets, checks of sizes, includes.
_PAPER = re.compile(r"^// (Sources?: (?:.*\n?(?://)?)*)\Z", re.MULTILINE)
_PLAIN = re.compile(
    r"\s*(?:[{}();]*|//.*|#\s*(?:include|define|pragma|if|endif|else|undef).*|static_assert.*"
    r'|extern "C".*|(?:const |unsigned |constexpr )*[\w ]+[;,]|using .*|template.*)'
)
_MACROS = "Macros from outside:"
_LIMITS = re.compile(r"(?:^|\s)Limits?: (.)")


class _Part(NamedTuple):
    """A part of a file, and how many of its lines are new and say something."""

    telling: int
    lines: list[str]


def prose(rung: Variant) -> list[str]:
    """The paragraphs of the comment at the top of a variant's file, as Markdown."""
    lines = _comment(rung.path.read_text(encoding="utf-8"))
    paragraphs = "\n".join(lines).split("\n\n")
    return [_as_markdown(each) for each in paragraphs if not each.startswith(_MACROS)]


def paper(rung: Variant) -> str:
    """The paper that a variant follows, as its file's last lines name it; or nothing."""
    text = rung.path.read_text(encoding="utf-8")
    found = _PAPER.search(text)
    return escaped(" ".join(found[1].replace("//", " ").split())) if found else ""


def _comment(text: str) -> list[str]:
    """The lines of the comment behind the header, without their slashes."""
    _, _, behind = text.partition("// ///\n")
    lines: list[str] = []
    for line in behind.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" ").rstrip())
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _as_markdown(paragraph: str) -> str:
    """A paragraph on one line; what is indented becomes a list, or, by four and more, a drawing."""
    lines = paragraph.splitlines()
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    items: list[str] = []
    for line in lines:
        if re.match(r" {2,5}\S", line) and not line.startswith(" " * 6):
            items.append("\n* " + re.sub(r"^(\w+) {2,}", r"`\1`: ", line.strip()))
        elif items and items[-1].startswith("\n*") and not line.startswith(" "):
            items.append(f"\n\n{line}")  # prose again
        else:
            items.append(line.strip())
    text = re.sub(r" *\n *", "\n", " ".join(items)).strip()
    text = _LIMITS.sub(lambda found: f"\n\n**Limits.** {found[1].upper()}", text)
    return escaped(text.strip())


def escaped(text: str) -> str:
    """Text whose signs mean nothing to Markdown, but for code in backticks and lists."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<![\n*])\*(?!\*)", r"\\*", parts[i])
        parts[i] = parts[i].replace("<", "&lt;").replace("_", r"\_").replace("[", r"\[")
    return "`".join(parts)


def excerpt(rung: Variant, before: Variant | None) -> tuple[str, list[str]]:
    """Where most is new against the rung before: the file, and its lines as a diff's.

    New lines have a plus sign. The part lies within one function, if anything is new in functions:
    of the variant's own file, or of a header that the rung before does not include if the own file
    only calls what is there.
    """
    own, *headers = source.load(rung.path, rung.label).files
    others = set(source.load(before.path, before.label).files) if before else set()
    found = _part(_code(rung), _code(before) if before else [])
    if found.telling < FEW:
        parts = [(path, _part(_lines_of(path), [])) for path in headers if path not in others]
        # A file that includes another rung is that rung with another size or another case.
        parts = [each for each in parts if each[0].suffix == ".cu"] or parts
        path, best = max(parts, key=lambda each: each[1].telling, default=(own, found))
        if best.telling > found.telling:
            return os.path.relpath(path, own.parent), best.lines
    return own.name, found.lines


def _part(code: list[str], before: list[str]) -> _Part:
    """The part of some code in which most is new."""
    new = _new_lines(code, before)
    telling = {i for i in new if not _PLAIN.fullmatch(code[i])}
    in_functions = [
        (begin, min(begin + LONGEST, last), first, last)
        for first, last in _functions(code)
        for begin in range(first, last)
        if begin in telling
    ]
    windows = in_functions or [(i, min(i + LONGEST, len(code)), 0, len(code)) for i in sorted(new)]
    if not windows:
        return _Part(0, [])
    begin, end, first, last = max(windows, key=lambda at: len(telling & {*range(at[0], at[1])}))
    inside = [i for i in range(begin, end) if i in (telling or new)]
    begin, end = _widened(begin, inside[-1] + 1, first, last)
    while not code[begin]:
        begin += 1
    lines = [f"{'+' if i in new else ' '} {code[i]}".rstrip() for i in range(begin, end)]
    return _Part(len(inside) if in_functions else 0, _without_common_indent(lines))


def _widened(begin: int, end: int, first: int, last: int) -> tuple[int, int]:
    """At least SHORTEST lines around those from `begin` to `end`, within a function."""
    while end - begin < SHORTEST and (begin > first or end < last):
        if end < last:
            end += 1
        if end - begin < SHORTEST and begin > first:
            begin -= 1
    return begin, end


def _code(rung: Variant) -> list[str]:
    """The lines of a variant's file behind the comment at its top; before them its defines."""
    defines = [f"// {name} = {value}" for name, value in rung.defines.items()]
    return defines + _lines_of(rung.path)


def _lines_of(path: Path) -> list[str]:
    """The lines of a file between the comment at its top and the source that it follows."""
    text = path.read_text(encoding="utf-8")
    lines = _PAPER.sub("", text).rstrip().splitlines()
    start = next((i for i, line in enumerate(lines) if line and not line.startswith("//")), 0)
    return lines[start:]


def _new_lines(code: list[str], before: list[str]) -> set[int]:
    """The indices of lines that the file before does not have at that place."""
    old, now = ([" ".join(line.split()) for line in each] for each in (before, code))
    matched = SequenceMatcher(None, old, now, autojunk=False).get_opcodes()
    return {
        i
        for kind, _, _, a, b in matched
        if kind in ("insert", "replace")
        for i in range(a, b)
        if now[i]
    }


def _functions(code: list[str]) -> Iterator[tuple[int, int]]:
    """The bodies of functions: from behind a line that opens one to its closing brace."""
    begin: int | None = None
    for i, line in enumerate(code):
        if line.startswith("}"):
            if begin is not None and line == "}":
                yield begin, i
            begin = None
        elif line.endswith("{") and (begin is None or not line.startswith(" ")):
            begin = i + 1


def _without_common_indent(lines: list[str]) -> list[str]:
    """The lines with as many leading spaces less as all have behind their sign."""
    texts = [line[2:] for line in lines]
    indent = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
    return [f"{line[:2]}{text[indent:]}".rstrip() for line, text in zip(lines, texts, strict=True)]
