"""Kernels of which all threads do the same, and what can be made of that for a whole block.

Where the threads of a kernel without barriers make the same rounds of a loop, it goes around a loop
over the threads, and the compiler takes several threads at once. That is faster if neighbouring
threads access neighbouring elements, or the same ones. The threads of other kernels without
barriers run one after another.
"""

import re
from itertools import pairwise

from cudalab.backends.cpu.regions.analysis import Facts
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.normal_forms import with_own_counters
from cudalab.backends.cpu.regions.parts import Piece
from cudalab.backends.cpu.regions.strides import Strides, changed_elements
from cudalab.backends.cpu.regions.syntax import LOOPS, Statement, edited
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import BLOCK_WIDE, Unit
from cudalab.backends.cpu.regions.words import CHANGING, NotCoveredError, Words, calls, of_text
from cudalab.language.tokens import called, only_x, split, texts

ALONE = "no barriers; "  # in reasons why the threads of a kernel run one after another
NEEDLESS = f"{ALONE}each thread has loops of its own"

ONE_BY_ONE = "one_by_one"  # in the name of a function that runs threads one after another
LEAVING = "leaving"  # in that of one for blocks of which threads leave
LONG = 64  # rounds that the compiler does not unroll

_LEAVING = frozenset({"break", "continue", "return"})


def settle_loops(unit: Unit, functions: list[Function]) -> None:
    """Mark a kernel without barriers whose threads go through loops in step.

    NotCoveredError if it has other loops: as parts of a loop over all threads they are not faster,
    and g++ 12 compiles some to wrong code.
    """
    kernel = functions[0]
    bodies = [set(texts(function.body)) for function in functions]
    if unit.is_collective(kernel.body) or not any(LOOPS & body for body in bodies):
        return
    own = kernel.statements
    last = own[-1]
    extends = last.kind == "if" and not last.parts[1:] and LOOPS & set(texts(last.words))
    kernel.statements = with_own_counters(returning_early(own) if extends else own)
    unit.in_step.add(kernel.name)
    facts = Facts(unit, kernel, {})
    facts.look()
    if not _Kernel(facts).suits(functions[1:]):
        unit.in_step.remove(kernel.name)
        kernel.statements = own
        raise NotCoveredError(f"{kernel.head[0].place}: {NEEDLESS}")


def is_guard(statement: Statement) -> bool:
    """Whether a statement is `if (…) return;`."""
    if statement.kind != "if" or statement.parts[1:]:
        return False
    return [texts(each.words) for each in statement.parts[0].inside] == [["return", ";"]]


def one_by_one(function: Function) -> list[Piece]:
    """A function that runs the threads of a kernel one after another."""
    pieces: list[Piece] = [*function.template, "CUDALAB_COLD static void"]
    pieces += [f"{function.name}_cudalab_{ONE_BY_ONE} (::cudalab::Block& cudalab_B"]
    for parameter in function.parameters:
        pieces += [",", *parameter.words]
    pieces += [") { CUDALAB_ENTER ; CUDALAB_EACH_ORDERED { CUDALAB_THREAD"]
    pieces += ["::cudalab::set_thread(threadIdx, (unsigned)cudalab_t);"]
    return [*pieces, function.name, f"{arguments(function)}); }} }}\n"]


def arguments(function: Function, *first: str) -> str:
    """The arguments for a call with the kernel's own arguments, after the `first` ones."""
    names = [part[-1].text for part in function.template_parameters]
    of_template = f"<{', '.join(names)}>" if names else ""
    return f"{of_template}({', '.join([*first, *(each.name for each in function.parameters)])}"


def returning_early(statements: list[Statement]) -> list[Statement]:
    """The statements with an early return instead of the branch that extends to their end."""
    last = statements[-1]
    place, (start, end), inside = last.words[0], last.of_condition, last.parts[0].within
    return edited(
        statements,
        [
            (start, start, of_text(place, "! (")),
            (end, inside[0], of_text(place, ") ) return ;")),
            (inside[1], last.end, []),
        ],
    )


