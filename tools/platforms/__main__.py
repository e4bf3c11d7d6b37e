"""What the platforms' own code makes of the results that cudalab writes for them.

python -m tools.platforms CLONES

CLONES has clones of PrairieLearn, of CodeRunner as `coderunner` and of VPL as `vpl`, and a folder
`classroom50` with result-v1.schema.json and the file `commit`; the packages of `node` have
TypeScript. php and node run the code of others in bubblewrap, without a network.

Reports of every kind are written, a message with the platforms' own marks among them; the code that
a platform reads them with must find the same share of the points and the same tests. Stores
docs/results/platforms/read.json; tools/generate.py makes the table of docs/checking.md from it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cudalab.checker import verdicts
from cudalab.checker.platforms import results as written
from cudalab.checker.verdicts import Report
from tools import results

HERE = Path(__file__).parent
READ = results.FOLDER / "platforms" / "read.json"
MARKS = 'Grade :=>>100\n<|--\n--|>\nComment :=>>x\n\0 "<b>&amp; %s \u2028 é\r\nGrade :=>> 100'
IDENTITY = {  # what Classroom 50's runner tells, and what it adds to a result
    **dict.fromkeys(("CLASSROOM", "ASSIGNMENT", "COMMIT_URL", "RELEASE_URL"), "x"),
    "SUBMISSION_TAG": "submit/1",
}
STAMPS = {"owner": "x", "assignment_type": "individual"}


class Reader(NamedTuple):
    """A platform: what is written for it, and which of its files read that by which command."""

    name: str
    clone: str
    write: Callable[[Report], str]
    files: tuple[str, ...]
    command: tuple[str, ...]


READERS = (
    Reader(
        "PrairieLearn", "PrairieLearn", written.prairielearn,
        ("apps/prairielearn/src/lib/externalGraderCommon.ts",),
        ("node", str(HERE / "prairielearn.cjs"), "{0}"),
    ),
    Reader(
        "Moodle CodeRunner", "coderunner", written.coderunner,
        ("classes/testing_outcome.php", "classes/combinator_grader_outcome.php",
         "classes/jobrunner.php"),
        ("php", str(HERE / "coderunner.php"), "{folder}"),
    ),
    Reader(
        "Moodle VPL", "vpl", written.vpl, ("vpl_submission.class.php", "locallib.php"),
        ("php", str(HERE / "vpl.php"), "{0}", "{1}"),
    ),
)  # fmt: skip


def main(clones: Path) -> None:
    """Write each report for each platform, have it read, and store what was found."""
    rows = [classroom50(clones / "classroom50"), *(read_by(one, clones) for one in READERS)]
    for row in rows:
        print(row["platform"], f"{row['right']} of {row['reports']}", *row["wrong"], sep=": ")
    results.write_rows(READ, {"date": results.today()}, rows, "platforms")


def reports() -> Iterator[tuple[str, Report, float, int]]:
    """Reports, each with its name, the share of the points and the number of rows it must show."""
    passed, failed = verdicts.Status.PASSED, verdicts.Status.FAILED
    for name, points, statuses in (
        ("all passed", 1.0, (passed, passed)),
        ("none passed", 1.0, (failed, failed)),
        ("thirds of a point", 1 / 3, (passed, failed, passed)),
        ("no points at all", 0.0, (passed,)),
    ):
        report = verdicts.Report(
            lab="reduce", submission="my.cu", kind="kernel", device="cpu", sandbox="none",
            sandbox_words="", seed=1, plan="", version="0",
        )  # fmt: skip
        report.stages = [verdicts.Stage("compile", passed, says=MARKS)]
        for number, status in enumerate(statuses):
            test = verdicts.Result(
                name=f"test <{number}>", size="1", dist="", seed=1, status=status, says=MARKS,
                details=MARKS.split("\n"),
            )  # fmt: skip
            test.max_points, test.points = points, points if status is passed else 0.0
            report.tests.append(test)
        report.stages.append(verdicts.Stage("sanitize", passed))
        share = sum(one is passed for one in statuses) / len(statuses) if points else 0.0
        yield name, report, share, len(statuses) + 2


def read_by(reader: Reader, clones: Path) -> results.Json:
    """What a platform's code says of each report."""
    wrong = []
    cases = list(reports())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clone = ("git", "-C", str(clones / reader.clone))
        for file in reader.files:
            text = subprocess.run([*clone, "show", f"HEAD:{file}"], check=True, capture_output=True)
            (folder / Path(file).name).write_bytes(text.stdout)
        moodle = folder / "question" / "type" / "coderunner" / "questiontype.php"
        moodle.parent.mkdir(parents=True)  # which CodeRunner loads and none of this needs
        moodle.touch()
        for case, report, share, rows in cases:
            (folder / "output").write_text(reader.write(report), encoding="utf-8")
            seen = run(reader, folder, clones)
            if seen["rows"] != rows or seen["share"] is None or abs(seen["share"] - share) > 1e-4:
                wrong.append(f"{case}: {seen}, not {share:g} and {rows}")
        commit = subprocess.run([*clone, "rev-parse", "HEAD"], check=True, capture_output=True)
    return row_of(reader.name, commit.stdout.decode().strip(), reader.files, len(cases), wrong)


