"""Rewriting CUDA C++ for a host's compiler.

`k<<<grid, block>>>(args)` becomes a call, `extern __shared__` a pointer, and a device variable goes
to a section of its own. Lines keep their numbers; strings and comments are never changed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cudalab.language import lockstep
from cudalab.language.device_functions import File as Functions
from cudalab.language.rewrite import dynamic_shared
from cudalab.language.tokens import (
    Token,
    closing,
    closing_angle,
    opening,
    opening_angle,
    tokenize,
)
from cudalab.output.notes import note
from cudalab.program import assembly, exact_arithmetic, qualified, removed, tiles, trees
from cudalab.program.calls import refuse_plain_calls
from cudalab.program.parsed import Launch, Parsed, parse
from cudalab.program.pasted import Pasted
from cudalab.program.refusals import (
    Lacking,
    headers_of,
    is_missing_header,
    names_used,
    unconditional,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.errors import NoDeviceError
    from cudalab.language.structure import Kernel
    from cudalab.program.files import File

_DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+(?P<params>\([^)]*\))?")
_NO_KERNELS = frozenset({"return", "else", "do", "case", "goto", "new", "delete", "throw"})


@dataclass(frozen=True, kw_only=True)
class _Known:
    """The kernels of all files, by what a launch needs to know of them."""

    exact: set[str]  # names that stand for one kernel, whose arguments are all given
    defaults: set[str]  # names of kernels with default arguments
    references: dict[str, set[int]]  # `references` of a kernel's declarations
    qualified: dict[str, str]  # kernels whose names have a second meaning, as expressions


def rewrite(
    files: Sequence[File],
    names: Sequence[str],
    *,
    refused: Counter[tuple[str, int]] | None = None,
) -> list[str]:
    """The texts to compile in place of `files`, to be stored under `names`: `edited`, as text."""
    return [each.rewritten() for each in edited(files, names, refused=refused)]


def edited(
    files: Sequence[File],
    names: Sequence[str],
    *,
    refused: Counter[tuple[str, int]] | None = None,
    whole_tiles: bool = False,
) -> list[Parsed]:
    """The files with the edits that make them C++, to be stored under `names`.

    Conversions and shifts get a GPU's value where C++ defines none, but for the files and lines of
    `refused`, where the compiler takes none: their functions refuse to run. With `whole_tiles`, one
    lane runs for its warp what only multiplies fragments.

    NoDeviceError for features that the CPU device lacks, if they can be recognised here.
    """
    parsed = [parse(file) for file in files]
    read = trees.read(parsed)
    removed.tell(() if refused else parsed)  # once, though the texts may be made again
    kernels: dict[str, list[Kernel]] = {}
    for each in parsed:
        for kernel in each.structure.kernels:
            kernels.setdefault(kernel.name, []).append(kernel)
    host_functions = {name for each in parsed for name in each.structure.host_functions}
    plain = {
        name
        for name, declared in kernels.items()
        if name not in host_functions
        and not any(kernel.is_template for kernel in declared)
        and len({kernel.signature for kernel in declared}) == 1
    }
    refuse_plain_calls(parsed, kernels.keys() - host_functions)
    templates = {
        name for name, declared in kernels.items() if any(kernel.is_template for kernel in declared)
    }
    defaults = {
        name for name, declared in kernels.items() if any(each.has_defaults for each in declared)
    }
    known = _Known(
        exact=plain - defaults,
        defaults=defaults,
        references={
            name: {kernel.references for kernel in declared} for name, declared in kernels.items()
        },
        qualified=qualified.kernels(parsed, plain, templates),
    )
    _rewrite_references(parsed, tell=not refused)
    pasted = Pasted(parsed)
    for each in parsed:
        _check_headers(each)
        _check_clusters(each)
        removed.include_thrust(each)
        assembly.rewrite(each, each.tokens, pasted)
        _rewrite_includes(each, names)
        _rewrite_variables(each)
        _rewrite_alignment(each)
        _rewrite_shared(each, each.tokens)
        _enlist_kernels(each, plain, templates, known.qualified)
        _rewrite_launches(each, each.tokens, known, {})
        for directive in each.directives:
            _rewrite_macro(each, directive, known, pasted)
    lacking = Lacking()
    for each in parsed:
        lacking.take(each.lacking)
    if lacking:
        raise refusal(lacking, parsed)
    _rewrite_steps(parsed)
    if whole_tiles:
        tiles.rewrite(parsed, read)
    exact_arithmetic.rewrite(parsed, read, refused or Counter())
    return parsed


def refusal(lacking: Lacking, parsed: Sequence[Parsed]) -> NoDeviceError:
    """The error for a program that lacks something; it names all else that is missing, too."""
    for each in parsed:
        for header, start in headers_of(each.file.includes, each.directives):
            if is_missing_header(header):
                lacking.add_header(header, each.place(start))
        for name, start in names_used(each.tokens, each.directives):
            lacking.add_name(name, each.place(start))
    return lacking.error()


# Features that the device lacks ------------------------------------------------------------------


def _check_headers(parsed: Parsed) -> None:
    for header, start in headers_of(parsed.file.includes, parsed.directives):
        if is_missing_header(header):
            parsed.lacking.add_header(header, parsed.place(start))


def _check_clusters(parsed: Parsed) -> None:
    """Note `__cluster_dims__`, which compilers do not know for an attribute."""
    counts = unconditional(parsed.directives)
    for token in parsed.tokens:
        if token.text == "__cluster_dims__" and counts(token.start):
            parsed.lacking.add_name(token.text, parsed.place(token.start))


# Edits -------------------------------------------------------------------------------------------


def _rewrite_includes(parsed: Parsed, names: Sequence[str]) -> None:
    for (start, end), index in parsed.file.includes.items():
        parsed.replace(start, end, f'"{names[index]}"')


def _rewrite_variables(parsed: Parsed) -> None:
    for i in parsed.structure.variables:
        token = parsed.tokens[i]
        kind = token.text.strip("_").upper()  # DEVICE, CONSTANT or MANAGED
        parsed.replace(token.start, token.end, f"CUDALAB_{kind}_DATA")
    for i, token in enumerate(parsed.tokens):
        if token.text == "__noinline__" and (i == 0 or parsed.tokens[i - 1].text != "("):
            parsed.replace(token.start, token.end, "__attribute__((noinline))")


def _rewrite_alignment(parsed: Parsed) -> None:
    """Turn `__shared__ alignas(n)` into `alignas(n) __shared__`, the order that g++ wants."""
    tokens = parsed.tokens
    for i in range(len(tokens) - 2):
        if (tokens[i].text, tokens[i + 1].text) == ("__shared__", "alignas"):
            end = closing(tokens, i + 2)
            if end is not None:
                alignment = parsed.file.text[tokens[i + 1].start : tokens[end].end]
                parsed.replace(tokens[i].start, tokens[end].end, f"{alignment} __shared__")


def _rewrite_references(files: Sequence[Parsed], *, tell: bool) -> None:
    """Turn `texture<float, 2> image;` into our class of that name, and tell of the first."""
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


def _rewrite_shared(parsed: Parsed, tokens: list[Token]) -> None:
    """Write shared variables as the host's compiler takes them."""
    _rewrite_dynamic_shared(parsed, tokens)
    for one, other in pairwise(tokens):
        if {one.text, other.text} == {"static", "__shared__"}:  # which is static by itself
            static = one if one.text == "static" else other
            parsed.replace(static.start, static.end, "")


