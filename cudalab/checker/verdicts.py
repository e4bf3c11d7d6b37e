"""The result of a check: plain data that turns into JSON and back. No judging, no printing."""

import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cudalab.errors import ExitCode
from cudalab.microscope.findings import FindingRow
from cudalab.system import records
from cudalab.system.cache import base_dir

SCHEMA = "cudalab-check/1"
# What the document says besides the fields of a report.
DERIVED = {"schema": str, "passed": bool, "exit_code": int, "points": float, "max_points": float}

ANY_DEVICE = "any"  # for a program, which may use any device of the machine


class Status(StrEnum):
    """The status of a test or a stage."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"  # the grader or the machine failed, so there is no verdict


class Why(StrEnum):
    """The reason for a failure, with which its message begins."""

    NOTHING = ""
    WRONG = "wrong answer"
    OVERRUN = "wrote outside of its memory"
    INPUT_CHANGED = "changed its input"
    CRASH = "crash"
    EXIT = "exit status"
    CONTRACT = "not what the lab launches"  # a kernel's name, parameters or header
    TIME = "time limit"
    CPU = "processor time limit"
    MEMORY = "memory limit"
    OUTPUT = "output limit"
    PROCESSES = "process limit"
    DISK = "disk limit"
    ACCEPTED_BAD_INPUT = "accepted bad input"
    COMPILE = "compile error"
    FOREIGN = "no kernel: host code"
    LOST = "the run was ended from outside"
    SANITIZER = "sanitizer"
    NO_KERNEL = "no kernel computes the answer"
    LANGUAGE = "not CUDA source"
    GRADER = "grader error"
    NO_DEVICE = "no such device"


OUT_OF_TIME = (Why.TIME, Why.CPU)


@dataclass
class Clue:
    """A pattern in a wrong answer, its likely cause and the command that shows it."""

    pattern: str
    says: str
    cause: str = ""
    look: str = ""


@dataclass(kw_only=True)
class ReportedAccuracy:
    """How close an answer comes to its bound, in numbers and in words."""

    error: float
    bound: float
    index: int | None  # None: the answer as a whole
    what: str
    says: str


@dataclass(kw_only=True)
class Result:
    """The result of one test."""

    name: str
    size: str
    dist: str
    seed: int | None
    status: Status
    why: Why = Why.NOTHING
    says: str = ""
    details: list[str] = field(default_factory=list)
    clues: list[Clue] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)  # they repeat the test by hand
    points: float = 0.0
    max_points: float = 1.0
    hidden: bool = False
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    accuracy: ReportedAccuracy | None = None
    stderr: str = ""


@dataclass
class Stage:
    """The result of one stage: compile, correct, sanitize or time."""

    name: str
    status: Status
    _: KW_ONLY
    says: str = ""
    details: list[str] = field(default_factory=list)
    why: Why = Why.NOTHING
    seconds: float = 0.0
    findings: list[FindingRow] = field(default_factory=list)  # the sanitizer's
    cost: float = 0.0  # the share of the points that its failure costs


@dataclass(kw_only=True)
class SpeedResult:
    """The submission's time and the reference's, measured alternately on this machine."""

    reference: str
    size: str
    ms: float
    reference_ms: float
    ratio: float
    low: float
    high: float
    points: float
    max_points: float
    full: float
    zero: float
    rounds: int
    what: str  # what was timed, and by whose clock


@dataclass(kw_only=True)
class Report:
    """The complete result of checking one submission."""

    lab: str
    submission: str
    kind: str
    device: str
    sandbox: str
    sandbox_words: str
    seed: int
    plan: str
    stages: list[Stage] = field(default_factory=list)
    tests: list[Result] = field(default_factory=list)
    speed: SpeedResult | None = None
    notes: list[str] = field(default_factory=list)
    case: dict[str, records.Scalar] = field(default_factory=dict)
    seconds: float = 0.0
    digest: str = ""  # of the submission's bytes
    files: list[str] = field(default_factory=list)  # that were judged
    version: str = ""
    speed_offered: float = 0.0  # points for speed, even where a failed stage put them out of reach

    @property
    def exit_code(self) -> ExitCode:
        """0 only when something ran and everything passed."""
        broken = [stage.why for stage in self.stages if stage.status is Status.BROKEN]
        if broken:
            return ExitCode.NO_DEVICE if Why.NO_DEVICE in broken else ExitCode.ERROR
        failed = [stage for stage in self.stages if stage.status is Status.FAILED]
        if any(stage.name == "compile" or stage.why is Why.CONTRACT for stage in failed):
            return ExitCode.COMPILE_ERROR
        causes = {test.why for test in self.tests if test.status is Status.FAILED}
        causes |= {stage.why for stage in failed if stage.name != "correct"}
        if causes:
            return ExitCode.TIME_LIMIT if causes <= set(OUT_OF_TIME) else ExitCode.WRONG_ANSWER
        ran = any(test.status is Status.PASSED for test in self.tests)
        return ExitCode.OK if ran and not failed else ExitCode.ERROR

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return self.exit_code is ExitCode.OK

    @property
    def points(self) -> float:
        """The points earned in the tests and for speed, less what failed stages cost."""
        earned = sum(test.points for test in self.tests) + (self.speed.points if self.speed else 0)
        return earned * (1 - self.cost)

    @property
    def cost(self) -> float:
        """The share of the points that failed stages cost."""
        return max((stage.cost for stage in self.stages), default=0.0)

    @property
    def max_points(self) -> float:
        """The points that could be earned."""
        speed = self.speed.max_points if self.speed else self.speed_offered
        return sum(test.max_points for test in self.tests) + speed

    @property
    def share(self) -> float:
        """The earned part of the points, 0 to 1."""
        return self.points / self.max_points if self.max_points else 0.0

    def stage(self, name: str) -> Stage | None:
        """The stage called `name`; None if it was not reached."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def json(self) -> dict[str, object]:
        """The document that --json writes and that is stored for a class."""
        derived = {
            "schema": SCHEMA,
            "passed": self.passed,
            "exit_code": int(self.exit_code),
            "points": round(self.points, 6),
            "max_points": round(self.max_points, 6),
        }
        return derived | asdict(self)


