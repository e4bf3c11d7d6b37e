"""Finds loops in which a thread may wait for others: loops over threads would never end there.

A wait for another block ends, as blocks start in order and run on threads of the system. So one
thread or one warp may wait if the rest of its block is at a barrier behind the wait: then only
another block can end it.
"""

from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.syntax import LOOPS, Statement, locals_of, variables, walk
from cudalab.backends.cpu.regions.unit import BLOCK_WIDE, Unit
from cudalab.backends.cpu.regions.uses import Uses
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls
from cudalab.language.tokens import closure, has_lambda, split, texts

# In the names of what reads memory that other threads may change, besides atomic functions.
_POLLING = frozenset(
    {"compare_exchange_weak", "compare_exchange_strong", "fetch_add", "exchange", "test_and_set"}
    | {"volatile", "__ldcv"}
)
_PAUSE = "__nanosleep"
_SHARED = frozenset({"__shared__", "extern", "static"})
_FIRST_LANES = (["<", "32"], ["<", "32u"], ["/", "32", "==", "0"], ["/", "32u", "==", "0"])


def refuse_waiting(unit: Unit, functions: list[Function]) -> None:
    """NotCoveredError for a loop that ends when a thread of the same block has changed memory.

    Such memory is read by an atomic operation or as volatile. In a loop with a block-wide barrier
    no thread runs ahead: such a loop waits at most for other blocks.
    """
    polling = closure(  # functions that have such operations, or call one that has
        (), lambda known: (each.name for each in functions if _polls(each.body, known))
    )
    polling |= _polling_parameters(functions, polling)
    _Waits(unit, functions, polling).refuse(functions[0])


def may_wait(words: Words) -> bool:
    """Whether a statement that is not refused may wait for another block."""
    return any(word.text == _PAUSE or word.text in _POLLING for word in words)


class _Waits:
    """Follows the calls of a kernel to the loops that wait."""

    def __init__(self, unit: Unit, functions: list[Function], polling: set[str]) -> None:
        self.unit, self.polling = unit, polling
        # What the file declares as such, outside of functions.
        self.volatile = unit.declared_with({"volatile"}) if unit.is_program else set[str]()
        self.functions: dict[str, list[Function]] = {}
        for function in functions:
            self.functions.setdefault(function.name, []).append(function)
        self.seen: set[tuple[Function, str]] = set()

    def refuse(self, function: Function, alone: str = "") -> None:
        """Examine a function that a whole block calls, or a `thread` or `warp` alone."""
        if (function, alone) in self.seen:
            return
        self.seen.add((function, alone))
        begun = {each.name: texts(each.initializer) for each in variables(function.statements)}

        def among(statements: list[Statement], alone: str) -> None:
            for i, statement in enumerate(statements):
                after = statements[i + 1].words if i + 1 < len(statements) else []
                is_last = not after and function.is_kernel and statements is function.statements
                is_apart = is_last or texts(after[:1]) == ["__syncthreads"]
                inside = alone
                self._look(function, statement, alone)
                if statement.kind == "if" and is_apart and len(statement.parts) == 1:
                    inside = alone or _who(statement.condition, begun)
                for part in statement.parts:
                    among(part.inside, inside)

        among(function.statements, alone)

    def _look(self, function: Function, loop: Statement, alone: str) -> None:
        """Examine the functions that a statement calls, and itself if it is a loop."""
        names = self.functions.keys()
        for call in (call for words in loop.pieces for call in calls(words, names)):
            for called in self.functions[call.word.text]:
                self.refuse(called, alone)
        if loop.kind not in LOOPS:
            return
        of_host = self.unit.is_program  # which fibers notice, and deadlocks
        if not of_host and calls(loop.words, BLOCK_WIDE | self.unit.block_wide):
            return
        if _waits(self.unit, loop, self.polling, function, self.volatile):
            by_vote = alone == "warp" and self.unit.is_collective(loop.words)
            if of_host or (alone != "thread" and not by_vote):
                raise NotCoveredError(f"{loop.words[0].place}: a loop that waits for other threads")


def _who(condition: Words, begun: dict[str, list[str]]) -> str:
    """Whether a condition selects a single `thread` or `warp`; empty if it may select more."""
    for part in split(condition, "&&"):
        words = texts(part)
        name = words[0] if words else ""
        if begun.get(name, [])[:1] == ["threadIdx"]:
            words = [*begun[name], *words[1:]]
        if words[:3] != ["threadIdx", ".", "x"]:
            continue
        if words[3:4] == ["=="] and len(words) == 5:
            return "thread"
        if words[3:] in _FIRST_LANES:
            return "warp"
    return ""


def _polling_parameters(functions: list[Function], polling: set[str]) -> set[str]:
    """The parameters that receive lambdas which read what other threads may change."""
    found: set[str] = set()
    by_name = {function.name: function for function in functions}
    for function in functions:
        lambdas = {
            each.name
            for each in variables(function.statements)
            if has_lambda(each.value) and _polls(each.value, polling)
        }
        for call in calls(function.body, by_name.keys()):
            parameters = by_name[call.word.text].parameters
            for parameter, argument in zip(parameters, call.arguments, strict=False):
                direct = has_lambda(argument) and _polls(argument, polling)
                if direct or (len(argument) == 1 and argument[0].text in lambdas):
                    found.add(parameter.name)
    return found


def _polls(words: Words, functions: set[str]) -> bool:
    """Whether an expression reads what other threads may change in the meantime."""
    return any(word.text.startswith("atomic") or word.text in _POLLING for word in words) or bool(
        calls(words, functions)
    )


def _waits(
    unit: Unit, loop: Statement, polling: set[str], function: Function, volatile: set[str]
) -> bool:
    """Whether other threads' changes may decide when a loop ends."""
    if any(word.text == _PAUSE for word in loop.words):
        return True
    names = volatile | {
        local.name
        for each in walk(function.statements)
        for local in [
            *each.declared,
            *locals_of([w for w in each.pieces[0] if w.text not in _SHARED]),
        ]
        if "volatile" in texts([*local.spec, *local.value])  # a pointer, perhaps
    }
    names |= {each.name for each in function.parameters if "volatile" in texts(each.words)}
    before, uses = None, unit.uses(function)
    while before != names:
        before = set(names)
        _follow(loop, uses, polling, names, decided=False)
    leaving = {"break", "return"}
    return _decides(loop.condition, polling, names) or any(
        _decides(each.condition, polling, names)
        and any(one.kind == "simple" and one.words[0].text in leaving for one in each.walk())
        for each in loop.parts[0].walk()
        if each.kind == "if"
    )


def _follow(
    statement: Statement, uses: Uses, polling: set[str], names: set[str], *, decided: bool
) -> None:
    """Add to `names` the variables that depend on what other threads change."""
    for words in statement.pieces:
        for local in locals_of(words):
            if decided or _decides(local.value, polling, names):
                names.add(local.name)
        for name, _, value, _ in uses.of(words).changes:
            if decided or _decides(value, polling, names):
                names.add(name)
    inside = decided or (statement.kind == "if" and _decides(statement.condition, polling, names))
    for part in statement.parts:
        _follow(part, uses, polling, names, decided=inside)


def _decides(words: Words, polling: set[str], names: set[str]) -> bool:
    return _polls(words, polling) or any(word.text in names for word in words)
