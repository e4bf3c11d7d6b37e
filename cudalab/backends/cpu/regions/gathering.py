"""Lanes that come together wherever they are: `coalesced_threads()`, here `__cg_here()`.

With fibers, a group is all lanes of a warp that have arrived there when no thread can go on. Loops
give the same groups if a kernel has one such place, and at most one loop around it, in each of
whose rounds all lanes come to it. A loop in which lanes skip it is written anew:

    for (; c; s) { int a = …; if (here) {…} d; }

becomes

    int a; bool gathers;
    do {
        gathers = false;
        for (; c; s) { a = …; if (here) { gathers = true; break; } d; }
        if (gathers) { {…} d; s; }
    } while (gathers);
"""

from collections.abc import Collection, Iterator

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.syntax import LOOPS, Edit, Statement
from cudalab.backends.cpu.regions.uniformity import Levels
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, of_text
from cudalab.language.tokens import names_in, texts

PLACE = "__cg_here"
_SEVERAL = "lanes that may come together in several places"
_SKIPPED = "a loop in which not all lanes come together"
_BEFORE = "what lanes do before they come together"
_LEAVING = frozenset({"break", "continue", "return"})


def refuse_gathering(unit: Unit, reached: list[Function]) -> None:
    """NotCoveredError for a kernel in which lanes may come together in several places."""
    loops = 0
    for function in reached:
        found = calls(function.body, unit.gathering | {PLACE})
        if len(found) > 1:
            raise NotCoveredError(f"{found[1].word.place}: {_SEVERAL}")
        loops += sum(
            bool(calls(statement.words, unit.gathering | {PLACE}))
            for statement in syntax.walk(function.statements)
            if statement.kind in LOOPS and found
        )
    if loops > 1:
        raise NotCoveredError(f"{reached[0].head[0].place}: {_SEVERAL}")


def gathered(unit: Unit, function: Function) -> list[Statement]:
    """The statements, with loops that first find out which lanes come to a gathering."""
    edits = _gathered(function.statements, unit.gathering | {PLACE})
    return syntax.edited(function.statements, edits)


def _gathered(statements: list[Statement], names: set[str]) -> Iterator[Edit]:
    for each in statements:
        if each.kind in LOOPS and calls(each.words, names):
            yield from _of_loop(each, names)
        else:
            yield from _gathered(each.parts, names)


def _of_loop(loop: Statement, names: set[str]) -> Iterator[Edit]:
    place = loop.words[0]
    head = calls([*loop.first, *loop.condition, *loop.step], names)
    if head or _LEAVING & set(texts(loop.parts[0].words)):
        raise NotCoveredError(f"{place.place}: {_SKIPPED}")
    inside = loop.parts[0].inside
    at = next((i for i, each in enumerate(inside) if calls(each.words, names)), None)
    if at is None or inside[at].kind == "simple":
        return
    branch, before, after = inside[at], inside[:at], inside[at + 1 :]
    head = calls(branch.condition, names)
    parts = branch.parts[0].inside if branch.kind == "if" and not branch.parts[1:] else []
    plain = any(each.kind == "simple" and calls(each.words, names) for each in parts)
    if head or not plain or loop.kind == "do" or any(syntax.variables(after)):
        raise NotCoveredError(f"{place.place}: {_SKIPPED}")
    declared, assigned = [*_apart(before)], of_text(place, "")
    hoisted: Words = []
    for type_and_name, assignment in declared:
        hoisted += type_and_name
        assigned += assignment
    rest = [word for each in after for word in each.words]
    turn = of_text(place, loop.step, ";") if loop.step else []
    first = of_text(place, loop.first, ";") if loop.first else []
    look = of_text(place, "{", assigned, "if (", branch.condition, _FOUND, rest, "}")
    made = of_text(
        place, "{", first, hoisted, "bool cudalab_gathers ; do { cudalab_gathers = false ;"
    )
    made += of_text(place, "for ( ;", loop.condition, ";", loop.step, ")", look)
    made += of_text(place, "if ( cudalab_gathers ) {", branch.parts[0].words, rest, turn, "}")
    made += of_text(place, "} while ( cudalab_gathers ) ; }")
    yield loop.start, loop.end, made


_FOUND = ") { cudalab_gathers = true ; break ; }"


def _apart(before: list[Statement]) -> Iterator[tuple[Words, Words]]:
    """Declarations without their values, and the assignments of those values."""
    for statement in before:
        declared = statement.declared if statement.kind == "simple" else []
        if not declared:
            raise NotCoveredError(f"{statement.words[0].place}: {_BEFORE}")
        for local in declared:
            spec = [word for word in local.spec if word.text != "const"]
            plain = local.value and local.value[0].text == "=" and "auto" not in texts(spec)
            if not plain or local.is_reference or local.array:
                raise NotCoveredError(f"{spec[0].place}: {_BEFORE}")
            name = spec[0]._replace(text=local.name, kind="name")
            end = spec[0]._replace(text=";", kind="sign")
            pointer = [word for word in local.pointer if word.text != "const"]
            yield [*spec, *pointer, name, end], [name, *local.value, end]


def split_by(
    branch: Statement, among: list[Statement], levels: Levels, changed: set[str]
) -> set[str]:
    """The groups split by a branch's condition, so that all of their lanes take it or none does."""
    names = names_in(branch.condition)
    unclear = levels.reads_memory(branch.condition) or names & changed
    if unclear or "(" in texts(branch.condition):
        return set()
    found: set[str] = set()
    for before in _before(among, branch):
        if _LEAVING & set(texts(before.words)):
            found.clear()
        for local in before.declared if before.kind == "simple" else ():
            words = texts(local.initializer)
            ends = [*texts(branch.condition), ")", ")"]
            if words[:2] == ["__cg_split", "("] and words[-len(ends) :] == ends:
                opening = words[: -len(ends)]
                if opening[-3:] == [",", "bool", "("] or opening[-2:] == [",", "("]:
                    found.add(local.name)
    return found - changed


def _before(statements: list[Statement], branch: Statement) -> list[Statement]:
    """The statements that precede a branch in its list."""
    for i, statement in enumerate(statements):
        if statement is branch:
            return statements[:i]
        if found := _before(statement.parts, branch):
            return found
    return []


def is_among_own(
    words: Words,
    unit: Unit,
    known: Collection[str] = (),
    seen: frozenset[str] = frozenset(),
) -> bool:
    """Whether only groups that are `known`, or made in the statements, meet in them."""
    found = calls(words, unit.meeting)
    made = {*known} | {
        local.name for local in syntax.variables(syntax.statements(words) if found else ())
    }
    for call in found:
        name = call.word.text
        mask = texts(words[call.opening + 1 : call.opening + 6])
        if name == PLACE or (mask[:1] and mask[0] in made and mask[1:] == _MASK):
            continue
        called = unit.by_name.get(name, [])
        if name in seen or not called:
            return False
        for function in called:
            pairs = zip(function.parameters, call.arguments, strict=False)
            handed = {each.name for each, argument in pairs if set(texts(argument)) <= made}
            if not is_among_own(function.body, unit, handed, seen | {name}):
                return False
    return True


_MASK = [".", "cudalab_mask", "(", ")"]
