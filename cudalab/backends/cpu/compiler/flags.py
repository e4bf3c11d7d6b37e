"""The host compiler's flags for kernels and for whole programs. Imports nothing heavy."""

import os
import platform
import re
import shlex
from functools import cache
from pathlib import Path

from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.errors import NoDeviceError, install_command

RUNTIME = Path(__file__).parents[1] / "runtime"
CUDA_RUNTIME = RUNTIME / "include" / "cuda_runtime.h"
OF_SAMPLES = RUNTIME / "optional" / "samples" / "include"  # headers that NVIDIA's samples share

_COMMON = (
    "-std=c++17",
    "-O3",
    "-fno-math-errno",  # CUDA's math functions set no errno
    "-fno-trapping-math",
    "-fwrapv",  # kernels count on wrapping integers and on type punning, as nvcc compiles them
    "-fno-strict-aliasing",
    "-fno-finite-loops",  # a loop that does not end on a GPU does not end here
    "-fno-delete-null-pointer-checks",  # dereferencing a null pointer is a fault, not undefined
    "-fno-sanitize=undefined",  # on by default in some compilers
    "-UNDEBUG",  # likewise, and with it assert() would do nothing
    "-fmax-errors=20",  # g++ needs a minute for 40,000
)
KERNEL = (
    *_COMMON,
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-Werror=vla",  # as with nvcc; other warnings are not shown
    "-ffp-contract=off",  # an optimizer's fused products would differ by tier and by compiler
)
# Conversions of numbers that do not fit call runtime/grids/unfitting.h, not the compiler's library.
FITTING = "-fsanitize=float-cast-overflow"
# In place of -O3, for g++: loops over threads are much code, of which -O3 would make more. Fibers
# need two things of -O3.
GCC_OPTIMIZED = (
    *("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic"),
    *("-fsplit-loops", "-fpeel-loops"),
    *("-fgcse-after-reload", "--param=max-inline-insns-single=200"),
    "--param=max-completely-peeled-insns=120",  # not 200: a small loop becomes less code
)
# In place of -O3, for kernels that run on small inputs only: compiling takes the time.
QUICK_OPTIMIZED = ("-Og",)
QUICK = "CUDALAB_QUICK"  # in the environment, "1": kernels are compiled so
PROGRAM = (
    *_COMMON,
    "-ffp-contract=off",  # as for kernels; -Xcompiler -ffp-contract=fast follows it
    "-g1",  # the line of a crash
    "-pthread",
    "-w",  # nvcc, which graders run, has other warnings
    FITTING,
)
# For g++ only: a division by a zero that it knows of is an instruction, too, and no trap.
GCC_PROGRAM = ("-fno-isolate-erroneous-paths-dereference",)
# A part of the runtime of whole programs: it must link without a C++ library.
PART = (
    *PROGRAM,
    *("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-DCUDALAB_PART"),
    "-fno-sanitize=float-cast-overflow",
)

# For check mode every access of the source must be there once, in the order of the source: nothing
# is optimized, and compilers report the same.
CHECK = ("-DCUDALAB_CHECK",)
_NOT_OPTIMIZED = (
    *(flag for flag in KERNEL if flag != "-O3"),
    *("-g1", "-gdwarf-4"),  # of later versions addr2line takes the first file for the source
    "-fno-omit-frame-pointer",
    "-fdata-sections",  # and so a label for each variable, before which assembly/ puts a zone
    *CHECK,
    "-fsanitize=thread",
)
_HOOKS_GCC = (
    *("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"),  # without a hook
    "-fsanitize-coverage=trace-pc",
    "-fsanitize=bounds-strict",  # of a structure's last array, too
    "--param=tsan-distinguish-volatile=1",
    "--param=logical-op-non-short-circuit=0",
)
_HOOKS_CLANG = (
    "-fsanitize-coverage=trace-pc,no-prune",
    "-fsanitize=array-bounds",
    "-fno-sanitize-trap=array-bounds",
    *("-mllvm", "-tsan-distinguish-volatile=1"),
    *("-mllvm", "-tsan-instrument-read-before-write=1"),
)
_OLDEST_GCC = 11  # the first that distinguishes volatile accesses

