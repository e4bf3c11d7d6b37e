"""The source files of a submission, as they are handed to the compilers.

Two things are settled in the text, before any compiler reads it. A file includes what lies beside
it, and headers of the system: nothing else of the grader's machine may appear in a message. And the
lines of a message are those of the files that were handed in, whatever `#line` says.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from cudalab.checker.verdicts import Why
from cudalab.language.source import blank_comments

HEADERS = (".cuh", ".h", ".hpp", ".inl")
_SPACE = r"(?:[ \t\v\f]|\\\r?\n|/\*.*?\*/)*"
_BEGIN = rf"^(?:\ufeff)?{_SPACE}(?:\#|%:|\?\?=){_SPACE}"


def _spelled(word: str) -> str:
    """A pattern for a word that backslashes at the ends of lines may divide."""
    return r"(?:\\\r?\n)*".join(word)


_LINE = re.compile(
    rf"{_BEGIN}(?:{_spelled('line')}\b|(?=\d))(?:\\\r?\n|[^\n])*", re.MULTILINE | re.DOTALL
)
_INCLUDE = re.compile(
    rf"{_BEGIN}(?:{_spelled('include')}(?:{_spelled('_next')})?|{_spelled('import')}"
    rf"|{_spelled('embed')})\b{_SPACE}(?P<what>(?:\\\r?\n|[^\n])*)",
    re.MULTILINE | re.DOTALL,
)
_ASKED = re.compile(r"__has_(?:include(?:_next)?|embed)\s*\(\s*[\"<](?P<name>[^\">\n]*)")
_NAMED = re.compile(r'"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>')


class CompileFailure(Exception):  # noqa: N818 - a verdict
    """The submission does not compile, or holds code that is not allowed."""

    def __init__(self, why: Why, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.why, self.message, self.hint = why, message, hint


def copy_sources(files: Iterable[Path], folder: Path) -> None:
    """Copy the files that were handed in, and the headers beside them, into a new folder.

    CompileFailure if one includes a file of another folder.
    """
    folder.mkdir()
    for path in files:
        _copy(path, folder)
        for header in sorted(path.parent.iterdir()):
            if header.suffix in HEADERS and header.is_file() and not header.is_symlink():
                _copy(header, folder)


def _copy(path: Path, folder: Path) -> None:
    text = path.read_bytes().decode("latin-1")  # each byte is a letter, and stays what it is
    (folder / path.name).write_bytes(settled(text, path.name).encode("latin-1"))


def settled(text: str, name: str) -> str:
    """The text without `#line`, each line at its place. CompileFailure for a foreign #include."""
    for match in _INCLUDE.finditer(blank_comments(text, literals=False)):
        named = _NAMED.match(match["what"])
        line = text.count("\n", 0, match.start()) + 1
        if named is None:
            raise CompileFailure(
                Why.COMPILE,
                f"{name}:{line}: error: #include without the name of a file",
                "write the name itself, in quotes or in angle brackets",
            )
        _check_beside(named["quoted"] or named["angled"] or "", f"{name}:{line}")
    for asked in _ASKED.finditer(blank_comments(text, literals=False)):
        _check_beside(asked["name"], f"{name}:{text.count(chr(10), 0, asked.start()) + 1}")
    return _LINE.sub(lambda match: re.sub(r"[^\r\n]", " ", match[0]), text)


def _check_beside(file: str, place: str) -> None:
    """Raise CompileFailure for the name of a file that is not beside a submission's."""
    path = PurePosixPath(file.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise CompileFailure(
            Why.COMPILE,
            f"{place}: error: it includes a file of another folder, or asks for one",
            "a submission includes files beside it, and the system's headers by their names",
        )
