"""Refuses kernels that may reach a barrier other than through a function called by name.

Methods, operators and functors are not written anew: a barrier in them would wait for threads that
have no stack of their own.
"""

from collections.abc import Collection, Sequence

from cudalab.backends.cpu.regions.syntax import TYPES, Function
from cudalab.backends.cpu.regions.unit import BUILT_IN, Unit, own_names
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, texts
from cudalab.language.tokens import Token

_OF_METHOD = (".", "->", "::")


def note_meetings_elsewhere(units: Sequence[Unit]) -> None:
    """Give each namespace the names of functions, and of classes elsewhere, that may meet."""
    classes = [
        {
            name
            for names, words in unit.definitions
            for name in names - TYPES
            if name.isidentifier() and _met(words, BUILT_IN | unit.collective)
        }
        for unit in units
    ]
    functions = {name for unit in units for name in unit.placed | unit.collective}
    for unit, own in zip(units, classes, strict=True):
        unit.elsewhere = functions | ({name for names in classes for name in names} - own)


def _met(definition: Words, names: Collection[str]) -> Token | None:
    """The first call of one of `names` inside a class or an operator."""
    inside = definition[texts(definition).index("{") :]  # a function's own body is not in it
    found = calls(inside, names)
    return inside[found[0].name] if found else None


def refuse_hidden_meetings(unit: Unit, reached: list[Function]) -> None:
    """NotCoveredError if a method, an operator or a pointer may lead to a barrier."""
    meeting = BUILT_IN | unit.collective
    for words in unit.classes(reached):
        if word := _met(words, meeting):
            raise NotCoveredError(f"{word.place}: {word.text} in a class or an operator")
    methods = {
        function.name for function in unit.functions if texts(function.returns[-1:]) == ["::"]
    }
    for function in reached:
        body, own = function.body, own_names(function)
        called = {call.name for call in calls(body, meeting)}
        for i, word in enumerate(body):
            if word.text not in unit.collective | unit.elsewhere or word.text in own:
                continue
            before = texts(body[i - 1 : i])
            if word.text in unit.elsewhere - unit.placed - unit.collective:
                raise NotCoveredError(f"{word.place}: {word.text} is of another namespace")
            if word.text not in unit.collective:
                continue
            if word.text in methods or (before and before[0] in _OF_METHOD):
                raise NotCoveredError(f"{word.place}: a method with barriers: {word.text}")
            if i not in called:
                raise NotCoveredError(
                    f"{word.place}: the address of {word.text}, which has barriers"
                )