class _Kernel:
    """A kernel without barriers."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._parameters = {parameter.name for parameter in facts.function.parameters}

    def suits(self, called: list[Function]) -> bool:
        """Whether threads can and should go through its loops in step."""
        facts, levels = self._facts, self._facts.levels
        if levels.arrays or levels.shared or levels.escaping or facts.lambdas:
            return False
        if "" in self._parameters or self._parameters & facts.changed:
            return False
        if "..." in texts(facts.function.template):
            return False
        bodies = [facts.function.body, *(function.body for function in called)]
        if any(LOOPS & set(texts(body)) or any(changed_elements(body)) for body in bodies[1:]):
            return False
        pure = all(is_pure(facts.unit, body) for body in bodies)
        return pure and self._has_plain_loops()

    def _has_plain_loops(self) -> bool:
        if "threadIdx" not in texts(self._facts.function.body):  # a block is one thread
            return False
        strides = Strides(self._facts)
        begun = False  # to do more than to look who leaves
        for statement in self._facts.statements:
            if statement.kind == "for":
                suits = self._is_plain(statement) and strides.are_near(statement)
                suits = suits and self._sums_apart(statement.words, strides)
            elif is_guard(statement):
                suits = not begun
            else:
                suits = self._has_no_loops(statement)
            if not suits:
                return False
            begun |= not (statement.declared or is_guard(statement))
        return True

    def _sums_apart(self, words: Words, strides: Strides) -> bool:
        """Whether no two threads of a block change the same element and read it, as sums do.

        Threads that all sum up in one element find in it what they have written themselves, if
        each goes through its rounds by itself, as the registers of a GPU have it.
        """
        facts, by_row = self._facts, set[str]()  # the names of what differs from row to row
        for local in facts.locals:
            if not (by_row.isdisjoint(texts(local.initializer)) and only_x(local.initializer)):
                by_row.add(local.name)

        def differs(part: Words) -> bool:
            names = [
                word.text
                for i, word in enumerate(part)
                if texts(part[i - 1 : i]) not in (["."], ["->"])
            ]
            return not (by_row.isdisjoint(names) and only_x(part))

        is_flat = facts.unit.is_flat(facts.function)
        return all(
            any(strides.of(part) == 1 for part in parts) and (is_flat or any(map(differs, parts)))
            for is_read, parts in changed_elements(words)
            if is_read
        )

    def _has_no_loops(self, statement: Statement) -> bool:
        return statement.kind != "other" and not (LOOPS | _LEAVING) & set(texts(statement.words))

    def _is_plain(self, loop: Statement) -> bool:
        """Whether all threads do the same rounds of a loop, and those have no branches."""
        facts = self._facts
        if loop.kind != "for" or facts.levels.of_loop(loop) > Level.BLOCK:
            return False
        if not (facts.is_scalar_value(loop.condition) and self._is_long(loop)):
            return False
        if not loop.declared or not all(map(facts.is_scalar, loop.declared)):
            return False
        return all(facts.scalar_change(step) is not None for step in split(loop.step)) and all(
            self._is_plain(statement)
            if statement.kind == "for"
            else statement.kind == "simple" and self._has_no_loops(statement)
            for statement in loop.parts[0].inside
        )

    def _is_long(self, loop: Statement) -> bool:
        """Whether the number of rounds is unknown to the compiler, or too large to be unrolled."""
        names = self._parameters | self._facts.levels.names.keys()
        names -= {local.name for local in loop.declared}
        ends = [*loop.first, *loop.condition]
        bounds = [int(word.text) for word in ends if word.text.isdecimal()]
        bounds += [self._facts.unit.numbers.get(word.text, 0) for word in ends]
        return any(word.text in names for word in loop.condition) or max(bounds, default=0) >= LONG


# Guards -------------------------------------------------------------------------------------------
#
# `if (i >= n) return;` keeps threads out of the last blocks of a grid only. A kernel with barriers
# that begins with one is written twice: for blocks in which all threads stay, and with masks for
# the others. A branch that extends to the end of a kernel, as in `if (i < n) { … __syncthreads(); …
# }`, is a guard in other words.


def settle_guards(unit: Unit, functions: list[Function]) -> None:
    """Let a program's kernel return early where a branch with barriers extends to its end."""
    kernel = functions[0]
    if not unit.is_program or not (own := kernel.statements):
        return
    last = own[-1]
    if last.kind != "if" or last.parts[1:] or not calls(last.words, BLOCK_WIDE | unit.block_wide):
        return
    if any(word.text.startswith("__grid_") for each in functions for word in each.body):
        return
    facts = Facts(unit, kernel, {})
    facts.look()
    if facts.levels.of(last.condition) > Level.BLOCK:
        kernel.statements = returning_early(own)


