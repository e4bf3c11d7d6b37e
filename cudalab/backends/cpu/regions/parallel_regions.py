"""Parallel regions: statements that each thread runs through without waiting for others."""

from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.context_arrays import declare, outer
from cudalab.backends.cpu.regions.lambdas import has_lambda
from cudalab.backends.cpu.regions.parts import OUTER, Loop, Part
from cudalab.backends.cpu.regions.syntax import Statement, locals_of
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, texts
from cudalab.backends.cpu.regions.writer import Piece


def once(body: Body, part: Part) -> None:
    """Write a change to variables of the block, once for all threads."""
    if part.cuts:
        body.flush()
    body.writer.add(part.statement.words)


def plain(body: Body, part: Part) -> None:
    """Add a statement without barriers to the region."""
    if part.cuts:  # others need not wait for what they have done before
        body.flush()
        body.region.ordered = True
    statement, last = part.statement, part.last
    words = statement.words
    if statement.kind == "other" and words[0].text in ("struct", "class", "union", "enum"):
        body.writer.add(words)
        return
    if statement.kind == "simple":
        if words[0].text in OUTER:
            outer(body, words)
            return
        if words[0].text in ("return", "break", "continue") and _at_once(body, words, last=last):
            return
        declared = locals_of(words)
        if declared:
            for local in declared:
                declare(body, local, part.used)
            return
    body.region.add(in_region(body, statement, depth=0, last=last))
    body.region.names |= set(texts(words))


def _at_once(body: Body, words: Words, *, last: bool) -> bool:
    """Write a `return`, `break` or `continue` that all threads here take together."""
    text = words[0].text
    loop = body.loops[-1] if body.loops else Loop()
    if text == "return" and last and not body.loops:
        return False
    if body.mask.startswith("cudalab_m_"):
        return False
    if text == "return":
        if len(words) > 2:
            body.region.add(_returned(body, words))
            body.region.names |= set(texts(words))
        body.flush()
        body.writer.add("return;")
        return True
    if loop.mask:
        return False
    body.flush()
    body.writer.add(f"goto {loop.label};" if text == "continue" and loop.label else f"{text};")
    return True


def _returned(body: Body, words: Words) -> list[Piece]:
    if len(words) == 2:
        return []
    has_value = not (body.function.is_kernel or body.function.returns_nothing)
    kept = ["cudalab_ret[cudalab_t] ="] if has_value else []
    return [*kept, *body.unit.handing_over(words[1:-1]), ";"]


def in_region(  # noqa: PLR0911 - a form of statement each
    body: Body, statement: Statement, depth: int, *, last: bool
) -> list[Piece]:
    """The text of a statement for one thread; `depth`: of loops inside the region."""
    own = statement.own
    if statement.kind == "block":
        parts = [in_region(body, part, depth, last=False) for part in statement.parts]
        return ["{", *(piece for pieces in parts for piece in pieces), "}"]
    if statement.kind == "simple":
        return _simple(body, own, depth, last=last)
    if statement.kind == "other":
        if "return" in texts(own) and not has_lambda(own):
            raise NotCoveredError(f"{own[0].place}: a return in a switch or a loop over a range")
        return [*body.unit.handing_over(own)]
    if statement.kind.startswith("if"):
        head = [*own[: -1 if statement.parts[1:] else None]]
        opening = len(head) - 1
        pieces: list[Piece] = [
            *head[:opening],
            *body.unit.handing_over(statement.condition),
            head[-1],
        ]
        pieces += ["{", *in_region(body, statement.parts[0], depth, last=False), "}"]
        for part in statement.parts[1:]:
            pieces += [own[-1], "{", *in_region(body, part, depth, last=False), "}"]
        return pieces
    inside = ["{", *in_region(body, statement.parts[0], depth + 1, last=False), "}"]
    if statement.kind == "do":
        condition = body.unit.handing_over(statement.condition)
        return [own[0], *inside, *own[1:3], *condition, *own[3:]]
    if statement.kind == "while":
        return [*own[:2], *body.unit.handing_over(statement.condition), own[2], *inside]
    head = [*own[:2], *statement.first, own[2], *statement.condition, own[3], *statement.step]
    return [*body.unit.handing_over(head), own[4], *inside]


def _simple(body: Body, words: Words, depth: int, *, last: bool) -> list[Piece]:
    text, loop = words[0].text, body.loops[-1] if body.loops else Loop()
    if text == "return":
        if last:
            return _returned(body, words)
        body.region.number = body.region.number or body.number()
        leave = "cudalab_live.remove(cudalab_t);" if body.leaving else ""
        body.region.leaves |= body.leaving
        leave += f" goto cudalab_next_{body.region.number}; }}"
        return ["{", *_returned(body, words), leave]
    if text in ("break", "continue") and depth == 0:
        if not loop.mask:
            raise NotCoveredError(f"{words[0].place}: a {text} that only some threads reach")
        body.region.number = body.region.number or body.number()
        body.region.leaves = True
        leave = f"{loop.round}.remove(cudalab_t);"
        if text == "break" and loop.round != loop.mask:
            leave += f" {loop.mask}.remove(cudalab_t);"
        return ["{", f"{leave} goto cudalab_next_{body.region.number}; }}"]
    return [*body.unit.handing_over(words)]
