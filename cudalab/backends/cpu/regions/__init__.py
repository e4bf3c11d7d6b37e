"""Kernels as loops over the threads of a block, by rewriting their text.

A kernel is cut where its threads meet: at barriers and warp operations. What lies between two cuts
is a region, a loop over the threads that the compiler can vectorise. All typing is left to the
compiler. A kernel about which anything is unclear keeps its fibers; the reason is recorded.

`PASSES` has the order, in the words of the literature. A *parallel region* is what threads run
through without waiting for each other; it becomes a *work-item loop*, which goes through the
threads of a block or of a mask. *Uniformity* says which values all threads of a block share. A
variable of each thread that lives across a barrier is kept in a *context array*. A loop in which
threads meet has *implicit barriers* around its rounds.
"""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType

from cudalab.backends.cpu.regions.analysis import Analysis
from cudalab.backends.cpu.regions.barriers import barrier, call, step
from cudalab.backends.cpu.regions.blame import Place, places_of
from cudalab.backends.cpu.regions.body import Body, Passes
from cudalab.backends.cpu.regions.conditional import branched
from cudalab.backends.cpu.regions.control import construct
from cudalab.backends.cpu.regions.counters import own_counters
from cudalab.backends.cpu.regions.cuts import cut
from cudalab.backends.cpu.regions.definition import definition
from cudalab.backends.cpu.regions.gathering import gathered
from cudalab.backends.cpu.regions.given import Given
from cudalab.backends.cpu.regions.guards import begins_with_guards, settle_guards
from cudalab.backends.cpu.regions.hidden import note_meetings_elsewhere, refuse_hidden_meetings
from cudalab.backends.cpu.regions.in_step import ALONE, settle_loops
from cudalab.backends.cpu.regions.instances import hand_over_numbers
from cudalab.backends.cpu.regions.lambdas import named
from cudalab.backends.cpu.regions.names import renamed
from cudalab.backends.cpu.regions.parallel_regions import once, plain
from cudalab.backends.cpu.regions.programs import never_waits, refuse_in_program
from cudalab.backends.cpu.regions.rows import are_alike
from cudalab.backends.cpu.regions.syntax import Function
from cudalab.backends.cpu.regions.unit import Unit, parsed
from cudalab.backends.cpu.regions.waiting import refuse_waiting
from cudalab.backends.cpu.regions.words import NotCoveredError, read, spaces, texts
from cudalab.backends.cpu.regions.writer import Writer

PASSES = Passes(
    refuse=(
        refuse_in_program,  # what only fibers do, as host code may see how its kernels run
        refuse_hidden_meetings,  # barriers in methods, operators and pointers
        refuse_waiting,  # loops that end when another thread has changed memory
        settle_guards,  # branches with barriers up to the end are guards
        settle_loops,  # kernels without barriers that loops over threads make no faster
    ),
    normalize=(
        own_counters,  # each loop that first sets a counter declares it
        renamed,  # each local variable has a name of its own
        named,  # so has each lambda that is handed to a function with barriers
        branched,  # conditional calls in which threads meet are branches
        gathered,  # lanes that come together in a loop look first who comes
    ),
    # Uniformity: `Analysis` follows the levels of values through all functions that are reached.
    cut=cut,  # parallel regions: where they end
    write={
        "scalar": once,  # uniform values: once for the block
        "plain": plain,  # a parallel region, with context arrays for what outlives it
        "barrier": barrier,  # the end of a region
        "call": call,  # a warp operation, or a function with barriers
        "step": step,  # a statement through which the lanes of a warp go together
        "construct": construct,  # branches and loops, with implicit barriers
    },
)
# After a mistake of ours kernels have fibers, which are slow and right. Tests empty this.
MISTAKES: tuple[type[Exception], ...] = (Exception,)


@dataclass
class Loops:
    """The kernels of a file that are loops over threads, and why others are not."""

    text: str  # to follow the file's own text
    _: KW_ONLY
    kernels: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # by kernel
    functions: list[Function] = field(default_factory=list)  # `kernels`, as they were read
    places: dict[str, frozenset[Place]] = field(default_factory=dict)  # the lines that each reaches
    flat: bool = True  # no thread asks for its place but along the first dimension
    by_whole_warps: list[str] = field(default_factory=list)  # kernels for blocks of whole warps
    alike: list[Function] = field(default_factory=list)  # kernels whose rows do the same


