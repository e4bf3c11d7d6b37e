"""Kernels as loops over the threads of a block, by rewriting their text.

A kernel is cut where its threads meet: at barriers and warp operations. What lies between two cuts
is a region, a loop over the threads that the compiler can vectorise. All typing is left to the
compiler. A kernel about which anything is unclear keeps its fibers; the reason is recorded.

`PASSES` has the order, in the words of the literature. A *parallel region* is what threads run
through without waiting for each other; it becomes a *work-item loop*, which goes through the
threads of a block or of a mask. *Uniformity* says which values all threads of a block share. A
variable of each thread that lives across a barrier is kept in a *context array*. A loop in which
threads meet has *implicit barriers* around its rounds. So

    int kept = a[threadIdx.x], twice = 2 * n;
    __syncthreads();
    a[threadIdx.x] = kept + twice;

becomes, but for names and what is there for the compiler,

    int kept[1024];                                           // a context array
    int twice = 2 * n;                                        // uniform: once for the block
    EACH THREAD { kept[threadIdx.x] = a[threadIdx.x]; }
    EACH THREAD { a[threadIdx.x] = kept[threadIdx.x] + twice; }

The way of a file: `words` gives each word its place in the user's files, `unit` reads the functions
of a namespace (`functions`, and for a program `groups`), `syntax` their statements. A statement is
a part of the tree with the words that it is made of. The passes that normalize are edits of these
words, of which the tree is then read anew. What the passes know of a function is in `analysis`, by
`uses` (what statements do with variables), `given` and `effects` (what functions do), `uniformity`
and `strides`. `body` is the text that becomes of it, with `parts` as its vocabulary.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType

from cudalab.backends.cpu.regions import (
    barriers,
    control,
    cuts,
    fibers,
    gathering,
    in_step,
    lambdas,
    normal_forms,
    parallel_regions,
    waiting,
)
from cudalab.backends.cpu.regions.analysis import Analysis
from cudalab.backends.cpu.regions.body import Passes, written_for
from cudalab.backends.cpu.regions.functions import Function
from cudalab.backends.cpu.regions.given import Given
from cudalab.backends.cpu.regions.unit import Unit
from cudalab.backends.cpu.regions.words import NotCoveredError, read, spaces

PASSES = Passes(
    refuse=(
        fibers.refuse_in_program,  # what only fibers do, as host code may see how its kernels run
        fibers.refuse_hidden_meetings,  # barriers in methods, operators and pointers
        waiting.refuse_waiting,  # loops that end when another thread has changed memory
        in_step.settle_guards,  # branches with barriers up to the end are guards
        in_step.settle_loops,  # kernels without barriers that loops over threads make no faster
    ),
    normalize=(
        normal_forms.own_counters,  # each loop that first sets a counter declares it
        normal_forms.renamed,  # each local variable has a name of its own
        lambdas.named,  # so has each lambda that is handed to a function with barriers
        normal_forms.counted_first,  # conditions in which threads count do not change anything
        normal_forms.branched,  # conditional calls in which threads meet are branches
        gathering.gathered,  # lanes that come together in a loop look first who comes
    ),
    # Uniformity: `Analysis` follows the levels of values through all functions that are reached.
    cut=cuts.cut,  # parallel regions: where they end
    write={
        "scalar": parallel_regions.once,  # uniform values: once for the block
        "plain": parallel_regions.plain,  # a region, with context arrays for what outlives it
        "barrier": barriers.barrier,  # the end of a region
        "call": barriers.call,  # a warp operation, or a function with barriers
        "step": barriers.step,  # a statement through which the lanes of a warp go together
        "construct": control.construct,  # branches and loops, with implicit barriers
    },
)
Place = tuple[str, int]  # a file and a line
_PLACE = re.compile(r"(?:^|\bfrom )(?P<file>[^\s:][^:\n]*):(?P<line>\d+)[:,]", re.MULTILINE)
_ERROR = re.compile(r"^([^\s:][^:\n]*):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.MULTILINE)
_MESSAGE = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):", re.MULTILINE)
_REASON = "the compiler refuses its loops"
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
        fibers.note_meetings_elsewhere(units)
        given = Given([(unit.root, unit.words) for unit in units])
        for unit in units:
            unit.given = given
            unit.refused |= {name: NotCoveredError(why) for name, why in refused.items()}
            for kernel in unit.kernels():
                if kernel.name in often:
                    normal_forms.hand_over_numbers(kernel)
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
            functions = unit.check(kernel)
            written.alike += [kernel] * in_step.are_alike(unit, kernel)
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
            text = written_for(analysis, kernels, PASSES)
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
    written.places |= {each.name: lines_of(unit.called_by(each)) for each in kernels}


def _reaching(unit: Unit, kernels: list[Function], name: str) -> list[Function]:
    """The kernels that reach a function, or all kernels if it has no name."""
    return [each for each in kernels if not name or name in {f.name for f in unit.called_by(each)}]


def _explained(unit: Unit, kernel: Function, reason: str) -> str:
    """The reason for fibers; for a program's kernel, also whether it has no barriers."""
    if not unit.is_program:
        return reason
    place, _, why = reason.replace(in_step.ALONE, "").partition(": ")
    try:
        alone = fibers.never_waits(unit, unit.called_by(kernel))
    except NotCoveredError:  # a function of its own that cannot be read
        alone = False
    return f"{place}: {in_step.ALONE * alone}{why}"


# What a compiler refuses --------------------------------------------------------------------------


def places_in(messages: str) -> frozenset[Place]:
    """The files and lines that a compiler's messages begin with."""
    return frozenset((match["file"], int(match["line"])) for match in _MESSAGE.finditer(messages))


def lines_of(functions: Iterable[Function]) -> frozenset[Place]:
    """The lines from the first word of each function to its last one, file by file."""
    lines = set[Place]()
    for function in functions:
        words = [*function.head, *function.body]
        for file in {word.file for word in words}:
            own = [word.line for word in words if word.file == file]
            lines |= {(file, line) for line in range(min(own), max(own) + 1)}
    return frozenset(lines)


def blamed(messages: str, kernels: dict[str, frozenset[Place]]) -> dict[str, str]:
    """The kernels, given with their lines, that the messages are about; why each is refused.

    These are the kernels with errors in their lines. If no error is there, as in what a macro of
    ours stands for, they are those that the messages name in any way, else all.
    """
    errors = [((m[1], int(m[2])), m[3]) for m in _ERROR.finditer(messages)]
    why = errors[0][1] if errors else (messages.strip().splitlines() or [""])[0]
    named = [((m["file"], int(m["line"])), why) for m in _PLACE.finditer(messages)]
    for found in (errors, named):
        reasons = {
            name: f"{file}:{line}: {_REASON}: {words}"
            for (file, line), words in reversed(found)
            for name, own in kernels.items()
            if (file, line) in own
        }
        if reasons:
            return reasons
    return {
        name: f"{file}:{line}: {_REASON}: {why}"
        for name, own in kernels.items()
        for file, line in [min(own)]
    }
