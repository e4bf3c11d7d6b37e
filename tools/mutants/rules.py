"""The rules that make mutants: each makes one kind of small mistake, wherever a kernel allows it.

A mutant that cannot differ is not made where the text alone shows it, such as a narrower type for
the number of a thread. The compiler shows the others.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.language.tokens import Token, closing, closing_angle, opening, tokenize

PER_VARIANT = 40  # of simple mistakes
SOMETIMES_PER_VARIANT = 24  # of mistakes that show only sometimes (sometimes.py)
SEED = 1

OPERATORS = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "arithmetic": {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+="},
    "bits": {"<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"},
    "logic": {"&&": "||", "||": "&&"},
}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
BARRIERS = {"__syncthreads", "__syncwarp", "sync"}
FENCES = {"__threadfence", "__threadfence_block"}
PLAIN = {  # of an atomic operation: what it stores
    "atomicAdd": "old + ({})",
    "atomicMin": "min(old, {})",
    "atomicMax": "max(old, {})",
    "atomicOr": "old | ({})",
    "atomicExch": "({})",
}
NARROWER = {"size_t": "unsigned", "unsigned": "unsigned short", "double": "float", "int": "short"}
LIMITS = (1 << 10, 1 << 16, 1 << 20, 1 << 24)
ENDS = {"n", "m", "k", "count", "rows", "cols", "columns", "length"}
INDICES = {"threadIdx", "x", "y", "z", "t", "lane", "warp"}  # each below 1024
STATEMENT = {"return", "else", "case"}  # words before an expression, which no declaration has
STOPS = set("([{;,?:=!)]}") | {"return"}


class Made(NamedTuple):
    """A change by a rule: text[start:end] becomes `new`."""

    rule: str
    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Mutant:
    """A changed kernel."""

    lab: str
    variant: str
    rule: str
    _: KW_ONLY
    line: int  # in `cudalab show --whole`
    before: str
    after: str
    text: str


def mutants(lab: Lab, variant: Variant) -> list[Mutant]:
    """A choice of a variant's mutants: as many by each rule as possible, drawn by a fixed seed."""
    text = source.whole(source.load(variant.path))
    start = text.index("// ///\n", 1)  # the header is no part of the kernel
    by_rule: dict[str, list[Made]] = defaultdict(list)
    for made in changes(text):
        if made.start > start:
            by_rule[made.rule].append(made)
    draw = random.Random(f"{SEED}/{lab.name}/{variant.name}")  # noqa: S311 - not for secrets
    return [
        mutant(lab.name, variant.name, text, made) for made in drawn(draw, by_rule, PER_VARIANT)
    ]


def drawn(draw: random.Random, by_rule: dict[str, list[Made]], count: int) -> list[Made]:
    """A choice of `count` changes, as many by each rule as possible."""
    for group in by_rule.values():
        draw.shuffle(group)
    chosen: list[Made] = []
    while len(chosen) < count and any(by_rule.values()):
        chosen += [group.pop() for group in by_rule.values() if group]
    return chosen[:count]


def mutant(lab: str, variant: str, text: str, made: Made) -> Mutant:
    """The kernel with a change, and its line before and after."""
    changed = text[: made.start] + made.new + text[made.end :]
    line_start = text.rfind("\n", 0, made.start) + 1
    return Mutant(
        lab,
        variant,
        made.rule,
        line=text.count("\n", 0, made.start) + 1,
        before=text[line_start : text.index("\n", made.end)].strip(),
        after=changed[line_start : changed.index("\n", made.start + len(made.new))].strip(),
        text=changed,
    )


def changes(text: str) -> Iterator[Made]:
    """All changes that the rules make in a kernel's text."""
    tokens = [token for token in tokenize(text) if token.kind != "directive"]
    angles = set(template_angles(tokens))
    for place, token in enumerate(tokens):
        if token.kind == "number":
            yield from constants(token)
        elif token.kind == "name":
            yield from calls(text, tokens, place)
            yield from names(text, tokens, place)
        elif token.text == "[" and place:
            yield from brackets(text, tokens, place)
        elif token.text == "!" and text[token.end] != "=":
            yield Made("logic", token.start, token.end, "")
        elif place not in angles:
            yield from operators(text, tokens, place)


def template_angles(tokens: list[Token]) -> Iterator[int]:
    """The places of the angle brackets around the arguments of templates."""
    for place, token in enumerate(tokens):
        name = tokens[place - 1].text if place else ""
        if token.text == "<" and (name == "template" or name.endswith("_cast") or name.istitle()):
            end = closing_angle(tokens, place)
            if end is not None:
                yield from (place, end)


def operators(text: str, tokens: list[Token], place: int) -> Iterator[Made]:
    """Another operator between two operands; operators of two signs are two tokens."""
    token = tokens[place]
    if (
        token.kind != "sign"
        or place == 0
        or (tokens[place - 1].kind == "sign" and (tokens[place - 1].text not in ")]"))
    ):
        return
    sign, after = token.text, place + 1
    while (
        after < len(tokens)
        and tokens[after].start == tokens[after - 1].end
        and (tokens[after].kind == "sign" and tokens[after].text in "<>=&|+-")
    ):
        sign, after = sign + tokens[after].text, after + 1
    for rule, table in OPERATORS.items():
        if sign in table:
            yield Made(rule, token.start, tokens[after - 1].end, table[sign])
    if sign in OPPOSITE:
        first, last = operand(tokens, place, -1), operand(tokens, after - 1, 1)
        both = tokens[first : last + 1]
        if not any(one.kind == "number" or one.text in ENDS or one.text.isupper() for one in both):
            left = text[tokens[first].start : tokens[place - 1].end]
            right = text[tokens[after].start : tokens[last].end]
            new = f"!({left} {OPPOSITE[sign]} {right})"  # differs if one of them is a NaN
            yield Made("special", tokens[first].start, tokens[last].end, new)


