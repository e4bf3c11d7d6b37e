"""Opens submissions, which are files, folders or archives. None of them is trusted."""

import hashlib
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from cudalab.errors import CudalabError, UsageError

MAX_BYTES = 64 << 20  # of an unpacked submission
MAX_FILES = 2000
MAX_STEM_BYTES = 120  # of a name that a submission is judged under
PIECE = 1 << 20
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ENDINGS = (".zip", *TAR_ENDINGS)
UNSUPPORTED = (".rar", ".7z", ".gz", ".bz2", ".xz", ".zst", ".lz", ".cab", ".arj")
SOURCES = (".cu", ".py")  # what can be judged
NOT_TEXT = {  # what a file begins with, what that is, and what helps
    b"\xff\xfe": ("in UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("in UTF-16", "save it as UTF-8"),
    b"PK\3\4": ("a zip", "hand in the file that is in it, or give it the ending .zip"),
    b"\x1f\x8b": ("packed by gzip", "hand in the file that is in it"),
    b"\x7fELF": ("a compiled program", "hand in its source"),
}
DAMAGED = (  # what reading an archive raises that is cut, changed, encrypted or none
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError,
    RuntimeError, NotImplementedError, ValueError,
)  # fmt: skip
IGNORED = {"__MACOSX", "__pycache__", ".git", ".DS_Store"}


class BadSubmissionError(CudalabError):
    """A submission contains nothing to judge, or cannot be opened safely."""


@dataclass(frozen=True)
class Entry:
    """A submission in the folder of a class."""

    name: str
    path: Path


def entries(folder: Path) -> list[Entry]:
    """All submissions: each file, folder or archive that is not hidden."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="cudalab grade SUBMISSIONS/ --lab LAB …")
    try:
        paths = {
            path: _stem(path)
            for path in sorted(folder.iterdir())
            if not path.name.startswith(".") and path.name not in IGNORED
        }
    except OSError as error:
        raise CudalabError(f"{folder} cannot be read: {error.strerror}") from None
    uses = Counter(name for path, stem in paths.items() for name in {stem, _text(path)})
    return [Entry(stem if uses[stem] == 1 else _text(path), path) for path, stem in paths.items()]


def _stem(path: Path) -> str:
    """The name without the file ending."""
    name = _text(path)
    for ending in (*ENDINGS, ".cu", ".py"):
        if path.is_file() and name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def _text(path: Path) -> str:
    """The full name as text; bytes that are none are escaped."""
    return shown(path.name)


def shown(name: str) -> str:
    """A name or path as text for any file and any screen; bytes that are no text are escaped."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def usable(name: str) -> str:
    """The name that a file gets when it is judged, one that compilers and reports can take."""
    text = os.fsencode(name).decode(errors="replace")
    text = "".join(letter if letter.isprintable() else "_" for letter in text)
    stem, dot, ending = text.rpartition(".")
    stem, text = (_cut(stem), text) if dot else (stem, _cut(text))
    text = f"{stem}{dot}{ending}" if dot else text
    return f"{stem}{dot}{ending.lower()}" if f".{ending.lower()}" in SOURCES else text


def _cut(text: str) -> str:
    """As much of a name as leaves room for what is added to it; file systems allow 255 bytes."""
    return text.encode()[:MAX_STEM_BYTES].decode(errors="ignore")


def digest(path: Path) -> str:
    """A hash of a submission as it was handed in; it changes with any file."""
    state = hashlib.blake2b(digest_size=16)
    if path.is_symlink():  # it is refused, and may lead anywhere
        state.update(os.fsencode(path.readlink()))
        return state.hexdigest()
    for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
        with suppress(OSError):  # judging reports unreadable files
            if one.is_symlink() or not one.is_file():
                continue
            with one.open("rb") as file:
                inner = os.fsencode(one.relative_to(path))
                state.update(b"%b\0%d\0" % (inner, one.stat().st_size))
                while piece := file.read(PIECE):
                    state.update(piece)
    return state.hexdigest()


def place(entry: Entry, folder: Path) -> Path:
    """Copy or unpack a submission into an empty folder; return where its files are."""
    name = _text(entry.path)
    if entry.path.is_symlink():
        raise BadSubmissionError(f"{name} is a link")
    if entry.path.is_dir():
        _copy_tree(entry.path, folder)
    elif not entry.path.is_file():
        raise BadSubmissionError(f"{name} is not a file: it may be a pipe or a device")
    elif name.lower().endswith(".zip"):
        _unzip(entry.path, folder)
    elif name.lower().endswith(TAR_ENDINGS):
        _untar(entry.path, folder)
    elif name.lower().endswith(UNSUPPORTED):
        raise BadSubmissionError(
            f"{name}: archives of this kind are not supported", "hand in a zip or a tar"
        )
    else:
        with _reading(name), entry.path.open("rb") as file:
            _Budget().copy(file, folder / usable(entry.path.name))
    inside = [folder]
    while len(inside) == 1 and inside[0].is_dir():  # archives often consist of a single folder
        folder = inside[0]
        inside = [path for path in folder.iterdir() if path.name not in IGNORED]
    return _checked(folder)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Refuse a submission that the system does not let the grader read."""
    try:
        yield
    except OSError as error:
        raise BadSubmissionError(f"cannot be read: {name}: {error.strerror}") from None


def _checked(folder: Path) -> Path:
    """A folder whose sources are text that compilers read, and not all empty."""
    some = list(sources(folder))
    for path in some:
        with path.open("rb") as file:
            begins = file.read(4)
        for mark, (what, hint) in NOT_TEXT.items():
            if begins.startswith(mark):
                raise BadSubmissionError(f"{path.name} is {what}", hint)
    if some and not any(path.stat().st_size for path in some):
        raise BadSubmissionError(f"{some[0].name} is empty")
    return folder


def _copy_tree(source: Path, folder: Path) -> None:
    def unread(error: OSError) -> None:
        raise BadSubmissionError(f"cannot be read: {inner(error.filename)}: {error.strerror}")

    def inner(path: Path | str) -> str:
        return shown(str(Path(path).relative_to(source.parent)))

    budget = _Budget()
    for at, _, names in os.walk(source, onerror=unread):
        for path in (Path(at, name) for name in sorted(names)):
            with _reading(inner(path)):
                if path.is_symlink() or not path.is_file():
                    continue  # a link may lead anywhere, and a pipe has no end
                target = budget.target(folder, path.relative_to(source).as_posix())
                with path.open("rb") as file:
                    budget.copy(file, target)


def _unzip(path: Path, folder: Path) -> None:
    budget = _Budget()
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                mode = member.external_attr >> 16
                if member.is_dir() or (mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode)):
                    continue
                target = budget.target(folder, member.filename)
                with archive.open(member) as file:
                    budget.copy(file, target)
    except DAMAGED as error:
        raise _unopened(path, error) from None


def _untar(path: Path, folder: Path) -> None:
    budget = _Budget()
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if not member.isreg():
                    continue
                target = budget.target(folder, member.name)
                file = archive.extractfile(member)
                if file is not None:
                    budget.copy(file, target)
    except DAMAGED as error:
        raise _unopened(path, error) from None


def _unopened(path: Path, error: Exception) -> BadSubmissionError:
    """The refusal of an archive; the system's own words would name the grader's folders."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return BadSubmissionError(f"{shown(path.name)}: cannot be unpacked: {reason}")


class _Budget:
    """The space that a submission may still use, whatever sizes its archive claims."""

    def __init__(self) -> None:
        self.bytes, self.files = MAX_BYTES, MAX_FILES

    def target(self, folder: Path, name: str) -> Path:
        """The path for a member. BadSubmissionError if that is outside the folder."""
        self.files -= 1
        if self.files < 0:
            raise BadSubmissionError(f"more than {MAX_FILES:,} files")
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if not parts or parts[0] == "/" or ".." in parts or re.match(r"[A-Za-z]:", parts[0]):
            raise BadSubmissionError(f"it would write outside its folder: {name!r}")
        target = folder.joinpath(*map(usable, parts))
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def copy(self, source: IO[bytes], target: Path) -> None:
        """Copy as much as the budget allows. What cannot be written is the grader's fault."""
        if target.exists():
            raise BadSubmissionError(f"it has two files of one name: {target.name}")
        while piece := source.read(PIECE):
            self.bytes -= len(piece)
            if self.bytes < 0:
                raise BadSubmissionError(f"more than {MAX_BYTES >> 20} MiB when unpacked")
            self._append(target, piece)
        self._append(target, b"")

    @staticmethod
    def _append(target: Path, piece: bytes) -> None:
        try:
            with target.open("ab") as out:
                out.write(piece)
        except OSError as error:
            raise CudalabError(f"it cannot be copied: {error.strerror}") from None


def sources(folder: Path) -> Iterator[Path]:
    """The source files, for comparing submissions."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cu", ".cuh", ".h", ".cpp", ".c", ".py") and path.is_file():
            yield path
