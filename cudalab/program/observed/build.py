"""Observed programs: libraries that report each access to memory.

They go through the same pipeline as plain ones, with hooks and without optimization.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from cudalab.backends.cpu import kernel_runtime
from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.pipeline import (
    RefusedError,
    Unit,
    Units,
    Written,
    build,
    compiled,
)
from cudalab.backends.cpu.compiler.toolchain import cached, find_compiler, run
from cudalab.backends.trace import Place
from cudalab.errors import CudalabError
from cudalab.language import source
from cudalab.output.progress import stage
from cudalab.program import messages, rewrite, runtime
from cudalab.program.files import File, Part
from cudalab.program.options import for_host
from cudalab.program.rewrite.parsed import ONLY_LAUNCHED, Parsed

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?P<name>\d+-[^"]*\.cpp)".*$', re.MULTILINE)
_LAUNCH = re.compile(
    r"(?<=[;{}])\s*(?P<call>[^;{}]*(?:<<\s*<|\bcudaLaunch\w*Kernel\w*\s*\()[^;]*;)"
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)

_OWN_DEFAULT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+CUDA_API_PER_THREAD_DEFAULT_STREAM\b", re.MULTILINE
)
_MAKES_STREAM = re.compile(
    r"\bcudaStreamCreate\w*\s*\(\s*(?:\(\s*cudaStream_t\s*\*\s*\)\s*)?&?\s*([\w.]+(?:\[[^\]]*\])?)"
)
_LIBRARIES = {"blas": "cuBLAS", "generators": "cuRAND", "textures": "copies of CUDA arrays"}
# Libraries whose algorithms are host code here; their types are for kernels, too. And memory that
# the host may have written, by what is not observed.
_ON_HOST = {
    "Thrust's algorithms": re.compile(
        r"^[ \t]*#[ \t]*include[ \t]*[<\"]thrust/(?!complex|functional|optional|pair|tuple)",
        re.MULTILINE,
    ),
    "CUB's algorithms for whole devices": re.compile(r"\bcub::Device\w+"),
    "whether managed and pinned memory has a value": re.compile(
        r"\bcuda(?:MallocManaged|HostAlloc|MallocHost|HostRegister)\b"
    ),
}


@dataclass(frozen=True)
class Library:
    """An observed program."""

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


def library(program: Sequence[Part]) -> Library:
    """The observed program, compiled unless it is in the cache."""
    objects = [str(_host_object(part, i)) for part in program for i in part.for_host]
    foreign = [path for part in program for path in part.objects]
    objects += map(_foreign_object, foreign)
    files = [file for part in program for file in part.files]
    options = [option for part in program for option in part.options]
    texts = [file.text for file in files]
    runtime.provide_blas(texts)
    objects += runtime.observed(runtime.used(texts))
    host = Path(objects[-1])
    parameters: dict[str, list[str]] = {}
    for text in texts:
        parameters |= source.parameter_names(text)
    observed = _Observed(program, host.parent)
    return Library(
        observed.library([*objects, *for_host(options).link]),
        host,
        parameters=parameters,
        constants=frozenset(
            name.name
            for file in observed.parsed
            for node in file.root.of_kind("declaration")
            if "__constant__" in node.words
            for name in node.names
        ),
        own_default=own_default(options, texts),
        unobserved=unobserved(
            files,
            [
                *(part.files[i].label for part in program for i in part.for_host),
                *map(os.path.relpath, foreign),
            ],
        ),
        streams=stream_names(files),
        labels=tuple(file.label for file in files),
        launches=frozenset(
            Place(file.label, line) for file in files for line in _launch_lines(file.text)
        ),
    )


def own_default(options: Sequence[str], texts: Iterable[str]) -> bool:
    """Whether the program asks that each thread of the host have a default stream of its own."""
    chosen = {"-default-stream=per-thread", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"}
    present = {option.removesuffix("=1") for option in options}
    return bool(chosen & present) or any(_OWN_DEFAULT.search(text) for text in texts)


def unobserved(files: Sequence[File], for_host: Sequence[str]) -> tuple[str, ...]:
    """What a program does that the instrument does not see, its files `for_host` among it."""
    used = runtime.used(file.text for file in files)
    names = list(for_host)
    names += [name for part, name in _LIBRARIES.items() if part in used]
    names += [
        name for name, use in _ON_HOST.items() if any(use.search(file.text) for file in files)
    ]
    observed = "memcpy, memmove, memset, fread and fwrite"
    return (*names, f"what functions of the C library use, but for {observed}")


def stream_names(files: Iterable[File]) -> dict[tuple[str, int], list[str]]:
    """What the program calls the streams that it makes, by file and line."""
    names: dict[tuple[str, int], list[str]] = {}
    for file in files:
        for number, line in enumerate(source.blank_comments(file.text).splitlines(), 1):
            if made := _MAKES_STREAM.findall(line):
                names[file.label, number] = made
    return names


def _launch_lines(text: str) -> Iterator[int]:
    """The lines of the statements with `<<<`, and of the calls that launch a kernel."""
    code = source.blank_comments(text)
    for match in _LAUNCH.finditer(code):
        first = code.count("\n", 0, match.start("call")) + 1
        yield from range(first, first + match["call"].count("\n") + 1)


class _Observed:
    """How the texts of an observed program are written and compiled."""

    def __init__(self, program: Sequence[Part], header: Path) -> None:
        """Write the texts. g++ reads the precompiled header in a folder if the options agree."""
        self.program, self.header = program, header
        self.parsed: list[Parsed] = []
        self.first = self._written(Counter())

    def write(self, refused: Counter[tuple[str, int]], _: Mapping[str, str]) -> Written:
        """Write the sources, with the program's own headers inlined."""
        texts = self._written(refused) if refused else self.first
        return Written(texts, texts)

    def _written(self, refused: Counter[tuple[str, int]]) -> list[str]:
        texts, self.parsed = [], []
        for part in self.program:
            parsed = rewrite.edited(part.files, part.names, refused=refused, observed=True)
            rewritten = [each.rewritten(f"{ONLY_LAUNCHED}_OBSERVED") for each in parsed]
            by_name = dict(zip(part.names, rewritten, strict=True))
            first = (runtime.PRECOMPILED, *runtime.special_functions(part.texts))
            head = "".join(f'#include "{name}"\n' for name in first) + part.host.macros
            texts += [head + inlined(part.names[i], by_name, set()) for i in part.for_device]
            self.parsed += parsed
        return texts

    def library(self, objects: Sequence[str]) -> Path:
        """The sources as one library, linked with `objects`, unless the cache has it."""
        checker = str(kernel_runtime.check_runtime_library())
        commands: list[list[str]] = []
        for part in self.program:
            more = ("-I", str(self.header), *runtime.OBSERVED_PROGRAM, *part.flags)
            own = flags.check_flags((*more, *part.headers))
            command = [*find_compiler().compile, *own, *kernel_runtime.searched(own)]
            commands += [command] * len(part.for_device)
        files = [file for part in self.program for file in part.files]
        label = files[0].label
        words = [word for command in commands for word in (*command, "")]
        made_of = (*self.first, "", *words, checker, *objects)
        place = cached("cpu", f"{Path(label).stem}-check", *made_of, suffix=".so")

        def make(folder: Path) -> Path:
            names = [f"{i}.cpp" for i in range(len(commands))]
            each = [Unit(str(folder / n), one) for n, one in zip(names, commands, strict=True)]
            units = Units(folder=folder, names=names, compiled=each, observed=True, is_program=True)
            try:
                compiled(self.write, units)
            except RefusedError as error:
                raise messages.explain(error.messages, files) from None
            made = folder / "library.so"
            done = find_compiler().link(made, [*units.objects, *objects, checker], shared=True)
            if done.returncode:
                raise messages.explain(done.stderr or done.stdout, files)
            return made

        if not place.exists():
            with stage(f"compiling {label}, instrumented"):
                build(place, make)
        return place


