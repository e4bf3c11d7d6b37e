"""Stretches of kernels that only load and multiply fragments: one lane runs them for its warp.

All lanes of a warp call the functions of `mma.h` together and with the same arguments, so that a
loop with no other effects does the same in every lane. Here each call would be a meeting of all
lanes. Instead they meet once: the last one to arrive runs the stretch with whole tiles, which it
gathers from the lanes' fragments before and gives back afterwards.
"""

import re
from collections.abc import Sequence

from cudalab.language import expressions, macros, tree, types
from cudalab.language.scopes import Name, Node, Scope, Type
from cudalab.language.tokens import Edit, Words
from cudalab.program.rewrite.parsed import Parsed

# How many of a function's first arguments are fragments.
_CALLS = {"load_matrix_sync": 1, "fill_fragment": 1, "mma_sync": 4}
_SPACES = frozenset({"", "wmma", "nvcuda::wmma", "::nvcuda::wmma"})
_FRAGMENT = re.compile(r"(?:(?:(?:::\s*)?nvcuda\s*::\s*)?wmma\s*::\s*)?fragment\b")
_NUMBERS = types.NUMBERS | {"half", "pointer"}
_QUALIFIERS = frozenset({"const", "constexpr", "__restrict__", "__restrict"})
_CONVERSIONS = frozenset({"__float2half", "__float2bfloat16"})
_FUNCTIONS = frozenset({"alignof", "decltype", "min", "max"}) | _CONVERSIONS
# Expressions without an effect if their parts have none.
_PURE = frozenset(
    {"name", "literal", "binary", "unary", "conditional", "comma", "group", "index", "member"}
    | {"cast", "named_cast", "construct", "sizeof", "call", "empty"}
)
# A loop over the elements of a fragment, its tokens joined by spaces.
_ROUNDING = re.compile(
    r"for \( (?:unsigned int|unsigned|int|size_t|auto) (?P<i>\w+) = 0 ;"
    r" (?P=i) < (?P<tile>(?P<name>\w+)(?: \[ \w+ \])*) \. num_elements ;"
    r" (?:(?P=i) \+ \+|\+ \+ (?P=i)) \) (?:\{ )?"
    r"(?P=tile) \. x \[ (?P=i) \] = (?:(?:nvcuda :: )?wmma :: )?"
    r"__float_to_tf32 \( (?P=tile) \. x \[ (?P=i) \] \) ;(?: \})?"
)


def is_fragment(type_: Type) -> bool:
    """Whether a type is that of a fragment, or of an array of them."""
    while type_.kind == "pointer" and type_.element is not None:
        type_ = type_.element
    return _FRAGMENT.match(type_.text) is not None


def is_made(name: Name) -> bool:
    """Whether a variable is declared as in `auto tile = fragment<…>();`."""
    value = name.initializer.children[0] if name.type.is_auto and name.initializer else None
    if value is None or value.kind not in ("call", "construct"):
        return False
    made = value.type if value.kind == "construct" else value.children[0]
    return _FRAGMENT.match(made.text) is not None


class Purity:
    """Decides which expressions have no effect, given a program's macros."""

    def __init__(self, every: Sequence[macros.Macro], scope: Scope) -> None:
        """Find the macros that neither have an effect nor use another that has one."""
        self.functions = {macro.name for macro in every if macro.params}
        self.impure: set[str] = set()
        bodies = []
        for macro in every:
            words = Words(macro.tokens)
            body = tree.Reader(words).expressions.whole(0, len(words), scope)
            bodies.append((macro.name, body, words))
        while more := {name for name, body, of in bodies if not self.of(body, of)} - self.impure:
            self.impure |= more

    def of(self, node: Node, words: Words) -> bool:
        """Whether an expression has no effect."""
        texts = words.texts[node.first : node.last]
        if "volatile" in texts or "{" in texts or not self.impure.isdisjoint(texts):
            return False
        return all(map(self._of_one, node.walk()))

    def _of_one(self, node: Node) -> bool:
        if node.kind == "call":
            name = node.children[0].text.rpartition("::")[2]
            return node.children[0].kind == "name" and name in _FUNCTIONS | self.functions
        if node.kind == "construct":
            return node.type.kind in _NUMBERS or node.text == "dim3"
        if node.kind == "unary":
            return node.text.lstrip("_") not in ("++", "--")
        return node.kind in _PURE


