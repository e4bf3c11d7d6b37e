"""Join the records of both devices: which programs print the same.

python -m tools.world.compare RECORD...    stores docs/results/world/programs.json

Each record is of one device. A program that no record of the CPU device has keeps its row. One
without a GPU's record is compared with the hash that is stored, and if there is none, judged by
what it says of itself.
"""

import gzip
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

from cudalab.bench.results import commit
from tools import results
from tools.results import Json, table
from tools.world import programs
from tools.world.masks import close, masked, same_lines
from tools.world.programs import STORED, Program
from tools.world.run import EXECUTABLE

VERDICTS = {  # those of a program that ends on both devices come first
    "same": "same",
    "order": "same lines in another order",
    "close": "within the tolerance",
    "varies": "explained",
    "different": "not explained",
    "passed": "passes its own check",
    "failed": "fails its own check",
    "slow": "stopped at the limit",
    "refused": "refused",
    "error": "error",
    "unjudged": "no answer of a GPU",
}
REFUSED = 125
_OTHER_HASH = "not what the GPU printed, whose hash alone is stored"
_STATUS = "status on the"
_NOTHING = hashlib.sha256(b"").hexdigest()[:16]  # printed
_WITHOUT_ANSWER = {
    "not compiled": "nvcc does not compile it",
    "stopped": "stopped at the limit on the GPU",
}
_KINDS = ("cpu", "cuda")
_PASSED = re.compile(
    r"\bpass(?:ed)?\b|\bsuccess|\bcorrect|\b(?:arrays|results) match|\bok\b", re.IGNORECASE
)
_FAILED = re.compile(
    r"\bfail(?:ed|ure)?\b(?!\s*[:=]?\s*0\b)|\bincorrect|\bdo(?:es)? not match|\bmismatch at",
    re.IGNORECASE,
)


def main(paths: list[Path]) -> None:
    """Compare, store, and print what is not the same."""
    before = results.read(STORED) if STORED.exists() else {"programs": []}
    rows_before = {(row["set"], row["program"]): row for row in before["programs"]}
    outcomes: dict[str, dict[tuple[str, str], Json]] = {"cpu": {}, "cuda": {}}
    for path in paths:
        kind, rows = _record(path)
        outcomes[kind].update(rows)
    compared_rows = []
    for program in programs.programs():
        ours, theirs = (each.get((program.set, program.name)) for each in outcomes.values())
        row = rows_before.get((program.set, program.name))
        if ours is not None:
            compared_rows.append(_row(program, ours, theirs, row))
        elif row is not None:
            compared_rows.append(row)
    stored = {"commit": commit(), "sets": programs.sets()}
    results.write_rows(STORED, stored, compared_rows, "programs")
    for row in compared_rows:
        if row["verdict"] not in {"same", "order", "close", "passed"}:
            print(row["verdict"], row["set"], row["program"], row["reason"])


def _record(path: Path) -> tuple[str, dict[tuple[str, str], Json]]:
    """Whether a record is of the CPU device or of a GPU, and its rows by set and name."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        head, *rows = map(json.loads, file)
    device = head["device"].partition("\n")[0]  # the first of several GPUs
    on = f"{device} ({head['date']})"
    return head["kind"], {(row["set"], row["name"]): {**row, "on": on} for row in rows}


def _row(program: Program, ours: Json, theirs: Json | None, before: Json | None) -> Json:
    """What is stored of a program; without a GPU's record it is compared with what is stored."""
    stored = before["cuda_sha256"] if before else ""
    verdict, reason = judged(program, ours, theirs)
    if theirs is None and stored and verdict not in {"refused", "error", "slow"}:
        is_same = ours["status"] == 0 and stored == _hash(program, ours) != _NOTHING
        verdict, reason = ("same", "") if is_same else ("unjudged", _OTHER_HASH)
        if program.varies and not is_same:
            verdict, reason = _varying(program, ours, None)
        elif ours["status"] != 0 and not (before and before["reason"].startswith(_STATUS)):
            verdict, reason = "failed", f"{_STATUS} CPU device: {ours['status']}"
    return {
        "set": program.set,
        "program": program.name,
        "verdict": verdict,
        "reason": reason,
        "limit_s": ours["limit_s"],
        "cpu_sha256": _hash(program, ours),
        "cuda_sha256": _hash(program, theirs) if theirs is not None else stored,
        "cpu": ours["on"],
        "cuda": theirs["on"] if theirs is not None else before["cuda"] if before else "",
    }


