"""The instrumented build of a program: a library that reports each access to memory."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from cudalab.backends.cpu import blas, cccl, compiler, parts
from cudalab.backends.cpu.flags import for_programs
from cudalab.backends.cpu.key import cached
from cudalab.backends.cpu.toolchain import find_compiler, run
from cudalab.backends.trace import Place
from cudalab.errors import CudalabError, KernelCompileError
from cudalab.language import source
from cudalab.language.local_variables import EVERYWHERE
from cudalab.program import order, runtime
from cudalab.program.files import Part
from cudalab.program.messages import Refused, explain
from cudalab.program.options import for_host
from cudalab.program.parsed import ONLY_LAUNCHED, Parsed
from cudalab.program.rewrite import edited
from cudalab.system.cache import explain_full_disk

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?P<name>\d+-[^"]*\.cpp)".*$', re.MULTILINE)
_LAUNCH = re.compile(
    r"(?<=[;{}])\s*(?P<call>[^;{}]*(?:<<\s*<|\bcudaLaunch\w*Kernel\w*\s*\()[^;]*;)"
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)


@dataclass(frozen=True)
class Library:
    """An instrumented program."""

    path: Path
    host: Path  # the CUDA runtime API
    _: KW_ONLY
    parameters: dict[str, list[str]]  # the names of each kernel's parameters
    constants: frozenset[str]  # the names of its __constant__ variables
    own_default: bool  # each thread of the host has a default stream of its own
    unobserved: tuple[str, ...]  # what the instrument does not see of it
    streams: dict[tuple[str, int], list[str]]  # the names of those made at a line
    labels: tuple[str, ...]  # its files' names in messages
    launches: frozenset[Place]  # the lines of launches, which pass their arguments by pointers


def build(program: Sequence[Part]) -> Library:
    """The instrumented library, compiled unless it is in the cache."""
    objects = [str(_host_object(part, i)) for part in program for i in part.for_host]
    foreign = [path for part in program for path in part.objects]
    objects += map(_foreign_object, foreign)
    files = [file for part in program for file in part.files]
    options = [option for part in program for option in part.options]
    texts = [file.text for file in files]
    blas.provide(texts)
    objects += runtime.observed(parts.used(texts))
    host = Path(objects[-1])
    parameters: dict[str, list[str]] = {}
    for text in texts:
        parameters |= source.parameter_names(text)
    path, parsed = _compiled(program, [*objects, *for_host(options).link], host.parent)
    return Library(
        path,
        host,
        parameters=parameters,
        constants=frozenset(
            name.name
            for file in parsed
            for node in file.root.of_kind("declaration")
            if "__constant__" in node.words
            for name in node.names
        ),
        own_default=order.own_default(options, texts),
        unobserved=order.unobserved(
            files,
            [
                *(part.files[i].label for part in program for i in part.for_host),
                *map(os.path.relpath, foreign),
            ],
        ),
        streams=order.stream_names(files),
        labels=tuple(file.label for file in files),
        launches=frozenset(
            Place(file.label, line) for file in files for line in _launch_lines(file.text)
        ),
    )


def _launch_lines(text: str) -> Iterator[int]:
    """The lines of the statements with `<<<`, and of the calls that launch a kernel."""
    code = source.blank_comments(text)
    for match in _LAUNCH.finditer(code):
        first = code.count("\n", 0, match.start("call")) + 1
        yield from range(first, first + match["call"].count("\n") + 1)


def _compiled(
    program: Sequence[Part], objects: Sequence[str], header: Path
) -> tuple[Path, list[Parsed]]:
    """The instrumented sources as one library, linked with `objects`, and their files as read.

    `header` is the folder with the precompiled header, which g++ reads if the options agree.
    """
    refused = Refused([file for part in program for file in part.files])
    while True:
        parsed = [
            edited(part.files, part.names, refused=refused.places, observed=True)
            for part in program
        ]
        units = [
            unit
            for part, files in zip(program, parsed, strict=True)
            for unit in _units(part, files, header)
        ]
        if refused.is_same(units) and EVERYWHERE not in refused.places:
            refused.places[EVERYWHERE] = 1
            continue
        made = refused.other(units)
        try:
            library = compiler.check_files(made, program[0].files[0].label, tuple(objects))
            return library, [file for files in parsed for file in files]
        except KernelCompileError as error:
            refused.add(error.message)


def _units(
    part: Part, parsed: Sequence[Parsed], header: Path
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts of the sources to compile, and their flags."""
    names, macros = part.names, part.host.macros
    more = ("-I", str(header), *runtime.OBSERVED_PROGRAM, *part.flags, *for_programs())
    more += tuple(cccl.flags(part.texts, find_compiler().version()))
    texts = dict(
        zip(names, (each.rewritten(f"{ONLY_LAUNCHED}_OBSERVED") for each in parsed), strict=True)
    )
    for i in part.for_device:
        text = f'#include "{runtime.PRECOMPILED}"\n{macros}{_inlined(names[i], texts, set())}'
        yield text, more


@explain_full_disk()
def _foreign_object(path: str) -> str:
    """A copy of an object of another compiler, under a name that says its bytes."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        hint = "build the program anew"
        raise CudalabError(f"{path}: {error.strerror}, but it is linked", hint=hint) from None
    copy = cached("programs", "foreign", content, suffix=".o")
    if not copy.exists():
        with tempfile.TemporaryDirectory(prefix="build-", dir=copy.parent) as folder:
            whole = Path(folder, "foreign.o")
            whole.write_bytes(content)
            alone = find_compiler().link(Path(folder, "alone.so"), [str(whole)], shared=True)
            if alone.returncode:
                raise CudalabError(
                    f"{os.path.relpath(path)}: its compiler did not get -fPIC, which the "
                    "instrumented program needs",
                    hint="build anew with `make CFLAGS=-fPIC CXXFLAGS=-fPIC`, or as the makefile "
                    "names its flags",
                )
            whole.replace(copy)
    return str(copy)


@explain_full_disk()
def _host_object(part: Part, index: int) -> Path:
    """The object of a file of host code, which is not instrumented."""
    command = part.host_command(index, "")
    built = cached("programs", "host", *command, *part.texts, suffix=".o")
    if not built.exists():
        with tempfile.TemporaryDirectory(prefix="build-", dir=built.parent) as folder:
            compiled = Path(folder, "host.o")
            done = run(part.host_command(index, str(compiled)))
            if done.returncode:
                raise explain(done.stderr, part.files)
            compiled.replace(built)
    return built


def _inlined(name: str, texts: dict[str, str], seen: set[str]) -> str:
    """A file's text with the program's own headers inlined."""
    text = texts[name]
    if name in seen and _ONCE.search(text):
        return ""
    seen.add(name)
    head, directive, _ = text.partition("#line 1 ")
    label = text[len(head + directive) :].partition("\n")[0]
    pieces, end = [], 0
    for match in _INCLUDE.finditer(text):
        line = text.count("\n", len(head), match.start())  # without the #line in front
        pieces += [
            text[end : match.start()],
            _inlined(match["name"], texts, seen),
            f"\n#line {line + 1} {label}",
        ]
        end = match.end()
    return _ONCE.sub("", "".join([*pieces, text[end:]]))
