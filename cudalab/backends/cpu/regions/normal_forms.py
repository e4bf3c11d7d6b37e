"""The normal forms of functions: passes that leave fewer cases to those that follow."""

from collections.abc import Iterator
from dataclasses import replace

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.parts import by_itself, in_lambda, type_of_value
from cudalab.backends.cpu.regions.syntax import Function, Local, Parameter, Statement
from cudalab.backends.cpu.regions.unit import Unit, parsed
from cudalab.backends.cpu.regions.words import CHANGING, NotCoveredError, Words, calls, of_text
from cudalab.language.scopes import BASIC, Node
from cudalab.language.tokens import Token, closing_angle, closure, has_lambda, set_of, split, texts


def own_counters(unit: Unit, function: Function) -> list[Statement]:
    """The function's statements, whose loops declare their counters.

    No counter does whose address, or a reference to it, may outlive a loop.
    """
    places = unit.places(function)
    changes = places.changes(syntax.walk(function.statements))
    return with_own_counters(
        function.statements, {each.name for each in changes if not each.is_plain}
    )


def with_own_counters(
    statements: list[Statement], kept: frozenset[str] | set[str] = frozenset()
) -> list[Statement]:
    """The statements with `for (int i = 0; …)`, but for the counters that are `kept`."""
    result: list[Statement] = []
    for at, each in enumerate(statements):
        after = statements[at + 1 :]
        counters = {
            local.name: local.spec
            for local in each.declared
            if each.kind == "simple"
            and local.name not in kept
            and _is_number(local)
            and not (local.value or local.align)
            and _is_set_by_loops(local.name, after)
        }
        if counters:
            others = [local for local in each.declared if local.name not in counters]
            declaring = [_declaring(counters, one) for one in after]
            rest = [Statement("simple", [*by_itself(one), each.own[-1]]) for one in others]
            return [*result, *rest, *with_own_counters(declaring, kept)]
        result.append(replace(each, parts=with_own_counters(each.parts, kept)))
    return result


def _is_set_by_loops(name: str, statements: list[Statement]) -> bool:
    """Whether a variable is used only in loops that first set it."""
    return all(
        name not in texts(each.words)
        or _counter_of(each) == name
        or (
            bool(each.parts)
            and not any(name in texts(words) for words in (each.own, *each.pieces))
            and _is_set_by_loops(name, each.parts)
        )
        for each in statements
    )


def _counter_of(loop: Statement) -> str:
    """The variable that a loop first sets, and does nothing else before its first round."""
    words = texts(loop.first)
    sets = words[1:2] == ["="] and "," not in words and words[0] not in words[2:]
    return words[0] if sets else ""


def _declaring(counters: dict[str, Words], statement: Statement) -> Statement:
    """A statement whose loops declare the counters that they first set."""
    name, first = _counter_of(statement), statement.first
    if name in counters:
        place = first[0]
        spec = [place._replace(text=word.text, kind=word.kind) for word in counters[name]]
        first = [*spec, *first]
        counters = {other: words for other, words in counters.items() if other != name}
    parts = [_declaring(counters, part) for part in statement.parts]
    return replace(statement, first=first, parts=parts)


def renamed(_: Unit, function: Function) -> list[Statement]:
    """The function's statements, with further variables of the same name renamed."""
    names: dict[str, str] = {}
    taken = {parameter.name for parameter in function.parameters}
    return [_renamed(statement, names, taken) for statement in function.statements]


def _renamed(statement: Statement, names: dict[str, str], taken: set[str]) -> Statement:
    """The statement with the new names; its declarations are added to `names`."""
    if statement.kind in ("simple", "other"):
        _declare(statement.own, names, taken)
        return Statement(statement.kind, _words(statement.own, names))
    names, is_block = dict(names), statement.kind == "block"
    _declare(statement.first, names, taken)
    return replace(
        statement,
        condition=_words(statement.condition, names),
        first=_words(statement.first, names),
        step=_words(statement.step, names),
        parts=[
            _renamed(part, names if is_block else dict(names), taken) for part in statement.parts
        ],
    )


def _declare(words: Words, names: dict[str, str], taken: set[str]) -> None:
    skipped = [w for w in words if w.text not in ("__shared__", "constexpr", "static", "extern")]
    for local in syntax.locals_of(skipped):
        new, number = local.name, 2
        while new in taken:
            new, number = f"{local.name}_cudalab_{number}", number + 1
        taken.add(new)
        names[local.name] = new


def _words(words: Words, names: dict[str, str]) -> Words:
    result: Words = []
    for word in words:
        before = result[-1].text if result else ""
        new = names.get(word.text) if word.kind == "name" else None
        plain = new is None or before in (".", "->", "::")
        result.append(word if plain else word._replace(text=new or ""))
    return result


