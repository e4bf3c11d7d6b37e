"""What nvcc rejects in a program and a host's compiler accepts."""

from collections.abc import Collection, Iterator, Sequence

from cudalab.errors import KernelCompileError
from cudalab.language.nvcc_rules import LIBRARY, File, of_host
from cudalab.language.types import is_local
from cudalab.program.parsed import Parsed
from cudalab.program.typos import is_known

_SPACES = frozenset({"__device__", "__constant__", "__managed__"})
_IN_FRONT = frozenset({"", ";", "}", "{", "static", "inline", "__device__", "__host__"})
_LAUNCH = "a kernel is launched by kernel<<<blocks, threads>>>(arguments)"
_DECLARE = "a kernel is declared __global__ void"
Error = tuple[int, str]  # a position in the text, and words


def check(files: Sequence[Parsed], kernels: Collection[str]) -> None:
    """KernelCompileError for what nvcc rejects; `kernels` are the names of all of them."""
    others = {name for each in files for name in each.structure.host_functions}
    errors = [*_of_host(files)]
    hints = dict[str, None]()
    for each in files:
        calls = list(_plain_calls(each, set(kernels) - others))
        launched = list(_launched(each, others - set(kernels)))
        hints |= {_LAUNCH: None} if calls else {}
        hints |= {_DECLARE: None} if launched else {}
        found = [*calls, *launched, *_in_functions(each)]
        errors += [(each, position, words) for position, words in found]
    if errors:
        lines = dict.fromkeys(_line(*error) for error in errors)
        raise KernelCompileError(
            f"{files[0].file.label} does not compile:\n" + "\n".join(lines),
            hint="; ".join(hints) or None,
        )


def _line(each: Parsed, position: int, words: str) -> str:
    source = each.file.text.splitlines()[each.lines[position] - 1].strip()
    return f"{each.place(position)}: error: {words}\n    {source}"


def _of_host(files: Sequence[Parsed]) -> Iterator[tuple[Parsed, int, str]]:
    """Functions and variables of the host in device code."""
    macros = {macro.name for each in files for macro in each.macros}
    read = [File(each.words, each.directives, each.root, macros) for each in files]
    seen = {i: _included(files, i) for i in range(len(files))}
    for file, token, words in of_host(read, seen):
        if "leave out std::" in words:  # --expt-relaxed-constexpr may allow it
            continue
        if token.text in LIBRARY or not is_known(token.text):
            yield files[read.index(file)], token.start, words


def _included(files: Sequence[Parsed], index: int) -> set[int]:
    """A file, and those that it includes: another source has its own functions of these names."""
    reached, todo = {index}, [index]
    while todo:
        new = set(files[todo.pop()].file.includes.values()) - reached
        reached |= new
        todo += new
    return reached


def _plain_calls(each: Parsed, kernels: Collection[str]) -> Iterator[Error]:
    """Calls of kernels such as `kernel(a, n);`, of names that no other function has."""
    for node in each.root.of_kind("expression"):
        for call in node.children:
            if call.kind == "call" and call.children[0].kind == "name":
                name = call.children[0]
                if name.text in kernels and not is_local(name):
                    start = each.tokens[node.first].start
                    yield start, "a __global__ function call must be configured"


def _launched(each: Parsed, functions: Collection[str]) -> Iterator[Error]:
    """Launches of functions that are no kernels."""
    for node in each.root.of_kind("launch"):
        name = node.children[0]
        if name.kind == "name" and name.text in functions and not is_local(name):
            if not _is_plain(each, name.text):
                continue
            yield each.tokens[name.first].start, f"{name.text} is launched, but is no kernel"


def _is_plain(each: Parsed, name: str) -> bool:
    """Whether a file has `void name(` with nothing in front that may be a misspelt __global__."""
    texts = ["", "", *each.words.texts]
    places = [i for i, text in enumerate(texts) if text == name and texts[i - 1] == "void"]
    return any(texts[i - 2] in _IN_FRONT and texts[i + 1] == "(" for i in places)


def _in_functions(each: Parsed) -> Iterator[Error]:
    """Variables of the device that a function declares."""
    texts = each.words.texts
    for first, last in each.structure.functions:
        for i in range(first + 1, last):
            if texts[i] in _SPACES and texts[i - 1] in ("{", "}", ";"):
                end = next((text for text in texts[i:last] if text in (";", "=", "[", "(")), "")
                if end != "(":  # no method of a class in the function
                    words = f"a {texts[i]} variable is declared outside of all functions"
                    yield each.tokens[i].start, words
