"""nvcc: its path, its input, its messages, and the cache of its cubins.

Nothing here needs a GPU or PyCUDA.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError, install_command
from cudalab.language.source import blank_comments
from cudalab.system.cache import cache_dir, disk_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")
FLAGS = ("-std=c++17", "-O3", "-lineinfo")
# Environment variables that nvcc reads, which affect its output.
_ENVIRONMENT = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")

_SYSTEM_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*<[^>]+>")
_CONDITIONAL = re.compile(r"[ \t]*#[ \t]*(if|endif)")
_PLACE = re.compile(r"^(.+?)\((\d+)\): (?=(?:catastrophic )?(?:error|warning|remark|note)\b)")
_NOISE = re.compile(
    r"\d+ errors? detected in the compilation of|[Cc]ompilation terminated\.|Remark: The warnings"
)
_DIGEST_BYTES = 32


def find_nvcc() -> Path:
    """The compiler: on PATH, in CUDA_HOME or CUDA_PATH, /usr/local/cuda, or the wheel's."""
    for candidate in _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise NoDeviceError(
        "no CUDA compiler: nvcc is neither on PATH nor in CUDA_HOME, CUDA_PATH, /usr/local/cuda "
        "or an installed nvidia-cuda-nvcc",
        hint=f"put a CUDA toolkit's bin folder on PATH, or `{install_command('cuda')}`",
    )


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("nvcc")
    if on_path:
        yield Path(on_path)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "bin", "nvcc")
    yield SYSTEM_NVCC
    for packages in _nvidia_packages():
        yield from sorted(packages.glob("cu[0-9]*/bin/nvcc"), reverse=True)  # CUDA 13 and later
        yield packages / "cuda_nvcc" / "bin" / "nvcc"


def _nvidia_packages() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def include_flags(nvcc: Path) -> list[str]:
    """Flags for headers that nvcc does not find: wheels before CUDA 13 are separate."""
    if nvcc.parent.parent.name != "cuda_nvcc":
        return []
    beside = nvcc.parent.parent.parent
    return [f"-I{folder}" for folder in sorted(beside.glob("cuda_*/include"))]


def with_defines(text: str, defines: Mapping[str, str | int]) -> str:
    """Put `defines` in front of a source's text, behind the system headers it includes.

    They are no -D flags because those would reach CUDA's own headers, whose templates call their
    parameter T too. `text` begins with a #line directive, so its line numbers stay.
    """
    includes = _system_includes(text)
    return "\n".join(
        [*includes, *(f"#define {name} {value}" for name, value in defines.items()), text]
    )


def _system_includes(text: str) -> list[str]:
    """The unconditional `#include <...>` lines of `text`."""
    includes, depth = [], 0
    for line in blank_comments(text).splitlines():
        conditional = _CONDITIONAL.match(line)
        if conditional:
            depth += 1 if conditional[1] == "if" else -1
        elif depth == 0 and _SYSTEM_INCLUDE.match(line):
            includes.append(line.strip())
    return includes


def readable(messages: str) -> str:
    """The messages with places as `file:line:`, as other compilers write them."""
    lines = [_PLACE.sub(r"\1:\2: ", line) for line in messages.splitlines()]
    lines = [line.rstrip() for line in lines if line.strip() and not _NOISE.search(line)]
    return "\n".join(lines)


def rejection(label: str, messages: str) -> CudalabError:
    """The error for a failed compilation: the kernel's fault, or the installation's."""
    full = disk_full(messages)
    if full:
        return full
    text = readable(messages)
    if "unsupported GNU version" in text or "unsupported clang version" in text:
        return NoDeviceError(
            f"nvcc does not accept the host compiler:\n{text}",
            hint="name an older one in NVCC_CCBIN, for example NVCC_CCBIN=g++-13",
        )
    if "Failed to preprocess host compiler" in text or "Cannot find compiler" in text:
        return NoDeviceError(
            f"nvcc needs a C++ compiler on the host and finds none:\n{text}",
            hint="install g++ (for example `apt install g++`), or name one in NVCC_CCBIN",
        )
    if "Unsupported gpu architecture" in text:
        return NoDeviceError(
            f"this nvcc cannot compile for the device:\n{text}",
            hint="install the CUDA toolkit that goes with the device",
        )
    if "nvcc fatal" in text:
        return NoDeviceError(f"nvcc does not work here:\n{text}")
    return KernelCompileError(f"{label} does not compile:\n{text}")


def cache_key(nvcc: Path, text: str, arch: str) -> str:
    """The cache key of a cubin: source, target, flags and nvcc. Starts no process."""
    status = nvcc.stat()
    identity = (str(nvcc), status.st_mtime_ns, status.st_size, arch, *FLAGS)
    environment = (os.environ.get(name, "") for name in _ENVIRONMENT)
    parts = "\0".join(map(str, (*identity, *environment, text)))
    return hashlib.sha256(parts.encode()).hexdigest()


def cached(key: str) -> bytes | None:
    """The cubin stored under `key`; None if it is missing or damaged."""
    try:
        entry = _entry(key).read_bytes()
    except OSError:
        return None
    cubin, digest = entry[:-_DIGEST_BYTES], entry[-_DIGEST_BYTES:]
    return cubin if hashlib.sha256(cubin).digest() == digest else None


def store(key: str, cubin: bytes) -> None:
    """Store a cubin, followed by its digest: the driver would read beyond a truncated one.

    A full disk costs the next run a compilation, nothing else.
    """
    entry = _entry(key)
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(dir=entry.parent, suffix=".partial")
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(cubin + hashlib.sha256(cubin).digest())
            partial.replace(entry)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _entry(key: str) -> Path:
    return cache_dir("cuda") / f"{key}.cubin"
