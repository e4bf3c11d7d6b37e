"""What functions, classes and operators do with what they are given, as far as a file says it.

All of it is a list of what is known: a variable that is given to anything else may be changed.
Types and operators are found by words, because the bodies of functions, in which some are defined,
have no tree here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cudalab.backends.cpu.regions.words import CHANGING, Words
from cudalab.language.scopes import Node, Scope, Type
from cudalab.language.tokens import closing, closure, split, texts
from cudalab.language.types import NUMBERS

BUILT_IN = NUMBERS | {"pointer", "half"}  # kinds of types whose operators are the language's own
_REFERENCES = frozenset({"&", "&&", "decltype", "__decltype", "typeof", "__typeof__"})
_CLASSES = frozenset({"struct", "class", "union"})
_BEHIND_REFERENCE = frozenset({")", ",", ">", "...", ";", "(", "="})
_ANY_OPERAND = frozenset({"()", "[]", "->"})  # operators that are always members
_LIBRARIES = frozenset({"", "::", "std::", "::std::", "cuda::std::", "cudalab::", "::cudalab::"})
# CUDA's functions that compute a value from values.
_COMPUTING = re.compile(
    r"cudalab_(?!into)\w+|saturated|from_bits|to_bits|ranks?_(?:in|of)|lanes_of_tile"
    r"|lane_(?:at|below|above|across)|in_cooperative_launch|sizeof|u?l?l?(?:min|max)|l?l?abs|(?:is|sign|f|r|hypot|nan|cbrt|rcbrt|norm|rnorm|erf|"
    r"lgamma|tgamma|copysign|nextafter|fdim|fma|fmod|remainder|ldexp|scalbl?n|ilogb|logb|pow|powi|exp|exp2|"
    r"exp10|expm1|log|log2|log10|log1p|sqrt|rsqrt|a?sinh?|a?cosh?|a?tanh?|atan2|sinpi|cospi|floor|"
    r"ceil|trunc|l?l?round|l?l?rint|nearbyint|saturate|clamp|j0|j1|jn|y0|y1|yn|min|max|abs|fmin|"
    r"fmax|fabs|isnan|isinf|isfinite|signbit|normcdf|erfc|erfinv|erfcx|norm3d|norm4d|hypot)[fl]?"
    r"|make_\w+|to_underlying|float_as_\w+|__(?:ldg|ldcg|ldca|ldcs|ldlu|ldcv)"
    r"|__(?:u|ll|ull)?(?:popc|clz|ffs|brev|mul24|umul24|mulhi|umulhi|mul64hi|umul64hi|sad|usad"
    r"|hadd|rhadd|uhadd|urhadd)(?:ll)?|__byte_perm|__funnelshift_\w+|__vimax\w*|__vimin\w*|__dp[24]a\w*|__v\w+"
    r"|__(?:f|d)\w+_r[nzud]|__(?:sinf|cosf|tanf|expf|exp10f|logf|log2f|log10f|powf|fdividef|saturatef"
    r"|frsqrt_rn)|__\w+2\w+|__\w+_as_\w+|__h\w+|h(?:sqrt|rsqrt|exp|log|sin|cos|rcp|floor|ceil|rint|trunc)\w*"
    r"|__low\w*|__high\w*|__halves2\w+|__lows2\w+|__highs2\w+|__cvta_\w+|__(?:is|to)\w+|__builtin_\w+"
    r"|(?:signbit|bit_cast|numeric_limits|infinity|lowest|epsilon|quiet_NaN|max_size)"
)
# Methods of CUDA's groups of threads, which only say what the group is.
_OF_GROUPS = re.compile(
    r"cudalab_\w+|size|num_(?:threads|blocks)|thread_(?:rank|index)|meta_group_(?:rank|size)"
    r"|group_(?:index|dim)|dim_(?:threads|blocks)|block_(?:rank|index)"
)
# Others that take values: what they are given does not change.
_TAKING = re.compile(
    r"atomic\w+|printf|assert|cudalab_assert|__assert_fail|malloc|free|mem(?:cpy|set|move)|__nanosleep"
    r"|__(?:shfl|ballot|any|all|match|reduce|cg|sync|st|pipeline|prefetch|thread|bar|trap)\w*"
    r"|clock(?:64)?|__\w*_sync|set_thread|if|while|switch|for|return"
)


@dataclass(eq=False, kw_only=True)
class Declared:
    """A function as a file declares it."""

    parameters: list[tuple[Words, Type]]
    body: Words | None
    scope: Scope | None
    is_method: bool
    is_constant: bool  # a method that does not change its object
    is_device: bool


class Given:
    """What is known of a file's functions, classes and operators."""

    def __init__(self, files: Iterable[tuple[Node, Words]]) -> None:
        """Read the trees of a file, each with its words."""
        self.functions: dict[str, list[Declared]] = {}  # by their names
        self.classes: set[str] = set()
        self.referring: set[str] = set()  # types that may be, or keep, references
        self.array_members: set[str] = set()
        self.variables: set[str] = set()  # of the file, that may change
        self.type_parameters: set[str] = set()  # of templates
        self.aliases: set[str] = set()  # of types
        self.spaces: set[str] = set()  # namespaces
        self.operators: set[str] = set()  # that may change what they do not assign to
        self.trusts_const = True  # nothing is changed by a reference to const
        every = list(files)
        for root, words in every:
            self._read_types(root, words)
        for root, words in every:
            self._read_operators(words)
            self._read_functions(root, words, is_class=False)

    # Types ----------------------------------------------------------------------------------------

    def _read_types(self, root: Node, words: Words) -> None:
        """Find the types that may refer to what they are made of.

        A class does by its members, its bases and what its methods take and return; the bodies of
        its methods keep nothing beyond that.
        """
        named: list[tuple[str, Words]] = []
        bodies = [
            (each.first, each.last)
            for function in root.walk()
            if function.kind == "function" or "function" in function.words
            for each in function.children
            if each.kind == "block"
        ]
        for i, word in enumerate(words[:-2]):
            if word.text in ("const_cast", "mutable"):
                self.trusts_const = False
            name, after = words[i + 1], words[i + 2].text
            if word.text in (*_CLASSES, "typename") and after in (",", ">", "=", ".", "..."):
                self.type_parameters.add(name.text)
            if word.text == "namespace":
                self.spaces.add(name.text)
            if word.text in ("using", "typedef"):
                alias = words[i + 1 : _end(words, i, ";")]
                if alias and "namespace" not in texts(alias[:1]):
                    named.append((alias[0 if word.text == "using" else -1].text, alias))
                    self.aliases.add(named[-1][0])
            elif word.text in _CLASSES and name.kind == "name":
                start = _end(words, i + 2, "{;),=>")
                if words[start].text == "{":
                    self.classes.add(name.text)
                    end = closing(words, start) or len(words)
                    inside = [each for each in bodies if start < each[0] and each[1] <= end]
                    named.append((name.text, _without(words, i + 2, end, inside)))
        meanings = [(name, set(texts(inside))) for name, inside in named]
        self.referring = closure(
            self.referring | {name for name, inside in named if any(_mutable_references(inside))},
            lambda known: (name for name, words in meanings if known & words),
        )

    def copies(self, type_: Type, words: Words) -> bool:
        """Whether what is made of a value, with a type in these words, does not refer to it."""
        if (_REFERENCES | self.referring) & set(texts(words)):
            return False
        if type_.kind in BUILT_IN | {"void"} or type_.is_auto:
            return True
        if type_.kind == "class":
            return type_.scope is None or type_.text in self.classes
        return not self.referring and type_.text in self.type_parameters

    def reads_reference(self, type_: Type, words: Words) -> bool:
        """Whether a type in these words is a reference to const, through which nothing changes."""
        known = set(texts(words))
        bare = [word for word in words if word.text not in ("&", "&&")]
        is_constant = self.trusts_const and "const" in known and "*" not in known
        return is_constant and self.copies(type_, bare)

    # Operators ------------------------------------------------------------------------------------

    def _read_operators(self, words: Words) -> None:
        """Find operators that may change more than the variable on the left of an assignment."""
        for i, word in enumerate(words):
            if word.text != "operator":
                continue
            opening = i + 3 if texts(words[i + 1 : i + 3]) == ["(", ")"] else _end(words, i, "(")
            sign = "".join(texts(words[i + 1 : opening]))
            if words[i + 1].kind == "name":
                sign = "conversion"
            end = closing(words, opening) or len(words) - 1
            parameters = split(words[opening + 1 : end])
            behind = texts(words[end + 1 : _end(words, end, "{;")])
            assigns = sign in CHANGING
            changes = any(map(self._may_change, parameters[assigns and len(parameters) > 1 :]))
            alone = sign in _ANY_OPERAND or sign == "conversion" or len(parameters) < _BOTH
            if alone and not assigns and not ("const" in behind and self.trusts_const):
                changes |= _is_member(words, i)
            if changes:
                self.operators.add(sign)

    def _may_change(self, parameter: Words) -> bool:
        known = set(texts(parameter))
        refers = bool({"&", "&&"} & known) and not (self.trusts_const and "const" in known)
        return refers or bool(self.referring & known)

    # Functions ------------------------------------------------------------------------------------

    def _read_functions(self, node: Node, words: Words, *, is_class: bool) -> None:
        for child in node.children:
            if child.kind == "function" or "function" in child.words:
                self._read_function(child, words, is_class=is_class)
            elif child.kind == "declaration":
                constant = {"const", "constexpr", "__constant__"} & child.words
                for each in child.declarators:
                    if is_class and each.array < each.value:
                        self.array_members.add(words[each.name].text)
                    if not constant and (not is_class or "static" in child.words):
                        self.variables.add(words[each.name].text)
                self._read_functions(child, words, is_class=is_class)
            elif child.kind not in ("block", "initializer"):
                inside = child.kind == "class" or (is_class and child.kind == "template")
                self._read_functions(child, words, is_class=inside)

    def _read_function(self, node: Node, words: Words, *, is_class: bool) -> None:
        block = next((each for each in node.children if each.kind == "block"), None)
        close = closing(words, node.at) or node.at
        behind = texts(words[close : block.first if block else node.last])
        body = words[block.first + 1 : block.last - 1] if block else None
        parameters = [(words[each.first : each.last], each.type) for each in node.parameters]
        is_method = is_class or "::" in node.text
        is_device = "__device__" in texts(words[node.first : node.at])
        declared = Declared(
            parameters=parameters,
            body=body,
            scope=node.scope,
            is_method=is_method,
            is_constant="const" in behind,
            is_device=is_device,
        )
        self.functions.setdefault(node.text.rpartition("::")[2], []).append(declared)

    def reads(self, callee: str, words: Words, i: int) -> bool:
        """Whether a function only reads its argument `i`; `words` are those of its name."""
        space, colons, name = callee.rpartition("::")
        own = self.spaces | self.classes | self.aliases | self.type_parameters
        is_own = space + colons in _LIBRARIES or space.rpartition("::")[2] in own
        if name in self.functions and is_own:
            refers = bool((_REFERENCES | self.referring) & set(texts(words)))
            return not refers and all(self._reads(each, i) for each in self.functions[name])
        known = _COMPUTING.fullmatch(name) or _TAKING.fullmatch(name)
        return bool(known) and space + colons in _LIBRARIES

    def _reads(self, function: Declared, i: int) -> bool:
        if i >= len(function.parameters):
            return not any("..." in "".join(texts(each)) for each, _ in function.parameters)
        words, type_ = function.parameters[i]
        named = words[:-1] if len(words) > 1 and words[-1].kind == "name" else words
        deduced = texts(named) == [type_.text] and type_.text in self.type_parameters
        deduced &= not function.is_method
        return deduced or self.copies(type_, named) or self.reads_reference(type_, named)

    def reads_object(self, method: str) -> bool:
        """Whether a method only reads its object."""
        if method not in self.functions:
            return bool(_OF_GROUPS.fullmatch(method))
        known = self.functions[method]
        return self.trusts_const and all(each.is_method and each.is_constant for each in known)

    def computes(self, name: str) -> bool:
        """Whether a function of CUDA only computes a value."""
        return bool(_COMPUTING.fullmatch(name) or _OF_GROUPS.fullmatch(name))