def _rewrite_dynamic_shared(parsed: Parsed, tokens: list[Token]) -> None:
    """Turn `extern __shared__ T name[];` into a pointer to the memory of the launch."""
    in_macro = tokens is not parsed.tokens  # which may leave the semicolon to its user
    for i, token in enumerate(tokens):
        if token.text != "extern":
            continue
        start = i
        while start and tokens[start - 1].text not in (";", "{", "}", ")", ":"):
            start -= 1
        end = i
        while end < len(tokens) and tokens[end].text not in (";", "{"):
            end += 1
        in_function = in_macro or any(
            first < i < last for first, last in parsed.structure.functions
        )
        pointer = dynamic_shared(tokens[start:end], in_function=in_function)
        if pointer is None:
            continue
        if end < len(tokens):
            after = tokens[end].end
        elif in_macro:
            pointer, after = pointer.removesuffix(";"), tokens[-1].end
        else:
            continue
        parsed.replace(tokens[start].start, after, pointer, "\\\n" if in_macro else "\n")


def _rewrite_steps(parsed: Sequence[Parsed]) -> None:
    """Let the lanes of warps move in step where a kernel counts on it."""
    files = [
        Functions(each.tokens, each.directives, each.structure.device_functions) for each in parsed
    ]
    for each, edits in zip(parsed, lockstep.edits(files), strict=True):
        for edit in edits:
            each.replace(*edit)


