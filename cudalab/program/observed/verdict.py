"""The verdict on a program: what is wrong with it, and what only follows from that."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from cudalab.backends.trace import Finding, Place
from cudalab.language.scopes import Scope
from cudalab.language.source import lines_of
from cudalab.language.structure import CudaFile
from cudalab.language.tokens import Lines, tokenize
from cudalab.microscope import sanitize
from cudalab.microscope.explanations import NULL
from cudalab.microscope.findings import FindingRow, errors, grouped
from cudalab.microscope.remarks import of_findings
from cudalab.output.annotations import Annotation, Level, Rule
from cudalab.program.files import File
from cudalab.program.observed.order import NOBODY
from cudalab.program.observed.run import Observed
from cudalab.program.rewrite.unchecked import COUNTED_ON, thrown_away

FAILED = Rule(
    "failed_launch",
    "launch that failed",
    "A kernel that ends with an error has not done its work, and every later call fails, too.",
    "Look for what the error names in the kernel, and at its launch.",
)
IGNORED = Rule(
    "ignored_failure",
    "failure that the program ignores",
    "A call that fails says so in its result, and a launch in cudaGetLastError(). Without a look "
    "at them the program goes on with memory that was never made or written.",
    "Check the result of each call, and cudaGetLastError() after each launch.",
)
LEAK = Rule(
    "leak",
    "memory that the program does not free",
    "It is given back when the program ends. In a program that does the same again and again the "
    "memory of the device is used up.",
    "Free what each cudaMalloc has given, by cudaFree, on every way out.",
)
_PLACE = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)
_NEEDED = re.compile(
    rf"(?P<file>[^:\n]+):(?P<line>\d+): (?P<name>{COUNTED_ON.pattern}): "
    r"cudaError(?!NotSupported)\w+: .*",
    re.DOTALL,
)
_SHOWS = re.compile(r"\b(?:f?printf|puts|putchar|cout|cerr|fwrite|write|ofstream|fopen)\b")
_MEASURES = re.compile(
    r"\b(?:clock(?:64|_gettime)?|gettimeofday|chrono|omp_get_wtime|MPI_Wtime|sdkGetTimerValue)\b"
)
_MAKES = re.compile(r": cuda(?:Malloc|HostAlloc)\w*: ")
_OF_NULL = "(nil)"


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a program, and what does not count."""

    rows: list[FindingRow]
    ignored: list[str]  # failures that the program ignores
    _: KW_ONLY
    ended: list[str]  # launches that failed, where no finding says why
    follows: list[str]  # failures that the findings have caused
    leaks: list[str]  # memory that is never freed
    leaks_count: bool  # as errors
    failed: list[str]  # calls that failed, which the program may have handled
    refused: list[str]  # where the program was refused, so that nothing behind was observed

    @property
    def errors(self) -> int:
        """The number of errors."""
        leaks = len(self.leaks) if self.leaks_count else 0
        return errors(grouped(self.rows)) + len(self.ended) + len(self.ignored) + leaks

    @property
    def clean(self) -> bool:
        """Whether there are only notes, and the program was not refused."""
        return self.errors == 0 and not self.refused

    def remarks(self, file: str) -> list[Annotation]:
        """The findings, and what the program ignores or leaves behind, as annotations.

        What names no line is about `file`.
        """
        of_leaks: Level = "error" if self.leaks_count else "warning"
        return [
            *of_findings(self.rows, file),
            *(_remark(FAILED, "error", text, file) for text in self.ended),
            *(_remark(IGNORED, "error", text, file) for text in self.ignored),
            *(_remark(LEAK, of_leaks, text, file) for text in self.leaks),
        ]


def _remark(rule: Rule, level: Level, text: str, file: str) -> Annotation:
    """A remark at the line that the text starts with."""
    at = _PLACE.match(text)
    return Annotation(
        rule=rule,
        level=level,
        text=at["text"] if at else text,
        file=at["file"] if at else file,
        line=int(at["line"]) if at else 0,
    )


