"""The loop of a watcher: a version is saved, judged, and compared with the one before."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from cudalab.errors import CudalabError
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.watch import judging
from cudalab.watch.changes import Version, verdict_of, was_observed
from cudalab.watch.facts import facts_of
from cudalab.watch.judging import Judgement
from cudalab.watch.ladder import place_of, rungs_for
from cudalab.watch.resident import Desk
from cudalab.watch.rungs import Counts, counted


@dataclass
class KernelWatcher:
    """Judges the versions of a kernel file of a lab."""

    lab: Lab
    path: Path
    label: str
    desk: Desk
    _: KW_ONLY
    options: dict[str, Any] = field(default_factory=dict)  # the lab's, as on the command line
    kill_after: float = judging.KILL_AFTER_S
    climbs: bool = True  # whether it looks for the place on the ladder
    on_rungs: Callable[[], None] = field(default=lambda: None)  # called before rungs are counted
    _counts: Counts | None = field(default=None, init=False)

    def judge(self) -> Version:
        """Judge the present version."""
        one = judging.kernel(
            self.lab, self.path, self.label, dict(self.options), self.desk, self.kill_after
        )
        facts = facts_of(one.report, one.costs, self.label)
        place = None
        if self.climbs and one.report.passed and one.costs is not None and one.costs.counts:
            if self._counts is None:
                self.on_rungs()
                self._counts = counted(self.lab, self._case())
            place = place_of(one.costs.counts, self.rungs(), self._counts)
        counts = one.costs.counts if one.costs is not None else {}
        return Version(
            verdict_of(one.report),
            facts,
            right=one.report.passed,
            observed=was_observed(one.report),
            exit_code=int(one.report.exit_code),
            place=place,
            counts=counts,
            notes=_notes(one),
        )

    def headers(self) -> Sequence[Path]:
        """The files that the present version includes, as far as they can be read."""
        try:
            return source.load(self.path, self.label).files
        except CudalabError:
            return ()

    def rungs(self) -> list[Variant]:
        """The rungs of the ladders for the case of this file."""
        return rungs_for(self.lab, self._case())

    def _case(self) -> dict[str, Any]:
        return self.lab.complete(dict(self.options))


def _notes(one: Judgement) -> Sequence[str]:
    """What was not looked at, where a version is right."""
    if not one.report.passed:
        return ()
    if one.costs is None:
        return ("its accesses were not counted",)
    return (f"its accesses were not counted: {one.costs.failed}",) if one.costs.failed else ()
