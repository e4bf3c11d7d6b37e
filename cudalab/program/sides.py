"""`__CUDA_ARCH__` for the device's code only: nvcc compiles what is for both sides twice.

Functions for the host do not see it. A function for both sides that asks for it, and that the host
may call, has both texts, and asks when it runs where it is.
"""

import re
from collections.abc import Iterator, Sequence

from cudalab.language.scopes import Node
from cudalab.language.source import quoted
from cudalab.language.tokens import Token
from cudalab.output.notes import note
from cudalab.program.parsed import Parsed

_CONDITION = re.compile(r"[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b")
_BEGIN = re.compile(r"[ \t]*#[ \t]*if")
_END = re.compile(r"[ \t]*#[ \t]*endif")
_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
_ARCH = re.compile(r"\b__CUDA_ARCH__\b")
_NONE = "CUDALAB_NO_ARCH"
_IN_KERNEL = " if (::cudalab::cudalab_on_device()) {"


def rewrite(files: Sequence[Parsed], *, tell: bool) -> None:
    """Give the host what nvcc gives it; what stays the device's is told by its line."""
    marks = {"__host__"}
    marks |= {macro.name for each in files for macro in each.macros if "__host__" in macro.words}
    used = set[str]()
    for each in files:
        texts, only = each.words.texts, set[int]()
        for _, body, is_both in _bodies(each, marks):
            only |= set() if is_both else set(range(body.first, body.last))
        inside = [(node.first, node.last) for node in each.root.of_kind("initializer")]
        inside += [(first, last + 1) for first, last in each.structure.functions]
        used |= {texts[i] for first, last in inside for i in range(first, last) if i not in only}
    for each in files:
        _of_host(each)
        lines = [*_of_both(each, marks, used), *_macros(each, used)]
        for line in sorted(lines) if tell else []:
            note(f"{each.file.label}:{line}: the host's code sees __CUDA_ARCH__ here as well")


def _bodies(each: Parsed, marks: set[str]) -> Iterator[tuple[Node, Node, bool]]:
    """The functions for the device: node, body, and whether they are for the host as well."""
    for node in each.bodies:
        body = next(child for child in node.children if child.kind == "block")
        yield node, body, bool(marks & set(each.words.texts[node.first : body.first]))


def _asking(each: Parsed, start: int, end: int) -> list[Token]:
    """The conditions with `__CUDA_ARCH__` between two positions."""
    return [
        directive
        for directive in each.directives
        if start < directive.start < end
        and _CONDITION.match(directive.text)
        and _ARCH.search(directive.text)
    ]


def _of_host(each: Parsed) -> None:
    """Take it out of functions for the host."""
    tokens = each.tokens
    own = [(tokens[i].start, tokens[j].end) for i, j in each.structure.functions if i < j]
    others = [(tokens[node.first].start, tokens[node.last - 1].end) for node in each.bodies]
    for directive in _asking(each, 0, len(each.file.text)):
        start = directive.start
        if any(a < start < b for a, b in own) and not any(a < start < b for a, b in others):
            for match in _ARCH.finditer(directive.text):
                each.replace(start + match.start(), start + match.end(), _NONE)


def _of_both(each: Parsed, marks: set[str], used: set[str]) -> Iterator[int]:
    """Write functions for both sides twice; the lines of those that stay as they are."""
    for node, body, is_both in _bodies(each, marks):
        start, end = each.tokens[body.first].end, each.tokens[body.last - 1].start
        asking = _asking(each, start, end)
        name = node.text.rpartition("::")[2]
        is_called = name in used or name.startswith("operator")
        if not (asking and is_both and is_called):
            continue
        if node.kind != "function" or "constexpr" in each.words.texts[node.first : body.first]:
            yield each.lines[asking[0].start]
            continue
        copied, at = "", start
        for directive in asking:
            copied += each.file.text[at : directive.start] + _ARCH.sub(_NONE, directive.text)
            at = directive.end
        copied += each.file.text[at:end]
        label = quoted(each.file.label)
        first, last = (f"\n#line {each.lines[place]} {label}\n" for place in (start, end))
        each.edits.append((start, start, _IN_KERNEL))
        each.edits.append((end, end, f"}} else {{{first}{copied}{last}}}"))


def _macros(each: Parsed, used: set[str]) -> Iterator[int]:
    """The lines of macros that only such a condition defines, and that the host uses."""
    depth, asks = 0, list[int]()
    for directive in each.directives:
        if _BEGIN.match(directive.text):
            depth += 1
            if _ARCH.search(directive.text):
                asks.append(depth)
        elif _END.match(directive.text):
            asks = [level for level in asks if level < depth]
            depth -= 1
        found = _DEFINE.match(directive.text)
        if found and asks and found[1] in used:
            yield each.lines[directive.start]
