"""Mistakes that show only sometimes: in some blocks, for some sizes, one operator or one type.

Each is a change of rules.py under a condition. Those who look for a mistake by hand make such ones:
the tests hold the sizes at which everybody looks.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator

from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.language.tokens import Token, closing, opening, tokenize
from tools.mutants.rules import (
    BARRIERS,
    OPERATORS,
    SEED,
    SOMETIMES_PER_VARIANT,
    Made,
    Mutant,
    changes,
    drawn,
    mutant,
    operand,
)

SIZE = re.compile(r"\b(?:unsigned|int|size_t)\s+(n|rows|cols|m|items|num_items)\b(?!\s*\()")
NEXT_LINE = "\n#line "
CONDITIONS = {
    "last block": ("blockIdx.x > 0 && blockIdx.x + 1 == gridDim.x",),
    "later blocks": ("blockIdx.x >= 1", "blockIdx.x >= 3"),
    "residue": ("{n} % 32 == 31", "{n} % 64 == 63", "{n} % 32 == 1"),
    "bound": ("{n} > 300", "{n} > 3000", "{n} > 70000", "{n} > 1000000"),
    "operator": ("MUTATED_MAX",),
    "dtype": ("T(0.5) != T(0)",),
}
# Which operator the lab has chosen: a macro of its own for each, or one macro with its name.
PRELUDE = """#define MUTATED_IS_Max 1
#define MUTATED_JOIN(a, b) a##b
#define MUTATED_IS(op) MUTATED_JOIN(MUTATED_IS_, op)
#if defined(OP_MAX) || MUTATED_IS(OP)
#define MUTATED_MAX true
#else
#define MUTATED_MAX false
#endif
"""


def mutants(lab: Lab, variant: Variant) -> list[Mutant]:
    """A choice of a variant's mutants, drawn by a fixed seed: as many of each kind as possible."""
    text = source.whole(source.load(variant.path))
    start = text.index("// ///\n", 1) + len("// ///\n")  # the header is no part of the kernel
    draw = random.Random(f"{SEED}/sometimes/{lab.name}/{variant.name}")  # noqa: S311 - no secret
    by_kind: dict[str, list[Made]] = defaultdict(list)
    for made in conditional(text, draw):
        may_differ = made.rule != "operator" or "op" in lab.axes
        may_differ = may_differ and (made.rule != "dtype" or len(lab.axes.get("dtype", "")) > 1)
        if made.start > start and may_differ:
            by_kind[made.rule].append(made)
    result = []
    for made in drawn(draw, by_kind, SOMETIMES_PER_VARIANT):
        one = mutant(lab.name, variant.name, text, made)
        if "MUTATED_MAX" in made.new:
            object.__setattr__(one, "text", one.text[:start] + PRELUDE + one.text[start:])
        result.append(one)
    return result


def conditional(text: str, draw: random.Random) -> Iterator[Made]:
    """The changes of a text that can be made under a condition, each under one of every kind."""
    tokens = [token for token in tokenize(text) if token.kind != "directive"]
    starts = {token.start: place for place, token in enumerate(tokens)}
    for made in changes(text):
        whole = under(text, tokens, starts[made.start], made)
        if whole is None:
            continue
        size = size_at(text, made.start)
        for kind, choices in CONDITIONS.items():
            condition = draw.choice(choices)
            if size or "{n}" not in condition:
                first, last, new = whole
                condition = condition.format(n=size)
                yield Made(kind, first, last, new.format(c=condition))


def size_at(text: str, position: int) -> str | None:
    """The number of items in the function around a place: the first of its parameters that is."""
    function = text[text.rfind("\n}\n", 0, position) + 1 : position]
    found = SIZE.search(function)
    return None if found is None else found[1]


def under(text: str, tokens: list[Token], place: int, made: Made) -> tuple[int, int, str] | None:
    """What replaces which part of the text if a change is made under the condition `{c}`."""
    before = text[made.start : made.end]
    if made.rule == "barrier" and tokens[place].text in BARRIERS and before.endswith(")"):
        return made.start, made.end, f"if (!({{c}})) {escaped(before)}"
    if made.rule in ("tail", "atomic"):
        return made.start, made.end, f"(({{c}}) ? {escaped(made.new)} : {escaped(before)})"
    if made.rule == "index":
        inside = escaped(before[1:-1])
        return made.start, made.end, f"[({inside}) + (({{c}}) ? 1 : 0)]"
    if made.rule == "relation" and before in OPERATORS["relation"]:
        after = next(i for i in range(place, len(tokens)) if tokens[i].start >= made.end)
        first, last = operand(tokens, place, -1), operand(tokens, after - 1, 1)
        left = escaped(text[tokens[first].start : made.start].strip())
        right = escaped(text[tokens[after].start : tokens[last].end])
        if is_whole(tokens, first, last):
            new = f"(({{c}}) ? {left} {made.new} {right} : {left} {before} {right})"
            return tokens[first].start, tokens[last].end, new
    return None


def is_whole(tokens: list[Token], first: int, last: int) -> bool:
    """Whether the brackets of a part of the text are closed in it."""
    return all(
        (token.text not in "([{" or (closing(tokens, at) or last + 1) <= last)
        and (token.text not in ")]}" or (opening(tokens, at) or -1) >= first)
        for at, token in enumerate(tokens[first : last + 1], first)
    )


def escaped(code: str) -> str:
    """Code as a part of a format string."""
    return code.replace("{", "{{").replace("}", "}}")
