"""Rewriting CUDA C++ for a host's compiler.

`k<<<grid, block>>>(args)` becomes a call, `extern __shared__` a pointer, and a device variable goes
to a section of its own. Lines keep their numbers; strings and comments are never changed.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from cudalab.backends.cpu.compiler.flags import stops_at_zero
from cudalab.errors import NoDeviceError
from cudalab.language import exact, local_variables, lockstep, macros, shared
from cudalab.language.scopes import BASIC, Node, Scope
from cudalab.language.tokens import Place, Token
from cudalab.program import refusals
from cudalab.program.files import File
from cudalab.program.rewrite import held, inline_ptx, launches, nvcc_ways, tiles, unchecked
from cudalab.program.rewrite.parsed import Parsed, read


def edited(
    files: Sequence[File],
    names: Sequence[str],
    *,
    refused: Counter[tuple[str, int]] | None = None,
    whole_tiles: bool = False,
    observed: bool = False,
) -> list[Parsed]:
    """The files with the edits that make them C++, to be stored under `names`.

    Conversions and shifts get a GPU's value where C++ defines none, but for the files and lines of
    `refused`, where the compiler takes none: their functions refuse to run. With `whole_tiles`, one
    lane runs for its warp what only multiplies fragments. What is `observed` has its local
    variables between zones.

    NoDeviceError for features that the CPU device lacks, if they can be recognised here.
    """
    lacking = refusals.Lacking()
    parsed = [Parsed(file, lacking) for file in files]
    scope = read(parsed)
    nvcc_ways.tell(() if refused else parsed)  # once, though the texts may be made again
    kernels = launches.known(parsed)
    nvcc_ways.check(parsed, kernels.references.keys())
    nvcc_ways.rewrite_references(parsed, tell=not refused)
    nvcc_ways.rewrite_sides(parsed, tell=not refused)
    nvcc_ways.include_thrust(parsed)
    pasted = inline_ptx.Pasted(parsed)
    for each in parsed:
        _note_missing(each, lacking)
        for (start, end), index in each.file.includes.items():
            each.replace(start, end, f'"{names[index]}"')
        _rewrite_variables(each)
        _rewrite_empty(each)
        launches.enlist(each, kernels)
        unchecked.rewrite(each)
        inline_ptx.rewrite(each, each.tokens, pasted)
        launches.rewrite(each, each.root, each.words, kernels)
        for macro in each.macros:
            if any(token.text == "<" for token in macro.tokens):
                words, body = macros.read_body(macro, scope)
                launches.rewrite(each, body, words, kernels, macro)
            inline_ptx.rewrite(each, macro.tokens, pasted)
        each.edits += shared.edits(each, scope)
    if lacking:
        raise refusal(lacking, parsed)
    for each, edits in zip(parsed, lockstep.edits(parsed), strict=True):
        for edit in edits:  # the lanes of warps move in step where a kernel relies on it
            each.replace(*edit)
    if whole_tiles:
        tiles.rewrite(parsed, scope)
    if observed:
        _rewrite_observed(parsed, scope, refused or Counter())
    else:
        _rewrite_arithmetic(parsed, scope, refused or Counter())
        held.rewrite(parsed, scope)
    return parsed


# Edits -------------------------------------------------------------------------------------------


def _rewrite_variables(parsed: Parsed) -> None:
    for i in parsed.structure.variables:
        token = parsed.tokens[i]
        kind = token.text.strip("_").upper()  # DEVICE, CONSTANT or MANAGED
        parsed.replace(token.start, token.end, f"CUDALAB_{kind}_DATA")
    for tokens in (parsed.tokens, *(macro.tokens for macro in parsed.macros)):
        for i, token in enumerate(tokens):
            if token.text == "__noinline__" and (i == 0 or tokens[i - 1].text != "("):
                parsed.replace(token.start, token.end, "__attribute__((noinline))")


def _rewrite_empty(parsed: Parsed) -> None:
    """Remove `int ;` in functions, which nvcc accepts."""
    tokens, texts = parsed.tokens, parsed.words.texts
    for first, last in parsed.structure.functions:
        for i in range(first + 1, last - 1):
            if texts[i] in BASIC and texts[i + 1] == ";" and texts[i - 1] in (";", "{", "}"):
                parsed.replace(tokens[i].start, tokens[i].end, "")


def _rewrite_observed(
    files: Sequence[Parsed], scope: Scope, refused: Counter[tuple[str, int]]
) -> None:
    """Give kernels a GPU's arithmetic, and their local variables zones.

    Where the compiler refuses something it is the zones that go first.
    """
    made = [local_variables.edits(each, each.line_of, refused) for each in files]
    blamed = Counter(place for _, places in made for place in places)
    _rewrite_arithmetic(files, scope, refused - blamed)
    for each, (edits, _) in zip(files, made, strict=True):
        for edit in edits:
            each.replace(*edit)


def _rewrite_arithmetic(files: Sequence[Parsed], scope: Scope, refused: Counter[Place]) -> None:
    """Give conversions and shifts in device code a GPU's results, unless an edit is in the way.

    `refused` are files and lines where the compiler refuses that, and how often: statements there
    get other edits, if there are any; else they stay as they are, and their functions refuse to
    run.
    """
    macros_of_all = [macro for each in files for macro in each.macros]
    code = exact.Exact(files, macros_of_all, scope, divisions=not stops_at_zero())
    for each in files:
        made = list(each.edits)
        for edit in code.edits(each, made, partial(_lines, each), refused):
            each.replace(*edit)
        for macro, text in code.twins(each.macros, each.file.text, made):
            line = f"\n#line {each.lines[macro.end] + 1}"
            each.edits.append((macro.end, macro.end, text + line))
        each.head += exact.defaults(code.doubled)


def _lines(each: Parsed, statement: Node) -> list[Place]:
    first = each.lines[each.words.tokens[statement.first].start]
    last = each.lines[each.words.tokens[statement.last - 1].start]
    return [(each.file.label, line) for line in range(first, last + 1)]


# Features that the device lacks ------------------------------------------------------------------


_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]')
_CONDITION = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|endif)\b")


def refusal(lacking: refusals.Lacking, parsed: Sequence[Parsed]) -> NoDeviceError:
    """The error for a program that lacks a feature; it lists everything else that is missing."""
    only = re.compile("|".join(each.names for each in refusals.MISSING if each.names))
    for each in parsed:
        _note_missing(each, lacking)
        counts, seen = _unconditional(each.directives), set[str]()
        for token in each.tokens:
            if token.kind == "name" and token.text not in seen and counts(token.start):
                seen.add(token.text)
                if only.fullmatch(token.text):
                    lacking.add_name(token.text, each.place(token.start))
    return lacking.error()


def _note_missing(parsed: Parsed, lacking: refusals.Lacking) -> None:
    """Record what a compiler does not tell well that a file needs and the device lacks.

    That is NVIDIA's headers, and `__cluster_dims__`, which compilers do not take for an attribute.
    """
    own = {start for start, _ in parsed.file.includes}
    counts = _unconditional(parsed.directives)
    for directive in parsed.directives:
        header, at = _INCLUDE.match(directive.text), directive.start
        if not header or not counts(at) or at + header.start(1) - 1 in own:
            continue
        if refusals.is_missing_header(header[1]):
            lacking.add_header(header[1], parsed.place(at))
    for token in parsed.tokens:
        if token.text == "__cluster_dims__" and counts(token.start):
            lacking.add_name(token.text, parsed.place(token.start))


def _unconditional(directives: Sequence[Token]) -> Callable[[int], bool]:
    """A function that tells whether a position lies under no condition of the preprocessor.

    The others are left to the compiler. (An #ifndef is usually an include guard.)
    """
    begins, depths = [0], [0]
    open_: list[bool] = []
    for directive in directives:
        condition = _CONDITION.match(directive.text)
        if not condition:
            continue
        if condition[1] == "endif":
            open_ = open_[:-1]
        else:
            open_.append(condition[1] != "ifndef")
        begins.append(directive.start)
        depths.append(sum(open_))
    return lambda position: depths[bisect_right(begins, position) - 1] == 0
