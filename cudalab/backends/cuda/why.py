"""What the CUDA device needs, checked piece by piece, and how to get what is missing.

PyCUDA is checked last: it is built from source, so nearly everything else can be in its way.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cudalab.backends.cuda import driver, nvcc
from cudalab.errors import CudalabError, NoDeviceError, install_command

TOOLKIT = "sudo apt install nvidia-cuda-toolkit"  # CUDA 11 or 12, by the distribution
DRIVER = "sudo apt install nvidia-driver"
CONTAINER = "docker run --gpus all ..."
ELSEWHERE = (
    "take a machine with a GPU (a container: --gpus all; Colab: Runtime > Change runtime type > "
    "T4 GPU), or --device cpu"
)
NO_CURAND = "echo 'CUDA_ENABLE_CURAND = False' >> ~/.aksetup-defaults.py"
OLDEST_FOR_WHEELS = 75  # CUDA 13, the first with a wheel of nvcc, has dropped what is older
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_IN_DOCKER = Path("/.dockerenv")


class Check(NamedTuple):
    """A thing that was looked at: all is well if there is neither a cure nor advice."""

    name: str
    message: str  # what is there, or what is wrong
    cure: str = ""  # the line to type, if one mends it
    advice: str = ""  # what the line does, or what to do where no line mends it

    @property
    def ok(self) -> bool:
        """Whether there is nothing to mend."""
        return not (self.cure or self.advice)


def checks() -> Iterator[Check]:
    """Everything from the driver to PyCUDA, in the order in which to cure it.

    Only the first, if the machine has no GPU.
    """
    gpu = None
    try:
        driver.library()
    except OSError as error:
        vendors = (device / "vendor" for device in _PCI.glob("*"))
        if not any(vendor.read_text().strip() == _NVIDIA for vendor in vendors if vendor.is_file()):
            yield Check("driver", f"{error}; no NVIDIA card is visible either", "", ELSEWHERE)
            return
        if _IN_DOCKER.exists():
            advice = "the container was started without the GPU"
            yield Check("driver", str(error), CONTAINER, advice)
        else:
            yield Check("driver", str(error), DRIVER)
    else:
        yield _driver()
        try:
            gpu = driver.first_gpu()
        except NoDeviceError as error:
            yield _invisible(error.message)
        else:
            yield Check("GPU", f"{gpu.name}, {gpu.arch}")
    arch = gpu.arch if gpu else None
    compiler = None
    try:
        compiler = nvcc.find_nvcc(arch)
        yield Check("nvcc", f"CUDA {nvcc.release(compiler) or 'unknown'}, {compiler}")
        yield _host_compiler(compiler, arch)
    except NoDeviceError as error:
        yield Check("nvcc", error.message, _nvcc_cure(arch))
    if find_spec("pycuda") is None:
        yield from _build_needs(compiler)
    yield _pycuda(compiler)


def _driver() -> Check:
    release = driver.release()
    if release is None:
        return Check("driver", f"{driver.LIBRARY} is a toolkit's stub, not a driver", DRIVER)
    return Check("driver", f"runs code of CUDA {release.major} and older (it is of {release})")


def _invisible(message: str) -> Check:
    """Why the driver shows no GPU."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") is not None:
        return Check("GPU", message, "unset CUDA_VISIBLE_DEVICES")
    if "driver combination" in message:
        advice = "the kernel still runs the driver from before an update"
        return Check("GPU", message, "sudo reboot", advice)
    return Check("GPU", message, "sudo modprobe nvidia_uvm && nvidia-smi")


def _nvcc_cure(arch: str | None) -> str:
    too_old = arch is not None and int(arch[3:]) < OLDEST_FOR_WHEELS
    return TOOLKIT if too_old or driver.extra() == "cuda12" else install_command("nvcc")


