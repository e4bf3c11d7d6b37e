"""Results of bench as a run would leave them, with times that are given."""

from __future__ import annotations

from cudalab.bench import bounds, measure, results

PROPERTIES = {"name": "Test GPU", "multiprocessors": 4, "driver": "1.0, CUDA 13.0"}
SAMPLES = 6


def row(name, ms, *, kind="variant", **changed):
    """A row of samples around `ms`, or one without a time where `ms` is None."""
    made = measure.Row(name, kind, summary=f"what {name} does", **changed)
    if ms is None:
        made.refuse(measure.Status.WRONG, "1 of 4 elements differ")
    else:
        made.status = measure.Status.OK
        steps = (-1, 1, -1, 1, 0, 0)
        made.samples = [measure.Sample(i, ms * (1 + 0.01 * steps[i])) for i in range(SAMPLES)]
    return made


def table(rows, *, lab="reduce", n=1024, flops=0, sweep=(), **case):
    """A table of `rows` on a device that copies 100 GB/s and does 50 GFLOP/s."""
    done = bounds.Work(n, 4 * n, 4, flops)
    ceiling = {"gb_per_s": 100.0, "gflop_per_s": 50.0}
    return {
        "lab": lab,
        "case": case or {"dtype": "int32", "op": "sum", "along": "all"},
        "size": f"{n:,}",
        "dist": "uniform",
        "work": {
            "items": done.items,
            "read_bytes": done.read_bytes,
            "write_bytes": done.write_bytes,
            "flops": done.flops,
        },
        "ceiling": ceiling,
        "sweep": list(sweep),
        "rows": results.rows_of(rows, done, ceiling, ladder=not sweep),
        "end_to_end": None,
        "notes": [],
    }


def document(*tables, device="cuda", name="Test GPU", caches=("cold",)):
    """A whole run; it is what `results.check` accepts."""
    environment = results.environment(device, {**PROPERTIES, "name": name}, 100.0, [])
    environment |= {"date": "2026-01-31T12:00:00+00:00", "versions": {"cudalab": "1"}, "commit": ""}
    conditions = {"caches": list(caches), "time_limit_s": 1.0, "seed": 0}
    return results.check(results.document(environment, conditions, tables))
