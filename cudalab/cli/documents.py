"""The JSON documents of the commands that have no other use for them; docs/json.md lists all.

The comment behind a field describes its key in `cudalab/schemas/`.
"""

from dataclasses import dataclass, field

from cudalab.system.records import Scalar


@dataclass(frozen=True, kw_only=True)
class LabRow:
    """A lab in one line: its default variants are those of its usual case."""

    name: str
    summary: str
    variants: int  # how many there are
    default: dict[str, str]  # by device
    taken: int  # variants that some inputs get instead


@dataclass(frozen=True, kw_only=True)
class Labs:
    """The document of `cudalab list`."""

    schema: str = "cudalab-labs/1"
    labs: list[LabRow]


@dataclass(frozen=True, kw_only=True)
class VariantRow:
    """A variant, as the header of its file describes it."""

    name: str
    summary: str
    ladder: str  # empty: the main one
    order: float  # its place on the ladder
    adds: str  # what is new against the rung before it
    devices: list[str]  # those that can run it
    default: list[str]  # the devices on which it is the default
    taken: str  # the inputs that get it instead of the default
    computes: dict[str, list[str]]  # values by option; what is absent is not limited
    requires: list[str]
    precision: str  # the format of its inputs, if it is lossy
    deterministic: bool
    file: str


@dataclass(frozen=True, kw_only=True)
class Variants:
    """The document of `cudalab list LAB`."""

    schema: str = "cudalab-variants/1"
    lab: str
    summary: str
    variants: list[VariantRow]


@dataclass(frozen=True, kw_only=True)
class DeviceRow:
    """A device, or the reason why there is none."""

    name: str
    available: bool
    properties: dict[str, Scalar | list[int]] = field(default_factory=dict)
    reason: str = ""
    hint: str = ""  # what to do about it


@dataclass(frozen=True, kw_only=True)
class Devices:
    """The document of `cudalab device`."""

    schema: str = "cudalab-devices/1"
    devices: list[DeviceRow]


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic that `cudalab explain` knows."""

    name: str
    summary: str


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The document of `cudalab explain`."""

    schema: str = "cudalab-topics/1"
    topics: list[Topic]


@dataclass(frozen=True, kw_only=True)
class Generated:
    """The document of `cudalab gen LAB`."""

    schema: str = "cudalab-gen/1"
    lab: str
    case: dict[str, Scalar]
    size: str
    dist: str
    seed: int
    bytes: int  # of the whole stream
    file: str


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The document of `cudalab verify LAB IN OUT`."""

    schema: str = "cudalab-verify/1"
    lab: str
    case: dict[str, Scalar]
    correct: bool
    elements: int | None  # null: the answer is wrong
    message: str  # what differs; empty if nothing does
    hint: str


@dataclass(frozen=True, kw_only=True)
class StageRow:
    """A stage of a run, or all launches of a kernel."""

    name: str
    ms: float
    launches: int | None  # null: no kernel
    how: str  # how the CPU device ran the kernel


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The document of `cudalab LAB`."""

    schema: str = "cudalab-lab/1"
    lab: str
    case: dict[str, Scalar]
    variant: str
    file: str  # of the variant
    device: str
    device_name: str
    input_bytes: int
    answer_bytes: int
    stages: list[StageRow]  # in order; the last one is the total
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class ExerciseTime:
    """The time of an exercise with one kind of memory."""

    memory: str
    variant: str
    median_ms: float | None  # null: it failed
    failure: str  # empty if the answer is right


@dataclass(frozen=True, kw_only=True)
class ExerciseRow:
    """An exercise at one size."""

    title: str
    size: str
    times: list[ExerciseTime]
    ratio: float | None  # the first time / the least of the others; null: unknown
    decided: bool  # whether the times are apart
    apart: float  # the largest difference of two answers / the allowed error
    error: float  # the largest difference from the exact answer / the allowed error


@dataclass(frozen=True, kw_only=True)
class Exercises:
    """The document of `cudalab exercises`."""

    schema: str = "cudalab-exercises/1"
    device: str
    device_name: str
    emulated: bool  # the times are no measure of a GPU
    seed: int
    exercises: list[ExerciseRow]
