"""Dataclasses from JSON: what fits is taken as it is, what does not is named by its place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

import pytest

from cudalab.errors import InputError
from cudalab.system import records


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float


@dataclass(kw_only=True)
class Drawing:
    name: str
    points: list[Point]
    first: Point | None
    numbers: list[int]
    named: dict[str, Point]
    colour: Colour
    value: records.Scalar
    done: bool
    added_later: int = 0


@pytest.fixture
def parsed():
    return {
        "name": "a",
        "points": [{"x": 1, "y": 2.5}],
        "first": None,
        "numbers": [1, 2],
        "named": {"p": {"x": 0, "y": 0}},
        "colour": "blue",
        "value": None,
        "done": True,
        "added_later": 3,
    }


def test_what_fits_is_taken_as_it_is(parsed):
    drawing = records.read(Drawing, parsed)
    assert drawing.points == [Point(1, 2.5)]
    assert drawing.named["p"] == Point(0, 0)
    assert drawing.colour is Colour.BLUE
    assert asdict(drawing) == parsed
    assert isinstance(drawing.points[0].x, int)  # and is written as it was read


def test_an_old_file_lacks_what_was_added_later(parsed):
    del parsed["added_later"]
    assert records.read(Drawing, parsed).added_later == 0


@pytest.mark.parametrize("value", [None, 1, 2.5, "a", True])
def test_a_scalar_is_any_of_them(parsed, value):
    assert records.read(Drawing, {**parsed, "value": value}).value is value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 1}, "name: a int is not expected"),
        ({"done": 1}, "done: a int is not expected"),
        ({"points": {}}, "points: a dict is not expected"),
        ({"points": [{"x": 1}]}, "points[0].y: is missing"),
        ({"points": [{"x": True, "y": 1}]}, "points[0].x: a bool is not expected"),
        ({"points": [3]}, "points[0]: an object is expected"),
        ({"first": []}, "first: a list is not expected"),
        ({"first": {"x": 1, "y": "2"}}, "first.y: a str is not expected"),
        ({"numbers": [1, 2.5]}, "numbers: numbers are expected"),
        ({"named": {"p": {}}}, "named.p.x: is missing"),
        ({"colour": "green"}, "colour: 'green' is not one of red, blue"),
        ({"value": []}, "value: a list is not expected"),
        ({"more": 1}, "more: is unknown"),
    ],
)
def test_what_does_not_fit_is_named(parsed, change, message):
    with pytest.raises(InputError) as refused:
        records.read(Drawing, {**parsed, **change})
    assert refused.value.message == message


def test_the_place_begins_where_it_is_said():
    with pytest.raises(InputError, match=r"^tables\[2\]: an object is expected$"):
        records.read(Point, [], "tables[2]")
    with pytest.raises(InputError, match=r"^an object is expected$"):
        records.read(Point, [])
