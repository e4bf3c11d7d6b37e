"""Checks for code in a kernel file that nvcc rejects and a host's C++ compiler accepts.

A host's compiler knows only one kind of function, one kind of variable, and no limits on memory.
Only certain errors are reported here: anything that macros, templates or preprocessor conditions
may change is left to nvcc.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cudalab.errors import KernelCompileError
from cudalab.language.source import blank_comments, place
from cudalab.language.structure import kind_of_brace, top_level, without_template
from cudalab.language.tokens import CLOSING, OPENING, Token, closing, tokenize
from cudalab.system import elf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cudalab.language.source import Source

MAX_STATIC_SHARED = 48 << 10  # bytes of a kernel's __shared__ variables

_INITIALIZED_SHARED = re.compile(
    r"\b__shared__\b(?:[^;{}()\[\]=]|\([^()]*\)|\[[^\[\]]*\])*?(?:(?<=\])\s*\{|(?<![=!<>])=(?!=))"
)
_CHANGES = re.compile(r"\s*#\s*(?!pragma\b|line\b)")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
_ON_DEVICE = frozenset({"__global__", "__device__", "__constant__", "__managed__", "__shared__"})
# Words that make a declaration something other than a plain function or variable.
_NOT_PLAIN = frozenset(
    {"template", "constexpr", "consteval", "constinit", "operator", "using", "typedef", "friend"}
    | {"static_assert", "struct", "class", "union", "enum", "concept", "namespace", "asm"}
)
# After these words a name is used; after any other word it is declared.
_BEFORE_A_USE = frozenset({"return", "else", "case", "do", "goto", "throw", "and", "or", "not"})
# Functions of the C++ library for the host only, unlike its mathematical functions.
_ALGORITHMS = frozenset({"min", "max", "clamp", "swap", "sort", "fill", "copy", "accumulate"})


def check(source: Source, defines: Mapping[str, str | int], library: Path) -> None:
    """Raise KernelCompileError if nvcc would reject `source`, which `library` was compiled from."""
    errors = [
        *_host_only(source.text, {name for name, value in defines.items() if "__" in str(value)}),
        *_initialized_shared(source.text),
        *_too_much_shared(source, library),
    ]
    if errors:
        raise KernelCompileError(
            "nvcc would reject the kernel:\n" + "\n".join(errors),
            hint="the host's compiler accepts it, but a GPU's does not",
        )


def _symbols(library: Path) -> list[elf.Symbol]:
    """The library's symbols; none if its format is that of another system."""
    with suppress(OSError):
        return elf.symbols(library)
    return []


# Shared memory -----------------------------------------------------------------------------------


def _initialized_shared(text: str) -> Iterator[str]:
    for match in _INITIALIZED_SHARED.finditer(blank_comments(text)):
        at = place(text, match.start())
        yield f"{at}: error: a __shared__ variable cannot have an initial value"


def _too_much_shared(source: Source, library: Path) -> Iterator[str]:
    """Add up each kernel's __shared__ variables: thread-local symbols _ZZ<kernel>E<variable>."""
    variables = [symbol for symbol in _symbols(library) if symbol.is_thread_local]
    for name in source.kernels:
        prefix = f"_ZZ{len(name)}{name}E"
        used = sum(symbol.num_bytes for symbol in variables if symbol.name.startswith(prefix))
        if used > MAX_STATIC_SHARED:
            yield (
                f"{source.label}: error: kernel {name} has {used:,} bytes of __shared__ variables: "
                f"at most {MAX_STATIC_SHARED:,} are allowed; use extern __shared__ for more"
            )


# Functions and variables of the host -------------------------------------------------------------


@dataclass
class _Names:
    """The names that a file declares outside functions and classes."""

    functions: set[str] = field(default_factory=set)  # of the host
    variables: set[str] = field(default_factory=set)  # of the host
    others: set[str] = field(default_factory=set)  # declared in any other way
    device_code: list[tuple[int, int]] = field(default_factory=list)  # parameters and body


