"""Formats the numbers of bench, with suitable units and digits."""

from collections.abc import Iterable

UNITS = ((1e3, "s"), (1.0, "ms"), (1e-3, "µs"))
RATES = ((1e9, "10⁹"), (1e6, "10⁶"), (1e3, "10³"), (1.0, "items"))


def unit_for(ms: Iterable[float]) -> tuple[float, str]:
    """The largest unit in which the shortest time is at least 1; otherwise microseconds."""
    return _largest_within(UNITS, min(ms, default=1.0))


def rate_for(items_per_s: Iterable[float]) -> tuple[float, str]:
    """The power of ten in which the highest rate is 1 or more."""
    return _largest_within(RATES, max(items_per_s, default=1.0))


def _largest_within(units: tuple[tuple[float, str], ...], value: float) -> tuple[float, str]:
    return next((unit for unit in units if value >= unit[0]), units[-1])


def figure(value: float) -> str:
    """A number with four significant digits, or as an integer if it has more."""
    for lower, digits in ((1000, 0), (100, 1), (10, 2)):
        if abs(value) >= lower:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def factor(value: float) -> str:
    """A number with three significant digits, or as an integer if it has more."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
