"""nvcc: the one to take, its input, its messages, and the cache of its cubins.

Nothing here needs a GPU or PyCUDA.
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from cudalab.backends.cuda import driver
from cudalab.backends.cuda.driver import Release
from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError, install_command
from cudalab.system.cache import cache_dir, disk_full, put

SYSTEM = Path("/usr/local/cuda")
FLAGS = ("-std=c++17", "-O3", "-lineinfo")
# Environment variables that nvcc reads, which affect its output.
_ENVIRONMENT = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")

_PLACE = re.compile(r"^(.+?)\((\d+)\): (?=(?:catastrophic )?(?:error|warning|remark|note)\b)")
_NOISE = re.compile(
    r"\d+ errors? detected in the compilation of|[Cc]ompilation terminated\.|Remark: The warnings"
)
_DIGEST_BYTES = 32


def find_nvcc(arch: str | None = None) -> Path:
    """The first of `compilers` whose code the driver and a GPU of `arch` (sm_75) can run.

    NoDeviceError with the reason why each was passed over, if there is none.
    """
    passed_over = []
    for compiler in compilers():
        reason = unsuitable(compiler, arch)
        if reason is None:
            return compiler
        passed_over.append(f"{compiler}: {reason}")
    if passed_over:
        raise NoDeviceError(
            "no CUDA compiler here fits the GPU:\n" + "\n".join(passed_over),
            hint="`cudalab device --why` says what to install",
        )
    raise NoDeviceError(
        "no CUDA compiler: nvcc is neither on PATH nor in CUDA_HOME, CUDA_PATH, /usr/local/cuda "
        "or an installed nvidia-cuda-nvcc",
        hint=f"put a CUDA toolkit's bin folder on PATH, or `{install_command('cuda')}`",
    )


def compilers() -> Iterator[Path]:
    """Every nvcc of the machine: what the user names, then the installed ones, newest first.

    The user names one by PATH, CUDA_HOME or CUDA_PATH; toolkits are installed in /usr/local and,
    since CUDA 13, as wheels. (The wheels of CUDA 12 that are called nvcc hold no nvcc.)
    """
    on_path = shutil.which("nvcc")
    named = _executables(
        *([Path(on_path)] if on_path else []),
        *(
            Path(os.environ[variable], "bin", "nvcc")
            for variable in ("CUDA_HOME", "CUDA_PATH")
            if os.environ.get(variable)
        ),
    )
    yield from named.values()
    installed = _executables(
        *(folder / "bin" / "nvcc" for folder in (SYSTEM, *SYSTEM.parent.glob(f"{SYSTEM.name}-*"))),
        *(place for folder in _nvidia_packages() for place in folder.glob("cu[0-9]*/bin/nvcc")),
    )
    others = [place for real, place in installed.items() if real not in named]
    yield from sorted(others, key=lambda place: release(place) or (0, 0), reverse=True)


def _executables(*places: Path) -> dict[Path, Path]:
    """The executables among `places`, each once: by its real path, under its first name."""
    able: dict[Path, Path] = {}
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            able.setdefault(place.resolve(), place)
    return able


def _nvidia_packages() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def unsuitable(compiler: Path, arch: str | None) -> str | None:
    """Why the driver, or a GPU of `arch`, cannot run the compiler's code; None if they can.

    A driver runs cubins of every CUDA with its own major version, newer ones included.
    """
    own, known = release(compiler), driver.release()
    if own and known and own.major > known.major:
        return f"it is of CUDA {own}, the driver runs code of CUDA {known.major} and older"
    targets = architectures(compiler)
    if arch and targets and arch not in targets:
        return f"it does not compile for {arch}"
    return None


def described(arch: str) -> str:
    """The compiler for a GPU of `arch`, with its version."""
    try:
        path = find_nvcc(arch)
    except NoDeviceError:
        return "not found"
    return f"{release(path) or 'unknown'} ({path})"


def release(compiler: Path) -> Release | None:
    """The compiler's CUDA; None if it does not say."""
    version = re.search(r"release (\d+)\.(\d+)", _answer(compiler, "--version"))
    return Release(int(version[1]), int(version[2])) if version else None


def architectures(compiler: Path) -> list[str]:
    """The architectures for which it makes cubins; none if it does not say."""
    return _answer(compiler, "--list-gpu-code").split()


@cache
def _answer(compiler: Path, question: str) -> str:
    """What nvcc prints about itself, in a few milliseconds; nothing if it does not run."""
    import subprocess  # noqa: PLC0415 - a machine without a GPU asks no compiler

    try:
        done = subprocess.run(
            [compiler, question], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def leave_out_kernels() -> list[str]:
    """The options for a program whose launches can be left out: see without_kernels.cpp."""
    path = Path(__file__).with_name("without_kernels.cpp")
    names = re.findall(r"^WRAPPED\((\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [str(path), *(word for name in names for word in ("-Xlinker", f"--wrap={name}"))]


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
        spaced = "__nvcc_device_query" in text and " " in tempfile.gettempdir()
        why = ", for TMPDIR has a space" if spaced else ""  # -arch=native writes a file there
        return NoDeviceError(f"nvcc does not work here{why}:\n{text}")
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
    with suppress(OSError):
        put(_entry(key), cubin + hashlib.sha256(cubin).digest())


@contextmanager
def compiling(key: str) -> Iterator[None]:
    """Wait until no other process compiles the code of `key`: one of them does it for all.

    Keys share a few locks, so that their files do not add up. Without a place for them there is
    nothing to wait for.
    """
    try:
        lock = os.open(cache_dir("cuda") / f"{key[:2]}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _entry(key: str) -> Path:
    return cache_dir("cuda") / f"{key}.cubin"
