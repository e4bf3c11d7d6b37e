"""Local variables of kernels as check mode takes them: between zones (kernels/locals.h).

`float sums[4];` becomes `float (&&sums)[4] = LocalVariable<float[4]>("sums").value;`: the variable
lives as long as before, and every access to it is one by a reference, which has a hook.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise

from cudalab.language.scopes import Declarator, Node
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Edit, Place, Words

# Variables of these are no plain ones of the thread, or say how they are stored.
_OTHERS = frozenset(
    {"static", "extern", "__shared__", "__constant__", "__device__", "constexpr", "thread_local"}
    | {"__attribute__", "__declspec", "typedef"}
)
_ALIGNED = frozenset({"alignas", "__align__"})
# Functions of the C library that set variables; arithmetic_results.h has them.
_SETTERS = frozenset(
    name + suffix for name in ("sincos", "modf", "frexp", "remquo") for suffix in ("", "f")
)

_SCALARS = frozenset({"integer", "float", "bool", "pointer"})

_BEFORE_ADDRESS = frozenset("(,={[?:;")
_BEFORE_STATEMENT = frozenset({";", "{", "}", ":"})
_NAMESPACE = "::cudalab::"
# What stands for all places if the compiler refuses a text whose variables lie between zones, and
# names none of their declarations.
EVERYWHERE = ("", 0)


def edits(
    file: CudaFile, place: Callable[[int], Place], refused: Collection[Place]
) -> tuple[list[Edit], set[Place]]:
    """The edits for the variables of device functions that are arrays, objects, or may be unset.

    With the places of those that are left out, as the compiler has `refused` something there;
    `place` gives that of a position. What a `switch` or a `goto` may jump over has no zones.
    """
    blamed = set[Place]()

    def is_refused(position: int) -> bool:
        at = place(position)
        if at in refused:
            blamed.add(at)
        return at in refused

    if EVERYWHERE in refused:
        return [], set(refused)
    words, done, made = file.words, set[int](), list[Edit]()
    changing = {
        function.text
        for function in file.bodies
        if any("&" in words.texts[each.first : each.last] for each in function.parameters)
    }
    for body in file.bodies:
        made += _Function(words, file.text, body, changing).edits(is_refused, done)
    return made, blamed


class _Function:
    """A function whose variables get zones."""

    def __init__(self, words: Words, text: str, body: Node, changing: Collection[str]) -> None:
        """The functions that are `changing` take references."""
        self.words, self.texts, self.tokens = words, words.texts, words.tokens
        self.text, self.body = text, body
        self.shown = frozenset(self._addressed(changing))

    def edits(self, refused: Callable[[int], bool], done: set[int]) -> Iterator[Edit]:
        """The edits, but where the compiler has refused some, or they are `done` at a token."""
        names, given = set[str](), self._given_to_runtime()
        for node in self.body.of_kind("declaration"):
            is_given = not given.isdisjoint(each.name for each in node.names)
            tokens = self.tokens[node.first : node.last]
            if is_given or not self._is_plain(node) or True in {refused(t.start) for t in tokens}:
                continue
            names |= {each.name for each in node.names}
            if node.first not in done:
                yield from _Declaration(self, node).edits()
            done.add(node.first)
        for i, edit in (*self._parameters(), *self._called(names)):
            if i not in done and not refused(self.tokens[i].start):
                yield edit
            done.add(i)

    def _is_plain(self, node: Node) -> bool:
        """Whether a declaration is a statement by itself, of plain variables."""
        texts, scope = self.texts, node.scope
        if scope is None or scope.kind != "block":
            return False
        for each in node.children:  # a class must have a name, and nothing before it
            if each.kind == "class" and (
                not each.text or each.first > node.first or each.last < node.at
            ):
                return False
        if texts[node.first - 1] not in _BEFORE_STATEMENT or texts[node.last - 1] != ";":
            return False
        return _OTHERS.isdisjoint(texts[node.first : node.at])

    # What is done with variables ------------------------------------------------------------------

    def _addressed(self, changing: Collection[str]) -> Iterator[str]:
        """The names whose address is taken: behind a `&` that is no operator of two values.

        A reference is an address, too, and so is an argument of the functions that are `changing`.
        Words tell more than the tree, which does not know what a macro's arguments are for.
        """
        texts, kinds, last = self.texts, self.words.kinds, self.body.last
        for i in range(self.body.first + 1, last - 3):
            if texts[i] == "&" and kinds[i + 1] == "name":
                if texts[i - 1] in _BEFORE_ADDRESS or texts[i - 1] == "return":
                    yield texts[i + 1]
                elif texts[i + 2] == "=" and kinds[i + 3] == "name":
                    yield texts[i + 3]
            elif texts[i] in changing and texts[i + 1] == "(":
                inside = range(i + 2, self.words.behind(i + 1, last))
                yield from (texts[k] for k in inside if texts[k - 1] in ("(", ","))

    def _given_to_runtime(self) -> set[str]:
        """The names whose address a function of CUDA's runtime takes, which sets them unseen."""
        calls = (each for each in self.body.of_kind("call") if each.children[0].kind == "name")
        return {
            self.texts[node.first + 1]
            for call in calls
            if call.children[0].text.startswith("cuda")
            for node in call.of_kind("unary")
            if node.text == "&"
        }

    def _parameters(self) -> Iterator[tuple[int, Edit]]:
        """The edits for what the function takes by value, each with its first token.

        Of a parameter whose address is `shown`, a copy lies between zones, with the same name.
        """
        body, tokens = self.body, self.tokens
        block = next((each for each in body.children if each.kind == "block"), None)
        if block is None or "constexpr" in self.texts[body.first : block.first]:
            return
        begin, end = tokens[block.first].end, tokens[block.last - 1].start
        for each in body.parameters:
            written = self.texts[each.first : each.last]
            is_class, is_scalar = each.type.kind == "class", each.type.kind in _SCALARS
            if not (is_class or is_scalar) or not each.names or set("&[(=<") & set(written):
                continue
            name = each.names[0].name
            call = f' {_NAMESPACE}cudalab_given("{name}", {name});' if is_class else ""
            if name in self.shown and written[-1] == name:
                kind = self.text[tokens[each.first].start : tokens[each.last - 1].start]
                call += (
                    f" auto& cudalab_{name} = {name}; {{ {kind}(&&{name}) = {_NAMESPACE}"
                    f'LocalValue<{kind}>("{name}", cudalab_{name}).value;'
                ).replace("\n", " ")
                yield each.first + 1, (end, end, "}")
            if call:
                yield each.first, (begin, begin, call)

    def _called(self, names: Collection[str]) -> Iterator[tuple[int, Edit]]:
        """The edits of names of functions and of arguments, each with its first token.

        Lanes hand on variables of these `names`, or parts of them, though some have none of a
        value: which of the lanes has given one decides whether `old = __shfl_sync(mask, old, 0)` is
        right. What functions of the C library set is to be seen.
        """
        tokens = self.tokens
        for call in self.body.of_kind("call"):
            callee, *arguments = call.children
            first = callee.first
            if callee.kind == "name" and callee.text in _SETTERS:
                end = tokens[callee.last - 1].end
                yield first, (tokens[first].start, end, f"{_NAMESPACE}cudalab_{callee.text}")
            for argument in arguments if "shfl" in callee.text else ():
                read = list(self._read(argument, names))
                if len(read) == 1:  # reads of several might come behind all that is said of them
                    k, last = read[0].first, read[0].last
                    yield k, (tokens[k].start, tokens[k].start, f"{_NAMESPACE}cudalab_as_it_is(")
                    yield last, (tokens[last].start, tokens[last].start, ")")

    def _read(self, node: Node, names: Collection[str]) -> Iterator[Node]:
        """Where variables of these names, or parts such as `best.sums[k]`, are read."""
        if node.kind == "unary" and node.text.lstrip("_") in ("&", "++", "--"):
            return
        part = node
        while part.kind == "index" or (part.kind == "member" and self.texts[part.at] == "."):
            part = part.children[0]
        if part.kind == "name" and part.text in names:
            yield node
            return
        for child in node.children[node.kind == "assign" :]:
            yield from self._read(child, names)


