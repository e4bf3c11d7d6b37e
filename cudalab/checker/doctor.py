"""What cudalab needs of a machine, looked at piece by piece, each with the way to fix it.

Nothing is taken from a table: the compiler compiles and its code runs, a sandbox is started, a file
is written where the cache is, and the GPU's part is that of `cudalab device --why`.
"""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cudalab import __version__
from cudalab.backends import host_device, open_device
from cudalab.backends.cuda import why
from cudalab.backends.cuda.why import Check
from cudalab.checker.sandbox import sandbox
from cudalab.errors import CudalabError, NoDeviceError, install_command
from cudalab.language.source import Source
from cudalab.system import cache, machine

GIB = 1 << 30
MIN_FREE_BYTES = GIB  # of memory, and of the disks where is compiled
PACKAGES = ("click", "numpy", "rich")
REINSTALL = "sudo apt install --reinstall g++"
KERNEL = 'extern "C" __global__ void one(int *x) { x[threadIdx.x] = 1; }\n'


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing that was looked at."""

    part: str  # machine, CPU device, checker, GPU
    name: str
    ok: bool
    needed: bool  # whether nothing can be computed here without it
    message: str
    cure: str = ""  # the line to type; empty if nothing is wrong, or if no line mends it
    advice: str = ""  # what the line does, or what to do where no line mends it

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
    yield from _rows("machine", _versions(), needed=True)
    yield from _rows("machine", _room())
    yield from _rows("CPU device", [_compiler()], needed=True)
    yield from _rows("checker", [_sandbox()])
    yield from _rows("GPU", why.checks())


def _rows(part: str, checks: Iterable[Check], *, needed: bool = False) -> Iterator[Row]:
    for check in checks:
        yield Row(part=part, ok=check.ok, needed=needed, **check._asdict())


def _versions() -> Iterator[Check]:
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    python = f"Python {platform.python_version()} ({sys.executable})"
    yield Check("versions", f"cudalab {__version__}, {python}, {packages}")
    words = f"{platform.system()} {platform.release()}, {machine.processor_name()}"
    advice = "" if sys.platform == "linux" else "use Linux: elsewhere cudalab is untested"
    yield Check("system", f"{words}, {machine.usable_cores()} usable cores", advice=advice)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "without a version"


def _room() -> Iterator[Check]:
    """Free memory, the cache and free space, where compilers write."""
    free = machine.available_memory()
    message = f"{free / GIB:.1f} GiB free of {machine.total_memory() / GIB:.1f}"
    takers = ("ps aux --sort=-rss | head", "shows what has it")
    yield Check("memory", message, *(() if free >= MIN_FREE_BYTES else takers))
    folder = cache.cache_dir("cpu")
    if folder.is_relative_to(cache.base_dir()):
        yield Check("cache", f"{folder}")
    else:
        message = f"{cache.base_dir()} cannot be written to; for now {folder}"
        advice = "DIR is a folder that you can write to"
        yield Check("cache", message, "export XDG_CACHE_HOME=DIR", advice)
    for name, place, variable in (
        ("disk of the cache", folder, "XDG_CACHE_HOME"),
        ("disk of TMPDIR", Path(tempfile.gettempdir()), "TMPDIR"),
    ):
        space = shutil.disk_usage(place).free
        elsewhere = (f"export {variable}=DIR", "DIR is a folder where there is more space")
        message = f"{space / GIB:.1f} GiB free in {place}"
        yield Check(name, message, *(() if space >= MIN_FREE_BYTES else elsewhere))


def _compiler() -> Check:
    """Whether a kernel can be compiled for the CPU device, and its code computes."""
    name = "compiler"
    try:
        with open_device(host_device(), 1) as device:
            source = Source(Path("one.cu"), "one.cu", KERNEL, kernels={"one": 1})
            out = device.empty(4, "int32")
            device.launch(device.compile(source, {})["one"], 1, 4, out)
            device.synchronize()
            right = device.to_host(out).tolist() == [1, 1, 1, 1]
            version = device.info().compiler.partition(": ")[2]
    except NoDeviceError as error:
        message = error.message.splitlines()[0]
        if os.environ.get("CXX"):
            return Check(name, message, "unset CXX", "or set it to g++ or clang++")
        return Check(name, message, "sudo apt install g++", f"or {install_command('cpu')}")
    except CudalabError as error:
        cure = "" if error.hint else REINSTALL
        return Check(name, error.message.splitlines()[0], cure, error.hint or "")
    message = f"{version}: a kernel was compiled, and {'computed' if right else 'is wrong'}"
    return Check(name, message, "" if right else REINSTALL)


def _sandbox() -> Check:
    """The sandbox for submissions, or why there is none."""
    chosen = sandbox.choose()
    message = f"{chosen.kind}: {chosen.words.removesuffix(sandbox.SEE_DOCTOR)}"
    return Check("sandbox", message, _sandbox_cure() if chosen.kind == "none" else "")


def _sandbox_cure() -> str:
    if shutil.which("bwrap") is None:
        return "sudo apt install bubblewrap"
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").is_file():
        return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    if os.environ.get("container") or Path("/.dockerenv").exists():  # noqa: SIM112 - its name
        return "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined ..."
    return "sudo sysctl kernel.unprivileged_userns_clone=1"
