"""The host compiler's flags for kernels and for whole programs. Imports nothing heavy."""

import os
import platform
import re
import shlex
from functools import cache
from pathlib import Path

RUNTIME = Path(__file__).parent / "runtime"
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

# As in cudalab_cpu.h, which is not read when the conditions of a kernel file are decided.
DEFINED = (
    *("-D__CUDA_ARCH__=750", "-D__CUDACC__=1", "-DCUDALAB_CPU=1"),
    "-Dassert(...)=cudalab_assert(#__VA_ARGS__, __VA_ARGS__)",  # which keeps the text of the source
)


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
    own = (RUNTIME / name for name in ("api", "check", "grids"))
    return (*_searched(*own, *sorted(RUNTIME.glob("optional/*"))), *for_kernels())


def _searched(*folders: Path) -> tuple[str, ...]:
    return tuple(option for folder in folders for option in ("-I", str(folder)))


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
