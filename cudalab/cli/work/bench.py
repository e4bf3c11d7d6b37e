"""What `bench` and `report` do: measure, compare, predict, print, and write files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.bench import choice, comparison, grids, nvbench, suite
from cudalab.bench import files as forms
from cudalab.bench.candidates import opened_alone
from cudalab.bench.document import Document, Merged, Table, as_json, load, merged
from cudalab.bench.measured import COLD, HOT
from cudalab.cli import params
from cudalab.cli.failures import report_errors, within
from cudalab.errors import ExitCode, InputError, UsageError, nearest
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.inputs import Size
from cudalab.output import live, terminal
from cudalab.output.grid import Grid


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
        return params.is_stdout(self.json, self.csv, self.markdown)

    def save(self, document: Document) -> None:
        """Write all samples taken so far; stdout gets them once, at the end."""
        if self.json and not params.is_stdout(self.json):
            save(self.json, as_json(document))

    def finish(self, document: Document) -> None:
        """Write the files that need all samples."""
        if self.json:
            save(self.json, as_json(document))
        if self.csv:
            save(self.csv, forms.csv_text(document))
        if self.markdown:
            save(self.markdown, forms.markdown(document))
        if self.nvbench:
            nvbench.write(self.nvbench, document)

    def draw(self, document: Document) -> int:
        """Draw the plot. A failure is reported and returned: the results matter more."""
        if not self.plot:
            return ExitCode.OK
        from cudalab.bench.charts import draw

        return report_errors(partial(draw, document, self.plot))


def bench(
    *,
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
    """Measure, or compare what was measured."""
    if equivalent is not None and "threshold" in params.options_present():
        params.exclude("--threshold", "--equivalent")
    demand = Demand(threshold) if equivalent is None else Demand(equivalent, equivalence=True)
    if compared:
        params.refuse_measuring("--compare", "compared", "threshold", "equivalent", "plot_path")
        check_plot(plot_path)
        old, new = map(nvbench.load, compared)
        return verdicts(old, new, demand, plot=plot_path)
    if equivalent is not None and not against:
        raise UsageError("--equivalent compares two runs", hint="add --compare or --against")
    before = nvbench.load(against) if against else None
    if kernel:
        kill_after = kill_after or params.BENCH_KILL_AFTER_S
    files = Files(
        json=json_path, csv=csv_path, markdown=markdown_path, nvbench=nvbench_path, plot=plot_path
    )
    work = partial(run, kernel=kernel, before=before, demand=demand, files=files, **options)
    return within(kill_after, work)


def check_plot(plot: Path | None) -> None:
    """Fail before anything is measured or read if the plot cannot be drawn."""
    if plot:
        from cudalab.output.plots import check_target

        check_target(str(plot))


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
    check_plot(files.plot)
    device = choose_device(device)
    if before is not None:
        comparison.check_comparable(before, device)
    selection = request(names, **options)
    choice.check(selection, device)
    with opened_alone(device, threads) as (opened, busy), live.BenchProgress() as progress:
        progress.begin("device")
        measured = suite.Suite(opened, selection, progress, files.save, busy)
        progress.hide()
        show = (lambda _: None) if files.take_stdout else terminal.grid
        if not files.take_stdout:
            terminal.lines(forms.device_lines(measured.document.environment))
        for table in measured.tables():
            progress.hide()
            for grid in grids.of_table(table, measured.document.environment):
                show(grid)
    for grid in grids.summaries(measured.document):
        show(grid)
    if before is not None:
        measured.exit_codes.add(verdicts(before, measured.document, demand, show))
    files.finish(measured.document)
    measured.exit_codes.add(files.draw(measured.document))
    return suite.exit_code(measured.exit_codes)


def request(names: tuple[str, ...], **options: Any) -> choice.Request:
    """Make the request that the options describe. UsageError if no lab can fulfil it."""
    hot, cold = options.pop("hot"), options.pop("cold")
    dtype = options.pop("dtype", None)
    fixed = {
        name: options.pop(name)
        for name in ("sizes", "variants", "kernel", "dist", "seed", "baselines", "time_limit")
    }
    sweep = choice.joined(options.pop("sweep"))
    if sweep and fixed["baselines"]:
        params.exclude("--baseline", "--sweep")
    everything = not names or params.ALL in names
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
    compared = comparison.compare(old, new, demand.percent / 100)
    (show or terminal.grid)(grids.comparison_grid(compared))
    if plot:
        from cudalab.bench.charts import draw_changes

        draw_changes(compared, new.environment, plot)
    missed = not compared.all_same if demand.equivalence else compared.regressions
    return ExitCode.WRONG_ANSWER if missed else ExitCode.OK


# report ------------------------------------------------------------------------------------------


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
    """Measure, or take what was measured, and write the report."""
    from cudalab.bench.report import content, pages

    if output and output.suffix.lower() not in (".md", ".html", ".htm"):
        raise UsageError(f"{output}: a report is a file called .md or .html")
    if params.is_stdout(json_path) and not output:
        raise UsageError("--json -: stdout is for the report", hint="name its file with -o")
    lab = labs.get(name)
    if gpu:
        from cudalab.predict import gpus

        gpus.load(gpu)  # an unknown name is an error before anything is measured
    try:
        text = profile.read_text(encoding="utf-8") if profile else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{profile}: cannot be read as text: {error}") from None
    if measured:
        params.refuse_measuring("--from", "name", "output", "measured", "profile", "gpu")
        run, status = merged([load(path) for path in measured], name), 0
    else:
        document, status = measure(lab, json_path, **options)
        run = Merged(document, [])
    predicted = predict(lab, run.document, gpu) if gpu and run.document.tables else None
    source = content.Source(
        lab=lab, document=run.document, differing=run.differing, profile=text, predicted=predicted
    )
    pages.write(source, output)
    return status


def predict(lab: Lab, document: Document, gpu: str) -> Grid:
    """The predictions for the measured variants at the size that bench measures on a GPU."""
    from cudalab.cli.work.predict import predict_sizes
    from cudalab.predict import show

    first = document.tables[0]
    known = {variant.name for variant in registry.variants(lab)}
    names = dict.fromkeys(row.variant for row in first.rows if row.variant in known)
    if not names:
        raise UsageError("--predict: none of cudalab's own variants is in the results")
    chosen = ",".join(names)
    (prediction,) = predict_sizes(lab, gpu, chosen, None, None, None, 0, dict(first.case))
    return show.grid(prediction)


def measure(
    lab: Lab,
    json_path: Path | None,
    *,
    device: str,
    threads: int | None,
    **options: Any,
) -> tuple[Document, int]:
    """Measure over sizes, then over launch shapes, and join the results in one document."""
    device = choose_device(device)
    measured: list[Table] = []
    document: Document | None = None
    codes: set[int] = set()

    def save_so_far(latest: Document) -> None:
        if json_path and not params.is_stdout(json_path):
            save(json_path, as_json(replace(latest, tables=measured + latest.tables)))

    with opened_alone(device, threads) as (opened, busy), live.BenchProgress() as progress:
        for request in requests(lab, device, opened.features, **options):
            copy = document.environment.copy_gb_per_s if document else None  # measured once
            run = suite.Suite(opened, request, progress, save_so_far, busy, copy_gb_per_s=copy)
            for _ in run.tables():
                pass
            # A launch shape that cannot run is shown with the reason; that is no failure.
            codes |= run.exit_codes & {ExitCode.WRONG_ANSWER} if request.sweep else run.exit_codes
            measured += run.document.tables
            document = replace(run.document, tables=measured)
    assert document is not None
    if params.is_stdout(json_path):
        save(Path("-"), as_json(document))
    return document, suite.exit_code(codes)


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
) -> list[choice.Request]:
    """The measurements for a report: all variants over n, and launch shapes at the last size."""
    case = choice.case_of(lab, case_options)
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
