"""Remarks on lines of source code, and the commands by which GitHub Actions shows them."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

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
    data = {name: _data(value).replace(":", "%3A") for name, value in properties.items()}
    words = ",".join(f"{name}={value.replace(',', '%2C')}" for name, value in data.items())
    text = "\n".join(filter(None, (one.text, one.advice)))
    return f"::{_COMMANDS[one.level]} {words}::{_data(text)}\n"


def _data(text: str) -> str:
    """A message in one line, as workflow commands encode it; lone surrogates become ?."""
    text = text.encode(errors="replace").decode()
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "SRCROOT"


def sarif(annotations: Sequence[Annotation], tool: str, version: str) -> str:
    """The document of one run of a tool."""
    rules = {one.rule.name: one.rule for one in annotations}
    order = list(rules)
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": tool,
                "version": version,
                "rules": [_rule(rule) for rule in rules.values()],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": f"{root().as_uri()}/"}},
        "results": [_result(one, order.index(one.rule.name), seen) for one in annotations],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    """What holds for every result of a rule."""
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\n{rule.cure}"},
    }


def _result(one: Annotation, rule: int, seen: Counter[str]) -> dict[str, Any]:
    """A remark; `seen` counts those that look alike, which differ in their number alone."""
    # The fingerprint stays the same if the line has only moved.
    words = (
        one.rule.name,
        from_root(one.file) if one.file else "",
        _code(one.file, one.line).strip(),
    )
    fingerprint = hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:32]
    seen[fingerprint] += 1
    result: dict[str, Any] = {
        "ruleId": one.rule.name,
        "ruleIndex": rule,
        "level": one.level,
        "message": {"text": "\n".join(filter(None, (one.text, one.advice)))},
        "partialFingerprints": {"rule_and_code/v1": f"{fingerprint}:{seen[fingerprint]}"},
    }
    if one.file:
        result["locations"] = [_location(one.file, one.line, one.about)]
    if one.related:
        result["relatedLocations"] = [
            {
                "id": number,
                "message": {"text": other.text},
                **_location(other.file, other.line, one.about),
            }
            for number, other in enumerate(one.related, 1)
        ]
    return result


def _location(file: str, line: int, about: str = "") -> dict[str, Any]:
    """A line of a file, or its first line if none is known: code hosts ask for one."""
    path = from_root(file)
    artifact = {"uri": quote(os.fsencode(path)), "uriBaseId": _ROOT}
    if Path(path).is_absolute():
        artifact = {"uri": Path(path).as_uri()}
    region: dict[str, Any] = {"startLine": line or 1}
    code = _code(file, line)
    if code.strip():
        start, end = _columns(code, about)
        region |= {"startColumn": start + 1, "endColumn": end + 1}
        region["snippet"] = {"text": code[start:end]}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _columns(code: str, about: str) -> tuple[int, int]:
    """Where a name stands on a line, with its index; the whole line if it is not there once."""
    named = list(re.finditer(rf"\b{re.escape(about)}\b", code)) if about else []
    if len(named) != 1:
        return len(code) - len(code.lstrip()), len(code.rstrip())
    start, end = named[0].span()
    while end < len(code) and code[end] == "[":
        end += next(_lengths(code[end:]), 0) or len(code) - end
    return start, min(end, len(code.rstrip()))


def _lengths(code: str) -> Iterator[int]:
    """After how many letters each bracket that opens outside of others is closed."""
    depth = 0
    for length, letter in enumerate(code, 1):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "]" and depth == 0:
            yield length


def _code(file: str, line: int) -> str:
    """The text of a line; empty if it cannot be read."""
    lines: list[str] = []
    if file and line:
        with suppress(OSError):
            lines = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""
