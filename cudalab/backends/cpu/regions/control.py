"""Branches and loops in which threads meet, with the implicit barriers of such a loop.

A branch or loop that the whole block takes is written as it is. If its condition reads memory, all
threads compute it and must agree. If whole warps take it or not, a mask says which threads do:
`if (threadIdx.x < 32) { a; __syncwarp(); b; }` becomes

    Mask m; EACH THREAD { if (threadIdx.x < 32) m.add(cudalab_t); }
    if (m.any()) { EACH THREAD OF m { a; } EACH THREAD OF m { b; } }
"""

from collections.abc import Iterable
from functools import partial

from cudalab.backends.cpu.regions import orders
from cudalab.backends.cpu.regions.barriers import call
from cudalab.backends.cpu.regions.body import Body
from cudalab.backends.cpu.regions.cuts import hoisted
from cudalab.backends.cpu.regions.gathering import is_among_own, split_by
from cudalab.backends.cpu.regions.in_step import is_guard
from cudalab.backends.cpu.regions.parallel_regions import in_region, keep_local
from cudalab.backends.cpu.regions.parts import Loop, Part, Piece
from cudalab.backends.cpu.regions.syntax import Local, Statement, locals_of, simple
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import BLOCK_VOTES, BLOCK_WIDE
from cudalab.backends.cpu.regions.words import CHANGING, NotCoveredError, Words, calls
from cudalab.language.tokens import has_lambda, split, texts

_ALL_LANES = frozenset({"0xffffffff", "0xffffffffu", "0xFFFFFFFF"})


def construct(body: Body, part: Part) -> None:
    """Write a branch or a loop in which threads meet, or that they take together."""
    statement, last = part.statement, part.last
    body.flush()
    if body.leaving and not body.masks and "return" in texts(statement.words):
        # Some threads may have left: at the latest at the end of a round.
        body.masks = ["cudalab_live"]
    homes, masks = dict(body.homes), list(body.masks)
    if statement.kind == "block":
        _block(body, statement, last=last)
    elif (body.facts.in_step or body.all_stay) and is_guard(statement):
        body.writer.add(f"if ({_answers(body, statement.condition)}.some) {{ {body.otherwise} }}")
    elif statement.kind.startswith("if"):
        _branch(body, statement, last=last)
    elif not body.mask and (steps := orders.steps_of(statement, body.facts, body.strides)):
        _steps(body, steps)
    elif rounds := orders.rounds_of(statement, body.facts, body.strides):
        _rounds(body, rounds)
    else:
        _loop(body, statement)
    body.homes, body.masks = homes, masks


def _block(body: Body, statement: Statement, *, last: bool = False) -> None:
    homes, masks = dict(body.homes), list(body.masks)
    body.writer.add("{")
    body.statements(statement.inside, last=last)
    body.writer.add("}")
    body.homes, body.masks = homes, masks


# Branches -----------------------------------------------------------------------------------------


def _branch(body: Body, statement: Statement, *, last: bool) -> None:
    words, then = statement.condition, statement.parts
    level = body.levels.of(words)
    if statement.kind == "if constexpr" or body.facts.is_scalar_value(words):
        body.writer.add(statement.head, words, ")")
    elif _is_read_once(body, words):
        body.writer.add("if (", _read(body, words), ")")
    elif level == Level.BLOCK:
        body.writer.add(f"if ({_agreed(body, words)})")
    else:
        _masked_branch(body, statement, level)
        return
    _block(body, then[0], last=last)
    for otherwise in then[1:]:
        body.writer.add("else")
        _block(body, otherwise, last=last)


def _masked_branch(body: Body, statement: Statement, level: Level) -> None:
    # In a program's kernel some lanes of a warp may meet in a branch if those that skip it meet
    # nobody behind it, or arrive at a barrier of the block first: then the masks within the branch
    # cannot name all lanes, but name those that take it.
    is_last = alone = False
    if body.unit.is_program and body.function.is_kernel and not statement.parts[1:]:
        after = _after(body.facts.statements, statement)
        meeting = [each for each in after or () if body.unit.is_collective(each.words)]
        is_last = after is not None and not meeting
        at_barrier = bool(meeting) and meeting[0].words[0].text == "__syncthreads"
        names_all = not _ALL_LANES.isdisjoint(texts(statement.words))
        alone = is_last or (at_barrier and not names_all)
    _refuse(body, statement, Level.WARP if alone else level, "branch")
    taken = _chosen(body, statement.condition)
    if is_last and level == Level.THREAD:
        body.writer.add(f"cudalab_B.live = &{taken};")
    others = f"cudalab_m_{body.number()}"
    if statement.parts[1:]:
        body.writer.add(
            f"::cudalab::Mask {others}({body.mask or 'cudalab_B'}); {others}.drop({taken});"
        )
    for mask, part in zip((taken, others), statement.parts, strict=False):
        body.writer.add(f"if ({mask}.any())")
        body.masks.append(mask)
        _block(body, part)
        body.masks.pop()


