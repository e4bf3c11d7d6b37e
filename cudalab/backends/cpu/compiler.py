"""The host's C++ compiler: found, and run at most once for each source.

A compiled library is kept in the user's cache under a hash of everything that went into it:
source, runtime, compiler, flags and the processor's features (homes are shared between machines).
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cudalab.cache import cache_dir
from cudalab.errors import KernelCompileError, NoDeviceError

# The commands that turn a source file into an object file and that into a library.
Steps = Callable[[str, str, str], tuple[tuple[str, ...], ...]]

RUNTIME = Path(__file__).parent / "runtime"

FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native" if platform.machine() == "x86_64" else "-mcpu=native",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-math-errno",  # CUDA's math functions set no errno
    "-fno-trapping-math",
    "-fwrapv",  # kernels count on wrapping integers and on type punning, as nvcc compiles them
    "-fno-strict-aliasing",
    "-fno-sanitize=undefined",  # on by default in some compilers
    "-fno-threadsafe-statics",
    "-w",  # nvcc, which graders run, has other warnings
)


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C++ and one that links without a C++ runtime library."""

    name: str
    compile: tuple[str, ...]
    link: tuple[str, ...]
    identity: str  # changes when the compiler does

    def version(self) -> str:
        """The first line of what the compiler says about itself."""
        command = [*self.compile, "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        return (answer.stdout or answer.stderr).partition("\n")[0].strip()


@cache
def find_compiler() -> Compiler:
    """$CXX, g++, clang++ or the `ziglang` package, in this order. NoDeviceError without one."""
    named = os.environ.get("CXX", "").strip()
    for command in ([named] if named else []) + ["g++", "clang++"]:
        words = tuple(shlex.split(command))
        path = shutil.which(words[0])
        if path is not None:
            return Compiler(command, words, words, _identity(Path(path)))
        if command == named:
            raise NoDeviceError(
                f"no such compiler: {named} (from the environment variable CXX)",
                hint="unset CXX, or set it to g++ or clang++",
            )
    zig = find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        run = (sys.executable, "-m", "ziglang")
        # Linked as C: the runtime needs no C++ library, and zig would build one first.
        return Compiler("zig c++", (*run, "c++"), (*run, "cc"), _identity(Path(zig.origin)))
    raise NoDeviceError(
        "the CPU device needs a C++ compiler: found no g++, no clang++ and no ziglang package",
        hint="pip install 'cudalab[cpu]', or install g++",
    )


def _identity(path: Path) -> str:
    status = path.stat()
    return f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"


@cache
def _processor() -> str:
    """What -march=native depends on."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.findall(r"^(?:model name|flags|Features)\s*:.*$", text, re.MULTILINE)
        return "\n".join(found[:2])
    return f"{platform.machine()} {platform.processor()}"


def runtime_library() -> Path:
    """The compiled scheduler (runtime.cpp) that every kernel library links against."""
    text = (RUNTIME / "runtime.cpp").read_text(encoding="utf-8")
    return _library("runtime", text, ("-pthread",))


def kernel_library(text: str, label: str) -> Path:
    """Compile the C++ of a prepared kernel file. KernelCompileError with the messages."""
    return _library(Path(label).stem, text, (str(runtime_library()),))


def _library(stem: str, text: str, link_with: tuple[str, ...]) -> Path:
    """The cached library for `text`, compiled when there is none."""
    compiler = find_compiler()
    flags = (*FLAGS, *shlex.split(os.environ.get("CUDALAB_CXXFLAGS", "")))
    header = (RUNTIME / "cudalab_cpu.h").read_text(encoding="utf-8")
    parts = (text, header, compiler.identity, _processor(), *flags, *link_with)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    library = cache_dir("cpu") / f"{stem}-{key}.so"
    if not library.exists():
        _build(
            compiler,
            text,
            lambda source, compiled, built: (
                (*compiler.compile, *flags, "-I", str(RUNTIME), "-c", source, "-o", compiled),
                (*compiler.link, "-shared", compiled, *link_with, "-o", built),
            ),
            library,
        )
    return library


def _build(compiler: Compiler, text: str, steps: Steps, library: Path) -> None:
    """Compile beside the cache entry and move the result into place: never a half-written one."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=library.parent) as folder:
        source, compiled, built = (
            Path(folder, name) for name in ("kernel.cpp", "kernel.o", "kernel.so")
        )
        source.write_text(text, encoding="utf-8")
        environment = {"ZIG_GLOBAL_CACHE_DIR": str(cache_dir("zig")), **os.environ}
        for step in steps(str(source), str(compiled), str(built)):
            done = subprocess.run(
                step, capture_output=True, text=True, errors="replace", check=False, env=environment
            )
            if done.returncode != 0:
                raise _compile_error(done.stderr or done.stdout, compiler, text)
        built.replace(library)


def _compile_error(messages: str, compiler: Compiler, text: str) -> KernelCompileError:
    hint = None
    if re.search(r"\basm\b", text):
        hint = "inline PTX cannot run on the CPU device: declare requires = ['inline_ptx']"
    elif "<<<" in text:
        hint = "a kernel file holds kernels only: cudalab launches them"
    return KernelCompileError(f"{compiler.name} rejected the kernel:\n{messages.strip()}", hint)
