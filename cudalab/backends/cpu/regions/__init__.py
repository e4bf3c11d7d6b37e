"""Kernels as loops over the threads of a block, by rewriting their text.

A kernel is cut where its threads meet: at barriers and warp operations. What lies between two cuts
is a region, a loop over the threads that the compiler can vectorise. All typing is left to the
compiler. A kernel about which anything is unclear keeps its fibers; the reason is recorded.

The steps: `words` reads the preprocessed text, `syntax` its functions and statements. `unit` and
`waiting` say what is refused. `names` and `levels` find for which threads a value is the same, and
`analysis` where each variable lives. `body`, `meeting` and `control` write the functions anew.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from cudalab.backends.cpu.regions.analysis import Analysis
from cudalab.backends.cpu.regions.control import WholeBody
from cudalab.backends.cpu.regions.unit import Unit, parsed
from cudalab.backends.cpu.regions.waiting import refuse_needless, refuse_waiting
from cudalab.backends.cpu.regions.words import NotCoveredError, texts
from cudalab.backends.cpu.regions.writer import Writer

if TYPE_CHECKING:
    from cudalab.backends.cpu.regions.syntax import Function


@dataclass
class Loops:
    """The kernels of a file that are loops over threads, and why others are not."""

    text: str  # to follow the file's own text
    _: KW_ONLY
    kernels: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # by kernel


def loops(preprocessed: str) -> Loops:
    """Write the kernels of a file as loops, as far as possible.

    `preprocessed` has its macros expanded and its conditions decided, but for those of the device.
    """
    reasons: dict[str, str] = {}
    try:
        unit = Unit(preprocessed)
    except NotCoveredError as reason:
        return Loops("", reasons={"": str(reason)})
    kernels: list[Function] = []
    text = ""
    for kernel in unit.kernels():
        try:
            functions = [parsed(each) for each in unit.check(kernel)]
            refuse_waiting(functions)
            refuse_needless(unit, functions)
            text = _written(unit, [*kernels, kernel])
        except NotCoveredError as reason:
            reasons[kernel.name] = str(reason)
        else:
            kernels.append(kernel)
    return Loops(text, kernels=[kernel.name for kernel in kernels], reasons=reasons)


def _written(unit: Unit, kernels: list[Function]) -> str:
    """The text of some kernels and of all functions that they reach."""
    analysis = Analysis(unit, kernels)
    wanted = {(kernel.name, False) for kernel in kernels}
    bodies: dict[tuple[str, bool], str] = {}
    while missing := sorted(wanted - bodies.keys()):
        for name, masked in missing:
            body = WholeBody(analysis, unit.by_name[name][0], masked=masked)
            bodies[name, masked] = body.text()
            wanted |= body.called
    parts = []
    for function in unit.functions:  # a function stands behind those that it calls
        if function not in analysis.reached:
            continue
        if function.name in unit.placed:
            parts.append(_placed(analysis, function))
        parts += [bodies[key] for key in sorted(bodies) if key[0] == function.name]
    return "".join(parts)


def _placed(analysis: Analysis, function: Function) -> str:
    """A copy of a function that is handed threadIdx and its block."""
    writer = Writer()
    words = texts(function.head)
    opening = words.index("(", words.index(function.name))
    head = list(function.head)
    head[opening - 1] = head[opening - 1]._replace(text=f"{function.name}_at_")
    more = "const uint3 threadIdx , const ::cudalab::Block& B_" + (
        " ," if function.parameters else ""
    )
    writer.add(head[: opening + 1], more, head[opening + 1 :], "{ CUDALAB_HERE_TOO ;")
    writer.add(analysis.unit.handing_over(function.body), "}\n")
    return writer.text()