def _after(statements: list[Statement], branch: Statement) -> list[Statement] | None:
    """The statements that follow a branch in a function; None if it is in a loop."""
    for i, statement in enumerate(statements):
        inside: list[Statement] | None = [] if statement is branch else None
        if statement.kind == "block":
            inside = _after(statement.parts, branch)
        elif inside is None and statement.kind.startswith("if"):
            found = (_after([part], branch) for part in statement.parts)
            inside = next((each for each in found if each is not None), None)
        if inside is not None:
            return [*inside, *statements[i + 1 :]]
    return None


def _refuse(body: Body, statement: Statement, level: Level, what: str) -> None:
    """NotCoveredError if threads that meet in a statement may enter it separately."""
    parts = [part.words for part in statement.parts]
    if what == "loop":
        parts.append([*statement.condition, *statement.step])
    words = [word for part in parts for word in part]
    if blocks := calls(words, BLOCK_WIDE | body.unit.block_wide):
        place = blocks[0].word.place
        raise NotCoveredError(f"{place}: a barrier in a {what} that not all threads may take")
    inside = calls(words, body.unit.meeting) if level == Level.THREAD else []
    facts = body.facts
    known = split_by(statement, facts.statements, body.levels, facts.changed_inside)
    if inside and not all(is_among_own(part, body.unit, known) for part in parts):
        word = inside[0].word
        raise NotCoveredError(f"{word.place}: {word.text} in a {what} that not all lanes may take")


def _hoisted(body: Body, words: Words) -> Words:
    """Write the calls of an expression in which threads meet; return what is left of it."""
    pieces, rest = hoisted(body, words)
    for piece in pieces:
        call(body, piece)
    return rest


def _each_thread(body: Body, kind: str, condition: Words, before: str, behind: str) -> str:
    """Declare a variable that collects what each thread has for a condition; return its name.

    The condition stands between `before` and `behind`, in which {} is the name.
    """
    rest = _hoisted(body, condition)
    name = f"cudalab_{kind[0].lower()}_{body.number()}"
    body.writer.add(f"::cudalab::{kind} {name};")
    own = body.unit.handing_over(rest)
    body.region.add(before.format(name), *own, behind.format(name), of=rest)
    body.region.ordered = True
    body.flush()
    return name


def _is_read_once(body: Body, condition: Words) -> bool:
    """Whether a program's condition is uniform and read from memory.

    All threads read it at the same time, so they agree unless there is a race. Threads that
    disagree would wait for one barrier at two places.
    """
    return body.unit.is_program and body.facts.is_scalar_value(condition, memory=True)


def _read(body: Body, condition: Words) -> list[Piece]:
    """A condition that is computed once for all threads that are here, if any."""
    return [f"{body.mask}.any() && (", *condition, ")"] if body.mask else [*condition]


def _agreed(body: Body, condition: Words) -> str:
    """An expression for the answer that all threads give to a condition.

    Those of a program agree by themselves if they ask for a vote of the block; a variable that each
    has for itself may come from memory that has changed in the meantime.
    """
    place = condition[0]
    votes = [word for vote in calls(condition, BLOCK_VOTES) for word in condition[vote.span]]
    others = [word for word in condition if word not in votes]
    if body.unit.is_program and not body.facts.is_scalar_value(others, memory=True):
        names = body.levels.names.keys() - body.levels.shared
        own = (w.text for w in others if w.text in names and not body.facts.is_scalar_name(w.text))
        why = f"with {name}, of which each thread has its own" if (name := next(own, "")) else ""
        why = "that changes a variable" if CHANGING & set(texts(others)) else why
        why = "with a lambda" if has_lambda(others) else why
        raise NotCoveredError(f"{place.place}: a condition {why or 'that is read from memory'}")
    return f'{_answers(body, condition)}.yes("{place.file}", {place.line})'


def _answers(body: Body, condition: Words) -> str:
    """Collect the threads' answers to a condition; return the name."""
    return _each_thread(body, "Agreement", condition, "{}.add(", ");")


def _chosen(body: Body, condition: Words) -> str:
    """Build the mask of the threads for which a condition holds; return its name."""
    return _each_thread(body, "Mask", condition, "if (", ") {}.add(cudalab_t);")


# Loops --------------------------------------------------------------------------------------------


