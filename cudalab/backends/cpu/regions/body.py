"""The text of a function that is written for a block of threads.

A kernel `k(int* out)` becomes `k_cudalab_all(Block&, int* out)`, which runs a whole block. A device
function in which threads meet becomes `f_cudalab_all`, or `f_cudalab_some` for the threads of a
mask; for a parameter that differs from thread to thread it takes an array. `Body` collects a region
until `flush` writes it as a work-item loop; the passes that write are handed it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cudalab.backends.cpu.regions import in_step, lambdas, parts
from cudalab.backends.cpu.regions.analysis import Analysis, Facts
from cudalab.backends.cpu.regions.functions import Function, Parameter
from cudalab.backends.cpu.regions.parts import Home, Loop, Part, Piece, Region, Writer
from cudalab.backends.cpu.regions.strides import Strides
from cudalab.backends.cpu.regions.syntax import LOOPS, Statement
from cudalab.backends.cpu.regions.uniformity import Level
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, Words, calls
from cudalab.language.tokens import Token, spaced, texts

_BLOCK = ["blockIdx", ".", "x", "*"]


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
        self.leaving = _has_early_returns(self.facts) and not all_stay
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
        call = in_step.arguments(self.function, "cudalab_B")
        name = in_step.LEAVING if self.all_stay else in_step.ONE_BY_ONE
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
            raise NotCoveredError(f"{call.word.place}: {call.word.text} in a region")
        each = each or (f"CUDALAB_SOME({self.mask})" if self.mask else "CUDALAB_EACH")
        names = self.needed(region.names)
        loops = bool(names & self.analysis.with_loops)
        near = loops and any(self.homes[name].nearby for name in names & self.homes.keys())
        arrays = (self.levels.arrays - self.homes.keys()) | self.analysis.with_arrays
        private = near or bool(region.names & arrays)  # for which all threads use the same memory
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

    def values(self, name: str, kind: str) -> None:
        """Declare an array with a value for each thread."""
        self.writer.add(f"CUDALAB_VALUES({name}, {self.max_threads}, {kind});")

    def keep(self, name: str, kind: str, pointed: str = "") -> str:
        """Declare a context array; return its name."""
        home = f"{name}_cudalab_{self.number()}"
        self.values(home, kind)
        self.writer.add(f"auto& {name} = {pointed}{home}[0]; (void){name};")
        binding = f"auto& {name} = {pointed}{home}[cudalab_t];"
        self.homes[name] = Home([binding], is_array=not pointed)
        return home


def _has_early_returns(facts: Facts) -> bool:
    """Whether threads may leave a function while others go on to meet in it."""
    if not facts.meets or facts.in_step:
        return False
    last = facts.statements[-1] if facts.statements else None
    return any(
        _returns(facts, each, Level.BLOCK)
        for each in facts.statements
        if each is not last or facts.unit.is_collective(each.words)
    )


def _returns(facts: Facts, statement: Statement, control: Level) -> bool:
    if statement.kind == "simple":
        return statement.words[0].text == "return" and control > Level.BLOCK
    if statement.kind == "other":
        return "return" in texts(statement.words)
    level = max(control, facts.levels.of(statement.condition))
    is_loop = statement.kind in LOOPS
    if is_loop and not facts.unit.is_collective(statement.words):
        level = Level.THREAD
    return any(_returns(facts, part, level) for part in statement.parts)


def definition(body: Body, *, leaving: bool = False) -> str:
    """The definition of the body's function, or of the one for blocks of which threads leave."""
    function = body.function
    writer = body.writer
    if body.facts.in_step:
        writer.add(in_step.one_by_one(function))
    template = function.template
    writer.add(without_defaults(template) if function.is_kernel else template)
    often = body.analysis.is_repeated(function)
    writer.add("" if function.specialized else "static", "CUDALAB_ONCE" if often else "inline")
    name = f"{function.name}_cudalab_{in_step.LEAVING}" if leaving else ""
    name = name or body.analysis.name_for(function, body.masked)
    writer.add(f"void {name}", function.specialized)
    writer.add("(", _parameters(body), ") { CUDALAB_ENTER ;")
    for width in widths(function):
        writer.add(f"::cudalab::assume_no_wrap(blockIdx.x, {width});")
    if body.leaving:
        before = "cudalab_mask" if body.masked else "cudalab_B"
        writer.add(f"::cudalab::Mask cudalab_live({before});")
        if function.is_kernel:
            writer.add("cudalab_B.live = &cudalab_live;")
        if body.masked:
            body.masks = ["cudalab_live"]
    for parameter in function.parameters:
        _begin_parameter(body, parameter)
    if body.facts.in_step:
        # Threads of several rows that know no row change the same elements; alike, they are one.
        unit = body.facts.unit
        several = unit.is_flat(function) and not in_step.are_alike(unit, function)
        alike = "|| !cudalab_B.flat()" if several else ""
        writer.add(f"if (CUDALAB_RAGGED {alike}) {{ {body.otherwise} }}")
    body.statements(body.facts.statements, last=True)
    writer.add("}\n")
    return writer.text()


