"""A report for people: its words, and its failures at their lines of the source.

Nothing is judged here: a test that passes in one form passes in all. The forms that grading systems
read are in platforms/results.py.
"""

import re
from dataclasses import replace

from cudalab.backends import DEVICES, facts
from cudalab.checker.verdicts import ANY_DEVICE, Report, Result, Stage, Status, Why
from cudalab.errors import ExitCode
from cudalab.microscope.remarks import of_findings
from cudalab.output import annotations as documents
from cudalab.output.annotations import Annotation, Rule, commands
from cudalab.output.listing import ALARM, Cell
from cudalab.system import records

STDERR_SHOWN = 8  # lines
LONGEST = 500  # letters of a line
_COMPILE_ERROR = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):.*\berror\b")
_MARKS = {
    Status.PASSED: "ok",
    Status.FAILED: "FAILED",
    Status.SKIPPED: "-",
    Status.BROKEN: "BROKEN",
}


def as_json(report: Report) -> str:
    """The complete report."""
    return records.text(report.json())


def points_line(report: Report) -> str:
    """The points, and what failed stages cost."""
    line = f"{report.points:g} of {report.max_points:g} points"
    costly = max(report.stages, key=lambda stage: stage.cost, default=None)
    if costly is not None and costly.cost:
        line += f", less {costly.cost:.0%} by the stage {costly.name}"
    return line


def cases(report: Report) -> list[tuple[str, Result | Stage]]:
    """Everything that passes or fails: the stages, with its tests in the place of `correct`."""
    result: list[tuple[str, Result | Stage]] = []
    for stage in report.stages:
        if stage.name == "correct":
            result += [(test.name, test) for test in report.tests]
        if stage.name != "correct" or stage.status is Status.BROKEN:
            result.append((stage.name, stage))
    return result


def cases_of_all(report: Report) -> list[tuple[str, Result | Stage]]:
    """What does not depend on hidden tests, for those who see all of it at once."""
    if not any(test.hidden for test in report.tests):
        return cases(report)
    return [
        (name, one)
        for name, one in cases(report)
        if (isinstance(one, Result) and not one.hidden) or name == "compile"
    ]


def headline_of(one: Result | Stage) -> str:
    """The verdict in one line."""
    counted = isinstance(one, Stage) and one.name == "correct"  # its tests have their own reasons
    words = ["" if counted or one.status is Status.PASSED else str(one.why), one.says]
    return plain(": ".join(word for word in words if word) or str(one.status))


