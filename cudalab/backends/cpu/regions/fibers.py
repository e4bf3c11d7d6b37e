"""Why kernels keep their fibers: what only threads with a stack of their own can do.

A kernel may reach a barrier other than through a function called by name. A program, unlike a lab,
has host code, which may see how its kernels run, and its kernels may call what is in other files or
in libraries.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from cudalab.backends.cpu.regions.functions import Declaration, Function
from cudalab.backends.cpu.regions.gathering import refuse_gathering
from cudalab.backends.cpu.regions.groups import GROUPS
from cudalab.backends.cpu.regions.syntax import LOOPS, TYPES, Statement, walk
from cudalab.backends.cpu.regions.unit import BUILT_IN, Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls
from cudalab.language.tokens import Token, texts

# What language/arithmetic.py and the like put into device code, if it asks nothing of the runtime.
_OWN = frozenset(
    {
        f"cudalab_{name}"
        for name in ("cast", "fit", "make", "into", "by", "zero_too", "dynamic", "dynamic_array")
    }
    | {"saturated", "from_bits"}
    | {"to_bits", "Target", "Uses", "rank_in", "ranks_of", "lanes_of_tile"}
    | {"lane_at", "lane_below", "lane_above", "lane_across"}
    | {"in_cooperative_launch", "cudalab_enlisted"}
)
_OWN_PTX = frozenset({"as", "store", "joined", "part", "shift_left", "shift_right", "magnitude"})
_REASONS = {
    **dict.fromkeys(
        ("__assert_fail", "__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"),
        "a message that names the function",
    ),
    **dict.fromkeys(("cub", "cuda", "nvcuda", "wmma", "thrust"), "a library"),
    **dict.fromkeys(
        ("__isShared", "__isGlobal", "__isLocal", "__isConstant", "__cvta_generic_to_shared"),
        "a question where memory lies",
    ),
    "_Pragma": "a pragma",
    "__nanosleep": "a wait",
}
_LIBRARIES = frozenset({"cub", "cuda", "nvcuda", "wmma", "thrust"})
# What lets other threads run; besides, atomic operations and fences in loops, which may be waits.
_MEETING = BUILT_IN | frozenset(
    {"__activemask", "__match_all_sync", "__nanosleep", "clock", "clock64", "volatile"}
)
_WAITING = frozenset({"wait", "acquire", "arrive_and_wait", "test_and_set", "lock"})
_OF_RUNTIME = re.compile(r"cuda[A-Z]\w*")


def refuse_in_program(unit: Unit, reached: list[Function]) -> None:
    """NotCoveredError for a program's kernel that uses what only fibers can do.

    `reached` begins with the kernel.
    """
    if not unit.is_program:
        return
    kernel = reached[0]
    used = {word.text for function in reached for word in function.body}
    classes = [word for each in unit.classes(reached) for word in each.words[each.brace :]]
    _refuse_form(unit, kernel)
    _refuse_hidden(unit, kernel)
    declared = _declared_only(unit)
    if taken := unit.declared_with(_LIBRARIES) & used:  # such as `cuda::atomic<int> a;`
        raise NotCoveredError(f"{kernel.head[0].place}: a library: {min(taken)}")
    for function in reached:
        _refuse_words(unit, function.body, declared)
        for each in walk(function.statements):
            _refuse_polling(unit, function, each)
    _refuse_words(unit, classes, declared)
    refuse_gathering(unit, reached)
    warps = any(name.startswith(("__shfl", "__syncwarp", "__cg_")) for name in used)
    if "printf" in used and warps:
        raise NotCoveredError(f"{kernel.head[0].place}: printf between warp operations")


def never_waits(unit: Unit, reached: list[Function]) -> bool:
    """Whether a kernel uses nothing by which one of its threads may wait for another.

    Even without loops over them such threads run one after another, with no stacks of their own.
    """
    used = {word.text for body in unit.bodies(reached) for word in body}
    used |= {word.text for function in reached for word in function.head}
    unknown = _declared_only(unit) - unit.by_name.keys() | unit.declared_with({"volatile"})
    if used & (_MEETING | unit.collective | GROUPS | _LIBRARIES | unknown):
        return False
    return not any(
        word.text.startswith(("atomic", "__threadfence"))
        for function in reached
        for each in walk(function.statements)
        if each.kind in LOOPS
        for word in each.words
    )


def _is_overloaded(unit: Unit, kernel: Function) -> bool:
    """Whether other functions for the device have a kernel's name, too."""
    declared = {
        name.parameters
        for node in unit.root.of_kind("function", "declaration")
        if node.words & {"__global__", "__device__"}
        for name in node.names
        if name.name == kernel.name
    }
    return len(declared) > 1


def _refuse_form(unit: Unit, kernel: Function) -> None:
    """Refuse a kernel whose launch cannot be passed on to its loops."""
    place = kernel.head[0].place
    same = [each for each in unit.all_functions if each.name == kernel.name]
    if len(same) > 1 and not (kernel.template or unit.namespace or _is_overloaded(unit, kernel)):
        same = [kernel]  # the types of its parameters tell it from the host's functions
    is_specialized = any(
        kernel.name in each.names and texts(each.words[:3]) == ["template", "<", ">"]
        for each in unit.declarations
    )
    if len(same) > 1 or is_specialized:
        raise NotCoveredError(f"{place}: several functions {kernel.name}")
    if any(each.is_reference for each in kernel.parameters):
        raise NotCoveredError(f"{place}: a parameter that is a reference")
    if "." in texts(kernel.head):
        raise NotCoveredError(f"{place}: any number of parameters")