def loops(
    preprocessed: str,
    *,
    is_program: bool = False,
    often: Collection[str] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> Loops:
    """Write the kernels of a file as loops, as far as possible.

    `preprocessed` has its macros expanded and its conditions decided, but for those of the device.
    The file is one of a lab's kernels, or of a whole program. Templates that are launched `often`
    hand over their numbers, if they can. Kernels whose loops were `refused` before keep their
    fibers, each for its reason.
    """
    written = Loops("")
    try:
        units = [
            Unit(words, name, PASSES.normalize, is_program=is_program)
            for name, words in spaces(read(preprocessed))
        ]
        note_meetings_elsewhere(units)
        given = Given([(unit.root, unit.words) for unit in units])
        for unit in units:
            unit.given = given
            unit.refused |= {name: NotCoveredError(why) for name, why in refused.items()}
            for kernel in unit.kernels():
                if kernel.name in often:
                    hand_over_numbers(kernel)
            _add(written, unit)
    except NotCoveredError as reason:
        return Loops("", reasons={"": str(reason)})
    except RecursionError:
        return Loops("", reasons={"": "it is nested too deeply"})
    except MISTAKES as mistake:
        return Loops("", reasons={"": f"a mistake of cudalab's own: {mistake!r}"})
    return written


def _add(written: Loops, unit: Unit) -> None:
    """Write the kernels of a namespace, or those at global scope."""
    kernels: list[Function] = []
    for kernel in unit.kernels():
        try:
            functions = [parsed(each) for each in unit.check(kernel)]
            written.alike += [kernel] * are_alike(unit, kernel)
            for refuse in PASSES.refuse:
                refuse(unit, functions)
        except NotCoveredError as reason:
            written.reasons[kernel.name] = _explained(unit, kernel, str(reason))
        else:
            kernels.append(kernel)
    text = ""
    while kernels:
        try:
            analysis = Analysis(unit, kernels)
            text = _written(analysis, kernels)
            by_warps = filter(analysis.counts_on_whole_warps, kernels)
            written.by_whole_warps += [kernel.name for kernel in by_warps]
            break
        except NotCoveredError as first:
            for other in (first, *first.more):
                for kernel in _reaching(unit, kernels, other.function):
                    written.reasons[kernel.name] = str(other)
                    kernels.remove(kernel)
    written.flat &= all(map(unit.is_flat, kernels))
    if unit.namespace and text:
        parts = unit.namespace.replace("{}", "").split("::")
        text = "".join(f"namespace {part} {{ " for part in parts) + f"\n{text}\n" + "}" * len(parts)
    written.text += f"{text}\n" if text else ""
    written.kernels += [kernel.name for kernel in kernels]
    written.functions += kernels
    written.places |= {each.name: places_of(unit.called_by(each)) for each in kernels}


def _explained(unit: Unit, kernel: Function, reason: str) -> str:
    """The reason for fibers; for a program's kernel, also whether it has no barriers."""
    if not unit.is_program:
        return reason
    place, _, why = reason.replace(ALONE, "").partition(": ")
    try:
        alone = never_waits(unit, unit.called_by(kernel))
    except NotCoveredError:  # a function of its own that cannot be read
        alone = False
    return f"{place}: {ALONE * alone}{why}"


def _reaching(unit: Unit, kernels: list[Function], name: str) -> list[Function]:
    """The kernels that reach a function, or all kernels if it has no name."""
    return [each for each in kernels if not name or name in {f.name for f in unit.called_by(each)}]


def _written(analysis: Analysis, kernels: list[Function]) -> str:
    """The text of some kernels and of every function that they reach."""
    unit = analysis.unit
    bodies = _bodies(analysis, kernels)
    # What is shared in a function is one variable, so there is one function that has it.
    twice = {name for name, masked in bodies if masked and (name, False) in bodies}
    if twice := {name for name in twice if unit.has_shared(name)}:
        analysis.always_masked = twice
        bodies = _bodies(analysis, kernels)
    parts = []
    for function in _callees_first(analysis):
        if function.name in unit.placed:
            parts.append(_placed(analysis, function))
        if not function.specialized:
            parts += [bodies[key] for key in sorted(bodies) if key[0] == function.name]
    return "".join(parts)


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


def _bodies(analysis: Analysis, kernels: list[Function]) -> dict[tuple[str, bool], str]:
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
                body = Body(analysis, function, PASSES, masked=masked)
                twice = body.leaving and begins_with_guards(analysis.unit, function)
                try:
                    bodies[name, masked] += definition(body, leaving=twice)
                    if twice:
                        needed |= body.called
                        body = Body(analysis, function, PASSES, masked=masked, all_stay=True)
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
