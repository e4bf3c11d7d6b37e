"""Facts about the functions that the kernels of a file reach.

`Facts` are those of one function: which of its variables are one for the whole block (scalar),
which may be computed anew in each region, to which something else may lead. `Analysis` has them for
all functions, and goes on until no call tells a function anything more about its parameters.
"""

from collections.abc import Iterator
from math import prod

from cudalab.backends.cpu.regions import lambdas, syntax
from cudalab.backends.cpu.regions.functions import Declaration, Function
from cudalab.backends.cpu.regions.parts import OUTER
from cudalab.backends.cpu.regions.syntax import LOOPS, Local, Statement
from cudalab.backends.cpu.regions.uniformity import Level, Levels
from cudalab.backends.cpu.regions.unit import BUILT_IN, Unit
from cudalab.backends.cpu.regions.uses import INTO
from cudalab.backends.cpu.regions.words import CHANGING, Words, calls, close, whole_arguments
from cudalab.language.tokens import closure, has_lambda, names_in, set_of, spaced, split, texts

# Words that need the position of the running thread where the runtime looks for it.
_CURRENT = set_of(
    "__trap __brkpt __lane_id __pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior"
)
_ASSERTIONS = frozenset({"assert", "cudalab_assert"})  # of labs: a program's block runs once more

_SMALL = 128  # elements of an array that a region copies
_CHEAP = frozenset({"min", "max", "static_cast", "sizeof"})


