"""The text of a submission as each of its compilers sees it.

The tests run one build, the sanitizer observes another, and a GPU would get a third. Code that
tells them apart has been judged in one of them only, so the preprocessor reads the text once for
each: without the headers, which no condition of a submission changes, that takes a hundredth of a
second. What remains after it is what is compiled, whatever macros have put it together, and what
no GPU's compiler would accept is refused there.
"""

from __future__ import annotations

import re
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cudalab.backends.cpu.flags import (
    CUDA_RUNTIME,
    DEFINED,
    PROGRAM,
    RUNTIME,
    check_flags,
    for_kernels,
    kernel_flags,
    with_users,
)
from cudalab.backends.cpu.toolchain import cached, find_compiler, run
from cudalab.checker.submit import host_code, unseen
from cudalab.language import ptx
from cudalab.language.tokens import Token, closing, tokenize
from cudalab.system.cache import put

Place = tuple[str, int]  # a file and a line

GPU_ARCH = 900  # of the GPU whose compiler's view is compared
MAX_PLACES = 3
Line = tuple[str, int, str]  # a file, a line, and what is compiled of it
_TIMES = ("DATE", "TIME", "TIMESTAMP")  # macros with the same value in all views
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|import)[^\n]*", re.MULTILINE)
_ASKS_FOR_FILES = re.compile(r"\b__has_include(?:_next)?\s*\((?!\s*<)")
_MARK = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"')
_MACRO = re.compile(r"^#define (\w+)(.*)$", re.MULTILINE)
_OURS = re.compile(r"\b(?:cudalab|CUDALAB)_\w+")
_PRAGMA = re.compile(r"\s*#\s*pragma\s+(?P<first>\w+)(?:\s+(?P<second>\w+))?")
# Built-in functions that nvcc has for a GPU, too, besides those of the mathematical library.
_BUILTINS = frozenset(
    """
    clz clzl clzll popcount popcountl popcountll ffs ffsl ffsll abs labs llabs expect unreachable
    assume assume_aligned memcpy memmove memset memcmp strlen bit_cast addressof offsetof alloca
    huge_val huge_valf inf inff nan nanf isnan isinf isfinite isnormal signbit LINE FILE FUNCTION
    is_constant_evaluated va_start va_arg va_end
    """.split()  # noqa: SIM905 - a list of strings is no easier to read
)
# Attributes that change neither what is linked nor what the sanitizer observes.
_ATTRIBUTES = frozenset(
    """
    aligned packed noinline always_inline gnu_inline unused used const pure may_alias fallthrough
    noreturn nothrow leaf hot cold flatten visibility deprecated vector_size malloc returns_nonnull
    nonnull warn_unused_result format assume_aligned alloc_size global device shared host constant
    managed launch_bounds grid_constant
    """.split()  # noqa: SIM905 - as above
)
_HIDES = re.compile(r"no_?sanitize|no_instrument|disable_sanitizer|^optimize$|^target|^no_profile")


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
    defined = tuple(flag for flag in DEFINED if "assert" not in flag)
    fast, checked = kernel_flags(), check_flags()
    header = RUNTIME / "kernels" / "cudalab_cpu.h"
    builds = _builds(header, (*fast, *defined), (*checked, *defined))
    return builds._replace(names=own_names())


def of_programs() -> Builds:
    """The builds of a whole program."""
    more = ("-D__CUDACC__=1", "-DCUDALAB_CPU=1")
    fast = with_users(PROGRAM)
    checked = check_flags(("-fexceptions", "-frtti"))
    return _builds(CUDA_RUNTIME, (*fast, *more), (*checked, *more))


def from_json(builds: list[Any]) -> Builds:
    """The builds of a document: lists in the place of tuples."""
    *each, names = builds
    tests, sanitizer, gpu = (Build(tuple(flags), tuple(defined)) for flags, defined in each)
    return Builds(tests, sanitizer, gpu, tuple(names))


def _builds(header: Path, tests: tuple[str, ...], sanitizer: tuple[str, ...]) -> Builds:
    """Both builds, with the macros by which the `header` differs in them."""
    ours, theirs = (_macros(header, flags) for flags in (tests, sanitizer))
    gpu = [flag for flag in tests if "CUDALAB" not in flag and "__CUDA_ARCH__" not in flag]
    gpu += ["-D__NVCC__=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"]
    gpu += [f"-D__CUDA_ARCH__={GPU_ARCH}", "-Dcudalab_no_file(...)=0"]
    return Builds(
        Build(tests, tuple(sorted(ours - theirs))),
        Build(sanitizer, tuple(sorted(theirs - ours))),
        Build(tuple(gpu)),
    )


@cache
def _macros(header: Path, flags: tuple[str, ...]) -> frozenset[str]:
    """The names of the macros that are defined behind a header."""

    def read() -> Iterator[str]:
        command = (*find_compiler().compile, *flags, *for_kernels())
        done = run((*command, "-x", "c++", "-w", "-dM", "-E", str(header)))
        return (match[1] for match in _MACRO.finditer(done.stdout))

    made_of = (str(header), *flags, find_compiler().identity)
    return frozenset(_names("macros", made_of, read))


def own_names() -> tuple[str, ...]:
    """The functions and macros of the CPU device's runtime, which no submission may name."""

    def read() -> Iterator[str]:
        texts = (path.read_text(encoding="utf-8") for path in RUNTIME.rglob("*.h"))
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
    foreign = (message for seen in both for message in _foreign(seen, names))
    views.foreign = list(dict.fromkeys(foreign))
    return views


