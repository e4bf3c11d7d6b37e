"""Write the generated parts of the documents, so that nothing is typed a second time.

python -m tools.generate          rewrite them
python -m tools.generate --check  exit 1 and name the parts that are stale
"""

import re
import sys
from inspect import getdoc
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import host_features
from cudalab.errors import ExitCode
from cudalab.labs import registry
from cudalab.labs.base import Lab
from tools import attacks, programs, results, sanitizers, selftest, translations, worker
from tools.mutants import tables as mutants
from tools.platforms import __main__ as platforms
from tools.predict import tables as predict_tables
from tools.results import table
from tools.right import __main__ as right
from tools.studies import accuracy as errors_of_answers
from tools.studies import (
    atomics,
    checkouts,
    checks,
    compile_time,
    ladders,
    launch_cost,
    loops,
    multiprocessors,
    oracle,
    program_loops,
    repeats,
    rungs,
    targets,
    tiers,
    tuned_cub,
    volatile_tail,
    watching,
)
from tools.studies.counters import JUDGED, agreeing
from tools.suites import tables as judged_suites
from tools.website import manual, schemas
from tools.world import compare as world
from tools.world import makefiles, speed

DOCUMENTS = (
    results.ROOT / "docs" / "bench.md",
    results.ROOT / "docs" / "checking.md",
    results.ROOT / "docs" / "watch.md",
    results.ROOT / "docs" / "commands.md",
    results.ROOT / "docs" / "json.md",
    results.ROOT / "docs" / "performance" / "README.md",
    results.ROOT / "docs" / "performance" / "cpu.md",
    results.ROOT / "docs" / "performance" / "figures.md",
    results.ROOT / "docs" / "predict.md",
    results.ROOT / "docs" / "profile.md",
    results.ROOT / "docs" / "python.md",
    results.ROOT / "docs" / "run.md",
)

_PART = re.compile(
    r"(?P<open><!-- generated: (?P<name>[a-z-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL
)
_TARGET = re.compile(r"(?P<relation>[≤≥]) (?P<bound>\d+(?:\.\d+)?)")


def inputs() -> str:
    """What each lab reads from Python: its stream, its element types and its options."""
    return table(
        ["lab", "stream and answer", "types", "options"],
        (
            [
                f"`{name}`",
                (getdoc(type(labs.get(name))) or "").partition("\n\n")[0].replace("\n", " "),
                ", ".join(labs.get(name).axes["dtype"]),
                "; ".join(keywords(labs.get(name))),
            ]
            for name in labs.names()
        ),
    )


def keywords(lab: Lab) -> list[str]:
    """The options of `cudalab.run` with their values or types; the first value is the default."""
    axes = [
        f"`{axis}`: {', '.join(values)}"
        for axis, values in lab.axes.items()
        if axis not in {"dtype", *lab.derived}
    ]
    own = [
        f"`{option.name.removeprefix('--').replace('-', '_')}`: {option.type.__name__}"
        for option in lab.options
        if option.type is not bool
    ]
    return axes + own


def exit_codes() -> str:
    return table(["exit status", "meaning"], ([str(int(c)), c.meaning] for c in ExitCode))


def figures() -> str:
    """One table for each JSON file of docs/results."""
    tables = [measurements(path) for path in sorted(results.FOLDER.glob("*.json"))]
    return "\n".join(tables) or "No measurement is stored yet.\n"


def measurements(path: Path) -> str:
    """One file's table; docs/results/README.md describes the file's form."""
    stored = checked(path, results.read(path), FILE_KEYS)
    rows = [row(checked(path, figure, FIGURE_KEYS)) for figure in stored["figures"]]
    driver = f", driver {stored['driver']}" if stored["driver"] else ""
    return f"{stored['device']}{driver}, {stored['date']}, commit `{stored['commit']}`\n\n" + table(
        ["figure", "target", "measured", "how"], rows
    )


FILE_KEYS = {"device": str, "driver": str, "date": str, "commit": str, "figures": list}
FIGURE_KEYS = {"figure": str, "target": str, "measured": (int, float), "unit": str, "how": str}