class Facts:
    """Facts about one function."""

    def __init__(self, unit: Unit, function: Function, results: dict[str, Level]) -> None:
        """Begin with parameters that are the same for the whole block.

        `results` are the levels of what the functions return, as far as they are known.
        """
        self.unit, self.function, self.results = unit, function, results
        self.statements = unit.normalized(function)
        self.uses = unit.uses(function)
        self.in_step = function.name in unit.in_step
        self.meets = unit.is_collective(function.body) or self.in_step  # else it is one region
        self.parameters = [Level.BLOCK for _ in function.parameters]
        self.own: set[str] = set()  # parameters of which each thread has one
        self.locals = list(syntax.variables(self.statements))
        self.lambdas = {local.name for local in self.locals if has_lambda(local.value)}
        self.lambda_parameters: set[str] = set()  # which are handed some
        passed = {
            name
            for statement in self.statements
            for name in whole_arguments(statement.words, unit.collective)
        }
        self.handed_over = {  # lambdas for functions in which threads meet
            local.name: set(texts(local.value))
            for local in self.locals
            if local.name in passed and lambdas.is_lambda(local.initializer)
        }
        self.pointers = {local.name for local in self.locals if "*" in texts(local.pointer)} | {
            parameter.name for parameter in function.parameters if "*" in texts(parameter.words)
        }
        self.arrays = {
            name: texts(words).count("[")  # of small arrays of each thread
            for name, words in [
                *((local.name, local.array) for local in self.locals),
                *((parameter.name, parameter.words) for parameter in function.parameters),
            ]
            if _is_small_array(name, words)
        }
        self.lent: set[str] = set()  # what others lead to beyond a region; see cuts.py
        self.pointed = {
            name for statement in self.statements for name in self._find_pointed(statement)
        }.union(*self.handed_over.values())
        every = list(syntax.walk(self.statements))
        own = (each.words if each.kind in ("simple", "other") else each.condition for each in every)
        heads = (words for each in every for words in (each.first, each.step))
        # The variables that are changed anywhere but in the head of a `for` loop, and all that are.
        self.changed_inside = set[str]().union(*map(self._changes, own))
        self.changed = self.changed_inside.union(*map(self._changes, heads))

    def look(self) -> None:
        """Find the levels and scalars, given what is known about the parameters so far."""
        self.levels = Levels(
            self.unit, self.uses, self.function, self.statements, self.parameters, self.results
        )
        self.loose = set(self.own)
        before = None
        while before != self.loose:
            before = set(self.loose)
            for statement in self.statements:
                self._find_loose(statement)
            self.loose |= {each.name for each in self.locals if not self._may_be_scalar(each)}

    def is_cut(self, statement: Statement) -> bool:
        """Whether regions end inside a statement."""
        return self.unit.is_collective(statement.words) or (
            self.in_step and statement.kind == "for"
        )

    def is_uniform_parameter(self, name: str) -> bool:
        """Whether all threads of a block pass the same value."""
        return name not in self.own or name in self.lambda_parameters

    def is_lambda(self, argument: Words) -> bool:
        """Whether an argument is a lambda that is one object of the block."""
        name = argument[0].text if len(argument) == 1 else ""
        return name in self.handed_over or name in self.lambda_parameters

    def referred(self, argument: Words) -> set[str]:
        """The variables named by an argument, or by the lambda that it stands for."""
        names = names_in(argument)
        for name in names & self.lambda_parameters:
            names |= {*self.arrays} - {name}  # whatever it is
        return names.union(*(self.handed_over.get(name, set()) for name in names))

    def is_scalar_name(self, name: str) -> bool:
        """Whether one variable `name` serves all threads of the block."""
        return (
            self.levels.names.get(name, Level.THREAD) == Level.BLOCK
            and name not in self.loose
            and name not in self.levels.escaping
            and name not in self.levels.arrays
            and (self.meets or name not in self.changed)
        )

    def is_scalar(self, local: Local) -> bool:
        """Whether one local variable serves the whole block."""
        return self.is_scalar_name(local.name)

    def is_scalar_value(self, words: Words, *, memory: bool = False) -> bool:
        """Whether an expression can be computed once for the block."""
        if self.levels.of(words) > Level.BLOCK or (not memory and self.levels.reads_memory(words)):
            return False
        if any(word.text in CHANGING for word in words) or has_lambda(words):
            return False
        if calls(words, self.unit.collective | self.unit.placed | BUILT_IN):
            return False
        return all(
            word.text not in self.levels.names
            or word.text in self.levels.shared
            or self.is_scalar_name(word.text)
            for i, word in enumerate(words)
            if word.kind == "name" and not (i and words[i - 1].text in (".", "->", "::"))
        )

    def scalar_change(self, words: Words) -> str | None:
        """The name of the block's variable, if changing it is all that a statement does."""
        words = words[:-1] if words and words[-1].text == ";" else words
        if texts(words[:5]) == [*INTO] and texts(words[6:7]) == [")"]:
            words = [words[5], *words[7:]]
        if len(words) < 2 or sum(word.text in CHANGING for word in words) != 1:
            return None
        first, second = words[0], words[1]
        if first.text in ("++", "--"):
            name, value = second.text, words[2:]
        elif second.text in CHANGING:
            name, value = first.text, words[2:]
        else:
            return None
        alone = not value if "++" in texts(words) or "--" in texts(words) else bool(value)
        return name if alone and self.is_scalar_name(name) and self.is_scalar_value(value) else None

    def is_done_once(self, statement: Statement) -> bool:
        """Whether a statement without barriers is executed once for all threads of the block.

        It only declares and changes variables that serve the whole block.
        """
        if statement.kind == "simple":
            if statement.words[0].text in OUTER or has_lambda(statement.words):
                return False
            return self._begins_once(statement.words[:-1])
        if statement.kind == "other" or self.is_cut(statement):
            return False
        if statement.kind != "block" and not self.is_scalar_value(statement.condition):
            return False
        if statement.kind == "for" and not (
            statement.condition
            and (not statement.first or self._begins_once(statement.first))
            and all(self.scalar_change(part) is not None for part in split(statement.step))
        ):
            return False
        return all(map(self.is_done_once, statement.parts))

    def _begins_once(self, words: Words) -> bool:
        """Whether what the words declare, or the variable that they change, is the block's."""
        declared = syntax.locals_of(words)
        return all(map(self.is_scalar, declared)) if declared else bool(self.scalar_change(words))

    def is_computed(  # noqa: C901, PLR0911 - a reason each
        self, local: Local, computed: set[str]
    ) -> bool:
        """Whether recomputing a variable in each region is cheaper than keeping it."""
        value = local.initializer
        if not local.value or local.value[0].text != "=" or local.array or local.is_reference:
            return False
        if local.name in self.changed | self.lent | self.levels.escaping:
            return False
        if local.name in self.lambdas:
            return lambdas.refers(value)
        if not self.unit.effects.makes(self.uses.type_of(local.name)):
            return False
        if self.levels.reads_memory(value) or any(word.text in ("{", "&") for word in value):
            return False
        for i, word in enumerate(value):
            if word.kind != "name" or (i and value[i - 1].text in (".", "->", "::")):
                continue
            if texts(value[i + 1 : i + 2]) == ["("] and word.text not in _CHEAP:
                if word.text in self.unit.collective or not self.unit.effects.computes(word.text):
                    return False
            elif word.text in self.levels.names:
                kept = word.text not in computed and not self.is_scalar_name(word.text)
                if kept or word.text in self.changed_inside:
                    return False
        return True

    def is_nearby(self, name: str) -> bool:
        """Whether a region may work on a copy of a thread's array: nothing else points to it."""
        return name in self.arrays and name not in self.pointed

    def _find_pointed(self, statement: Statement) -> Iterator[str]:
        """The arrays to which pointers, references or objects may refer beyond a region."""
        together = self.unit.is_collective(statement.words)
        for words in statement.pieces:
            for call in calls(words, self.unit.collective & self.unit.by_name.keys()):
                callee = self.unit.by_name[call.word.text][0]
                for parameter, argument in zip(callee.parameters, call.arguments, strict=False):
                    yield from self._places(argument, elements=parameter.is_reference)
            for name, _, changed, _ in self.uses.of(words).changes:
                at = next((i for i, word in enumerate(changed) if word.text in CHANGING), 0)
                if name in self.pointers or {".", "->"} & set(texts(changed[:at])):
                    yield from self._places(changed[at:])
        for local in statement.declared:
            if local.name not in self.lambdas:
                yield from self._places(local.value, elements=local.is_reference)
        if together or statement.kind not in LOOPS:
            for part in statement.parts:
                yield from self._find_pointed(part)

    def _places(self, words: Words, *, elements: bool = False) -> Iterator[str]:
        """The arrays of each thread whose addresses (or values, with `elements`) are in `words`."""
        for i, word in enumerate(words):
            if word.text not in self.arrays:
                continue
            end = i + 1
            for _ in range(self.arrays[word.text]):
                if end < len(words) and words[end].text == "[":
                    end = close(words, end) + 1
                else:
                    yield word.text
                    break
            if elements or (i and words[i - 1].text == "&"):
                yield word.text

    def _changes(self, words: Words) -> set[str]:
        """The variables that a statement changes, not those that it declares or points to."""
        return {
            name
            for name, through, *_ in self.uses.of(words).changes
            if not (through and name in self.pointers)
        }

    def _may_be_scalar(self, local: Local) -> bool:
        if local.is_reference or local.name in self.lambdas or local.array:
            return False
        if not self.unit.effects.makes(self.uses.type_of(local.name)):
            return False
        return self.is_scalar_value(local.initializer, memory=self.meets)

    def _find_loose(self, statement: Statement) -> None:  # noqa: C901 - a form of statement each
        """Record what is changed where each thread may change it by itself."""
        if statement.kind == "block" and self.is_cut(statement):
            for part in statement.parts:
                self._find_loose(part)
        elif statement.kind == "simple":
            declares = statement.declared or has_lambda(statement.words)
            if declares or self.scalar_change(statement.words) is None:
                self.loose |= self._changes(statement.words)
        elif not self.is_cut(statement) or statement.kind == "other":
            if not self.is_done_once(statement):
                pieces = (words for each in statement.walk() for words in each.pieces)
                self.loose = self.loose.union(*map(self._changes, pieces))
        else:
            self.loose |= self._changes(statement.condition)
            for step in split(statement.step):
                if self.scalar_change(step) is None:
                    self.loose |= self._changes(step)
            if statement.declared or self.scalar_change(statement.first) is None:
                self.loose |= self._changes(statement.first)
            for part in (each for body in statement.parts for each in body.inside):
                self._find_loose(part)


