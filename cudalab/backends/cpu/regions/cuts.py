"""Where parallel regions end: the parts of a list of statements between which threads meet."""

from collections.abc import Iterable

from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.borrowing import EVERYWHERE, keep_what_is_lent
from cudalab.backends.cpu.regions.by_steps import steps_of
from cudalab.backends.cpu.regions.in_step import is_guard
from cudalab.backends.cpu.regions.parts import (
    OUTER,
    Part,
    by_itself,
    follows_comma,
    in_lambda,
    is_argument,
    parts_in_turn,
    regions_of,
)
from cudalab.backends.cpu.regions.rounds import leads_to_rounds
from cudalab.backends.cpu.regions.syntax import Local, Statement, locals_of
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import BUILT_IN, STEPS
from cudalab.backends.cpu.regions.waiting import may_wait
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, spaced, texts
from cudalab.language.lockstep import STEP


def cut(body: Body, statements: list[Statement], last: bool) -> list[Part]:
    """The parts of a list of statements; `last`: nothing follows them in the function."""
    parts = [part for statement in statements for part in _pieces(body, statement)]
    _refuse_ends(body, parts)
    used = regions_of(parts)
    _use_again(body, parts, used)
    keep_what_is_lent(body.facts, parts, used)
    for part in parts:
        part.used = used
    for part in parts[-1:]:
        part.last = last
    return parts


def _refuse_ends(body: Body, parts: list[Part]) -> None:
    """NotCoveredError for an object whose end does something, but in another region."""
    ending: list[Local] = []
    for part in parts:
        if part.cuts or part.kind not in ("plain", "scalar"):
            for local in ending:
                if local.spec[-1].text not in body.function.template_names:
                    raise NotCoveredError(f"{local.spec[0].place}: a destructor behind a barrier")
                kind = spaced(local.spec)
                body.writer.add(f"static_assert(::std::is_trivially_destructible<{kind}>::value);")
            ending = []
        for local in part.statement.declared if part.statement.kind == "simple" else ():
            is_lambda = local.name in body.facts.lambdas
            type_ = body.facts.places.type_of(local.name)
            if body.unit.effects.ends(type_) and not (is_lambda or local.pointer):
                ending.append(local)


def _use_again(body: Body, pieces: list[Part], used: dict[str, set[int]]) -> None:
    """Record which names the later regions need in addition to those in their text.

    Each region writes a lambda anew, and needs the value of an `auto` for its type.
    """
    plain = [piece.statement for piece in pieces if piece.kind == "plain"]
    for local in reversed([local for each in plain for local in each.declared]):
        regions = used.get(local.name, set())
        if local.name in body.facts.handed_over:
            regions = set(EVERYWHERE)
        elif not (local.name in body.facts.lambdas or "auto" in texts(local.spec)):
            continue
        for word in local.value:
            used.setdefault(word.text, set()).update(regions)


def _pieces(body: Body, statement: Statement) -> list[Part]:
    words = statement.words
    if apart := _apart(body, statement):
        return [piece for each in apart for piece in _pieces(body, each)]
    if not body.unit.is_collective(words):
        if _must_be_cut(body, statement):
            return [Part("construct", statement)]
        scalar = body.facts.is_done_once(statement)
        declares = statement.kind == "simple" and bool(statement.declared)
        cuts = scalar and not (declares and not body.levels.reads_memory(words))
        cuts |= statement.kind != "simple" and may_wait(words)
        return [Part("scalar" if scalar else "plain", statement, cuts=cuts)]
    if statement.kind == "other":
        raise NotCoveredError(f"{words[0].place}: a barrier in a switch or a loop over a range")
    if statement.kind != "simple":
        return [Part("construct", statement)]
    if words[0].text in ("__syncthreads", "__syncwarp", STEP):
        return [Part("barrier", statement)]
    pieces, rest = hoisted(body, words)
    if len(rest) > 2:
        kind = "step" if calls(rest, STEPS) else "plain"
        pieces.append(Part(kind, Statement("simple", rest)))
    return pieces


def _apart(body: Body, statement: Statement) -> list[Statement]:
    """The parts of a statement with commas between which threads meet, or whose homes differ.

    Variables are declared apart if some belong to the block and others to a thread.
    """
    if in_turn := parts_in_turn(statement, body.unit.is_collective):
        return in_turn
    declared = statement.declared if statement.kind == "simple" else []
    if len(declared) < 2 or statement.own[0].text in OUTER:
        return []
    mixed = len(set(map(body.facts.is_scalar, declared))) > 1
    if not (mixed or body.unit.is_collective(statement.own)):
        return []
    end = statement.own[-1]
    return [Statement("simple", [*each.align, *by_itself(each), end]) for each in declared]


def _must_be_cut(body: Body, statement: Statement) -> bool:
    """Whether a statement without barriers may leave a loop around regions, or the function."""
    if _has_rounds(body, statement):
        return True
    if body.mask.startswith("cudalab_m_"):
        return False
    if statement.kind == "block":
        return any(_leaves(body, [part]) or _must_be_cut(body, part) for part in statement.parts)
    if not statement.kind.startswith("if") or body.levels.of(statement.condition) > Level.BLOCK:
        return False
    return _leaves(body, statement.walk())


def _has_rounds(body: Body, statement: Statement) -> bool:
    """Whether a statement is a loop around regions without barriers, or has to do with one."""
    if body.facts.in_step and (statement.kind == "for" or is_guard(statement)):
        return True
    if body.all_stay and is_guard(statement):
        return True
    if not body.mask and steps_of(statement, body.facts, body.strides):
        return True
    return leads_to_rounds(statement, body.facts, body.strides)


def _leaves(body: Body, statements: Iterable[Statement]) -> bool:
    """Whether one of the statements leaves a loop around regions, or the function."""
    words = {each.words[0].text for each in statements if each.kind == "simple"}
    in_loop = bool(body.loops) and not body.loops[-1].mask
    return (in_loop and bool(words & {"break", "continue"})) or (
        "return" in words and body.unit.is_collective(body.function.body)
    )


def hoisted(body: Body, words: Words) -> tuple[list[Part], Words]:
    """The calls of a statement in which threads meet, and what is left of the statement."""
    pieces: list[Part] = []
    names = (body.unit.collective | BUILT_IN) - STEPS
    while found := calls(words, names):
        name, opening, end = next(
            call for call in found if not calls(words[call.opening + 1 : call.closing], names)
        )
        before = texts(words[:name])
        if "[" in before and in_lambda(words, name):
            raise NotCoveredError(f"{words[name].place}: {words[name].text} in a lambda")
        if {"?", "&&", "||"} & set(before) and not is_argument(words, name):
            raise NotCoveredError(f"{words[name].place}: a conditional {words[name].text}")
        if not locals_of(words) and follows_comma(words, name):
            raise NotCoveredError(f"{words[name].place}: {words[name].text} behind a comma")
        result = f"cudalab_r_{body.number()}"
        call = words[name : end + 1]
        pieces.append(Part("call", Statement("simple", call), call, result))
        del opening
        value = result if body.unit.has_value(words[name].text) else "((void)0)"
        words = [*words[:name], words[name]._replace(text=value), *words[end + 1 :]]
    return pieces, words
