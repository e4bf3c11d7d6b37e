"""Finds what is wrong with a variant of a lab, by several runs. No printing here.

The instrument (backends/cpu/check) reports each `Finding` as plain data, which explanations.py
explains. What no single run shows is judged by the answers of several.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from cudalab import runner
from cudalab.backends import host_device, open_device
from cudalab.backends.base import Device, overwrite
from cudalab.backends.trace import Finding, Looks, Place, Tallies, Thread, needs_more
from cudalab.errors import CudalabError, NotBuiltError
from cudalab.formats import as_bytes
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.compare import differing, show
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Array, Case
from cudalab.language import source
from cudalab.microscope.explanations import explain, where, with_clues
from cudalab.microscope.findings import FindingRow, Findings, from_json
from cudalab.microscope.subject import Data, texts_of

Identity = tuple[object, ...]  # equal for the same mistake

POISONS = (0xA5, 0x5A)  # fill an output before two runs; no right answer depends on them
ORDERS = 3  # different orders of blocks and warps in which a kernel runs by default
NOWHERE = Place("", 0)
NOBODY = Thread((0, 0, 0), (0, 0, 0))


@dataclass
class Report:
    """The findings so far, saved to `path` each time because the next kernel may crash.

    The file stays open: a process that has confined itself opens none.
    """

    lab: Lab
    variant: Variant
    case: Case
    path: Path
    _: KW_ONLY
    inputs: list[str] = field(default_factory=list)
    rows: dict[Identity, FindingRow] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)  # the lines of each file
    looks: Looks = field(default_factory=Looks)
    tallies: list[Tallies] = field(default_factory=list)  # of each input

    def __post_init__(self) -> None:
        """Read the source, so that findings can show it."""
        loaded = source.load(self.variant.path, self.variant.label)
        self.texts = {name: source.lines_of(text) for name, text in texts_of(loaded).items()}
        self._file = self.path.open("ab", buffering=0)

    def close(self) -> None:
        self._file.close()

    @property
    def clean(self) -> bool:
        """Whether there are only notes."""
        return all(row.note for row in self.rows.values())

    def add(self, findings: Iterable[Finding], words: str) -> None:
        """Add findings; a known one has its count increased."""
        add_rows(self.rows, (finding_row(finding, words, self.texts) for finding in findings))
        self.save()

    def save(self) -> None:
        """Add the document to the file, as a line."""
        self._file.write(json.dumps(asdict(self.document())).encode() + b"\n")

    def saved(self) -> Findings:
        """The last document that was saved completely, by this process or by its child."""
        return from_json(self.path.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2])

    def document(self) -> Findings:
        """The document: errors first, then notes, each in the order of detection."""
        return Findings(
            lab=self.lab.name,
            variant=self.variant.name,
            file=self.variant.label,
            case=dict(self.case),
            inputs=self.inputs,
            clean=self.clean,
            findings=sorted(self.rows.values(), key=lambda row: row.note),
            lines_observed=len(self.looks.at),
            not_looked_at=not_looked_at(self.looks),
            tallies=self.tallies,
        )


def add_rows(known: dict[Identity, FindingRow], rows: Iterable[FindingRow]) -> None:
    """Add findings; one that is known has its count increased."""
    for row in rows:
        # The identity of a mistake; the two ends of a race may be exchanged.
        ends = sorted([(row.file, row.line), (row.other_file or "", row.other_line or 0)])
        mistake = (row.kind, row.note, row.kernel, *ends, row.buffer, row.missing is None)
        before = known.get(mistake)
        if before:
            clearer = row if needs_more(row.missing, before.missing) else before
            known[mistake] = replace(clearer, count=before.count + row.count)
        else:
            known[mistake] = row


# What a finding and its row have by the same name: threads are lists in a row.
_SHARED = {one.name for one in fields(Finding)} & {one.name for one in fields(FindingRow)}
_SHARED -= {"thread", "other_thread"}


def finding_row(
    finding: Finding, words: str, texts: Mapping[str, Sequence[str]] | None = None
) -> FindingRow:
    """A finding with its explanation; `texts` has the lines of files that it may name."""
    finding = with_clues(finding, texts or {})
    explanation = explain(finding)
    other, thread = finding.other_place, finding.other_thread
    return FindingRow(
        **{name: getattr(finding, name) for name in _SHARED},
        file=finding.place.file,
        line=finding.place.line,
        block=list(finding.thread.block),
        thread=list(finding.thread.thread),
        other_file=other.file if other else None,
        other_line=other.line if other else None,
        other_block=list(thread.block) if thread else None,
        other_thread=list(thread.thread) if thread else None,
        input=words,
        code=_code(texts or {}, finding.place),
        other_code=_code(texts or {}, other) if other else None,
        **vars(explanation),
    )


def _code(texts: Mapping[str, Sequence[str]], place: Place) -> str:
    lines = texts.get(place.file, ())
    return lines[place.line - 1].strip() if 1 <= place.line <= len(lines) else ""


def crash_row(error: CudalabError, kind: str) -> FindingRow:
    """The finding for an error that ended the process of the kernels."""
    message = error.message.replace("\n", " ")
    return finding_row(Finding(kind, "", NOWHERE, NOBODY, detail=message), "")


def check(
    report: Report, data: Data, instrument: Callable[[int], Any], orders: int = ORDERS
) -> None:
    """Run the variant in several orders with the instrument, then without it.

    `instrument` opens a device for the number of an order, with the list `findings`
    and the `looks`.
    """
    report.inputs.append(data.words)
    report.save()
    answers: list[Array] = []
    for order in range(orders):
        with instrument(order) as device:
            try:
                answers.append(answer(report.lab, report.variant, report.case, data, device))
            except CudalabError:
                if all(finding.note for finding in device.findings):
                    raise  # no finding explains the error
            report.looks.add(device.looks)
            report.add(device.findings, data.words)
        if len(answers) <= order:
            return
    if report.clean:
        report.add(_stale(report, data, instrument), data.words)
    if report.clean:
        report.add(_judge(report, data, answers), data.words)


def answer(lab: Lab, variant: Variant, case: Case, data: Data, device: Device) -> Array:
    """Compute the answer once."""
    registry.check_features(variant, device.name, device.features)
    step = runner.prepare(lab, variant, device, data.inputs, case)
    step()
    device.synchronize()
    return device.to_host(step.out)


def _judge(report: Report, data: Data, answers: list[Array]) -> Iterable[Finding]:
    """Findings if the orders give different bytes, or a wrong answer."""
    first = answers[0]
    for other in answers[1:]:
        if report.variant.deterministic and as_bytes(first) != as_bytes(other):
            yield _about_answer("order_dependent", _first_difference(first, other))
            return
    for one in answers:
        wrong = report.lab.compare_at(report.variant.precision, one, data.inputs, report.case)
        if wrong is not None:
            yield _about_answer("wrong_answer", " ".join(str(wrong).split()))
            return


def _on_garbage(report: Report, data: Data, device: Device) -> list[Array]:
    """The answers after different fillings of their memory."""
    step = runner.prepare(report.lab, report.variant, device, data.inputs, report.case)
    answers = []
    for poison in POISONS:
        overwrite(device, step.out, poison)
        step()
        answers.append(device.to_host(step.out))
    return answers


def _about_answer(kind: str, detail: str) -> Finding:
    return Finding(kind, "", NOWHERE, NOBODY, detail=detail)


def _first_difference(one: Array, two: Array) -> str:
    """A text about the first difference between two answers."""
    one, two = one.reshape(-1), two.reshape(-1)
    places = differing(one, two)
    at = int(places[0])
    return (
        f"the same input gave {show(one[at])} in one order of blocks and threads and "
        f"{show(two[at])} in another, at element {at:,} of the answer; {len(places):,} of "
        f"{one.size:,} elements differ"
    )


def _stale(report: Report, data: Data, instrument: Callable[[int], Any]) -> Iterable[Finding]:
    """A finding for elements that keep the previous content, detected with two fillings.

    The instrument fits every launch, the fast device only those that it was compiled for.
    """
    try:
        with open_device(host_device()) as device:
            answers = _on_garbage(report, data, device)
    except NotBuiltError:
        with instrument(0) as device:
            answers = _on_garbage(report, data, device)
    places = differing(*answers)
    if len(places) and report.variant.deterministic:
        yield _about_answer(
            "stale_output",
            f"{len(places):,} of {answers[0].size:,} elements of the answer, the first of them "
            f"element {int(places[0]):,}, depend on what the output held before",
        )


OWN = "the ends and values of some local variables"
WHOLE = "whether what is copied whole or may be packed is aligned"
SHOWN = 8  # places on a terminal; documents have all of them
_IN_PART = re.compile(f"(?P<file>.*):(?P<line>[0-9]+): (?P<what>{OWN}|{WHOLE})")


def not_looked_at(looks: Looks) -> list[str]:
    """The lines with something that was not looked at, and what it is or why."""
    return [
        *(f"{where(place)}: {looks.missed[place]}" for place in _in_order(looks.missed)),
        *(f"{where(place)}: {OWN}" for place in _in_order(looks.own)),
        *(f"{where(place)}: {WHOLE}" for place in _in_order(looks.unaligned)),
    ]


def covered(
    looked: str,
    observed: int,
    listed: Sequence[str],
    never: Iterable[str],
    short: Callable[[str], str] = str,
) -> list[str]:
    """What a verdict covers, and what it does not, as lines of text.

    `looked` says what was looked at; on `observed` lines all accesses were. `listed` is what
    `not_looked_at` gives; `never` is what is not looked at anywhere. `short` shortens paths.
    """
    places: dict[str, list[tuple[str, str]]] = {}  # of what is not looked at there
    missed = []
    for text in listed:
        if found := _IN_PART.fullmatch(text):
            places.setdefault(found["what"], []).append((found["file"], found["line"]))
        else:
            missed.append(f"   {short(text)}")
    in_part = [*never, *(f"{what} ({short(_joined(them))})" for what, them in places.items())]
    return [
        f"Looked at: {looked}; accesses on {observed} of {observed + len(missed)} lines observed.",
        *(["Not looked at: the accesses of these lines:", *missed] if missed else []),
        *([f"{'Nor' if missed else 'Not looked at:'} {', '.join(in_part)}."] if in_part else []),
    ]


def _joined(places: Sequence[tuple[str, str]]) -> str:
    """The first places, with the file before the first line of each."""
    files = [None, *(file for file, _ in places)]
    shown = [
        line if file == before else f"{file}:{line}"
        for before, (file, line) in zip(files, places[:SHOWN], strict=False)
    ]
    more = [f"and {len(places) - SHOWN} more lines"] if len(places) > SHOWN else []
    return ", ".join([*shown, *more])


def _in_order(places: Iterable[Place]) -> list[Place]:
    return sorted(places, key=lambda place: (place.file, place.line))
