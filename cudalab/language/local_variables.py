"""Local variables of kernels as check mode takes them: between zones (kernels/locals.h).

`float sums[4];` becomes `float (&&sums)[4] = LocalVariable<float[4]>("sums").value;`: the variable
lives as long as before, and every access to it is one by a reference, which has a hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from cudalab.language.scopes import Declarator, Node
    from cudalab.language.syntax import Words

    Edit = tuple[int, int, str]

# Variables of these are no plain ones of the thread, or say how they are stored.
_OTHERS = frozenset(
    {"static", "extern", "__shared__", "__constant__", "__device__", "constexpr", "thread_local"}
    | {"alignas", "__align__", "__attribute__", "__declspec", "auto", "typedef"}
)
# Functions of the C library that set variables; arithmetic_results.h has them.
_SETTERS = frozenset(
    name + suffix for name in ("sincos", "modf", "frexp", "remquo") for suffix in ("", "f")
)
_SCALARS = frozenset({"integer", "float", "bool", "pointer"})
_BEFORE_ADDRESS = frozenset("(,={[?:;")
_BEFORE_STATEMENT = frozenset({";", "{", "}"})


def edits(
    bodies: Iterable[Node], words: Words, text: str, refused: Callable[[int], bool]
) -> Iterator[Edit]:
    """The edits for the variables of device functions that are arrays, or have no initializer.

    `refused` says of a position whether the compiler has refused an edit on its line. What a
    `switch` or a `goto` may jump over stays as it is.
    """
    done = set[int]()  # tokens
    for body in bodies:
        if "goto" in words.texts[body.first : body.last]:
            continue
        names, shown = set[str](), _addressed(words, body)
        given = _given_to_runtime(words, body)
        for node in body.of_kind("declaration"):
            if not _is_plain(node, words) or refused(words.tokens[node.first].start):
                continue
            if not given.isdisjoint(each.name for each in node.names):
                continue
            names |= {each.name for each in node.names}
            if node.first not in done:
                yield from _declaration(node, words, text, shown)
            done.add(node.first)
        for i, edit in _called(words, body, names):
            if i not in done and not refused(words.tokens[i].start):
                yield edit
            done.add(i)


def _addressed(words: Words, body: Node) -> frozenset[str]:
    """The names whose address is taken: behind a `&` that is no operator of two values."""
    texts, kinds = words.texts, words.kinds
    return frozenset(
        texts[i + 1]
        for i in range(body.first + 1, body.last - 1)
        if texts[i] == "&"
        and kinds[i + 1] == "name"
        and (texts[i - 1] in _BEFORE_ADDRESS or texts[i - 1] == "return")
    )


def _given_to_runtime(words: Words, body: Node) -> set[str]:
    """The names whose address a function of CUDA's runtime takes, which sets them unseen."""
    texts = words.texts
    return {
        texts[k + 1]
        for i in range(body.first, body.last - 1)
        if texts[i].startswith("cuda") and texts[i + 1] == "("
        for k in range(i + 2, words.behind(i + 1, body.last) - 1)
        if texts[k] == "&"
    }


def _called(words: Words, body: Node, names: Collection[str]) -> Iterator[tuple[int, Edit]]:
    """The edits of names of functions and of arguments, each with its first token.

    Lanes hand on variables of these `names`, or parts of them, though some have none of a value:
    which of the lanes has given one decides whether `old = __shfl_sync(mask, old, 0)` is right.
    What functions of the C library set is to be seen.
    """
    texts, tokens = words.texts, words.tokens
    for i in range(body.first, body.last - 1):
        if texts[i] in _SETTERS and texts[i + 1] == "(" and texts[i - 1] not in (".", "->", "::"):
            yield i, (tokens[i].start, tokens[i].end, f"::cudalab::cudalab_{texts[i]}")
        if "shfl" not in texts[i] or texts[i + 1] not in ("(", "<"):
            continue
        first = texts.index("(", i)
        for k in range(first + 1, words.behind(first, body.last) - 1):
            if texts[k] not in names or texts[k - 1] not in ("(", ","):
                continue
            last = _part(words, k, body.last)
            if texts[last] in (")", ","):
                yield k, (tokens[k].start, tokens[k].start, "::cudalab::cudalab_as_it_is(")
                yield last, (tokens[last].start, tokens[last].start, ")")