def counted_first(unit: Unit, function: Function) -> list[Statement]:
    """The statements of a program's function, in which threads count before they look.

    Where threads meet in the loop around it, `if (++r > 4) break;` is `++r; if (r > 4) break;`, and
    `if (r++ > 4) break;` keeps what `r` was before. `while (++r < n)` becomes a loop that begins
    so, `do … while (++r < n);` one that ends so.
    """
    if not unit.is_program:
        return function.statements
    counting = _Counting(function)

    def within(statements: list[Statement], *, in_loop: bool) -> list[Statement]:
        return [each for statement in statements for each in of(statement, in_loop=in_loop)]

    def of(statement: Statement, *, in_loop: bool) -> list[Statement]:
        """The replacement for a statement; `in_loop`: threads meet in a loop around it."""
        if not (in_loop or unit.is_collective(statement.words)):
            return [statement]
        in_loop |= statement.kind in ("for", "while", "do")
        parts = []
        for part in statement.parts:
            inside = within(part.inside, in_loop=in_loop)
            if part.kind == "block":
                parts.append(replace(part, parts=inside))
            else:
                parts.append(inside[0] if len(inside) == 1 else _block(part.words[0], inside))
        return counting.first(replace(statement, parts=parts))

    return within(function.statements, in_loop=False)


class _Counting:
    """Takes `++r` and `r++` out of conditions."""

    def __init__(self, function: Function) -> None:
        kinds = {each.name: each.words[:-1] for each in function.parameters}
        variables = syntax.variables(function.statements)
        kinds |= {each.name: [*each.spec, *each.pointer, *each.array] for each in variables}
        self.kinds = {name: kind for name, kind in kinds.items() if _is_of_number(kind)}
        self.count = 0

    def first(self, statement: Statement) -> list[Statement]:
        """A branch or a loop that counts before it looks at its condition."""
        words, place = statement.condition, statement.own[0]
        change = self._change(words)
        is_do = statement.kind == "do"
        if change is None or (is_do and "continue" in texts(statement.words)):
            return [statement]
        value, declared = words[change.children[0].first], list[Statement]()
        counts = of_text(place, words[change.first : change.last], ";")
        if change.text.startswith("_"):  # it counts behind the value
            self.count += 1
            name, kind = value, self.kinds[value.text]
            value = place._replace(text=f"cudalab_before_{self.count}", kind="name")
            kind = [place._replace(text=word.text, kind=word.kind) for word in kind]
            declared = syntax.statements(of_text(place, kind, [value], ";"))
            counts = of_text(place, [value], "=", [name], ";", counts)
        counted = syntax.statements(counts)
        condition = [*words[: change.first], value, *words[change.last :]]
        if statement.kind == "if":
            return [*declared, *counted, replace(statement, condition=condition)]
        inside = statement.parts[0].inside
        if is_do:
            body = _block(place, [*inside, *counted])
            return [*declared, replace(statement, condition=condition, parts=[body])]
        leave = syntax.statements(of_text(place, "if ( ! (", condition, ") ) break ;"))
        body = _block(place, [*declared, *counted, *leave, *inside])
        always = of_text(place, "true") if statement.kind == "while" else []
        return [replace(statement, condition=always, parts=[body])]

    def _change(self, condition: Words) -> Node | None:
        """The count, if nothing else is changed by what a condition always computes."""
        always = list(_always(syntax.expression(tuple(condition)))) if condition else []
        changes = [node for node in always if node.text.lstrip("_") in CHANGING]
        is_unclear = any(node.kind in ("lambda", "sizeof", "block", "unknown") for node in always)
        if is_unclear or len(changes) != 1 or changes[0].kind != "unary":
            return None
        name = changes[0].children[0].text
        is_named_once = [node.text for node in always].count(name) == 1
        return changes[0] if name in self.kinds and is_named_once else None


def _always(node: Node) -> Iterator[Node]:
    """The parts of an expression that are computed whatever it is, and nothing before them."""
    yield node
    is_first = node.kind in ("comma", "conditional") or node.text in ("&&", "||")
    for child in node.children[:1] if is_first else node.children:
        yield from _always(child)


def _is_number(local: Local) -> bool:
    return _is_of_number([*local.spec, *local.pointer, *local.array])


def _is_of_number(kind: Words) -> bool:
    return all(word in BASIC or word.endswith("_t") for word in texts(kind))


def branched(unit: Unit, function: Function) -> list[Statement]:
    """The statements, with branches around conditional calls in which threads meet."""
    branches = _Branches(unit.meeting)
    return [each for statement in function.statements for each in branches.of(statement)]


