"""Checks for code in a kernel file that nvcc rejects and a host's C++ compiler accepts.

A host's compiler knows only one kind of function, one kind of variable, and no limits on memory.
Only certain errors are reported here: anything that macros, templates or preprocessor conditions
may change is left to nvcc.
"""

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from cudalab.errors import KernelCompileError
from cudalab.language import kernel_file
from cudalab.language.scopes import Node
from cudalab.language.source import Source, with_defines
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Token, set_of
from cudalab.system import elf

MAX_STATIC_SHARED = 48 << 10  # bytes of a kernel's __shared__ variables


Error = tuple[Token, str]  # where it is, and what

_CHANGES = re.compile(r"\s*#\s*(?!pragma\b|line\b)")
_IF = re.compile(r"\s*#\s*if")
_ENDIF = re.compile(r"\s*#\s*endif")
_ON_DEVICE = set_of(  # the last two are references, of old programs
    "__global__ __device__ __constant__ __managed__ __shared__ texture surface"
)
# Words that make a declaration something other than a plain function or variable.
_NOT_PLAIN = set_of(
    "template constexpr consteval constinit operator using typedef friend static_assert struct "
    "class union enum concept namespace asm"
)
# Functions of the C++ library for the host only, unlike its mathematical functions. CUDA has those
# of the first line itself; an option lets nvcc take them.
_CONSTANT_FUNCTIONS = set_of("min max clamp swap")
_ALGORITHMS = set_of("accumulate copy count fill find for_each iota reduce reverse sort transform")
_OBJECTS = set_of("cout cerr")
# Its classes of which nvcc takes no function in device code.
_CLASSES = set_of(
    "basic_string deque function list map multimap multiset ostringstream priority_queue queue set "
    "shared_ptr stack string stringstream unique_ptr unordered_map unordered_set valarray vector"
)
_CLASS = re.compile(r"(std::)?(\w+)(?:<.*>)?")
# What only threads have. CUDA's headers declare it, so that of host code the linker refuses it.
_OF_THREADS = set_of("threadIdx blockIdx blockDim gridDim")
# What only the host has of C, and the library of C++. (malloc, memcpy and printf are for both.)
LIBRARY = set_of("std rand srand exit fopen fclose fprintf fread fwrite scanf getchar")


def check(source: Source, defines: Mapping[str, str | int], library: Path) -> None:
    """Raise KernelCompileError if nvcc would reject `source`, which `library` was compiled from."""
    read = kernel_file.read(with_defines(source.text, defines))
    own = len(read.text) - len(source.text)  # where it begins, behind the definitions
    macros = {name for name, value in defines.items() if "__" in str(value)}
    file = File(read, macros | {each.name for each in read.macros if each.start >= own})
    of_host_ = [(token, error) for _, token, error in of_host([file])]
    errors = [*_results(read), *of_host_, *_initialized(file)]
    _raise(read, errors, _too_much_shared(source, library))


def check_heads(source: Source, defines: Mapping[str, str | int]) -> None:
    """Raise KernelCompileError if a kernel returns something, or takes what no lab hands in."""
    read = kernel_file.read(with_defines(source.text, defines))
    _raise(read, _results(read))
    if lines := list(_lines(read, _references(read))):
        raise KernelCompileError("no lab can launch the kernel:\n" + "\n".join(lines))


def _raise(
    file: kernel_file.KernelFile, errors: Iterable[Error], others: Iterable[str] = ()
) -> None:
    if lines := [*_lines(file, errors), *others]:
        raise KernelCompileError(
            "nvcc would reject the kernel:\n" + "\n".join(lines),
            hint="the host's compiler accepts it, but a GPU's does not",
        )


def _lines(file: kernel_file.KernelFile, errors: Iterable[Error]) -> Iterator[str]:
    for token, error in errors:
        name, line = file.places[token.start]
        yield f"{name}:{line}: error: {error}"


def _results(file: CudaFile) -> Iterator[Error]:
    """The kernels that certainly return something."""
    for node in file.root.walk():
        for name in node.names if "__global__" in node.words else ():
            type_, stars = name.type, ""
            while type_.kind == "pointer" and type_.element is not None:
                type_, stars = type_.element, f"{stars}*"
            if stars or type_.is_auto or type_.kind not in ("void", "unknown"):
                of = f"{type_.text} {stars}".strip()
                yield file.words.tokens[node.first], f"a kernel returns {of}: it must be void"


