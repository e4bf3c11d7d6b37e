"""What docs/results has: predictions, and the times that were measured later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cudalab import labs
from cudalab.bench.choice import shown_case
from cudalab.bench.document import Document, load
from cudalab.errors import CudalabError
from cudalab.labs.inputs import Size
from cudalab.predict import gpus
from cudalab.predict.gpus import Gpu
from cudalab.predict.ladder import Prediction, Rung
from cudalab.system import records
from tools import results

FOLDER = results.FOLDER / "predict"
FITTED_ON = "nvidia-h100-80gb-hbm3"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One rung, predicted and measured."""

    lab: str
    size: str
    variant: str
    order: float
    rung: Rung
    measured_s: float


def prediction_of(row: dict[str, Any]) -> Prediction:
    """A stored prediction; older ones have a key `schema` each."""
    return records.read(Prediction, {key: row[key] for key in row if key != "schema"})


def gpu_of(name: str) -> Gpu:
    """A GPU by the name of its file, such as "h200", or a part of it: "h200:88"."""
    file, _, part = name.partition(":")
    gpu = gpus.load(file)
    if not part:
        return gpu
    return replace(gpu, name=f"{gpu.name}, {part} multiprocessors", multiprocessors=float(part))


def pairs(name: str, *, today: bool = False) -> tuple[Gpu, list[Pair]]:
    """The rungs of one GPU that were predicted and measured.

    With `today`, what the model of today says of them, where that is stored beside.
    """
    path = FOLDER / f"today-{name}.json"
    if not (today and path.exists()):
        path = FOLDER / f"{name}.json"
    stored, times = results.read(path), measured(name)
    result = []
    for document in stored["predictions"]:
        each = prediction_of(document)
        for rung in each.rungs:
            key = each.lab, each.size, rung.variant
            if rung.kernels and key in times:
                one = Pair(
                    lab=each.lab,
                    size=each.size,
                    variant=rung.variant,
                    order=rung.order,
                    rung=rung,
                    measured_s=times[key],
                )
                result.append(one)
    return gpu_of(stored["gpu"]), result


def measured(name: str) -> dict[tuple[str, str, str], float]:
    """The seconds of the rungs of one GPU, by lab, size and variant; none if it was not measured.

    Those of the GPU that is fitted on are in docs/results/bench and, at other sizes, in
    docs/results/targets. Others count only if they were measured after the predictions.
    """
    if name == FITTED_ON:
        document = load(results.FOLDER / "bench" / f"{name}.json")
        return targets() | {
            (table.lab, table.size, row.name): figures.median_ms / 1e3
            for table in document.tables
            for row, figures in table.timed
            if row.kind == "variant"
        }
    path = FOLDER / f"measured-{name}.json"
    return {
        (table["lab"], table["size"], row["name"]): row["median_ms"] / 1e3
        for table in (results.read(path)["tables"] if path.exists() else [])
        for row in table["rows"]
    }


def number_of(size: str) -> int:
    """The first dimension of a size in words."""
    return int(size.split("x", maxsplit=1)[0].replace(",", ""))


def size_of(words: str) -> Size:
    """A size in words."""
    numbers = tuple(int(number) for number in words.replace(",", "").split("x"))
    return numbers if len(numbers) > 1 else numbers[0]


def targets() -> dict[tuple[str, str, str], float]:
    """The seconds of the variants of the GPU that is fitted on, in the case that is predicted."""
    times = {}
    for table in results.read(results.FOLDER / "targets" / f"{FITTED_ON}.json")["tables"]:
        lab = labs.get(table["lab"])
        usual = shown_case(lab, lab.complete({})), lab.distributions[0]
        for row in table["rows"] if (table["case"], table["dist"]) == usual else []:
            if (row["kind"], row["cache"], row["status"]) == ("variant", "cold", "ok"):
                key = table["lab"], table["size"], row["name"]
                times[key] = row["statistics"]["median_ms"] / 1e3
    return times


def add(name: str, documents: Sequence[Document]) -> None:
    """Store times beside the predictions of that name, in the place of those of equal sizes."""
    if not (FOLDER / f"{name}.json").exists():
        raise CudalabError(f"nothing was predicted for {name}: that comes first")
    path = FOLDER / f"measured-{name}.json"
    known = results.read(path) if path.exists() else {"tables": []}
    head = {key: value for key, value in known.items() if key != "tables"}
    tables = {(table["lab"], table["size"]): table for table in known["tables"]}
    for document in documents:
        environment = document.environment
        names = "device_name", "date", "driver", "commit"
        about = {key: getattr(environment, key) for key in names}
        head = head or about
        for table in document.tables:
            rows = [
                {"name": row.name, "median_ms": figures.median_ms}
                for row, figures in table.timed
                if row.kind == "variant"
            ]
            if rows:
                when = {key: value for key, value in about.items() if head[key] != value}
                each = {"lab": table.lab, "size": table.size, **when, "rows": rows}
                tables[table.lab, table.size] = each
    results.write_rows(path, head, list(tables.values()), "tables")