def _text(program: Program, outcome: Json) -> str:
    """The masked output, in which the program has the same name on both devices."""
    own = Path(program.files[0]).stem
    return masked(outcome["printed"].replace(f"./{EXECUTABLE}", own))


def _hash(program: Program, outcome: Json | None) -> str:
    """The hash of the masked output, if there is one."""
    if outcome is None or "printed" not in outcome:
        return ""
    return hashlib.sha256(_text(program, outcome).encode()).hexdigest()[:16]


def judged(program: Program, ours: Json, theirs: Json | None) -> tuple[str, str]:
    """The verdict on one program, and its reason where there is something to say."""
    if theirs is not None and theirs["status"] in _WITHOUT_ANSWER:
        return "unjudged", _WITHOUT_ANSWER[theirs["status"]]
    if ours["status"] == REFUSED:
        raw = re.search(r"does not compile|undefined|\berror:", ours["message"])
        return ("error" if raw else "refused"), _said(ours["message"])
    if ours["status"] == "stopped":
        return "slow", f"more than {ours.get('limit_s', 0)} s of processor time"
    if theirs is None:
        return _by_itself(ours), "not run on a GPU"
    return _compared(program, ours, theirs)


def _compared(program: Program, ours: Json, theirs: Json) -> tuple[str, str]:
    one, other = _text(program, ours), _text(program, theirs)
    found = "different"
    if theirs["status"] != 0:
        return "unjudged", f"{_STATUS} GPU: {theirs['status']}"
    if ours["status"] == 0 and one == other:
        found = "same" if other else "unjudged"
    elif ours["status"] == 0 and same_lines(one, other):
        found = "order"
    elif ours["status"] == 0 and close(one, other, program.tolerance):
        found = "close"
    elif program.varies:
        return _varying(program, ours, theirs)
    if found == "different":
        return found, program.differs
    return found, "" if other else "prints nothing that can be compared"


def _varying(program: Program, ours: Json, theirs: Json | None) -> tuple[str, str]:
    """The verdict on a program that prints something else on every device: its own, if it has one.

    What it says on a GPU, too, is no fault of the CPU device.
    """
    if program.says:
        is_right = ours["status"] == 0 and re.search(program.says, ours["printed"], re.MULTILINE)
        said = "passed" if is_right else "failed"
    else:
        said = _by_itself(ours)
    if said == "unjudged" or (theirs and said == "failed" == _by_itself(theirs)):
        return "varies", program.varies
    return said, "" if said == "passed" else program.varies


def _by_itself(ours: Json) -> str:
    """What a program says about its own answer."""
    if _FAILED.search(ours["printed"]):
        return "failed"
    return "passed" if ours["status"] == 0 and _PASSED.search(ours["printed"]) else "unjudged"


def _said(message: str) -> str:
    """The first line of a message, without the name of a file."""
    lines = [line for line in message.splitlines() if line and not line.startswith("note")]
    return re.sub(r"^(?:cudalab|Error): *|\S+\.\w+:\d+:\s*", "", lines[0])[:160] if lines else ""


def compared() -> str:
    """The tables for docs/run.md."""
    if not STORED.exists():
        return "No run is stored yet.\n"
    stored = results.read(STORED)
    total = [row["verdict"] for row in stored["programs"]]
    given = [verdict for verdict in VERDICTS if verdict in total]
    table_rows = []
    for name, source in stored["sets"].items():
        mine = [row["verdict"] for row in stored["programs"] if row["set"] == name]
        counts = [str(mine.count(verdict) or "") for verdict in given]
        if not mine:
            continue
        link = f"[{source['repository']}](https://github.com/{source['repository']})"
        table_rows.append([f"{link}, `{source['commit'][:8]}`", str(len(mine)), *counts])
    total = [row["verdict"] for row in stored["programs"]]
    table_rows.append(["all", str(len(total)), *(str(total.count(each)) for each in given)])
    odd = [
        [f"`{row['program']}`", VERDICTS[row["verdict"]], row["reason"]]
        for row in stored["programs"]
        if row["verdict"] in {"varies", "different", "error", "failed"}
    ]
    where = [Counter(row[kind] for row in stored["programs"] if row[kind]) for kind in _KINDS]
    ran = "; ".join(f"{on} for {count}" for each in where for on, count in each.items())
    made = f"Run on {ran}; commit `{stored['commit']}`.\n"
    columns = ["programs of", "run", *(VERDICTS[each] for each in given)]
    parts = [made, table(columns, table_rows, numbers=len(columns) - 1)]
    return "\n".join([*parts, table(["program", "", "why"], odd)] if odd else parts)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(str(__doc__))
    main([Path(name) for name in sys.argv[1:]])
