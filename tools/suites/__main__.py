"""Run programs of others, wrong and right, under cudalab's own sanitizer.

python -m tools.suites [--jobs N] CLONES [SUITE | SUITE/PROGRAM]...    all suites, or these

CLONES is a folder of git repositories, each named as on its host; a plain folder is taken as it
is. The runs of a wrong program end with the one that shows its mistake. Stores the verdicts,
and nothing of their code, in docs/results/sanitize; tools/generate.py makes a table of
docs/profile.md of them. What is stored when the tool is stopped, counts. Limits are in the
processor's time: a program that exceeds it is counted apart, and neither found nor blamed.
The programs run as they are: read them first.
"""

import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from cudalab.microscope import findings
from cudalab.system.machine import usable_cores
from tools import results
from tools.measure import COMMAND
from tools.sanitize import FOLDER, Kinds, kept, row
from tools.suites import cases, gpuverify, known, world
from tools.suites.program import RIGHT, WANTED, Program, Suite
from tools.world.run import limited

LIMIT_S = 60  # of the processor's time, for each run
LONGEST_S = 10 * LIMIT_S  # others use the processor, too
SYMBOLIC_LINK = "120000"  # its mode in git
REFUSED, STOPPED = "refused", "out of time"
SUITES = cases.SUITES | known.SUITES | gpuverify.SUITES | world.SUITES


def unpacked(clones: Path, suite: Suite, to: Path) -> str:
    """Unpack the parts of the repositories of a suite that are there, and name their commits."""
    sources = []
    for repository, part in suite.parts.items():
        name = repository.rpartition("/")[2]
        if (clones / name / part).is_dir() and not is_repository(clones / name):
            shutil.copytree(clones / name / part, to / part)
        elif (clone := clones / name).exists():
            unpack(clone, part, to if len(suite.parts) == 1 else to / name)
            head = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=clone)
            sources.append(f"{repository}, commit `{head.decode().strip()}`")
    return "; ".join(sources)


def is_repository(folder: Path) -> bool:
    """Whether a folder is a clone, with or without a working tree."""
    return (folder / ".git").exists() or (folder / "HEAD").exists()


def unpack(clone: Path, part: str, to: Path) -> None:
    """Write the files of a part of a clone's newest commit; a clone may lack the large ones."""
    form = "--format=%(objectmode) %(objectname) %(path)"
    listed = subprocess.check_output(["git", "ls-tree", "-rz", form, "HEAD", part], cwd=clone)
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=clone, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as git:
        asked, told = git.stdin, git.stdout
        assert asked is not None
        assert told is not None
        for line in listed.decode().split("\0")[:-1]:
            mode, name, path = line.split(" ", 2)
            asked.write(f"{name}\n".encode())
            asked.flush()
            head = told.readline().split()
            if head[1] == b"missing":
                continue
            data = told.read(int(head[2]) + 1)[:-1]
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            if mode == SYMBOLIC_LINK:
                (to / path).symlink_to(data.decode())
            else:
                (to / path).write_bytes(data)


def judged(program: Program) -> list[Kinds] | str:
    """The findings in each run of a program; or why it has none to show."""
    with tempfile.TemporaryDirectory() as folder:
        return findings_of(program, Path(folder, "findings.json"))


def findings_of(program: Program, report: Path) -> list[Kinds] | str:
    """The findings that each run of a program writes to a file; or why it has none to show."""
    runs: list[Kinds] = []
    for arguments in program.runs:
        report.unlink(missing_ok=True)
        words = ["run", "--device", "cpu", "--sanitize", "--json", str(report), *program.options]
        command = [*COMMAND, *words, *program.files, "--", *arguments]
        status, _, message = limited(command, program.folder, LIMIT_S, LONGEST_S)
        if status is None:
            return STOPPED
        if not report.exists():
            return f"{REFUSED}: {error(message)}"
        document = findings.read(report)
        kinds = [(each.kind, each.note) for each in document.findings]
        kinds += [("ignored_failure", False) for _ in document.ignored]
        kinds += [("leak", False) for _ in document.leaks if "--leaks" in program.options]
        if document.ended_by in ("SIGXCPU", "SIGKILL") and not shown(program, kinds):
            return STOPPED
        runs.append(kinds)
        if program.truth != RIGHT and any(not note for _, note in shown(program, kinds)):
            break
    return runs


def error(message: str) -> str:
    """The first line of an error that `cudalab run` ends with."""
    lines = message.partition("Error: ")[2].splitlines() or message.splitlines()[-1:] or [""]
    if lines[0].endswith("does not compile:"):
        return " ".join(lines[0:2])
    return lines[0]


def shown(program: Program, kinds: Kinds) -> Kinds:
    """The findings that count: of a mistake whose kind is known, those of that kind, and notes."""
    wanted = WANTED.get(program.truth)
    return [each for each in kinds if each[1] or wanted is None or each[0] in wanted]


def verdict(program: Program, runs: list[Kinds] | str, known: results.Json) -> results.Json:
    """What is stored of a program; what compute-sanitizer has said of it stays."""
    more: results.Json = {"compute_sanitizer": known.get("compute_sanitizer")}
    if program.what:
        more["what"] = program.what
    if isinstance(runs, str):
        ended, _, why = runs.partition(": ")
        more |= {"refused": why} if why else {}
        return row(program.name, f"{program.truth}: {ended}", [], **more)
    counted = [shown(program, kinds) for kinds in runs]
    every = dict.fromkeys(kind for kinds in runs for kind, note in kinds if not note)
    others = every.keys() - {kind for kinds in counted for kind, note in kinds if not note}
    if others:
        more["others"] = ", ".join(kind for kind in every if kind in others)
    return row(program.name, program.truth, counted, runs=len(runs), **more)


def judge(clones: Path, key: str, only: str, jobs: int) -> None:
    """Judge the programs of a suite whose name is `only`, or all, and store each as it comes."""
    suite, path = SUITES[key], FOLDER / f"{key}.json"
    before = results.read(path) if path.exists() else {"gpu": ""}
    rows = kept(path)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        source = unpacked(clones, suite, folder)
        about = f"{source}, {suite.about}" if source else suite.about
        about = before.get("source", about) if only else about  # of all its repositories
        head = {"suite": suite.title, "source": about, "gpu": before["gpu"]}
        programs = [each for each in suite.programs(folder) if only in ("", each.name)]
        programs.sort(key=lambda each: each.name in rows)  # the new ones first
        waiting = {pool.submit(judged, program): program for program in programs}
        for job in as_completed(waiting):
            program = waiting[job]
            rows[program.name] = verdict(program, job.result(), rows.get(program.name, {}))
            print(program.name, *(rows[program.name][each] for each in ("truth", "found", "notes")))
            results.write_rows(path, head, [rows[each] for each in sorted(rows)], "programs")


def main() -> None:
    """Judge the suites or programs that were chosen."""
    parser = ArgumentParser(
        "python -m tools.suites", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=usable_cores(), metavar="N", help="at a time")
    parser.add_argument("clones", type=Path, metavar="CLONES")
    parser.add_argument("chosen", nargs="*", metavar="SUITE | SUITE/PROGRAM")
    options = parser.parse_args()
    for each in options.chosen or SUITES:
        key, _, only = each.partition("/")
        if key not in SUITES:
            sys.exit(f"{key}: no suite; there are {', '.join(SUITES)}")
        judge(options.clones, key, only, options.jobs)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
