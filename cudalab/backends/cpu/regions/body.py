"""A function that is being written for a block of threads: what the passes know of it so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cudalab.backends.cpu.regions.analysis import Analysis
from cudalab.backends.cpu.regions.in_step import LEAVING, ONE_BY_ONE, arguments
from cudalab.backends.cpu.regions.parts import Home, Loop, Part, Region
from cudalab.backends.cpu.regions.strides import Strides
from cudalab.backends.cpu.regions.syntax import Function, Statement
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, calls
from cudalab.backends.cpu.regions.writer import Piece, Writer
from cudalab.language.tokens import Token


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Passes in their order; those that write are handed the `Body` of a function."""

    # NotCoveredError for a kernel that keeps its fibers; the first of the functions is the kernel.
    refuse: Sequence[Callable[[Unit, list[Function]], None]]
    # The statements of a function, in a form in which later passes meet fewer cases.
    normalize: Sequence[Callable[[Unit, Function], list[Statement]]]
    # The parts of statements between which threads meet; whether they end the function.
    cut: Callable[[Any, list[Statement], bool], list[Part]]
    write: Mapping[str, Callable[[Any, Part], None]]  # by the kind of a part


class Body:
    """The text of one function for all threads of a block, or for those of a mask."""

    def __init__(
        self,
        analysis: Analysis,
        function: Function,
        passes: Passes,
        *,
        masked: bool,
        all_stay: bool = False,
    ) -> None:
        """Prepare to write `function`; if `masked`, it takes a mask of its threads.

        If `all_stay`, it is for blocks of which no thread leaves by a guard.
        """
        self.analysis, self.unit = analysis, analysis.unit
        self.function, self.facts = function, analysis.facts[function]
        self.passes = passes
        self.levels = self.facts.levels
        self.strides = Strides(self.facts)
        self.masked = masked
        self.all_stay = all_stay
        self.leaving = analysis.has_early_returns(function) and not all_stay
        self.writer = Writer()
        self.region = Region()
        self.homes: dict[str, Home] = {}
        # Each within the one before; none: all threads.
        self.masks = ["cudalab_mask"] if masked else []
        self.loops: list[Loop] = []
        self.count = 0
        self.max_threads = f"({function.bounds})" if function.is_kernel else "1024"
        self.called: set[tuple[str, bool]] = set()
        self.shared: list[str] = []  # the sizes of the kernel's shared variables

    @property
    def mask(self) -> str:
        """The name of the mask of the threads that are here; empty if all are."""
        return self.masks[-1] if self.masks else ""

    @property
    def otherwise(self) -> str:
        """Text that runs the kernel where not all threads of a block pass its guards."""
        call = arguments(self.function, "cudalab_B")
        name = LEAVING if self.all_stay else ONE_BY_ONE
        return f"return {self.function.name}_cudalab_{name}{call});"

    def number(self) -> int:
        """A number that no other name in this function has."""
        self.count += 1
        return self.count

    def statements(self, statements: list[Statement], *, last: bool = False) -> None:
        """Write statements between which threads may meet; `last`: none follow in the function."""
        for part in self.passes.cut(self, statements, last):
            self.passes.write[part.kind](self, part)
        self.flush(last=last)

    def flush(self, *, last: bool = False, each: str = "") -> None:
        """Write the collected region as a work-item loop over all threads, or over `each`."""
        region, self.region = self.region, Region()
        if region.empty:
            return
        words = [each for each in region.pieces if isinstance(each, Token)]
        for call in calls(words, self.unit.meeting):  # whose threads would not wait
            raise NotCoveredError(f"{words[call.name].place}: {words[call.name].text} in a region")
        each = each or (f"CUDALAB_SOME({self.mask})" if self.mask else "CUDALAB_EACH")
        names = self.needed(region.names)
        loops = bool(names & self.analysis.with_loops)
        near = loops and any(self.homes[name].nearby for name in names & self.homes.keys())
        private = near or self._has_private_arrays(region.names)
        current = self.analysis.needs_current(names)  # which is one variable
        if private or current or region.ordered or region.leaves:
            for kind in ("SOME", "EACH", "LANES"):
                each = each.replace(kind, f"{kind}_ORDERED")
        elif self.facts.in_step and each == "CUDALAB_EACH":
            each = "CUDALAB_EACH_ROW"
        self.writer.add(each, "{ CUDALAB_THREAD")
        if current:
            self.writer.add("::cudalab::set_thread(threadIdx, (unsigned)cudalab_t);")
        label = f"cudalab_next_{region.number}: ;" if region.number else ""
        apart = private and loops
        bindings = self.bindings(names, region.declared, nearby=near)
        self.writer.add("[&]() CUDALAB_APART {" if apart else "", bindings, "{")
        pieces = self.strides.with_neighbours(region.pieces)
        self.writer.add(pieces, "}", label, "}(); }" if apart else "}")
        if region.leaves and not last:
            self._after_leaving()

    def _after_leaving(self) -> None:
        """Remove the threads that have left from all masks."""
        if self.leaving and not self.masks:
            self.masks = ["cudalab_live"]
        for around, mask in pairwise(self.masks):
            self.writer.add(f"{mask}.keep({around});")
        if self.masks == ["cudalab_live"] and not self.loops:
            self.writer.add("if (!cudalab_live.any()) return;")

    def needed(self, names: set[str]) -> set[str]:
        """The names, and those that the bindings of a thread's own values need."""
        needed = set(names)
        for name in reversed(self.homes):
            if name in needed:
                needed |= self.homes[name].needs
        return needed

    def bindings(self, needed: set[str], declared: set[str], *, nearby: bool) -> list[Piece]:
        """The declarations that bind a thread's values in a region."""
        bound: list[Piece] = []
        for name, home in self.homes.items():
            if name in needed and name not in declared:
                bound += (home.nearby if nearby else []) or home.binding
        return bound

    def _has_private_arrays(self, names: set[str]) -> bool:
        """Whether a thread has arrays within a region; all threads then use the same memory."""
        if names & self.levels.arrays and any(
            name not in self.homes for name in names & self.levels.arrays
        ):
            return True
        return bool(names & self.analysis.with_arrays)

    def keep(self, name: str, kind: str, pointed: str = "") -> str:
        """Declare a context array; return its name."""
        home = f"{name}_cudalab_{self.number()}"
        self.writer.add(f"CUDALAB_VALUES({home}, {self.max_threads}, {kind});")
        self.writer.add(f"auto& {name} = {pointed}{home}[0]; (void){name};")
        binding = f"auto& {name} = {pointed}{home}[cudalab_t];"
        self.homes[name] = Home([binding], is_array=not pointed)
        return home
