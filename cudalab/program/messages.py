"""Errors about a program, from the messages of the host's compiler and linker."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from cudalab.errors import CudalabError, KernelCompileError
from cudalab.program import refusals, rewrite, spelling
from cudalab.program.files import File
from cudalab.program.rewrite.parsed import Parsed
from cudalab.program.wording import RUNTIME, as_written, errors_of, readable
from cudalab.system import cache, elf

_ASSEMBLER = re.compile(r"^(?P<place>[^\s:][^:\n]*:\d+): Error: ", re.MULTILINE)
_NO_MAIN = re.compile(r"undefined (?:reference to|symbol:) [`']?main\b")
_RETURNS_INT = re.compile(r"^\s*(?:int|void)\s+(\w+)\s*\(", re.MULTILINE)
_OPENMP = re.compile(r"undefined (?:reference to|symbol:) [`']?(?:omp_|GOMP_|__kmpc_)")
_MADE = re.compile(r"[^\s:]*/build-\w+/(?P<index>\d+)-[^/\s:]*\.cpp(?:\.o)?")
_FIRST_ONLY = "compilation terminated due to -fmax-errors"


def explain(messages: str, files: Sequence[File]) -> CudalabError:
    """The error for a failed compilation."""
    full = cache.disk_full(messages)
    if full:
        return full

    def own(match: re.Match[str]) -> str:
        return files[int(match["index"])].label

    messages = _MADE.sub(own, messages).replace(f"{Path.cwd()}/", "")
    lacking = _lacking(messages, files)
    if lacking:
        return rewrite.refusal(lacking, [Parsed(file) for file in files])
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
    texts = {each.label: each.text for each in files}
    more = "\nThese are the first errors." if _FIRST_ONLY in messages else ""
    return unlinked(messages, files[0].label, texts) or KernelCompileError(
        f"{files[0].label} does not compile:\n{readable(messages, files)}{more}"
    )


def links(messages: str, label: str) -> CudalabError:
    """The error for objects that cannot be linked into a program."""
    lacking = refusals.Lacking()
    for name, place in undefined(messages):
        lacking.add_linked(name, place)
    missing = lacking.error() if lacking else unlinked(messages, label, {})
    return (
        cache.disk_full(messages)
        or missing
        or KernelCompileError(f"{label} does not link:\n{messages.strip()}")
    )


def _lacking(messages: str, files: Sequence[File]) -> refusals.Lacking:
    """The missing features, inferred from the names that the compiler does not know."""
    texts = {file.label: file.text.splitlines() for file in files}
    lacking = refusals.Lacking()
    for error in errors_of(messages, texts):
        place, name = f"{error.path}:{error.line}", error.unknown()
        if error.path not in texts:
            continue
        if header := error.header():
            lacking.add_header(header, place)
        elif name.isidentifier() and not _defined(name, files):
            lacking.add_name(name, place, error.namespace())
    for name, place in undefined(messages):
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


# What does not link -------------------------------------------------------------------------------


# In the words of GNU's linker and of LLVM's, which zig passes on as notes.
_NOTE = r"(?:>>>|    note:) "
_AT = r"(?:[^\s(]+ \()?(?P<{}>[^\s()]+:\d+)"
_UNDEFINED = re.compile(
    r"^(?:\S*ld[\w.]*: )?(?:(?P<place>[^\s:()][^:\n]*:\d+): |[^\n]*\(\.text[^)]*\): )?"
    r"undefined reference to [`'](?P<name>[^'\n]+)'$"
    rf"|undefined symbol: (?P<symbol>[^\n]+)\n{_NOTE}referenced by {_AT.format('by')}",
    re.MULTILINE,
)
_TWICE = re.compile(
    r"^(?:\S*ld[\w.]*: )?[^\n]*?(?P<second>[^\s:]+:\d+): multiple definition of [`']"
    r"(?P<name>[^']+)'; [^\n]*?(?P<first>[^\s:]+:\d+): first defined here"
    rf"|duplicate symbol: (?P<symbol>[^\n]+)\n{_NOTE}defined at {_AT.format('at')}[^\n]*\n"
    rf"(?:{_NOTE} [^\n]*\n)*{_NOTE}defined at {_AT.format('again')}",
    re.MULTILINE,
)
_NO_LIBRARY = re.compile(
    r"cannot find -l(?P<name>[^\s:]+)"
    r"|unable to find (?:dynamic system )?library ['\"]?-?l?(?P<other>[\w.+-]+)"
    r"|library not found for -l(?P<third>\S+)"
)

_NOT_FOR_C = "files of C cannot call {} on the CPU device: let the file's name end in .cu"


def undefined(messages: str) -> Iterator[tuple[str, str]]:
    """The names that no file defines, and where they are used."""
    for match in _UNDEFINED.finditer(messages):
        name, place = match["name"] or match["symbol"], match["place"] or match["by"] or ""
        if name.partition("(")[0] != "main" and "cudalab" not in name and RUNTIME not in place:
            yield name, place


def unlinked(messages: str, label: str, texts: Mapping[str, str]) -> KernelCompileError | None:
    """The error for objects that do not link; None if the messages are not a linker's.

    `texts` are the sources, by the names that the messages use.
    """
    messages = as_written(messages)
    errors: dict[str, None] = {}
    hints: dict[str, None] = {}
    for name, place in undefined(messages):
        if of_c := _of_c(name, place):
            errors[_line(place, of_c, texts)] = None
            continue
        kind = "the kernel " if _is_kernel(name, texts) else ""
        errors[_line(place, f"{kind}{name} is declared, but no file defines it", texts)] = None
        hints["name the file that defines it, too: files of a program, or -l for a library"] = None
    for match in _TWICE.finditer(messages):
        name = match["name"] or match["symbol"]
        first, second = match["first"] or match["at"], match["second"] or match["again"]
        errors[_line(second, f"{name} is defined a second time; first at {first}", texts)] = None
        hints["define it in one file, or make it static"] = None
    for match in _NO_LIBRARY.finditer(messages):
        name = match["name"] or match["other"] or match["third"]
        errors[f"error: no library {name}: neither lib{name}.so nor lib{name}.a"] = None
        hints["install it, or name its folder by -L"] = None
    if not errors:
        return None
    return KernelCompileError(
        "\n".join([f"{label} does not link:", *errors]), hint="; ".join(hints) or None
    )


def not_loaded(message: str) -> KernelCompileError:
    """The error for a program that the loader of shared libraries refuses with a message."""
    symbol = message.partition("undefined symbol: ")[2]
    if not symbol:
        return KernelCompileError(f"the program does not link: {message}")
    return KernelCompileError(
        f"the program does not link: {elf.demangled(symbol)} is declared, but no file defines it",
        hint="name the file that defines it, too, or let nvcc compile all files: in a program that "
        "make has built, what another compiler has compiled is not known",
    )


def _of_c(name: str, place: str) -> str:
    """What is wrong with a function of CUDA that a file of C calls, where nothing declares it."""
    if not spelling.is_cuda_name(name) or not place.rpartition(":")[0].endswith(".c"):
        return ""
    if other := spelling.meant(name):
        return f"unknown: {name}; did you mean {other}?"
    return _NOT_FOR_C.format(name) if spelling.is_known(name) else ""


def _is_kernel(name: str, texts: Mapping[str, str]) -> bool:
    """Whether the sources declare a kernel of that name."""
    plain = re.escape(name.partition("(")[0].rpartition("::")[2].partition("<")[0])
    declared = re.compile(rf"__global__\b[^;{{}}()]*(?:\([^()]*\)[^;{{}}()]*)?\b{plain}\s*\(")
    return any(declared.search(text) for text in texts.values())


def _line(place: str, words: str, texts: Mapping[str, str]) -> str:
    """A message about a place, followed by the source line if it is known."""
    path, _, number = place.rpartition(":")
    lines = texts.get(path, "").splitlines()
    at = int(number) if number.isdigit() else 0
    start = f"{place}: error: {words}" if place else f"error: {words}"
    return f"{start}\n    {lines[at - 1].strip()}" if 0 < at <= len(lines) else start
