"""What nvcc does differently from a host's compiler.

It rejects more. What its newer versions no longer accept, but old programs use, works here with a
note, and so do the headers of NVIDIA's samples for those who do not have them. And it compiles what
is for both sides twice, with `__CUDA_ARCH__` for the device only. Here functions for the host do
not see that macro. A function for both sides that asks for it, and that the host may call, has both
texts, and asks where it is when it runs.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from cudalab.backends.cpu.compiler import cccl
from cudalab.backends.cpu.compiler.flags import OF_SAMPLES
from cudalab.errors import KernelCompileError
from cudalab.language import nvcc_rules, scopes, source, types
from cudalab.language.tokens import Token, closing_angle
from cudalab.output.notes import note
from cudalab.program import spelling
from cudalab.program.files import included
from cudalab.program.rewrite.parsed import Parsed

_SPACES = frozenset({"__device__", "__constant__", "__managed__"})
_IN_FRONT = frozenset({"", ";", "}", "{", "static", "inline", "__device__", "__host__"})
_LAUNCH = "a kernel is launched by kernel<<<blocks, threads>>>(arguments)"
_DECLARE = "a kernel is declared __global__ void"
Error = tuple[int, str]  # a position in the text, and words


def check(files: Sequence[Parsed], kernels: Collection[str]) -> None:
    """KernelCompileError for what nvcc rejects; `kernels` are the names of all of them."""
    others = {name for each in files for name in each.structure.host_functions}
    errors = [*_of_one_side(files)]
    hints = dict[str, None]()
    for each in files:
        calls = list(_plain_calls(each, set(kernels) - others))
        launched = list(_launched(each, others - set(kernels)))
        hints |= {_LAUNCH: None} if calls else {}
        hints |= {_DECLARE: None} if launched else {}
        found = [*calls, *launched, *_in_functions(each)]
        errors += [(each, position, words) for position, words in found]
    if errors:
        lines = dict.fromkeys(
            f"{each.place(at)}: error: {words}\n    "
            + each.file.text.splitlines()[each.lines[at] - 1].strip()
            for each, at, words in errors
        )
        raise KernelCompileError(
            f"{files[0].file.label} does not compile:\n" + "\n".join(lines),
            hint="; ".join(hints) or None,
        )


def _of_one_side(files: Sequence[Parsed]) -> Iterator[tuple[Parsed, int, str]]:
    """What is the host's in device code, and what is the device's in host code."""
    macros = {macro.name for each in files for macro in each.macros}
    read = [nvcc_rules.File(each, macros) for each in files]
    each_file = [each.file for each in files]
    # Another source has its own functions of these names.
    seen = {i: included(each_file, i) for i in range(len(files))}
    for file, token, words in nvcc_rules.of_threads(read):
        yield files[read.index(file)], token.start, words
    for file, token, words in nvcc_rules.of_host(read, seen):
        if "leave out std::" in words:  # --expt-relaxed-constexpr may allow it
            continue
        if token.text in nvcc_rules.LIBRARY or not spelling.is_known(token.text):
            yield files[read.index(file)], token.start, words


def _plain_calls(each: Parsed, kernels: Collection[str]) -> Iterator[Error]:
    """Calls of kernels such as `kernel(a, n);`, of names that no other function has."""
    for node in each.root.of_kind("expression"):
        for call in node.children:
            if call.kind == "call" and call.children[0].kind == "name":
                name = call.children[0]
                if name.text in kernels and not types.is_local(name):
                    start = each.tokens[node.first].start
                    yield start, "a __global__ function call must be configured"


def _launched(each: Parsed, functions: Collection[str]) -> Iterator[Error]:
    """Launches of functions that are no kernels.

    They are defined as `void name(` with nothing in front that may be a misspelt __global__.
    """
    texts = ["", "", *each.words.texts]
    plain = {
        text
        for i, text in enumerate(texts[:-1])
        if texts[i - 1] == "void" and texts[i - 2] in _IN_FRONT and texts[i + 1] == "("
    }
    functions = plain.intersection(functions)
    for node in each.root.of_kind("launch"):
        name = node.children[0]
        if name.kind == "name" and name.text in functions and not types.is_local(name):
            yield each.tokens[name.first].start, f"{name.text} is launched, but is no kernel"


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


# What it no longer accepts, but works here, with a note -------------------------------------------


# What CUDA has removed and many old programs use, and what takes its place.
_WARP = "its form with a mask, such as __shfl_sync"
_REMOVED = {
    **{f"__{name}": _WARP for name in ("shfl", "shfl_up", "shfl_down", "shfl_xor")},
    **{f"__{name}": _WARP for name in ("any", "all", "ballot")},
    "thrust::unary_function": "no base class",
    "thrust::binary_function": "no base class",
    "thrust::identity": "cuda::std::identity",
    "cub::Sum": "cuda::std::plus<>",
    "cub::Max": "cuda::maximum<>",
    "cub::Min": "cuda::minimum<>",
    **{
        f"cub::{kind}InputIterator": f"thrust::{kind.lower()}_iterator"
        for kind in ("Counting", "Constant", "Transform")
    },
    **{
        f"cudaThread{old}": f"cudaDevice{new}"
        for old, new in (
            ("Synchronize", "Synchronize"),
            ("Exit", "Reset"),
            ("SetLimit", "SetLimit"),
            ("GetLimit", "GetLimit"),
            ("SetCacheConfig", "SetCacheConfig"),
            ("GetCacheConfig", "GetCacheConfig"),
        )
    },
}
_THRUST = re.compile(r"[ \t]*#[ \t]*include[ \t]*<thrust/")
_HELPER = re.compile(r'[ \t]*#[ \t]*include[ \t]*(["<]helper_\w+\.h[">])')


def tell(parsed: Sequence[Parsed]) -> None:
    """Print notes about what nvcc no longer accepts, and what replaces it."""
    own = {macro.name for each in parsed for macro in each.macros}
    own |= {name for each in parsed for name in each.structure.host_functions}
    for each in parsed:
        first: dict[str, dict[str, int]] = {}
        for name, start in _names(each.tokens):
            if name in _REMOVED and name not in own:
                first.setdefault(_REMOVED[name], {}).setdefault(name, start)
        for instead, names in first.items():
            place = each.place(next(iter(names.values())))
            note(f"{place}: nvcc 13 has no {', '.join(names)}: use {instead}")
        if helpers := _helpers(each):
            at, listed = each.place(next(iter(helpers.values()))), ", ".join(helpers)
            note(f"{at}: no {listed} of NVIDIA's samples here: cudalab brings its own")


def _helpers(parsed: Parsed) -> dict[str, int]:
    """The headers of NVIDIA's samples that a file includes, but that are not beside it."""
    found = {start for start, _ in parsed.file.includes}
    helpers: dict[str, int] = {}
    for directive in parsed.directives:
        header = _HELPER.match(directive.text)
        if header and directive.start + header.start(1) not in found:
            name = header[1][1:-1]
            if (OF_SAMPLES / name).is_file():
                helpers.setdefault(name, directive.start)
    return helpers


