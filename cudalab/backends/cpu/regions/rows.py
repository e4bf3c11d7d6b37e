"""Kernels that do not tell the rows of a block apart: one row does what all of them do.

A kernel for blocks of one dimension may be launched with blocks of several. Threads with one
`threadIdx.x` then read and write the same elements, and where they go in step, as on a GPU, each
finds what all others have written, too. So one of them does for all.
"""

import re
from itertools import pairwise

from cudalab.backends.cpu.regions.syntax import Function
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import Words, texts

# What stands before a bracket in code that only computes: functions without effects, and types.
_PURE = re.compile(
    r"if|for|return|sizeof|decltype|\w+_cast|unsigned|int|float|double|\w+_t|make_\w+[1-4]|__\w+_as_\w+"
    r"|cudalab_fit|cudalab_into|abs|f?min|f?max|f(?:abs|min|max)f?|fmaf?|r?sqrtf?|__ldg|__f\w+_r[nzud]"
)
_NOT_PURE = frozenset({"asm", "__asm__", "volatile", "switch", "new", "delete", "->", "static"})


def is_pure(unit: Unit, body: Words) -> bool:
    """Whether a function only computes and assigns."""
    return not _NOT_PURE & set(texts(body)) and all(
        word.text in unit.by_name or _PURE.fullmatch(word.text)
        for i, word in enumerate(body[:-1])
        if word.kind == "name" and body[i + 1].text == "("
    )


def are_alike(unit: Unit, kernel: Function) -> bool:
    """Whether the rows of a block do the same, so that one of them does for all."""
    if not unit.is_program or kernel.template or kernel.numbers or not unit.is_flat(kernel):
        return False
    functions = unit.called_by(kernel)
    bodies = [*(function.body for function in functions), *unit.classes(functions)]
    words = [word.text for body in bodies for word in body]
    return (
        "threadIdx" in words
        and not unit.collective & {function.name for function in functions}
        and all(is_pure(unit, body) for body in bodies)
        and all(_asks_for_x(body) and not _calls_any(body) for body in bodies)
    )


def _asks_for_x(body: Words) -> bool:
    """Whether a function asks for the extent of a block along the first dimension alone."""
    names = texts(body)
    return all(
        names[i + 1 : i + 3] == [".", "x"] for i, name in enumerate(names) if name == "blockDim"
    )


def _calls_any(body: Words) -> bool:
    """Whether a function may call one that it does not name, as in `(*f)(x)` and `f[i](x)`."""
    names = texts(body)
    return any(
        after == "(" and (before == "]" or (before == ")" and "*" in names[max(0, i - 3) : i]))
        for i, (before, after) in enumerate(pairwise(names))
    )