def _loop(body: Body, loop: Statement) -> None:
    level = body.levels.of_loop(loop)
    ends = level == Level.THREAD and _ends_with(body, loop)  # lanes that leave it do nothing more
    if level == Level.BLOCK and _is_plain(body, loop):
        if several := orders.jammed(loop, body.facts, body.strides):
            _jammed(body, several)
            return
        body.writer.add(loop.head, loop.first, ";", loop.condition, ";", loop.step, ") {")
        _end_without_threads(body)
        body.loops.append(Loop())
        _block(body, loop.parts[0])
        body.loops.pop()
        body.writer.add("}")
        return
    if level > Level.BLOCK:
        _refuse(body, loop, Level.WARP if ends else level, "loop")
    body.writer.add("{")
    _begin(body, loop.first)
    if level == Level.BLOCK:
        _agreed_loop(body, loop)
    else:
        _masked_loop(body, loop, ends=ends)
    body.writer.add("}")


def _jammed(body: Body, several: orders.Jammed) -> None:
    """Write a loop of which threads do several rounds at a time, and then those that are left."""
    loop, index, number = several.loop, several.index.name, body.number()
    kept = [f"cudalab_round_{number}_{i}" for i in range(orders.ROUNDS)]
    body.writer.add("for (", loop.first, ";", loop.condition, "; ) {")
    for pieces in several.saving(kept):
        body.writer.add(*pieces)
    if several.ahead:
        body.region.add(several.asking(), of=loop.words)
        body.flush(each="CUDALAB_AHEAD")
    inside = in_region(body, loop.parts[0], 1, last=False)
    for name in kept:
        body.region.add(f"{{ const auto {index} = {name};", inside, "}", of=loop.words)
    body.flush()
    body.writer.add("continue;", "}" * (orders.ROUNDS - 1), f"{index} = {kept[0]};")
    _block(body, loop.parts[0])
    body.writer.add(loop.step, "; }")


def _is_plain(body: Body, loop: Statement) -> bool:
    """Whether the head of a `for` loop uses only variables of the block."""
    facts = body.facts
    if loop.kind != "for" or not (not loop.condition or facts.is_scalar_value(loop.condition)):
        return False
    declared = loop.declared
    if declared:
        begins = all(map(facts.is_scalar, declared))
    else:
        begins = not loop.first or facts.scalar_change(loop.first) is not None
    return begins and all(facts.scalar_change(part) is not None for part in split(loop.step))


def _begin(body: Body, first: Words) -> None:
    """Write the first part of the head of a loop."""
    if not first:
        return
    semicolon = first[-1]._replace(text=";", kind="sign")
    declared = locals_of(first)
    if declared and not all(map(body.facts.is_scalar, declared)):
        for local in locals_of(_hoisted(body, first)):
            keep_local(body, local)
        body.flush()
    else:
        body.statements([simple([*first, semicolon])])


def _step(body: Body, step: Words) -> None:
    for part in split(step):
        body.statements([simple([*part, part[-1]._replace(text=";", kind="sign")])])


def _end_without_threads(body: Body) -> None:
    """End a loop that all threads take together once all have returned, here or before."""
    if body.mask:
        body.writer.add(f"if (!{body.mask}.any()) break;")


def _agreed_loop(body: Body, loop: Statement) -> None:
    label = f"cudalab_continue_{body.number()}"

    def go_on() -> None:
        if not loop.condition:
            return
        if body.facts.is_scalar_value(loop.condition):
            body.writer.add("if (!(", loop.condition, ")) break;")
        elif _is_read_once(body, loop.condition):
            body.writer.add("if (!(", _read(body, loop.condition), ")) break;")
        else:
            body.writer.add(f"if (!{_agreed(body, loop.condition)}) break;")

    body.writer.add("for (;;) {")
    _end_without_threads(body)
    if loop.kind != "do":
        go_on()
    body.loops.append(Loop(label=label))
    _block(body, loop.parts[0])
    body.loops.pop()
    if _continues(loop):
        body.writer.add(f"{label}: ;")
    _step(body, loop.step)
    if loop.kind == "do":
        go_on()
    body.writer.add("}")


def _continues(loop: Statement) -> bool:
    return any(each.kind == "simple" and each.words[0].text == "continue" for each in loop.walk())


def _ends_with(body: Body, loop: Statement) -> bool:
    """Whether lanes that leave a loop at different times meet no others afterwards."""
    if not (body.unit.is_program and body.function.is_kernel) or loop.kind == "do":
        return False
    after = _after(body.facts.statements, loop)
    if after is None or any(body.unit.is_collective(each.words) for each in after):
        return False
    return not {"break", "continue", "return"} & set(texts(loop.parts[0].words))