def _names(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """The names in the code, with the namespaces of Thrust and CUB, and their places."""
    for i, token in enumerate(tokens):
        space = tokens[i - 2].text if i > 1 and tokens[i - 1].text == "::" else ""
        yield f"{space}::{token.text}" if space in ("thrust", "cub") else token.text, token.start


def rewrite_references(files: Sequence[Parsed], *, tell: bool) -> None:
    """Turn `texture<float, 2> image;` into our class of that name, with a note on the first."""
    for parsed in files:
        for token in _references(parsed.tokens):
            parsed.replace(token.start, token.start, "::cudalab::")
            if tell:
                place = parsed.place(token.start)
                note(f"{place}: nvcc 12 and later refuse texture references: use texture objects")
            tell = False


def _references(tokens: list[Token]) -> list[Token]:
    """The names of the classes of references; none if the program has its own of that name."""
    used = []
    for i in range(len(tokens) - 1):
        if tokens[i].text not in ("texture", "surface") or tokens[i + 1].text != "<":
            continue
        before = tokens[i - 1].text if i else ""
        if before in ("struct", "class"):
            return []
        if before not in (".", "->", "::", ")", "]") and closing_angle(tokens, i + 1) is not None:
            used.append(tokens[i])
    return used


def include_thrust(files: Sequence[Parsed]) -> None:
    """Include the headers of Thrust that nvcc includes indirectly.

    They follow the last one that the file includes itself, or come first.
    """
    includes = [[x for x in each.directives if _THRUST.match(x.text)] for each in files]
    for each, own in zip(files, includes, strict=True):
        used = (name.partition("::") for name, _ in _names(each.tokens))
        names = {name for space, _, name in used if space == "thrust" and name}
        if not names or not any(includes):
            continue
        lines = "".join(f"#include <{header}>\n" for header in cccl.headers_of(names))
        if own and lines:
            end, behind = own[-1].end, each.lines[own[-1].start] + 1
            each.replace(end, end, f"\n{lines}#line {behind}")
        else:
            each.head += lines


# `__CUDA_ARCH__`, for the device's code only ------------------------------------------------------


_CONDITION = re.compile(r"[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b")
_BEGIN = re.compile(r"[ \t]*#[ \t]*if")
_END = re.compile(r"[ \t]*#[ \t]*endif")
_DEFINED = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)")
_ARCH = re.compile(r"\b__CUDA_ARCH__\b")
_NONE = "CUDALAB_NO_ARCH"
_IN_KERNEL = " if (::cudalab::cudalab_on_device()) {"


