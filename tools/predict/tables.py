"""The tables of docs/predict.md."""

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from cudalab.predict import gpus, ladder, model
from cudalab.predict.gpus import Gpu
from cudalab.predict.model import Constants
from tools import results
from tools.predict import outside
from tools.predict.scores import NEAR, Score, ladders, off, recomputed, score, total
from tools.predict.stored import FITTED_ON, FOLDER, Pair, gpu_of, measured, pairs

CONSTANTS = {
    "overlap": ("*p*", "how far the parts of the GPU overlap"),
    "barrier_cycles": ("*b*", "cycles that a warp waits at a barrier for its block"),
    "partial_per_cycle": ("*s*", "partly stored sectors in a cycle, of the whole GPU"),
    "begin_us": ("*f*", "µs until the first launch of a step is under way"),
    "launch_us": ("*c*", "µs from launch to launch; in the H100's file"),
}
GPU_COLUMNS = {
    "multiprocessors": "multiprocessors",
    "clock_mhz": "MHz",
    "dram_gb_per_s": "copy, GB/s",
    "l2_mb": "L2, MB",
    "shared_kb": "shared memory, KB",
    "warps": "warps",
    "float_lanes": "lanes",
}
COLUMNS = ["lab", "n", "rungs", "tau", "neighbours within 1.5", "median error of a time"]
ABOUT = {
    "-planted": "a student's sum with strides planted in it",
    "-other-sizes": "other sizes",
}
SAME = 1.001  # a factor between stored times and those of the model that has made them
MISSES = ["rung", "n", "measured, ms", "predicted, ms", "ratio", "what the model does not know"]


def constants() -> str:
    """The fitted constants."""
    values = {**asdict(Constants()), "launch_us": gpus.load("h100").launch_us}
    rows = [[symbol, f"{values[name]:g}", text] for name, (symbol, text) in CONSTANTS.items()]
    return results.table(["constant", "value", "what it is"], rows)


def known_gpus() -> str:
    """The GPUs that have a file, and how many of their numbers were measured."""
    rows = [
        [
            f"`{name}`",
            gpu.name,
            *(f"{getattr(gpu, column):,g}" for column in GPU_COLUMNS),
            *(str(len(gpu.origins(kind))) for kind in gpus.SOURCES),
        ]
        for name, gpu in ((name, gpus.load(name)) for name in gpus.names())
    ]
    columns = ["`--gpu`", "GPU", *GPU_COLUMNS.values(), *gpus.SOURCES]
    return results.table(columns, rows, numbers=len(columns) - 2)


def scores() -> str:
    """A table for each GPU of docs/results/predict."""
    return "\n".join(map(scores_of, stored_names())) or "Nothing is stored yet.\n"


def stored_names() -> list[str]:
    """The GPUs with predictions and measurements, the one fitted on first."""
    names = [path.stem for path in sorted(FOLDER.glob("nvidia-*.json"))]
    return [name for name in sorted(names, key=lambda name: name != FITTED_ON) if pairs(name)[1]]


def scores_of(name: str) -> str:
    """The scores of each ladder, and of all."""
    stored = results.read(FOLDER / f"{name}.json")
    gpu, found = pairs(name)
    times = [(pair.rung.ms or 0.0) / 1e3 for pair in found]
    each = {
        key: score([(time, pair.measured_s) for pair, time in rungs])
        for key, rungs in ladders(found, times).items()
    }
    rows = [[f"`{lab}`", size, *_cells(one)] for (lab, size), one in each.items()]
    rows.append(["all", "", *_cells(total(each.values()))])
    fitted = "fitted on" if name == FITTED_ON else "predicted before it was measured"
    when = f"predictions of {stored['date']}, commit `{stored['commit']}`"
    head = f"{_subject(name, gpu)}, {fitted}; {when}:\n\n"
    return head + results.table(COLUMNS, rows, numbers=4) + _anew(name)


def _subject(name: str, gpu: Gpu) -> str:
    """What predictions of that name are for."""
    about = [text for suffix, text in ABOUT.items() if name.endswith(suffix)]
    return ", ".join([gpu.name, *about])


def _anew(name: str) -> str:
    """The score of the model as it is now, if another one has made the predictions."""
    _, predicted = pairs(name)
    gpu, found = pairs(name, today=True)
    times = [recomputed(pair, gpu, Constants()) for pair in found]
    then = {(pair.lab, pair.size, pair.variant): pair.rung.ms or 0.0 for pair in predicted}
    if all(
        off(1e3 * time / then[pair.lab, pair.size, pair.variant]) < SAME
        for pair, time in zip(found, times, strict=True)
    ):
        return ""
    tau, near, error = _cells(_whole(found, times))[1:]
    return (
        f"\nThe model of today: tau {tau}, neighbours within 1.5 {near}, median error {error}. It "
        "was changed after the prediction: these are no predictions.\n"
    )


def _whole(found: Sequence[Pair], times: Sequence[float]) -> Score:
    """The score of all ladders together."""
    each = ladders(found, times).values()
    return total(score([(t, pair.measured_s) for pair, t in rungs]) for rungs in each)


def _cells(one: Score) -> list[str]:
    return [
        str(one.rungs),
        f"{one.tau:.2f} ({one.ordered} of {one.decided})" if one.decided else "",
        f"{one.near} of {one.neighbours}" if one.neighbours else "",
        f"{100 * (one.median - 1):.0f} %",
    ]


