"""The JSON Schemas of cudalab/schemas/, made from the dataclasses that the commands write.

A key's description is the comment behind its field. `python -m tools.generate` writes the files.
"""

import inspect
import json
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from cudalab.bench import document as bench
from cudalab.checker import doctor, selftest, verdicts
from cudalab.checker.grading.summary import Class
from cudalab.cli import documents
from cudalab.microscope import document as profile
from cudalab.microscope.findings import Findings
from cudalab.predict.ladder import Predictions
from tools import results
from tools.results import table

FOLDER = results.ROOT / "cudalab" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
SIMPLE = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_FIELD = re.compile(r"^    (?P<name>\w+): [^#\n]*?  # (?P<words>[^\n]*)$", re.MULTILINE)


NONE: Mapping[str, Any] = MappingProxyType({})


class Made(NamedTuple):
    """A document, the command that writes it, and what is there besides the fields."""

    kind: type
    command: str
    derived: Mapping[str, Any] = NONE  # keys that are always there, with their types
    optional: Mapping[str, Any] = NONE  # keys that are there sometimes


DOCUMENTS = (
    Made(documents.Ran, "cudalab LAB"),
    Made(documents.Generated, "cudalab gen LAB"),
    Made(documents.Verified, "cudalab verify LAB IN OUT"),
    Made(documents.Labs, "cudalab list"),
    Made(documents.Variants, "cudalab list LAB"),
    Made(documents.Devices, "cudalab device"),
    Made(doctor.Document, "cudalab doctor"),
    Made(documents.Topics, "cudalab explain"),
    Made(documents.Exercises, "cudalab exercises"),
    Made(bench.Document, "cudalab bench`, `cudalab report"),
    Made(
        profile.Document,
        "cudalab profile LAB`, `cudalab run --profile",
        optional={"compared": profile.Document},
    ),
    Made(Findings, "cudalab sanitize LAB`, `cudalab run --sanitize"),
    Made(Predictions, "cudalab predict LAB"),
    Made(verdicts.Report, "cudalab check LAB", derived=verdicts.DERIVED),
    Made(Class, "cudalab grade FOLDER"),
    Made(selftest.Document, "cudalab selftest"),
)


def name_of(made: Made) -> str:
    """The value of a document's key `schema`, such as cudalab-bench/1."""
    own = {field.name: field.default for field in fields(made.kind)}
    return str(own.get("schema", verdicts.SCHEMA))


def path_of(made: Made) -> Path:
    """The file of a schema: cudalab-bench/1 is bench-1.json."""
    return FOLDER / f"{name_of(made).removeprefix('cudalab-').replace('/', '-')}.json"


@dataclass
class Schema:
    """A JSON Schema while it is being made: the objects inside the document have names."""

    definitions: dict[str, Any]

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type."""
        origin, inner = get_origin(hint), get_args(hint)
        if is_dataclass(hint) and isinstance(hint, type):
            return self._reference(hint)
        if origin in (types.UnionType, Union):
            return self._one_of(inner)
        if origin is list:
            return {"type": "array", "items": self.of(inner[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if issubclass(hint, StrEnum):
            return {"enum": [str(member) for member in hint]}
        return {"type": SIMPLE[hint]}

    def _one_of(self, hints: tuple[Any, ...]) -> dict[str, Any]:
        simple = [SIMPLE[hint] for hint in hints if hint in SIMPLE]
        if "number" in simple and "integer" in simple:
            simple.remove("integer")
        parts = [{"type": simple[0] if len(simple) == 1 else simple}] if simple else []
        parts += [self.of(hint) for hint in hints if hint not in SIMPLE]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _reference(self, kind: type) -> dict[str, Any]:
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # it may refer to itself
            self.definitions[name] = self.object(kind)
        return {"$ref": f"#/$defs/{name}"}

    def object(self, kind: type, derived: Mapping[str, Any] = NONE) -> dict[str, Any]:
        """The schema of a dataclass, after keys that are derived from it."""
        hints, words = get_type_hints(kind), _words(kind)
        properties = {name: self.of(hint) for name, hint in derived.items()}
        for field in fields(kind):
            one = self.of(hints[field.name])
            if field.name in words:
                one = {"description": words[field.name], **one}
            properties[field.name] = one
        return {
            "description": _summary(kind),
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _words(kind: type) -> dict[str, str]:
    """The comments behind the fields of a dataclass and of its bases."""
    found = {}
    for one in reversed(kind.__mro__):
        if is_dataclass(one):
            for match in _FIELD.finditer(inspect.getsource(one)):
                found[match["name"]] = match["words"].partition("  #")[0]
    return found


def _summary(kind: type) -> str:
    """The first paragraph of a dataclass's docstring, in one line."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def schema(made: Made) -> dict[str, Any]:
    """The JSON Schema of a document."""
    name = name_of(made)
    inside = Schema({})
    whole = inside.object(made.kind, made.derived)
    whole["properties"] |= {key: inside.of(hint) for key, hint in made.optional.items()}
    for one in (whole, *inside.definitions.values()):
        if "schema" in one["properties"]:
            one["properties"]["schema"] = {"const": name}
    head = {
        "$schema": DRAFT,
        "$id": f"urn:{name.replace('/', ':')}",
        "title": f"What {made.command.replace('`', '')} --json writes",
    }
    return head | whole | {"$defs": inside.definitions}


def pages() -> list[tuple[Path, str]]:
    """Each file of the folder, and its text."""
    return [(path_of(one), json.dumps(schema(one), indent=1) + "\n") for one in DOCUMENTS]


def listed() -> str:
    """The table of docs/json.md."""
    rows = []
    for made in DOCUMENTS:
        keys = [key for key in schema(made)["properties"] if key != "schema"]
        name = path_of(made).name
        link = f"[`{name_of(made)}`](../cudalab/schemas/{name})"
        rows.append([f"`{made.command}`", link, ", ".join(f"`{key}`" for key in keys)])
    return table(["command", "schema", "keys"], rows)