def rewrite_sides(files: Sequence[Parsed], *, tell: bool) -> None:
    """Give the host what nvcc gives it; what stays the device's is told by its line."""
    marks = {"__host__"}
    marks |= {macro.name for each in files for macro in each.macros if "__host__" in macro.words}
    used = set[str]()
    for each in files:
        texts, only = each.words.texts, set[int]()
        for _, body, is_both in _bodies(each, marks):
            only |= set() if is_both else set(range(body.first, body.last))
        inside = [(node.first, node.last) for node in each.root.of_kind("initializer")]
        inside += [(first, last + 1) for first, last in each.structure.functions]
        used |= {texts[i] for first, last in inside for i in range(first, last) if i not in only}
    for each in files:
        _out_of_host(each)
        lines = [*_of_both(each, marks, used), *_macros(each, used)]
        for line in sorted(lines) if tell else []:
            note(f"{each.file.label}:{line}: the host's code sees __CUDA_ARCH__ here as well")


def _bodies(each: Parsed, marks: set[str]) -> Iterator[tuple[scopes.Node, scopes.Node, bool]]:
    """The functions for the device: node, body, and whether they are for the host as well."""
    for node in each.bodies:
        body = next(child for child in node.children if child.kind == "block")
        yield node, body, bool(marks & set(each.words.texts[node.first : body.first]))


def _asking(each: Parsed, start: int, end: int) -> list[Token]:
    """The conditions with `__CUDA_ARCH__` between two positions."""
    return [
        directive
        for directive in each.directives
        if start < directive.start < end
        and _CONDITION.match(directive.text)
        and _ARCH.search(directive.text)
    ]


def _out_of_host(each: Parsed) -> None:
    """Take it out of functions for the host."""
    tokens = each.tokens
    own = [(tokens[i].start, tokens[j].end) for i, j in each.structure.functions if i < j]
    others = [(tokens[node.first].start, tokens[node.last - 1].end) for node in each.bodies]
    for directive in _asking(each, 0, len(each.file.text)):
        start = directive.start
        if any(a < start < b for a, b in own) and not any(a < start < b for a, b in others):
            for match in _ARCH.finditer(directive.text):
                each.replace(start + match.start(), start + match.end(), _NONE)


def _of_both(each: Parsed, marks: set[str], used: set[str]) -> Iterator[int]:
    """Write functions for both sides twice; the lines of those that stay as they are."""
    for node, body, is_both in _bodies(each, marks):
        start, end = each.tokens[body.first].end, each.tokens[body.last - 1].start
        asking = _asking(each, start, end)
        name = node.text.rpartition("::")[2]
        is_called = name in used or name.startswith("operator")
        if not (asking and is_both and is_called):
            continue
        if node.kind != "function" or "constexpr" in each.words.texts[node.first : body.first]:
            yield each.lines[asking[0].start]
            continue
        copied, at = "", start
        for directive in asking:
            copied += each.file.text[at : directive.start] + _ARCH.sub(_NONE, directive.text)
            at = directive.end
        copied += each.file.text[at:end]
        label = source.quoted(each.file.label)
        first, last = (f"\n#line {each.lines[place]} {label}\n" for place in (start, end))
        each.edits.append((start, start, _IN_KERNEL))
        each.edits.append((end, end, f"}} else {{{first}{copied}{last}}}"))


def _macros(each: Parsed, used: set[str]) -> Iterator[int]:
    """The lines of macros that only such a condition defines, and that the host uses."""
    depth, asks = 0, list[int]()
    for directive in each.directives:
        if _BEGIN.match(directive.text):
            depth += 1
            if _ARCH.search(directive.text):
                asks.append(depth)
        elif _END.match(directive.text):
            asks = [level for level in asks if level < depth]
            depth -= 1
        found = _DEFINED.match(directive.text)
        if found and asks and found[1] in used:
            yield each.lines[directive.start]