def plain(text: str) -> str:
    """A line of text that comes from a submission, fit for any terminal and any log.

    It is cut where it is too long, control characters are left out, and it gives no command to
    GitHub Actions, which takes one from every line that begins with two colons.
    """
    text = " ".join(text.expandtabs(4).splitlines())
    text = "".join(letter for letter in text if letter.isprintable())
    text = re.sub(r"^(\s*):(?=:)", r"\1: ", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def explained(one: Result | Stage) -> list[str]:
    """The explanation of a verdict, line by line."""
    lines = [plain(line) for line in one.details]
    if isinstance(one, Result):
        for clue in one.clues:
            lines.append(plain(f"{clue.pattern}: {clue.says}"))
            if clue.cause:
                lines.append(f"  {clue.cause}")
            if clue.look:
                lines.append(f"  see: {_visible(clue.look)}")
        # The last lines of a failed run's stderr, unless the verdict quotes them already.
        stderr = [plain(line) for line in one.stderr.splitlines()[-STDERR_SHOWN:]]
        quoted = " ".join(map(plain, [one.says, *one.details]))
        if any(line and line not in quoted for line in stderr):
            lines += ["stderr:", *(f"  {line}" for line in stderr)]
        if one.commands:
            lines += ["to repeat it:", *(f"  {_visible(command)}" for command in one.commands)]
    return lines


def _visible(command: str) -> str:
    """A command with what a name in it must not do to a terminal written out."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in command
    )


def speed_line(report: Report) -> str:
    """The time, compared with the reference's."""
    speed = report.speed
    if speed is None:
        return ""
    line = (
        f"{speed.ms:.4g} ms at n = {speed.size}; {speed.reference} takes "
        f"{speed.reference_ms:.4g} ms: {speed.ratio:.2f} times its time "
        f"({speed.low:.2f} to {speed.high:.2f})"
    )
    if speed.max_points:
        line += (
            f"; {speed.points:.2f} of {speed.max_points:g} points "
            f"(all up to {speed.full:g} times, none from {speed.zero:g})"
        )
    return f"{line}; {speed.what}"


def sandbox_line(report: Report) -> str:
    """The sandbox, and what it isolates."""
    return f"sandbox {report.sandbox}: {report.sandbox_words}"


def show(report: Report) -> None:
    """Print a report for people on stdout."""
    from cudalab.output import terminal  # noqa: PLC0415 - rich takes its time

    head = plain(f"{report.lab}: {report.submission} ({report.kind}){_device_words(report)}")
    terminal.verdict(head, _rows(report), _explanations(report), _last_lines(report))


def _device_words(report: Report) -> str:
    if report.device == ANY_DEVICE:
        return ", as a program"
    if report.device not in DEVICES:  # the submission was refused before a device was chosen
        return ""
    if facts(report.device).gpu_times:
        return ", GPU"
    return ", CPU device: right or wrong, but no GPU's speed"


def _rows(report: Report) -> list[tuple[str, str, str, str]]:
    """The rows of the table: mark, name, input, verdict."""
    rows = []
    for stage in report.stages:
        rows.append((_MARKS[stage.status], stage.name, "", headline_of(stage)))
        if stage.name == "correct" and stage.status is not Status.SKIPPED:
            for test in report.tests:
                what = f"{test.size} {test.dist}".strip()
                rows.append((_MARKS[test.status], f"  {test.name}", what, _test_words(test)))
    return rows


def _test_words(test: Result) -> str:
    if test.status is Status.FAILED:
        return headline_of(test)
    if test.status is not Status.PASSED:
        return test.says
    if test.accuracy:
        return test.accuracy.says
    return next((note for note in test.notes if "different answers" in note or "left" in note), "")


def _explanations(report: Report) -> list[tuple[str, list[str]]]:
    """Explanations of stages that did not pass and of the first failed tests."""
    result = [
        (f"{stage.name}: {headline_of(stage)}", explained(stage))
        for stage in report.stages
        if stage.status in (Status.FAILED, Status.BROKEN) and stage.name != "correct"
    ]
    result += [
        (f"{stage.name}: worth knowing", stage.details)
        for stage in report.stages
        if stage.status is Status.PASSED and stage.details
    ]
    failed = [test for test in report.tests if test.status is Status.FAILED]
    seen: set[tuple[str, ...]] = set()
    for test in failed:
        kind = (str(test.why), *(clue.pattern for clue in test.clues[:1]))
        if kind not in seen and len(seen) < 3:
            seen.add(kind)
            result.append((f"{test.name}: {headline_of(test)}", explained(test)))
    if report.speed is not None:
        result.append(("time", [speed_line(report)]))
    return result


def _last_lines(report: Report) -> list[Cell]:
    last = list(map(Cell, report.notes))
    if report.tests:
        last.append(Cell(f"{points_line(report)}; seed {report.seed}; {report.plan}"))
    if report.kind != "variant":
        last.append(Cell(sandbox_line(report), ALARM if report.sandbox == "none" else ""))
    elif report.exit_code is ExitCode.ERROR:
        last.append(Cell("nothing could be judged, so it has not passed"))
    return last


# Annotations -------------------------------------------------------------------------------------

_SMALLER = "Try the smallest input that fails, by the commands that the report shows."
_LIMIT = "The sandbox ends what exceeds it, so that other submissions are judged, too."
_LOOP = "Look for a loop that does not end, and for work that each thread does for all."
_GRADER = (
    "Nothing is known of the submission: the fault is the grader's or the machine's.",
    "Judge it again; if it happens again, show the message to whoever runs the grader.",
)
# why it matters, and its cure
_HELP = {
    Why.NOTHING: (
        "A stage has failed, and its message says why.",
        "Read the message; the report has more of it.",
    ),
    Why.WRONG: ("The answer is not what the lab asks for.", _SMALLER),
    Why.OVERRUN: (
        "A kernel wrote to memory that is not its own. Elsewhere that damages other data.",
        "Check each index against the size before the access, most of all in the last block.",
    ),
    Why.INPUT_CHANGED: (
        "The lab may use its input again, and a kernel that writes it gives another answer then.",
        "Declare the inputs const, and write into the output or into memory of your own.",
    ),
    Why.CRASH: ("A signal ended the run, so that there is no answer.", _SMALLER),
    Why.EXIT: (
        "The run ended by an error, so that its answer does not count.",
        "The last lines on stderr say what failed.",
    ),
    Why.CONTRACT: (
        "The lab launches its kernels itself: their names and parameters are agreed upon.",
        "Compare with the file that `cudalab new` writes for the lab.",
    ),
    Why.TIME: (_LIMIT, _LOOP),
    Why.CPU: (_LIMIT, _LOOP),
    Why.MEMORY: (_LIMIT, "Allocate what the input needs, once, and free it."),
    Why.OUTPUT: (_LIMIT, "Write the answer alone, and take out what prints from a loop."),
    Why.PROCESSES: (_LIMIT, "Start no processes, and no thread for each item."),
    Why.DISK: (_LIMIT, "Write the answer to stdout, and no files."),
    Why.ACCEPTED_BAD_INPUT: (
        "An input that ends too early has no answer; a program that gives one hides the fault.",
        "Check how much was read, and end with a message and a status other than 0.",
    ),
    Why.COMPILE: (
        "What does not compile cannot be judged.",
        "Begin with the first message: those below often follow from it.",
    ),
    Why.FOREIGN: (
        "A kernel file has device code alone; host code in it would run in the grader's process.",
        "Keep kernels and device functions; a whole program is handed in with --program.",
    ),
    Why.LOST: _GRADER,
    Why.SANITIZER: (
        "The program does what CUDA does not define, so that a right answer is luck.",
        "Each finding names its line, its threads and what usually cures it.",
    ),
    Why.NO_KERNEL: (
        "The answer stays right without the program's kernels, or whatever they are given.",
        "Compute on the device, and copy the result back.",
    ),
    Why.LANGUAGE: (
        "The file is no CUDA source, so that no compiler was asked.",
        "Hand in the .cu file itself, as text in UTF-8.",
    ),
    Why.GRADER: _GRADER,
    Why.NO_DEVICE: (
        "Without the device there is no verdict, and never a pass.",
        "Judge on a machine with the device, or with --device cpu.",
    ),
}
POINTS = Rule("points", "points", "The points of the submission.", "Nothing.")


def rule_of(one: Result | Stage) -> Rule:
    """The rule of a failure, whose name is its kind: `wrong_answer`."""
    title = str(one.why or one.status)
    return Rule(re.sub(r"\W+", "_", title), title, *_HELP[one.why])


def remarks(report: Report, file: str) -> list[Annotation]:
    """An annotation for each failure, those with a line of the source first.

    `file` is the submission's; empty if it has none.
    """
    result = []
    for name, one in cases_of_all(report):
        if isinstance(one, Stage) and one.findings:
            annotations = of_findings(one.findings, file)
            if one.status is Status.PASSED:  # what the instructor calls a warning
                annotations = [
                    replace(r, level="warning") if r.level == "error" else r for r in annotations
                ]
            result += annotations
            continue
        if one.status not in (Status.FAILED, Status.BROKEN):
            continue
        messages = one.details if name == "compile" else ()
        at = next(filter(None, map(_COMPILE_ERROR.match, messages)), None)
        result.append(
            Annotation(
                rule=rule_of(one),
                title=name,
                level="error",
                text="\n".join([headline_of(one), *explained(one)]),
                file=at["file"] if at else file,
                line=int(at["line"]) if at else 0,
            )
        )
    return sorted(result, key=lambda remark: not remark.line)


def github(report: Report, file: str) -> str:
    """Workflow commands: an annotation for each failure, and a notice with the points."""
    notes = []
    if report.tests and not any(test.hidden for test in report.tests):
        notes = [Annotation(rule=POINTS, title=report.lab, level="note", text=points_line(report))]
    return commands([*remarks(report, file), *notes])


def sarif(report: Report, file: str) -> str:
    """SARIF 2.1.0 with a result for each failure."""
    return documents.sarif(remarks(report, file), "cudalab check", report.version)
