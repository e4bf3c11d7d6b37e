"""Dataclasses from parsed JSON, strictly: what is wrong is named by its place in the file.

The types of the fields are the form: an object has these keys and no others. The way back is
`dataclasses.asdict`.
"""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from cudalab.errors import InputError

Record = TypeVar("Record")
Scalar = str | int | float | bool | None

_NUMBERS = {int: (int,), float: (int, float)}
_hints = cache(get_type_hints)


def read(kind: type[Record], found: object, where: str = "") -> Record:
    """`found`, which came from JSON, as a dataclass. InputError names the first wrong place."""
    record: Record = _object(kind, found, where)
    return record


def _object(kind: Any, found: object, where: str) -> Any:
    if not isinstance(found, dict):
        raise InputError(f"{where}: an object is expected".lstrip(": "))
    hints = _hints(kind)
    names = [field.name for field in fields(kind)]
    for name in names:
        if name not in found:
            raise InputError(f"{_below(where, name)}: is missing")
    for key in found:
        if key not in names:
            raise InputError(f"{_below(where, key)}: is unknown")
    return kind(**{name: _value(hints[name], found[name], _below(where, name)) for name in names})


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _value(hint: Any, found: object, where: str) -> Any:
    """`found` as what a field's type says."""
    if is_dataclass(hint):
        return _object(hint, found, where)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return _one_of(inner, found, where)
    if origin is list:
        return _list(inner[0], _checked(found, list, where), where)
    if origin is dict:
        values = _checked(found, dict, where)
        return {key: _value(inner[1], value, _below(where, key)) for key, value in values.items()}
    if issubclass(hint, StrEnum):
        return _member(hint, found, where)
    return _checked(found, hint, where)


def _list(hint: Any, found: list[object], where: str) -> list[Any]:
    if hint in _NUMBERS:  # samples: long, and a place among them says little
        if not all(_is(one, hint) for one in found):
            raise InputError(f"{where}: numbers are expected")
        return found
    return [_value(hint, one, f"{where}[{index}]") for index, one in enumerate(found)]


def _one_of(hints: tuple[Any, ...], found: object, where: str) -> Any:
    """The alternative that a value's JSON type chooses: at most one of them is an object."""
    for hint in hints:
        if (is_dataclass(hint) and isinstance(found, dict)) or _is(found, hint):
            return _value(hint, found, where)
    raise _unexpected(found, where)


def _member(kind: type[StrEnum], found: object, where: str) -> StrEnum:
    for member in kind:
        if member == found:
            return member
    raise InputError(f"{where}: {found!r} is none of {', '.join(kind)}")


def _checked(found: object, kind: type, where: str) -> Any:
    if not _is(found, kind):
        raise _unexpected(found, where)
    return found


def _is(found: object, kind: Any) -> bool:
    """Whether JSON's value has the type; a whole number is a float too, a truth value no number."""
    kind = get_origin(kind) or kind
    if isinstance(found, bool):
        return kind is bool
    return isinstance(found, _NUMBERS.get(kind, kind))


def _unexpected(found: object, where: str) -> InputError:
    return InputError(f"{where}: a {type(found).__name__} is not expected")
