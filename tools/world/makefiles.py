"""Build projects of others by `cudalab run --make`, and run one of the programs of each.

python -m tools.world.makefiles SOURCES [--only WORD]    stores docs/results/world/makefiles.json

SOURCES has a folder OWNER+NAME for each repository of makefiles.toml, at the commit named there.
A project is built in a copy, by one command; its program is started without cudalab.
"""

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from tools import results
from tools.results import Json
from tools.world.run import limited

TABLE = Path(__file__).with_name("makefiles.toml")
STORED = results.FOLDER / "world" / "makefiles.json"
VERDICTS = {
    "right": "built; its own check passes",
    "runs": "built; ends with status 0",
    "built": "built",
    "not built": "not built",
}
BUILD_S, RUN_S = 600, 60  # limits of processor time
_ERROR = re.compile(r"^.*(?:error|\*\*\*).*$", re.MULTILINE | re.IGNORECASE)


def main() -> None:
    """Parse the command line, build and run, and store the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m tools.world.makefiles")
    parser.add_argument("sources", type=Path)
    parser.add_argument("--only", default="", help="a part of a repository's name")
    given = parser.parse_args()
    rows = results.read(STORED)["rows"] if STORED.exists() else []
    rows_before = {(row["repository"], row["folder"]): row for row in rows}
    rows = []
    for project in projects():
        row = rows_before.get((project["repository"], project["folder"]))
        if row is None or given.only in project["repository"]:
            row = judged(project, given.sources)
            print(row, flush=True)
        rows.append(row)
    results.write_rows(STORED, results.machine("cpu"), rows)


def projects() -> list[Json]:
    """The table's projects."""
    listed: list[Json] = tomllib.loads(TABLE.read_text("utf-8"))["projects"]
    return listed


def judged(project: Json, sources: Path) -> Json:
    """Build a project in a copy and run its program: the row of the stored table."""
    row = {key: project[key] for key in ("repository", "commit", "folder", "program")}
    row["options"] = project.get("make", [])
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch).resolve() / "copy"
        shutil.copytree(sources / project["repository"].replace("/", "+"), top, symlinks=True)
        folder = top / project["folder"]
        make = [sys.executable, "-m", "cudalab", "run", "--make", *row["options"]]
        status, printed, problem = limited(make, folder, BUILD_S, 4 * BUILD_S)
        if status != 0 or not (folder / project["program"]).exists():
            error = _ERROR.search(problem) or _ERROR.search(printed)
            why = project.get("known") or (error[0] if error else f"status {status}")
            return {**row, "verdict": "not built", "reason": why.replace(f"{top}/", "")[:200]}
        program = [f"./{project['program']}", *project.get("arguments", [])]
        status, printed, problem = limited(program, folder, RUN_S, 4 * RUN_S)
    row["sha256"] = hashlib.sha256(printed.encode()).hexdigest()
    if status is None:
        return {**row, "verdict": "built", "reason": f"takes more than {RUN_S} s of processor time"}
    if status == 0 and "says" not in project:
        return {**row, "verdict": "runs", "reason": project.get("known", "")}
    if status == 0 and re.search(project["says"], printed, re.MULTILINE):
        return {**row, "verdict": "right", "reason": ""}
    said = (problem.strip() or printed.strip()).splitlines()[-1:]
    why = project.get("known") or f"status {status}: {' '.join(said)[:150]}"
    return {**row, "verdict": "built", "reason": why}


def table() -> str:
    """The table for docs/run.md."""
    if not STORED.exists():
        return "No run is stored yet.\n"
    stored = results.read(STORED)
    given = [row["verdict"] for row in stored["rows"]]
    rows = [
        [
            f"[{row['repository']}](https://github.com/{row['repository']}), `{row['commit'][:8]}`",
            f"`{row['folder']}`",
            VERDICTS[row["verdict"]],
            row["reason"].replace("|", "\\|"),
        ]
        for row in sorted(stored["rows"], key=lambda row: [*VERDICTS].index(row["verdict"]))
    ]
    return (
        f"{stored['device']}, {stored['date']}, commit `{stored['commit']}`: of {len(given)} "
        f"projects {len(given) - given.count('not built')} are built. Of the programs, one of each "
        f"project, {given.count('right')} pass their own check, and {given.count('runs')} more, "
        "which have none, end with status 0.\n\n"
        + results.table(["project", "folder", "", "why"], rows)
    )


if __name__ == "__main__":
    main()