class Stretch:
    """Statements that one lane may run for its warp, and what they contain."""

    def __init__(self, words: Words, purity: Purity) -> None:
        """Start with no statements."""
        self.words, self.purity = words, purity
        self.calls = self.products = 0
        self.variables: set[Name] = set()  # its own
        self.own: set[Name] = set()  # fragments that it declares
        self.types: list[Node] = []  # their declarations
        self.roundings: list[tuple[int, int, str]] = []  # of all elements to tf32
        self.arguments: list[Name | None] = []  # the fragments in calls
        self.used: set[str] = set()  # names in expressions
        self._conditions = 0  # around the statement, which may differ between lanes

    @property
    def outer(self) -> list[Name | None]:
        """The fragments that are declared outside, without repeats."""
        return [name for name in dict.fromkeys(self.arguments) if name not in self.own]

    def add(self, node: Node) -> bool:
        """Add a statement; return whether it has no other effect."""
        if node.kind == "block":
            return all(map(self.add, node.children))
        if node.kind in ("for", "while", "if"):
            return self._rounding(node) or self._controlled(node)
        if node.kind == "declaration":
            return self._declaration(node)
        if node.kind == "expression":
            return self._call(node.children[0]) or self._assignment(node.children[0])
        return node.kind == "empty"

    def _controlled(self, node: Node) -> bool:
        parts, bodies = node.children[:1], node.children[1:]
        if node.kind == "for":
            parts, bodies = node.children[:-1], node.children[-1:]
            if len(parts) != 3:  # over a range, say
                return False
            first, condition, step = parts
            if not (self.add(first) if first.kind == "declaration" else self._assignment(first)):
                return False
            if not self._assignment(step):
                return False
            parts = [condition]
        differs = node.kind != "for" and "constexpr" not in node.words
        if not node.words <= {"constexpr"} or not self._is_pure(parts[0]):
            return False
        self._conditions += differs
        accepted = all(map(self.add, bodies))
        self._conditions -= differs
        return accepted

    def _rounding(self, node: Node) -> bool:
        """Accept the loop that calls __float_to_tf32 for each element."""
        texts, body = self.words.texts, node.children[-1]
        match = _ROUNDING.fullmatch(" ".join(texts[node.first : node.last]))
        if match is None:
            return False
        condition = texts.index("<", node.first)
        until = texts.index("num_elements", node.first)
        tile = match["tile"].replace(" ", "")
        array = next(each for each in node.of_kind("name") if each.text == match["name"])
        self.arguments.append(types.declared(array))
        self.used |= set(re.findall(r"\w+", tile.partition("[")[2]))
        statement = f"{{ ::nvcuda::wmma::round_to_tf32({tile}); }}"
        self.roundings += [(condition + 1, until, "1"), (body.first, body.last - 1, statement)]
        return True

    def _call(self, node: Node) -> bool:
        """Accept a call of a function of `mma.h`."""
        space, _, function = node.children[0].text.rpartition("::") if node.children else ("",) * 3
        count = _CALLS.get(function)
        if node.kind != "call" or count is None or space not in _SPACES:
            return False
        arguments = node.children[1:]
        for argument in arguments[:count]:
            while argument.kind == "index" and all(map(self._is_pure, argument.children[1:])):
                argument = argument.children[0]  # noqa: PLW2901 - the array
            if argument.kind != "name":
                return False
            self.arguments.append(types.declared(argument))
        self.calls += 1
        self.products += function == "mma_sync"
        if function == "fill_fragment":  # only here could the lanes' values differ
            names = {node.text for node in arguments[-1].of_kind("name", "member")}
            if self._conditions or not names <= _CONVERSIONS:
                return False
        return all(map(self._is_pure, arguments[count:]))

    def _declaration(self, node: Node) -> bool:
        """Accept declarations of fragments and of variables of simple types."""
        if node.first < node.at and not node.words and is_fragment(node.type):
            self.types.append(node)
            self.own |= {*node.names}
            plain = all(is_fragment(name.type) for name in node.names)
            return plain and all(map(self._is_pure, node.children))
        known = all(
            name.kind == "variable"
            and (name.type.kind in _NUMBERS or name.type.is_auto or name.type.text == "dim3")
            for name in node.names
        )
        if not known or not node.names or not node.words <= _QUALIFIERS:
            return False
        self.variables |= {*node.names}
        return all(
            part.kind == "initializer" and part.text == "=" and self._is_pure(part.children[0])
            for part in node.children
        )

    def _assignment(self, node: Node) -> bool:
        """Accept an empty statement, or a change of one of the stretch's own variables."""
        if node.kind == "comma":
            return all(map(self._assignment, node.children))
        steps = node.kind == "unary" and node.text.lstrip("_") in ("++", "--")
        if not steps and not (node.kind == "assign" and node.text in expressions.ASSIGNMENTS):
            return node.kind == "empty"
        name = types.declared(node.children[0])
        own = name in self.variables and name is not None and not name.type.is_reference
        return own and all(map(self._is_pure, node.children[1:]))

    def _is_pure(self, node: Node) -> bool:
        """Whether an expression has no effect; record the names that it uses."""
        words = self.words
        self.used |= {
            words.texts[k] for k in range(node.first, node.last) if words.kinds[k] == "name"
        }
        return self.purity.of(node, words)


