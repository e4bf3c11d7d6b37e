"""Results in NVBench's JSON (format 1.0.0), to be compared with its results and by its tools.

A lab is a benchmark and a row one of its states; the state's axes are the variant, the size, the
distribution, the caches and the case. Samples are in files of their own, little-endian float32 in
seconds, as NVBench's `--jsonbin` writes them.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cudalab import __version__
from cudalab.bench import document, stats
from cudalab.bench.measured import COLD, Status
from cudalab.errors import InputError
from cudalab.formats import output_file, save, write_all
from cudalab.labs.teaching import Work

Json = dict[str, Any]

OWN_AXES = ("variant", "n", "dist", "cache")
SAMPLES = "nv/json/bin:nv/cold/sample_times"
SECONDS = np.dtype("<f4")
GPU, HOST = "nv/cold/time/gpu", "nv/cold/time/cpu"  # whose clock: an emulated time is the host's


def load(path: Path) -> document.Document:
    """Read results of bench, or of NVBench. InputError says what is wrong with the file."""
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        if "benchmarks" not in parsed:
            return document.load(path)
    except (OSError, ValueError, TypeError):
        return document.load(path)  # which names the error
    try:
        return _read(parsed, path.parent)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{path}: is not as NVBench writes it: {type(error).__name__}: {error}"
        ) from None


# Writing -----------------------------------------------------------------------------------------


def write(path: Path, results: document.Document) -> None:
    """Write the JSON, and the samples of each row into the folder PATH-bin beside it."""
    folder = path.with_name(f"{path.name}-bin")
    folder.mkdir(exist_ok=True)
    benchmarks: dict[str, Json] = {}
    environment = results.environment
    devices: list[Json] = []  # the GPU; none for times of the host
    if not environment.emulated:
        multiprocessors = environment.properties.get("multiprocessors")
        known = {"number_of_sms": multiprocessors} if multiprocessors else {}
        devices = [{"id": 0, "name": environment.device_name, **known}]
    count = 0
    for table in results.tables:
        ids = [device["id"] for device in devices]
        new: Json = {"name": table.lab, "index": len(benchmarks), "devices": ids}
        bench = benchmarks.setdefault(table.lab, new | {"axes": [], "states": []})
        for row in table.rows:
            state = _state(table, row)
            bench["states"].append(state)
            _add_axes(bench["axes"], state["axis_values"])
            if row.statistics and row.samples_ms:
                seconds = np.array(list(row.valid_samples().values()), SECONDS) / 1000
                with output_file(folder / f"{count}.bin") as fd:
                    write_all(fd, [seconds.astype(SECONDS).tobytes()], folder.name)
                state["summaries"].append(
                    _summary(
                        SAMPLES,
                        "file/sample_times",
                        filename=f"{folder.name}/{count}.bin",
                        size=len(seconds),
                    )
                )
                count += 1
    whole = {
        "meta": {
            "argv": ["cudalab", "bench"],
            "version": {
                "json": {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"},
                "cudalab": {
                    "string": __version__,
                    "git_sha": environment.commit,
                    "device": environment.device_name,
                    "seed": results.conditions.seed,
                },
            },
        },
        "devices": devices,
        "benchmarks": list(benchmarks.values()),
    }
    save(path, json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def _state(table: document.Table, row: document.Row) -> Json:
    own = dict(zip(OWN_AXES, (row.name, table.size, table.dist, row.cache), strict=True))
    values = {name: str(value) for name, value in {**own, **table.case}.items()}
    state: Json = {
        "name": " ".join(f"{name}={value}" for name, value in values.items()),
        "device": None if row.emulated else 0,
        "type_config_index": 0,
        "axis_values": [_value(name, value) for name, value in values.items()],
        "summaries": [],
        "is_skipped": row.statistics is None,
    }
    if row.statistics is None:
        return state | {"skip_reason": f"{row.status}: {row.reason}"}
    samples = np.array(list(row.valid_samples().values()) or [row.statistics.median_ms])
    timer = HOST if row.clock == "host" else GPU
    mean, scatter = float(samples.mean()), float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    low, median, high = np.quantile(samples, [0.25, 0.5, 0.75]) / 1e3
    state["summaries"] = [
        _summary("nv/cold/sample_size", "sample_size", value=row.statistics.runs),
        _summary(f"{timer}/mean", "duration", value=mean / 1e3),
        _summary(f"{timer}/stdev/absolute", "duration", value=scatter / 1e3),
        _summary(f"{timer}/stdev/relative", "percentage", value=scatter / mean),
        _summary(f"{timer}/min", "duration", value=float(samples.min()) / 1e3),
        _summary(f"{timer}/max", "duration", value=float(samples.max()) / 1e3),
        _summary(f"{timer}/q1", "duration", value=float(low)),
        _summary(f"{timer}/median", "duration", value=float(median)),
        _summary(f"{timer}/q3", "duration", value=float(high)),
        _summary(f"{timer}/iqr/absolute", "duration", value=float(high - low)),
        _summary(f"{timer}/iqr/relative", "percentage", value=float((high - low) / median)),
    ]
    if row.clocks_mhz:
        hertz = 1e6 * float(np.mean(row.clocks_mhz))
        state["summaries"].append(_summary("nv/cold/sm_clock_rate/mean", "frequency", value=hertz))
    return state


def _add_axes(axes: list[Json], values: list[Json]) -> None:
    """Add what a state has and the benchmark's axes have not."""
    for one in values:
        axis = next((axis for axis in axes if axis["name"] == one["name"]), None)
        if axis is None:
            axis = {"name": one["name"], "type": "string", "flags": "", "values": []}
            axes.append(axis)
        value = {"input_string": one["value"], "description": "", "value": one["value"]}
        if value not in axis["values"]:
            axis["values"].append(value)


