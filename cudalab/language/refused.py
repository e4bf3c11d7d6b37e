"""What becomes of statements whose edits of arithmetic.py a host's compiler refuses.

Such a statement gets other edits, if there are any. Else it stays as it is, with the processor's
values, and the function around it refuses to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudalab.errors import KernelCompileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cudalab.language.arithmetic import Group
    from cudalab.language.scopes import Node
    from cudalab.language.syntax import Words

    Edit = tuple[int, int, str]
    Place = tuple[str, int]  # a file and a line


def edits_of(
    group: Group, words: Words, lines: Sequence[Place], refused: Mapping[Place, int]
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
    label = line[0].replace("\\", "\\\\").replace('"', '\\"')
    return brace, brace, f' ::cudalab::cudalab_refuse_arithmetic("{label}:{line[1]}");'
