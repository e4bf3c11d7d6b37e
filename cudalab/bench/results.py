"""Turns measurements into the parts of a document: environment, rows, speedups."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cudalab import __version__
from cudalab.backends import facts
from cudalab.backends.base import DeviceInfo
from cudalab.bench import measured, stats
from cudalab.bench.document import Ceiling, Environment, Row, Speedup, Statistics
from cudalab.bench.measured import Status
from cudalab.labs.teaching import Work
from cudalab.output.labels import labelled


def environment(
    device: str, info: DeviceInfo, copy_gb_per_s: float, other_processes: Sequence[str]
) -> Environment:
    """What a time depends on besides the program. Nothing names the machine or its user."""
    versions = {"cudalab": __version__, "python": platform.python_version()}
    for name in ("numpy", "pycuda", "cupy", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Environment(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device,
        device_name=info.name,
        emulated=not facts(device).gpu_times,
        properties={
            label: re.sub(r"\s*\([^)]*/[^)]*\)", "", value) if isinstance(value, str) else value
            for label, value in labelled(asdict(info)).items()
        },
        copy_gb_per_s=copy_gb_per_s,
        clock_mhz=None,
        driver=info.driver,
        versions=versions,
        commit=commit(),
        platform=f"{platform.system()} {platform.machine()}",
        other_processes=list(other_processes),
    )


def commit() -> str:
    """The checkout's commit, with a + if files differ from it; empty outside a checkout."""
    if "CUDALAB_COMMIT" in os.environ:
        return os.environ["CUDALAB_COMMIT"]
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        name = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name + ("+" if changed else "")


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# Rows --------------------------------------------------------------------------------------------


def rows_of(
    rows: Sequence[measured.Row], work: Work, ceiling: Ceiling, *, ladder: bool = True
) -> list[Row]:
    """All rows with their statistics and, on a `ladder`, their speedups."""
    right = [row for row in rows if row.status is Status.OK] if ladder else []
    return [_with_speedups(_row(row, work, ceiling), row, right) for row in rows]


def _row(row: measured.Row, work: Work, ceiling: Ceiling) -> Row:
    return Row(
        name=row.name,
        kind=row.kind,
        precision=row.precision,
        device=row.device,
        emulated=row.emulated,
        cache=row.cache,
        clock=row.clock,
        status=row.status,
        reason=row.reason,
        summary=row.summary,
        order=row.order,
        defines=dict(row.defines),
        rounds=[sample.round for sample in row.samples],
        samples_ms=[sample.ms for sample in row.samples],
        clocks_mhz=[sample.mhz for sample in row.samples if sample.mhz is not None],
        discarded=list(row.discarded),
        statistics=_statistics(row, work, ceiling) if row.status is Status.OK else None,
        bound=row.bound,
        course_ms=row.course,
        notes=list(row.notes),
        warnings=list(row.warnings),
    )


def _statistics(row: measured.Row, work: Work, ceiling: Ceiling) -> Statistics:
    samples = list(row.valid_samples().values())
    ms = stats.median(samples)
    gb_per_s = 1e-6 * work.bytes / ms
    gflop_per_s = 1e-6 * work.flops / ms if work.flops else None
    limit = ceiling.gflop_per_s if work.flops else ceiling.gb_per_s
    reached = gflop_per_s if work.flops else gb_per_s
    by_host = row.clock == "host" and not row.emulated
    return Statistics(
        median_ms=ms,
        min_ms=min(samples),
        noise=stats.noise(samples),
        error=stats.error(samples),
        runs=len(samples),
        items_per_s=1e3 * work.items / ms,
        gb_per_s=gb_per_s,
        gflop_per_s=gflop_per_s,
        # The GPU's ceiling does not apply to NumPy on the host.
        of_ceiling=reached / limit if limit and reached and not by_host else None,
    )


def _with_speedups(stored: Row, row: measured.Row, right: Sequence[measured.Row]) -> Row:
    """The row with its speedup over the rung below, the first rung and each baseline."""
    if not row.comparable or not any(row is other for other in right):
        return stored
    ladder = [other for other in right if other.comparable and other.cache == row.cache]
    # The host has no cold and hot; a baseline with both is compared in the row's state.
    baselines = [other for other in right if other.kind == "baseline"]
    baselines.sort(key=lambda other: other.cache == row.cache)
    place = next(i for i, other in enumerate(ladder) if other is row)
    below = [other for other in ladder[:place] if other.ladder == row.ladder]
    return replace(
        stored,
        below=_speedup(below[-1], row) if below else None,
        first=_speedup(ladder[0], row) if place else None,
        baselines={other.name: _speedup(other, row) for other in baselines},
    )


def _speedup(other: measured.Row, row: measured.Row) -> Speedup:
    ratio = stats.ratio(other.valid_samples(), row.valid_samples())
    return Speedup(other.name, ratio.value, ratio.low, ratio.high)