def _refuse_hidden(unit: Unit, kernel: Function) -> None:
    """Refuse a kernel if functions that use threadIdx or meet may reach it indirectly."""
    place = kernel.head[0].place
    own = unit.placed | unit.collective
    if hidden := next((word for word in kernel.body if word.text in unit.elsewhere - own), None):
        raise NotCoveredError(f"{hidden.place}: a function of another namespace")
    for i, word in enumerate(unit.outside):
        if word.text in own and texts(unit.outside[i + 1 : i + 2]) not in (["("], ["<"]):
            raise NotCoveredError(f"{place}: the address of {word.text} is taken")
    for function in unit.all_functions:
        if not function.is_device:
            for word in function.body:
                if word.text in own | {"threadIdx", "__syncthreads"}:
                    raise NotCoveredError(f"{word.place}: {word.text} in host code")


def _refuse_polling(unit: Unit, function: Function, loop: Statement) -> None:
    """Refuse a loop that waits until memory changes without changing it itself."""
    if loop.kind not in LOOPS:
        return
    uses, names = unit.uses(function), {word.text for word in loop.condition}
    if "[" not in names and not uses.of(loop.condition).pointers:
        return
    left = set(names)
    for each in loop.walk():
        left -= {change.name for change in uses.changes([each]) if change.is_plain}
        for words in each.pieces:
            left -= {after.text for word, after in pairwise(words) if word.text == "&"}
    if left == names:
        raise NotCoveredError(f"{loop.words[0].place}: a loop that waits for other threads")


def _refuse_words(unit: Unit, words: Words, declared: set[str]) -> None:
    for i, word in enumerate(words):
        after = texts(words[i + 1 : i + 3])
        reason = _REASONS.get(word.text)
        if reason and (word.text not in _LIBRARIES or after[:1] == ["::"]):
            raise NotCoveredError(f"{word.place}: {reason}: {word.text}")
        if word.text == "cudalab" and after[:1] == ["::"] and after[1] not in _OWN:
            if after[1] != "ptx" or words[i + 4].text not in _OWN_PTX:
                raise NotCoveredError(f"{word.place}: what only fibers do")
        elif after[:1] == ["("] and word.kind == "name":
            if _OF_RUNTIME.fullmatch(word.text):
                raise NotCoveredError(f"{word.place}: {word.text} in a kernel")
            if word.text in _WAITING and texts(words[i - 1 : i]) in (["."], ["->"]):
                raise NotCoveredError(f"{word.place}: a method that may wait: {word.text}")
            if word.text in declared and word.text not in unit.by_name:
                raise NotCoveredError(f"{word.place}: {word.text} is in another file")


def _declared_only(unit: Unit) -> set[str]:
    """The device functions that the file declares, perhaps without defining them."""
    functions = (each for each in unit.declarations if "function" in each.node.words)
    return {name for each in functions if "__device__" in texts(each.words) for name in each.names}


_OF_METHOD = (".", "->", "::")


def note_meetings_elsewhere(units: Sequence[Unit]) -> None:
    """Give each namespace the names of functions, and of classes elsewhere, that may meet."""
    classes = [
        {
            name
            for each in unit.definitions
            for name in each.names - TYPES
            if _met(each, BUILT_IN | unit.collective)
        }
        for unit in units
    ]
    functions = {name for unit in units for name in unit.placed | unit.collective}
    for unit, own in zip(units, classes, strict=True):
        unit.elsewhere = functions | ({name for names in classes for name in names} - own)


def _met(definition: Declaration, names: Collection[str]) -> Token | None:
    """The first call of one of `names` inside a class or an operator."""
    found = calls(definition.words[definition.brace :], names)
    return found[0].word if found else None


def refuse_hidden_meetings(unit: Unit, reached: list[Function]) -> None:
    """NotCoveredError if a method, an operator or a pointer may lead to a barrier."""
    meeting = BUILT_IN | unit.collective
    for each in unit.classes(reached):
        if word := _met(each, meeting):
            raise NotCoveredError(f"{word.place}: {word.text} in a class or an operator")
    methods = {
        function.name for function in unit.functions if texts(function.returns[-1:]) == ["::"]
    }
    for function in reached:
        body, own = function.body, function.own_names
        called = {call.name for call in calls(body, meeting)}
        for i, word in enumerate(body):
            if word.text not in unit.collective | unit.elsewhere or word.text in own:
                continue
            before = texts(body[i - 1 : i])
            if word.text in unit.elsewhere - unit.placed - unit.collective:
                raise NotCoveredError(f"{word.place}: {word.text} is of another namespace")
            if word.text not in unit.collective:
                continue
            if word.text in methods or (before and before[0] in _OF_METHOD):
                raise NotCoveredError(f"{word.place}: a method with barriers: {word.text}")
            if i not in called:
                raise NotCoveredError(
                    f"{word.place}: the address of {word.text}, which has barriers"
                )
