"""CCCL, NVIDIA's own C++ headers: Thrust, CUB and libcu++ for programs on the CPU device.

They are installed as a package, or with a CUDA toolkit. `runtime/optional/cccl` holds the few
headers that take the place of theirs. Imports nothing heavy, for a program that is cached starts at
once.
"""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from cudalab.backends.cpu.compiler import toolchain
from cudalab.backends.cpu.compiler.flags import RUNTIME
from cudalab.errors import install_command

OURS = RUNTIME / "optional" / "cccl"  # found before NVIDIA's
OLDEST = (3, 5)  # headers of ours include and replace some that 3.2 does not have
_NAMED = re.compile(r"(?:thrust|cub|cuda|nv)/")
_INCLUDE = re.compile(
    rf'^[ \t]*#[ \t]*include[ \t]*[<"]({_NAMED.pattern})[^">\n]+[">]', re.MULTILINE
)
# These launch kernels or need a GPU's own instructions; some of them are among ours.
_FOR_GPUS = re.compile(r"cub/(?:device|grid)/|cuda/(?:ptx|tma|work_stealing)|thrust/system/tbb")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION = re.compile(r"#\s*define\s+CCCL_VERSION\s+(\d+)")


@dataclass(frozen=True)
class Headers:
    """A folder of NVIDIA's headers."""

    folder: str
    version: tuple[int, int, int]


@cache
def installed() -> Headers | None:
    """The headers of the package `nvidia-cuda-cccl` or of a CUDA toolkit, or None."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    packages = [os.path.join(each, "nvidia", "cu13") for each in sys.path]  # noqa: PTH118 - quick
    for root in (*packages, *filter(None, toolkits)):
        folder = f"{root}/include/cccl"
        try:
            with open(f"{folder}/cuda/std/__cccl/version.h", encoding="utf-8") as file:  # noqa: PTH123 - as above
                match = _VERSION.search(file.read())
        except OSError:
            continue
        if match:
            number = int(match[1])
            return Headers(folder, (number // 1000000, number // 1000 % 1000, number % 1000))
    return None


def is_part(header: str) -> bool:
    """Whether a header is one of CCCL's."""
    return _NAMED.match(header) is not None


def has(header: str) -> bool:
    """Whether a program on the CPU device can include this header of CCCL."""
    package = installed()
    if package is None or package.version < OLDEST:
        return False
    if (OURS / header).is_file():
        return True
    return not _FOR_GPUS.match(header) and os.path.isfile(f"{package.folder}/{header}")  # noqa: PTH113 - as above


def headers_of(names: Iterable[str]) -> list[str]:
    """The headers of Thrust that declare these names of its namespace.

    With nvcc many of them come by others.
    """
    package = installed()
    if package is None:
        return []
    headers = set[str]()
    for name in names:
        short = "execution_policy" if name in ("device", "host", "seq") else name
        short = short.removeprefix("make_")
        likely = (f"thrust/{short}.h", f"thrust/iterator/{short}.h")
        declared = re.compile(rf"\b(?:struct|class|using) {name}\b|(?<!::)\b{name}\(")
        declaring = (
            each for each, code in _thrust(package.folder).items() if declared.search(code)
        )
        headers |= {next(filter(has, likely), "") or next(declaring, "")}
    return sorted(headers - {""})


@cache
def _thrust(folder: str) -> dict[str, str]:
    """The code of Thrust's own headers, without comments."""
    codes: dict[str, str] = {}
    for root in (str(OURS), folder):
        for name in sorted(os.listdir(f"{root}/thrust")):  # noqa: PTH208 - as above
            if name.endswith(".h"):
                with open(f"{root}/thrust/{name}", encoding="utf-8") as file:  # noqa: PTH123
                    code = _COMMENT.sub("", file.read())
                codes[f"thrust/{name}"] = codes.get(f"thrust/{name}", "") + code
    return codes


def why_missing() -> str:
    """The hint for a program that includes headers of CCCL, or "" if it is installed."""
    package = installed()
    if package is not None and package.version >= OLDEST:
        return ""
    install = f"NVIDIA's headers are an extra: {install_command('libraries')}"
    if package is None:
        return install
    return f"CCCL {'.'.join(map(str, package.version))} in {package.folder} is too old; {install}"


def flags(texts: Iterable[str]) -> list[str]:
    """The compiler's flags for a program with these files."""
    libraries, package = _used(texts), installed()
    if not libraries or package is None:
        return []
    # CUB's classes use a name in two meanings, which g++ rejects without this option.
    is_lenient = "cub/" in libraries and not toolchain.find_compiler().is_clang
    lenient = ["-fpermissive"] if is_lenient else []
    return [*lenient, "-isystem", str(OURS), "-isystem", package.folder]


def identity(texts: Iterable[str]) -> str:
    """What a program with these files depends on: the place and the version of the headers."""
    return repr(installed()) if _used(texts) else ""


def _used(texts: Iterable[str]) -> set[str]:
    return {prefix for text in texts for prefix in _INCLUDE.findall(text)}