def judge(name: str, files: Sequence[File], seen: Observed, *, leaks: bool = False) -> Verdict:
    """Tell what is wrong with a program from what follows from it. Leaks count if `leaks` is set.

    Whatever ended a kernel is a finding; its launch then fails, and the program stops halfway
    without freeing its memory. If an allocation failed and the program did not check, accesses
    through its pointer follow from that. Lanes with a wrong mask may then wait for each other.
    """
    texts = {file.label: lines_of(file.text) for file in files}
    known: dict[sanitize.Identity, FindingRow] = {}
    ignored = _unchecked(seen, {file.label: file.text for file in files})
    observed = [
        *seen.findings,
        *(_told("early_time", text) for text in seen.told("early time")),
        *(_told("byte_fill", text, note=True) for text in seen.told("byte fill")),
        *(_told("lost_print", text, note=True) for text in seen.told("unawaited kernel")),
        *_lost_values(seen, files),
    ]
    fails = any(": launch: " in text for text in seen.told("failed call"))
    if not ignored and not fails and not seen.told("unread error"):  # or it may follow from those
        observed += [
            *(_told("unwritten_copy", text, note=True) for text in seen.told("unwritten copy")),
            *_unread_results(seen, files),
        ]
    sanitize.add_rows(known, (sanitize.finding_row(each, name, texts) for each in observed))
    rows = sorted(known.values(), key=lambda row: row.note)  # errors first

    made_nothing = [text for text in ignored if _MAKES.search(text)]
    follows = []
    if made_nothing:
        follows = [text for text in ignored if _OF_NULL in text and text not in made_nothing]
        ignored = [text for text in ignored if text not in follows]
        through = [row for row in rows if row.detail == NULL]
        rows = [row for row in rows if row.detail != NULL]
        follows += [f"{row.file}:{row.line}: {row.what}" for row in through]
    masks = {(row.kernel, row.file, row.line) for row in rows if row.kind == "wrong_mask"}
    rows = [
        row
        for row in rows
        if row.kind != "deadlock" or (row.kernel, row.file, row.line) not in masks
    ]

    ended = seen.told("failed kernel")
    is_explained = bool(ignored) or any(not row.note for row in rows)
    ignored += [*seen.told("unread error"), *seen.told("overrun")]
    told = {_PLACE.sub(r"\g<file>:\g<line>", text) for text in (*ended, *ignored, *follows)}
    failed = dict.fromkeys(seen.told("failed call"))
    return Verdict(
        rows,
        ignored,
        ended=[] if is_explained else ended,
        follows=[*follows, *(ended if is_explained else [])],
        leaks=[
            text if times == 1 else f"{text}, {times:,} times"
            for text, times in Counter(seen.told("leak")).items()
        ],
        leaks_count=leaks and not ended,
        failed=[text for text in failed if _PLACE.sub(r"\g<file>:\g<line>", text) not in told],
        refused=seen.told("refusal"),
    )


def _told(kind: str, text: str, kernel: str = "", *, note: bool = False) -> Finding:
    """A finding that the runtime has told as a text, behind its place."""
    at = _PLACE.match(text)
    assert at is not None
    place = Place(at["file"], int(at["line"]))
    return Finding(kind, kernel, place, NOBODY, detail=at["text"], note=note)


def _unread_results(seen: Observed, files: Sequence[File]) -> Iterator[Finding]:
    """The notes that kernels compute what nothing reads, if all that they read was observed.

    What a kernel computes that fails need not be read. A program that prints nothing needs no
    results, nor may one that measures times, unless it reads others.
    """
    whole = all(each.examined is None for each in seen.launches)
    failed = any(not each.note for each in seen.findings) or seen.told("failed kernel")
    shows = any(_SHOWS.search(file.text) for file in files)
    if not whole or failed or seen.ended_by or not shows:
        return
    measures = seen.told("time read") or any(_MEASURES.search(file.text) for file in files)
    for text in seen.told("unread result"):
        if not measures or text.endswith("no kernel reads it"):
            yield _told("unread_result", text, note=True)


def _lost_values(seen: Observed, files: Sequence[File]) -> Iterator[Finding]:
    """The notes that kernels which ran assign to parameters, and do nothing else with them."""
    kernels = {_function(each.kernel) for each in seen.launches}
    for file in files:
        read = CudaFile(file.text)
        read.read(Scope("namespace"), frozenset())
        functions = (node for node in read.root.of_kind("function") if "__global__" in node.words)
        for node in (node for node in functions if node.text in kernels):
            targets = {one.children[0] for one in node.of_kind("assign")}
            for name in (name for one in node.parameters for name in one.names):
                uses = [one for one in node.of_kind("name") if one.text == name.name]
                is_number = name.type.kind in ("integer", "float", "half", "bool")
                if uses and is_number and not name.type.is_reference and targets.issuperset(uses):
                    line = read.lines[read.words.tokens[uses[0].first].start]
                    words = f"Kernel {node.text} assigns to its parameter {name.name}"
                    text = f"{file.label}:{line}: {words}, and nothing reads that"
                    yield _told("lost_value", text, node.text, note=True)


def _function(kernel: str) -> str:
    """The name of a kernel without its namespaces and template arguments."""
    return kernel.partition("<")[0].rpartition("::")[2]


def _unchecked(seen: Observed, texts: dict[str, str]) -> list[str]:
    """The failures of calls whose result the program neither checks nor queries later."""
    waiting: dict[str, None] = {}
    for kind, text in seen.messages:
        if kind == "errors read":
            waiting.clear()
        elif kind == "failed call" and (match := _NEEDED.match(text)):
            source = texts.get(match["file"], "")
            tokens, lines, line = tokenize(source), Lines(source), int(match["line"])
            if any(
                tokens[first].text == match["name"]
                and lines[tokens[first].start] <= line <= lines[tokens[last].start]
                for first, last in thrown_away(tokens)
            ):
                waiting[text] = None
    return list(waiting)
