"""The commands `explain` and `exercises`. Nothing heavy is imported before they run."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudalab import explain
from cudalab.backends import choose_device, facts
from cudalab.cli import options

if TYPE_CHECKING:
    from cudalab.cli.documents import Exercises
    from cudalab.explain.exercises import Result
    from cudalab.labs.inputs import Size


@click.command(
    "explain",
    epilog=options.lines("Example", "cudalab explain", "cudalab explain banks"),
)
@click.argument("topic", required=False, type=options.Choice(explain.TOPICS), metavar="[TOPIC]")
@options.json_option("Write the list of topics as JSON; - is stdout.")
def explain_topic(topic: str | None, *, json_path: Path | None) -> None:
    """Explain a topic of the course, with computed drawings and the commands that show it.

    Without TOPIC: list the topics.
    """
    from cudalab.cli.documents import Topic, Topics
    from cudalab.output import terminal

    if topic:
        if json_path:
            options.exclude("TOPIC", "--json")
        terminal.explanation(explain.summary(topic), explain.page(topic))
        return
    topics = [Topic(name=each, summary=explain.summary(each)) for each in explain.TOPICS]
    if not options.write_json(json_path, Topics(topics=topics)):
        rows = [[each.name, each.summary] for each in topics]
        terminal.catalogue("cudalab explain TOPIC", ["topic", "summary"], rows)


@click.command(
    "exercises",
    epilog=options.lines(
        "Example",
        "cudalab exercises",
        "cudalab exercises --size 1000,2000 --size 300x5000 --device cpu",
    ),
)
@click.option(
    "--size",
    "sizes",
    type=options.Sizes(),
    multiple=True,
    metavar="SIZES",
    help=(
        "Length of vectors and order of matrices, or a matrix's shape such as "
        "300x200; comma-separated. Default: the hand-out's 1000, and a large "
        "one."
    ),
)
@options.seed_option
@options.device_option("auto: the GPU if there is one. Times on the CPU device are emulated.")
@options.threads_option
@options.json_option("Write the times and differences as JSON; - is stdout, without the table.")
@options.quiet_option
def exercises(
    *,
    sizes: tuple[list[Size], ...],
    seed: int,
    device: str,
    threads: int | None,
    json_path: Path | None,
) -> int:
    """Compute the hand-out's exercises from global and from shared memory, side by side.

    Dot product, row sums and means, column means, row maxima, minima and sums of squares: values
    that agree, and times. Exit status 3 when one does not agree.
    """
    from cudalab.bench import suite
    from cudalab.bench.candidates import opened_alone
    from cudalab.explain import exercises as course
    from cudalab.output import live, terminal

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
    if not options.write_json(json_path, _document(results, device, name, seed)):
        terminal.grid(course.grid(results, device, name))
    return suite.exit_code(course.exit_codes(results))


def _document(results: Sequence[Result], device: str, name: str, seed: int) -> Exercises:
    """The times and differences of all exercises."""
    from cudalab.cli.documents import ExerciseRow, Exercises, ExerciseTime
    from cudalab.explain import exercises as course

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
