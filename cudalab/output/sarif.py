"""Annotations as SARIF 2.1.0, the form in which editors and code hosts read findings."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cudalab.output.annotations import from_root, root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.output.annotations import Annotation

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "SRCROOT"


def sarif(annotations: Sequence[Annotation], tool: str, version: str) -> str:
    """The document of one run of a tool."""
    rules: dict[str, Annotation] = {}
    for one in annotations:
        rules.setdefault(one.rule, one)
    order = list(rules)
    run = {
        "tool": {
            "driver": {
                "name": tool,
                "version": version,
                "rules": [_rule(rule) for rule in rules.values()],
            }
        },
        "originalUriBaseIds": {_ROOT: {"uri": f"{root().as_uri()}/"}},
        "results": [_result(one, order.index(one.rule)) for one in annotations],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(one: Annotation) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": one.rule, "shortDescription": {"text": one.title}}
    if one.advice:
        rule["help"] = {"text": one.advice}
    return rule | {"defaultConfiguration": {"level": one.level}}


def _result(one: Annotation, rule: int) -> dict[str, Any]:
    message = "\n".join(filter(None, (one.text, one.advice)))
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "ruleIndex": rule,
        "level": one.level,
        "message": {"text": message},
        "partialFingerprints": {"rule_and_code/v1": _fingerprint(one)},
    }
    if one.file:
        result["locations"] = [_location(one.file, one.line)]
    if one.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": other.text}, **_location(other.file, other.line)}
            for number, other in enumerate(one.related, 1)
        ]
    return result


def _location(file: str, line: int) -> dict[str, Any]:
    """A line of a file, or its first line if none is known: code hosts ask for one."""
    path = from_root(file)
    artifact = {"uri": quote(os.fsencode(path)), "uriBaseId": _ROOT}
    if Path(path).is_absolute():
        artifact = {"uri": Path(path).as_uri()}
    region: dict[str, Any] = {"startLine": line or 1}
    code = _code(file, line)
    if code.strip():
        region["startColumn"] = len(code) - len(code.lstrip()) + 1
        region["endColumn"] = len(code.rstrip()) + 1
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _fingerprint(one: Annotation) -> str:
    """The same for a remark whose line has only moved."""
    words = (one.rule, from_root(one.file) if one.file else "", _code(one.file, one.line).strip())
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:32]


def _code(file: str, line: int) -> str:
    """The text of a line; empty if it cannot be read."""
    lines: list[str] = []
    if file and line:
        with suppress(OSError):
            lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""
