"""nvcc's command line, as makefiles write it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cudalab.errors import CudalabError, UsageError
from cudalab.program.options import split

# What nvcc is to do, by the options that say so; without one of them it makes a program.
_WAYS = {
    **dict.fromkeys(("c", "compile", "dc", "device-c", "dw", "device-w"), "object"),
    **dict.fromkeys(("dlink", "device-link"), "device link"),
    "lib": "archive",
    "cuda": "C++",
    **dict.fromkeys(("M", "MM", "generate-dependencies"), "dependencies"),
    **dict.fromkeys(("V", "version"), "version"),
    **dict.fromkeys(("h", "help"), "help"),
}
_LOUD = frozenset({"v", "verbose", "dryrun"})
# What only a GPU can use.
_GPU_CODE = frozenset({"ptx", "cubin", "fatbin", "optix-ir", "ltoir", "gpu"})
_REFUSED = {
    **dict.fromkeys(_GPU_CODE, "the CPU device has no code for GPUs"),
    "shared": "the CPU device makes programs and archives (-lib, ar), no shared libraries",
    "E": "the CPU device does not print what the preprocessor makes",
    "preprocess": "the CPU device does not print what the preprocessor makes",
    "run": "start the program yourself",
}
_SOURCES = (".cu", ".c", ".cpp", ".cc", ".cxx", ".C")
_FOR_HOST = ("f", "m", "W", "pthread")  # options of the host's compiler, with CXX=nvcc
_FILES = ("optf", "options-file")


@dataclass(kw_only=True)
class Line:
    """A command line of nvcc."""

    way: str = "program"
    inputs: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)  # for `cudalab run`, too
    output: str = ""
    is_cuda: bool = False  # -x cu: whatever the files are called
    is_loud: bool = False  # -v: say what is done
    is_dry: bool = False  # --dryrun: only say it
    dependencies: str = ""  # the file to write them to, when a source is compiled
    target: str = ""  # their target
    unknown: list[str] = field(default_factory=list)

    @property
    def sources(self) -> list[str]:
        """The inputs that are compiled."""
        return [path for path in self.inputs if self.is_source(path)]

    def is_source(self, path: str) -> bool:
        """Whether an input is compiled; others are linked."""
        return path.endswith(_SOURCES) or (self.is_cuda and not path.endswith((".o", ".a", ".so")))


def read(words: Sequence[str]) -> Line:
    """Parse a command line. UsageError for what the CPU device cannot build."""
    names = {*_WAYS, *_LOUD, *_REFUSED}
    ours, options = split(list(_expanded(words)), names)
    line, rest = Line(), iter(ours)
    for word in rest:
        name = word.removeprefix("-")
        if not word.startswith("-"):
            line.inputs.append(word)
        elif name in names:
            _take_way(line, name, ours)
        elif name[0] in "ID":
            line.options.append(f"-{name[0]}{name[1:] or next(rest, '')}")
        elif name[0] == "o":
            line.output = name[1:] or next(rest, "")
        elif name.startswith(_FOR_HOST):
            line.options.append(f"-Xcompiler={word}")
        else:
            line.unknown.append(word)
    for option in options:
        _take(line, option)
    return line


def _take_way(line: Line, name: str, words: Sequence[str]) -> None:
    """Handle an option that selects what to do."""
    if name in _WAYS:
        line.way = _WAYS[name]
    elif name in _LOUD:
        line.is_loud = True
        line.is_dry |= name == "dryrun"
    elif "-dlink" not in words:  # CMake says -shared, too, for code of GPUs
        raise UsageError(f"-{name}: {_REFUSED[name]}")


def _take(line: Line, option: str) -> None:
    """Handle an option together with its value."""
    name, _, value = option[1:].partition("=")
    if name == "x":
        line.is_cuda = value == "cu"
    elif name in ("MF", "dependency-output"):
        line.dependencies = value
    elif name in ("MT", "dependency-target-name"):
        line.target = value
    elif name in ("MD", "MMD") or name.endswith("-with-compile"):
        line.dependencies = line.dependencies or "beside the object"
    elif name in ("odir", "output-directory"):
        line.output = line.output or f"{value}/"
    else:
        line.options.append(option)


def _expanded(words: Sequence[str]) -> Iterator[str]:
    """The words, with option files expanded."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and name in _FILES:
            yield from _words_of(value if equals else next(rest, ""))
        elif word.startswith("@"):
            yield from _words_of(word[1:])
        else:
            yield word


def _words_of(path: str) -> Iterator[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CudalabError(f"{path}: cannot be read: {error.strerror}") from None
    yield from _expanded(shlex.split(text))