def _host_only(text: str, macros: set[str]) -> Iterator[str]:
    """Report host functions and variables that plain kernels and device functions use."""
    tokens = tokenize(text)
    macros |= {m[1] for t in tokens if t.kind == "directive" and (m := _MACRO.match(t.text))}
    names = _declared(tokens, macros)
    functions = names.functions - names.others - macros
    variables = names.variables - names.others - macros
    host_names = functions | variables | {"std"}
    for start, end in names.device_code:
        uses = [i for i in range(start, end) if tokens[i].text in host_names]
        local = {tokens[i].text for i in uses if _is_declared(tokens, i)}
        for i in uses:
            name, after = tokens[i].text, tokens[i + 1].text
            if name in local or not _is_evaluated(tokens, i):
                continue
            at = f"{place(text, tokens[i].start)}: error:"
            if name in functions and after == "(":
                yield f"{at} calls {name}, a host function: declare it __device__"
            elif name in variables:
                yield f"{at} uses {name}, a host variable: declare it __device__ or __constant__"
            elif name == "std" and tokens[i + 2].text in _ALGORITHMS and tokens[i + 3].text == "(":
                called = tokens[i + 2].text
                yield f"{at} calls std::{called}, a host function: leave out std::"


def _declared(tokens: list[Token], macros: set[str]) -> _Names:
    """Walk over the declarations outside functions and classes."""
    names = _Names()
    start = i = 0
    while i < len(tokens):
        text = tokens[i].text
        if tokens[i].kind == "directive" and start == i:
            start = i + 1
        elif text == ";":
            _note(tokens, start, i, None, macros, names)
            start = i + 1
        elif text == "}":
            start = i + 1
        elif text == "{":
            kind = kind_of_brace(tokens, start, i)
            end = i if kind == "namespace" else closing(tokens, i)
            if end is None:
                break
            if kind == "function":
                _note(tokens, start, i, end, macros, names)
            if kind in ("namespace", "function"):
                start = end + 1
            i = end
        i += 1
    return names


def _note(
    tokens: list[Token], start: int, end: int, body_end: int | None, macros: set[str], names: _Names
) -> None:
    """Add the declaration in tokens[start:end], which a function's body may follow."""
    top = top_level(tokens, without_template(tokens, start, end), end)
    first = next((i for i in top if tokens[i].text in ("(", "=", "[", "{", ",")), end)
    name, follows = tokens[first - 1], tokens[first].text
    if first - start < 2 or name.kind != "name" or tokens[first - 2].text == "::":
        return
    words = {token.text for token in tokens[start:end]}
    in_front = {token.text for token in tokens[start : first - 1]}
    plain = not (words & _NOT_PLAIN or in_front & macros or _may_change(tokens, start, end))
    if not plain or words & _ON_DEVICE:
        names.others.add(name.text)
    elif follows == "(" and body_end:
        names.functions.add(name.text)
    elif follows == "[" or (follows != "(" and not words & {"const", "extern"}):
        names.variables.add(name.text)
    on_device = words & {"__global__", "__device__"} and "__host__" not in words
    if plain and on_device and body_end and not _may_change(tokens, end, body_end):
        names.device_code.append((first, body_end))


def _may_change(tokens: list[Token], start: int, end: int) -> bool:
    """Whether a preprocessor condition or a macro may change tokens[start:end]."""
    return any(t.kind == "directive" and _CHANGES.match(t.text) for t in tokens[start:end])


def _is_declared(tokens: list[Token], i: int) -> bool:
    """Whether tokens[i] may be the name in a declaration."""
    before = tokens[i - 1]
    if before.kind == "name":
        return before.text not in _BEFORE_A_USE
    if before.text in ("*", "&", ">"):
        return tokens[i - 2].kind == "name" or tokens[i - 2].text in ("*", "&", ">")
    if before.text in (",", "["):
        within = _enclosing(tokens, i)
        return tokens[within].text == "{" or tokens[within - 1].text in ("for", "auto", "&")
    return False


def _enclosing(tokens: list[Token], i: int) -> int:
    """The index of the bracket that encloses tokens[i]."""
    depth = 0
    while i > 0:
        i -= 1
        depth += (tokens[i].text in CLOSING) - (tokens[i].text in OPENING)
        if depth < 0:
            break
    return i


def _is_evaluated(tokens: list[Token], i: int) -> bool:
    """Whether tokens[i] is evaluated: not a member, not qualified, and no operand of `sizeof`."""
    unevaluated = ("sizeof", "decltype", "alignof")
    if tokens[i - 1].text in (".", "->", "::", *unevaluated):
        return False
    return tokens[_enclosing(tokens, i) - 1].text not in unevaluated