class _Declaration:
    """A declaration in a function."""

    def __init__(self, function: _Function, node: Node) -> None:
        self.function, self.node = function, node
        self.words, self.text, self.body = function.words, function.text, function.body

    def edits(self) -> Iterator[Edit]:
        """The edits for its variables; a class that it defines becomes a declaration before it."""
        node, tokens = self.node, self.words.tokens
        is_jumped_over = self._is_jumped_over()
        if self._defined and node.declarators and not is_jumped_over:
            end = tokens[node.at - 1].end
            yield end, end, f"; {self._defined}"
        for each in node.declarators:
            name = self.words.texts[each.name]
            pointers = self.words.texts[each.first : each.name]
            if not set(pointers) <= {"*", "const", "volatile", "__restrict__"}:
                continue
            if is_jumped_over:
                if each.value == each.last:
                    end = tokens[node.last - 1].end
                    yield end, end, f' {_NAMESPACE}cudalab_begins("{name}", {name});'
                continue
            made = list(self._initializer(each, name))
            if made:
                yield tokens[each.name].start, tokens[each.name].end, f"(&&{name})"
            yield from made

    @property
    def _defined(self) -> str:
        """The name of the class that the declaration defines, if any."""
        return next((each.text for each in self.node.children if each.kind == "class"), "")

    def _is_jumped_over(self) -> bool:
        """Whether a label behind the declaration, in its block, can be reached around it."""
        words, texts, node = self.words, self.words.texts, self.node
        begin = words.around(node.first) or self.body.first
        end = words.behind(begin, self.body.last)
        inside = range(node.last, end)
        of_switch = (
            texts[begin - 1] == ")" and texts[words.partners.get(begin - 1, 0) - 1] == "switch"
        )
        if of_switch and any(texts[i] in ("case", "default") for i in inside):
            return True
        labels = {texts[i] for i in inside if texts[i + 1] == ":" and texts[i - 1] in ";{}:"}
        return any(
            texts[i] == "goto" and texts[i + 1] in labels
            for i in (*range(self.body.first, node.first), *range(end, self.body.last))
        )

    def _initializer(self, each: Declarator, name: str) -> Iterator[Edit]:
        """The edits for what follows the name of a variable; none if it stays as it is."""
        texts, tokens, node = self.words.texts, self.words.tokens, self.node
        is_array, begin, last = each.array < each.value, each.value, each.last - 1
        suffix = self.text[tokens[each.array].start : tokens[begin - 1].end] if is_array else ""
        if is_array and texts[each.array + 1] == "]":
            bound = self._bound(each)
            if bound is None:
                return
            yield tokens[each.array].end, tokens[each.array].end, bound
            suffix = suffix.replace("[", f"[{bound}", 1)
        kind, align = self._type(" ".join(texts[each.first : each.name]) + suffix)
        end = tokens[last].end
        if begin == each.last:
            if not node.type.is_auto:
                yield end, end, f' = {_NAMESPACE}LocalVariable<{kind}{align}>("{name}").value'
            return
        head, tail = self._around(each, name, kind, align)
        if not head:
            return
        if texts[begin] == "=":
            yield tokens[begin].start, tokens[begin].end, f"= {head}"
            yield end, end, tail
        elif texts[begin] == "(":  # in place of these
            yield tokens[begin].start, tokens[begin].end, f" = {head}"
            yield tokens[last].start, end, tail
        else:
            yield tokens[begin].start, tokens[begin].start, f" = {head}"
            yield end, end, tail

    def _around(self, each: Declarator, name: str, kind: str, align: str) -> tuple[str, str]:
        """What an initializer is put between; empty if the variable stays as it is."""
        texts, begin, type_ = self.words.texts, each.value, self.node.type
        sign, is_array = texts[begin], each.array < each.value
        array = f'{_NAMESPACE}LocalArray<{kind}{align}>{{{{"{name}"}}, '
        if type_.is_auto:
            is_object = sign == "=" and not is_array and self._is_object(each, name)
            return (f'{_NAMESPACE}LocalAuto{{{{"{name}"}}, ', "}.value") if is_object else ("", "")
        if is_array:
            return array, "}.value"
        if type_.kind in _SCALARS or "*" in texts[each.first : each.name]:
            is_taken = name in self.function.shown and not (sign == "=" and texts[begin + 1] == "{")
            value = f'{_NAMESPACE}LocalValue<{kind}>("{name}", '
            return (value, ").value") if is_taken else ("", "")
        if type_.kind != "class" and name not in self.function.shown:
            return "", ""
        if sign == "(":
            return f'{_NAMESPACE}LocalObject<{kind}{align}>("{name}", ', ").value"
        return array, "}.value"

    def _type(self, suffix: str) -> tuple[str, str]:
        """The type of a variable, and the template's argument for how it is aligned, if it says."""
        words, node, tokens = self.words, self.node, self.words.tokens
        if self._defined:
            return f"{self._defined} {suffix}".strip(), ""
        pieces, align, i = list[str](), "", node.first
        while i < node.at:
            behind = words.behind(i + 1, node.at) if words.texts[i] in _ALIGNED else i + 1
            written = self.text[tokens[i].start : tokens[behind - 1].end]
            if words.texts[i] in _ALIGNED:
                align = f", {written.removeprefix(words.texts[i])}"
            else:
                pieces.append(written)
            i = behind
        whole = "".join(f" {each}" for each in pieces)
        return f"{whole} {suffix}".replace("\n", " ").strip(), align

    def _bound(self, each: Declarator) -> str | None:
        """The first bound of an array, which its initializer says; None if it cannot be read."""
        words, texts = self.words, self.words.texts
        begin, has_rows = each.value + (texts[each.value] == "="), each.value > each.array + 2
        if words.kinds[begin] == "string":
            value = self.text[words.tokens[begin].start : words.tokens[each.last - 1].end]
            return f"sizeof({value}) / sizeof(*{texts[begin]})"
        inside = range(begin, each.last)
        if texts[begin] != "{" or any(
            texts[i] == "..." or words.kinds[i] == "string" for i in inside
        ):
            return None
        are_braced = [texts[i] == "{" for i, _ in pairwise(self._items(begin, each.last - 1))]
        is_plain = not has_rows and not any(are_braced) and self.node.type.kind in _SCALARS
        return str(len(are_braced)) if is_plain or all(are_braced) else None

    def _items(self, begin: int, end: int) -> list[int]:
        """Where the values of a list in braces begin, and where it ends."""
        items, i = [begin + 1], begin + 1
        while i < end:
            if self.words.texts[i] == ",":
                items.append(i + 1)
            i = self.words.skip(i, end)
        return items if items[-1] == end else [*items, end]

    def _is_object(self, each: Declarator, name: str) -> bool:
        """Whether a variable is an object with values of its own, as far as its use tells."""
        texts, begin = self.words.texts, each.value + 1
        if texts[begin] == "[":  # a lambda expression
            return texts[begin + 1] != "]"
        uses = pairwise(texts[self.node.last : self.body.last])
        is_group = any("group" in word or "tile" in word for word in texts[begin : each.last])
        return name in self.function.shown or (not is_group and (name, ".") in uses)
