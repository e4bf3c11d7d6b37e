"""Lambdas that are passed to functions in which threads meet.

Such a lambda is one object of the block, which is called for a thread: of
`sum([&](int i) { return a[i] + x; })`, `x` being each thread's own, becomes

    const auto f = lambda([&](uint3 threadIdx, size_t cudalab_t, …) { auto& x = …; … });
    sum_cudalab_all(cudalab_B, f);

A region of either function calls `of_thread(f, threadIdx, cudalab_t)`.
"""

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.parts import Piece
from cudalab.backends.cpu.regions.syntax import Edit, Local, Statement, expression, statements, walk
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close, of_text
from cudalab.language.tokens import split, texts


def named(unit: Unit, function: Function) -> list[Statement]:
    """The statements, in which each lambda for a function with barriers has a name."""
    own, number = function.statements, 1
    while edits := _first_named(own, unit.collective, f"cudalab_lambda_{number}"):
        own, number = syntax.edited(own, edits), number + 1
    return own


def _first_named(own: list[Statement], meeting: set[str], name: str) -> list[Edit]:
    """The edits that give the first such lambda a name; none if there is none."""
    for statement in (each for each in walk(own) if each.kind == "simple"):
        if (lambda_ := _argument(statement.words, meeting)) is not None:
            start, end = lambda_
            place, whole = statement.words[start], statement.words[start:end]
            named_ = place._replace(text=name, kind="name")
            declared = of_text(place, "const auto", [named_], "=", whole, ";")
            span = statement.start + start, statement.start + end
            return [*syntax.ahead(statement, declared), (*span, [named_])]
    return []


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
    return texts(words[:1]) == ["["] and expression(tuple(words)).kind == "lambda"


def refers(words: Words) -> bool:
    """Whether a lambda copies nothing: it captures by reference, or not at all."""
    captures = split(words[1 : close(words, 0)])
    return all(texts(each[:1]) == ["&"] and len(each) <= 2 for each in captures)


def taken_apart(words: Words) -> tuple[list[str], list[Statement]]:
    """The names of a lambda's parameters, and its statements; NotCoveredError if it returns early.

    Each call therefore makes all of its changes.
    """
    node = expression(tuple(words))
    block = node.children[0]
    body = statements(words[block.first + 1 : block.last - 1])
    early = [word for statement in body[:-1] for word in statement.words if word.text == "return"]
    if early or (body and body[-1].kind != "simple" and "return" in texts(body[-1].words)):
        raise NotCoveredError(f"{words[0].place}: a lambda that returns early")
    return [each.names[-1].name if each.names else "" for each in node.parameters], body


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