class _Branches:
    def __init__(self, meeting: set[str]) -> None:
        self.meeting = meeting
        self.count = 0

    def of(self, statement: Statement) -> list[Statement]:
        """The replacement for a statement."""
        if statement.kind == "other" or not calls(statement.words, self.meeting):
            return [statement]
        if statement.kind == "simple":
            before, own = self._taken_out(statement.own)
            return [*before, Statement("simple", own)]
        if statement.kind == "block":
            return [self._block(statement)]
        before, condition = [], statement.condition
        bodies = [self._block(part) for part in statement.parts]
        if statement.kind == "if":
            before, condition = self._taken_out(condition)
        elif statement.kind in ("for", "while") and self._choice(condition):
            inside, rest = self._taken_out(condition)
            place = statement.own[0]
            leave = syntax.statements(of_text(place, "if ( ! (", rest, ") ) break ;"))
            bodies = [_block(place, [*inside, *leave, *bodies[0].inside])]
            condition = of_text(place, "true") if statement.kind == "while" else []
        return [*before, replace(statement, condition=condition, parts=bodies)]

    def _block(self, body: Statement) -> Statement:
        return _block(body.words[0], [each for part in body.inside for each in self.of(part)])

    def _taken_out(self, words: Words) -> tuple[list[Statement], Words]:
        """The branches that make the conditional calls, and the words with their results."""
        before: list[Statement] = []
        while choice := self._choice(words):
            self.count += 1
            start, at, end = choice.first, choice.at, choice.last
            name, place = f"cudalab_chosen_{self.count}", words[start]
            whole, condition, rest = words[start:end], words[start:at], words[at + 1 : end]
            if choice.kind == "conditional":
                colon = choice.children[1].last
                kind = type_of_value(whole)  # one word: it calls nothing
                made = [place._replace(text=kind, kind="name"), *of_text(place, f"{name} ;")]
                made += of_text(place, "if (", condition, f") {name} =", words[at + 1 : colon], ";")
                made += of_text(place, f"else {name} =", words[colon + 1 : end], ";")
            else:
                sign = "!" if choice.text == "||" else ""
                made = of_text(place, f"bool {name} =", condition, ";")
                made += of_text(place, f"if ( {sign} {name} ) {name} =", rest, ";")
            before += [each for statement in syntax.statements(made) for each in self.of(statement)]
            words = [*words[:start], place._replace(text=name, kind="name"), *words[end:]]
        return before, words

    def _choice(self, words: Words) -> Node | None:
        """The outermost expression that decides whether a call is made."""
        choices = [
            node
            for top in syntax.nodes(words)
            for node in top.walk()
            if node.kind == "conditional" or node.text in ("&&", "||")
        ]
        for call in calls(words, self.meeting):
            around = (node for node in choices if node.at < call.name < node.last)
            if not in_lambda(words, call.name) and (choice := next(around, None)):
                return choice
        return None


def _block(place: Token, parts: list[Statement]) -> Statement:
    return Statement("block", of_text(place, "{ }"), parts=parts)


_NUMBERS = set_of(
    "bool char short int long unsigned signed const size_t int32_t uint32_t int64_t uint64_t"
)
# Words at the beginning of what the compiler has to know.
_CONSTANT = frozenset({"__shared__", "static", "constexpr", "static_assert", "using", "typedef"})


def hand_over_numbers(kernel: Function) -> None:
    """Turn template parameters of a kernel into parameters, unless they must be constants."""
    parts, declared = split(kernel.template[2:-1]), kernel.template_parameters
    places = [
        i
        for i, part in enumerate(declared)
        if len(part) > 1 and _NUMBERS.issuperset(texts(part[:-1]))
    ]
    try:
        if not places or _must_be_known(kernel, {declared[i][-1].text for i in places}):
            return
    except NotCoveredError:  # it keeps its fibers in any case
        return
    kernel.numbers = tuple(places)
    left = [part for i, part in enumerate(parts) if i not in places]
    comma = kernel.template[0]._replace(text=",", kind="sign")
    between = [word for part in left for word in (comma, *part)][1:]
    kernel.template = [*kernel.template[:2], *between, kernel.template[-1]] if left else []
    kernel.parameters[:0] = [Parameter(declared[i], declared[i][-1].text, []) for i in places]


def _must_be_known(kernel: Function, names: set[str]) -> bool:
    """Whether one of `names`, or a value computed from it, must be a constant."""
    statements = list(syntax.walk(parsed(kernel).statements))
    declared = [local for each in statements for local in each.declared]
    names = closure(
        names,
        lambda known: (each.name for each in declared if known & set(texts(each.value))),
    )
    outside = {word.text for parameter in kernel.parameters for word in parameter.words}
    outside |= set(kernel.bounds.split())
    return (
        bool(names & outside)
        or has_lambda(kernel.body)
        or any(  # a template argument, perhaps, but of our own conversions
            word.text == "<"
            and kernel.body[i - 1].text != "cudalab_fit"
            and names & set(texts(kernel.body[i : closing_angle(kernel.body, i) or i]))
            for i, word in enumerate(kernel.body)
        )
        or any(not names.isdisjoint(texts(local.array)) for local in declared)
        or any(not names.isdisjoint(texts(_constant_in(each))) for each in statements)
    )


def _constant_in(statement: Statement) -> Words:
    """What a statement itself requires to be a constant."""
    if statement.kind == "if constexpr":
        return statement.condition
    is_constant = statement.kind == "other" or statement.own[0].text in _CONSTANT
    return statement.own if is_constant else []
