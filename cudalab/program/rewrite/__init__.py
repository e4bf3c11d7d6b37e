"""Rewriting CUDA C++ for a host's compiler.

`k<<<grid, block>>>(args)` becomes a call, `extern __shared__` a pointer, and a device variable goes
to a section of its own. Lines keep their numbers; strings and comments are never changed.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from cudalab.backends.cpu.flags import stops_at_zero
from cudalab.errors import NoDeviceError
from cudalab.language import exact, local_variables, lockstep, macros, shared
from cudalab.language.scopes import BASIC, Node, Scope
from cudalab.language.source import quoted
from cudalab.language.tokens import Place, Token, closing_angle
from cudalab.output.notes import note
from cudalab.program import refusals
from cudalab.program.files import File
from cudalab.program.rewrite import held, inline_ptx, launches, nvcc_ways, tiles, unchecked
from cudalab.program.rewrite.launches import Known, short_name
from cudalab.program.rewrite.parsed import Launch, Parsed, read


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
    parsed = [Parsed(file) for file in files]
    scope = read(parsed)
    nvcc_ways.tell(() if refused else parsed)  # once, though the texts may be made again
    kernels = launches.known(parsed)
    nvcc_ways.check(parsed, kernels.references.keys())
    _rewrite_references(parsed, tell=not refused)
    nvcc_ways.rewrite_sides(parsed, tell=not refused)
    pasted = inline_ptx.Pasted(parsed)
    for each in parsed:
        _note_headers(each, each.lacking)
        _check_clusters(each)
        nvcc_ways.include_thrust(each)
        for (start, end), index in each.file.includes.items():
            each.replace(start, end, f'"{names[index]}"')
        _rewrite_variables(each)
        _rewrite_empty(each)
        _enlist_kernels(each, kernels)
        unchecked.rewrite(each)
        inline_ptx.rewrite(each, each.tokens, pasted)
        launches.rewrite(each, each.root, each.words, kernels)
        for macro in each.macros:
            if any(token.text == "<" for token in macro.tokens):
                words, body = macros.read_body(macro, scope)
                launches.rewrite(each, body, words, kernels, macro)
            inline_ptx.rewrite(each, macro.tokens, pasted)
        each.edits += shared.edits(each, scope)
    lacking = refusals.Lacking()
    for each in parsed:
        lacking.take(each.lacking)
    if lacking:
        raise refusal(lacking, parsed)
    _rewrite_steps(parsed)
    if whole_tiles:
        tiles.rewrite(parsed, scope)
    if observed:
        _rewrite_observed(parsed, scope, refused or Counter())
    else:
        _rewrite_arithmetic(parsed, scope, refused or Counter())
        held.rewrite(parsed, scope)
    return parsed


def refusal(lacking: refusals.Lacking, parsed: Sequence[Parsed]) -> NoDeviceError:
    """The error for a program that lacks a feature; it lists everything else that is missing."""
    for each in parsed:
        _note_headers(each, lacking)
        for name, start in refusals.names_used(each.tokens, each.directives):
            lacking.add_name(name, each.place(start))
    return lacking.error()


# Features that the device lacks ------------------------------------------------------------------


def _note_headers(parsed: Parsed, lacking: refusals.Lacking) -> None:
    """Record NVIDIA's headers that a file includes and the device lacks."""
    for header, start in refusals.headers_of(parsed.file.includes, parsed.directives):
        if refusals.is_missing_header(header):
            lacking.add_header(header, parsed.place(start))


def _check_clusters(parsed: Parsed) -> None:
    """Record `__cluster_dims__`, which compilers do not recognise as an attribute."""
    counts = refusals.unconditional(parsed.directives)
    for token in parsed.tokens:
        if token.text == "__cluster_dims__" and counts(token.start):
            parsed.lacking.add_name(token.text, parsed.place(token.start))


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


def _rewrite_references(files: Sequence[Parsed], *, tell: bool) -> None:
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
        each.head = exact.defaults(code.doubled)


def _lines(each: Parsed, statement: Node) -> list[Place]:
    first = each.lines[each.words.tokens[statement.first].start]
    last = each.lines[each.words.tokens[statement.last - 1].start]
    return [(each.file.label, line) for line in range(first, last + 1)]


def _rewrite_steps(parsed: Sequence[Parsed]) -> None:
    """Make the lanes of warps move in step where a kernel relies on it."""
    for each, edits in zip(parsed, lockstep.edits(parsed), strict=True):
        for edit in edits:
            each.replace(*edit)


def _enlist_kernels(parsed: Parsed, of: Known) -> None:
    """Register the kernels with the runtime, which looks them up by address."""
    for kernel in parsed.structure.kernels:
        if kernel.body_end is not None and kernel.name in of.plain:
            bounds = f", (unsigned)({kernel.bounds})" if kernel.bounds else ""
            written = of.qualified.get(kernel.name, f"{kernel.scope}{kernel.name}")
            parsed.replace(
                kernel.body_end,
                kernel.body_end,
                f" static ::cudalab::cudalab_kernel cudalab_enlisted_{kernel.name}_{kernel.line}"
                f'({written}, "{kernel.name}"{bounds});',
            )
    called = {each.children[0] for each in parsed.root.of_kind("call", "launch")}
    for node in parsed.root.of_kind("name"):  # instances of templates whose address is taken
        tokens = parsed.tokens[node.first : node.last]
        if node not in called and tokens[-1].text == ">" and short_name(node) in of.templates:
            name = parsed.file.text[tokens[0].start : tokens[-1].end]
            before = parsed.tokens[node.first - 1]
            begin = before.start if before.text == "&" else tokens[0].start
            written = parsed.file.text[begin : tokens[-1].end]
            enlisted = f"::cudalab::cudalab_enlisted({written}, {quoted(' '.join(name.split()))})"
            parsed.addresses.append(
                Launch(
                    edit=len(parsed.edits),
                    kernel=" ".join(name.split()),
                    name=short_name(node),
                    position=begin,
                )
            )
            parsed.replace(begin, tokens[-1].end, enlisted)
