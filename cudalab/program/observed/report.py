"""The reports of `run --sanitize` and `run --profile` on all kernels of a program."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cudalab.backends.cpu.compiler.toolchain import find_compiler
from cudalab.backends.trace import Looks
from cudalab.microscope import local_arrays, sanitize
from cudalab.microscope.annotate import number, share, show
from cudalab.microscope.explanations import explain, where
from cudalab.microscope.findings import FindingRow, Findings, grouped
from cudalab.microscope.profile import Profile, VariantProfile, merged, totals
from cudalab.output import code, terminal
from cudalab.output.prose import counted
from cudalab.program.files import File
from cudalab.program.observed.run import Launch, Observed
from cudalab.program.observed.verdict import Verdict, judge
from cudalab.system.machine import processor_name

LAUNCHES_SHOWN = 24  # those that are alike count as one
NUMBERS_SHOWN = 3


class Names:
    """What a report calls its files: the path once, and then the name.

    Texts are to be shortened in the order of the report.
    """

    def __init__(self, files: Sequence[File]) -> None:
        """Files that share a name keep their paths."""
        labels = {file.label: Path(file.label).name for file in files}
        count = Counter(labels.values())
        self._name = {label: name for label, name in labels.items() if count[name] == 1}
        paths = "|".join(re.escape(label) for label, name in self._name.items() if label != name)
        self._place = re.compile(rf"(?<![\w./-])(?:{paths})(?=:\d)") if paths else None
        self._shown: set[str] = set()

    def short(self, text: str) -> str:
        """A text with the names of files whose paths have been shown."""
        return self._place.sub(self._shorter, text) if self._place else text

    def rows(self, rows: Iterable[FindingRow]) -> list[FindingRow]:
        """Findings whose descriptions have been shortened."""
        return [replace(row, what=self.short(row.what)) for row in rows]

    def _shorter(self, at: re.Match[str]) -> str:
        label = at[0]
        if label in self._shown:
            return self._name[label]
        self._shown.add(label)
        path = Path(label)
        here = Path.cwd()
        return str(path.relative_to(here)) if path.is_relative_to(here) else label


def document(name: str, file: str, found: Verdict, seen: Observed) -> Findings:
    """All findings, as `cudalab sanitize` writes them for a kernel."""
    return Findings(
        lab="program",
        variant=name,
        file=file,
        case={},
        inputs=[_launches(seen), *_partly_examined(seen)],
        clean=found.clean,
        findings=found.rows,
        launches=len(seen.launches),
        ended_by=seen.ended_by,
        ignored=[*found.ended, *found.ignored],
        follows=found.follows,
        leaks=found.leaks,
        lines_observed=len(seen.looks.at),
        not_looked_at=sanitize.not_looked_at(_in_kernels(seen)),
    )


def sanitized(name: str, files: Sequence[File], found: Verdict, seen: Observed) -> None:
    """Print the findings."""
    names, count = Names(files), found.errors
    clean = "clean" if seen.launches else "no kernel was launched, so nothing was observed"
    if any(launch.examined is not None for launch in seen.launches):
        clean += ", as far as it was examined"
    if seen.ended_by:
        clean += f", until {seen.ended_by} ended it"
    if found.refused:
        clean = (
            f"nothing found before {names.short(found.refused[0])}, where the program was refused"
        )
    result = f"{count} found" if count else clean
    groups = [names.rows(group) for group in grouped(found.rows)]
    code.findings(f"{name}: {result}\nobserved: {_launches(seen)}", groups)
    if groups:
        _by_launch(names, seen, {row.kind for row in found.rows})
    _long_launches(names, seen)
    _failures(names, found)
    _covered(names, seen)


def _covered(names: Names, seen: Observed) -> None:
    """Print what the verdict covers, and what it does not."""
    long = any(launch.examined is not None for launch in seen.launches)
    accesses = (
        "the accesses of the blocks that were examined" if long else "the accesses of the kernels"
    )
    looked = f"{accesses}; the order of kernels, copies, fills and host code"
    looks = _in_kernels(seen)
    listed = sanitize.not_looked_at(looks)
    terminal.lines(
        ["", *sanitize.covered(looked, len(looks.at), listed, seen.unobserved, names.short)]
    )


def _in_kernels(seen: Observed) -> Looks:
    """What was looked at, but for launches, which pass their arguments by pointers."""
    launches, looks = {launch.place for launch in seen.launches}, seen.looks
    own, local = (
        {place for place in places if where(place) not in launches}
        for places in (looks.own, looks.local)
    )
    return replace(looks, own=own, local=local)


def _by_launch(names: Names, seen: Observed, reported: Collection[str]) -> None:
    """Print a line for each launch with reported findings; those that differ in size share one."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for i, launch in enumerate(seen.launches, 1):
        titles = {explain(one).title for one in launch.findings if one.kind in reported}
        if titles:
            key = launch.kernel, launch.place, ", ".join(sorted(titles))
            alike.setdefault(key, []).append(i)
    shown = []
    for (kernel, place, of_titles), of in list(alike.items())[:LAUNCHES_SHOWN]:
        sizes = dict.fromkeys(_size(seen.launches[i - 1]) for i in (of[0], of[-1]))
        text = f"{kernel}{' to '.join(sizes)} at {place}: {of_titles}"
        shown.append(f"   {_numbers(of)}. {names.short(text)}")
    if not shown:
        return
    terminal.lines(["", "By launch:", *shown])
    if len(alike) > LAUNCHES_SHOWN:
        terminal.lines([f"   and {len(alike) - LAUNCHES_SHOWN} more kinds of launches"])


