"""Errors about a program from the host compiler's messages about its rewritten text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cudalab.backends.cpu.regions.blame import places
from cudalab.errors import CudalabError, KernelCompileError
from cudalab.program import linking
from cudalab.program.parsed import parse
from cudalab.program.refusals import Lacking, is_cuda_name
from cudalab.program.rewrite import refusal
from cudalab.program.typos import meant
from cudalab.system.cache import disk_full

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.program.files import File

# A name or a header that the compiler does not know, in the words of g++ and clang++.
_UNKNOWN = re.compile(
    r"^(?P<place>[^\s:][^:\n]*:\d+):(?:\d+:)? (?:fatal )?error: .*?"
    r"(?:[\u2018'](?P<name>\w+)[\u2019'](?: was not declared| does not name| has not been declared"
    r"|(?: is not a member of| in namespace) [\u2018'](?P<space>[\w:]+)[\u2019'])"
    r"|(?:use of undeclared identifier|unknown type name|no template named|no member named)"
    r" '(?P<other>\w+)'(?: in namespace '(?P<within>[\w:]+)')?"
    r"|(?P<header>[\w./+-]+): No such file|'(?P<absent>[\w./+-]+)' file not found)",
    re.MULTILINE,
)
_ASSEMBLER = re.compile(r"^(?P<place>[^\s:][^:\n]*:\d+): Error: ", re.MULTILINE)
_NO_MAIN = re.compile(r"undefined (?:reference to|symbol:) [`']?main\b")
_OPENMP = re.compile(r"undefined (?:reference to|symbol:) [`']?(?:omp_|GOMP_|__kmpc_)")
_MADE = re.compile(r"[^\s:]*/build-\w+/(?P<index>\d+)-[^/\s:]*\.cpp(?:\.o)?")
_MESSAGE = re.compile(
    r"^(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? "
    r"(?P<kind>(?:fatal )?error|note): (?P<words>.*)$",
    re.MULTILINE,
)
# A launch whose arguments do not match, in the words of g++ and clang++.
_ARGUMENTS = re.compile(
    r"no match(?:ing function)? for call to (?:object of type )?"
    r"[\u2018'(]+(?:cudalab::)?TypedCall<.*?lambda.*?\)>?(?:, (?P<params>.*?))? ?>"
    r"(?:\) \((?P<arguments>.*)\)[\u2019']|')$"
)
# What the compiler says about our additions, and what the user is told instead.
_OURS = (
    (
        re.compile(r"^.*no matching function for call to .*\bcudalab::\w*[cC]onfig\b.*"),
        "a launch needs a grid and a block: kernel<<<grid, block>>>(arguments)",
    ),
    (
        re.compile(r"^(?:use of|.* to) deleted .*\bConfig\b.*"),
        "a launch has at most four values: kernel<<<grid, block, shared memory, stream>>>",
    ),
    (
        re.compile(r"^no matching function for call to [\u2018']cudalab_kernel\((.*?) \(&\).*"),
        r"a kernel returns void, not \1",
    ),
    (re.compile(r"; did you mean [\u2018'][^\u2019']*cudalab[^\u2019']*[\u2019']\?"), ""),
    (re.compile(r"(\bcu\w+\([^()]*), const char\*, int\)"), r"\1)"),  # the place of a call
    (re.compile(r" \[-f\w+\]$"), ""),
    (re.compile(r"([\u2018'])\*\((\w+) \+ \(\(sizetype\).*([\u2019'])"), r"\1\2[...]\3"),
)
_INTERNAL = re.compile(
    r"\bcudalab_a\b|cudalab::|required from|in instantiation of|candidate expects"
    r"|^ *template argument deduction|^class template argument deduction failed:$"
)
_FIRST_ONLY = "compilation terminated due to -fmax-errors"
RUNTIME = "/cpu/runtime/"
T = TypeVar("T")


class Refused:
    """The places where the compiler refuses what was added to the text of a program.

    The text is rewritten and compiled again without these additions until the compiler accepts it.
    """

    def __init__(self, files: Sequence[File]) -> None:
        """Start with nothing refused."""
        self.files, self.messages = files, ""
        self.places: Counter[tuple[str, int]] = Counter()  # files and lines, and how often
        self._before: object = None

    def other(self, made: T) -> T:
        """Return the text; raise the error if the compiler has already refused the same one."""
        if made == self._before:
            raise explain(self.messages, self.files)
        self._before = made
        return made

    def add(self, messages: str) -> None:
        """Record the compiler's messages about a text."""
        self.messages = messages
        self.places.update(places(messages))