def _parameters(body: Body) -> list[Piece]:
    """The declarations of the parameters."""
    function = body.function
    pieces: list[Piece] = [
        "" if function.is_kernel else "const",
        "::cudalab::Block& cudalab_B",
    ]
    if body.masked:
        pieces += [", const ::cudalab::Mask& cudalab_mask"]
    if not function.is_kernel and not function.returns_nothing:
        pieces += [",", *function.returns, "* cudalab_ret"]
    for parameter in function.parameters:
        pieces += [",", *_parameter(body, parameter)]
    return pieces


def _is_kept(body: Body, parameter: Parameter) -> bool:
    """Whether threads change a parameter that is passed once for all of them."""
    uniform = body.function.is_kernel or body.facts.is_uniform_parameter(parameter.name)
    changes = parameter.name in body.facts.changed | body.levels.escaping
    uniform &= parameter.name not in body.facts.lambda_parameters
    return uniform and changes and not body.facts.is_scalar_name(parameter.name)


def _parameter(body: Body, parameter: Parameter) -> list[Piece]:
    """The declaration of a parameter."""
    name = parameter.name
    if body.function.is_kernel or body.facts.is_uniform_parameter(name):
        has_default = parameter.default and not body.function.is_kernel
        default: list[Piece] = ["=", *parameter.default] if has_default else []
        words: list[Piece] = [*parameter.words]
        if _is_kept(body, parameter):
            words = [
                word._replace(text=f"{name}_cudalab_0") if word.text == name else word
                for word in parameter.words
            ]
        return [*words, *default]
    return [handed_over(parameter)]


def _begin_parameter(body: Body, parameter: Parameter) -> None:
    """Bind a parameter of each thread for the regions."""
    name, facts = parameter.name, body.facts
    if _is_kept(body, parameter):
        home = body.keep(name, f"::cudalab::Kept<decltype({name}_cudalab_0)>")
        body.writer.add(
            f"CUDALAB_EACH {{ CUDALAB_THREAD ::cudalab::construct<::cudalab::Kept<decltype("
            f"{name}_cudalab_0)>>({home} + cudalab_t, {name}_cudalab_0); }}"
        )
    elif name in facts.lambda_parameters:
        body.writer.add(lambdas.known(name))
        body.homes[name] = Home([lambdas.binding(name)])
    elif not body.function.is_kernel and not facts.is_uniform_parameter(name):
        pointed = "*" if parameter.is_reference else ""
        binding: list[Piece] = [f"auto& {name} = {pointed}{name}_cudalab_p[cudalab_t];"]
        body.homes[name] = Home(binding, is_array=not pointed)
        if facts.is_nearby(name):
            body.homes[name].nearby = parts.nearby(name, f"*{name}_cudalab_p[cudalab_t]")
        body.writer.add(f"auto& {name} = {pointed}{name}_cudalab_p[0]; (void){name};")


def widths(function: Function) -> list[str]:
    """The widths of blocks in a function's text, as in `blockIdx.x * 16`."""
    words, constants = function.body, texts(function.template)
    starts = [i for i in range(len(words) - 4) if texts(words[i : i + 4]) == _BLOCK]
    factors = [words[i + 4] for i in starts]
    return sorted(
        {each.text for each in factors if each.kind == "number" or each.text in constants}
    )


