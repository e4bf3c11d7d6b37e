"""Remarks on lines of source code, and the commands by which GitHub Actions shows them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["error", "warning", "note"]
_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


@dataclass(frozen=True)
class Rule:
    """A kind of remark, and what is true of each of this kind."""

    name: str
    title: str
    why: str  # it matters
    cure: str


@dataclass(frozen=True, kw_only=True)
class Related:
    """Another line that an annotation is about."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """A remark on a line of source code."""

    rule: Rule
    title: str = ""  # that of the rule, if it is empty
    level: Level
    text: str
    advice: str = ""
    about: str = ""  # a name on the line, such as that of an array
    file: str = ""  # as the user has named it
    line: int = 0  # from 1 on; 0: the whole file
    related: tuple[Related, ...] = ()


def root() -> Path:
    """The folder that paths are relative to: GitHub's checkout, or the current folder."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()


def from_root(file: str) -> str:
    """A file's path from the root, or its absolute path if it lies elsewhere."""
    path = Path(file).resolve()
    return path.relative_to(root()).as_posix() if path.is_relative_to(root()) else str(path)


def commands(annotations: Iterable[Annotation]) -> str:
    """The workflow commands of GitHub Actions, a line for each annotation."""
    return "".join(_command(one) for one in annotations)


def _command(one: Annotation) -> str:
    properties = {"file": from_root(one.file)} if one.file else {}
    if one.file and one.line:
        properties["line"] = str(one.line)
    properties["title"] = one.title or one.rule.title
    words = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = "\n".join(filter(None, (one.text, one.advice)))
    return f"::{_COMMANDS[one.level]} {words}::{_data(text)}\n"


def _data(text: str) -> str:
    """A message in one line, as workflow commands encode it; lone surrogates become ?."""
    text = text.encode(errors="replace").decode()
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