def _summary(tag: str, hint: str, **data: str | float) -> Json:
    name = tag.rpartition("cold/")[2]
    values = [_value(key, value) for key, value in data.items()]
    return {"tag": tag, "name": name, "description": "", "hint": hint, "data": values}


def _value(name: str, value: str | float) -> Json:
    """A named value; numbers are texts in NVBench's files."""
    kind = {str: "string", int: "int64", float: "float64"}[type(value)]
    return {"name": name, "type": kind, "value": str(value)}


# Reading -----------------------------------------------------------------------------------------


def _read(parsed: Json, folder: Path) -> document.Document:
    devices = {device["id"]: device["name"] for device in parsed["devices"] or ()}
    own = parsed.get("meta", {}).get("version", {}).get("cudalab", {})  # no key of NVBench's
    environment = document.Environment(
        date="",
        device="cuda" if devices else "cpu",
        device_name=own.get("device") or ", ".join(dict.fromkeys(devices.values())),
        emulated=not devices,
        properties={},
        copy_gb_per_s=0.0,
        clock_mhz=None,
        driver="",
        versions={},
        commit=own.get("git_sha", ""),
        platform="",
        other_processes=[],
    )
    tables = [
        _table(bench["name"], state, environment, folder)
        for bench in parsed["benchmarks"]
        for state in bench["states"] or ()
    ]
    return document.Document(
        environment=environment,
        conditions=document.Conditions([COLD], 0.0, own.get("seed", 0)),
        tables=tables,
    )


def _table(
    bench: str, state: Json, environment: document.Environment, folder: Path
) -> document.Table:
    """A table of a single row: a state of ours, or one of another program by its own name."""
    values = {one["name"]: str(one["value"]) for one in state["axis_values"] or ()}
    ours = all(axis in values for axis in OWN_AXES)
    name, size, dist, cache = (
        [values.pop(axis) for axis in OWN_AXES] if ours else [state["name"], "", "", COLD]
    )
    row = _row(state, environment, folder)
    return document.Table(
        lab=bench,
        case={**values} if ours else {},
        size=size,
        dist=dist,
        work=Work(0, 0, 0),
        ceiling=document.Ceiling(0.0, None),
        sweep=[],
        rows=[replace(row, name=name, cache=cache)],
        end_to_end=None,
        notes=[],
    )


def _row(state: Json, environment: document.Environment, folder: Path) -> document.Row:
    summaries = {
        one["tag"]: {data["name"]: str(data["value"]) for data in one.get("data") or ()}
        for one in state["summaries"] or ()
    }
    timer = GPU if f"{GPU}/mean" in summaries else HOST
    skipped = state["is_skipped"] or f"{timer}/mean" not in summaries
    seconds = [] if skipped else _samples(summaries.get(SAMPLES), folder)
    samples = [1e3 * one for one in seconds]
    return document.Row(
        name="",
        kind="variant",
        device=environment.device,
        emulated=environment.emulated,
        cache=COLD,
        clock="device" if timer == GPU else "host",
        status=Status.SKIPPED if skipped else Status.OK,
        reason=state.get("skip_reason", ""),
        summary="",
        order=0,
        defines={},
        rounds=list(range(len(samples))),
        samples_ms=samples,
        clocks_mhz=[],
        discarded=[],
        statistics=None if skipped else _statistics(summaries, timer, samples),
        bound=None,
        course_ms="",
        notes=[],
        warnings=[],
    )


def _statistics(summaries: Json, timer: str, samples: list[float]) -> document.Statistics:
    """The figures of a state; without samples its mean stands for the median."""

    def figure(name: str) -> float | None:
        stored = summaries.get(f"{timer}/{name}")
        return float(stored["value"]) if stored else None

    mean = 1e3 * (figure("median") or figure("mean") or 0.0)
    noise = figure("stdev/relative") or 0.0
    return document.Statistics(
        median_ms=stats.median(samples) if samples else mean,
        min_ms=min(samples) if samples else 1e3 * (figure("min") or 0.0),
        noise=stats.noise(samples) if samples else noise,
        error=stats.error(samples) if samples else 0.0,
        runs=len(samples) or int(summaries.get("nv/cold/sample_size", {}).get("value", 0)),
        items_per_s=0.0,
        gb_per_s=0.0,
        gflop_per_s=None,
        of_ceiling=None,
    )


def _samples(stored: dict[str, str] | None, folder: Path) -> list[float]:
    """The samples' seconds; none if the file with them is not there."""
    if not stored or "filename" not in stored:
        return []
    try:
        data = (folder / stored["filename"]).read_bytes()
    except OSError:
        return []
    seconds = np.frombuffer(data, SECONDS)
    if len(seconds) != int(stored["size"]):
        raise ValueError(f"{stored['filename']}: {stored['size']} samples are expected")
    return [float(one) for one in seconds]
