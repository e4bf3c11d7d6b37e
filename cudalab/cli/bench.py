"""The command `bench`: its options and its output. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.cli.failures import report_errors, within
from cudalab.cli.options import (
    ALL,
    EXISTING,
    MAX_SIZES,
    NEW,
    OUT,
    CaseCommand,
    Choice,
    FiniteRange,
    Names,
    Sizes,
    device_option,
    dist_option,
    exclude,
    is_stdout,
    json_option,
    lines,
    options_present,
    quiet_option,
    refuse_measuring,
    seconds_option,
    seed_option,
    threads_option,
    variants_option,
)
from cudalab.errors import ExitCode, UsageError, nearest

if TYPE_CHECKING:
    from cudalab.bench.choice import Request
    from cudalab.bench.document import Document
    from cudalab.output.grid import Grid

BASELINES = ("numpy", "cupy", "cub")
KILL_AFTER_S = 600.0  # for a student's file, whose kernel may never end
CASE_HELP = (
    "With a single lab, its own options (--op, --rows, --aat, --bins, ...) choose the case: "
    "`cudalab bench LAB --help`."
)


class SweepOption(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.2
    """NAME=VALUE,VALUE; 32,64,…,1024 continues the series. See `choice.combinations`."""

    name = "sweep"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, list[str]]:
        """Split the values, and fill in those that dots stand for."""
        name, equals, text = value.partition("=")
        values = [part.strip() for part in text.split(",")]
        if not (re.fullmatch(r"[A-Za-z_]\w*", name) and equals and all(values)):
            self.fail(f"{value!r} is not NAME=VALUE,VALUE,...", param, ctx)
        for dots in ("…", "..."):
            if dots in values:
                values = self._filled(values, values.index(dots), param, ctx)
        return name, list(dict.fromkeys(values))

    def _filled(
        self,
        values: list[str],
        dots: int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> list[str]:
        around = [*values[max(dots - 2, 0) : dots], *values[dots + 1 : dots + 2]]
        if len(around) != 3 or not all(text.isdecimal() for text in around):
            self.fail("two numbers stand before the dots and one after them", param, ctx)
        one, two, last = map(int, around)
        steps = [two]
        doubles = one > 0 and two % one == 0 and two // one > 1 and (last // two) * two == last
        factor = two // one if doubles else 0
        while steps[-1] < last:
            steps.append(steps[-1] * factor if factor else steps[-1] + max(two - one, 1))
            if len(steps) > MAX_SIZES:
                break
        if steps[-1] != last:
            self.fail(f"{one}, {two}, ... does not come to {last}", param, ctx)
        return [*values[: dots - 1], *map(str, steps), *values[dots + 2 :]]


@click.command(
    "bench",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab bench",
                "cudalab bench reduce --variants all --n 2^16:2^28:x4 --baseline numpy,cupy",
                "cudalab bench reduce --op max --rows --kernel my.cu --json new.json",
                "cudalab bench matmul --variants tiled --sweep TILE=8,16,32",
                "cudalab bench reduce --variants all \\",
                "    --sweep THREADS_PER_BLOCK=32,64,...,1024 \\",
                "    --sweep ITEMS_PER_BLOCK=~THREADS_PER_BLOCK",
                "cudalab bench --compare old.json new.json",
            ),
            CASE_HELP,
        ]
    ),
)
@click.argument("names", nargs=-1, type=Choice([*labs.names(), ALL]), metavar="[LAB...|all]")
@variants_option(
    "all (that compute the case), or comma-separated names. Default: the first rung of the ladder "
    "and the device's default."
)
@click.option(
    "--n",
    "sizes",
    type=Sizes(),
    metavar="SIZES",
    help="Sizes such as 1Mi, 1e6, 2^20 or 300x200, comma-separated; 2^16:2^28:x4 is a range. "
    "Default: one size for each lab and device.",
)
@click.option(
    "--dtype",
    metavar="TYPE",
    help="Element type, for the labs that have one. Default: each lab's own.",
)
@dist_option
@seed_option
@device_option("auto: the GPU if there is one. Times on the CPU device are emulated.")
@threads_option
@click.option(
    "--baseline",
    "baselines",
    type=Names(BASELINES),
    default=(),
    metavar="NAMES",
    help="Libraries to measure in the same run: numpy, cupy (the vendor's libraries), cub.",
)
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Measure your own file as well.")
@click.option(
    "--sweep",
    type=SweepOption(),
    multiple=True,
    metavar="DEFINE=VALUES",
    help="Values of a define in the variant's header: 32,64,...,1024; 2*OTHER; ~OTHER scales with "
    "OTHER. Several sweeps form a grid.",
)
@click.option(
    "--hot", is_flag=True, help="Leave the caches as the previous run left them: no flush."
)
@click.option("--cold", is_flag=True, help="With --hot: measure both, side by side.")
@seconds_option(
    "--time-limit", "Sampling budget for each table, never a failure. Default: 1 to 10."
)
@seconds_option(
    "--kill-after",
    f"Abort the run after this time. Default: {KILL_AFTER_S:g} with --kernel, else none.",
)
@json_option("Write all samples as JSON; - is stdout, which then has no tables.")
@click.option("--csv", "csv_path", type=OUT, metavar="FILE", help="Write one line for each row.")
@click.option(
    "--markdown", "markdown_path", type=OUT, metavar="FILE", help="Write the tables as Markdown."
)
@click.option(
    "--plot",
    "plot_path",
    type=NEW,
    metavar="FILE.svg|png|pdf",
    help="Draw time over n, and ladders; with --compare, the changes. .png and .pdf need the "
    "extra `plot`.",
)
@click.option(
    "--nvbench",
    "nvbench_path",
    type=NEW,
    metavar="FILE",
    help="Write NVBench's JSON, and the samples into the folder FILE-bin.",
)
@click.option("--against", type=EXISTING, metavar="OLD.json", help="Compare with an earlier run.")
@click.option(
    "--compare",
    "compared",
    type=EXISTING,
    nargs=2,
    metavar="OLD.json NEW.json",
    help="Compare two files, ours or NVBench's, without measuring.",
)
@click.option(
    "--threshold",
    type=FiniteRange(min=0),
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="Ignore smaller changes; a regression exits with 3.",
)
@click.option(
    "--equivalent",
    type=FiniteRange(min=0, min_open=True),
    metavar="PERCENT",
    help="Demand that no row changes by more, in either direction: exit with 3 unless this is "
    "shown for all.",
)
@quiet_option
def bench(
    *,
    names: tuple[str, ...],
    kernel: Path | None,
    kill_after: float | None,
    against: Path | None,
    compared: tuple[Path, Path] | None,
    threshold: float,
    equivalent: float | None,
    json_path: Path | None,
    csv_path: Path | None,
    markdown_path: Path | None,
    nvbench_path: Path | None,
    plot_path: Path | None,
    **options: Any,
) -> int:
    """Measure variants side by side; every answer is verified before it is timed."""
    from cudalab.bench import nvbench

    if equivalent is not None and "threshold" in options_present():
        exclude("--threshold", "--equivalent")
    demand = Demand(threshold) if equivalent is None else Demand(equivalent, equivalence=True)
    if compared:
        refuse_measuring("--compare", "compared", "threshold", "equivalent", "plot_path")
        check_plot(plot_path)
        old, new = map(nvbench.load, compared)
        return verdicts(old, new, demand, plot=plot_path)
    if equivalent is not None and not against:
        raise UsageError("--equivalent compares two runs", hint="add --compare or --against")
    before = nvbench.load(against) if against else None
    if kernel:
        kill_after = kill_after or KILL_AFTER_S
    files = Files(
        json=json_path,
        csv=csv_path,
        markdown=markdown_path,
        nvbench=nvbench_path,
        plot=plot_path,
    )
    work = partial(
        run,
        names=names,
        kernel=kernel,
        before=before,
        demand=demand,
        files=files,
        **options,
    )
    return within(kill_after, work)


def check_plot(plot: Path | None) -> None:
    """Fail before anything is measured or read if the plot cannot be drawn."""
    if plot:
        from cudalab.output.plots import check_target

        check_target(str(plot))


@dataclass(frozen=True)
class Demand:
    """A demand on a comparison: no row is slower by more, or no row has changed by more."""

    percent: float
    equivalence: bool = False


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files to which results are written."""

    json: Path | None
    csv: Path | None
    markdown: Path | None
    nvbench: Path | None
    plot: Path | None

    @property
    def take_stdout(self) -> bool:
        """Whether one of them is stdout, which then holds nothing else."""
        return is_stdout(self.json, self.csv, self.markdown)

    def save(self, document: Document) -> None:
        """Write all samples taken so far; stdout gets them once, at the end."""
        if not is_stdout(self.json):
            self._save(document)

    def _save(self, document: Document) -> None:
        from cudalab.bench.document import as_json
        from cudalab.formats import save

        if self.json:
            save(self.json, as_json(document))

    def finish(self, document: Document) -> None:
        """Write the files that need all samples."""
        from cudalab.bench import files, nvbench
        from cudalab.formats import save

        self._save(document)
        if self.csv:
            save(self.csv, files.csv_text(document))
        if self.markdown:
            save(self.markdown, files.markdown(document))
        if self.nvbench:
            nvbench.write(self.nvbench, document)

    def draw(self, document: Document) -> int:
        """Draw the plot. A failure is reported and returned: the results matter more."""
        if not self.plot:
            return ExitCode.OK
        from cudalab.bench.charts import draw

        return report_errors(partial(draw, document, self.plot))


