"""Conversions and shifts in device code with a GPU's results: where the edits of arithmetic.py go.

A statement whose edits a host's compiler refuses gets others, if there are any. Else it stays as it
is, with the processor's values, and the function around it refuses to run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cudalab.errors import KernelCompileError
from cudalab.language import arithmetic, twins
from cudalab.language.scopes import Node
from cudalab.language.source import quoted
from cudalab.language.syntax import Words

Edit = tuple[int, int, str]
Place = tuple[str, int]  # a file and a line

_CONSTANT = {"static", "constexpr"}


class Code(NamedTuple):
    """The device code of a file."""

    root: Node
    words: Words
    bodies: Sequence[Node]  # its functions for the device
    classes: set[str]  # of which device code may make objects
    doubled: set[str]  # macros with twins

    def edits(
        self,
        made: Sequence[Edit],
        lines: Callable[[Node], Sequence[Place]],
        refused: Mapping[Place, int],
        *,
        divisions: bool,
    ) -> Iterator[Edit]:
        """The edits, but where others have been `made`.

        `lines` gives those of a statement. `refused` says where the compiler has refused edits, and
        how often.
        """
        edited = sorted((start, end) for start, end, _ in made if start < end)
        nodes = (*arithmetic.outermost(self.bodies), *_defaults(self.root, self.classes))
        groups = [
            group
            for node in nodes
            for group in arithmetic.groups(node, self.words, divisions=divisions)
        ]
        for group in (*groups, *twins.used(self.bodies, self.words, self.doubled)):
            if not group.is_inside(edited):
                yield from _edits_of(group, self.words, lines(group.statement), refused)


def named_for(device: set[str], files: Sequence[tuple[Node, Words]]) -> set[str]:
    """The names that `device` code uses, and those in the classes among them."""
    classes = [(each, words) for root, words in files for each in root.of_kind("class")]
    named, size = set(device), 0
    while len(named) != size:
        size = len(named)
        for each, words in classes:
            if each.text in named:
                named.update(words.texts[each.first : each.last])
    return named


def _defaults(root: Node, named: set[str]) -> Iterator[Node]:
    """The declarations of members with default values, of the classes `named` for the device.

    Those in functions are left out, and constants, whose values the compiler checks.
    """
    functions = list(root.of_kind("function", "lambda"))
    for each in root.of_kind("class"):
        local = any(function.first <= each.first < function.last for function in functions)
        if local or each.text not in named:
            continue
        for member in each.children:
            is_value = member.kind == "declaration" and not (member.words & _CONSTANT)
            if is_value and any(child.kind == "initializer" for child in member.children):
                yield member


def _edits_of(
    group: arithmetic.Group, words: Words, lines: Sequence[Place], refused: Mapping[Place, int]
) -> list[Edit]:
    """The edits of a statement that has these lines.

    `refused` says how often the compiler has refused a line.
    """
    worst = max(lines, key=lambda line: refused.get(line, 0))
    times = refused.get(worst, 0)
    edits = [group.edits, group.others][times] if times <= 1 else []
    return edits or [_refusal(group.function, words, worst)]


def _refusal(function: Node, words: Words, line: Place) -> Edit:
    """The edit that makes a function refuse to run, because of a line."""
    body = next((child for child in function.children if child.kind == "block"), None)
    if body is None:  # a class
        raise KernelCompileError(
            f"{line[0]}:{line[1]}: this default value cannot be given a GPU's conversion or shift",
            hint="give the member its value in a constructor",
        )
    brace = words.tokens[body.first].end
    return brace, brace, f" ::cudalab::cudalab_refuse_arithmetic({quoted(f'{line[0]}:{line[1]}')});"
