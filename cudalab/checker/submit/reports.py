"""What a process in the sandbox reports: the records that it writes, and that the judge reads.

The judge believes none of it. A record explains a verdict; the answers are judged by their bytes.
"""

from dataclasses import dataclass, field
from typing import Any

from cudalab.errors import CudalabError

OUT = "out"  # the only folder of a box that a kernel's runs may write to
BUILT = "built.json"  # a `Built` by the process that compiles; without an error if it succeeded
BUILDS = "builds.json"  # the builds of a whole program (views.py)
FINDINGS = "findings.json"  # the sanitizer's
ANSWER = "answer.bin"  # the last one, while times are taken
CONFINES, CONFINES_NOT = (
    "it confines kernels",
    "it cannot confine kernels",
)  # a worker's first reply
TOOLCHAIN, NO_DEVICE, KERNEL = "ToolchainError", "NoDeviceError", "KernelError"  # kinds of errors
NOT_BUILT = "NotBuiltError"  # a launch needs the kernel compiled in the other way
CONTRACT = ("CudalabError", "HeaderError")  # a plan cannot launch the kernels of the file


@dataclass(kw_only=True)
class Failure:
    """An error that was expected; empty if there was none."""

    error: str = ""  # the name of its class
    message: str = ""
    hint: str = ""


@dataclass(kw_only=True)
class Built(Failure):
    """How compiling ended, and what the compilers' views of the text show (views.py)."""

    foreign: list[str] = field(default_factory=list)
    tells: list[str] = field(default_factory=list)
    on_gpu: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Launched:
    """A launch of a kernel."""

    kernel: str
    grid: list[int]
    block: list[int]


@dataclass(kw_only=True)
class CaseReport(Failure):
    """The runs on one input."""

    answers: int = 0  # different ones; each is in a file of its own
    runs: int = 0
    overruns: list[str] = field(default_factory=list)
    changed_inputs: list[str] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)
    arguments: dict[str, list[str]] = field(default_factory=dict)  # of each kernel: types in C
    tallies: dict[str, dict[str, int]] = field(default_factory=dict)  # what its threads did
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Reply:
    """How a worker's child has ended."""

    status: int  # negative for a signal
    loaded: (
        bool  # whether the submission's code was loaded: before that, a failure is cudalab's own
    )
    peak_bytes: int


def failure_of(error: CudalabError) -> dict[str, Any]:
    """An expected error, as the fields of a `Failure`."""
    kind = type(error).__name__
    return {"error": kind, "message": error.message, "hint": error.hint or ""}


def input_name(number: int) -> str:
    """The file of an input."""
    return f"input-{number}.bin"


def answer_name(number: int, k: int) -> str:
    """The file of answer `k` to an input."""
    return f"answer-{number}-{k}.bin"


def report_name(number: int) -> str:
    """The file of the `CaseReport` on an input."""
    return f"report-{number}.json"


def unwritten_name(number: int) -> str:
    """The file with a bit for each element that no run on an input has written."""
    return f"unwritten-{number}.bin"
