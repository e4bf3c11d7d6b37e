"""The Python packages that the judge has, for the processes that are judged.

Those have another home, a clean environment and perhaps another user. What the judge imports from
`pip install --user`, from PYTHONPATH or from a home that is closed to others would be missing. So
the packages that cudalab needs, and nothing that lies beside them, come along: their folders are on
the process's import path, and what its user cannot read is copied to where he can.
"""

from __future__ import annotations

import atexit
import re
import shutil
import site
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
# What pyproject.toml asks for: always, for a GPU, and for a machine without a compiler.
REQUIRED = ("click", "numpy", "rich")
EXTRA = ("pycuda", "nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-cuda-runtime", "ziglang")
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Package:
    """What one distribution, or one module without metadata, has put into a folder of packages."""

    folder: Path
    files: tuple[str, ...]  # relative to the folder

    def tops(self) -> list[Path]:
        """Its files and folders right below the folder."""
        return [self.folder / name for name in dict.fromkeys(f.split("/")[0] for f in self.files)]


@cache
def needed() -> tuple[Package, ...]:
    """The packages that cudalab imports, and those that they import."""
    found: dict[str, Package | None] = {}
    names = [*REQUIRED, *EXTRA]
    for name in names:  # grows while it is walked
        key = re.sub(r"[-_.]+", "_", name).lower()
        if key in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            found[key] = _module(key)
            continue
        found[key] = _package(distribution) or _module(key)
        names += [
            match[0]
            for line in distribution.requires or ()
            if "extra ==" not in line and (match := _NAME.match(line))
        ]
    return tuple(package for package in found.values() if package)


def _package(distribution: metadata.Distribution) -> Package | None:
    """What its installer has written down; None where it has not, as on Debian."""
    record = distribution.read_text("RECORD") or ""
    files = [line.rsplit(",", 2)[0].strip('"') for line in record.splitlines()]
    inside = tuple(file for file in files if file and not file.startswith(("..", "/")))
    folder = Path(str(distribution.locate_file("")))
    return Package(folder, inside) if any(file.endswith(".py") for file in inside) else None


def _module(name: str) -> Package | None:
    """A module as it is found when it is imported."""
    with suppress(ImportError, ValueError):
        spec = util.find_spec(name)
        if spec is None or spec.origin in (None, "built-in", "frozen"):
            return None
        origin = Path(str(spec.origin)).absolute()
        if not spec.submodule_search_locations:
            return Package(origin.parent, (origin.name,))
        folder = origin.parent.parent
        return Package(folder, tuple(_files_below(folder, origin.parent.name)))
    return None


def folders() -> list[Path]:
    """Where they are, but for the folders that this Python looks into by itself."""
    own = {Path(folder).resolve() for folder in site.getsitepackages()}
    found = dict.fromkeys(package.folder for package in needed())
    return [folder for folder in found if folder.resolve() not in own]


@dataclass(frozen=True)
class Imports:
    """How a judged process starts Python and finds cudalab."""

    python: str = sys.executable
    root: Path = PACKAGE_ROOT  # cudalab itself, and in a checkout its kernels
    packages: tuple[Path, ...] = ()  # folders
    files: tuple[Path, ...] = ()  # and folders: what is needed of all these, and nothing beside

    def path(self) -> str:
        """As PYTHONPATH takes it."""
        return ":".join(map(str, dict.fromkeys((self.root, *self.packages))))

    def seen(self, path: Path) -> Path:
        """A file of cudalab's own, as the process sees it."""
        with suppress(ValueError):
            return self.root / path.resolve().relative_to(PACKAGE_ROOT)
        return path


def as_they_are() -> Imports:
    """For a process that can read what the judge can."""
    tops = tuple(top for package in needed() for top in package.tops())
    return Imports(packages=tuple(folders()), files=(*_own_folders(PACKAGE_ROOT), *tops))


@cache
def for_others() -> Imports:
    """For a user who has nothing to do with the judge's: what he cannot read is copied."""
    python = sys.executable
    own = {Path(folder).resolve() for folder in site.getsitepackages()}
    if not open_to_all(Path(python)):
        python, own = str(Path(python).resolve()), set()
    closed = [package for package in needed() if not _is_open(package)]
    usable = [package for package in needed() if package not in closed]
    packages = [package.folder for package in usable if package.folder.resolve() not in own]
    files = [top for package in usable for top in package.tops()]
    root = PACKAGE_ROOT
    if closed or not open_to_all(root / "cudalab"):
        copy = _copies()
        for package in closed:
            _copy(package.folder, package.files, copy)
        packages.insert(0, copy)
        files.append(copy)
        if not open_to_all(root / "cudalab"):
            for folder in _own_folders(root):
                _copy(root, _files_below(root, folder.name), copy)
            root = copy
    files += _own_folders(root)
    return Imports(python, root, tuple(dict.fromkeys(packages)), tuple(files))


def _own_folders(root: Path) -> list[Path]:
    """Of cudalab itself; the kernels are beside it in a repository, not where it is installed."""
    return [root / name for name in ("cudalab", "kernels") if (root / name).is_dir()]


def _copies() -> Path:
    """A folder that all may read; it is gone when the judge ends."""
    folder = Path(tempfile.mkdtemp(prefix="cudalab-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


def _copy(folder: Path, files: Iterable[str], to: Path) -> None:
    for file in files:
        source, target = folder / file, to / file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            runs = source.stat().st_mode & stat.S_IXUSR
            target.chmod(0o755 if runs else 0o644)
            for parent in target.relative_to(to).parents:
                (to / parent).chmod(0o755)


def _files_below(root: Path, name: str) -> Iterator[str]:
    for path in (root / name).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield str(path.relative_to(root))


def _is_open(package: Package) -> bool:
    """Whether any user can import it. (What an installer has written has one mode.)"""
    return all(open_to_all(top) for top in package.tops() if top.exists())


def open_to_all(path: Path) -> bool:
    """Whether any user can read it, by the name that it is given and by its own."""
    real = path.resolve()
    above = (*path.absolute().parents, *real.parents)
    mode = path.stat().st_mode
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return mode & wanted == wanted and all(one.stat().st_mode & stat.S_IXOTH for one in above)
