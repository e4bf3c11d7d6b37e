"""The commands `explain` and `exercises`. Nothing heavy is imported before they run."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cudalab import explain
from cudalab.cli.options import (
    Choice,
    Sizes,
    device_option,
    exclude,
    json_option,
    lines,
    quiet_option,
    seed_option,
    threads_option,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cudalab.labs.inputs import Size


@click.command(
    "explain",
    epilog=lines("Example", "cudalab explain", "cudalab explain banks"),
)
@click.argument("topic", required=False, type=Choice(explain.TOPICS), metavar="[TOPIC]")
@json_option("Write the list of topics as JSON; - is stdout.")
def explain_topic(topic: str | None, *, json_path: Path | None) -> None:
    """Explain a topic of the course, with computed drawings and the commands that show it.

    Without TOPIC: list the topics.
    """
    from cudalab.cli.documents import Topic, Topics
    from cudalab.output import terminal

    if topic:
        if json_path:
            exclude("TOPIC", "--json")
        terminal.explanation(explain.summary(topic), explain.page(topic))
        return
    topics = [Topic(name=each, summary=explain.summary(each)) for each in explain.TOPICS]
    if not write_json(json_path, Topics(topics=topics)):
        rows = [[each.name, each.summary] for each in topics]
        terminal.catalogue("cudalab explain TOPIC", ["topic", "summary"], rows)


@click.command(
    "exercises",
    epilog=lines(
        "Example",
        "cudalab exercises",
        "cudalab exercises --size 1000,2000 --size 300x5000 --device cpu",
    ),
)
@click.option(
    "--size",
    "sizes",
    type=Sizes(),
    multiple=True,
    metavar="SIZES",
    help=(
        "Length of vectors and order of matrices, or a matrix's shape such as "
        "300x200; comma-separated. Default: the hand-out's 1000, and a large "
        "one."
    ),
)
@seed_option
@device_option("auto: the GPU if there is one. Times on the CPU device are emulated.")
@threads_option
@quiet_option
def exercises(*, sizes: tuple[list[Size], ...], seed: int, device: str, threads: int | None) -> int:
    """Compute the hand-out's exercises from global and from shared memory, side by side.

    Dot product, row sums and means, column means, row maxima, minima and sums of squares: values
    that agree, and times. Exit status 3 when one does not agree.
    """
    from cudalab.backends import choose_device
    from cudalab.bench import suite
    from cudalab.bench.opening import opened_alone
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
    terminal.grid(course.grid(results, device, name))
    return suite.exit_code(course.exit_codes(results))