def checked(path: Path, values: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """`values`, if it has exactly `keys` and their types."""
    wrong = sorted(values.keys() ^ keys.keys())
    wrong += [k for k, kind in keys.items() if k in values and not isinstance(values[k], kind)]
    if values.get("target") and not _TARGET.fullmatch(str(values["target"])):
        wrong.append("target")
    if wrong:
        sys.exit(f"{path}: missing, unknown or of the wrong form: {', '.join(wrong)}")
    return values


def row(figure: dict[str, Any]) -> list[str]:
    unit, measured = figure["unit"], figure["measured"]
    target = _TARGET.fullmatch(figure["target"])
    reached = f"{measured:,} {unit}"
    if target is None:
        return [figure["figure"], "", reached, figure["how"]]
    bound = float(target["bound"])
    if measured > bound if target["relation"] == "≤" else measured < bound:
        reached += " (missed)"
    return [figure["figure"], f"{figure['target']} {unit}", reached, figure["how"]]


def bench() -> str:
    """From each ladder of docs/results/bench/*.json: the first rung, the fastest, the baselines."""
    tables = [
        ladders.heading(stored.environment)
        + table(ladders.COLUMNS, map(ladders.line, stored.tables))
        for stored in ladders.stored()
    ]
    return "\n".join(tables) or "No measurement is stored yet.\n"


def goals() -> str:
    """Each lab's best beside the vendor's libraries, from docs/results/targets/*.json."""
    columns = ["work", "n", "variant", "times the peer's speed", "goal", "measured"]
    return "\n".join(
        f"{stored['device']}:\n\n"
        + table(columns, targets.lines(stored))
        + targets.wrong_answers(stored)
        + targets.not_measured(stored)
        for stored in results.read_all("targets")
    )


def parts_of_gpus() -> str:
    """The plans on parts of a GPU, from docs/results/multiprocessors/*.json."""
    return "\n".join(
        f"{stored['device']}: {multiprocessors.summary(stored['rows'])}.\n\n"
        + table(multiprocessors.COLUMNS, multiprocessors.lines(stored["rows"]), numbers=6)
        for stored in results.read_all("multiprocessors")
    )


def false_verdicts() -> str:
    """Verdicts on kernels compared with themselves, from docs/results/repeats/*.json."""
    return table(repeats.COLUMNS, repeats.lines(), numbers=5)


def accuracy() -> str:
    """The errors of matmul's and solve's variants, from docs/results/accuracy/*.json."""
    parts = []
    for stored in results.read_all("accuracy"):
        sizes = f"products of order {stored['n']['matmul']:,}, systems of {stored['n']['solve']:,}"
        made = f"{stored['date']}, commit `{stored['commit']}`"
        parts.append(f"{stored['device']}, {sizes} unknowns, {made}:\n")
        parts += (table(*errors_of_answers.lines(stored, lab)) for lab in stored["errors"])
    return "\n".join(parts)


def sanitized() -> str:
    """What NVIDIA's checkers report of each lab, from docs/results/sanitizers/*.json."""
    parts = []
    for stored in results.read_all("sanitizers"):
        parts.append(f"{stored['device']}:\n")
        parts.append(table(["lab", "n", *sanitizers.TOOLS, "run"], sanitizers.lines(stored)))
    return "\n".join(parts) or "Nothing is stored yet.\n"


def counters() -> str:
    """How the CPU's instrument compares with each GPU of docs/results/counters/*.json."""
    tables = [comparison(stored) for stored in results.read_all("counters")]
    return "\n".join(tables) or "No comparison is stored yet.\n"


def comparison(stored: dict[str, Any]) -> str:
    """How many counts agree, and the causes of those that do not."""
    rows = stored["rows"]
    judged = {name: [row for row in rows if row["quantity"] == name] for name in JUDGED}
    head = (
        f"{stored['device']}, Nsight Compute {stored['ncu'].split()[1]}, {stored['date']}, "
        f"commit `{stored['commit']}`:\n\n"
    )
    agreement = table(
        ["count", "kernels compared", "equal", "within 2 %", "explained"],
        ([JUDGED[name], *map(str, agreeing(judged[name]))] for name in JUDGED),
    )
    reasons: list[list[str]] = []
    for cause, sentence in stored["causes"].items():
        for name, of in judged.items():
            if same := [row for row in of if row.get("cause") == cause]:
                text = sentence if not reasons or reasons[-1][0] != cause else ""
                reasons.append([cause, text, JUDGED[name], *group(same)])
    columns = ["cause", "count", "kernels of", "deviation", "for example"]
    text = head + agreement + "\n" + table(columns, (row[1:] for row in reasons))
    missing = ", ".join(f"`{name}`" for name in not_compared(rows))
    return text + (f"\nNew or changed since, and not compared: {missing}.\n" if missing else "")


def not_compared(rows: list[dict[str, Any]]) -> list[str]:
    """The variants of the same labs that both devices run and that are not among the rows."""
    known = {row["run"].rpartition("/")[0] for row in rows}
    return [
        f"{lab}/{variant.name}"
        for lab in dict.fromkeys(row["run"].partition("/")[0] for row in rows)
        for variant in registry.variants(labs.get(lab))
        if not variant.missing(host_features()) and f"{lab}/{variant.name}" not in known
    ]


def group(rows: list[dict[str, Any]]) -> list[str]:
    """The kernels that deviate for one cause, by how much, and the evidence for the first."""
    variants: dict[str, dict[str, None]] = {}
    for row in rows:
        lab, variant, _ = row["run"].split("/")
        variants.setdefault(lab, {})[variant] = None
    names = "; ".join(f"`{lab}` {', '.join(of_lab)}" for lab, of_lab in variants.items())
    off = sorted(row["deviation"] for row in rows if row["deviation"] is not None)
    spread = [" to ".join(dict.fromkeys(map(percent, (off[0], off[-1]))))] if off else []
    if len(off) < len(rows):
        spread.append(f"{len(rows) - len(off)} where the GPU counts none")
    return [names, "; ".join(spread), f"`{rows[0]['run']}`: {rows[0]['evidence']}"]


def percent(deviation: float) -> str:
    return f"{100 * deviation:+.0f} %" if deviation < 9 else f"{deviation + 1:,.0f} times"


def exploited() -> str:
    """Published exploits and the checker's verdicts, from docs/results/selftest."""
    stored = results.read_all("selftest")
    return table(selftest.exploit_columns(stored), selftest.exploit_rows(stored))


def selftests() -> str:
    """The runs of the checker's own test, from docs/results/selftest."""
    return table(selftest.RUN_COLUMNS, selftest.run_rows(results.read_all("selftest")))


FAULTS = {
    "killed_grader": "the grader killed (SIGKILL) when half is done, then run again",
    "killed_worker": "a worker of a local Dask cluster killed when a third is done",
}


def attacked() -> str:
    """Classes with attacks and faults, from docs/results/attacks: a row for each run and fault."""
    lines = []
    for run in results.read_all("attacks"):
        where = f"{run['sandbox']}, {run['user']}"
        made = [run["device"], where, run["date"], f"`{run['commit']}`"]
        for fault, words in FAULTS.items():
            rows = [row for row in run["rows"] if row["fault"] == fault]
            sums = [str(sum(row[key] for row in rows)) for key in ("submissions", "faults")]
            sums += [str(sum(row[key] for row in rows)) for key in ("again", "lost")]
            sums += [
                str(sum(len(row[key]) for row in rows)) for key in ("wrong", "escapes", "open")
            ]
            if rows:
                lines.append([*made, words, *sums])
    columns = ["machine", "sandbox, user", "date", "commit", "fault", "submissions", "faults"]
    columns += ["judged again", "lost results", "wrong verdicts", "escapes", "open"]
    return table(columns, lines, numbers=7)


def samples() -> str:
    """What became of the programs that others wrote, in docs/results/samples."""
    stored = results.read_all("samples")
    return "\n".join(map(samples_of, stored)) if stored else "No run is stored yet.\n"


def samples_of(stored: results.Json) -> str:
    """One collection: the programs that pass their own check by folder, then all others."""
    programs = stored["programs"]
    passed = [program for program in programs if program["verdict"] == "passed"]
    others = [program for program in programs if program["verdict"] != "passed"]
    folders = dict.fromkeys(program["folder"] for program in passed)
    again = [program for program in programs if "commit" in program]
    later = "".join(
        f"; commit `{commit}`: "
        + ", ".join(each["program"] for each in again if each["commit"] == commit)
        for commit in dict.fromkeys(program["commit"] for program in again)
    )
    made = (
        f"{stored['source']}, commit `{stored['source_commit']}`, as shipped: {len(passed)} of "
        f"{len(programs)} programs pass their own check ({stored['device']}, {stored['date']}, "
        f"commit `{stored['commit']}`{later})."
    )
    pass_rows = (
        [f"`{folder}`", ", ".join(each["program"] for each in passed if each["folder"] == folder)]
        for folder in folders
    )
    rows = ([f"`{each['program']}`", each["verdict"], each["reason"]] for each in others)
    return "\n".join(
        [
            f"{made}\n",
            table(["folder", "pass"], pass_rows),
            table(["program", "verdict", "reason"], rows),
        ]
    )


PARTS = {
    "exit-codes": exit_codes,
    "figures": figures,
    "bench": bench,
    "counters": counters,
    "goals": goals,
    "tuned-cub": tuned_cub.compared,
    "multiprocessors": parts_of_gpus,
    "repeats": false_verdicts,
    "accuracy": accuracy,
    "sanitizers": sanitized,
    "atomics": atomics.tables,
    "suites": judged_suites.tables,
    "programs": programs.table,
    "selftest": selftests,
    "worker": worker.table,
    "exploits": exploited,
    "attacks": attacked,
    "mutants": mutants.table,
    "right": right.table,
    "written": attacks.table,
    "platforms": platforms.table,
    "checks": checks.table,
    "watching": watching.table,
    "samples": samples,
    "makefiles": makefiles.table,
    "world": world.compared,
    "oracle": oracle.compared,
    "inputs": inputs,
    "schemas": schemas.listed,
    "loops": loops.compared,
    "small-kernels": loops.beside_pocl,
    "program-loops": program_loops.compared,
    "compile-time": compile_time.measured,
    "launch-cost": launch_cost.measured,
    "volatile-tail": volatile_tail.measured,
    "speed-polybench": speed.of_polybench,
    "speed-rodinia": speed.of_rodinia,
    "tiers": tiers.counted,
    "checkouts": checkouts.compared,
    "predict-constants": predict_tables.constants,
    "predict-gpus": predict_tables.known_gpus,
    "predict-scores": predict_tables.scores,
    "predict-terms": predict_tables.without_terms,
    "predict-below": predict_tables.below,
    "predict-intervals": predict_tables.intervals,
    "predict-misses": predict_tables.misses,
    "predict-others": predict_tables.of_others,
    "predict-waiting": predict_tables.waiting,
}


def generated(text: str) -> str:
    """`text` with each part between markers generated again."""

    def part(match: re.Match[str]) -> str:
        return f"{match['open']}\n{PARTS[match['name']]()}\n{match['close']}"

    return _PART.sub(part, text)


def stale_parts(old: str, new: str) -> list[str]:
    pairs = zip(_PART.finditer(old), _PART.finditer(new), strict=True)
    return [was["name"] for was, now in pairs if was[0] != now[0]]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    for document in DOCUMENTS:
        old = document.read_text(encoding="utf-8")
        new = generated(old)
        stale = stale_parts(old, new)
        if stale and arguments:
            sys.exit(f"{document.name}: stale: {', '.join(stale)}: run `python -m tools.generate`")
        document.write_text(new, encoding="utf-8")
    written = (*rungs.pages(), *schemas.pages(), *translations.pages())
    for document, new in (*written, (manual.PAGE, manual.text())):
        old = document.read_text(encoding="utf-8") if document.exists() else ""
        if old != new and arguments:
            name = document.relative_to(results.ROOT)
            sys.exit(f"{name}: stale: run `python -m tools.generate`")
        document.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