def run(
    *,
    names: tuple[str, ...],
    device: str,
    threads: int | None,
    files: Files,
    before: Document | None,
    demand: Demand,
    **options: Any,
) -> int:
    """Measure, and print each table as soon as it is complete."""
    from cudalab.bench import grids
    from cudalab.bench.candidates import opened_alone
    from cudalab.bench.choice import check
    from cudalab.bench.comparison import check_comparable
    from cudalab.bench.files import device_lines
    from cudalab.bench.suite import Suite, exit_code
    from cudalab.output import live, terminal

    check_plot(files.plot)
    device = choose_device(device)
    if before is not None:
        check_comparable(before, device)
    selection = request(names, **options)
    check(selection, device)
    with opened_alone(device, threads) as (opened, busy), live.BenchProgress() as progress:
        progress.begin("device")
        suite = Suite(opened, selection, progress, files.save, busy)
        progress.hide()
        show = (lambda _: None) if files.take_stdout else terminal.grid
        if not files.take_stdout:
            terminal.lines(device_lines(suite.document.environment))
        for table in suite.tables():
            progress.hide()
            for grid in grids.of_table(table, suite.document.environment):
                show(grid)
    for grid in grids.summaries(suite.document):
        show(grid)
    if before is not None:
        suite.exit_codes.add(verdicts(before, suite.document, demand, show))
    files.finish(suite.document)
    suite.exit_codes.add(files.draw(suite.document))
    return exit_code(suite.exit_codes)


