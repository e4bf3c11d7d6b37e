"""The host's C++ compiler: finding it, running it, linking with it, and naming what it makes."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cudalab import __version__
from cudalab.errors import NoDeviceError, install_command
from cudalab.output import progress
from cudalab.system.cache import READ_ONLY, cache_dir

if TYPE_CHECKING:
    import subprocess

    Done = subprocess.CompletedProcess[str]


# In ld's messages, in English: a place, or how they end; and an index that is too large.
_PLACE = re.compile(r": in function `|^collect2: |additional relocation overflows omitted")
_TOO_FAR = re.compile(r"relocation truncated to fit: R_X86_64_D?TPOFF32 ")

# A compiler may link its C++ library into ours, while Python has loaded another version of it: then
# its symbols are ours alone.
_OWN_CXX = "-Wl,--exclude-libs,libstdc++.a:libsupc++.a"

# Zig: how it links, the symbols that it misses, in lld's words, and what providing them takes.
_ZIG_LINKS = ("-z", "defs", "-fno-ubsan-rt", "-fno-compiler-rt", "-lc")
_NEEDS_CXX = re.compile(
    r"undefined symbol: .*(\bstd::|\boperator |__cxxabiv1|__cxa_|__gxx_|_Unwind_)"
)
_NEEDS_ARITHMETIC = re.compile(r"undefined symbol: __\w")
_COMPILES_CXX = "zig compiles the C++ library, once: about a minute of processor time"
_COMPILES_ARITHMETIC = "zig compiles the arithmetic that this processor lacks, once"
_USES_CXX = re.compile(r"\bstd\s*::|\bnamespace\s+std\b|\bnew\b|\bthrow\b")
_ARCHIVE = re.compile(r"\S+/lib[\w+]+\.a\b")


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C++ and links it."""

    name: str
    compile: tuple[str, ...]
    identity: str  # differs for another compiler
    only_checks: ClassVar = ("-fsyntax-only",)  # the flags for a text of which no code is wanted

    def version(self) -> str:
        """The first line of the compiler's version message.

        It is asked once: a process that has confined itself starts no program.
        """
        return _version(self.compile)

    @property
    def is_clang(self) -> bool:
        """Whether it is clang or zig, which is clang."""
        return "clang" in self.version()

    def link(self, to: Path, inputs: Sequence[str], *, shared: bool) -> Done:
        """Link a library or a program; symbols may be missing from a library."""
        kind = ("-shared", _OWN_CXX) if shared else ()
        command = (*self.compile, *kind, *inputs, "-pthread", "-ldl", "-o", str(to))
        done = run(command)
        if done.returncode and _counts_too_far(done.stderr):
            done = run((*command, "-Wl,--noinhibit-exec"))
        return done

    def libraries(self, text: str) -> Sequence[Path]:
        """The libraries that a program of such a text may need and that are not installed."""
        del text
        return ()


@cache
def _version(compiler: tuple[str, ...]) -> str:
    done = run((*compiler, "--version"))
    return (done.stdout or done.stderr).partition("\n")[0].strip()


class Zig(Compiler):
    """Zig, which has the C and C++ libraries as source and compiles what a program links with.

    That takes up to a minute of processor time, so a library is named only if a symbol is missing
    without it, and the machine's own libraries come first. (The C library is no such case: zig
    links with an empty one, which has the symbols and their versions.)
    """

    only_checks = ("-O0",)  # it takes a text without an object for a failure

    def link(self, to: Path, inputs: Sequence[str], *, shared: bool) -> Done:
        """Link a library or a program, first with the C library only."""
        kind = ("build-lib", "-dynamic", "-fno-soname") if shared else ("build-exe",)
        common = (*self._zig, *kind, *inputs, f"-femit-bin={to}", *_ZIG_LINKS)
        done = run(common)
        if _NEEDS_CXX.search(done.stderr) or _NEEDS_ARITHMETIC.search(done.stderr):
            done = run((*common, *_libraries_here()))
        if _NEEDS_CXX.search(done.stderr):
            common = (*common, *(map(str, self.libraries("std::")) or ["-lc++"]))
            done = run(common)
        if _NEEDS_ARITHMETIC.search(done.stderr):
            with progress.stage(_COMPILES_ARITHMETIC, once=True):
                done = run((*common, "-fcompiler-rt"))
        return done

    def libraries(self, text: str) -> Sequence[Path]:
        """The C++ library if a program of such a text may need it; it is compiled once."""
        if not _USES_CXX.search(text):
            return ()
        key = hashlib.sha256(self.identity.encode()).hexdigest()[:16]
        folder = cache_dir("zig") / f"c++-{key}"
        if not folder.is_dir() and not os.environ.get(READ_ONLY):
            with progress.stage(_COMPILES_CXX, once=True):
                self._compile_library(folder)
        return sorted(folder.glob("*.a"))

    def _compile_library(self, folder: Path) -> None:
        """Keep the parts of the C++ library that zig links an empty program with."""
        from tempfile import TemporaryDirectory  # noqa: PLC0415 - with zig only

        with TemporaryDirectory(dir=folder.parent) as name:
            program, kept = Path(name, "empty.c"), Path(name, "kept")
            program.write_text("int main(void) { return 0; }\n", "utf-8")
            kept.mkdir()
            command = (*self._zig, "build-exe", str(program), f"-femit-bin={name}/empty", "-lc++")
            done = run((*command, *_ZIG_LINKS, "--verbose-link"), ZIG_LOCAL_CACHE_DIR=name)
            for part in _ARCHIVE.findall(done.stderr):
                shutil.copy(part, kept)
            if any(kept.iterdir()):
                with suppress(OSError):  # another process was faster
                    kept.rename(folder)

    @property
    def _zig(self) -> tuple[str, ...]:
        return self.compile[: self.compile.index("c++")]


