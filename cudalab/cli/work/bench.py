"""What `bench` does: measure, print, compare with an earlier run, and write files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import choose_device
from cudalab.bench import choice, comparison, grids, nvbench, suite
from cudalab.bench import files as forms
from cudalab.bench.candidates import opened_alone
from cudalab.bench.document import Document, as_json
from cudalab.bench.measured import COLD, HOT
from cudalab.cli import params
from cudalab.cli.failures import report_errors, within
from cudalab.cli.work.compare import Demand, check_plot, demanded, verdicts
from cudalab.errors import ExitCode, UsageError, nearest
from cudalab.formats import save
from cudalab.output import live, terminal


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
    threshold: float,
    equivalent: float | None,
    json_path: Path | None,
    csv_path: Path | None,
    markdown_path: Path | None,
    nvbench_path: Path | None,
    plot_path: Path | None,
    **options: Any,
) -> int:
    """Measure; in a process that is watched, if its time is limited."""
    demand = demanded(threshold, equivalent)
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
    return ExitCode.of_all(measured.exit_codes)


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
