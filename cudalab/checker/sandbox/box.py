"""The folder of a run, the judge's Python packages that it finds, and bubblewrap's view of both.

A judged process has another home, a clean environment and perhaps another user. It would lack what
the judge imports from `pip install --user`, from PYTHONPATH or from a home that others cannot read.
So the folders of the packages that cudalab needs, and nothing else, are put on its import path;
packages that its user cannot read are copied to where the user can. cudalab itself, whose variants
compute every answer, is copied to where only the processes of a group can.
"""

import atexit
import os
import re
import shutil
import site
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cache, cached_property
from importlib import metadata, util
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
# The requirements in pyproject.toml: always, and for a GPU or a machine without a compiler.
REQUIRED = ("click", "numpy", "rich")
EXTRA = ("pycuda", "nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-cuda-runtime", "ziglang")
READERS = 60_999  # the group of processes that may read a copy of cudalab; nothing else has it
_NAME = re.compile(r"[\w.-]+")
_TOP = re.compile(r'^"?([^/,"\n]+)', re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One distribution, or one module without metadata, in a packages folder."""

    folder: Path
    record: str  # its files, relative to the folder, as an installer records them: a line each

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Its files, relative to the folder."""
        files = [line.rsplit(",", 2)[0].strip('"') for line in self.record.splitlines()]
        return tuple(file for file in files if file and not file.startswith(("..", "/")))

    @cached_property
    def tops(self) -> list[Path]:
        """Its files and folders at the top level of the packages folder."""
        names = dict.fromkeys(_TOP.findall(self.record))
        return [self.folder / name for name in names if name != ".."]


@cache
def needed() -> tuple[Package, ...]:
    """The packages that cudalab imports, and their dependencies."""
    packages: dict[str, Package | None] = {}
    names = [*REQUIRED, *EXTRA]
    for name in names:  # grows during the loop
        key = re.sub(r"[-_.]+", "_", name).lower()
        if key in packages:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            packages[key] = _module(key)
            continue
        # The package by its installer's record; None if there is none, as on Debian.
        record = distribution.read_text("RECORD") or ""
        folder = Path(str(distribution.locate_file("")))
        packages[key] = (Package(folder, record) if ".py," in record else None) or _module(key)
        names += [
            match[0]
            for line in distribution.requires or ()
            if "extra ==" not in line and (match := _NAME.match(line))
        ]
    return tuple(package for package in packages.values() if package)


def _module(name: str) -> Package | None:
    """A module, located as by an import; None if it is built in or missing."""
    with suppress(ImportError, ValueError):
        spec = util.find_spec(name)
        if spec is None or spec.origin in (None, "built-in", "frozen"):
            return None
        origin = Path(str(spec.origin)).absolute()
        if not spec.submodule_search_locations:
            return Package(origin.parent, f"{origin.name},,")
        folder = origin.parent.parent
        files = _files_below(folder, origin.parent.name)
        return Package(folder, "".join(f"{file},,\n" for file in files))
    return None


def folders() -> list[Path]:
    """The folders of the packages, except those on this Python's default path."""
    own = {Path(folder).resolve() for folder in site.getsitepackages()}
    result = dict.fromkeys(package.folder for package in needed())
    return [folder for folder in result if folder.resolve() not in own]


@dataclass(frozen=True)
class Imports:
    """How a judged process starts Python and finds cudalab."""

    python: str = sys.executable
    root: Path = PACKAGE_ROOT  # cudalab itself, and in a checkout its kernels
    packages: tuple[Path, ...] = ()  # folders
    files: tuple[Path, ...] = ()  # and folders: all that a process needs of the above
    _: KW_ONLY
    readers: int | None = None  # a group: only its processes can read cudalab

    def own(self) -> list[Path]:
        """The folders of cudalab, with all variants: what no command may use."""
        return _own_folders(self.root)

    def path(self) -> str:
        """The value of PYTHONPATH."""
        return ":".join(map(str, dict.fromkeys((self.root, *self.packages))))

    def seen(self, path: Path) -> Path:
        """The path at which the process sees one of cudalab's own files."""
        with suppress(ValueError):
            return self.root / path.resolve().relative_to(PACKAGE_ROOT)
        return path


@cache
def as_they_are() -> Imports:
    """The imports of a process that can read everything that the judge can."""
    tops = tuple(top for package in needed() for top in package.tops)
    return Imports(packages=tuple(folders()), files=(*_own_folders(PACKAGE_ROOT), *tops))


@cache
def for_others(*, separate: bool = False) -> Imports:
    """The imports of an unrelated user: what the user cannot read is copied.

    `separate`: the copy of cudalab can be read only by `READERS`.
    """
    python = sys.executable
    own = {Path(folder).resolve() for folder in site.getsitepackages()}
    if not open_to_all(Path(python)):
        python, own = str(Path(python).resolve()), set()
    closed = [  # not any user can import them; an installer gives all files the same mode
        package
        for package in needed()
        if not all(open_to_all(top) for top in package.tops if top.exists())
    ]
    usable = [package for package in needed() if package not in closed]
    packages = [package.folder for package in usable if package.folder.resolve() not in own]
    files = [top for package in usable for top in package.tops]
    root, readers = PACKAGE_ROOT, None
    if closed:
        copy = _copies()
        for package in closed:
            _copy(package.folder, package.files, copy)
        packages.insert(0, copy)
        files.append(copy)
    if not open_to_all(root / "cudalab"):
        readers = READERS if separate else None
        copy = _copies(readers)
        for folder in _own_folders(root):
            _copy(root, _files_below(root, folder.name), copy)
        root = copy
    files += _own_folders(root)
    return Imports(python, root, tuple(dict.fromkeys(packages)), tuple(files), readers=readers)


def _own_folders(root: Path) -> list[Path]:
    """The folders of cudalab; in a repository, the kernels are in a folder beside it."""
    return [root / name for name in ("cudalab", "kernels") if (root / name).is_dir()]


def _copies(readers: int | None = None) -> Path:
    """A new folder that all users or those of a group can read, removed when the judge ends."""
    folder = Path(tempfile.mkdtemp(prefix="cudalab-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if readers is None:
        folder.chmod(0o755)
    else:
        os.chown(folder, -1, readers)
        folder.chmod(0o750)
    return folder


def _copy(folder: Path, files: Iterable[str], to: Path) -> None:
    for file in files:
        source, target = folder / file, to / file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            runs = source.stat().st_mode & stat.S_IXUSR
            target.chmod(0o755 if runs else 0o644)
            for parent in (*target.relative_to(to).parents,)[:-1]:
                (to / parent).chmod(0o755)


def _files_below(root: Path, name: str) -> Iterator[str]:
    for path in (root / name).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(root))


def open_to_all(path: Path) -> bool:
    """Whether any user can read a file, by the given path and by the resolved one."""
    real = path.resolve()
    above = (*path.absolute().parents, *real.parents)
    mode = path.stat().st_mode
    bits = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & bits == bits and all(one.stat().st_mode & stat.S_IXOTH for one in above)


# The folder --------------------------------------------------------------------------------------

BOX_PREFIX = "cudalab-box-"
_PASSED_ON = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"),
    *("CXX", "CUDALAB_CXXFLAGS"),
)


@dataclass
class Box:
    """The folder of a run: its working directory and its home."""

    path: Path
    _: KW_ONLY
    readable: tuple[Path, ...] = ()  # files and folders that it may also read
    hidden: tuple[Path, ...] = ()  # paths below those that it may not read
    gpu: bool = False
    groups: tuple[int, ...] = ()  # of its user, too: they own files that no other run may read
    extra_env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """The environment variables: of the grader's, only those that say where programs are, and
        the compiler's flags, which are part of the names in its cache.
        """
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        own = {"HOME": str(self.path), "TMPDIR": str(self.path), "LANG": "C.UTF-8"}
        defaults = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        return defaults | passed_on | own | self.extra_env


# Bubblewrap --------------------------------------------------------------------------------------

# It begins with an empty root, into which the box and the system's programs are bound.

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


def bubblewrap(box: Box, imports: Imports) -> list[str]:
    """The words for bubblewrap: a box in which Python finds `imports`."""
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
    # The folders of this Python and of CUDA.
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent]
    folders += [Path(sys.base_prefix).resolve(), *_on_the_way(Path(sys.executable))]
    folders += [Path(os.environ["CUDA_HOME"])] if os.environ.get("CUDA_HOME") else []
    for path in _not_nested([*folders, *imports.files, *box.readable]):
        words += ["--ro-bind", str(path), str(path)]
    for path in box.hidden:
        if path.is_dir():
            words += ["--tmpfs", str(path)]
        elif path.exists():
            words += ["--ro-bind", "/dev/null", str(path)]
    words += ["--bind", str(box.path), str(box.path), "--remount-ro", "/"]
    return [*words, "--chdir", str(box.path)]


def limit_tasks(tasks: int) -> list[str]:
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