def begins_with_guards(unit: Unit, kernel: Function) -> bool:
    """Whether threads leave a program's kernel by guards at its beginning, and only there."""
    alone = len(unit.by_name[kernel.name]) == 1 and not kernel.specialized
    if not (unit.is_program and kernel.is_kernel and alone) or kernel.numbers:
        return False
    statements = kernel.statements
    guards = [i for i, each in enumerate(statements) if is_guard(each)]
    if not guards or "..." in texts(kernel.template):
        return False
    before, after = statements[: guards[-1] + 1], statements[guards[-1] + 1 :]
    return all(_only_looks(unit, each) for each in before) and not any(
        "return" in texts(each.words) for each in after
    )


def _only_looks(unit: Unit, statement: Statement) -> bool:
    """Whether a statement is a guard or declares variables, and has no other effects."""
    words = statement.words
    plain = is_pure(unit, words) and not unit.is_collective(words)
    if is_guard(statement):
        return plain and not CHANGING & set(texts(statement.condition))
    is_shared = statement.words[0].text in ("__shared__", "extern")
    changes = sum(word in CHANGING for word in texts(words))
    return is_shared or (
        plain
        and bool(statement.declared)
        and changes <= len(statement.declared)
        and not {"++", "--"} & set(texts(words))
    )


# Rows ---------------------------------------------------------------------------------------------
#
# A kernel for blocks of one dimension may be launched with blocks of several. Threads with one
# `threadIdx.x` then read and write the same elements, and where they go in step, as on a GPU, each
# finds what all others have written, too. So one of them does for all.

# What stands before a bracket in code that only computes: functions without effects, and types.
# A pattern of the functions that compilers have vector instructions for.
COMPUTING = r"cudalab_into|cudalab_fit|sizeof|\w+_cast|f?min|f?max|f(?:abs|min|max)f?|fmaf?|__ldg"
_PURE = re.compile(
    rf"{COMPUTING}|if|for|return|decltype|unsigned|int|float|double|\w+_t|make_\w+[1-4]"
    r"|__\w+_as_\w+|abs|r?sqrtf?|__f\w+_r[nzud]"
)
_NOT_PURE = frozenset({"asm", "__asm__", "volatile", "switch", "new", "delete", "->", "static"})


def is_pure(unit: Unit, body: Words) -> bool:
    """Whether a function only computes and assigns."""
    return not _NOT_PURE & set(texts(body)) and all(
        name in unit.by_name or _PURE.fullmatch(name) for name in called(body)
    )


def are_alike(unit: Unit, kernel: Function) -> bool:
    """Whether the rows of a block do the same, so that one of them does for all."""
    alone = len(unit.by_name[kernel.name]) == 1  # and so its name says which one it is
    if not (unit.is_program and alone and unit.is_flat(kernel)):
        return False
    if kernel.template or kernel.numbers:
        return False
    functions = unit.called_by(kernel)
    bodies = unit.bodies(functions)
    words = [word.text for body in bodies for word in body]
    return (
        "threadIdx" in words
        and not unit.collective & {function.name for function in functions}
        and all(is_pure(unit, body) for body in bodies)
        and all(only_x(body, "blockDim") and not _calls_any(body) for body in bodies)
    )


def _calls_any(body: Words) -> bool:
    """Whether a function may call one that it does not name, as in `(*f)(x)` and `f[i](x)`."""
    names = texts(body)
    return any(
        after == "(" and (before == "]" or (before == ")" and "*" in names[max(0, i - 3) : i]))
        for i, (before, after) in enumerate(pairwise(names))
    )
