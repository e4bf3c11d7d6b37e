"""The commands `bench` and `report`: variants side by side, and the lab report of them."""

from pathlib import Path
from typing import Any

import click

from cudalab import labs
from cudalab.cli import epilog, params, values


@click.command(
    "bench",
    cls=params.CaseCommand,
    epilog=epilog.examples(
        "cudalab bench",
        "cudalab bench reduce --variants all --n 2^16:2^28:x4 --baseline numpy,cupy",
        "cudalab bench reduce --op max --rows --kernel my.cu --json new.json",
        "cudalab bench matmul --variants tiled --sweep TILE=8,16,32",
        "cudalab bench reduce --variants all --sweep THREADS_PER_BLOCK=32,64,...,1024 "
        "--sweep ITEMS_PER_BLOCK=~THREADS_PER_BLOCK",
        "cudalab bench --compare old.json new.json",
        then=[
            (
                "With a single lab, its own options (--op, --rows, --aat, --bins, ...) choose the "
                "case: `cudalab bench LAB --help`."
            )
        ],
    ),
)
@click.argument(
    "names",
    nargs=-1,
    type=values.LabName([*labs.names(), params.ALL], "are not measured"),
    metavar="[LAB...|all]",
)
@params.variants_option(
    "all (that compute the case), or comma-separated names. Default: the first rung of the ladder "
    "and the device's default."
)
@params.sizes_option(
    "Sizes such as 1Mi, 1e6, 2^20 or 300x200, comma-separated; 2^16:2^28:x4 is a range. "
    "Default: one size for each lab and device."
)
@click.option(
    "--dtype",
    metavar="TYPE",
    help="Element type, for the labs that have one. Default: each lab's own.",
)
@params.dist_option
@params.seed_option()
@params.device_option("auto: the GPU if there is one. Times on the CPU device are emulated.")
@params.threads_option()
@params.baseline_option(
    "Libraries to measure in the same run: numpy, cupy (the vendor's libraries), cub."
)
@params.kernel_option("Measure your own file as well.")
@params.sweep_option(
    "Values of a define in the variant's header: 32,64,...,1024; 2*OTHER; ~OTHER scales with "
    "OTHER. Several sweeps form a grid."
)
@click.option(
    "--hot", is_flag=True, help="Warm the caches: compute once, untimed, before each sample."
)
@click.option("--cold", is_flag=True, help="With --hot: measure both, side by side.")
@params.seconds_option(
    "--time-limit", "Sampling budget for each table, never a failure. Default: 1 to 10."
)
@params.kill_after_option("the run", params.BENCH_KILL_AFTER_S)
@params.json_option("Write all samples as JSON; - is stdout, which then has no tables.")
@params.out_option("--csv", "csv_path", help_text="Write one line for each row.")
@params.out_option("--markdown", "markdown_path", help_text="Write the tables as Markdown.")
@click.option(
    "--plot",
    "plot_path",
    type=values.NEW,
    metavar="FILE.svg|png|pdf",
    help="Draw time over n, and ladders; with --compare, the changes. .png and .pdf need the "
    "extra `plot`.",
)
@click.option(
    "--nvbench",
    "nvbench_path",
    type=values.NEW,
    metavar="FILE",
    help="Write NVBench's JSON, and the samples into the folder FILE-bin.",
)
@click.option(
    "--against", type=values.EXISTING, metavar="OLD.json", help="Compare with an earlier run."
)
@click.option(
    "--compare",
    "compared",
    type=values.EXISTING,
    nargs=2,
    metavar="OLD.json NEW.json",
    help="Compare two files, ours or NVBench's, without measuring.",
)
@click.option(
    "--threshold",
    type=values.FiniteRange(min=0),
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="Ignore smaller changes; a regression exits with 3.",
)
@click.option(
    "--equivalent",
    type=values.FiniteRange(min=0, min_open=True),
    metavar="PERCENT",
    help="Demand that no row changes by more, in either direction: exit with 3 unless this is "
    "shown for all.",
)
@params.quiet_option
def bench(*, compared: tuple[Path, Path] | None, **options: Any) -> int:
    """Measure variants side by side; every answer is verified before it is timed."""
    if compared:
        from cudalab.cli.work.compare import compare, demanded

        demand = demanded(options["threshold"], options["equivalent"])
        return compare(*compared, demand, options["plot_path"])
    from cudalab.cli.work.bench import bench

    return bench(**options)


@click.command(
    "report",
    cls=params.CaseCommand,
    epilog=epilog.examples(
        "cudalab report reduce -o report.html",
        "cudalab report matmul --n 256:2048:x2 --sweep TILE=8,16,32 -o report.md",
        "cudalab bench scan --variants all --n 2^16:2^26:x4 --json scan.json",
        "cudalab report scan --from scan.json -o scan.html",
        then=["The lab's own options (--op, --rows, --aat, --bins, ...) choose the case."],
    ),
)
@click.argument("name", type=params.LAB, metavar="LAB")
@click.option(
    "-o",
    "--output",
    type=values.NEW,
    metavar="FILE.md|html",
    help="HTML is one self-contained file; Markdown keeps its figures beside it. Default: Markdown "
    "without figures on stdout.",
)
@click.option(
    "--from",
    "measured",
    type=values.EXISTING,
    multiple=True,
    metavar="FILE.json",
    help="Use results of `cudalab bench --json` instead of measuring; several files are merged.",
)
@click.option(
    "--profile",
    type=values.EXISTING,
    metavar="FILE",
    help="Output of `cudalab profile --json`, or any text, for the section on the profile.",
)
@click.option(
    "--predict",
    "gpu",
    metavar="GPU",
    help="Add the times that `cudalab predict` expects on this GPU, labelled as a model's.",
)
@params.json_option("Write the measurements as JSON, too; - is stdout, if -o names a file.")
@params.sizes_option("Sizes, as for bench. Default: three.")
@params.variants_option("Variants to measure.", default="all")
@params.dist_option
@params.seed_option()
@params.baseline_option("Libraries to measure: numpy (the default), cupy, cub.", ("numpy",))
@params.sweep_option(
    "Launch shapes, as for bench. Default: block or tile sizes of one or two variants, or of "
    "the named ones."
)
@params.device_option()
@params.threads_option()
@params.seconds_option("--time-limit", "Sampling budget for each table.")
@params.quiet_option
def report(**options: Any) -> int:
    """Write the course's lab report: device, method, tables, pictures, samples of the data.

    Conclusions are left blank, under headings that ask for them.
    """
    from cudalab.cli.work.report import report

    return report(**options)
