"""Where parallel regions end: the parts of a list of statements between which threads meet.

`a = __shfl_sync(~0u, x, 0) + y;` is a call, which ends the region before it, and `a = r + y;`,
which begins the next one. `PASSES.write` says what becomes of each kind of part. Here is also found
out which regions use a variable, by its name or by what leads to it.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.in_step import is_guard
from cudalab.backends.cpu.regions.orders import leads_to_rounds, steps_of
from cudalab.backends.cpu.regions.parts import OUTER, Part, by_itself, in_lambda
from cudalab.backends.cpu.regions.syntax import Local, Statement, locals_of, nodes, simple, walk
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import BUILT_IN, STEPS
from cudalab.backends.cpu.regions.waiting import may_wait
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close
from cudalab.language.lockstep import STEP
from cudalab.language.tokens import brackets, closing_angle, names_in, spaced, split, texts

EVERYWHERE = frozenset({-1, -2})  # more than one region, and none that there is
_SOMETHING = "*"  # in place of a name: what a pointer leads to


def cut(body: Body, statements: list[Statement], last: bool) -> list[Part]:
    """The parts of a list of statements; `last`: nothing follows them in the function."""
    parts = [part for statement in statements for part in _pieces(body, statement)]
    _refuse_ends(body, parts)
    used = _regions_of(parts)
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
            type_ = body.facts.uses.type_of(local.name)
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


def _regions_of(pieces: list[Part]) -> dict[str, set[int]]:
    """The numbers of the regions in which each name is used."""
    used: dict[str, set[int]] = {}
    number = 0
    for piece in pieces:
        if piece.kind == "barrier":
            number += 1
            continue
        number += piece.cuts
        regions = {number}
        if piece.kind == "call":
            regions = {number, number + 1}
            number += 1
        elif piece.kind in ("construct", "step"):
            regions = {number + 1}
            number += 2
        for word in piece.call or piece.statement.words:
            if word.kind == "name":
                used.setdefault(word.text, set()).update(regions)
    return used


# Parts of statements ------------------------------------------------------------------------------


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
        pieces.append(Part(kind, simple(rest)))
    return pieces


def _apart(body: Body, statement: Statement) -> list[Statement]:
    """The parts of a statement with commas between which threads meet, or whose homes differ.

    These are the statements for `a, meet(), b;`, whose parts are evaluated in turn. Variables are
    declared apart if some belong to the block and others to a thread.
    """
    words, declared, end = statement.words[:-1], statement.declared, statement.words[-1]
    if statement.kind != "simple" or statement.words[0].text in OUTER:
        return []
    meets = body.unit.is_collective(words)
    if not declared and meets and words[0].text != "return":
        while words[0].text == "(" and close(words, 0) == len(words) - 1:
            words = words[1:-1]
        parts = split(words)
    elif meets or len(set(map(body.facts.is_scalar, declared))) > 1:
        parts = [[*each.align, *by_itself(each)] for each in declared]
    else:
        parts = []
    return [simple([*part, end]) for part in parts] if len(parts) > 1 else []


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
        innermost = next(
            each for each in found if not calls(words[each.opening + 1 : each.closing], names)
        )
        at, name, end = innermost.name, innermost.word, innermost.closing + 1
        before = texts(words[:at])
        if "[" in before and in_lambda(words, at):
            raise NotCoveredError(f"{name.place}: {name.text} in a lambda")
        if {"?", "&&", "||"} & set(before):
            raise NotCoveredError(f"{name.place}: a conditional {name.text}")
        commas = (each for top in nodes(words) for each in top.of_kind("comma"))
        if any(comma.children[0].last <= at < comma.last for comma in commas):
            raise NotCoveredError(f"{name.place}: {name.text} behind a comma")
        result = f"cudalab_r_{body.number()}"
        pieces.append(Part("call", simple(words[at:end]), words[at:end], result))
        value = result if body.unit.has_value(name.text) else "((void)0)"
        words = [*words[:at], name._replace(text=value), *words[end:]]
    return pieces, words


# What is lent -------------------------------------------------------------------------------------
#
# Which variables a pointer, a reference or an object of a region leads to when the region is over.
# Such a variable has to stay in its place: it lives where whatever leads to it is used, and is not
# computed anew in each region. Rather one variable too many is kept than one too few.


def keep_what_is_lent(facts: Facts, parts: list[Part], used: dict[str, set[int]]) -> None:
    """Add the regions in which others lead to a variable to `used`, its name to `facts.lent`."""
    statements = list(walk(part.statement for part in parts))
    for name in {name for each in statements for name in _lent_to_callees(facts, each)}:
        used.setdefault(name, set()).update(EVERYWHERE)
        facts.lent.add(name)
    borrowed = [each for statement in statements for each in _borrowed_by(facts, statement)]
    before = None
    while before != (state := sum(map(len, used.values()))):
        before = state
        for name, borrower, is_lent in borrowed:
            regions = EVERYWHERE if borrower == _SOMETHING else used.get(borrower, set())
            if len(regions) > 1:
                used.setdefault(name, set()).update(regions)
                facts.lent |= {name} if is_lent else set()


def _lent_to_callees(facts: Facts, statement: Statement) -> Iterator[str]:
    """The variables of which functions in which threads meet get the addresses."""
    for words in statement.pieces:
        for call in calls(words, facts.unit.collective & facts.unit.by_name.keys()):
            for callee in facts.unit.by_name[call.word.text]:
                for parameter, argument in zip(callee.parameters, call.arguments, strict=False):
                    yield from _lent_in(facts, argument, refers=parameter.is_reference)


def _borrowed_by(facts: Facts, statement: Statement) -> Iterator[tuple[str, str, bool]]:
    """A variable, one that may lead from now on to it or to where it leads, and whether to it."""
    for local in statement.declared:
        if local.is_reference:
            lent = _lent_in(facts, local.initializer, refers=True)
            yield from ((name, local.name, True) for name in lent)
    for words in statement.pieces:
        borrowers = {local.name: facts.uses.type_of(local.name) for local in locals_of(words)}
        for name, through, *_ in facts.uses.of(words).changes:
            type_ = facts.uses.type_of(name)
            if through and not type_.is_array:
                borrowers[_SOMETHING] = type_.element_of_array
            else:
                borrowers[name] = type_
        for borrower, type_ in borrowers.items():
            if not type_.may_lead or borrower in facts.lambdas:
                continue
            is_known = type_.kind != "unknown" or type_.is_auto
            refers = type_.kind == "class" or not is_known
            lent = _lent_in(facts, words, refers=refers, returned=is_known) - {borrower}
            yield from ((name, borrower, True) for name in lent)
            read = {name for name in names_in(words) if facts.uses.type_of(name).may_lead}
            yield from ((name, borrower, False) for name in read - lent - {borrower})


def _lent_in(
    facts: Facts, words: Words, *, refers: bool = False, returned: bool = True
) -> set[str]:
    """The variables to which the value of an expression may lead.

    `refers`: the expression itself may be referred to; `returned`: so may be what a call returns.
    """
    changed = {each.name for each in facts.uses.of(words).changes if not each.is_plain}
    lent, given = set(changed), facts.unit.given
    indices = {
        i
        for first, last in brackets(words)
        if words[first].text == "["
        for i in range(first + 1, last)
    }
    values: Words = [word for i, word in enumerate(words) if i not in indices]
    for i, word in enumerate(words[:-1]):
        if word.kind != "name" or words[i + 1].text not in ("(", "<"):
            continue
        if given.computes(word.text) and word.text not in given.functions:
            continue
        opening = i + 1 if words[i + 1].text == "(" else (closing_angle(words, i + 1) or i) + 1
        if opening >= len(words) or words[opening].text != "(":
            continue
        inside = words[opening : close(words, opening)]
        is_method = texts(words[i - 1 : i]) in (["."], ["->"])
        function = None if is_method else facts.uses.scope.find(word.text)
        may_return = function is None or function.type.may_lead
        if (returned and may_return) or changed & names_in(inside):
            lent |= names_in(words if is_method else inside)
        else:
            values = [each for each in values if each not in inside]
    if refers:
        lent |= names_in(values)
    handed_on = {word.text for word, after in pairwise(words) if after.text not in ("(", "=")}
    only_called = facts.lambdas - handed_on - names_in(words[-1:])
    return lent & facts.levels.names.keys() - only_called