def intervals() -> str:
    """How many of the measured times lie in the intervals that the model of today prints."""
    rows = []
    for name in stored_names():
        gpu, found = pairs(name, today=True)
        within = [sum(is_within(pair, gpu, with_nvcc=by) for pair in found) for by in (True, False)]
        shares = [f"{each} of {len(found)}" for each in within]
        rows.append([_subject(name, gpu), *shares])
    return results.table(["GPU", "within", "within, without nvcc"], rows, numbers=2)


def is_within(pair: Pair, gpu: Gpu, *, with_nvcc: bool) -> bool:
    """Whether the measured time lies in the interval; without nvcc no instruction is known."""
    names = [name for name in model.Work.__annotations__ if name.endswith("instructions")]
    unknown: dict[str, Any] = {} if with_nvcc else dict.fromkeys([*names, "cycles"], 0.0)
    works = [replace(each, **unknown) for each in pair.rung.kernels or []]
    one = ladder.timed(replace(pair.rung, kernels=works, compiled=with_nvcc), gpu)
    return (one.low_ms or 0.0) <= 1e3 * pair.measured_s <= (one.high_ms or 0.0)


def without_terms() -> str:
    """What becomes of the H100's ladders if a term is left out, and nothing is fitted again."""
    gpu, found = pairs(FITTED_ON)
    terms = list(model.terms((found[0].rung.kernels or [])[0], gpu, Constants()))
    left_out = {"nothing": [], **{term: [term] for term in terms}}
    left_out["all but DRAM and L2: a plain roofline of bytes"] = terms[2:]
    rows = []
    for text, names in left_out.items():
        times = [_seconds_without(pair, gpu, names) for pair in found]
        rows.append([text, *_cells(_whole(found, times))[1:]])
    return results.table(["left out", *COLUMNS[3:]], rows, numbers=3)


def _seconds_without(pair: Pair, gpu: Gpu, names: list[str]) -> float:
    return model.seconds(pair.rung.kernels or [], gpu, Constants(), without=names)


def misses() -> str:
    """The times that are off by more than a factor of NEAR, and why."""
    path = FOLDER / "misses.toml"
    reasons = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows = []
    for name in stored_names():
        gpu, found = pairs(name)
        for pair in found:
            ms, measured = pair.rung.ms or 0.0, 1e3 * pair.measured_s
            if off(ms / measured) > NEAR:
                why = reasons.get(pair.lab, {}).get(pair.variant, "not known")
                head = f"`{pair.lab}/{pair.variant}`, {_subject(name, gpu)}"
                rows.append(
                    [head, pair.size, f"{measured:.3g}", f"{ms:.3g}", f"{ms / measured:.2f}", why]
                )
    return results.table(MISSES, rows)


def compared(measured: Gpu, filed: Gpu) -> str:
    """The numbers of a GPU that was measured beside those of a file."""
    rows = []
    for name in measured.sources:
        one, other = getattr(measured, name), getattr(filed, name)
        kind, other_kind = (gpu.sources[name].partition(":")[0] for gpu in (measured, filed))
        rows.append([name, f"{one:g}", f"{other:g}", f"{one / other:.2f}", kind, other_kind])
    columns = ["number", measured.name, "in the file", "ratio", "here", "there"]
    return results.table(columns, rows)


def of_others() -> str:
    """The rates of kernels that nobody here wrote: published ones, and predicted ones."""
    stored = results.read(outside.PATH)
    gpu, rows = gpu_of(stored["gpu"]), stored["rows"]
    whole = score([(1 / row["predicted_gflops"], 1 / row["published_gflops"]) for row in rows])
    head = (
        f"{gpu.name}, matrices of order {stored['order']:,}; predictions of {stored['date']}, "
        f"commit `{stored['commit']}`; GFLOP/s:\n\n"
    )
    lines = [
        [
            str(row["kernel"]),
            row["technique"],
            f"{row['published_gflops']:,.0f}",
            f"{row['predicted_gflops']:,.0f}",
            f"{row['predicted_gflops'] / row['published_gflops']:.2f}",
        ]
        for row in rows
    ]
    tau, near, error = _cells(whole)[1:]
    text = f"\ntau {tau}; neighbours within 1.5: {near}; median error of a time: {error}.\n"
    columns = ["kernel", "technique", "published", "predicted", "ratio"]
    return head + results.table(columns, lines, numbers=3) + text


def below(limit: float = 0.85) -> str:
    """The ladders whose order is worse than that, by name."""
    names = [
        f"`{lab}` at {size} on an {gpu.name} ({one.tau:.2f})"
        for gpu, found in map(pairs, stored_names())
        for (lab, size), rungs in ladders(found, [(p.rung.ms or 0.0) for p in found]).items()
        for one in [score([(time / 1e3, pair.measured_s) for pair, time in rungs])]
        if round(one.tau, 2) < limit
    ]
    return f"Ladders with a tau below {limit:g}: {'; '.join(names) or 'none'}.\n"


def waiting() -> str:
    """The ladders that were predicted and have not been measured."""
    lines = []
    for path in sorted(FOLDER.glob("nvidia-*.json")):
        stored, times = results.read(path), measured(path.stem)
        sizes: dict[str, list[str]] = {}
        for each in stored["predictions"]:
            names = [rung["variant"] for rung in each["rungs"] if rung["kernels"]]
            if names and not any((each["lab"], each["size"], name) in times for name in names):
                sizes.setdefault(each["lab"], []).append(each["size"])
        ladders = "; ".join(f"`{lab}` at {' and '.join(some)}" for lab, some in sizes.items())
        if ladders:
            lines.append(f"* `{path.stem}`, {gpu_of(stored['gpu']).name}: {ladders}\n")
    head = "These have not been measured yet:\n\n"
    return head + "".join(lines) if lines else "All that are stored have been measured.\n"