def handed_over(parameter: Parameter) -> str:
    """The declaration of a pointer to a parameter's values, one for each thread."""
    name = f"{parameter.name}_cudalab_p"
    to_array = f"( & {parameter.name} )"
    if to_array in spaced(parameter.words):
        return spaced(parameter.words).replace(to_array, f"(**{name})")
    return f"{parts.type_of(parameter)}* {name}"


def without_defaults(template: Words) -> Words:
    """The words `template <...>` without default arguments."""
    kept: Words = []
    depth, skipping = 0, False
    for word in template:
        depth -= word.text in (">", ")", "}")
        skipping = (skipping or (depth == 1 and word.text == "=")) and not (
            depth == 0 or (depth == 1 and word.text == ",")
        )
        if not skipping:
            kept.append(word)
        depth += word.text in ("<", "(", "{")
    return kept


# All functions ------------------------------------------------------------------------------------


def written_for(analysis: Analysis, kernels: list[Function], passes: Passes) -> str:
    """The text of some kernels and of every function that they reach."""
    unit = analysis.unit
    bodies = _bodies(analysis, kernels, passes)
    # What is shared in a function is one variable, so there is one function that has it.
    twice = {name for name, masked in bodies if masked and (name, False) in bodies}
    if twice := {name for name in twice if unit.has_shared(name)}:
        analysis.always_masked = twice
        bodies = _bodies(analysis, kernels, passes)
    pieces = []
    for function in _callees_first(analysis):
        if function.name in unit.placed:
            pieces.append(_placed(analysis, function))
        if not function.specialized:
            pieces += [bodies[key] for key in sorted(bodies) if key[0] == function.name]
    return "".join(pieces)


def _callees_first(analysis: Analysis) -> list[Function]:
    """The functions to write, callees before callers, otherwise in the order of the text."""
    ordered: dict[Function, None] = {}
    entered: set[Function] = set()

    def visit(function: Function) -> None:
        if function not in entered:
            entered.add(function)
            for called in analysis.unit.called_by(function)[1:]:
                visit(called)
            ordered[function] = None

    for function in analysis.unit.functions:
        if function in analysis.reached:
            visit(function)
    return list(ordered)


def _bodies(
    analysis: Analysis, kernels: list[Function], passes: Passes
) -> dict[tuple[str, bool], str]:
    """The text of each function, for all threads of a block or for those of a mask."""
    needed = {(kernel.name, False) for kernel in kernels}
    bodies: dict[tuple[str, bool], str] = {}
    refused: list[NotCoveredError] = []
    tried: set[tuple[str, bool]] = set()
    while missing := sorted(needed - tried):
        tried |= needed
        for name, masked in missing:
            bodies[name, masked] = ""
            for function in analysis.unit.by_name[name]:  # and its specializations
                body = Body(analysis, function, passes, masked=masked)
                twice = body.leaving and in_step.begins_with_guards(analysis.unit, function)
                try:
                    bodies[name, masked] += definition(body, leaving=twice)
                    if twice:
                        needed |= body.called
                        body = Body(analysis, function, passes, masked=masked, all_stay=True)
                        bodies[name, masked] += definition(body)
                except NotCoveredError as reason:
                    reason.function = name
                    refused.append(reason)
                needed |= body.called
    if refused:
        refused[0].more = refused[1:]
        raise refused[0]
    return bodies


def _placed(analysis: Analysis, function: Function) -> str:
    """A copy of a function that takes threadIdx and its block as arguments."""
    writer = Writer()
    words = texts(function.head)
    opening = words.index("(", words.index(function.name))
    head = list(function.head)
    head[opening - 1] = head[opening - 1]._replace(text=f"{function.name}_cudalab_at")
    more = "const uint3 threadIdx , const ::cudalab::Block& cudalab_B" + (
        " ," if function.parameters else ""
    )
    writer.add(head[: opening + 1], more, head[opening + 1 :], "{ CUDALAB_HERE_TOO ;")
    writer.add(analysis.unit.handing_over(function.body), "}\n")
    return writer.text()
