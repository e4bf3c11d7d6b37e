"""CUB as a baseline: the toolkit's and, if it is newer, that of the package `nvidia-cuda-cccl`.

nvcc compiles cub.cu into a small library for the measured operation, once for each element type
and device. The libraries are stored in the user's cache.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends.base import C_TYPES, Buffer
from cudalab.backends.cuda import nvcc
from cudalab.bench.measure import POISON, Candidate, Sampler
from cudalab.bench.measured import COLD
from cudalab.errors import CudalabError, NoDeviceError, install_command
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Case, HostInputs
from cudalab.system.cache import cache_dir

SOURCE = Path(__file__).with_name("cub.cu")
FLAGS = ("-shared", "-Xcompiler", "-fPIC", "-std=c++17", "-O3")
TRIALS = 7  # of 32- and of 64-bit n, to choose the faster one


@dataclass(frozen=True)
class Headers:
    """The headers of one CUB."""

    version: tuple[int, int, int]
    folder: Path | None = None  # None: nvcc knows the folder

    def name(self, way: str = "") -> str:
        """The name of its candidate, for one of several ways."""
        package = "" if self.folder is None else f"CCCL {self.version[0]}.{self.version[1]}"
        named = ", ".join(filter(None, (package, way)))
        return f"cub ({named})" if named else "cub"


def operations(lab: Lab, case: Case, dtype: np.dtype[Any]) -> dict[str, dict[str, str]]:
    """The macros that choose the lab's operation in cub.cu, by the name of the way."""
    ways = lab.teaching.libraries.cub_ways(case)
    return {way: {"ELEMENT": C_TYPES[dtype.name], **chosen} for way, chosen in ways.items()}


def candidates(
    lab: Lab, sampler: Sampler, inputs: HostInputs, case: Case, buffers: dict[str, Buffer]
) -> list[Candidate]:
    """A candidate for each installed CUB and way."""
    arrays = list(buffers.values())
    arch = architecture(sampler.device.features)
    compiler = nvcc.find_nvcc(arch)
    result = []
    for headers in installed(compiler):
        for way, defines in operations(lab, case, arrays[0].dtype).items():
            library = load(compiler, headers, defines, arch)
            out = sampler.device.empty(*lab.answer_form(inputs, case))
            n, bins = int(inputs.params["n"]), case.get("bins", 0)
            named = headers.name(way), headers.version
            result.append(_candidate(sampler, named, library, arrays, out, n, bins))
    return result


@dataclass(frozen=True, kw_only=True)
class Call:
    """One computation. It keeps the buffers alive, whose addresses are passed to the library."""

    library: Library
    inputs: list[Buffer]
    out: Buffer
    temp: Buffer
    n: int
    bins: int
    wide: bool  # whether n has 64 bits

    def __call__(self) -> None:
        pointers = addresses(self.inputs, self.out)
        self.library.run(
            self.temp.address, self.temp.nbytes, pointers, self.bins, self.n, wide=self.wide
        )


def addresses(inputs: list[Buffer], out: Buffer) -> tuple[int, int, int, int]:
    """The addresses of two inputs and two outputs; values may follow keys in one buffer."""
    first = inputs[0].address
    if len(inputs) > 1:
        return first, inputs[1].address, out.address, 0
    pairs = len(out.shape) > 1
    half = out.nbytes // 2 if pairs else 0
    return first, first + half, out.address, out.address + half


def _candidate(
    sampler: Sampler,
    named: tuple[str, tuple[int, int, int]],
    library: Library,
    arrays: list[Buffer],
    out: Buffer,
    n: int,
    bins: int,
) -> Candidate:
    """The candidate with the faster width of n, chosen by a few alternating samples."""
    pointers = addresses(arrays, out)
    needed = max(library.temp_bytes(pointers, bins, n, wide=wide) for wide in (False, True))
    (name, numbers), device, meter = named, sampler.device, sampler.meter
    temp = device.empty(max(needed, 1), np.uint8)

    def candidate(*, wide: bool) -> Candidate:
        return Candidate(
            name=name,
            kind="baseline",
            run=Call(library=library, inputs=arrays, out=out, temp=temp, n=n, bins=bins, wide=wide),
            answer=lambda: device.to_host(out),
            poison=lambda: meter.fill(out, POISON),
            device=device.name,
        )

    both = candidate(wide=False), candidate(wide=True)
    chosen, factor = faster(both, sampler)
    bits, other = ("32", "64") if chosen is both[0] else ("64", "32")
    version = ".".join(map(str, numbers))
    chosen.notes.append(f"CUB {version}, n of {bits} bits: {factor:.2f} x as fast as with {other}")
    return chosen


def faster(both: tuple[Candidate, Candidate], sampler: Sampler) -> tuple[Candidate, float]:
    """The candidate with the smaller median, and how many times longer the other takes."""
    taken: list[list[float]] = [[], []]
    for trial in range(-1, TRIALS):
        for candidate, samples in zip(both, taken, strict=True):
            ms = sampler.sample(candidate, COLD, trial).ms
            if trial >= 0:  # the first run loads the kernels
                samples.append(ms)
    one, two = (statistics.median(samples) for samples in taken)
    fast, slow = sorted((one, two))
    return both[two < one], slow / fast if fast > 0 else 1.0


# The library -------------------------------------------------------------------------------------