def _enlist_kernels(
    parsed: Parsed, plain: set[str], templates: set[str], expressions: dict[str, str]
) -> None:
    """Register the kernels with the runtime, which looks them up by address."""
    for kernel in parsed.structure.kernels:
        if kernel.body_end is not None and kernel.name in plain:
            bounds = f", (unsigned)({kernel.bounds})" if kernel.bounds else ""
            written = expressions.get(kernel.name, f"{kernel.scope}{kernel.name}")
            parsed.replace(
                kernel.body_end,
                kernel.body_end,
                f" static ::cudalab::cudalab_kernel cudalab_enlisted_{kernel.name}_{kernel.line}"
                f'({written}, "{kernel.name}"{bounds});',
            )
    tokens = parsed.tokens
    for start, end in parsed.structure.functions:
        for i in range(start, end):
            if tokens[i].text not in templates or tokens[i + 1].text != "<":
                continue
            angle = closing_angle(tokens, i + 1)
            if angle is None or tokens[angle + 1].text in ("<", "("):
                continue
            first = i - 1 if tokens[i - 1].text == "&" else i
            written = parsed.file.text[tokens[first].start : tokens[angle].end]
            name = _quoted(parsed.file.text[tokens[i].start : tokens[angle].end])
            parsed.replace(
                tokens[first].start,
                tokens[angle].end,
                f"::cudalab::cudalab_enlisted({written}, {name})",
            )


def _rewrite_macro(parsed: Parsed, directive: Token, known: _Known, pasted: Pasted) -> None:
    """Rewrite launches, inline PTX and dynamic shared memory in the body of a #define."""
    match = _DEFINE.match(directive.text)
    if match is None or not re.search("<<<|__shared__|asm", directive.text):
        return
    offset = directive.start + match.end()
    body = [
        token._replace(start=token.start + offset, end=token.end + offset)
        for token in tokenize(directive.text[match.end() :])
    ]
    names = re.findall(r"\w+", match["params"] or "")
    assembly.rewrite(parsed, body, pasted)
    _rewrite_shared(parsed, body)
    _rewrite_launches(parsed, body, known, {name: f"#{name}" for name in names})


# Launches ----------------------------------------------------------------------------------------


def _rewrite_launches(
    parsed: Parsed, tokens: list[Token], known: _Known, quoted: dict[str, str]
) -> None:
    """Turn `k<<<config>>>(args)` into cudalab_typed_call(k, call of k, "k", config)(args).

    A kernel that may be overloaded or a template is launched by cudalab_any_call. Pointers have no
    call.
    """
    for i in range(1, len(tokens) - 2):
        if any(tokens[i + j].text != "<" for j in range(3)):
            continue
        if tokens[i - 1].text == "operator" or tokens[i - 1].text == "<":
            continue
        if tokens[i + 1].start != tokens[i].end:
            continue
        begin = _kernel_expression(tokens, i - 1)
        end = _end_of_configuration(tokens, i + 3)
        if begin is None or end is None:
            continue
        kernel = " ".join(parsed.file.text[tokens[begin].start : tokens[i - 1].end].split())
        kernel = kernel.replace(" \\ ", " ")
        name = quoted.get(kernel) or _quoted(kernel)
        template = tokens[begin].text
        if known.qualified.get(template) == f"::{template}" and not qualified.is_hidden(
            template, _function(parsed, tokens[begin:i])
        ):
            kernel = f"::{kernel}"
        launch = _launch(parsed, tokens[begin:i], kernel, known)
        if "cudalab_any_call" in launch and tokens is parsed.tokens:
            last = (opening_angle(tokens, i - 1) or 1) if tokens[i - 1].text == ">" else i
            where = Launch(
                edit=len(parsed.edits),
                kernel=kernel,
                name=tokens[last - 1].text,
                position=tokens[begin].start,
            )
            parsed.launches.append(where)
        parsed.replace(
            tokens[begin].start,
            tokens[i + 2].end,
            f"{launch}, {name}, ::cudalab::cudalab_config(",
            "\n" if tokens is parsed.tokens else "\\\n",
        )
        parsed.replace(tokens[end].start, tokens[end + 2].end, "))")


