"""The normal forms of functions: passes that leave fewer cases to those that follow.

int i; for (i = 0; …) …          ->    for (int i = 0; …) …               own_counters
int x; { int x; … }              ->    int x; { int x_cudalab_2; … }      renamed
if (++r > 4) break;              ->    ++r; if (r > 4) break;             counted_first
y = c ? __shfl_sync(…) : 0;      ->    if (c) y = __shfl_sync(…); …       branched
"""

from collections.abc import Collection, Iterator

from cudalab.backends.cpu.regions import syntax
from cudalab.backends.cpu.regions.functions import Function, Parameter
from cudalab.backends.cpu.regions.parts import by_itself, in_lambda, type_of_value
from cudalab.backends.cpu.regions.syntax import LOOPS, Edit, Statement
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import CHANGING, NotCoveredError, Words, calls, of_text
from cudalab.language.scopes import BASIC, Node
from cudalab.language.tokens import closing_angle, closure, has_lambda, set_of, spaced, split, texts


def own_counters(unit: Unit, function: Function) -> list[Statement]:
    """The function's statements, whose loops declare their counters.

    No counter does whose address, or a reference to it, may outlive a loop.
    """
    uses = unit.uses(function)
    changes = uses.changes(syntax.walk(function.statements))
    return with_own_counters(
        function.statements, {each.name for each in changes if not each.is_plain}
    )


def with_own_counters(
    statements: list[Statement], kept: frozenset[str] | set[str] = frozenset()
) -> list[Statement]:
    """The statements with `for (int i = 0; …)`, but for the counters that are `kept`."""
    while edits := [*_counters_declared(statements, kept)]:
        statements = syntax.edited(statements, edits)
    return statements


def _counters_declared(statements: list[Statement], kept: Collection[str]) -> Iterator[Edit]:
    """The edits by which loops declare their counters, of the first declaration with some."""
    for at, each in enumerate(statements):
        after = statements[at + 1 :]
        counters = {
            local.name: local.spec
            for local in each.declared
            if each.kind == "simple"
            and local.name not in kept
            and _is_of_number([*local.spec, *local.pointer, *local.array])
            and not (local.value or local.align)
            and _is_set_by_loops(local.name, after)
        }
        if counters:
            others = [local for local in each.declared if local.name not in counters]
            rest = [word for one in others for word in (*by_itself(one), each.words[-1])]
            yield each.start, each.end, rest
            for one in after:
                yield from _declaring(counters, one)
            return
        if inside := [*_counters_declared(each.parts, kept)]:
            yield from inside
            return


def _is_set_by_loops(name: str, statements: list[Statement]) -> bool:
    """Whether a variable is used only in loops that first set it."""
    return all(
        name not in texts(each.words)
        or _counter_of(each) == name
        or (
            bool(each.parts)
            and not any(name in texts(words) for words in each.pieces)
            and _is_set_by_loops(name, each.parts)
        )
        for each in statements
    )


def _counter_of(loop: Statement) -> str:
    """The variable that a loop first sets, and does nothing else before its first round."""
    words = texts(loop.first)
    sets = words[1:2] == ["="] and "," not in words and words[0] not in words[2:]
    return words[0] if sets else ""


def _declaring(counters: dict[str, Words], statement: Statement) -> Iterator[Edit]:
    """The edits by which the loops in a statement declare the counters that they first set."""
    name, at = _counter_of(statement), statement.opening + 1
    if name in counters:
        place = statement.first[0]
        yield at, at, of_text(place, spaced(counters[name]))
        counters = {other: words for other, words in counters.items() if other != name}
    for part in statement.parts:
        yield from _declaring(counters, part)


def renamed(_: Unit, function: Function) -> list[Statement]:
    """The function's statements, with further variables of the same name renamed."""
    taken = {parameter.name for parameter in function.parameters}
    edits = _renamed(function.statements, {}, taken)
    return syntax.edited(function.statements, edits)


def _renamed(statements: list[Statement], names: dict[str, str], taken: set[str]) -> Iterator[Edit]:
    """The edits for some statements; the new names of what they declare are added to `names`."""
    for each in statements:
        if each.kind in ("simple", "other"):
            _declare(each.words, names, taken)
            yield from _names(each, each.start, each.end, names)
            continue
        inside = dict(names)
        _declare(each.first, inside, taken)
        yield from _names(each, each.opening, each.closing, inside)
        for part in each.parts:
            yield from _renamed([part], inside if each.kind == "block" else dict(inside), taken)


def _declare(words: Words, names: dict[str, str], taken: set[str]) -> None:
    skipped = [w for w in words if w.text not in ("__shared__", "constexpr", "static", "extern")]
    for local in syntax.locals_of(skipped):
        new, number = local.name, 2
        while new in taken:
            new, number = f"{local.name}_cudalab_{number}", number + 1
        taken.add(new)
        names[local.name] = new


def _names(of: Statement, start: int, end: int, names: dict[str, str]) -> Iterator[Edit]:
    for i in range(start, end):
        word = of.text[i]
        new = names.get(word.text, word.text) if word.kind == "name" else word.text
        if new != word.text and of.text[i - 1].text not in (".", "->", "::"):
            yield i, i + 1, [word._replace(text=new)]