def rewrite(files: Sequence[Parsed], scope: Scope) -> None:
    """Put the edits for all device functions into the files, whose names are in `scope`."""
    if not any("mma_sync" in each.words.texts for each in files):
        return
    purity = Purity([macro for each in files for macro in each.macros], scope)
    for each in files:
        conditions = [one.start for one in each.directives if "pragma" not in one.text]
        for function in each.bodies:
            if function.kind == "function":
                for edit in _Finder(each.words, conditions, purity, function).edits:
                    each.replace(*edit)


class _Finder:
    """Finds the stretches of a function."""

    def __init__(
        self, words: Words, conditions: Sequence[int], purity: Purity, function: Node
    ) -> None:
        self.words, self.conditions, self.purity = words, conditions, purity
        self.edits: list[Edit] = []
        parameters = function.scope.names.values() if function.scope is not None else ()
        found = [name for names in parameters for name in names if name.type.is_reference]
        for node in function.of_kind("declaration"):
            if not node.words & {"static", "__shared__"}:
                found += node.names
        self.declared = {name for name in found if is_fragment(name.type) or is_made(name)}
        if self.declared:
            for part in function.children:
                self._look_into(part)

    def _look_into(self, node: Node) -> None:
        """Search the statements inside a statement."""
        if node.kind == "block":
            self._block(node.children)
        elif node.kind in ("for", "while", "if", "switch", "else", "do"):
            for part in node.children:
                if not self._take([part]):
                    self._look_into(part)

    def _block(self, statements: Sequence[Node]) -> None:
        run: list[Node] = []
        stretch = Stretch(self.words, self.purity)
        for node in statements:
            if stretch.add(node):
                run.append(node)
            else:
                self._take_pieces(run)
                run, stretch = [], Stretch(self.words, self.purity)
                self._look_into(node)
        if not self._take(run):  # its declarations end with it
            self._take_pieces(run)

    def _take_pieces(self, run: Sequence[Node]) -> None:
        """Try the parts between the declarations of a run, whose names may be used after it."""
        piece: list[Node] = []
        for node in run:
            if node.kind != "declaration" and Stretch(self.words, self.purity).add(node):
                piece.append(node)
            else:
                self._take(piece)
                piece = []
        self._take(piece)

    def _take(self, run: Sequence[Node]) -> bool:
        """Edit a run of statements if it is a stretch that is worth it."""
        s, tokens = Stretch(self.words, self.purity), self.words.tokens
        if not run or not all(map(s.add, run)):
            return False
        begin, end = tokens[run[0].first - 1].end, tokens[run[-1].last - 1].end
        outer = [name.name for name in s.outer if name in self.declared and name is not None]
        named = s.used | {name.name for name in s.variables}
        if (
            not s.products
            or s.calls == 1
            or not outer
            or len(outer) < len(s.outer)
            or named & {*outer, *(name.name for name in s.own)}
            or any(begin < each < end for each in self.conditions)
        ):
            return False
        shares = ", ".join(f"(void*)&{name}" for name in outer)
        text = f" {{ void* const cudalab_shares[] = {{{shares}}};"
        text += " ::cudalab::cudalab_lanes cudalab_meeting(cudalab_shares);"
        text += " while (cudalab_meeting.begins()) {"
        for i, name in enumerate(outer):
            text += f" ::nvcuda::wmma::Borrowed<decltype({name})> cudalab_{name}"
            text += f"(cudalab_meeting, {i}); auto& {name} = cudalab_{name}.tiles;"
        self.edits += [(begin, begin, text), (end, end, " } }")]
        for node in s.types:
            start, stop = tokens[node.first].start, tokens[node.at - 1].end
            self.edits += [(start, start, "::nvcuda::wmma::Whole<"), (stop, stop, ">")]
        for i, k, instead in s.roundings:
            self.edits.append((tokens[i].start, tokens[k].end, instead))
        return True