def encodable(value: Any) -> Any:
    """The same plain data with each text fit for UTF-8: bytes that were no text are escaped."""
    if isinstance(value, str) and not isinstance(value, StrEnum):
        try:
            return value.encode(errors="surrogateescape").decode(errors="backslashreplace")
        except UnicodeEncodeError:  # half of a character, as JSON may hold
            return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list):
        return [encodable(one) for one in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        texts = {one.name: encodable(getattr(value, one.name)) for one in fields(value)}
        return replace(value, **texts)
    return value


def from_json(parsed: Mapping[str, object]) -> Report:
    """Read the document of `Report.json`. InputError names the part that is malformed."""
    own = {field.name: parsed[field.name] for field in fields(Report) if field.name in parsed}
    return records.read(Report, own)


# What a report quotes ----------------------------------------------------------------------------

# Compilers and Python print where files lie. A student may read a report, and where on the judging
# machine cudalab, Python, their packages and temporary files lie is nobody's business.
_COMMAND = re.compile(r"\s*see: ")  # its words are those of whoever called the checker
# A precompiled header names the files of the installation that has made it, which may be another.
_RUNTIME = re.compile(r"/[^\s:'\"]*/(?=cudalab/backends/cpu/runtime/)")
_BUILD = re.compile(r"(?:(?:cache/cudalab/)?\w+/)?build-\w+/")


def without_paths(report: Report) -> Report:
    """The report whose texts name the grader's files by what they are, from its packages on."""
    stages = [
        replace(
            one,
            says=quotable(one.says),
            details=_all(one.details),
            findings=[
                replace(
                    row,
                    what=quotable(row.what),
                    detail=quotable(row.detail),
                    file=row.file if row.line else "",
                )
                for row in one.findings
            ],
        )
        for one in report.stages
    ]
    tests = [
        replace(
            one,
            says=quotable(one.says),
            details=_all(one.details),
            notes=_all(one.notes),
            stderr="\n".join(_all(one.stderr.split("\n"))),
        )
        for one in report.tests
    ]
    return replace(report, stages=stages, tests=tests)


def _all(lines: Iterable[str]) -> list[str]:
    return [line if _COMMAND.match(line) else quotable(line) for line in lines]


def quotable(text: str) -> str:
    """A text without the folders in which the grader's own files lie."""
    text = _RUNTIME.sub("", text)
    # The folders of packages, of cudalab, of Python and of the cache; inner ones come first.
    places = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib", "stdlib")}
    places |= {Path(one) for one in sys.path if one.endswith("-packages")}
    places |= {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2], base_dir()}
    places |= {one.resolve() for one in places}
    system = {Path("/"), Path("/usr")}  # where they lie is no secret
    for folder in sorted(map(str, places - system), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    box = rf"{re.escape(tempfile.gettempdir())}/cudalab-\w+-\w+"
    text = re.sub(rf"{box}/", "", text)
    return _BUILD.sub("", re.sub(box, ".", text))
