"""GPUs as files: cudalab/gpus/*.toml, each number with where it comes from."""

import json
import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cudalab.backends.cuda.driver import features_of
from cudalab.errors import UsageError, nearest

FOLDER = Path(__file__).parents[1] / "gpus"
SOURCES = ("measured", "documented", "assumed")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What the model knows about a GPU. Rates are per multiprocessor and cycle if not stated."""

    name: str
    architecture: str  # sm_90
    multiprocessors: float
    clock_mhz: float  # under load
    dram_gb_per_s: float  # of a large copy
    l2_mb: float
    l2_gb_per_s: float
    l1_kb: float  # of a multiprocessor, its shared memory included
    shared_kb: float  # of a multiprocessor, for all its blocks
    warps: float  # that can be resident on a multiprocessor, as are these
    blocks: float
    registers: float
    float_lanes: float  # executed in a cycle, as are these
    integer_lanes: float
    slow_lanes: float
    double_lanes: float
    issue_latency: float  # cycles until a result can be used, as are these
    shared_latency: float
    shuffle_latency: float
    l1_latency: float
    l2_latency: float
    dram_latency: float
    atomics_per_cycle: float  # sectors, of the whole GPU
    launch_us: float  # between launches that follow one another
    sources: dict[str, str] = field(default_factory=dict)  # by number: "measured: how"

    @property
    def cycles_per_s(self) -> float:
        """Cycles of a multiprocessor in a second."""
        return 1e6 * self.clock_mhz

    @property
    def features(self) -> frozenset[str]:
        """What a variant's `requires` may name on it."""
        return features_of(int(self.architecture.removeprefix("sm_")))

    @property
    def float_gflops(self) -> float:
        """The multiprocessors' limit: a fused multiply-add is two operations."""
        return 2 * self.float_lanes * self.multiprocessors * self.clock_mhz / 1e3

    def origins(self, kind: str) -> list[str]:
        """The numbers that were "measured", "documented" or "assumed"."""
        return [name for name, source in self.sources.items() if source.startswith(kind)]


def names() -> list[str]:
    """The GPUs that have a file."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Gpu:
    """The GPU of a file, or of the name of one in cudalab/gpus. UsageError names what is wrong."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name.lower()}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if name.endswith(".toml"):
            raise UsageError(f"{name}: {error.strerror}") from None
        raise UsageError(f"GPU {name!r} is unknown", hint=nearest(name.lower(), names())) from None
    try:
        return _gpu(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise UsageError(f"{path}: {error}", hint="cudalab/gpus/h100.toml shows the form") from None


def _gpu(table: dict[str, object]) -> Gpu:
    """Read a file's table strictly. ValueError names the key that is wrong."""
    types = {each.name: each.type for each in fields(Gpu) if each.name != "sources"}
    for key in table.keys() - types.keys():
        raise ValueError(f"{key} is unknown")
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for key, kind in types.items():
        entry = table.get(key)
        if kind is str:
            if not isinstance(entry, str):
                raise ValueError(f"{key} is missing, or no text")
            if key == "architecture" and not re.fullmatch(r"sm_\d+", entry):
                raise ValueError(f"{key}: {entry} is not of the form sm_90")
            values[key] = entry
        else:
            values[key], sources[key] = _number(key, entry)
    return Gpu(**values, sources=sources)


def _number(key: str, entry: object) -> tuple[float, str]:
    """A number, and where it comes from."""
    if not isinstance(entry, dict) or len(entry) != 2 or "value" not in entry:
        form = "{ value = 1, measured = 'how' }"
        raise ValueError(f"{key} is missing, or not of the form {form}")
    value, kind = entry["value"], next(name for name in entry if name != "value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{key}: its value is no number above 0")
    if kind not in SOURCES:
        raise ValueError(f"{key}: {kind} is none of {', '.join(SOURCES)}")
    return float(value), f"{kind}: {entry[kind]}"


def text(gpu: Gpu) -> str:
    """The file of a GPU."""
    lines = [f"# {gpu.name}. Rates are a multiprocessor's in a cycle if not said otherwise."]
    for each in fields(Gpu):
        value = getattr(gpu, each.name)
        if each.type is str:
            lines.append(f"{each.name:<17} = {json.dumps(value)}")
        elif each.name in gpu.sources:
            kind, _, how = gpu.sources[each.name].partition(": ")
            number = f"{{ value = {value:g},".ljust(20)
            lines.append(f"{each.name:<17} = {number} {kind} = {json.dumps(how)} }}")
    return "\n".join(lines) + "\n"