def explain(messages: str, files: Sequence[File]) -> CudalabError:
    """The error for a failed compilation."""
    full = disk_full(messages)
    if full:
        return full

    def own(match: re.Match[str]) -> str:
        return files[int(match["index"])].label

    messages = _MADE.sub(own, messages).replace(f"{Path.cwd()}/", "")
    lacking = _lacking(messages, files)
    if lacking:
        return refusal(lacking, [parse(file) for file in files])
    if _NO_MAIN.search(messages):
        return KernelCompileError(
            f"{files[0].label} has no main function",
            hint="a file of kernels for a lab is run by `cudalab LAB --kernel FILE.cu`",
        )
    if _OPENMP.search(messages):
        return KernelCompileError(
            f"{files[0].label} does not link:\n{_readable(messages, files)}",
            hint="OpenMP has to be asked for, here and of nvcc: -Xcompiler -fopenmp",
        )
    unlinked = linking.explain(messages, files[0].label, {each.label: each.text for each in files})
    return unlinked or KernelCompileError(
        f"{files[0].label} does not compile:\n{_readable(messages, files)}"
    )


def links(messages: str, label: str) -> CudalabError:
    """The error for objects that cannot be linked into a program."""
    full = disk_full(messages) or linking.explain(messages, label, {})
    return full or KernelCompileError(f"{label} does not link:\n{messages.strip()}")


def _lacking(messages: str, files: Sequence[File]) -> Lacking:
    """The missing features, inferred from the names that the compiler does not know."""
    own = {file.label for file in files}
    lacking = Lacking()
    for match in _UNKNOWN.finditer(messages):
        place = match["place"]
        header = match["header"] or match["absent"]
        name = match["name"] or match["other"]
        if place.rpartition(":")[0] not in own:
            continue
        if header:
            lacking.add_header(header, place)
        elif not _defined(name, files):
            lacking.add_name(name, place, match["space"] or match["within"] or "")
    assembly = _ASSEMBLER.search(messages)
    if assembly:
        lacking.add("inline PTX", assembly["place"])
    return lacking


def _defined(name: str, files: Sequence[File]) -> bool:
    """Whether the program appears to define `name` itself, so that the mistake is its own."""
    own = re.compile(
        rf"#\s*define\s+{name}\b"  # a macro
        rf"|\b(?:struct|class)\s+{name}\b"
        rf"|\b{name}\s*\([^;{{}}]*\)\s*\{{"  # a function
        rf"|\b(?!return\b)\w+[ \t*&]+{name}\s*[;=\[]"  # a variable
    )
    return any(own.search(file.text) for file in files)


def _readable(messages: str, files: Sequence[File]) -> str:
    """The errors, each with the program's own line, without messages about the runtime.

    Columns and carets are left out, too, since they refer to the rewritten line.
    """
    texts = {file.label: file.text.splitlines() for file in files}
    errors: list[str] = []
    elsewhere: list[str] = []
    for match in _MESSAGE.finditer(messages):
        path, line, kind, words = match["path"], int(match["line"]), match["kind"], match["words"]
        if path not in texts:
            if kind != "note" and RUNTIME not in path:
                elsewhere.append(match[0])
            continue
        words = _own_words(words)
        if (kind == "note" and not errors) or _INTERNAL.search(words):
            continue
        source = texts[path][line - 1].strip() if line <= len(texts[path]) else ""
        errors.append(f"{path}:{line}: {kind}: {words}\n    {source}")
    more = ["These are the first errors."] if errors and _FIRST_ONLY in messages else []
    return "\n".join([*elsewhere, *dict.fromkeys(errors), *more]) or messages.strip()


def _own_words(words: str) -> str:
    """A compiler's message in terms of the program's own text."""
    unknown = _UNKNOWN.search(f"_:1: error: {words}")
    name = unknown and (unknown["name"] or unknown["other"])
    suggestion = meant(name) if name and is_cuda_name(name) else ""
    if suggestion:
        return f"unknown: {name}; did you mean {suggestion}?"
    words = _ARGUMENTS.sub(_arguments, words)
    for pattern, instead in _OURS:
        words = pattern.sub(instead, words)
    return words


def _arguments(match: re.Match[str]) -> str:
    types = f" ({match['arguments']})" if match["arguments"] is not None else ""
    return f"the arguments{types} do not match the kernel's parameters ({match['params'] or ''})"