def _numbers(launches: Sequence[int]) -> str:
    """The numbers of similar launches: `4`, `1-24`, or `1, 3, 5 and 9 more`."""
    first, last = launches[0], launches[-1]
    if len(launches) > 2 and last - first == len(launches) - 1:
        return f"{first}-{last}"
    shown = ", ".join(map(str, launches[:NUMBERS_SHOWN]))
    more = len(launches) - NUMBERS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _partly_examined(seen: Observed) -> list[str]:
    """How much of each long launch was examined; similar ones share a line."""
    alike: dict[tuple[str, int], list[int]] = {}
    for launch in seen.launches:
        endless = any(finding.kind == "infinite_loop" for finding in launch.findings)
        if launch.examined is not None and not endless:
            key = _called(launch), math.prod(launch.grid)
            alike.setdefault(key, []).append(launch.examined)
    return [
        f"{launch}: {' to '.join(f'{each:,}' for each in sorted({min(examined), max(examined)}))}"
        f" of {blocks:,} blocks" + (f", {len(examined):,} launches" if len(examined) > 1 else "")
        for (launch, blocks), examined in alike.items()
    ]


def _long_launches(names: Names, seen: Observed) -> None:
    """Print how much of each long launch was examined, and what to do about it."""
    lines = [f"   {names.short(line)}" for line in _partly_examined(seen)]
    if lines:
        head = "Launches that take long, or much memory: blocks examined; the others just ran."
        more = len(lines) - LAUNCHES_SHOWN
        rest = [f"   and {more} more launches"] if more > 0 else []
        cure = "A smaller input takes less time; run --kill-after SECONDS examines for longer."
        terminal.lines(["", head, *lines[:LAUNCHES_SHOWN], *rest, cure])


def _failures(names: Names, found: Verdict) -> None:
    """Print ignored failures, consequences of findings, leaks and failed calls."""
    leaks = "Memory that the program never frees"
    leaks += ":" if found.leaks_count else " (a note; --leaks makes it an error):"
    for head, lines in (
        ("Launches that failed:", found.ended),
        ("Failures that the program ignores:", found.ignored),
        ("What follows from the findings above:", found.follows),
        (leaks, found.leaks),
        ("Calls that failed, which is fine if the program checks their results:", found.failed),
    ):
        if lines:
            terminal.lines(["", head, *(f"   {names.short(line)}" for line in lines)])


def profile_of(
    name: str,
    files: Sequence[File],
    seen: Observed,
    in_local_memory: Collection[tuple[str, int, str]] | None,
) -> Profile:
    """The profile of all launches; see local_arrays.py for the last argument."""
    program = VariantProfile(
        name=name,
        summary="",
        label=files[0].label,
        kernels=merged(seen.traces),
        texts={file.label: file.text for file in files},
    )
    by_gcc = not find_compiler().is_clang
    text = local_arrays.note(program, seen.looks.local, in_local_memory, by_gcc=by_gcc)
    return Profile(
        device="cpu",
        device_name=processor_name(),
        banks=32,
        lab="program",
        case={},
        input=name,
        variants=[program],
        notes=[text] if text else [],
    )


def profiled(name: str, files: Sequence[File], profile: Profile, seen: Observed) -> None:
    """Print a row for each group of similar launches, then each kernel line by line."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for i, trace in enumerate(seen.traces, 1):
        sums = totals(trace)
        row = (
            trace.kernel,
            _dim(trace.grid),
            _dim(trace.block),
            f"{trace.blocks_traced} of {trace.blocks}",
            number(sums.global_sectors),
            share(sums.global_efficiency),
            number(sums.bank_conflicts),
            share(sums.divergence),
        )
        alike.setdefault(row, []).append(i)
    launches = [[_numbers(of), *row] for row, of in list(alike.items())[:LAUNCHES_SHOWN]]
    heads = ["launch", "kernel", "grid", "block", "traced", "sectors", "useful %"]
    heads += ["conflicts", "split %"]
    terminal.table(f"{name}: {_launches(seen)}", heads, launches)
    if len(alike) > LAUNCHES_SHOWN:
        terminal.lines([f"... and {len(alike) - LAUNCHES_SHOWN} more kinds of launches", ""])
    show(profile)
    _failures(Names(files), judge(name, [], seen))


def _launches(seen: Observed) -> str:
    kernels = {launch.kernel for launch in seen.launches}
    of = f" of {counted(len(kernels), 'kernel', 'kernels')}" if kernels else ""
    return counted(len(seen.launches), "launch", "launches") + of


def _called(launch: Launch) -> str:
    return f"{launch.kernel}{_size(launch)} at {launch.place}"


def _size(launch: Launch) -> str:
    return f"<<<{_dim(launch.grid)}, {_dim(launch.block)}>>>"


def _dim(size: tuple[int, int, int]) -> str:
    used = max(i for i in range(3) if i == 0 or size[i] > 1) + 1
    return " x ".join(map(str, size[:used]))
