"""The arguments of bubblewrap: an empty root, and the paths that are bound into it."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cudalab.checker.sandbox.box import Box
from cudalab.checker.sandbox.packages import Imports

MAX_LINKS = 40  # of a chain; the system follows no more
IN_MEMORY_BYTES = 16 << 20  # of /tmp, and of /dev/shm

# The parts of the system that programs need. Most of /etc is left out: it has names and secrets.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "nvidia",
    "OpenCL",
)


def arguments(box: Box, imports: Imports) -> list[str]:
    """The words for a box in which Python finds `imports`."""
    words = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--hostname", "box", "--proc", "/proc", "--dev", "/dev"]
    words += _system()
    words += ["--ro-bind-try", "/sys/devices", "/sys/devices"]
    if box.gpu:
        words += ["--ro-bind-try", "/sys", "/sys"]
        for device in sorted(Path("/dev").glob("nvidia*")):
            words += ["--dev-bind-try", str(device), str(device)]
    for folder in ("/dev/shm", "/tmp"):  # noqa: S108 - the sandbox's own
        words += ["--size", str(IN_MEMORY_BYTES), "--tmpfs", folder]
    for path in _not_nested([*_python_folders(), *imports.files, *box.readable]):
        words += ["--ro-bind", str(path), str(path)]
    for path in box.hidden:
        if path.is_dir():
            words += ["--tmpfs", str(path)]
        elif path.exists():
            words += ["--ro-bind", "/dev/null", str(path)]
    words += ["--bind", str(box.path), str(box.path), "--remount-ro", "/"]
    return [*words, "--chdir", str(box.path)]


def limited(tasks: int) -> list[str]:
    """Words before a command that limit its processes and threads, counted in its own namespace.

    Outside, the system counts all of a user's: a fork bomb in one run would keep another from
    starting a thread. Empty where the system counts no namespaces, before Linux 5.14.
    """
    prlimit = shutil.which("prlimit", path="/usr/bin:/bin")
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if prlimit is None or release is None or tuple(map(int, release.groups())) < (5, 14):
        return []
    return [prlimit, f"--nproc={tasks}", "--"]


def _system() -> list[str]:
    """Arguments that bind the system's programs and libraries, read-only."""
    arguments = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
    for name in _ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return arguments


def _python_folders() -> list[Path]:
    """The folders of this Python and of CUDA."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent]
    folders += [Path(sys.base_prefix).resolve(), *_on_the_way(Path(sys.executable))]
    if os.environ.get("CUDA_HOME"):
        folders.append(Path(os.environ["CUDA_HOME"]))
    return folders


def _on_the_way(path: Path) -> Iterator[Path]:
    """The folders that a chain of links leads through, such as that of an interpreter."""
    for _ in range(MAX_LINKS):
        yield from (path.parent, path.parent.resolve())
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()


def _not_nested(paths: Iterable[Path]) -> list[Path]:
    """The existing paths, except those inside another one or in a system folder."""
    result = [Path(system) for system in _SYSTEM]
    for path in sorted(paths, key=lambda path: len(path.parts)):
        known = any(path.is_relative_to(other) for other in result)
        if not known and path.exists() and path != Path("/"):
            result.append(path)
    return result[len(_SYSTEM) :]
