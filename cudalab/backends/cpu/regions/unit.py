"""A file's functions, and which of them the threads of a block or a warp go through together.

A function is *collective* if it has a barrier or a warp operation, or calls one that has; it is
*placed* if it uses threadIdx or the like. Both spread from callees to callers.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from functools import cached_property
from itertools import pairwise

from cudalab.backends.cpu.regions.effects import Effects
from cudalab.backends.cpu.regions.functions import Declaration, Function, declarations
from cudalab.backends.cpu.regions.given import Given
from cudalab.backends.cpu.regions.groups import constants, is_row, translate
from cudalab.backends.cpu.regions.syntax import LOOPS, TYPES, Statement
from cudalab.backends.cpu.regions.uses import Uses
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls, close
from cudalab.language.lockstep import IN_STEP, STEP
from cudalab.language.scopes import Scope
from cudalab.language.tokens import Token, closure, names_in, only_x, set_of, texts
from cudalab.language.tree import Reader

Normalizing = Callable[["Unit", Function], list[Statement]]

BLOCK_VOTES = frozenset({"__syncthreads_count", "__syncthreads_and", "__syncthreads_or"})
BLOCK_WIDE = BLOCK_VOTES | {"__syncthreads", "__grid_sync"}
SHUFFLES = frozenset({"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"})
VOTES = frozenset({"__ballot_sync", "__any_sync", "__all_sync"})
OTHER_WARP_WIDE = frozenset(
    {"__match_any_sync"}
    | {f"__reduce_{op}_sync" for op in ("add", "min", "max", "and", "or", "xor")}
)
GROUP_WIDE = set_of("__cg_here __cg_split __cg_reduce __cg_inclusive_scan __cg_exclusive_scan")
WARP_WIDE = SHUFFLES | VOTES | OTHER_WARP_WIDE | GROUP_WIDE | {"__syncwarp"}
VALUED = (BLOCK_VOTES | WARP_WIDE) - {"__syncwarp"}
STEPS = frozenset({IN_STEP, STEP})  # at which the lanes that happen to arrive wait for each other
BUILT_IN = BLOCK_WIDE | WARP_WIDE | STEPS
POSITION = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "CUDALAB_RANK"})

# Words whose meaning depends on threads that run by turns.
_ONLY_FIBERS = {
    "goto": "goto",
    "clock64": "a clock, which threads may wait by",
    "clock": "a clock, which threads may wait by",
    "__activemask": "__activemask",
    "__match_all_sync": "__match_all_sync",
    **dict.fromkeys(
        ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot"),
        "a warp function without a mask",
    ),
    "try": "exceptions",
    "alloca": "alloca",
}
_YIELDING = ("atomic", "__threadfence")  # in a loop, may let the threads run that it waits for
_VOLATILE = "a volatile variable, which threads may wait for"


class Unit:
    """The functions of a preprocessed file, and what they do together."""

    def __init__(
        self, words: Words, namespace: str, normalize: Sequence[Normalizing], *, is_program: bool
    ) -> None:
        """Take the words of a file with includes inlined; its own kernels stand in `namespace`."""
        self.normalize = normalize
        self.words = words
        self.namespace = namespace
        self.is_program = is_program
        self.root = Reader(words, bodies=False).file(Scope("namespace"))
        self.elsewhere: set[str] = set()  # functions that use threadIdx or meet, in any namespace
        self.declarations = declarations(self.root, words)
        for each in self.declarations:
            own = each.function
            if own and own.specialized and not calls(own.body, BUILT_IN):
                each.function = None
        self.all_functions = [each.function for each in self.declarations if each.function]
        self.functions = [each for each in self.all_functions if each.is_device or not is_program]
        for function in self.all_functions:
            function.body = _capturing(function.body)
        self.by_name: dict[str, list[Function]] = {}
        for function in self.functions:
            self.by_name.setdefault(function.name, []).append(function)
        self._called: dict[Function, list[Function]] = {}
        self.refused: dict[str, NotCoveredError] = {}  # functions that cannot be translated
        if is_program:
            row, outside = is_row(self.functions), constants(self.root.children, words)
            for function in self.functions:
                try:
                    translate(function, self.by_name, outside, row=row)
                except NotCoveredError as reason:
                    self.refused[function.name] = reason
        self.collective = self._spread(BUILT_IN)
        self.block_wide = self._spread(BLOCK_WIDE)
        self.gathering = self._spread(frozenset({"__cg_here"}))
        meeting = BUILT_IN - STEPS
        self.meeting = self._spread(meeting) | meeting  # of lanes that are named
        self.placed = self._spread(POSITION, called=False) - self.collective
        self.in_step: set[str] = set()  # kernels without barriers whose loops go around the threads

    @cached_property
    def outside(self) -> Words:
        """The words outside of functions: types, constants and what is not read as a function."""
        inside = {id(word) for function in self.all_functions for word in function.body}
        return [word for word in self.words if id(word) not in inside]

    @cached_property
    def known(self) -> set[str]:
        """The names that mean the same in all functions of the file."""
        return names_in(self.outside)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Constants of the file that are a decimal number, as in `const int N = 2048;`."""
        known = constants(self.root.of_kind("declaration"), self.words)
        for enum in self.root.of_kind("enum"):
            own = texts(self.words[enum.first : enum.last])
            known |= {
                name: value
                for name, sign, value in zip(own, own[1:], own[2:], strict=False)
                if sign == "="
            }
        return {name: int(value) for name, value in known.items() if value.isdecimal()}

    @cached_property
    def given(self) -> Given:
        """What the functions, classes and operators of the file do with what they are given."""
        return Given([(self.root, self.words)])

    @cached_property
    def effects(self) -> Effects:
        """What is known of the effects of the file's functions."""
        return Effects(self.given)

    def uses(self, function: Function) -> Uses:
        """What the statements of a function do with variables."""
        referring = {"&", "&&", "decltype"} | self.given.referring
        refers = bool(referring & set(texts(function.returns)))
        return Uses(self.given, function.scope, returns_reference=refers)

    def kernels(self) -> list[Function]:
        """The unit's own kernels, in the order of the text."""
        return [
            function
            for function in self.functions
            if function.is_kernel and function.head[0].namespace == self.namespace
        ]

    def is_collective(self, words: Words) -> bool:
        """Whether the words have a barrier or a warp operation, or call what has one."""
        return bool(calls(words, self.collective | BUILT_IN))

    def called_by(self, function: Function) -> list[Function]:
        """The function and all that it calls, directly or not."""
        if function in self._called:
            return self._called[function]
        found = [function]
        for each in found:  # grows while it is read
            own = each.own_names
            names = {word.text for word in each.body if word.text in self.by_name} - own
            called = {call.word.text for call in calls(each.body, names)}
            found += [
                other
                for name in sorted(names)
                for other in self.by_name[name]
                if other not in found and (name in called or not other.is_kernel)
            ]
        self._called[function] = found
        return found

    def normalized(self, function: Function) -> list[Statement]:
        """The statements of a function in the form that later passes rely on."""
        function = copy(function)
        for each in self.normalize:
            function.statements = each(self, function)
        return function.statements

    def check(self, kernel: Function) -> list[Function]:
        """The functions of a kernel; NotCoveredError if it relies on threads that take turns."""
        if not self.is_program and "extern" not in texts(kernel.head):  # a lab could not launch it
            raise NotCoveredError('it is not extern "C"')
        if not self.is_program and "cooperative_groups" in texts(kernel.body):
            raise NotCoveredError(f"{kernel.head[0].place}: cooperative groups")
        any_volatile = self.is_program  # but loops that poll
        _check_words(kernel.body, any_volatile=any_volatile)
        reached = self.called_by(kernel)
        for function in reached:
            if function.name in self.refused:
                raise self.refused[function.name]
            _check_words(function.body, any_volatile=any_volatile)
            if "volatile" in texts(function.head) and not any_volatile:
                raise NotCoveredError(f"{function.head[0].place}: {_VOLATILE}")
            if function is not kernel and function.is_kernel:
                raise NotCoveredError(f"{function.head[0].place}: a kernel that is called")
            plain = [each for each in self.by_name[function.name] if not each.specialized]
            if function.name in self.collective and len(plain) != 1:
                raise NotCoveredError(
                    f"{function.head[0].place}: several functions {function.name} with barriers"
                )
            names = set(texts(function.body)) & self.by_name.keys() - function.own_names
            callees = (each for name in names for each in self.by_name[name])
            if function.name in self.collective and any(
                function in self.called_by(each) for each in callees
            ):
                raise NotCoveredError(f"{function.head[0].place}: a recursion with barriers")
        for each in self.classes(reached):
            _check_class(each.words)
        return reached

    def has_value(self, name: str) -> bool:
        """Whether a function in which threads meet returns something."""
        if name in BUILT_IN:
            return name in VALUED
        return not self.by_name[name][0].returns_nothing

    def has_shared(self, name: str) -> bool:
        """Whether a function has variables that the threads of a block share."""
        return any("__shared__" in texts(function.body) for function in self.by_name[name])

    def is_flat(self, kernel: Function) -> bool:
        """Whether a kernel uses threadIdx.x alone."""
        functions = self.called_by(kernel)
        return all(map(only_x, self.bodies(functions)))

    def bodies(self, functions: Sequence[Function]) -> list[Words]:
        """The words of functions and of the classes that they use."""
        return [*(each.body for each in functions), *(e.words for e in self.classes(functions))]

    def handing_over(self, words: Words) -> Words:
        """The words, with threadIdx passed to functions that use it."""
        result = list(words)
        for call in reversed(calls(words, self.placed)):
            more = "threadIdx , cudalab_B" + (" ," if call.arguments else "")
            result[call.opening] = result[call.opening]._replace(text="( " + more)
            result[call.name] = call.word._replace(text=f"{call.word.text}_cudalab_at")
        if any(word.text in self.placed for word in result):
            place = words[0].place
            raise NotCoveredError(f"{place}: the address of a function that uses threadIdx")
        return result

    def classes(self, functions: Iterable[Function]) -> list[Declaration]:
        """The classes and the like that functions use, or other such classes."""
        classes = list[Declaration]()
        seen = {word.text for each in functions for word in [*each.head, *each.body]}
        left = self.definitions
        for alias in reversed(self.aliases):
            if seen & alias.names:
                seen |= set(texts(alias.words))
        while found := [each for each in left if seen & each.names]:
            left = [each for each in left if each not in found]
            classes += found
            seen |= {word.text for each in found for word in each.words}
        return classes

    @cached_property
    def definitions(self) -> list[Declaration]:
        """What is defined in braces besides functions: classes, operators, lambdas with names."""
        others = (each for each in self.declarations if each.function is None)
        return [each for each in others if each.brace < len(each.words)]

    @cached_property
    def aliases(self) -> list[Declaration]:
        """The names that types have besides their own."""
        return [each for each in self.declarations if each.node.kind == "alias"]

    def declared_with(self, words: Collection[str]) -> set[str]:
        """What has one of these words in its declaration, of a function before its body."""
        found = (each for each in self.declarations if not set(texts(each.head)).isdisjoint(words))
        return {name for each in found for name in each.names} - TYPES

    @cached_property
    def placed_members(self) -> set[str]:
        """The names of methods that may use threadIdx."""
        definitions = [(set(texts(each.words)), each.words) for each in self.definitions]
        return closure(
            (),
            lambda names: {
                word.text
                for inside, words in definitions
                if not inside.isdisjoint({"threadIdx", *self.placed, *names})
                for word, after in pairwise(words)
                if after.text == "("
            },
        )

    @cached_property
    def placed_names(self) -> set[str]:
        """The names of functions, classes and aliases that may lead to threadIdx."""
        functions = [each for each in self.functions if not each.is_kernel]
        meanings = [
            *(({each.name}, set(texts(each.body))) for each in functions),
            *((each.names, set(texts(each.words))) for each in (*self.definitions, *self.aliases)),
        ]
        return closure(
            {"threadIdx", *self.placed},
            lambda found: {
                name
                for names, words in meanings
                if found & words
                for name in names - TYPES - self.collective
                if name.isidentifier()
            },
        )

    def _spread(self, seeds: frozenset[str], *, called: bool = True) -> set[str]:
        """The names of the device functions that use one of `seeds`, and of their callers."""
        functions = [each for each in self.functions if not each.is_kernel]

        def uses(body: Words) -> bool:
            return bool(calls(body, seeds)) if called else not seeds.isdisjoint(texts(body))

        return closure(
            (each.name for each in functions if uses(each.body)),
            lambda names: (each.name for each in functions if calls(each.body, names)),
        )


