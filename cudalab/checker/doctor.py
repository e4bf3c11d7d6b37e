"""What cudalab needs of a machine, looked at piece by piece, each with the way to fix it.

Nothing is taken from a table: the compiler compiles and its code runs, a sandbox is started, a file
is written where the cache is, and the GPU's part is that of `cudalab device --why`.
"""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cudalab import __version__
from cudalab.backends import host_device, open_device
from cudalab.backends.cuda import why
from cudalab.checker.sandbox import sandbox
from cudalab.errors import CudalabError
from cudalab.language.source import Source
from cudalab.system import cache, machine

GIB = 1 << 30
MIN_FREE_BYTES = GIB  # of memory, and of the disks where is compiled
PACKAGES = ("click", "numpy", "rich")
KERNEL = 'extern "C" __global__ void one(int *x) { x[threadIdx.x] = 1; }\n'


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing that was looked at."""

    part: str  # machine, CPU device, checker, GPU
    name: str
    ok: bool
    needed: bool  # whether nothing can be computed here without it
    message: str
    cure: str = ""  # the line to type; empty if nothing is wrong

    @property
    def mark(self) -> str:
        """The word in front: only what is needed is called missing."""
        return "ok" if self.ok else "MISSING" if self.needed else "no"


@dataclass(frozen=True, kw_only=True)
class Document:
    """The document of `cudalab doctor`."""

    schema: str = "cudalab-doctor/1"
    usable: bool  # whether kernels can be computed here
    checks: list[Row]


def rows() -> Iterator[Row]:
    """Everything, in the order in which to fix it."""
    yield from _versions()
    yield from _room()
    yield _compiler()
    yield _sandbox()
    for check in why.checks():
        yield _row("GPU", check.name, check.message, check.cure)


def _row(part: str, name: str, message: str, cure: str, *, needed: bool = False) -> Row:
    """A row, which is right if there is nothing to fix."""
    return Row(part=part, name=name, ok=not cure, needed=needed, message=message, cure=cure)


def _versions() -> Iterator[Row]:
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    python = f"Python {platform.python_version()} ({sys.executable})"
    message = f"cudalab {__version__}, {python}, {packages}"
    yield _row("machine", "versions", message, "", needed=True)
    words = f"{platform.system()} {platform.release()}, {machine.processor_name()}"
    message = f"{words}, {machine.usable_cores()} usable cores"
    cure = "" if sys.platform == "linux" else "use Linux: elsewhere cudalab is untested"
    yield _row("machine", "system", message, cure, needed=True)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "without a version"


def _room() -> Iterator[Row]:
    """Free memory, the cache and free space, where compilers write."""
    free = machine.available_memory()
    message = f"{free / GIB:.1f} GiB free of {machine.total_memory() / GIB:.1f}"
    cure = "" if free >= MIN_FREE_BYTES else "ps aux --sort=-rss | head  # what has it?"
    yield _row("machine", "memory", message, cure)
    folder = cache.cache_dir("cpu")
    usual = folder.is_relative_to(cache.base_dir())
    message = f"{folder}" if usual else f"{cache.base_dir()} cannot be written to; for now {folder}"
    cure = "" if usual else "export XDG_CACHE_HOME=DIR  # a folder that you can write to"
    yield _row("machine", "cache", message, cure)
    for name, place, variable in (
        ("disk of the cache", folder, "XDG_CACHE_HOME"),
        ("disk of TMPDIR", Path(tempfile.gettempdir()), "TMPDIR"),
    ):
        space = shutil.disk_usage(place).free
        scarce = space < MIN_FREE_BYTES
        cure = f"export {variable}=DIR  # where there is more space" if scarce else ""
        yield _row("machine", name, f"{space / GIB:.1f} GiB free in {place}", cure)


def _compiler() -> Row:
    """Whether a kernel can be compiled for the CPU device, and its code computes."""
    try:
        with open_device(host_device(), 1) as device:
            source = Source(Path("one.cu"), "one.cu", KERNEL, kernels={"one": 1})
            out = device.empty(4, "int32")
            device.launch(device.compile(source, {})["one"], 1, 4, out)
            device.synchronize()
            right = device.to_host(out).tolist() == [1, 1, 1, 1]
    except CudalabError as error:
        message, cure = error.message.splitlines()[0], error.hint or "sudo apt install g++"
    else:
        version = device.info().compiler.partition(": ")[2]
        message = f"{version}: a kernel was compiled, and {'computed' if right else 'is wrong'}"
        cure = "" if right else "sudo apt install --reinstall g++"
    return _row("CPU device", "compiler", message, cure, needed=True)


def _sandbox() -> Row:
    """The sandbox for submissions, or why there is none."""
    chosen = sandbox.choose()
    message = f"{chosen.kind}: {chosen.words.removesuffix(sandbox.SEE_DOCTOR)}"
    return _row("checker", "sandbox", message, _sandbox_cure() if chosen.kind == "none" else "")


def _sandbox_cure() -> str:
    if shutil.which("bwrap") is None:
        return "sudo apt install bubblewrap"
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_file():
        return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    if os.environ.get("container") or Path("/.dockerenv").exists():  # noqa: SIM112 - its name
        return "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined ..."
    return "sudo sysctl kernel.unprivileged_userns_clone=1"
