"""Results of bench as a run would leave them, with times that are given."""

from __future__ import annotations

from dataclasses import asdict, replace

from cudalab.backends.base import DeviceInfo
from cudalab.bench import measured, results
from cudalab.bench.document import Ceiling, Conditions, Document, Table, from_json
from cudalab.labs.teaching import Work

INFO = DeviceInfo(name="Test GPU", cores=4, driver="1.0, CUDA 13.0")
SAMPLES = 6


def row(name, ms, *, kind="variant", **changed):
    """A row of samples around `ms`, or one without a time where `ms` is None."""
    made = measured.Row(name, kind=kind, summary=f"what {name} does", **changed)
    if ms is None:
        made.refuse(measured.Status.WRONG, "1 of 4 elements differ")
    else:
        made.status = measured.Status.OK
        steps = (-1, 1, -1, 1, 0, 0)
        made.samples = [measured.Sample(i, ms * (1 + 0.01 * steps[i])) for i in range(SAMPLES)]
    return made


def table(rows, *, lab="reduce", n=1024, flops=0, sweep=(), **case):
    """A table of `rows` on a device that copies 100 GB/s and does 50 GFLOP/s."""
    done = Work(n, 4 * n, 4, flops)
    ceiling = Ceiling(100.0, 50.0)
    return Table(
        lab=lab,
        case=case or {"dtype": "int32", "op": "sum", "along": "all"},
        size=f"{n:,}",
        dist="uniform",
        work=done,
        ceiling=ceiling,
        sweep=list(sweep),
        rows=results.rows_of(rows, done, ceiling, ladder=not sweep),
        end_to_end=None,
        notes=[],
    )


def document(*tables, device="cuda", name="Test GPU", caches=("cold",)):
    """A whole run; it is what `from_json` accepts."""
    environment = replace(
        results.environment(device, replace(INFO, name=name), 100.0, []),
        date="2026-01-31T12:00:00+00:00",
        versions={"cudalab": "1"},
        commit="",
    )
    conditions = Conditions(list(caches), 1.0, 0)
    made = Document(environment=environment, conditions=conditions, tables=list(tables))
    return from_json(asdict(made))