def _references(file: CudaFile) -> Iterator[Error]:
    """The parameters of kernels that are references."""
    for node in file.root.walk():
        for each in node.parameters if "__global__" in node.words else ():
            if any(name.type.is_reference for name in each.names):
                error = "a lab hands in numbers and pointers: this is a reference"
                yield file.words.tokens[each.first], error


# Shared memory ------------------------------------------------------------------------------------


def _too_much_shared(source: Source, library: Path) -> Iterator[str]:
    """Add up each kernel's __shared__ variables: thread-local symbols _ZZ<kernel>E<variable>."""
    variables: list[elf.Symbol] = []  # none if the library's format is that of another system
    with suppress(OSError):
        variables = [symbol for symbol in elf.symbols(library) if symbol.is_thread_local]
    for name in source.kernels:
        prefix = f"_ZZ{len(name)}{name}E"
        used = sum(symbol.num_bytes for symbol in variables if symbol.name.startswith(prefix))
        if used > MAX_STATIC_SHARED:
            yield (
                f"{source.label}: error: kernel {name} has {used:,} bytes of __shared__ variables: "
                f"at most {MAX_STATIC_SHARED:,} are allowed; use extern __shared__ for more"
            )


# Functions and variables of the host --------------------------------------------------------------


class File:
    """The names that a file declares outside functions and classes.

    `macros` are names that may be more than they look like.
    """

    def __init__(self, file: CudaFile, macros: set[str]) -> None:
        self.root, self.words, self.macros = file.root, file.words, macros
        self.changes = [each.start for each in file.directives if _CHANGES.match(each.text)]
        self.conditions = list(_conditions(file.directives))
        self.functions: set[str] = set()  # of the host
        self.variables: set[str] = set()  # of the host
        self.others: set[str] = set()  # declared in any other way
        self.device_code: list[Node] = []  # functions
        self.host_code: list[Node] = []  # functions that are compiled even if nothing calls them
        self.launches = [each.children[0] for each in file.root.of_kind("launch")]
        for node in _outside_classes(file.root):
            self._note(node)

    def may_be_left_out(self, node: Node) -> bool:
        """Whether the preprocessor decides whether something is there."""
        return bisect(self.conditions, self.words.tokens[node.first].start) % 2 == 1

    def _note(self, node: Node) -> None:
        """Add what a declaration declares."""
        texts = self.words.texts
        inner = node.children[0] if node.kind == "template" and node.children else node
        body = next((each for each in node.children if each.kind == "block"), None)
        head = body.first if body and node.kind == "function" else node.last
        words = set(texts[node.first : head])
        in_front = set(texts[node.first : node.at]) if node.at >= 0 else words
        plain = not (
            node.kind not in ("function", "declaration")
            or words & _NOT_PLAIN
            or in_front & self.macros
            or self._may_change(node.first, head)
            or self.may_be_left_out(node)
        )
        arrays = {
            texts[k]
            for k in range(node.first, head)
            if self.words.kinds[k] == "name" and texts[k + 1] == "["
        }
        for name in inner.names:
            if not plain or words & _ON_DEVICE:
                self.others.add(name.name)
            elif node.kind == "function":
                self.functions.add(name.name)
            elif name.name in arrays or (
                name.kind == "variable" and not words & {"const", "extern"}
            ):
                self.variables.add(name.name)
        if not plain or node.kind != "function":
            return
        if words.isdisjoint(_ON_DEVICE | {"static", "inline"}):
            self.host_code.append(node)
        on_device = words & {"__global__", "__device__"} and "__host__" not in words
        if on_device and not self._may_change(head, node.last):
            self.device_code.append(node)

    def _may_change(self, first: int, last: int) -> bool:
        """Whether a preprocessor condition or a macro may change the tokens."""
        begin, end = self.words.tokens[first].start, self.words.tokens[last - 1].end
        return bisect(self.changes, begin) < bisect(self.changes, end)


