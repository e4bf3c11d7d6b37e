"""The tests of a submission: each lab's public list, or the instructor's own file."""

import hashlib
import math
import tomllib
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from cudalab.checker.options import LANGUAGES, RACES, JudgingOptions, Rules
from cudalab.errors import CudalabError, UsageError, nearest
from cudalab.labs import registry, sizes
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.teaching import PublicTest

Word = TypeVar("Word", bound=str)

MAX_SANITIZED = 30_000  # elements: the instrument is slow


@dataclass(frozen=True)
class Test:
    """One input, and how a submission is judged on it."""

    name: str
    size: Size
    dist: str
    _: KW_ONLY
    options: Case = field(default_factory=dict)  # the lab's, as on the command line
    seed: int | None = None  # None: derived from the check's seed
    points: float = 1.0
    hidden: bool = False  # from students, if the grading system can hide a test
    seconds: float | None = None  # its own time limit
    memory_bytes: int | None = None
    file: Path | None = None  # the instructor's input instead of a random one
    refuse: bool = False  # invalid input: an error and an empty stdout are right
    made_with: Case = field(default_factory=dict)  # options for making such an input
    cut_bytes: int = 0  # removed from the end of the input
    pipe: bool = False  # stdin is a pipe that delivers a few bytes at a time
    large: bool = False  # a kernel runs once on it, and on no second input
    drawn: bool = False  # in another case than the list was made for (draw.py)

    __test__ = False  # for pytest: not a test class

    @property
    def elements(self) -> int:
        """The approximate number of elements of its input."""
        if self.file is not None:
            return self.file.stat().st_size // 4
        return self.size if isinstance(self.size, int) else self.size[0] * self.size[-1]

    @property
    def is_small(self) -> bool:
        """Whether the sanitizer is fast enough for its input."""
        return self.elements <= MAX_SANITIZED


@dataclass(frozen=True)
class Speed:
    """The rule for points for speed."""

    points: float = 0.0
    _: KW_ONLY
    reference: str | None = None  # a variant; None: the device's default
    full: float = 1.2  # all points up to this multiple of the reference's time
    zero: float = 5.0  # no points from this multiple on
    size: Size | None = None

    def earned(self, ratio: float) -> float:
        """The part of the points that a time of `ratio` times the reference's earns."""
        if ratio <= self.full:
            return 1.0
        return max(0.0, (self.zero - ratio) / (self.zero - self.full))


@dataclass(frozen=True)
class Plan:
    """The tests of a check and its rule for speed."""

    tests: tuple[Test, ...]
    speed: Speed = Speed()
    source: str = "the lab's public list"
    _: KW_ONLY
    rules: Rules = field(default_factory=Rules)
    draws: bool = False  # whether a kernel's other cases are judged, too


UNKNOWN_LAB_SIZES = (1, 2, 33, 256, 257, 1025)  # for a lab without public tests


