"""What a command is doing, on stderr while it does it: lines and bars that disappear."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cudalab.output import notes


def _stderr() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, markup=False)


class Waiting:
    """A line on a terminal's stderr: what the command is doing, and for how long."""

    def __init__(self) -> None:
        self._live = Progress(
            TextColumn("{task.description} ...", markup=False),
            TimeElapsedColumn(),
            console=_stderr(),
            transient=True,
            refresh_per_second=4,
        )
        self._task = self._live.add_task("")

    def show(self, what: str) -> None:
        """Show what is done now."""
        self._live.update(self._task, description=what)
        if not self._live.live.is_started:
            self._live.start()
            self._live.console.show_cursor()  # a kernel that crashes could not bring it back

    def end(self) -> None:
        """Remove the line."""
        self._live.stop()


class BenchProgress:
    """The progress of bench on stderr: a bar on a terminal, lines elsewhere."""

    def __init__(self) -> None:
        self._console = _stderr()
        self._live: Progress | None = None
        self._console.quiet = notes.is_silent()
        on_terminal = self._console.file.isatty()  # FORCE_COLOR makes no terminal of a pipe
        if on_terminal and not self._console.quiet:
            self._live = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                TextColumn("{task.fields[estimate]}", markup=False),
                console=self._console,
                transient=True,
                refresh_per_second=4,  # must not disturb the measurement
            )
            self._task = self._live.add_task("", total=1.0, estimate="")

    def __enter__(self) -> Self:
        if self._live:
            notes.occupy(True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hide()
        notes.occupy(False)

    def begin(self, what: str) -> None:
        """Show what is measured next."""
        if self._live:
            lab = what.partition(":")[0]  # a line has no room for more
            self._live.reset(self._task, description=lab, completed=0, estimate="")
            self._live.start()
        else:
            self._console.print(Text(what), soft_wrap=True)

    def update(self, done: float, estimate: str) -> None:
        """Show the progress of the table and the current estimate."""
        if self._live:
            self._live.update(self._task, completed=done, estimate=estimate)

    def step(self, what: str) -> None:
        """Show a step within the table."""
        if self._live:
            self._live.update(self._task, estimate=what)
        else:
            self._console.print(Text(f"  {what}"), soft_wrap=True)

    def hide(self) -> None:
        """Clear the bar, so that a table can be printed."""
        if self._live:
            self._live.stop()