def _foreign_object(path: str) -> str:
    """A copy of an object of another compiler, under a name that says its bytes."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        hint = "build the program anew"
        raise CudalabError(f"{path}: {error.strerror}, but it is linked", hint=hint) from None

    def make(folder: Path) -> Path:
        whole = folder / "foreign.o"
        whole.write_bytes(content)
        if find_compiler().link(folder / "alone.so", [str(whole)], shared=True).returncode:
            raise CudalabError(
                f"{os.path.relpath(path)}: its compiler did not get -fPIC, which the "
                "instrumented program needs",
                hint="build anew with `make CFLAGS=-fPIC CXXFLAGS=-fPIC`, or as the makefile "
                "names its flags",
            )
        return whole

    copy = cached("programs", "foreign", content, suffix=".o")
    return str(copy if copy.exists() else build(copy, make))


def _host_object(part: Part, index: int) -> Path:
    """The object of a file of host code, which is not instrumented."""
    command = [*part.host_command(index), "-c", part.files[index].path, "-o"]

    def make(folder: Path) -> Path:
        made = folder / "host.o"
        done = run([*command, str(made)])
        if done.returncode:
            raise messages.explain(done.stderr, part.files)
        return made

    place = cached("programs", "host", *command, *part.texts, suffix=".o")
    return place if place.exists() else build(place, make)


def inlined(name: str, texts: Mapping[str, str], seen: set[str]) -> str:
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
            inlined(match["name"], texts, seen),
            f"\n#line {line + 1} {label}",
        ]
        end = match.end()
    return _ONCE.sub("", "".join([*pieces, text[end:]]))