def public(lab: Lab, options: Case, variant: Variant | None, *, quick: bool) -> Plan:
    """The public list. A kernel gets no empty input: the lab's host side answers that one."""
    dispatch = None if variant is None else variant.dispatch
    rows = lab.teaching.public_tests(lab.complete(options), dispatch) or [
        PublicTest(f"{size} elements", size, lab.distributions[0]) for size in UNKNOWN_LAB_SIZES
    ]
    tests = [
        Test(
            row.name,
            row.size,
            row.dist,
            options={**options, **row.options},
            refuse=row.refuse,
            made_with=dict(row.made_with),
            large=row.large,
        )
        for row in rows
        if (variant is None or row.size not in (0, (0, 0))) and not (quick and row.large)
    ]
    if quick:
        tests = tests[::-1][: len(tests) // 3 * 3 : 3][::-1] or tests
    return Plan(tuple(tests), source="a third of the public list" if quick else Plan.source)


def planned(options: JudgingOptions, lab: Lab, variant: Variant | None, lab_options: Case) -> Plan:
    """The tests for a kernel with that header, or for a program; the rules, and that for speed."""
    draws = not any(lab_options.get(axis) is not None for axis in lab.axes)
    lab_options = case_for(lab, lab_options, variant)
    if options.tests:
        plan = load(options.tests, lab, lab_options)
    else:
        plan = replace(public(lab, lab_options, variant, quick=options.quick), draws=draws)
    if options.strict:
        plan = strict(plan)
    speed = plan.speed
    if options.reference:
        registry.find(lab, options.reference)  # an unknown name is an error before anything runs
        speed = replace(speed, reference=options.reference)
    if options.speed_points is not None:
        speed = replace(speed, points=options.speed_points)
    return replace(plan, speed=speed, rules=options.rules(plan.rules))


def strict(plan: Plan) -> Plan:
    """The plan with two more tests: a slow pipe, and an input that must be refused."""
    largest = max(plan.tests, key=lambda test: 0 if isinstance(test.size, tuple) else test.size)
    return replace(
        plan,
        tests=(
            *plan.tests,
            replace(largest, name="a pipe that delivers a few bytes at a time", pipe=True),
            replace(largest, name="input cut short", cut_bytes=3, refuse=True),
        ),
    )


def timed_size(lab: Lab, plan: Plan, case: Case, device: str) -> Size:
    """The size at which submission and reference are timed."""
    if plan.speed.size is not None:
        return plan.speed.size
    return lab.teaching.timed_size(case, device)


def case_for(lab: Lab, options: Case, variant: Variant | None) -> Case:
    """The chosen options, and those that the variant's header requires."""
    defaults = {one.key: one.default for one in lab.options}
    chosen = {
        name: value
        for name, value in options.items()
        if value is not None and value != defaults.get(name)
    }
    if variant is None or variant.computes(lab.complete(chosen)):
        return chosen
    # The header's axes, and others that may depend on them: 65,536 classes require uint32.
    choices = {**lab.axes, **variant.applies}
    axes = sorted(
        (axis for axis in choices if axis not in chosen), key=variant.applies.__contains__
    )
    for values in product(*(choices[axis] for axis in axes)):
        candidate = chosen | dict(zip(axes, values, strict=True))
        try:
            case = lab.complete(candidate)
        except UsageError:
            continue
        if variant.computes(case):
            return candidate
    return chosen  # registry.check_applies reports the mismatch


def seeds(tests: Iterable[Test], master: int) -> list[int]:
    """A seed for each test, derived from the check's seed and the test's name and number."""
    result = []
    for number, test in enumerate(tests):
        text = f"{master}/{number}/{test.name}".encode()
        derived = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "little")
        result.append(test.seed if test.seed is not None else derived)
    return result


# The instructor's file ---------------------------------------------------------------------------

_TEST_KEYS = {
    "name", "n", "dist", "seed", "points", "hidden", "seconds", "memory", "input", "refuse", "cut",
    "pipe", "options",
}  # fmt: skip
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_SPEED_KEYS = {"points", "reference", "full", "zero", "n"}