def counted_first(unit: Unit, function: Function) -> list[Statement]:
    """The statements of a program's function, in which threads count before they look.

    Where threads meet in the loop around it, `if (++r > 4) break;` is `++r; if (r > 4) break;`, and
    `if (r++ > 4) break;` keeps what `r` was before. `while (++r < n)` becomes a loop that begins
    so, `do … while (++r < n);` one that ends so.
    """
    if not unit.is_program:
        return function.statements
    counting = _Counting(function)

    def within(statements: list[Statement], *, in_loop: bool) -> Iterator[Edit]:
        """The edits; `in_loop`: threads meet in a loop around the statements."""
        for each in statements:
            if in_loop or unit.is_collective(each.words):
                yield from within(each.parts, in_loop=in_loop or each.kind in LOOPS)
                yield from counting.first(each)

    return syntax.edited(function.statements, within(function.statements, in_loop=False))


class _Counting:
    """Takes `++r` and `r++` out of conditions."""

    def __init__(self, function: Function) -> None:
        kinds = {each.name: each.words[:-1] for each in function.parameters}
        variables = syntax.variables(function.statements)
        kinds |= {each.name: [*each.spec, *each.pointer, *each.array] for each in variables}
        self.kinds = {name: kind for name, kind in kinds.items() if _is_of_number(kind)}
        self.count = 0

    def first(self, statement: Statement) -> list[Edit]:
        """The edits by which a branch or a loop counts before it looks at its condition."""
        words, place = statement.condition, statement.words[0]
        change, is_do = self._change(words), statement.kind == "do"
        if (
            change is None
            or (is_do and "continue" in texts(statement.words))
            or "constexpr" in statement.kind
        ):
            return []
        value, declared = words[change.children[0].first], of_text(place, "")
        counted = of_text(place, words[change.first : change.last], ";")
        if change.text.startswith("_"):  # it counts behind the value
            self.count += 1
            name = value
            value = place._replace(text=f"cudalab_before_{self.count}", kind="name")
            declared = of_text(place, spaced(self.kinds[name.text]), [value], ";")
            counted = of_text(place, [value], "=", [name], ";", counted)
        condition = [*words[: change.first], value, *words[change.last :]]
        if statement.kind in ("for", "while"):
            leave = of_text(place, declared, counted, "if ( ! (", condition, ") ) break ;")
            return _looked_at_inside(statement, leave)
        looked = (*statement.of_condition, condition)
        if is_do:
            return [
                *syntax.ahead(statement, declared),
                *syntax.behind(statement.parts[0], counted),
                looked,
            ]
        return [*syntax.ahead(statement, [*declared, *counted]), looked]

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


def _is_of_number(kind: Words) -> bool:
    return all(word in BASIC or word.endswith("_t") for word in texts(kind))


def _looked_at_inside(loop: Statement, leave: Words) -> list[Edit]:
    """The edits for a loop whose rounds begin with leaving it, instead of having a condition."""
    always = of_text(loop.words[0], "true" if loop.kind == "while" else "")
    body = loop.parts[0]
    edits = [(body.within[0], body.within[0], leave)]
    if body.kind != "block":
        edits = syntax.ahead(body, leave)
    return [(*loop.of_condition, always), *edits]


def branched(unit: Unit, function: Function) -> list[Statement]:
    """The statements, with branches around conditional calls in which threads meet."""
    branches, statements = _Branches(unit.meeting), function.statements
    while edits := branches.first_in(statements):
        statements = syntax.edited(statements, edits)
    return statements


class _Branches:
    def __init__(self, meeting: set[str]) -> None:
        self.meeting = meeting
        self.count = 0

    def first_in(self, statements: list[Statement]) -> list[Edit]:
        """The edits for the first choice of whether a call is made; none if there is none."""
        for each in statements:
            meets = each.kind != "other" and calls(each.words, self.meeting)
            if meets and (edits := self.first_in(each.parts) or self._of(each)):
                return edits
        return []

    def _of(self, statement: Statement) -> list[Edit]:
        """The edits for a choice in a statement itself."""
        start, words = statement.start, statement.words
        if statement.kind != "simple":
            (start, _), words = statement.of_condition, statement.condition
        if statement.kind in ("do", "if constexpr") or not (choice := self._choice(words)):
            return []
        if statement.kind in ("for", "while"):
            leave = of_text(statement.words[0], "if ( ! (", words, ") ) break ;")
            return _looked_at_inside(statement, leave)
        self.count += 1
        first, at, end = choice.first, choice.at, choice.last
        name, place = f"cudalab_chosen_{self.count}", words[first]
        whole, condition, rest = words[first:end], words[first:at], words[at + 1 : end]
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
        chosen = [place._replace(text=name, kind="name")]
        return [*syntax.ahead(statement, made), (start + first, start + end, chosen)]

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
    statements = list(syntax.walk(kernel.statements))
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
    is_constant = statement.kind == "other" or statement.words[0].text in _CONSTANT
    return statement.words if is_constant else []