def _counts_too_far(messages: str) -> bool:
    """Whether indices far outside of shared arrays are all that ld refuses.

    g++ adds an index that it knows to the array's offset, of which ld keeps 32 bits: as many as
    addresses of shared memory have on a GPU.
    """
    lines = [line for line in messages.splitlines() if not _PLACE.search(line)]
    return bool(lines) and all(_TOO_FAR.search(line) for line in lines)


@cache
def _libraries_here() -> list[str]:
    """The link options for the machine's own C++ library: exceptions, `new`, 128-bit division.

    Python finds it, for NumPy needs it; only its headers come with a compiler. What zig's headers
    call by names of their own is missing in it.
    """
    import ctypes  # noqa: PLC0415 - with zig only

    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        with suppress(OSError):
            ctypes.CDLL(name)
    mapped = ""
    with suppress(OSError):
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
    paths = sorted(set(re.findall(r"/.*/(?:libstdc\+\+|libgcc_s)\.so.*", mapped)))
    return [*paths, *(word for path in paths for word in ("-rpath", str(Path(path).parent)))]


@cache
def find_compiler() -> Compiler:
    """$CXX, g++, clang++ or the `ziglang` package, in this order. NoDeviceError without one."""
    named = os.environ.get("CXX", "").strip()
    for command in ([named] if named else []) + ["g++", "clang++"]:
        words = tuple(shlex.split(command))
        path = shutil.which(words[0])
        if path is not None:
            is_zig = "c++" in words and any("zig" in Path(word).name for word in words)
            return (Zig if is_zig else Compiler)(command, words, _identity(Path(path)))
        if command == named:
            raise NoDeviceError(
                f"no such compiler: {named} (from the environment variable CXX)",
                hint="unset CXX, or set it to g++ or clang++",
            )
    zig = find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        program = Path(zig.origin).with_name("zig")
        return Zig("zig c++", (str(program), "c++"), _identity(program))
    raise NoDeviceError(
        "the CPU device needs a C++ compiler: found no g++, no clang++ and no ziglang package",
        hint=f"{install_command('cpu')}, or install g++; `cudalab doctor` looks at all of it",
    )


def compiler_identity() -> str:
    """What tells the compiler from another one, and from another version; empty without any."""
    try:
        return find_compiler().identity
    except NoDeviceError:  # what is in the cache needs none
        return ""


def _identity(path: Path) -> str:
    status = path.stat()
    return f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"


def run(command: Sequence[str], **variables: str) -> Done:
    """Run a compiler; its messages are in the result."""
    import subprocess  # noqa: PLC0415 - what is cached needs no compiler

    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False,
        env=environment() | variables,
    )  # fmt: skip


def environment() -> dict[str, str]:
    """The environment of compilers: what zig compiles for itself is kept with our own libraries."""
    zig = os.environ.get("ZIG_GLOBAL_CACHE_DIR") or str(cache_dir("zig"))
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}


# What is cached ----------------------------------------------------------------------------------

PACKAGE = os.path.abspath(f"{__file__}/../../../..")  # noqa: PTH100 - read at each start
# Folders of which every source takes part in turning CUDA into what a processor runs.
_DECIDING = ("language", "program", "backends/cpu")
_LEFT_OUT = ("__pycache__",)
LONGEST_STEM = 66  # bytes; a file system takes names of 255


def cached(kind: str, stem: str, *parts: str | bytes, suffix: str = "") -> Path:
    """Where the user's cache has what is made of `parts`; it may not exist yet.

    `parts` are what decides besides this version of cudalab, the processor and the compiler: the
    sources and the flags.
    """
    stem = os.fsdecode(os.fsencode(stem)[:LONGEST_STEM])
    return cache_dir(kind) / f"{stem}-{key(compiler_identity(), *parts)}{suffix}"


def key(*parts: str | bytes) -> str:
    """A name for what is made of `parts` by this version of cudalab, on this processor."""
    return digest(_code(PACKAGE), __version__, processor(), *parts)


def digest(*parts: str | bytes) -> str:
    """A hash of the content of `parts`, for use in a name."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()[:24]


@cache
def _code(package: str) -> str:
    """A hash of all code that reads CUDA, rewrites it, compiles it and is compiled with it."""
    contents: list[str | bytes] = []
    for part in _DECIDING:
        for folder, folders, names in os.walk(f"{package}/{part}"):
            folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
            for name in sorted(names):
                with open(f"{folder}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - as above
                    contents += [folder.removeprefix(package), name, file.read()]
    return digest(*contents)


@cache
def processor() -> str:
    """The value that -march=native depends on: the first processor that the system describes."""
    try:
        with open("/proc/cpuinfo", "rb") as cpuinfo:  # noqa: PTH123 - read at each start
            text = cpuinfo.read(8192).partition(b"\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    lines = text.decode(errors="replace").splitlines()
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Feature")))
