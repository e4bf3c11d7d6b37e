"""The text of a submission: as it is handed to its compilers, and as each of them sees it.

Two things are settled before any compiler reads it. A file includes what lies beside it, and
headers of the system: nothing else of the grader's machine may appear in a message. And the lines
of a message are those of the files that were handed in, whatever `#line` says.

The tests run one build, the sanitizer observes another, and a GPU would get a third. Code that
tells them apart has been judged in one of them only, so the preprocessor reads the text once for
each: without the headers, which no condition of a submission changes, that takes a hundredth of a
second. What remains after it is what is compiled, whatever macros have put it together, and what
no GPU's compiler would accept is refused there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from cudalab.backends.cpu.compiler import flags
from cudalab.backends.cpu.compiler.toolchain import cached, find_compiler, run
from cudalab.checker.submit import foreign
from cudalab.checker.verdicts import Why
from cudalab.language.source import blank_comments
from cudalab.language.tokens import tokenize
from cudalab.system.cache import put

GPU_ARCH = 900  # of the GPU whose compiler's view is compared
MAX_PLACES = 3
Line = tuple[str, int, str]  # a file, a line, and what is compiled of it
_TIMES = ("DATE", "TIME", "TIMESTAMP")  # macros with the same value in all views
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[^\n]*", re.MULTILINE)
_ASKS_FOR_FILES = re.compile(r"\b__has_include(?:_next)?\s*\((?!\s*<)")
_MARK = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"')
_MACRO = re.compile(r"^#define (\w+)(.*)$", re.MULTILINE)
_OURS = re.compile(r"\b(?:cudalab|CUDALAB)_\w+")


@dataclass(kw_only=True)
class Views:
    """How the compilers' views of a submission differ, and what it holds that no kernel can."""

    foreign: list[str] = field(default_factory=list)  # messages with their places
    tells: list[str] = field(default_factory=list)  # places at which the sanitizer sees other code
    on_gpu: list[str] = field(default_factory=list)  # places at which a GPU gets other code

    def add(self, other: Views) -> None:
        """Add what another case or another file shows."""
        for name in ("foreign", "tells", "on_gpu"):
            mine = getattr(self, name)
            mine += [one for one in getattr(other, name) if one not in mine]


class Build(NamedTuple):
    """How one compiler is called, and the macros that only its own headers define."""

    flags: tuple[str, ...]
    defined: tuple[str, ...] = ()


class Builds(NamedTuple):
    """The builds that the tests run, that the sanitizer observes, and that a GPU gets."""

    tests: Build
    sanitizer: Build
    gpu: Build
    names: tuple[str, ...] = ()  # that no submission may use: those of the runtime


def of_kernels() -> Builds:
    """The builds of a kernel file."""
    defined = tuple(flag for flag in flags.DEFINED if "assert" not in flag)
    fast, checked = flags.kernel_flags(), flags.check_flags()
    header = flags.RUNTIME / "kernels" / "cudalab_cpu.h"
    builds = _builds(header, (*fast, *defined), (*checked, *defined))
    return builds._replace(names=own_names())


def of_programs() -> Builds:
    """The builds of a whole program."""
    more = ("-D__CUDACC__=1", "-DCUDALAB_CPU=1")
    fast = flags.with_users(flags.PROGRAM)
    checked = flags.check_flags(("-fexceptions", "-frtti"))
    return _builds(flags.CUDA_RUNTIME, (*fast, *more), (*checked, *more))


def from_json(builds: list[Any]) -> Builds:
    """The builds of a document: lists in the place of tuples."""
    *each, names = builds
    tests, sanitizer, gpu = (Build(tuple(words), tuple(defined)) for words, defined in each)
    return Builds(tests, sanitizer, gpu, tuple(names))


def _builds(header: Path, tests: tuple[str, ...], sanitizer: tuple[str, ...]) -> Builds:
    """Both builds, with the macros by which the `header` differs in them."""
    ours, theirs = (_macros(header, words) for words in (tests, sanitizer))
    gpu = [flag for flag in tests if "CUDALAB" not in flag and "__CUDA_ARCH__" not in flag]
    gpu += ["-D__NVCC__=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"]
    gpu += [f"-D__CUDA_ARCH__={GPU_ARCH}", "-Dcudalab_no_file(...)=0"]
    return Builds(
        Build(tests, tuple(sorted(ours - theirs))),
        Build(sanitizer, tuple(sorted(theirs - ours))),
        Build(tuple(gpu)),
    )


