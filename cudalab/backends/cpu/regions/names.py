"""Gives each local variable of a function a unique name, so that scopes no longer matter."""

from cudalab.backends.cpu.regions.syntax import Function, Statement, locals_of
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import Words

Names = dict[str, str]


def renamed(_: Unit, function: Function) -> list[Statement]:
    """The function's statements, with further variables of the same name renamed."""
    taken = {parameter.name for parameter in function.parameters}
    return _list(function.statements, {}, taken)


def _list(statements: list[Statement], names: Names, taken: set[str]) -> list[Statement]:
    names = dict(names)
    return [_one(statement, names, taken) for statement in statements]


def _one(statement: Statement, names: Names, taken: set[str]) -> Statement:
    """The statement with the new names; its declarations are added to `names`."""
    if statement.kind in ("simple", "other"):
        _declare(statement.own, names, taken)
        return Statement(statement.kind, _words(statement.own, names))
    if statement.kind == "block":
        return Statement("block", statement.own, parts=_list(statement.parts, names, taken))
    names = dict(names)
    _declare(statement.first, names, taken)
    return Statement(
        statement.kind,
        statement.own,
        _words(statement.condition, names),
        first=_words(statement.first, names),
        step=_words(statement.step, names),
        parts=[_one(part, dict(names), taken) for part in statement.parts],
    )


def _declare(words: Words, names: Names, taken: set[str]) -> None:
    skipped = [w for w in words if w.text not in ("__shared__", "constexpr", "static", "extern")]
    for local in locals_of(skipped):
        new, number = local.name, 2
        while new in taken:
            new, number = f"{local.name}_cudalab_{number}", number + 1
        taken.add(new)
        names[local.name] = new


def _words(words: Words, names: Names) -> Words:
    result: Words = []
    for word in words:
        before = result[-1].text if result else ""
        new = names.get(word.text) if word.kind == "name" else None
        plain = new is None or before in (".", "->", "::")
        result.append(word if plain else word._replace(text=new or ""))
    return result