def _launch(parsed: Parsed, tokens: list[Token], kernel: str, known: _Known) -> str:
    """The beginning of a launch, as far as it depends on what is known of the kernel."""
    if _is_pointer(tokens):
        return f"::cudalab::cudalab_typed_call({kernel}"  # evaluated at the launch
    call = f"[=](auto&... cudalab_a) CUDALAB_CLOSURE {{ {kernel}(cudalab_a...); }}"
    if kernel.removeprefix("::") in known.exact:
        if kernel in known.qualified and not qualified.is_hidden(kernel, _function(parsed, tokens)):
            kernel = known.qualified[kernel]
            call = f"[=](auto&... cudalab_a) CUDALAB_CLOSURE {{ ({kernel})(cudalab_a...); }}"
        return f"::cudalab::cudalab_typed_call({kernel}, {call}"
    last = len(tokens) - 1
    if tokens[last].text == ">":
        last = (opening_angle(tokens, last) or 1) - 1
    name = tokens[last].text
    references, *others = known.references.get(name, {0})
    if others:
        parsed.lacking.add("references of overloaded kernels", parsed.place(tokens[0].start))
    if name not in known.defaults:
        typed = f"[=](auto cudalab_t) -> decltype(cudalab_t({kernel}))"
        call = f"{typed} {{ return cudalab_t({kernel}); }}, {call}"
    return f"::cudalab::cudalab_any_call{f'<{references}>' if references else ''}({call}"


def _function(parsed: Parsed, place: list[Token]) -> list[Token]:
    """The tokens of the function around a place, with its parameters."""
    for start, end in parsed.structure.functions:
        if parsed.tokens[start].start < place[0].start < parsed.tokens[end].end:
            head = start
            while head and parsed.tokens[head - 1].text not in (";", "}"):
                head -= 1
            return parsed.tokens[head:end]
    return []


def _kernel_expression(tokens: list[Token], last: int) -> int | None:
    """The index where the expression that ends at `last`, before `<<<`, begins."""
    i = last
    while i >= 0:
        start: int | None = i
        if tokens[i].text == ">":
            start = opening_angle(tokens, i)
            start = None if start is None else start - 1
        elif tokens[i].text in (")", "]"):
            start = opening(tokens, i)
            if start and (tokens[start - 1].text in (")", "]") or _is_operand(tokens[start - 1])):
                i = start - 1
                continue
        elif not _is_operand(tokens[i]):
            return None
        if start is None or start < 0:
            return None
        i = start
        if i and tokens[i - 1].text == "::":
            if i > 1 and (_is_operand(tokens[i - 2]) or tokens[i - 2].text == ">"):
                i -= 2
                continue
            return i - 1
        if i > 1 and tokens[i - 1].text in (".", "->"):
            i -= 2
            continue
        return i
    return None


def _is_pointer(tokens: list[Token]) -> bool:
    """Whether an expression is a value, not a kernel's name: `(*p)`, `table[i]`, `x.kernel`."""
    if tokens[-1].text in (")", "]"):
        return True
    return any(token.text in (".", "->") for token in tokens[:-1])


def _is_operand(token: Token) -> bool:
    return token.kind == "name" and token.text not in _NO_KERNELS


def _end_of_configuration(tokens: list[Token], start: int) -> int | None:
    """The index of the first of the three `>` before the arguments."""
    i = start
    while i + 3 < len(tokens):
        text = tokens[i].text
        if text in ("(", "[", "{"):
            end = closing(tokens, i)
            if end is None:
                return None
            i = end
        elif text in (")", "]", "}", ";"):
            return None
        elif all(tokens[i + j].text == ">" for j in range(3)) and tokens[i + 3].text == "(":
            return i
        i += 1
    return None


def _quoted(text: str) -> str:
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') + '"'
