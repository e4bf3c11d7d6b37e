"""Loops of launches, through which the device's memory stays accessible.

Making it accessible and inaccessible again takes longer than a small grid. It is inaccessible so
that host code is stopped where it follows a device pointer. A loop that only launches, waits,
copies, and computes with numbers and addresses follows none, so its launches need not do that. The
first error ends it, for what a program does about errors is not looked at.
"""

from collections.abc import Sequence

from cudalab.language import macros, tokens, types
from cudalab.language.scopes import Node, Scope
from cudalab.program.rewrite.parsed import Parsed

_LOOPS = ("for", "while", "do")
_PLAIN = tokens.set_of(  # nodes that do no more than their parts
    "block for while do expression declaration initializer list assign binary conditional comma "
    "group cast construct named_cast empty literal sizeof jump return if macro"
)
_CALLS = tokens.set_of(
    "cudaDeviceSynchronize cudaThreadSynchronize cudaStreamSynchronize cudaGetLastError "
    "cudaPeekAtLastError cudaEventRecord cudaEventSynchronize cudaMemcpy cudaMemcpyAsync "
    "cudaMemset cudaMemsetAsync swap std::swap min max std::min std::max"
)
_PRINT = tokens.set_of("printf fprintf")
_CONSTANTS = tokens.set_of("NULL nullptr true false stdout stderr __FILE__ __LINE__ __func__")
_DEPTH = 8  # of macros and functions in each other


def rewrite(files: Sequence[Parsed], scope: Scope) -> None:
    """Put each such loop into a block with an object that keeps the memory accessible."""
    reader = _Reader(files, scope)
    for each in files:
        pragmas = [one.end for one in each.directives if "pragma" in one.text]
        device = {id(body) for body in each.bodies}
        for loop in reader.loops(each.root, device):
            begin, end = each.tokens[loop.first].start, each.tokens[loop.last - 1].end
            if not any(each.tokens[loop.first - 1].end < at <= begin for at in pragmas):
                each.replace(begin, begin, "{ ::cudalab::cudalab_Held cudalab_held; ")
                each.replace(end, end, " }")


class _Reader:
    """Tells which statements follow no pointer; a macro or function does what its body does."""

    def __init__(self, files: Sequence[Parsed], scope: Scope) -> None:
        self.scope = scope
        self.launches = False
        self.users: list[Node] = []  # of the macros that are being read
        self.macros: dict[str, list[macros.Macro]] = {}
        self.functions: dict[str, list[Node]] = {}
        self.on_device: set[str] = set()
        for each in files:
            for macro in each.macros:
                self.macros.setdefault(macro.name, []).append(macro)
            for node in each.root.of_kind("function", "declaration"):
                if node.kind == "function":
                    self.functions.setdefault(node.text, []).append(node)
                elif not node.words.isdisjoint({"__device__", "__managed__", "__constant__"}):
                    self.on_device |= {name.name for name in node.names}

    def loops(self, node: Node, device: set[int]) -> list[Node]:
        """The outermost loops in the host code of `node` that launch kernels, and are quiet."""
        if id(node) in device:
            return []
        self.launches = False
        if node.kind in _LOOPS and self._is_quiet(node, 0) and self.launches:
            return [node]
        return [loop for child in node.children for loop in self.loops(child, device)]

    def _is_quiet(self, node: Node, depth: int) -> bool:
        """Whether a statement or an expression surely follows no pointer to the device."""
        kind, parts = node.kind, node.children
        if kind == "name":
            return self._is_own(node, depth)
        if kind == "call":
            return self._is_quiet_call(node, depth)
        if kind == "launch":
            self.launches = True
            return parts[0].kind == "name" and all(self._is_quiet(x, depth) for x in parts[1:])
        plain = (
            kind in _PLAIN
            or (kind == "unary" and node.text != "*")
            or (kind == "member" and types.type_of(parts[0]).text == "dim3")
            or (kind == "index" and parts[0].kind == "name" and types.type_of(parts[0]).is_array)
        )
        if kind == "if" and _is_failure(parts[0]):
            parts = [parts[0], *parts[2:]]
        return plain and all(self._is_quiet(each, depth) for each in parts)

    def _is_quiet_call(self, node: Node, depth: int) -> bool:
        callee, *arguments = node.children
        if callee.text in _PRINT:
            return all(
                each.kind == "literal"
                or each.text in _CONSTANTS
                or (types.type_of(each).kind in types.NUMBERS and self._is_quiet(each, depth))
                for each in arguments
            )
        of_any_type = callee.kind == "launch" or callee.text in _CALLS
        known = (
            self._is_quiet(callee, depth)
            if callee.kind == "launch"
            else of_any_type
            or (callee.kind == "name" and depth < _DEPTH and self._is_quiet_body(callee, depth + 1))
        )
        return known and all(
            self._is_own(each, depth, of_any_type=of_any_type)
            if each.kind == "name"
            else self._is_quiet(each, depth)
            for each in arguments
        )

    def _is_quiet_body(self, user: Node, depth: int) -> bool:
        """Whether the macro or the only function that a name stands for is quiet."""
        if user.text not in self.macros:
            bodies = [x for x in self.functions.get(user.text, ()) if x.children]
            return len(bodies) == 1 and all(self._is_quiet(x, depth) for x in bodies[0].children)
        self.users.append(user)
        bodies = [macros.read_body(each, self.scope)[1] for each in self.macros[user.text]]
        quiet = all(self._is_quiet(each, depth) for each in bodies)
        self.users.pop()
        return quiet

    def _is_own(self, node: Node, depth: int, *, of_any_type: bool = False) -> bool:
        """Whether a name is a constant, or a variable of the host that is no class's member."""
        if node.text in self.macros:
            return depth < _DEPTH and self._is_quiet_body(node, depth + 1)
        for user in [node, *reversed(self.users)]:  # what a macro does not know, its users do
            for scope in user.scope.enclosing() if user.scope is not None else ():
                found = scope.member(node.text, user.first)
                if found is None:
                    continue
                plain = found.type.kind in types.NUMBERS | {"pointer"}
                plain |= found.type.text.startswith(("dim3", "cuda"))
                own = scope.kind != "class" and node.text not in self.on_device
                referred = found.type.is_reference and not (depth and scope.kind == "function")
                is_parameter = scope.is_opaque  # of a macro: what it stands for is looked at
                return own and not referred and (plain or of_any_type or is_parameter)
        return node.text in _CONSTANTS or node.text.startswith("cuda")


def _is_failure(condition: Node) -> bool:
    """Whether it is `error != cudaSuccess`."""
    texts = [each.text for each in condition.children]
    return condition.kind == "binary" and condition.text == "!=" and "cudaSuccess" in texts
