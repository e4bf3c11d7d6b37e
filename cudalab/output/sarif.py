"""Annotations as SARIF 2.1.0, the form in which editors and code hosts read findings."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cudalab.output.annotations import Annotation, Rule, from_root, root

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