def request(names: tuple[str, ...], **options: Any) -> Request:
    """Make the request that the options describe. UsageError if no lab can fulfil it."""
    from cudalab.bench import choice
    from cudalab.bench.measured import COLD, HOT

    hot, cold = options.pop("hot"), options.pop("cold")
    dtype = options.pop("dtype", None)
    fixed = {
        name: options.pop(name)
        for name in ("sizes", "variants", "kernel", "dist", "seed", "baselines", "time_limit")
    }
    sweep = choice.joined(options.pop("sweep"))
    if sweep and fixed["baselines"]:
        exclude("--baseline", "--sweep")
    everything = not names or ALL in names
    selected = labs.names() if everything else tuple(dict.fromkeys(names))
    if fixed["kernel"] and len(selected) != 1:
        raise UsageError("--kernel is a file of one lab", hint="cudalab bench LAB --kernel FILE.cu")
    chosen_labs = [labs.get(name) for name in selected]
    if dtype is not None:
        types = dict.fromkeys(each for lab in chosen_labs for each in lab.axes.get("dtype", ()))
        chosen_labs = [lab for lab in chosen_labs if dtype in lab.axes.get("dtype", ())]
        if not chosen_labs:
            raise UsageError(
                f"--dtype {dtype}: {', '.join(selected)}: no such type",
                hint=nearest(dtype, types) if types else None,
            )
    for lab in chosen_labs:
        lab.distribution(fixed["dist"])
    values: Mapping[str, Any] = options | ({"dtype": dtype} if dtype is not None else {})
    return choice.Request(
        labs=[(lab, choice.case_of(lab, values)) for lab in chosen_labs],
        sweep=sweep,
        caches=(COLD, HOT) if hot and cold else (HOT,) if hot else (COLD,),
        time_limit_s=fixed.pop("time_limit"),
        **fixed,
    )


def verdicts(
    old: Document,
    new: Document,
    demand: Demand,
    show: Callable[[Grid], None] | None = None,
    plot: Path | None = None,
) -> int:
    """Show the change of each row; return 3 if the new run is not as it must be."""
    from cudalab.bench.comparison import compare
    from cudalab.bench.grids import comparison_grid
    from cudalab.output import terminal

    comparison = compare(old, new, demand.percent / 100)
    (show or terminal.grid)(comparison_grid(comparison))
    if plot:
        from cudalab.bench.charts import draw_changes

        draw_changes(comparison, new.environment, plot)
    missed = not comparison.all_same if demand.equivalence else comparison.regressions
    return ExitCode.WRONG_ANSWER if missed else ExitCode.OK
