"""What `bench --compare` does, and `bench --against` at the end: judge how rows have changed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cudalab.bench import comparison, grids, nvbench
from cudalab.bench.document import Document
from cudalab.cli import params
from cudalab.errors import ExitCode
from cudalab.output import terminal
from cudalab.output.grid import Grid


@dataclass(frozen=True)
class Demand:
    """A demand on a comparison: no row is slower by more, or no row has changed by more."""

    percent: float
    equivalence: bool = False


def demanded(threshold: float, equivalent: float | None) -> Demand:
    """The demand of the options, of which only one may be on the command line."""
    if equivalent is None:
        return Demand(threshold)
    if "threshold" in params.options_present():
        params.exclude("--threshold", "--equivalent")
    return Demand(equivalent, equivalence=True)


def compare(old: Path, new: Path, demand: Demand, plot: Path | None) -> int:
    """Compare two files without measuring."""
    params.refuse_measuring("--compare", "compared", "threshold", "equivalent", "plot_path")
    check_plot(plot)
    return verdicts(nvbench.load(old), nvbench.load(new), demand, plot=plot)


def check_plot(plot: Path | None) -> None:
    """Fail before anything is measured or read if the plot cannot be drawn."""
    if plot:
        from cudalab.output.plots import check_target

        check_target(str(plot))


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
