"""The commands `explain` and `exercises`: the lecture's topics, computed and drawn."""

from pathlib import Path
from typing import Any

import click

from cudalab import explain
from cudalab.cli import epilog, params, values


@click.command("explain", epilog=epilog.examples("cudalab explain", "cudalab explain banks"))
@click.argument("topic", required=False, type=values.Choice(explain.TOPICS), metavar="[TOPIC]")
@params.json_option("Write the list of topics as JSON; - is stdout.")
def explain_topic(topic: str | None, *, json_path: Path | None) -> None:
    """Explain a topic of the course, with computed drawings and the commands that show it.

    Without TOPIC: list the topics.
    """
    from cudalab.cli.documents import Topic, Topics
    from cudalab.output import terminal

    if topic:
        if json_path:
            params.exclude("TOPIC", "--json")
        terminal.explanation(explain.summary(topic), explain.page(topic))
        return
    topics = [Topic(name=each, summary=explain.summary(each)) for each in explain.TOPICS]
    if not params.write_json(json_path, Topics(topics=topics)):
        rows = [[each.name, each.summary] for each in topics]
        terminal.catalogue("cudalab explain TOPIC", ["topic", "summary"], rows)


@click.command(
    "exercises",
    epilog=epilog.examples(
        "cudalab exercises", "cudalab exercises --size 1000,2000 --size 300x5000 --device cpu"
    ),
)
@click.option(
    "--size",
    "sizes",
    type=values.Sizes(),
    multiple=True,
    metavar="SIZES",
    help="Length of vectors and order of matrices, or a matrix's shape such as 300x200; "
    "comma-separated. Default: the hand-out's 1000, and a large one.",
)
@params.seed_option()
@params.device_option("auto: the GPU if there is one. Times on the CPU device are emulated.")
@params.threads_option()
@params.json_option("Write the times and differences as JSON; - is stdout, without the table.")
@params.quiet_option
def exercises(**options: Any) -> int:
    """Compute the hand-out's exercises from global and from shared memory, side by side.

    Dot product, row sums and means, column means, row maxima, minima and sums of squares: values
    that agree, and times. Exit status 3 when one does not agree.
    """
    from cudalab.cli.work.exercises import exercises

    return exercises(**options)