class Analysis:
    """Facts about all functions that some kernels reach."""

    def __init__(self, unit: Unit, kernels: list[Function]) -> None:
        """Iterate until no call adds anything about a parameter."""
        self.unit = unit
        self.always_masked: set[str] = set()  # functions that are handed a mask in any case
        reached: list[Function] = []
        for kernel in kernels:
            reached += [each for each in unit.called_by(kernel) if each not in reached]
        self.reached = reached
        together = [each for each in reached if each.is_kernel or each.name in unit.collective]
        results: dict[str, Level] = {}
        self.facts = {function: Facts(unit, function, results) for function in together}
        waiting = dict.fromkeys(together)  # functions to look at
        while waiting:
            function = next(iter(waiting))
            del waiting[function]
            self.facts[function].look()
            result = self.facts[function].levels.of_result()
            if result > results.get(function.name, Level.BLOCK):
                results[function.name] = result
                waiting |= {each: None for each in together if calls(each.body, {function.name})}
            waiting |= dict.fromkeys(self._hand_over(function))
        self._need_current = self._names_that_need_current()
        # Functions with arrays of each thread, or with loops, and their callers.
        self.with_arrays = closure(
            (f.name for f in reached if any(x.array for x in syntax.variables(f.statements))),
            lambda names: (f.name for f in reached if calls(f.body, names)),
        )
        self.with_loops = closure(LOOPS, self._using)

    def is_repeated(self, function: Function) -> bool:
        """Whether a function is called in several places."""
        names = {function.name}
        return sum(len(calls(each.body, names)) for each in self.reached) > 1

    def name_for(self, function: Function, masked: bool) -> str:
        """The name of a function for a whole block, or for the threads of a mask."""
        return f"{function.name}_cudalab_{'some' if masked else 'all'}"

    def counts_on_whole_warps(self, kernel: Function) -> bool:
        """Whether blocks of a kernel must consist of whole warps along the first dimension."""
        return any(
            each in self.facts and self.facts[each].levels.by_whole_warps
            for each in self.unit.called_by(kernel)
        )

    def _hand_over(self, function: Function) -> list[Function]:
        """Record what `function` passes to its callees; return the callees that learn something."""
        facts, news = self.facts[function], []
        words = [word for statement in facts.statements for word in statement.words]
        for call in calls(words, self.unit.collective):
            callees = self.unit.by_name[call.word.text]
            news += [each for each in callees if self._learns(each, facts, call.arguments)]
        return news

    def _learns(self, callee: Function, facts: Facts, arguments: list[Words]) -> bool:
        """Record what a function is passed by one with `facts`; return whether that is new."""
        known = self.facts[callee]
        before = set(known.own), list(known.parameters), set(known.lambda_parameters)
        names = [*map(facts.referred, arguments)]
        known.pointed |= {
            parameter.name
            for i, parameter in enumerate(callee.parameters[: len(names)])
            if parameter.is_reference
            and any(names[i] & others for j, others in enumerate(names) if j != i)
        }
        for i, parameter in enumerate(callee.parameters):
            argument = arguments[i] if i < len(arguments) else parameter.default
            if facts.is_lambda(argument):
                known.lambda_parameters.add(parameter.name)
                known.parameters[i] = Level.THREAD
                continue
            memory = self.unit.is_program  # which is read once, when all have come to the call
            if i < len(arguments) and (
                parameter.is_reference or not facts.is_scalar_value(argument, memory=memory)
            ):
                known.own.add(parameter.name)
            known.parameters[i] = max(facts.levels.of(argument), known.parameters[i])
        return before != (known.own, known.parameters, known.lambda_parameters)

    def needs_current(self, names: set[str]) -> bool:
        """Whether text with these names may ask the runtime for the thread's position."""
        return self._need_current is None or bool(names & self._need_current)

    def _names_that_need_current(self) -> set[str] | None:
        """Names of functions and methods that need the position; None if any text may."""
        classes = [(each, set(texts(each.words))) for each in self.unit.classes(self.reached)]

        def placed(names: set[str]) -> Iterator[Declaration]:
            placing = {"threadIdx", *self.unit.placed, *names}
            return (each for each, words in classes if words & placing)

        names = closure(
            _CURRENT if self.unit.is_program else _CURRENT | _ASSERTIONS,
            lambda names: self._using(names).union(*(each.entries for each in placed(names))),
        )
        by_operators = any("operator" in texts(each.words) for each in placed(names))
        return None if by_operators else names  # which are called by no name

    def _using(self, names: set[str]) -> set[str]:
        """The functions with one of these names in their text."""
        return {f.name for f in self.reached if not names.isdisjoint(texts(f.body))}


def _is_small_array(name: str, words: Words) -> bool:
    """Whether a variable is an array, or a reference to one, of no more than `_SMALL` elements."""
    if "[" not in texts(words) or (words[0].text != "[" and f"( & {name} )" not in spaced(words)):
        return False
    lengths = (int(word.text) for word in words if word.text.isdecimal())
    return prod(lengths) <= _SMALL
