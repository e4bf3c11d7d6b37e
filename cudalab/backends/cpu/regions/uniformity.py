"""Uniformity: whether a value is the same for a block, for a warp, or only for one thread.

The levels say which branches and loops a block or a warp takes as a whole: `blockIdx.x + n` has the
level of a block, `threadIdx.x / 32` that of a warp, `threadIdx.x` that of a thread. They are upper
bounds: a value of a low level is the same in all threads unless the kernel has a data race. A
variable has the highest level of what is assigned to it, and of the conditions on which that
depends; this is repeated until nothing rises any more.
"""

import re
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.lambdas import is_lambda, taken_apart
from cudalab.backends.cpu.regions.syntax import LOOPS, Local, Statement
from cudalab.backends.cpu.regions.unit import BLOCK_VOTES, OTHER_WARP_WIDE, VOTES, Unit
from cudalab.backends.cpu.regions.uses import Uses
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close
from cudalab.language.tokens import closing_angle, has_lambda, split, texts


class Level(IntEnum):
    """The threads for which a value is the same."""

    BLOCK = 0
    WARP = 1
    THREAD = 2


Control = tuple[Level, ...]  # of the branches and loops around a statement, outermost first

_WARP = 32
_SKIPPING = frozenset({"?", "&&", "||"})
# What follows threadIdx.x where the loop of a lane begins.
_LANE: list[list[str]] = [[], ["%", "32"], ["%", "32u"], ["&", "31"], ["&", "31u"]]
_BLOCK_BEGINS = ["blockIdx", ".", "x", "*", "blockDim", ".", "x"]
_IN_GRID = [
    [*_BLOCK_BEGINS, "+", "threadIdx", ".", "x"],
    [*_BLOCK_BEGINS[4:], "*", *_BLOCK_BEGINS[:3], "+", "threadIdx", ".", "x"],
    ["threadIdx", ".", "x", "+", *_BLOCK_BEGINS],
    ["threadIdx", ".", "x", "+", *_BLOCK_BEGINS[4:], "*", *_BLOCK_BEGINS[:3]],
]
_KNOWN = re.compile(
    r"[A-Z][A-Z0-9_]*|\w+_t|u?(?:char|short|int|long|longlong|float|double)[1-4]|dim3|std|cudalab"
    r"|bool|char|short|int|long|float|double|unsigned|signed|void|const|sizeof|true|false|nullptr"
    r"|static_cast|reinterpret_cast|typename|auto|if|else|for|while|do|return|warpSize"
    r"|blockIdx|blockDim|gridDim|__uint_as_float|mutable|alignof"
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


class Levels:
    """The levels of a function's variables."""

    def __init__(
        self,
        unit: Unit,
        uses: Uses,
        function: Function,
        statements: list[Statement],
        parameters: list[Level],
        results: dict[str, Level],
    ) -> None:
        """Raise the levels until they hold for every assignment."""
        self.unit, self.uses = unit, uses
        # Functions whose results do not depend on their arguments.
        self.independent = BLOCK_VOTES | VOTES | OTHER_WARP_WIDE | {"__shfl_sync"} | unit.collective
        self.statements = statements
        self.results = results
        self.changed = {change.name for change in uses.changes(syntax.walk(statements))}
        self.names: dict[str, Level] = {}
        self.around: dict[str, int] = {}  # how many branches and loops variables are declared in
        self.lambdas: dict[str, tuple[list[str], list[Statement]]] = {}  # called, not handed over
        self.arrays: set[str] = set()  # of a thread
        self.pointers: set[str] = set()  # to memory that all threads see the same way
        self.shared: set[str] = set()
        self.shared_arrays: set[str] = set()
        # Names for threadIdx.x, or for its sum with a multiple of the block's threads.
        self.linear: set[str] = set()
        self.in_grid: set[str] = set()  # those that are such sums
        self.by_whole_warps = False  # the levels hold if blocks consist of whole warps
        self.lanes: set[str] = set()  # names for threadIdx.x % 32
        self.escaping: set[str] = set()  # may change where no assignment is seen
        for parameter, level in zip(function.parameters, parameters, strict=True):
            self.names[parameter.name] = level
            if "*" in texts(parameter.words):
                self.pointers.add(parameter.name)
            elif self.unit.placed_names & set(texts(parameter.words)):
                self.names[parameter.name] = Level.THREAD
        for word in function.template:
            self.names[word.text] = Level.BLOCK
        for statement in syntax.walk(statements):
            for local in statement.declared:
                self._declare(local)
            if statement.kind == "simple":
                self._declare_outside(statement.words)
        self._find_lambdas()
        before = None
        while before != self.names:
            before = dict(self.names)
            for statement in statements:
                self._visit(statement, (Level.BLOCK,))

    # What a value depends on ----------------------------------------------------------------------

    def of(self, words: Words) -> Level:
        """The level of an expression."""
        level, i = Level.BLOCK, 0
        while i < len(words):
            level = max(level, self._of_name(words, i))
            i = self._after(words, i)
        return level

    def reads_memory(self, words: Words) -> bool:
        """Whether an expression reads memory that other threads may write."""
        of_file = self.unit.given.variables - self.names.keys()
        if "[" in texts(words) or self.uses.of(words).pointers:
            return True
        for i, word in enumerate(words):
            is_member = texts(words[i - 1 : i]) in (["."], ["->"])
            if word.text in self.shared - self.shared_arrays | of_file and not is_member:
                return True
        names = {word.text for word in words if word.text.startswith(("atomic", "__ld"))}
        return bool(calls(words, names)) or any(
            ({"[", "->", "*"} | of_file) & set(texts(function.body))
            for call in calls(words, self.unit.by_name.keys())
            for function in self.unit.by_name[call.word.text]
        )

    def _of_name(self, words: Words, i: int) -> Level:  # noqa: PLR0911 - a kind of name each
        word, before = words[i], words[i - 1].text if i else ""
        if word.kind != "name":
            return Level.BLOCK
        after = texts(words[i + 1 : i + 2])
        if before in (".", "->"):
            placed = after == ["("] and word.text in self.unit.placed_members
            computes = not placed and (after != ["("] or self._computes(word.text))
            return Level.BLOCK if computes else Level.THREAD
        if word.text == "threadIdx":
            if texts(words[i + 2 : i + 3]) != ["x"]:
                return Level.WARP
            in_program = self.unit.is_program  # whose launches may have blocks of any size
            start, end = (i, i + 3) if in_program else _bracketed(words, i, i + 3)
            level = self._of_linear(words, start, end)
            self.by_whole_warps |= level < Level.THREAD and start < i
            return level
        if word.text == "CUDALAB_RANK":
            return self._of_linear(words, i, i + 1)
        if word.text in self.linear:
            level = self._of_linear(words, i, i + 1)
            self.by_whole_warps |= level < Level.THREAD and word.text in self.in_grid
            return level
        if word.text in self.names:
            return self.names[word.text]
        if word.text in self.unit.placed_names - self.unit.collective:
            return Level.THREAD
        behind = (closing_angle(words, i + 1) or i) + 1 if after == ["<"] else i + 1
        if texts(words[behind : behind + 1]) == ["("]:
            return self._of_call(words, i)
        known = word.text in self.unit.known or _KNOWN.fullmatch(word.text) or before == "::"
        return Level.BLOCK if known or after == ["::"] else Level.THREAD

    def _of_linear(self, words: Words, start: int, end: int) -> Level:
        """The level of threadIdx.x, given the operation that follows it."""
        before = words[start - 1].text if start else "("
        operation, operand = texts(words[end : end + 1]), words[end + 1 : end + 2]
        if not operand or before in ("*", "/", "%", "<<", ">>", "-", "~", "."):
            return Level.THREAD
        width = _number(operand[0].text)
        if operand[0].text == "warpSize":
            width = _WARP
        if width is None:
            return Level.THREAD
        by_warps = width % _WARP == 0 and width > 0
        if (operation == ["/"] and by_warps) or (operation == [">>"] and 1 << width >= _WARP):
            return Level.WARP
        alone = before in ("(", "&&", "||", "!", ",", "=", "return", "?", ":")
        ends = texts(words[end + 2 : end + 3]) in ([], [")"], ["&&"], ["||"], ["?"], [";"], [","])
        if operation in (["<"], [">="]) and by_warps and alone and ends:
            return Level.WARP
        return Level.THREAD

    def _computes(self, name: str) -> bool:
        """Whether what looks like a call of this name only computes a value."""
        return bool(_KNOWN.fullmatch(name)) or self.unit.effects.computes(name)

    def _of_call(self, words: Words, i: int) -> Level:
        name = words[i].text
        if name in VOTES | OTHER_WARP_WIDE:
            return Level.THREAD if name == "__match_any_sync" else Level.WARP
        if name == "__shfl_sync":  # each warp takes a value from one of its lanes
            return self._of_shuffle(split(words[i + 2 : close(words, i + 1)]))
        if name in BLOCK_VOTES:
            return Level.BLOCK
        if name in self.unit.collective:
            return self.results.get(name, Level.BLOCK)
        if name in self.unit.placed or name.startswith(("__shfl", "__cg_", "atomic")):
            return Level.THREAD
        return Level.BLOCK if self._computes(name) else Level.THREAD

    def _of_shuffle(self, arguments: list[Words]) -> Level:
        if len(arguments) != 3:
            return Level.THREAD
        _, value, lane = map(self.of, arguments)
        return Level.BLOCK if value == Level.BLOCK else max(Level.WARP, lane)

    def _after(self, words: Words, i: int) -> int:
        """Skip the arguments of calls whose results do not depend on them."""
        if words[i].text in self.independent:
            opening = i + 1
            if texts(words[opening : opening + 1]) == ["<"]:
                opening = (closing_angle(words, opening) or opening) + 1
            if texts(words[opening : opening + 1]) == ["("]:
                return close(words, opening) + 1
        return i + 1

    # What raises a level --------------------------------------------------------------------------

    def _find_lambdas(self) -> None:
        """Read the local lambdas that are only called: a call changes the variables that they name.

        Other lambdas count as called by each thread for itself where they are declared.
        """
        words = [word for statement in self.statements for word in statement.words]
        called = Counter(call.word.text for call in calls(words, self.names.keys()))
        named = Counter(word.text for word in words)
        for local in syntax.variables(self.statements):
            value = local.initializer
            if not is_lambda(value) or named[local.name] != called[local.name] + 1:
                continue
            try:
                parameters, body = taken_apart(value)
            except NotCoveredError:
                continue
            self.lambdas[local.name] = parameters, body
            for declared in syntax.variables(body):
                self._declare(declared)
            for parameter in parameters:
                self.names.setdefault(parameter, Level.BLOCK)

    def _enter(self, words: Words, control: Control) -> None:
        """Raise the variables changed by the lambdas that are called."""
        for call in calls(words, self.lambdas.keys()):
            name = call.word.text
            parameters, body = self.lambdas[name]
            for parameter, argument in zip(parameters, call.arguments, strict=False):
                self._raise(parameter, max(*control, self.of(argument)))
            around = max(control)
            self._raise(name, max(self._of_returned(body, around), default=around))
            for statement in body:
                self._visit(statement, control)

    def _declare(self, local: Local) -> None:
        value, is_pointer = texts(local.initializer), "*" in texts(local.pointer)
        placed = self.unit.placed_names & set(texts(local.spec))  # perhaps by its constructor
        self.names.setdefault(
            local.name, Level.THREAD if placed and not is_pointer else Level.BLOCK
        )
        if local.array:
            self.arrays.add(local.name)
        if is_pointer:
            self.pointers.add(local.name)
        if value[:3] == ["threadIdx", ".", "x"] and local.name not in self.changed:
            if len(value) == 3:
                self.linear.add(local.name)
            elif value[3:] in _LANE:
                self.lanes.add(local.name)
        if value in _IN_GRID and local.name not in self.changed and not self.unit.is_program:
            self.linear.add(local.name)
            self.in_grid.add(local.name)

    def _declare_outside(self, words: Words) -> None:
        """Record `__shared__`, `constexpr` and `static` variables, and aliases of types."""
        if words[0].text not in ("__shared__", "constexpr", "static", "using", "typedef", "extern"):
            return
        shared = any(word.text == "__shared__" for word in words)
        kept = [word for word in words if word.text not in ("__shared__", "constexpr", "static")]
        for local in syntax.locals_of(kept):
            self.names.setdefault(local.name, Level.BLOCK)
            if shared:
                self.shared.add(local.name)
                if local.array:
                    self.shared_arrays.add(local.name)
        if words[0].text in ("using", "typedef"):
            self.names.setdefault(words[1 if words[0].text == "using" else -2].text, Level.BLOCK)

    def _visit(self, statement: Statement, control: Control) -> None:
        if statement.kind == "simple":
            self._assign(statement.words, control)
            return
        if statement.kind == "other":
            self._assign(statement.words, (*control, Level.THREAD))
            return
        if statement.kind == "block":
            for part in statement.parts:
                self._visit(part, control)
            return
        if statement.kind.startswith("if"):
            self._assign(statement.condition, control)
            inside = *control, self.of(statement.condition)
        else:
            self._assign(statement.first, control)
            inside = *control, self.of_loop(statement)
            self._assign(statement.condition, inside)
            self._assign(statement.step, inside)
        for part in statement.parts:
            self._visit(part, inside)

    def of_result(self) -> Level:
        """The level of what the function returns."""
        return max(self._of_returned(self.statements, Level.BLOCK), default=Level.BLOCK)

    def _of_returned(self, statements: list[Statement], control: Level) -> Iterator[Level]:
        for statement in statements:
            if statement.kind == "simple" and statement.words[0].text == "return":
                yield max(control, self.of(statement.words[1:]))
            elif statement.kind == "other" and "return" in texts(statement.words):
                yield Level.THREAD
            elif statement.kind in LOOPS:
                yield from self._of_returned(statement.parts, max(control, self.of_loop(statement)))
            else:
                level = max(control, self.of(statement.condition))
                yield from self._of_returned(statement.parts, level)

    def of_loop(self, loop: Statement) -> Level:
        """The threads that go through a loop together, except those that return early."""
        exits = max(self._exits(loop.parts[0], Level.BLOCK), default=Level.BLOCK)
        turns = Level.WARP if self._turns_by_warps(loop) else self.of(loop.condition)
        return max(exits, turns)

    def _turns_by_warps(self, loop: Statement) -> bool:
        """Whether a loop is `for (i = lane; i < 64; i += 32)`, with equally many turns per lane."""
        declared, condition, step = (
            loop.declared,
            texts(loop.condition),
            texts(loop.step),
        )
        if len(declared) != 1 or len(condition) != 3 or len(step) != 3:
            return False
        name, first = declared[0].name, texts(declared[0].initializer)
        if condition[:2] != [name, "<"] or step[:2] != [name, "+="]:
            return False
        if len(first) == 1 and first[0] in self.linear | self.lanes:
            starts_by_lane = True
        else:
            starts_by_lane = first[:3] == ["threadIdx", ".", "x"] and first[3:] in _LANE
        changes = self.uses.changes(loop.parts[0].walk())
        multiples = all((_number(word) or 1) % _WARP == 0 for word in (condition[2], step[2]))
        turns = starts_by_lane and multiples and all(each.name != name for each in changes)
        self.by_whole_warps |= turns and first[0] in self.in_grid
        return turns

    def _exits(self, statement: Statement, control: Level) -> Iterator[Level]:
        """The levels of the conditions under which a loop is left, or a round of it."""
        if statement.kind == "simple":
            if statement.words[0].text in ("break", "continue"):
                yield control
        elif statement.kind == "block" or statement.kind.startswith("if"):
            level = max(control, self.of(statement.condition))
            for part in statement.parts:
                yield from self._exits(part, level)
        elif statement.kind == "other" and "continue" in texts(statement.words):
            yield Level.THREAD

    def _assign(self, words: Words, control: Control) -> None:
        """Raise the variables that a statement declares or changes.

        A variable has the level of its values, among the threads that reach its declaration.
        """
        self._enter(words, control)
        declared = syntax.locals_of(words)
        if any(local.name in self.lambdas for local in declared):
            return
        own = Level.THREAD if has_lambda(words) else Level.BLOCK
        for local in declared:
            self.around[local.name] = len(control)
            self._raise(local.name, max(own, self.of(local.value), self.of(local.array)))
            if local.is_reference:
                self.escaping.add(local.name)
        may_skip = not _SKIPPING.isdisjoint(texts(words))  # so that some threads change nothing
        for name, through, value, is_plain in self.uses.of(words).changes:
            if not is_plain:
                # It may change where no assignment is seen.
                if name in self.names and name not in self.shared:
                    self.escaping.add(name)
                    self.names[name] = Level.THREAD
            elif not (through and (name in self.pointers or name in self.shared)):
                within = control[self.around.get(name, 0) :]
                self._raise(name, max(*within, own, self.of(words if may_skip else value)))

    def _raise(self, name: str, level: Level) -> None:
        if name in self.names and name not in self.shared:
            self.names[name] = max(self.names[name], level)


def _bracketed(words: Words, start: int, end: int) -> tuple[int, int]:
    """The bounds of a bracketed grid index that contains threadIdx.x."""
    for index in _IN_GRID:
        first = start - index.index("threadIdx")
        last = first + len(index)
        if first > 0 and texts(words[first - 1 : last + 1]) == ["(", *index, ")"]:
            called = first > 1 and words[first - 2].kind == "name"
            return (start, end) if called else (first - 1, last + 1)
    return start, end


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return int(match[1], 0) if match else None
