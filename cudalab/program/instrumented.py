"""The instrumented build of a program: a library that reports each access to memory."""

from __future__ import annotations

import re
import tempfile
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.backends.cpu import blas, cccl, compiler, parts
from cudalab.backends.cpu.flags import for_programs
from cudalab.backends.cpu.key import cached
from cudalab.backends.cpu.toolchain import find_compiler, run
from cudalab.errors import KernelCompileError
from cudalab.language import source
from cudalab.program import order, runtime
from cudalab.program.build import host_command, version_macros
from cudalab.program.files import is_for_host
from cudalab.program.messages import Refused, explain
from cudalab.program.options import for_host
from cudalab.program.rewrite import rewrite
from cudalab.system.cache import explain_full_disk

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from cudalab.program.files import File

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?P<name>\d+-[^"]*\.cpp)".*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_CONSTANT = re.compile(r"\b__constant__\s[^;(){}=]*?\b(\w+)\s*(?:\[[^;={]*\]\s*)*(?:=|;|\{)")


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


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sources that one command compiles, and its options."""

    files: Sequence[File]
    sources: int  # how many of the files are sources; the others are headers
    options: Sequence[str]

    @property
    def observed(self) -> list[int]:
        """The indices of the sources that are instrumented: each is a translation unit."""
        return [i for i in range(self.sources) if not is_for_host(self.files, i)]

    @property
    def for_host(self) -> list[int]:
        """The indices of the sources that are host code."""
        return [i for i in range(self.sources) if is_for_host(self.files, i)]


def build(program: Sequence[Part]) -> Library:
    """The instrumented library, compiled unless it is in the cache."""
    objects = [str(_host_object(part, i)) for part in program for i in part.for_host]
    files = [file for part in program for file in part.files]
    options = [option for part in program for option in part.options]
    texts = [file.text for file in files]
    blas.provide(texts)
    objects += runtime.observed(parts.used(texts))
    host = Path(objects[-1])
    parameters: dict[str, list[str]] = {}
    constants: set[str] = set()
    for text in texts:
        parameters |= source.parameter_names(text)
        constants |= set(_CONSTANT.findall(source.blank_comments(text)))
    objects += for_host(options).link
    return Library(
        _compiled(program, objects, host.parent),
        host,
        parameters=parameters,
        constants=frozenset(constants),
        own_default=order.own_default(options, texts),
        unobserved=order.unobserved(
            files, [part.files[i] for part in program for i in part.for_host]
        ),
        streams=order.stream_names(files),
    )


def _compiled(program: Sequence[Part], objects: Sequence[str], header: Path) -> Path:
    """The instrumented sources as one library, linked with `objects`.

    `header` is the folder with the precompiled header, which g++ reads if the options agree.
    """
    refused = Refused([file for part in program for file in part.files])
    while True:
        units = [unit for part in program for unit in _units(part, refused.places, header)]
        made = refused.other(units)
        try:
            return compiler.check_files(made, program[0].files[0].label, tuple(objects))
        except KernelCompileError as error:
            refused.add(error.message)


def _units(
    part: Part, refused: Counter[tuple[str, int]], header: Path
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The texts of the sources to compile, and their flags."""
    names = [f"{i}-{Path(file.path).stem}.cpp" for i, file in enumerate(part.files)]
    flags = for_host(part.options)
    own = (*flags.compile, *flags.folders)
    more = ("-I", str(header), *runtime.OBSERVED_PROGRAM, *own, *for_programs())
    more += tuple(version_macros(part.files))
    more += tuple(cccl.flags((file.text for file in part.files), find_compiler().version()))
    texts = dict(zip(names, rewrite(part.files, names, refused=refused), strict=True))
    for i in part.observed:
        text = f'#include "{runtime.PRECOMPILED}"\n{flags.macros}{_inlined(names[i], texts, set())}'
        yield text, more


@explain_full_disk()
def _host_object(part: Part, index: int) -> Path:
    """The object of a file of host code, which is not instrumented."""
    files, options = part.files, part.options
    path, texts = files[index].path, [file.text for file in files]
    built = cached("programs", "host", *host_command(path, options, ""), *texts, suffix=".o")
    if not built.exists():
        with tempfile.TemporaryDirectory(prefix="build-", dir=built.parent) as folder:
            compiled = Path(folder, "host.o")
            done = run(host_command(path, options, str(compiled)))
            if done.returncode:
                raise explain(done.stderr, files)
            compiled.replace(built)
    return built


def _inlined(name: str, texts: dict[str, str], seen: set[str]) -> str:
    """A file's text with the program's own headers inlined."""
    text = texts[name]
    if name in seen and _ONCE.search(text):
        return ""
    seen.add(name)
    label = text.partition("\n")[0].removeprefix("#line 1 ")
    pieces, end = [], 0
    for match in _INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start())  # without the #line in front
        pieces += [
            text[end : match.start()],
            _inlined(match["name"], texts, seen),
            f"\n#line {line + 1} {label}",
        ]
        end = match.end()
    return _ONCE.sub("", "".join([*pieces, text[end:]]))