def _masked_loop(body: Body, loop: Statement, *, ends: bool) -> None:
    mask, continues = f"cudalab_m_{body.number()}", _continues(loop)
    body.writer.add(f"::cudalab::Mask {mask}({body.mask or 'cudalab_B'});")
    body.writer.add(f"cudalab_B.live = &{mask};" if ends else "", "for (;;) {")
    body.masks.append(mask)

    def go_on() -> None:
        if loop.condition:
            body.writer.add(f"{mask}.keep({_chosen(body, loop.condition)});")
        body.writer.add(f"if (!{mask}.any()) break;")

    if loop.kind != "do":
        go_on()
    turn = f"cudalab_m_{body.number()}" if continues else mask
    if continues:
        body.writer.add(f"::cudalab::Mask {turn}({mask});")
        body.masks.append(turn)
    body.loops.append(Loop(mask=mask, round=turn))
    _block(body, loop.parts[0])
    body.loops.pop()
    if continues:
        body.masks.pop()
    _step(body, loop.step)
    if loop.kind == "do":
        go_on()
    body.writer.add("}")
    body.masks.pop()


def _own_region(
    body: Body,
    loop: Statement,
    index: Local | None,
    *pieces: Piece | Iterable[Piece],
    ordered: bool = False,
) -> None:
    """Write a region of a loop, in which its index is another variable."""
    body.region.add(*pieces, of=loop.words)
    body.region.declared |= {index.name} if index else set()
    body.region.ordered = ordered
    body.flush()


def _steps(body: Body, steps: orders.Steps) -> None:
    """Write a loop that all threads go through in step until one of them reaches its end."""
    number, loop = body.number(), steps.loop
    count, answers = f"cudalab_rounds_{number}", f"cudalab_a_{number}"
    index = steps.declared(count)
    inside = in_region(body, loop.parts[0], 1, last=False)

    region = partial(_own_region, body, loop, steps.index)
    body.writer.add(f"{{ unsigned {count} = 0; if constexpr (::std::is_integral<decltype(")
    body.writer.add(steps.step, f")>::value) for (;; ++{count}) {{")
    body.writer.add(f"::cudalab::Agreement {answers};")
    region(index, [f"{answers}.add(", *loop.condition, ");"], ordered=True)
    body.writer.add(f"if ({answers}.others) break;")
    region(index, inside)
    body.writer.add("}")
    region(["for ("], index, loop.condition, [";"], loop.step, [")"], inside)
    body.writer.add("}")


def _rounds(body: Body, rounds: orders.Rounds) -> None:
    """Write a loop whose rounds threads do side by side until few of them are left in it."""
    number, loop, index = body.number(), rounds.loop, rounds.index
    names = ("stays", "left", "next", "end", "same")
    stays, left, step, end, same = (f"cudalab_{name}_{number}" for name in names)
    condition: list[Piece] = [*loop.condition] or ["true"]

    region = partial(_own_region, body, loop, index)
    count = f"{left} = {stays}.count(cudalab_B);"
    body.writer.add(f"{{ ::cudalab::Staying<{body.max_threads}> {stays}(cudalab_B);")
    region(f"{stays}[cudalab_t] = 1;")
    body.writer.add(f"unsigned {count}", loop.first, "; for (;;) {")
    if rounds.ends_together:
        body.writer.add("if (!(", *condition, ")) ", f"{left} = 0;")
    else:
        region([f"{stays}[cudalab_t] = {stays}[cudalab_t] && (", *condition, ");"])
        body.writer.add(count)
    body.writer.add(f"if ({left} <= cudalab_B.threads / 16) break;")
    own, read = rounds.without_same(rounds.body(f"{stays}[cudalab_t] = 0 ; goto {end}", step), same)
    for i, element in enumerate(read):
        body.writer.add(f"const auto {same}_{i} =", element, ";")
    inside = in_region(body, own, 1, last=False)
    region([f"if ({stays}[cudalab_t]) {{", *inside, f"{step}: ;", *rounds.step, f"; }} {end}: ;"])
    body.writer.add(loop.step if index else "", "; }", f"if ({left}) {{")
    first: list[Piece] = []
    if index:
        body.writer.add(f"const auto {same} = {index.name};")
        first = [*index.spec, *index.pointer, f"{index.name} = {same}"]
    head = [f"if ({stays}[cudalab_t]) for (", *first, ";", *condition, ";", *loop.step, ")"]
    region(head, in_region(body, loop.parts[0], 1, last=False), ordered=True)
    body.writer.add("} }")