def operand(tokens: list[Token], place: int, step: int) -> int:
    """The place of the last token of the operand beside an operator, in the direction `step`."""
    partner = closing if step > 0 else opening
    at = place
    while True:
        after = at + step
        brackets = "([" if step > 0 else ")]"
        if tokens[after].text in brackets:
            after = partner(tokens, after) or after
        elif tokens[after].text in STOPS or tokens[after].text in "&|":
            return at
        at = after


def constants(token: Token) -> Iterator[Made]:
    """A whole number, one more or one less."""
    match = re.fullmatch(r"(\d+|0x[0-9a-fA-F]+)([uUlL]*)", token.text)
    if match is not None:
        value = int(match[1], 0)
        for other in sorted({value + 1, max(value - 1, 0)} - {value}):
            yield Made("constant", token.start, token.end, f"{other}{match[2]}")


def calls(text: str, tokens: list[Token], place: int) -> Iterator[Made]:
    """No barrier, no fence, an operation that is not atomic, zero where nothing is."""
    token = tokens[place]
    if place + 1 == len(tokens) or tokens[place + 1].text != "(":
        return
    end = closing(tokens, place + 1)
    if end is None:
        return
    first = place - 2 if tokens[place - 1].text in (".", "->", "::") else place
    start = tokens[first].start
    if token.text in BARRIERS | FENCES and tokens[end + 1].text == ";":
        rule = "barrier" if token.text in BARRIERS else "fence"
        yield Made(rule, start, tokens[end].end, "")
    if token.text in PLAIN:
        commas = [at for at in range(place + 2, end) if tokens[at].text == ","]
        if len(commas) == 1:
            where = text[tokens[place + 2].start : tokens[commas[0]].start]
            what = text[tokens[commas[0]].end : tokens[end].start].strip()
            new = PLAIN[token.text].format(what)
            plain = f"[&] {{ auto* p = {where}; auto old = *p; *p = {new}; return old; }}()"
            yield Made("atomic", token.start, tokens[end].end, plain)
    is_call = tokens[place - 1].kind == "sign" or tokens[place - 1].text in STATEMENT
    inverted = tokens[place - 1].text == "~"
    if (token.text == "identity" and is_call) or (token.text == "Bits" and inverted):
        start = tokens[place - 1].start if inverted else start
        whole = text[start : tokens[end].end]
        yield Made("padding", start, tokens[end].end, f"decltype({whole}){{}}")


def names(text: str, tokens: list[Token], place: int) -> Iterator[Made]:
    """Another axis, a narrower type, a lost tail, a limit on the size."""
    token = tokens[place]
    before = tokens[place - 1].text if place else ""
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    if before == "." and token.text in "xy" and tokens[place - 2].text.endswith("Idx"):
        yield Made("axis", token.start, token.end, "y" if token.text == "x" else "x")
    if token.text in NARROWER and after is not None:
        is_cast = before == "(" and after.text == ")"
        if is_cast or (after.kind == "name" and not is_small(text, token)):
            yield Made("type", token.start, token.end, NARROWER[token.text])
    if token.text in ENDS and before in ("<", ">", "=") and tokens[place - 2].text != "for":
        yield Made("tail", token.start, token.end, f"({token.text} / 32 * 32)")
        for limit in LIMITS:
            new = f"({token.text} < {limit} ? {token.text} : {limit})"
            yield Made("limit", token.start, token.end, new)


def is_small(text: str, token: Token) -> bool:
    """Whether a declaration has a value of numbers of threads and of constants alone."""
    declaration = text[token.end : text.find(";", token.end)]
    values = re.findall(r"=([^,;]*)", declaration)
    words = {word for value in values for word in re.findall(r"[A-Za-z_]\w*", value)}
    return bool(values) and all(word in INDICES or word.isupper() for word in words)


def brackets(text: str, tokens: list[Token], place: int) -> Iterator[Made]:
    """A smaller array, the next element, an element to which 0 has been added.

    The sum of -0.0 and 0 is 0.0; for other types the machine code shows that nothing has changed.
    """
    end = closing(tokens, place)
    first = place - 1
    while tokens[first].text == "]":
        first = (opening(tokens, first) or 1) - 1
    name, before = tokens[first], tokens[first - 1]
    if end is None or end == place + 1 or name.kind != "name" or name.text in STATEMENT:
        return
    inside = text[tokens[place].end : tokens[end].start]
    if is_declared(tokens, first):
        yield Made("size", tokens[place].start, tokens[end].end, f"[({inside}) - 1]")
        return
    yield Made("index", tokens[place].start, tokens[end].end, f"[({inside}) + 1]")
    if (
        before.text in ("(", ",", "=", "return", "?", ":", "+")
        and tokens[end + 1].text in (")", ",", ";", "?", ":", "+", "<", ">")
        and text[tokens[end].end :].lstrip()[:2] not in ("++", "+=", "<<", ">>")
    ):
        whole = text[name.start : tokens[end].end]
        yield Made("special", name.start, tokens[end].end, f"({whole} + 0)")


def is_declared(tokens: list[Token], place: int) -> bool:
    """Whether a name is that of a variable in its declaration, perhaps after others."""
    while tokens[place - 1].text == ",":
        place -= 2
        while tokens[place].text == "]":
            place = (opening(tokens, place) or 1) - 1
    before = tokens[place - 1]
    return tokens[place].kind == before.kind == "name" and before.text not in STATEMENT