@cache
def _macros(header: Path, words: tuple[str, ...]) -> frozenset[str]:
    """The names of the macros that are defined behind a header."""

    def read() -> Iterator[str]:
        command = (*find_compiler().compile, *words, *flags.for_kernels())
        done = run((*command, "-x", "c++", "-w", "-dM", "-E", str(header)))
        return (match[1] for match in _MACRO.finditer(done.stdout))

    made_of = (str(header), *words, find_compiler().identity)
    return frozenset(_names("macros", made_of, read))


def own_names() -> tuple[str, ...]:
    """The functions and macros of the CPU device's runtime, which no submission may name."""

    def read() -> Iterator[str]:
        texts = (path.read_text(encoding="utf-8") for path in flags.RUNTIME.rglob("*.h"))
        return (name for text in texts for name in _OURS.findall(text) if name != "CUDALAB_CPU")

    return _names("names", (), read)


def _names(
    stem: str, made_of: tuple[str, ...], read: Callable[[], Iterator[str]]
) -> tuple[str, ...]:
    """Names that `read` finds; stored, for it takes a while."""
    stored = cached("cpu", stem, *made_of, suffix=".txt")
    if not stored.exists():
        put(stored, "\n".join(sorted(set(read()))).encode())
    return tuple(stored.read_text(encoding="utf-8").split())


def of_kernel(text: str, builds: Builds, is_own: Callable[[str], bool]) -> Views:
    """The views of a prepared kernel file; `is_own` says which labels are the submission's."""
    views, both = _compared(text, builds, is_own)
    names = frozenset(builds.names)
    messages = (message for seen in both for message in foreign.in_kernels(seen, names))
    views.foreign = list(dict.fromkeys(messages))
    return views


def of_program(text: str, label: str, builds: Builds) -> Views:
    """The views of a file of a whole program, whose host code may do more than a kernel."""
    views, both = _compared(f'#line 1 "{label}"\n{text}', builds, lambda name: name == label)
    assembly = (one for seen in both for one in foreign.assembly(seen, is_kernel_file=False))
    views.foreign = list(dict.fromkeys(assembly))
    hiding = ((seen.at(one), one.text) for seen in both for one in foreign.hiding(seen.tokens))
    views.tells += [f"{place} ({name})" for place, name in dict.fromkeys(hiding)]
    return views


# The files that were handed in -------------------------------------------------------------------

HEADERS = (".cuh", ".h", ".hpp", ".inl")
_SPACE = r"(?:[ \t\v\f]|\\\r?\n|/\*.*?\*/)*"
_BEGIN = rf"^(?:\ufeff)?{_SPACE}(?:\#|%:|\?\?=){_SPACE}"


def _spelled(word: str) -> str:
    """A pattern for a word that backslashes at the ends of lines may divide."""
    return r"(?:\\\r?\n)*".join(word)


_LINE = re.compile(
    rf"{_BEGIN}(?:{_spelled('line')}\b|(?=\d))(?:\\\r?\n|[^\n])*", re.MULTILINE | re.DOTALL
)
_INCLUDE = re.compile(
    rf"{_BEGIN}(?:{_spelled('include')}(?:{_spelled('_next')})?|{_spelled('import')}"
    rf"|{_spelled('embed')})\b{_SPACE}(?P<what>(?:\\\r?\n|[^\n])*)",
    re.MULTILINE | re.DOTALL,
)
_ASKED = re.compile(r"__has_(?:include(?:_next)?|embed)\s*\(\s*[\"<](?P<name>[^\">\n]*)")
_NAMED = re.compile(r'"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>')


def copy_sources(files: Iterable[Path], folder: Path) -> None:
    """Copy the files that were handed in, and the headers beside them, into a new folder.

    CompileFailure if one includes a file of another folder.
    """
    folder.mkdir()
    for path in files:
        _copy(path, folder)
        for header in sorted(path.parent.iterdir()):
            if header.suffix in HEADERS and header.is_file() and not header.is_symlink():
                _copy(header, folder)


