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
    reader = _Reader(path, lab, options)
    tables = content.get("test", [])
    if not isinstance(tables, list) or not tables:
        raise CudalabError(
            f"{path}: no tests", hint="each begins with [[test]] and has at least n = SIZE"
        )
    defaults = content.get("defaults", {})
    reader.known("[defaults]", defaults, _TEST_KEYS)
    tests = tuple(reader.test(number, table, defaults) for number, table in enumerate(tables, 1))
    speed, rules = reader.speed(content.get("speed", {})), reader.rules(content.get("rules", {}))
    return Plan(tests, speed, path.name, rules=rules)


class _Reader:
    """Turns TOML tables into tests. Errors name the place in the file."""

    def __init__(self, path: Path, lab: Lab, options: Case) -> None:
        self.path, self.lab, self.options = path, lab, options

    def test(self, number: int, table: dict[str, Any], defaults: dict[str, Any]) -> Test:
        where = f"test {number}"
        self.known(where, table, _TEST_KEYS)
        table = {**defaults, **table}
        size = self._size(where, table["n"]) if "n" in table else 0
        if "n" not in table and "input" not in table:
            raise self._error(where, "it has neither n nor input")
        dist = str(table.get("dist", self.lab.distributions[0]))
        if dist.partition(":")[0] not in self.lab.distributions:
            raise self._error(
                where, f"dist {dist!r} is unknown: {nearest(dist, self.lab.distributions)}"
            )
        file = self.path.parent / str(table["input"]) if "input" in table else None
        if file is not None and not file.is_file():
            raise self._error(where, f"input {table['input']!r}: no such file")
        options = {**self.options, **self._options(where, table.get("options", {}))}
        try:
            self.lab.complete(options)
        except CudalabError as error:
            raise self._error(where, f"options: {error.message}") from None
        seconds = self._number(where, table, "seconds", None)
        if seconds == 0:
            raise self._error(where, "seconds must be more than 0")
        default = f"n = {table['n']}" if "n" in table else str(table["input"])
        return Test(
            str(table.get("name", default)),
            size,
            dist,
            options=options,
            seed=self._number(where, table, "seed", None, int),
            points=self._number(where, table, "points", 1.0),
            hidden=self._flag(where, table, "hidden"),
            seconds=seconds,
            memory_bytes=self._memory(where, table),
            file=file,
            refuse=self._flag(where, table, "refuse", default="cut" in table),
            cut_bytes=self._number(where, table, "cut", 0, int),
            pipe=self._flag(where, table, "pipe"),
        )

    def _options(self, where: str, table: dict[str, Any]) -> Case:
        """The lab's options, each with a value that the command line would accept."""
        axes = {axis: v for axis, v in self.lab.axes.items() if axis not in self.lab.derived}
        types = {one.key: one.type for one in self.lab.options}
        where = f"{where}: options"
        self.known(where, table, {*axes, *types})
        for name, value in table.items():
            if name in axes and value not in axes[name]:
                raise self._error(
                    where, f"{name} = {value!r} is unknown: {nearest(str(value), axes[name])}"
                )
            if name in types:
                self._check_type(where, name, value, types[name])
        return table

    def _flag(self, where: str, table: dict[str, Any], key: str, *, default: bool = False) -> bool:
        value = table.get(key, default)
        self._check_type(where, key, value, bool)
        return bool(value)

    def _check_type(self, where: str, key: str, value: object, kind: type) -> None:
        if type(value) is not kind and (kind, type(value)) != (float, int):
            raise self._error(where, f"{key} must be {_KINDS[kind]}, got {value!r}")

    def speed(self, table: dict[str, Any]) -> Speed:
        self.known("[speed]", table, _SPEED_KEYS)
        default = Speed()
        reference = table.get("reference")
        if reference is not None:
            try:
                registry.find(self.lab, str(reference))
            except UsageError as error:
                raise self._error("[speed]", error.message) from None
        speed = Speed(
            self._number("[speed]", table, "points", default.points),
            reference=reference,
            full=self._number("[speed]", table, "full", default.full),
            zero=self._number("[speed]", table, "zero", default.zero),
            size=self._size("[speed]", table["n"]) if "n" in table else None,
        )
        if not 0 < speed.full < speed.zero:
            raise self._error("[speed]", "0 < full < zero must hold")
        return speed

    def rules(self, table: dict[str, Any]) -> Rules:
        self.known("[rules]", table, {field.name for field in fields(Rules)})
        default = Rules()
        cost = self._number("[rules]", table, "race_cost", default.race_cost)
        if cost > 1:
            raise self._error("[rules]", f"race_cost is a share, 0 to 1, got {cost:g}")
        return Rules(
            require_kernel=self._flag(
                "[rules]", table, "require_kernel", default=default.require_kernel
            ),
            races=self._one_of("[rules]", table, "races", RACES) or default.races,
            race_cost=cost,
            language=self._one_of("[rules]", table, "language", LANGUAGES),
        )

    def _one_of(
        self, where: str, table: dict[str, Any], key: str, choices: tuple[Word, ...]
    ) -> Word | None:
        """A word from a list; None if the table has no such key."""
        if key not in table:
            return None
        for choice in choices:
            if table[key] == choice:
                return choice
        raise self._error(where, f"{key} must be {' or '.join(choices)}, got {table[key]!r}")

    def _size(self, where: str, value: object, key: str = "n") -> Size:
        try:
            return sizes.shape(str(value))
        except ValueError as error:
            raise self._error(where, f"{key}: {error}") from None

    def _number(
        self, where: str, table: dict[str, Any], key: str, default: Any, kind: type = float
    ) -> Any:
        value = table.get(key, default)
        if value is default:
            return value
        self._check_type(where, key, value, kind)
        if not 0 <= value < math.inf:
            raise self._error(where, f"{key} must be 0 or more, got {value!r}")
        return kind(value)

    def _memory(self, where: str, table: dict[str, Any]) -> int | None:
        if "memory" not in table:
            return None
        size = self._size(where, table["memory"], "memory")
        if not isinstance(size, int) or size == 0:
            raise self._error(where, f"memory must be 1 byte or more, got {table['memory']!r}")
        return size

    def known(self, where: str, table: object, keys: set[str]) -> None:
        """Refuse anything but a table whose keys are all in `keys`."""
        if not isinstance(table, dict):
            raise self._error(where, "must be a table")
        unknown = sorted(set(table) - keys)
        if unknown:
            raise self._error(where, f"unknown {unknown[0]!r}: {nearest(unknown[0], sorted(keys))}")

    def _error(self, where: str, message: str) -> CudalabError:
        return CudalabError(f"{self.path}: {where}: {message}")