def _host_compiler(compiler: Path, arch: str | None) -> Check:
    """Whether nvcc can compile at all: it needs a C++ compiler of a version that it knows."""
    name = "host compiler"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "empty.cu").write_text("__global__ void empty() {}\n", encoding="ascii")
        target = [f"-arch={arch}"] if arch else []
        answer = _run([str(compiler), "-cubin", *target, *nvcc.FLAGS, "empty.cu"], folder)
    if answer.returncode == 0:
        return Check(name, f"{os.environ.get('NVCC_CCBIN', 'g++')}: nvcc compiles with it")
    error = nvcc.rejection("an empty kernel", answer.stdout)
    cure = "" if error.hint else "sudo apt install g++"
    return Check(name, error.message, cure, error.hint or "")


def _build_needs(compiler: Path | None) -> Iterator[Check]:
    """What building PyCUDA takes besides a compiler."""
    root = _root(compiler)
    for header, cure in (("cuda.h", TOOLKIT), ("curand.h", NO_CURAND)):
        if header == "curand.h" and _without_curand():
            continue
        there = root and (root / "include" / header).is_file()
        place = f"{root}/include" if root else "any toolkit"
        yield Check(header, f"in {place}" if there else f"not in {place}", "" if there else cure)
    python = Path(sysconfig.get_path("include"), "Python.h")
    yield Check(
        "Python.h",
        f"in {python.parent}" if python.is_file() else f"not in {python.parent}",
        "" if python.is_file() else "sudo apt install python3-dev",
    )
    if shutil.which("g++") is None:
        yield Check("g++", "not on PATH", "sudo apt install g++")
    elif library := _driver_library():
        linked = _links(root)
        yield Check(
            "libcuda.so",
            "the linker finds it" if linked else "the linker does not find it",
            "" if linked else f"sudo ln -s {library} {library.with_name('libcuda.so')}",
        )


def _driver_library() -> Path | None:
    """The file of the driver's library, once it is loaded."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    loaded = re.search(r"/\S*/libcuda\.so\S*", maps)
    return Path(loaded[0]) if loaded else None


def _links(root: Path | None) -> bool:
    """Whether the linker finds the driver's library, or a toolkit's stub of it."""
    folders = [f"-L{root}/{name}" for name in ("lib", "lib64", "lib/stubs", "lib64/stubs") if root]
    with tempfile.TemporaryDirectory() as folder:
        linked = _run(["g++", "-shared", "-o", "library.so", *folders, "-lcuda"], folder)
    return linked.returncode == 0


def _pycuda(compiler: Path | None) -> Check:
    root = _root(compiler)
    on_path = shutil.which("nvcc")
    # PyCUDA's build takes the toolkit in which the nvcc of PATH lies.
    usual = root is not None and on_path == str(root / "bin" / "nvcc")
    path = "" if root is None or usual else f"PATH={shlex.quote(str(root / 'bin'))}:$PATH "
    if find_spec("pycuda") is None:
        return Check("PyCUDA", "not installed", path + install_command(driver.extra()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version: str = import_module("pycuda").VERSION_TEXT
            import_module("pycuda.driver")
    except ImportError as error:
        again = "-m pip install --force-reinstall --no-deps --no-cache-dir pycuda"
        return Check("PyCUDA", str(error), f"{path}{shlex.quote(sys.executable)} {again}")
    return Check("PyCUDA", version)


def _root(compiler: Path | None) -> Path | None:
    """The toolkit's folder; nvcc tells it, for its path may be that of a script."""
    if compiler is None:
        return None
    answer = _run([str(compiler), "--dryrun", "-x", "cu", "-E", os.devnull])
    top = re.search(r"^#\$ TOP=(.+)$", answer.stdout, re.MULTILINE)
    return Path(top[1] if top else compiler.parent.parent).resolve()


def _without_curand() -> bool:
    """Whether the user has told PyCUDA's build to leave out cuRAND, which cudalab does not use."""
    settings = Path("~/.aksetup-defaults.py").expanduser()
    try:
        return "CUDA_ENABLE_CURAND = False" in settings.read_text(encoding="utf-8")
    except OSError:
        return False


def _run(command: list[str], folder: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command; its messages are all in `stdout`."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise CudalabError(f"{command[0]} cannot be started: {error.strerror}") from None
