"""Lambdas that are passed to functions in which threads meet.

Such a lambda is one object of the block, which is called for a thread: `f` is handed over, and a
region of either function calls `of_thread(f, threadIdx, cudalab_t)`.
"""

from collections.abc import Iterator
from dataclasses import replace

from cudalab.backends.cpu.regions.parts import Piece
from cudalab.backends.cpu.regions.syntax import Function, Local, Statement, parameter_of, statements
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close
from cudalab.language.tokens import split, texts


def named(unit: Unit, function: Function) -> list[Statement]:
    """The statements, in which each lambda for a function with barriers has a name."""
    names = (f"cudalab_lambda_{number}" for number in range(1, 1000))
    return [
        each
        for statement in function.statements
        for each in _named(statement, unit.collective, names)
    ]


def _named(statement: Statement, meeting: set[str], names: Iterator[str]) -> list[Statement]:
    if statement.kind == "block":
        inside = [each for part in statement.parts for each in _named(part, meeting, names)]
        return [Statement("block", statement.own, parts=inside)]
    if statement.kind != "simple":
        parts = []
        for part in statement.parts:
            inside = _named(part, meeting, names)
            braces = [part.words[0]._replace(text=text, kind="sign") for text in ("{", "}")]
            parts.append(
                inside[0] if len(inside) == 1 else Statement("block", braces, parts=inside)
            )
        return [replace(statement, parts=parts)]
    before, words = [], statement.own
    while (lambda_ := _argument(words, meeting)) is not None:
        start, end = lambda_
        name, place = next(names), words[start]
        head = [place._replace(text=text, kind="name") for text in ("const", "auto", name)]
        head.append(place._replace(text="=", kind="sign"))
        semicolon = place._replace(text=";", kind="sign")
        before.append(Statement("simple", [*head, *words[start:end], semicolon]))
        words = [*words[:start], head[2], *words[end:]]
    return [*before, Statement("simple", words)] if before else [statement]


def _argument(words: Words, meeting: set[str]) -> tuple[int, int] | None:
    """Where a lambda that is passed to a function of `meeting` begins and ends."""
    for call in calls(words, meeting):
        start = call.opening + 1
        for argument in call.arguments:
            end = start + len(argument)
            if is_lambda(argument):
                return start, end
            start = end + 1
    return None


def is_lambda(words: Words) -> bool:
    """Whether the words are a single lambda that is not called immediately."""
    if texts(words[:1]) != ["["] or texts(words[-1:]) != ["}"]:
        return False
    opening = next((i for i, word in enumerate(words) if word.text == "{"), 0)
    return bool(opening) and close(words, opening) == len(words) - 1


def refers(words: Words) -> bool:
    """Whether a lambda copies nothing: it captures by reference, or not at all."""
    captures = split(words[1 : close(words, 0)])
    return all(texts(each[:1]) == ["&"] and len(each) <= 2 for each in captures)


def taken_apart(words: Words) -> tuple[list[str], list[Statement]]:
    """The names of a lambda's parameters, and its statements; NotCoveredError if it returns early.

    Each call therefore makes all of its changes.
    """
    opening = next(i for i, word in enumerate(words) if word.text == "{")
    body = statements(words[opening + 1 : -1])
    early = [word for statement in body[:-1] for word in statement.words if word.text == "return"]
    if early or (body and body[-1].kind != "simple" and "return" in texts(body[-1].words)):
        raise NotCoveredError(f"{words[0].place}: a lambda that returns early")
    names = [
        (parameter.name if (parameter := parameter_of(part)) else "")
        for part in (
            split(words[close(words, 0) + 2 : opening - 1])
            if words[opening - 1].text == ")"
            else []
        )
    ]
    return names, body


def definition(local: Local, value: Words, bindings: list[Piece]) -> list[Piece]:
    """The block's single object; `bindings` give it a thread's own values."""
    if not refers(local.initializer):
        place = local.value[0].place
        raise NotCoveredError(f"{place}: a lambda that copies, for a function with barriers")
    name = local.name
    head = (
        "::cudalab::lambda([&](const uint3 threadIdx, const size_t cudalab_t, auto&&... cudalab_a)"
    )
    return [
        f"const auto {name} = {head} -> decltype(auto) {{ (void)threadIdx, (void)cudalab_t;",
        *bindings,
        f"auto {name}_cudalab_1 =",
        *value,
        f"; return {name}_cudalab_1(cudalab_a...); }});",
        known(name),
    ]


def known(name: str) -> str:
    """Declare a second name for the object, for use in regions."""
    return f"const auto& {name}_cudalab_all = {name}; (void){name}_cudalab_all;"


def binding(name: str) -> str:
    """The declaration of one thread's lambda, in a region."""
    return f"const auto& {name} = ::cudalab::of_thread({name}_cudalab_all, threadIdx, cudalab_t);"