def _outside_classes(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.kind in ("namespace", "linkage"):
            yield from _outside_classes(child)
        else:
            yield child


def _conditions(directives: Sequence[Token]) -> Iterator[int]:
    """Where the texts begin and end that a condition may leave out; no include guard is one."""
    is_guard: list[bool] = []
    for i, each in enumerate(directives):
        outside = all(is_guard)
        if _IF.match(each.text):
            is_guard.append(i == 0 and "ifndef" in each.text and "__CUDA" not in each.text)
        elif _ENDIF.match(each.text) and is_guard:
            is_guard.pop()
        if outside != all(is_guard):
            yield each.start


def _initialized(file: File) -> Iterator[Error]:
    """The shared variables that are certainly given a value where they are declared."""
    texts, tokens = file.words.texts, file.words.tokens
    for node in file.root.of_kind("declaration"):
        if "__shared__" not in node.words or file.may_be_left_out(node):
            continue
        values = [(texts[one.value], one.array < one.value) for one in node.declarators]
        if any(sign == "=" or (sign == "{" and is_array) for sign, is_array in values):
            at = tokens[texts.index("__shared__", node.first)]
            yield at, "a __shared__ variable cannot have an initial value"


def of_host(
    files: Sequence[File], seen: Mapping[int, Collection[int]] | None = None
) -> Iterator[tuple[File, Token, str]]:
    """The host's functions and variables that plain kernels and device functions use.

    `seen` are the files whose declarations each file knows, by their indices; all if absent. A
    file, the token, and the error.
    """
    others = {name for file in files for name in file.others | file.macros}
    for i, file in enumerate(files):
        known = [files[j] for j in seen[i]] if seen else files
        functions = {name for each in known for name in each.functions} - others
        variables = {name for each in known for name in each.variables} - others
        for token, error in _uses(file, functions, variables, others):
            yield file, token, error


def of_threads(files: Sequence[File]) -> Iterator[tuple[File, Token, str]]:
    """What only threads have, in functions of the host; its results are those of `of_host`."""
    own = {name for file in files for name in file.others | file.macros}
    device = [*chain.from_iterable([*each.device_code, *each.launches] for each in files)]
    meant = {name.text for each in device for name in each.of_kind("name")}  # to be the device's
    for file in files:
        host_code = (each for each in file.host_code if each.text not in meant)
        for node in (name for each in host_code for name in _on_host(each)):
            if node.text not in _OF_THREADS - own or file.may_be_left_out(node):
                continue
            if node.scope is not None and node.scope.find(node.text, node.first) is None:
                error = "threadIdx, blockDim and the like are for device code: this is the host's"
                yield file, file.words.tokens[node.first], error


def _on_host(node: Node) -> Iterator[Node]:
    """The names that a function of the host uses, but for what in it may be the device's."""
    if node.kind == "name":
        yield node
    for child in node.children:
        if child.kind not in ("class", "sizeof") and child.words.isdisjoint(_ON_DEVICE):
            yield from _on_host(child)


def _uses(
    file: File, functions: set[str], variables: set[str], others: set[str]
) -> Iterator[Error]:
    for function in file.device_code:
        yield from _objects(file, function)
        calls = {
            call.children[0] for call in function.of_kind("call", "construct") if call.children
        }
        unevaluated = {name for one in function.of_kind("sizeof") for name in one.of_kind("name")}
        for node in function.of_kind("name"):
            name, _, of_library = node.text.partition("::")
            if node in unevaluated or node.scope is None or node.scope.is_local(name, node.first):
                continue
            if node.text in functions and node in calls:
                error = f"calls {name}, a host function: declare it __device__"
            elif node.text in variables:
                error = f"uses {name}, a host variable: declare it __device__ or __constant__"
            elif name == "std" and of_library in _CONSTANT_FUNCTIONS and node in calls:
                error = f"calls {node.text}, a host function: leave out std::"
            elif name == "std" and of_library in _ALGORITHMS | _CLASSES and node in calls:
                error = f"calls {node.text}, which only the host has"
            elif node.text in LIBRARY and node in calls and node.text not in others:
                error = f"calls {name}, a function of the host's library"
            elif name == "std" and of_library in _OBJECTS:
                error = f"uses {node.text}, which only the host has"
            else:
                continue
            yield file.words.tokens[node.first], error


def _objects(file: File, function: Node) -> Iterator[Error]:
    """The objects of classes of the host's that device code declares, or whose members it uses."""
    used = {one.children[0] for one in function.of_kind("member", "index") if one.children}
    for node in function.of_kind("declaration", "name"):
        if node.scope is None or not (node in used or node.names):
            continue
        variable = node.names[0] if node.names else node.scope.find(node.text, node.first)
        match = _CLASS.fullmatch(variable.type.text) if variable else None
        if not variable or not match or (node.names and variable.type.is_reference):
            continue
        space, name = match.groups()
        if name in _CLASSES and (space or node.scope.find(name, node.first) is None):
            error = f"uses {variable.name}, a std::{name}, which only the host has"
            yield file.words.tokens[node.first], f"{error}: pass a pointer to what it holds"