_BOTH = 2  # operands


def _end(words: Words, i: int, signs: str) -> int:
    """The index of the first of the signs from `i` on; the last one if there is none."""
    while i < len(words) - 1 and words[i].text not in signs:
        i += 1
    return i


def _without(words: Words, start: int, end: int, spans: list[tuple[int, int]]) -> Words:
    """The words from `start` up to `end` that are in none of the spans."""
    kept: Words = []
    for first, last in sorted(spans):
        kept += words[start : max(first, start)]
        start = max(start, last)
    return kept + words[start:end]


def _mutable_references(words: Words) -> Iterator[int]:
    """Where a reference to what may change is declared, perhaps."""
    for i, word in enumerate(words):
        if word.text not in ("&", "&&") or i == 0:
            continue
        before, after = words[i - 1], words[i + 1] if i + 1 < len(words) else None
        declares = before.kind == "name" or before.text in (">", "*", "]")
        declares &= after is None or after.kind == "name" or after.text in _BEHIND_REFERENCE
        if declares and "const" not in texts(words[max(i - 2, 0) : i]):
            yield i


def _is_member(words: Words, i: int) -> bool:
    """Whether the operator at `i` stands in a class, and is no friend of it."""
    start = i
    while start and words[start - 1].text not in (";", "{", "}", ":"):
        start -= 1
    if "friend" in texts(words[start:i]):
        return False
    depth = 0
    for j in range(i - 1, -1, -1):
        depth += (words[j].text == "}") - (words[j].text == "{")
        if depth < 0:
            start = j
            while start and words[start - 1].text not in (";", "{", "}"):
                start -= 1
            return bool(_CLASSES & set(texts(words[start:j])))
    return "::" in texts(words[start:i])
