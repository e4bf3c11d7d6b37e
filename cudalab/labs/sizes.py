"""Sizes in words: 1000, 1e6, 2^20, 1Mi, 128M, and 300x200 for data with a shape."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cudalab.labs.inputs import Size

_SIZE = re.compile(
    r"(?:2\^(?P<power>\d{1,2})|(?P<number>\d+(?:\.\d+)?(?:e\d{1,2})?))(?P<unit>[kKMG]i?)?"
)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def shape(text: str) -> Size:
    """Parse a size, or dimensions such as 300x200. ValueError says what it is not."""
    if "x" not in text:
        return size(text)
    parts = text.split("x")
    if not all(parts):
        raise ValueError(f"{text!r} is not a shape such as 300x200")
    try:
        return tuple(map(size, parts))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


def in_words(size: Size, comma: str = "") -> str:
    """The words that `shape` parses; with `comma` between groups of digits, for people."""
    dims = size if isinstance(size, tuple) else (size,)
    return "x".join(f"{dim:,}".replace(",", comma) for dim in dims)


def size(text: str) -> int:
    """Parse a count; a header's int32 must hold it. ValueError says what it is not."""
    from fractions import Fraction  # noqa: PLC0415 - only where a size is an option

    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 1000, 1e6, 2^20, 1Mi or 128M")
    number = Fraction(2 ** int(match["power"]) if match["power"] else match["number"])
    number *= _UNITS[(match["unit"] or "").upper()]
    if number.denominator != 1 or number >= 2**31:
        raise ValueError(f"{text!r} is not a whole number below 2^31")
    return int(number)
