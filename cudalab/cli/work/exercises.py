"""What `cudalab exercises` does: compute, compare and time the hand-out's exercises."""

from collections.abc import Sequence
from pathlib import Path

from cudalab.backends import choose_device, facts
from cudalab.bench.candidates import opened_alone
from cudalab.cli import params
from cudalab.cli.documents import ExerciseRow, Exercises, ExerciseTime
from cudalab.errors import ExitCode
from cudalab.explain import exercises as course
from cudalab.labs.inputs import Size
from cudalab.output import live, terminal


def exercises(
    *,
    sizes: tuple[list[Size], ...],
    seed: int,
    device: str,
    threads: int | None,
    json_path: Path | None,
) -> int:
    """Run the exercises, and print them."""
    device = choose_device(device)
    requested = [size for group in sizes for size in group] or None
    with opened_alone(device, threads) as (opened, _), live.BenchProgress() as progress:
        current = ""

        def show_progress(stage: str, done: float) -> None:
            nonlocal current
            if stage != current:
                progress.begin(stage)
                current = stage
            progress.update(done, "")

        results = list(course.run(opened, requested, seed, show_progress))
        name = course.device_name(opened)
    if not params.write_json(json_path, _document(results, device, name, seed)):
        terminal.grid(course.grid(results, device, name))
    return ExitCode.of_all(course.exit_codes(results))


def _document(results: Sequence[course.Result], device: str, name: str, seed: int) -> Exercises:
    """The times and differences of all exercises."""
    rows = []
    for one in results:
        ratio = one.ratio()
        times = [
            ExerciseTime(
                memory=memory,
                variant=row.name,
                median_ms=course.median(row) if course.timed(row) else None,
                failure="" if course.timed(row) else f"{row.status}: {row.reason}",
            )
            for memory, row in one.rows.items()
        ]
        rows.append(
            ExerciseRow(
                title=one.title,
                size=one.size,
                times=times,
                ratio=ratio.value if ratio else None,
                decided=bool(ratio and ratio.decided),
                apart=one.between or 0.0,
                error=one.to_reference or 0.0,
            )
        )
    emulated = not facts(device).gpu_times
    return Exercises(device=device, device_name=name, emulated=emulated, seed=seed, exercises=rows)
