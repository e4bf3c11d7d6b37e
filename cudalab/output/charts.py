"""The data of charts. svg.py draws them; plots.py writes them to files."""

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Line:
    """The times of one variant or baseline over the size."""

    label: str
    x: list[float]
    y: list[float]
    spread: list[float]  # standard deviations, in the unit of y
    _: KW_ONLY
    baseline: bool = False


@dataclass(frozen=True)
class OverSizes:
    """Times over n, or over launch sizes, on logarithmic scales."""

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    _: KW_ONLY
    floor: Line | None = None  # times below it are impossible or not expected


@dataclass(frozen=True)
class Rung:
    """A bar of a ladder; if it has no value, only its text is shown."""

    label: str
    value: float | None
    text: str
    baseline: bool = False
    _: KW_ONLY
    range: tuple[float, float] | None = None  # in which the value may lie


@dataclass(frozen=True)
class Ladder:
    """Rates as bars from 0, the first rung at the top, and the ceiling for all of them."""

    title: str
    x_label: str
    rungs: list[Rung]
    ceiling: tuple[float, str] | None = None  # its value and its name
    _: KW_ONLY
    full: float = 0.0  # the value of the longest possible bar

    @property
    def longest(self) -> float:
        """The largest value on the scale."""
        values = [value for rung in self.rungs for value in (rung.value, *(rung.range or ()))]
        ceiling = self.ceiling[0] if self.ceiling else 0.0
        return max(ceiling, self.full, *filter(None, values)) or 1.0


@dataclass(frozen=True)
class Change:
    """How much longer one row takes than before, in percent, with its interval."""

    label: str
    percent: float
    interval: tuple[float, float]
    _: KW_ONLY
    text: str  # the verdict


@dataclass(frozen=True)
class Changes:
    """The changes of rows as dots with intervals, on one scale with 0 on it."""

    title: str
    x_label: str
    rows: list[Change]
    _: KW_ONLY
    band: float  # changes of so many percent, either way, are ignored

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the scale."""
        lows, highs = zip(*(row.interval for row in self.rows), strict=True)
        return min(*lows, -2 * self.band), max(*highs, 2 * self.band)


@dataclass(frozen=True)
class Columns:
    """Counts of classes as columns, from left to right."""

    title: str
    x_label: str
    labels: list[str]
    counts: list[int]


@dataclass(frozen=True)
class Point:
    """A variant or baseline in a roofline."""

    label: str
    x: float
    y: float
    _: KW_ONLY
    baseline: bool = False


@dataclass(frozen=True)
class Roof:
    """The rates of the device: `slope` times x, and at most `flat` if that is known."""

    slope: float
    flat: float | None
    names: tuple[str, ...]  # of both

    def at(self, x: float) -> float:
        """The maximum rate at `x`."""
        return min(self.slope * x, self.flat or self.slope * x)


@dataclass(frozen=True)
class Roofline:
    """Rates over the arithmetic intensity, on logarithmic scales, below a roof."""

    title: str
    x_label: str
    y_label: str
    points: list[Point]
    _: KW_ONLY
    roof: Roof


Chart = OverSizes | Ladder | Changes | Columns | Roofline
