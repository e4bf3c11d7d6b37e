"""The command `report` and its options. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.cli.bench import BASELINES, SweepOption
from cudalab.cli.options import (
    EXISTING,
    NEW,
    CaseCommand,
    Choice,
    Names,
    Sizes,
    device_option,
    dist_option,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    refuse_measuring,
    seconds_option,
    seed_option,
    threads_option,
    variants_option,
)
from cudalab.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from cudalab.bench.choice import Request
    from cudalab.bench.document import Document, Table
    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, Size
    from cudalab.output.grid import Grid


@click.command(
    "report",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab report reduce -o report.html",
                "cudalab report matmul --n 256:2048:x2 --sweep TILE=8,16,32 -o report.md",
                "cudalab bench scan --variants all --n 2^16:2^26:x4 --json scan.json",
                "cudalab report scan --from scan.json -o scan.html",
            ),
            "The lab's own options (--op, --rows, --aat, --bins, ...) choose the case.",
        ]
    ),
)
@click.argument("name", type=Choice(labs.names()), metavar="LAB")
@click.option(
    "-o",
    "--output",
    type=NEW,
    metavar="FILE.md|html",
    help="HTML is one self-contained file; Markdown keeps its figures beside it. Default: Markdown "
    "without figures on stdout.",
)
@click.option(
    "--from",
    "measured",
    type=EXISTING,
    multiple=True,
    metavar="FILE.json",
    help="Use results of `cudalab bench --json` instead of measuring; several files are merged.",
)
@click.option(
    "--profile",
    type=EXISTING,
    metavar="FILE",
    help="Output of `cudalab profile --json`, or any text, for the section on the profile.",
)
@click.option(
    "--predict",
    "gpu",
    metavar="GPU",
    help="Add the times that `cudalab predict` expects on this GPU, labelled as a model's.",
)
@json_option("Write the measurements as JSON, too; - is stdout, if -o names a file.")
@click.option(
    "--n", "sizes", type=Sizes(), metavar="SIZES", help="Sizes, as for bench. Default: three."
)
@variants_option("Variants to measure.", default="all")
@dist_option
@seed_option
@click.option(
    "--baseline",
    "baselines",
    type=Names(BASELINES),
    default=("numpy",),
    metavar="NAMES",
    help="Libraries to measure: numpy (the default), cupy, cub.",
)
@click.option(
    "--sweep",
    type=SweepOption(),
    multiple=True,
    metavar="DEFINE=VALUES",
    help="Launch shapes, as for bench. Default: block or tile sizes of one or two variants, or of "
    "the named ones.",
)
@device_option()
@threads_option
@seconds_option("--time-limit", "Sampling budget for each table.")
@quiet_option
def report(
    *,
    name: str,
    output: Path | None,
    measured: tuple[Path, ...],
    profile: Path | None,
    gpu: str | None,
    json_path: Path | None,
    **options: Any,
) -> int:
    """Write the course's lab report: device, method, tables, pictures, samples of the data.

    Conclusions are left blank, under headings that ask for them.
    """
    from cudalab.bench.document import Merged, load, merged
    from cudalab.bench.report.content import Source
    from cudalab.bench.report.pages import write
    from cudalab.predict.gpus import load as load_gpu

    if output and output.suffix.lower() not in (".md", ".html", ".htm"):
        raise UsageError(f"{output}: a report is a file called .md or .html")
    if is_stdout(json_path) and not output:
        raise UsageError("--json -: stdout is for the report", hint="name its file with -o")
    lab = labs.get(name)
    if gpu:
        load_gpu(gpu)  # an unknown name is an error before anything is measured
    text = _text_of(profile) if profile else None
    if measured:
        refuse_measuring("--from", "name", "output", "measured", "profile", "gpu")
        run, status = merged([load(path) for path in measured], name), 0
    else:
        document, status = measure(lab, json_path, **options)
        run = Merged(document, [])
    predicted = predict(lab, run.document, gpu) if gpu and run.document.tables else None
    source = Source(
        lab=lab,
        document=run.document,
        differing=run.differing,
        profile=text,
        predicted=predicted,
    )
    write(source, output)
    return status


def predict(lab: Lab, document: Document, gpu: str) -> Grid:
    """The predictions for the measured variants at the size that bench measures on a GPU."""
    from cudalab.cli.predict import predict_sizes
    from cudalab.labs import registry
    from cudalab.predict import show

    first = document.tables[0]
    known = {variant.name for variant in registry.variants(lab)}
    names = dict.fromkeys(row.variant for row in first.rows if row.variant in known)
    if not names:
        raise UsageError("--predict: none of cudalab's own variants is in the results")
    chosen = ",".join(names)
    (prediction,) = predict_sizes(lab, gpu, chosen, None, None, None, 0, dict(first.case))
    return show.grid(prediction)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text: {error}") from None


def measure(
    lab: Lab,
    json_path: Path | None,
    *,
    device: str,
    threads: int | None,
    **options: Any,
) -> tuple[Document, int]:
    """Measure over sizes, then over launch shapes, and join the results in one document."""
    from cudalab.bench.candidates import opened_alone
    from cudalab.bench.document import as_json
    from cudalab.bench.suite import Suite, exit_code
    from cudalab.formats import save
    from cudalab.output import live

    device = choose_device(device)
    measured: list[Table] = []
    document: Document | None = None
    codes: set[int] = set()

    def save_so_far(latest: Document) -> None:
        if json_path and not is_stdout(json_path):
            save(json_path, as_json(replace(latest, tables=measured + latest.tables)))

    with opened_alone(device, threads) as (opened, busy), live.BenchProgress() as progress:
        for request in requests(lab, device, opened.features, **options):
            copy = document.environment.copy_gb_per_s if document else None  # measured once
            suite = Suite(opened, request, progress, save_so_far, busy, copy_gb_per_s=copy)
            for _ in suite.tables():
                pass
            # A launch shape that cannot run is shown with the reason; that is no failure.
            codes |= (
                suite.exit_codes & {ExitCode.WRONG_ANSWER} if request.sweep else suite.exit_codes
            )
            measured += suite.document.tables
            document = replace(suite.document, tables=measured)
    assert document is not None
    if is_stdout(json_path):
        save(Path("-"), as_json(document))
    return document, exit_code(codes)


def requests(
    lab: Lab,
    device: str,
    features: frozenset[str],
    *,
    sizes: list[Size] | None,
    variants: str,
    dist: str | None,
    seed: int,
    baselines: tuple[str, ...],
    sweep: tuple[tuple[str, list[str]], ...],
    time_limit: float | None,
    **case_options: Any,
) -> list[Request]:
    """The measurements for a report: all variants over n, and launch shapes at the last size."""
    from cudalab.bench import choice

    case: Case = choice.case_of(lab, case_options)
    sizes = sizes or choice.default_sizes(lab, case, device)
    over_n = choice.Request(
        labs=[(lab, case)],
        sizes=sizes,
        variants=variants,
        dist=dist,
        seed=seed,
        baselines=baselines,
        time_limit_s=time_limit,
    )
    over_shapes = replace(over_n, sizes=sizes[-1:], baselines=())
    if sweep:
        return [over_n, replace(over_shapes, sweep=choice.joined(sweep))]
    if variants == choice.ALL:
        swept = choice.swept_variants(lab, case, device, features)
    else:
        swept = choice.named(lab, case, variants)
    sweeps = [(variant.name, choice.launch_shapes(variant)) for variant in swept]
    return [
        over_n,
        *(replace(over_shapes, variants=name, sweep=sweep) for name, sweep in sweeps if sweep),
    ]