def load(path: Path, lab: Lab, options: Case) -> Plan:
    """Read a file of tests. CudalabError names the file, the test and the key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CudalabError(f"{path}: cannot be read: {error}") from None
    unknown = set(content) - {"test", "speed", "rules", "defaults"}
    if unknown:
        raise CudalabError(
            f"{path}: unknown {', '.join(sorted(unknown))}",
            hint="[[test]], [defaults], [speed] and [rules]",
        )
    tables = content.get("test", [])
    if not isinstance(tables, list) or not tables:
        raise CudalabError(
            f"{path}: no tests", hint="each begins with [[test]] and has at least n = SIZE"
        )
    defaults = _Table(path, "[defaults]", content.get("defaults", {}), _TEST_KEYS).values
    tests = [
        _test(_Table(path, f"test {number}", table, _TEST_KEYS, defaults), lab, options)
        for number, table in enumerate(tables, 1)
    ]
    speed = _speed(_Table(path, "[speed]", content.get("speed", {}), _SPEED_KEYS), lab)
    keys = {field.name for field in fields(Rules)}
    rules = _rules(_Table(path, "[rules]", content.get("rules", {}), keys))
    return Plan(tuple(tests), speed, path.name, rules=rules)


class _Table:
    """A table of the file: its values, checked one by one. Errors name the place in the file."""

    def __init__(
        self, path: Path, where: str, values: Any, keys: set[str], defaults: Case | None = None
    ) -> None:
        """Refuse anything but a table whose keys are all in `keys`."""
        self.path, self.where = path, where
        if not isinstance(values, dict):
            raise self.error("must be a table")
        for unknown in sorted(set(values) - keys):
            raise self.error(f"unknown {unknown!r}: {nearest(unknown, sorted(keys))}")
        self.values: dict[str, Any] = {**(defaults or {}), **values}

    def error(self, message: str) -> CudalabError:
        return CudalabError(f"{self.path}: {self.where}: {message}")

    def check_type(self, key: str, kind: type) -> None:
        value = self.values[key]
        if type(value) is not kind and (kind, type(value)) != (float, int):
            raise self.error(f"{key} must be {_KINDS[kind]}, got {value!r}")

    def flag(self, key: str, *, default: bool = False) -> bool:
        if key not in self.values:
            return default
        self.check_type(key, bool)
        return bool(self.values[key])

    def number(self, key: str, default: Any, kind: type = float) -> Any:
        if key not in self.values:
            return default
        self.check_type(key, kind)
        if not 0 <= self.values[key] < math.inf:
            raise self.error(f"{key} must be 0 or more, got {self.values[key]!r}")
        return kind(self.values[key])

    def one_of(self, key: str, choices: tuple[Word, ...]) -> Word | None:
        """A word from a list; None if the table has no such key."""
        if key not in self.values:
            return None
        for choice in choices:
            if self.values[key] == choice:
                return choice
        raise self.error(f"{key} must be {' or '.join(choices)}, got {self.values[key]!r}")

    def size(self, key: str = "n") -> Size | None:
        """A size; None if the table has no such key."""
        if key not in self.values:
            return None
        try:
            return sizes.shape(str(self.values[key]))
        except ValueError as error:
            raise self.error(f"{key}: {error}") from None


def _test(table: _Table, lab: Lab, options: Case) -> Test:
    values = table.values
    size = table.size()
    if size is None and "input" not in values:
        raise table.error("it has neither n nor input")
    dist = str(values.get("dist", lab.distributions[0]))
    if dist.partition(":")[0] not in lab.distributions:
        raise table.error(f"dist {dist!r} is unknown: {nearest(dist, lab.distributions)}")
    file = table.path.parent / str(values["input"]) if "input" in values else None
    if file is not None and not file.is_file():
        raise table.error(f"input {values['input']!r}: no such file")
    options = {**options, **_options(table, lab)}
    try:
        lab.complete(options)
    except CudalabError as error:
        raise table.error(f"options: {error.message}") from None
    seconds = table.number("seconds", None)
    if seconds == 0:
        raise table.error("seconds must be more than 0")
    memory = table.size("memory")
    if isinstance(memory, tuple) or memory == 0:
        raise table.error(f"memory must be 1 byte or more, got {values['memory']!r}")
    default = f"n = {values['n']}" if "n" in values else str(values["input"])
    return Test(
        str(values.get("name", default)),
        size or 0,
        dist,
        options=options,
        seed=table.number("seed", None, int),
        points=table.number("points", 1.0),
        hidden=table.flag("hidden"),
        seconds=seconds,
        memory_bytes=memory,
        file=file,
        refuse=table.flag("refuse", default="cut" in values),
        cut_bytes=table.number("cut", 0, int),
        pipe=table.flag("pipe"),
    )


def _options(test: _Table, lab: Lab) -> Case:
    """The lab's options in a test, each with a value that the command line would accept."""
    axes = {axis: values for axis, values in lab.axes.items() if axis not in lab.derived}
    types = {one.key: one.type for one in lab.options}
    where, values = f"{test.where}: options", test.values.get("options", {})
    table = _Table(test.path, where, values, {*axes, *types})
    for name, value in table.values.items():
        if name in axes and value not in axes[name]:
            raise table.error(f"{name} = {value!r} is unknown: {nearest(str(value), axes[name])}")
        if name in types:
            table.check_type(name, types[name])
    return table.values


def _speed(table: _Table, lab: Lab) -> Speed:
    reference = table.values.get("reference")
    if reference is not None:
        try:
            registry.find(lab, str(reference))
        except UsageError as error:
            raise table.error(error.message) from None
    speed = Speed(
        table.number("points", Speed.points),
        reference=reference,
        full=table.number("full", Speed.full),
        zero=table.number("zero", Speed.zero),
        size=table.size(),
    )
    if not 0 < speed.full < speed.zero:
        raise table.error("0 < full < zero must hold")
    return speed


def _rules(table: _Table) -> Rules:
    cost = table.number("race_cost", Rules.race_cost)
    if cost > 1:
        raise table.error(f"race_cost is a share, 0 to 1, got {cost:g}")
    return Rules(
        require_kernel=table.flag("require_kernel", default=Rules.require_kernel),
        races=table.one_of("races", RACES) or Rules.races,
        race_cost=cost,
        language=table.one_of("language", LANGUAGES),
    )