def of_program(text: str, label: str, builds: Builds) -> Views:
    """The views of a file of a whole program, whose host code may do more than a kernel."""
    views, both = _compared(f'#line 1 "{label}"\n{text}', builds, lambda name: name == label)
    foreign = (message for seen in both for message in _assembly(seen, is_kernel_file=False))
    views.foreign = list(dict.fromkeys(foreign))
    hiding = (f"{_at(seen, one)} ({one.text})" for seen in both for one in _hiding(seen.tokens))
    views.tells += list(dict.fromkeys(hiding))
    return views


# The text behind the preprocessor ----------------------------------------------------------------


class _Seen(NamedTuple):
    """What the preprocessor leaves of the submission's own files."""

    tokens: list[Token]
    places: list[Place]  # of each line of the text that the tokens are from
    lines: list[str]
    starts: list[int]  # the position at which each line begins


def _compared(
    text: str, builds: Builds, is_own: Callable[[str], bool]
) -> tuple[Views, list[_Seen]]:
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
    flags = [flag for flag in build.flags if flag != "-Werror=vla"]
    dates = ["-Wno-builtin-macro-redefined", *(f'-D__{one}__="0"' for one in _TIMES)]
    done = run((*find_compiler().compile, *flags, "-w", *dates, "-E", str(path)))
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


def _seen(lines: list[Line]) -> _Seen:
    texts = [text for _, _, text in lines]
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    tokens = tokenize("\n".join(texts) + "\n")
    return _Seen(tokens, [(file, line) for file, line, _ in lines], texts, starts)


def _at(seen: _Seen, token: Token) -> str:
    file, line = seen.places[bisect_right(seen.starts, token.start) - 1]
    return f"{file}:{line}"


# What no kernel holds ----------------------------------------------------------------------------


def _foreign(seen: _Seen, own: Collection[str]) -> Iterator[str]:
    """Messages about what nvcc rejects in a kernel file, or would not do."""
    yield from _assembly(seen, is_kernel_file=True)
    for name in unseen.attributes(seen.tokens):
        if name.text.strip("_") not in _ATTRIBUTES:
            yield f"{_at(seen, name)}: error: the attribute {name.text} is for host code"
    for token in seen.tokens:
        if token.kind == "directive" and (pragma := _PRAGMA.match(token.text)):
            if pragma["first"] in ("GCC", "clang", "redefine_extname", "weak", "STDC"):
                words = " ".join(filter(None, pragma.groups()))
                if words != "GCC unroll":
                    yield f"{_at(seen, token)}: error: #pragma {words} is for a host's compiler"
        elif token.kind == "name" and not _is_builtin_of_nvcc(token.text):
            yield f"{_at(seen, token)}: error: {token.text} is a function of a host's compiler"
        elif token.text in own:
            yield f"{_at(seen, token)}: error: {token.text} is a name of cudalab's own"
    for token, says in unseen.accesses(seen.tokens):
        yield f"{_at(seen, token)}: error: {says}"


def _is_builtin_of_nvcc(name: str) -> bool:
    """Whether nvcc compiles a function of that name for a GPU, if it is one of a compiler's."""
    if name == "__sync_threads":  # a slip of the pen, which the compiler explains
        return True
    if name.startswith(("__atomic_", "__sync_")):
        return False
    plain = name.removeprefix("__builtin_")
    return plain == name or plain in _BUILTINS or host_code.is_mathematical(plain)


def _assembly(seen: _Seen, *, is_kernel_file: bool) -> Iterator[str]:
    tokens = seen.tokens
    for i, token in enumerate(tokens):
        if token.text not in ("asm", "__asm", "__asm__"):
            continue
        begin = next((k for k in range(i + 1, len(tokens)) if tokens[k].text == "("), None)
        end = None if begin is None else closing(tokens, begin)
        if begin is None or end is None:
            yield f"{_at(seen, token)}: error: assembly of the host"
            continue
        strings = []
        for inside in tokens[begin + 1 : end]:
            if inside.kind != "string":
                break
            strings.append(inside.text)
        if strings and not "".join(strings).replace('"', "").strip():
            continue  # no instruction: it keeps the compiler from moving or dropping something
        if is_kernel_file:
            yield (
                f"{_at(seen, token)}: error: inline assembly: a GPU's cannot run on the CPU "
                'device (declare requires = ["inline_ptx"]), and the host\'s is no kernel'
            )
        elif not _is_ptx(tokens[begin + 1 : end], "\n".join(seen.lines)):
            yield f"{_at(seen, token)}: error: inline assembly that is no PTX, or none known here"


def _is_ptx(tokens: Sequence[Token], text: str) -> bool:
    """Whether an `asm` statement with these tokens of a text is one that is translated here."""
    statement = ptx.read(tokens, text)
    try:
        return statement is not None and bool(ptx.translate(statement))
    except ptx.UnknownInstructionError:
        return False


def _hiding(tokens: Sequence[Token]) -> Iterator[Token]:
    """Attributes and questions by which a program hides from the sanitizer."""
    for name in unseen.attributes(tokens):
        if _HIDES.search(name.text.strip("_")):
            yield name
    for token in tokens:
        if token.text in ("__builtin_constant_p", "__builtin_object_size"):
            yield token
        pragma = _PRAGMA.match(token.text) if token.kind == "directive" else None
        if pragma and pragma["first"] == "GCC" and pragma["second"] in ("optimize", "target"):
            yield token
