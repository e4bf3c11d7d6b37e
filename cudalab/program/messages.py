"""Errors about a program from the host compiler's messages about its rewritten text."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from cudalab.backends.cpu.regions import places_in
from cudalab.errors import CudalabError, KernelCompileError
from cudalab.program import linking
from cudalab.program.files import File
from cudalab.program.parsed import parse
from cudalab.program.refusals import Lacking
from cudalab.program.rewrite import refusal
from cudalab.program.wording import readable
from cudalab.system.cache import disk_full

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
_RETURNS_INT = re.compile(r"^\s*(?:int|void)\s+(\w+)\s*\(", re.MULTILINE)
_OPENMP = re.compile(r"undefined (?:reference to|symbol:) [`']?(?:omp_|GOMP_|__kmpc_)")
_MADE = re.compile(r"[^\s:]*/build-\w+/(?P<index>\d+)-[^/\s:]*\.cpp(?:\.o)?")
_FIRST_ONLY = "compilation terminated due to -fmax-errors"
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

    def is_same(self, made: object) -> bool:
        """Whether the compiler has already refused the same text."""
        return made == self._before

    def other(self, made: T) -> T:
        """Return the text; raise the error if the compiler has already refused the same one."""
        if self.is_same(made):
            raise explain(self.messages, self.files)
        self._before = made
        return made

    def add(self, messages: str) -> None:
        """Record the compiler's messages about a text."""
        self.messages = messages
        self.places.update(places_in(messages))


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
        like = [each[1] for file in files for each in _RETURNS_INT.finditer(file.text)]
        written = next(iter(get_close_matches("main", like, n=1)), "")
        return KernelCompileError(
            f"{files[0].label} has no main function"
            + (f"; did you mean main by {written}?" if written else ""),
            hint="a file of kernels for a lab is run by `cudalab LAB --kernel FILE.cu`",
        )
    if _OPENMP.search(messages):
        return KernelCompileError(
            f"{files[0].label} does not link:\n{readable(messages, files)}",
            hint="OpenMP has to be asked for, here and of nvcc: -Xcompiler -fopenmp",
        )
    unlinked = linking.explain(messages, files[0].label, {each.label: each.text for each in files})
    more = "\nThese are the first errors." if _FIRST_ONLY in messages else ""
    return unlinked or KernelCompileError(
        f"{files[0].label} does not compile:\n{readable(messages, files)}{more}"
    )


def links(messages: str, label: str) -> CudalabError:
    """The error for objects that cannot be linked into a program."""
    lacking = Lacking()
    for name, place in linking.undefined(messages):
        lacking.add_linked(name, place)
    missing = lacking.error() if lacking else linking.explain(messages, label, {})
    return (
        disk_full(messages)
        or missing
        or KernelCompileError(f"{label} does not link:\n{messages.strip()}")
    )


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
    for name, place in linking.undefined(messages):
        lacking.add_linked(name, place)
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
