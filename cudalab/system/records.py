"""Dataclasses from parsed JSON, read strictly, and back: errors name the wrong place in the file.

The fields and their types are the schema: an object has these keys and no others.
`python -m tools.generate` writes it as a JSON Schema into `cudalab/schemas/`.
"""

import json
import types
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from cudalab.errors import InputError

Record = TypeVar("Record")
Scalar = str | int | float | bool | None

_NUMBERS = {int: (int,), float: (int, float)}
_hints = cache(get_type_hints)


def read(kind: type[Record], value: object, where: str = "") -> Record:
    """Turn a value from JSON into a dataclass. InputError names the first wrong place."""
    record: Record = _object(kind, value, where)
    return record


def text(document: Any) -> str:
    """The JSON of a document: a dataclass, or plain data. Nothing in it is beyond JSON."""
    plain = (
        asdict(document) if is_dataclass(document) and not isinstance(document, type) else document
    )
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def _object(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"{where}: an object is expected".lstrip(": "))
    hints = _hints(kind)
    names = [field.name for field in fields(kind)]
    for name in (field.name for field in fields(kind) if _required(field)):
        if name not in value:
            raise InputError(f"{_below(where, name)}: is missing")
    for key in value:
        if key not in names:
            raise InputError(f"{_below(where, key)}: is unknown")
    return kind(**{name: _value(hints[name], value[name], _below(where, name)) for name in value})


def _required(field: Field[Any]) -> bool:
    """Whether a file must have the key: one with a default came later than the first files."""
    return field.default is MISSING and field.default_factory is MISSING


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _value(hint: Any, value: object, where: str) -> Any:
    """Turn a value from JSON into the type of a field."""
    if is_dataclass(hint):
        return _object(hint, value, where)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return _one_of(inner, value, where)
    if origin is list:
        return _list(inner[0], _checked(value, list, where), where)
    if origin is dict:
        values = _checked(value, dict, where)
        return {key: _value(inner[1], item, _below(where, key)) for key, item in values.items()}
    if issubclass(hint, StrEnum):
        for member in hint:
            if member == value:
                return member
        raise InputError(f"{where}: {value!r} is not one of {', '.join(hint)}")
    return _checked(value, hint, where)


def _list(hint: Any, value: list[object], where: str) -> list[Any]:
    if hint in _NUMBERS:  # samples: many of them, and an index would say little
        if not all(_is(one, hint) for one in value):
            raise InputError(f"{where}: numbers are expected")
        return value
    return [_value(hint, one, f"{where}[{index}]") for index, one in enumerate(value)]


def _one_of(hints: tuple[Any, ...], value: object, where: str) -> Any:
    """Choose the alternative by the value's JSON type: at most one of them is an object."""
    for hint in hints:
        if (is_dataclass(hint) and isinstance(value, dict)) or _is(value, hint):
            return _value(hint, value, where)
    raise _unexpected(value, where)


def _checked(value: object, kind: type, where: str) -> Any:
    if not _is(value, kind):
        raise _unexpected(value, where)
    return value


def _is(value: object, kind: Any) -> bool:
    """Whether a JSON value has the type; an integer is also a float, a boolean is not a number."""
    kind = get_origin(kind) or kind
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, _NUMBERS.get(kind, kind))


def _unexpected(value: object, where: str) -> InputError:
    return InputError(f"{where}: a {type(value).__name__} is not expected")