# As in cudalab_cpu.h, which is not read when the conditions of a kernel file are decided.
DEFINED = (
    *("-D__CUDA_ARCH__=750", "-D__CUDACC__=1", "-DCUDALAB_CPU=1"),
    "-Dassert(...)=cudalab_assert(#__VA_ARGS__, __VA_ARGS__)",  # which keeps the text of the source
)


# What the compiler and the user decide -----------------------------------------------------------

# The kind of processor that $CXX compiles for, such as aarch64: aarch64-linux-gnu-g++, or an
# option -target aarch64-linux-gnu.
_TARGET = re.compile(r"(?<![\w-])(\w+)-(?:\w+-)?linux\b|target[= ](\w+)-")


def with_users(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags, those for the processor, and those of the variable CUDALAB_CXXFLAGS."""
    here, target = platform.machine(), _TARGET.search(os.environ.get("CXX", ""))
    native = "-march=native" if here == "x86_64" else "-mcpu=native"
    tuning = [native] if target is None or here in target.groups() else []
    return (*flags, *tuning, *shlex.split(os.environ.get("CUDALAB_CXXFLAGS", "")))


def stops_at_zero() -> bool:
    """Whether the processor that programs are compiled for refuses an integer division by zero."""
    target = _TARGET.search(os.environ.get("CXX", ""))
    names = target.groups() if target else (platform.machine(),)
    return "x86_64" in names


def kernel_flags() -> tuple[str, ...]:
    """The flags for kernels that are optimized, or not much if the environment has QUICK."""
    if os.environ.get(QUICK) == "1":
        return optimized(QUICK_OPTIMIZED)
    return with_users(KERNEL) if find_compiler().is_clang else optimized(GCC_OPTIMIZED)


def optimized(instead: tuple[str, ...]) -> tuple[str, ...]:
    """The flags for kernels with others in place of -O3."""
    at = KERNEL.index("-O3")
    return with_users((*KERNEL[:at], *instead, *KERNEL[at + 1 :]))


def check_flags(more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The flags for kernels in check mode; the user's may not optimize them."""
    return (*with_users((*_NOT_OPTIMIZED, *_hooks(), *more)), "-O0")


@cache
def _hooks() -> tuple[str, ...]:
    """The flags that make the compiler call the hooks of check mode."""
    if find_compiler().is_clang:
        return _HOOKS_CLANG
    version = find_compiler().version()
    number = re.search(r" (\d+)\.\d+", version)
    if number and int(number[1]) < _OLDEST_GCC:
        raise NoDeviceError(
            f"check mode needs g++ {_OLDEST_GCC} or later, or clang: found {version}",
            hint=f"{install_command('cpu')} and set CXX to: python -m ziglang c++",
        )
    return _HOOKS_GCC


# Where the runtime's headers are ------------------------------------------------------------------


@cache
def for_programs() -> tuple[str, ...]:
    """The options by which programs find the headers that CUDA's documents name."""
    optional = sorted(RUNTIME.glob("optional/*/include"))
    return _searched(RUNTIME / "include", RUNTIME / "include" / "aliases", *optional)


def has_header(name: str) -> bool:
    """Whether programs find a header of this name."""
    return any(os.path.isfile(f"{folder}/{name}") for folder in for_programs()[1::2])  # noqa: PTH113 - read at each start


def for_kernels() -> tuple[str, ...]:
    """The options by which kernel files find what CUDA's words mean here, too."""
    return (*_searched(RUNTIME / "kernels"), *for_programs())


@cache
def for_runtime() -> tuple[str, ...]:
    """The options by which the runtime's own sources find each other."""
    own = (RUNTIME / name for name in ("api", "check", "grids", "order"))
    return (*_searched(*own, *sorted(RUNTIME.glob("optional/*"))), *for_kernels())


def _searched(*folders: Path) -> tuple[str, ...]:
    return tuple(option for folder in folders for option in ("-I", str(folder)))