class Library:
    """A compiled cub.cu."""

    def __init__(self, path: Path) -> None:
        """Load it. The CUDA runtime inside uses the current context."""
        self._library = ctypes.CDLL(str(path))
        pointer, size = ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)
        self._run = self._library.cudalab_cub_run
        self._run.argtypes = [
            *(pointer, size),
            *(pointer,) * 4,
            *(ctypes.c_int, ctypes.c_longlong, ctypes.c_int),
        ]
        self._run.restype = ctypes.c_int
        self._error = self._library.cudalab_cub_error
        self._error.restype = ctypes.c_char_p

    def version(self) -> tuple[int, int, int]:
        """The version of the CUB inside."""
        return version_of(int(self._library.cudalab_cub_version()))

    def temp_bytes(self, pointers: tuple[int, ...], bins: int, n: int, *, wide: bool) -> int:
        """The scratch memory that a run needs, in bytes."""
        size = ctypes.c_size_t(0)
        self._check(self._run(None, ctypes.byref(size), *pointers, bins, n, wide))
        return size.value

    def run(
        self, temp: int, size: int, pointers: tuple[int, ...], bins: int, n: int, *, wide: bool
    ) -> None:
        """Enqueue a run on the default stream."""
        temp_bytes = ctypes.c_size_t(size)
        self._check(self._run(temp, ctypes.byref(temp_bytes), *pointers, bins, n, wide))

    def _check(self, status: int) -> None:
        if status:
            raise CudalabError(f"CUB: {self._error(status).decode(errors='replace')}")


def load(compiler: Path, headers: Headers, defines: dict[str, str], arch: str) -> Library:
    """Load the library from the user's cache; compile it first if necessary."""
    path = library_path(compiler, headers, defines, arch)
    if not path.exists():
        build(compiler, headers, defines, arch, path)
    try:
        return Library(path)
    except OSError:  # a damaged cache entry: build it again
        path.unlink(missing_ok=True)
        build(compiler, headers, defines, arch, path)
        return Library(path)


def library_path(compiler: Path, headers: Headers, defines: dict[str, str], arch: str) -> Path:
    """The cache entry for this source, compiler, CUB, macros and architecture."""
    named = ",".join(f"{name}={value}" for name, value in sorted(defines.items()))
    text = "\0".join((SOURCE.read_text(encoding="utf-8"), str(headers), named, *FLAGS))
    key = nvcc.cache_key(compiler, text, arch)
    return cache_dir("cuda") / f"cub-{key}.so"


def build(compiler: Path, headers: Headers, defines: dict[str, str], arch: str, path: Path) -> None:
    """Compile beside the cache entry and move the result into place, so it is always complete."""
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    include = [f"-I{headers.folder}"] if headers.folder else []
    # A toolkit from wheels has its libraries where linkers do not search.
    libraries = [f"-L{compiler.parent.parent / name}" for name in ("lib", "lib64")]
    with tempfile.TemporaryDirectory(prefix="build-", dir=path.parent) as folder:
        built = Path(folder) / "cub.so"
        done = subprocess.run(
            [
                *(str(compiler), *FLAGS, f"-arch={arch}", *include, *macros, *libraries),
                *(str(SOURCE), "-o", str(built)),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise nvcc.rejection(headers.name(), done.stdout + done.stderr)
        built.replace(path)


def architecture(features: frozenset[str]) -> str:
    """The device's architecture, such as sm_90."""
    known = [int(name[3:]) for name in features if re.fullmatch(r"sm_\d+", name)]
    if not known:
        raise NoDeviceError("the baseline cub needs the CUDA device")
    return f"sm_{max(known)}"


# Where CUB is ------------------------------------------------------------------------------------


def installed(compiler: Path) -> list[Headers]:
    """The toolkit's CUB, then that of the package if it is newer. NoDeviceError if none."""
    own, packaged = of_toolkit(compiler), of_package()
    result = [own] if own else []
    if packaged and (own is None or packaged.version > own.version):
        result.append(packaged)
    if not result:
        raise NoDeviceError(
            f"the baseline cub needs CUB's headers: {compiler} finds none",
            hint=f"{install_command('baselines')}, or a whole CUDA toolkit",
        )
    return result


@cache
def of_toolkit(compiler: Path) -> Headers | None:
    """The CUB that nvcc finds by itself; only nvcc knows where its headers are."""
    with tempfile.TemporaryDirectory() as folder:
        question = Path(folder) / "version.cu"
        question.write_text("#include <cub/version.cuh>\ncudalab CUB_VERSION\n", encoding="ascii")
        done = subprocess.run(
            [str(compiler), "-E", str(question)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    # A preprocessor may insert line markers between the words.
    defined = re.search(r"^cudalab\s(?:\s|#.*\n)*(\d+)", done.stdout, re.MULTILINE)
    return Headers(version_of(int(defined[1]))) if defined else None


def of_package() -> Headers | None:
    """The CUB of an installed `nvidia-cuda-cccl`."""
    spec = find_spec("nvidia")
    for package in map(Path, (spec and spec.submodule_search_locations) or ()):
        roots = (*sorted(package.glob("cu[0-9]*"), reverse=True), package / "cuda_cccl")
        for folder in (root / "include" / below for root in roots for below in ("cccl", "")):
            try:
                text = (folder / "cub" / "version.cuh").read_text(encoding="utf-8")
            except OSError:
                continue
            defined = re.search(r"^#define CUB_VERSION (\d+)", text, re.MULTILINE)
            if defined:
                return Headers(version_of(int(defined[1])), folder)
    return None


def version_of(number: int) -> tuple[int, int, int]:
    """CUB_VERSION as three numbers: 300001 is 3.0.1."""
    return number // 100_000, number // 100 % 1000, number % 100