def _part(words: Words, i: int, end: int) -> int:
    """The index behind a variable, or behind a part of it, such as `best.sums[k]`."""
    texts, i = words.texts, i + 1
    while texts[i] in (".", "["):
        i = i + 2 if texts[i] == "." else words.behind(i, end)
    return i


def _is_plain(node: Node, words: Words) -> bool:
    """Whether a declaration is a statement by itself, of plain variables."""
    texts, scope = words.texts, node.scope
    if (
        scope is None
        or scope.kind != "block"
        or any(each.kind == "class" for each in node.children)
    ):
        return False
    if texts[node.first - 1] not in _BEFORE_STATEMENT or texts[node.last - 1] != ";":
        return False
    return _OTHERS.isdisjoint(texts[node.first : node.at]) and not _in_switch(node, words)


def _in_switch(node: Node, words: Words) -> bool:
    """Whether the block around a declaration is that of a `switch`."""
    texts, i, depth = words.texts, node.first - 1, 0
    while i > 0 and (depth or texts[i] != "{"):
        depth += (texts[i] == "}") - (texts[i] == "{")
        i -= 1
    if texts[i - 1] != ")":
        return False
    depth, i = 1, i - 2
    while i > 0 and depth:
        depth += (texts[i] == ")") - (texts[i] == "(")
        i -= 1
    return texts[i] == "switch"


def _declaration(node: Node, words: Words, text: str, shown: frozenset[str]) -> Iterator[Edit]:
    tokens = words.tokens
    of_all = text[tokens[node.first].start : tokens[node.at - 1].end]
    for each in node.declarators:
        name, is_array = words.texts[each.name], each.array < each.value
        has_value = each.value < each.last
        pointers = words.texts[each.first : each.name]
        if not set(pointers) <= {"*", "const", "volatile", "__restrict__"}:
            continue
        if has_value and not _takes_value(node, each, words, name in shown):
            continue
        suffix = text[tokens[each.array].start : tokens[each.value - 1].end] if is_array else ""
        kind = f"{of_all} {' '.join(pointers)}{suffix}".replace("\n", " ")
        yield tokens[each.name].start, tokens[each.name].end, f"(&&{name})"
        if has_value and not _is_braced(each, words):
            yield from _scalar(each, words, f'::cudalab::LocalValue<{kind}>("{name}", ')
        elif has_value:
            yield from _with_value(each, words, f'::cudalab::LocalArray<{kind}>{{{{"{name}"}}, ')
        else:
            end = tokens[each.value - 1].end
            yield end, end, f' = ::cudalab::LocalVariable<{kind}>("{name}").value'


def _takes_value(node: Node, each: Declarator, words: Words, is_shown: bool) -> bool:
    """Whether a variable with an initializer can lie between zones without another copy.

    The end of a scalar matters only where its address `is_shown`.
    """
    is_array, is_class = each.array < each.value, node.type.kind == "class"
    if _is_braced(each, words):
        return is_array or is_shown or is_class
    is_scalar = node.type.kind in _SCALARS or "*" in words.texts[each.first : each.name]
    return is_shown and is_scalar and not is_array and words.texts[each.value] in ("=", "(")


def _is_braced(each: Declarator, words: Words) -> bool:
    """Whether a variable has an initializer in braces, no literal of characters, and a size."""
    texts = words.texts
    begin = each.value + (texts[each.value] == "=")
    sized = each.array == each.value or texts[each.array + 1] != "]"
    return sized and texts[begin] == "{" and "string" not in words.kinds[begin + 1 : each.last]


def _scalar(each: Declarator, words: Words, head: str) -> Iterator[Edit]:
    """The edits for `= value`, `(value)` or `{value}`."""
    tokens, begin, end = words.tokens, each.value, each.last - 1
    if words.texts[begin] == "=":
        yield tokens[begin].start, tokens[begin].end, f"= {head}"
        yield tokens[end].end, tokens[end].end, ").value"
    else:
        yield tokens[begin].start, tokens[begin].end, f" = {head}"
        yield tokens[end].start, tokens[end].end, ").value"


def _with_value(each: Declarator, words: Words, head: str) -> Iterator[Edit]:
    tokens, begin = words.tokens, each.value
    if words.texts[begin] == "=":
        yield tokens[begin].start, tokens[begin].end, ""
        begin += 1
    yield tokens[begin].start, tokens[begin].start, f" = {head}"
    end = tokens[each.last - 1].end
    yield end, end, "}.value"