def _capturing(words: Words) -> Words:
    """The words, with captures added to lambdas so that they may use threadIdx, a local here."""
    result: Words = []
    for word, after in pairwise([*words, words[-1]] if words else []):
        before = result[-1] if result else word
        is_lambda = before.kind == "sign" and before.text not in (")", "]")
        result.append(word)
        if word.text == "[" and after.text == "]" and is_lambda:
            result.append(word._replace(text="&"))
    return result


def _check_class(words: Words) -> None:
    """Refuse a class that only fibers run, or that has a loop which may wait in its methods."""
    _check_words(words)
    for i, word in enumerate(words):
        if word.text not in LOOPS:
            continue
        end = i if word.text == "do" else close(words, i + 1)
        while end + 1 < len(words) and words[end].text not in (";", "}"):
            end += 1
            end = close(words, end) if words[end].text in ("(", "{", "[") else end
        if any(each.text.startswith(_YIELDING) for each in words[i : end + 1]):
            raise NotCoveredError(f"{word.place}: a class whose loops may wait for other threads")


def _is_cast(words: list[Token], i: int) -> bool:
    """Whether `volatile`, word `i`, belongs to a cast; else it declares something, or an asm."""
    start = i - (texts(words[i - 1 : i]) == ["const"])
    before = texts(words[max(start - 2, 0) : start])
    return before[-1:] in (["("], ["<"], ["asm"], ["__asm__"]) and before[:1] != ["]"]


def _check_words(words: list[Token], *, any_volatile: bool = False) -> None:
    for i, word in enumerate(words):
        if word.text in _ONLY_FIBERS:
            raise NotCoveredError(f"{word.place}: {_ONLY_FIBERS[word.text]}")
        if word.text == "volatile" and not any_volatile and not _is_cast(words, i):
            raise NotCoveredError(f"{word.place}: {_VOLATILE}")
        if word.text in ("asm", "__asm__"):
            opening = i + 1 + (texts(words[i + 1 : i + 2]) == ["volatile"])
            if texts(words[opening : opening + 2]) != ["(", '""']:  # which only holds values fast
                raise NotCoveredError(f"{word.place}: inline PTX")