def _copy(path: Path, folder: Path) -> None:
    text = path.read_bytes().decode("latin-1")  # each byte is a letter, and stays what it is
    (folder / path.name).write_bytes(settled(text, path.name).encode("latin-1"))


def settled(text: str, name: str) -> str:
    """The text without `#line`, each line at its place. CompileFailure for a foreign #include."""
    for match in _INCLUDE.finditer(blank_comments(text, literals=False)):
        named = _NAMED.match(match["what"])
        line = text.count("\n", 0, match.start()) + 1
        if named is None:
            raise foreign.CompileFailure(
                Why.COMPILE,
                f"{name}:{line}: error: #include without the name of a file",
                "write the name itself, in quotes or in angle brackets",
            )
        _check_beside(named["quoted"] or named["angled"] or "", f"{name}:{line}")
    for asked in _ASKED.finditer(blank_comments(text, literals=False)):
        _check_beside(asked["name"], f"{name}:{text.count(chr(10), 0, asked.start()) + 1}")
    return _LINE.sub(lambda match: re.sub(r"[^\r\n]", " ", match[0]), text)


def _check_beside(file: str, place: str) -> None:
    """Raise CompileFailure for the name of a file that is not beside a submission's."""
    path = PurePosixPath(file.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise foreign.CompileFailure(
            Why.COMPILE,
            f"{place}: error: it includes a file of another folder, or asks for one",
            "a submission includes files beside it, and the system's headers by their names",
        )


# The text behind the preprocessor ----------------------------------------------------------------


def _compared(
    text: str, builds: Builds, is_own: Callable[[str], bool]
) -> tuple[Views, list[foreign.Seen]]:
    """How the three views differ, and what the tests and the sanitizer see."""
    with tempfile.TemporaryDirectory(prefix="cudalab-views-") as folder:
        tests = _preprocessed(text, builds.tests, is_own, Path(folder, "tests.cpp"))
        # Another name: the builds are of other files, as __BASE_FILE__ could tell.
        sanitizer = _preprocessed(text, builds.sanitizer, is_own, Path(folder, "sanitizer.cpp"))
        asks = _ASKS_FOR_FILES.sub("cudalab_no_file(", text)
        gpu = _preprocessed(asks, builds.gpu, is_own, Path(folder, "tests.cpp"))
    views = Views(tells=_places(tests, sanitizer), on_gpu=_places(tests, gpu))
    return views, [_seen(tests)] if tests == sanitizer else [_seen(tests), _seen(sanitizer)]


def _preprocessed(text: str, build: Build, is_own: Callable[[str], bool], path: Path) -> list[Line]:
    """The lines of the submission's own files that the preprocessor leaves."""
    own = "".join(f"#define {name} {name}\n" for name in build.defined)
    path.write_text(own + _INCLUDE.sub("", text), encoding="utf-8", errors="surrogateescape")
    words = [flag for flag in build.flags if flag != "-Werror=vla"]
    dates = ["-Wno-builtin-macro-redefined", *(f'-D__{one}__="0"' for one in _TIMES)]
    done = run((*find_compiler().compile, *words, "-w", *dates, "-E", str(path)))
    lines: list[Line] = []
    file, number = "", 0
    for line in done.stdout.splitlines():
        mark = _MARK.match(line)
        if mark:
            file, number = mark[2].replace('\\"', '"').replace("\\\\", "\\"), int(mark[1])
            continue
        if line.strip() and is_own(file):
            lines.append((file, number, " ".join(line.split())))
        number += 1
    return lines


def _places(one: list[Line], two: list[Line]) -> list[str]:
    """The first places at which two views differ."""
    if one == two:
        return []
    differing = sorted(set(one) ^ set(two), key=lambda line: line[:2])
    places = [f"{file}:{line}" for file, line, _ in differing] or [f"{one[0][0]}:1"]
    return list(dict.fromkeys(places))[:MAX_PLACES]


def _seen(lines: list[Line]) -> foreign.Seen:
    texts = [text for _, _, text in lines]
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    tokens = tokenize("\n".join(texts) + "\n")
    return foreign.Seen(tokens, [(file, line) for file, line, _ in lines], texts, starts)