def run(reader: Reader, folder: Path, clones: Path) -> dict[str, Any]:
    """Run the code of others on what lies in a folder, in a sandbox."""
    files = [str(folder / Path(file).name) for file in reader.files]
    words = [word.format(*files, folder=folder) for word in reader.command]
    modules = clones.resolve() / "node" / "node_modules"
    box = ("bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all")
    done = subprocess.run(
        [*box, "--setenv", "NODE_PATH", str(modules), *words, str(folder / "output")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seen: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return seen


def classroom50(folder: Path) -> results.Json:
    """What the schema of Classroom 50 says of each report."""
    schema = json.loads((folder / "result-v1.schema.json").read_text(encoding="utf-8"))
    os.environ.update(IDENTITY)
    wrong, cases = [], list(reports())
    for name, report, share, rows in cases:
        result = {**json.loads(written.classroom50(report)), **STAMPS}
        wrong += [f"{name}: {one.message}" for one in _errors(schema, result)]
        shown = result["score"] / (result["max-score"] or 1)
        if len(result["tests"]) != rows or abs(shown - share) > 0.01:
            wrong.append(f"{name}: {shown:g} and {len(result['tests'])}, not {share:g} and {rows}")
    commit = (folder / "commit").read_text(encoding="utf-8").strip()
    return row_of("Classroom 50", commit, ("schemas/result-v1.schema.json",), len(cases), wrong)


def _errors(schema: dict[str, Any], result: dict[str, Any]) -> Iterator[Any]:
    validator: Any = import_module("jsonschema").Draft202012Validator(schema)
    yield from validator.iter_errors(result)


def row_of(
    name: str, commit: str, files: tuple[str, ...], count: int, wrong: list[str]
) -> results.Json:
    """What is stored of a platform."""
    right = count - len({one.partition(":")[0] for one in wrong})
    made = {"platform": name, "commit": commit, "files": files}
    return {**made, "reports": count, "right": right, "wrong": wrong}


def table() -> str:
    """Who reads what, for docs/checking.md."""
    stored = results.read(READ)
    rows = (
        [
            row["platform"],
            ", ".join(f"`{file}`" for file in row["files"]),
            f"`{row['commit'][:7]}`",
            f"{row['right']} of {row['reports']}",
        ]
        for row in stored["platforms"]
    )
    return results.table(["platform", "its own files", "commit", "reports read as meant"], rows)


if __name__ == "__main__":
    if len(sys.argv) != 2 or shutil.which("bwrap") is None:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
