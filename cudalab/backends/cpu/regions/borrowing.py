"""Which variables a pointer, a reference or an object of a region leads to when the region is over.

Such a variable has to stay in its place: it lives where whatever leads to it is used, and is not
computed anew in each region. Rather one variable too many is kept than one too few.
"""

from collections.abc import Iterator
from itertools import pairwise

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.parts import Part
from cudalab.backends.cpu.regions.syntax import Statement, locals_of
from cudalab.backends.cpu.regions.words import Words, calls, close, texts
from cudalab.language.tokens import bracket_around, closing_angle, split

EVERYWHERE = frozenset({-1, -2})  # more than one region, and none that there is
_SOMETHING = "*"  # in place of a name: what a pointer leads to


def keep_what_is_lent(facts: Facts, parts: list[Part], used: dict[str, set[int]]) -> None:
    """Add the regions in which others lead to a variable to `used`, its name to `facts.lent`."""
    statements = [statement for part in parts for statement in part.statement.walk()]
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
            arguments = split(words[call.opening + 1 : call.closing])
            for callee in facts.unit.by_name[words[call.name].text]:
                for parameter, argument in zip(callee.parameters, arguments, strict=False):
                    yield from _lent_in(facts, argument, refers=parameter.is_reference)


def _borrowed_by(facts: Facts, statement: Statement) -> Iterator[tuple[str, str, bool]]:
    """A variable, one that may lead from now on to it or to where it leads, and whether to it."""
    for local in statement.declared:
        if local.is_reference:
            lent = _lent_in(facts, local.initializer, refers=True)
            yield from ((name, local.name, True) for name in lent)
    for words in statement.pieces:
        borrowers = {local.name: facts.places.type_of(local.name) for local in locals_of(words)}
        for name, through, *_ in facts.places.of(words).changes:
            type_ = facts.places.type_of(name)
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
            read = {name for name in _names(words) if facts.places.type_of(name).may_lead}
            yield from ((name, borrower, False) for name in read - lent - {borrower})


def _lent_in(
    facts: Facts, words: Words, *, refers: bool = False, returned: bool = True
) -> set[str]:
    """The variables to which the value of an expression may lead.

    `refers`: the expression itself may be referred to; `returned`: so may be what a call returns.
    """
    changed = {each.name for each in facts.places.of(words).changes if not each.is_plain}
    lent, given = set(changed), facts.unit.given
    values: Words = [word for i, word in enumerate(words) if not _is_index(words, i)]
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
        function = None if is_method else facts.places.scope.find(word.text)
        may_return = function is None or function.type.may_lead
        if (returned and may_return) or changed & _names(inside):
            lent |= _names(words if is_method else inside)
        else:
            values = [each for each in values if each not in inside]
    if refers:
        lent |= _names(values)
    return lent & facts.levels.names.keys() - _only_called(facts, words)


def _only_called(facts: Facts, words: Words) -> set[str]:
    """The lambdas that a text declares or calls, and does not hand on."""
    named = {word.text for word, after in pairwise(words) if after.text not in ("(", "=")}
    return facts.lambdas & _names(words) - named - _names(words[-1:])


def _names(words: Words) -> set[str]:
    return {word.text for word in words if word.kind == "name"}


def _is_index(words: Words, i: int) -> bool:
    """Whether a word stands in the brackets of an index."""
    around = bracket_around(words, i)
    while around is not None and words[around].text != "[":
        around = bracket_around(words, around)
    return around is not None
