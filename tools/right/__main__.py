"""What `cudalab check` says of right kernels, in many styles, on the CPU device.

python -m tools.right [LAB[/VARIANT]...]         all variants as they are, and 3 styles of each
python -m tools.right --styles N [LAB[/VARIANT]...]   N styles of each instead
python -m tools.right --rest                     only those that this commit has not accepted yet

A shipped variant is right, and so is one that styles.py has written differently. Each is handed in
as a student's file and judged as `cudalab grade` judges: compiler, a third of the public list,
sanitizer, all rules. Whatever is not accepted is a false accusation, or something that the CPU
device lacks.

Stores docs/results/right/cpu.json; tools/generate.py makes the table of docs/checking.md from it.
"""

import random
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cudalab.checker.grading.batch import Task, judge_one
from cudalab.checker.options import JudgingOptions
from cudalab.checker.verdicts import Report, Status, Why
from cudalab.language import source
from cudalab.system.machine import usable_cores
from tools import results
from tools.mutants.__main__ import variants
from tools.right.styles import STYLES, File

SEED = 1
DRAWN = 3  # styles of each variant, besides the one that it has
VERDICTS = results.FOLDER / "right" / "cpu.json"
PLAIN = "as shipped"
WORDS = {
    "accepted": "all points, nothing found",
    "blamed": "the sanitizer names something in it",
    "said to cheat": "refused as code that no kernel holds, or that hides from the sanitizer",
    "refused": "it does not compile, or does not keep the lab's contract",
    "rejected": "a test calls it wrong",
    "not judged": "a stage could not be run",
}


def main() -> None:
    """Judge the kernels, a few at a time; store the verdict on each."""
    parser = ArgumentParser(
        "python -m tools.right", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--styles", type=int, default=DRAWN, metavar="N", help="styles of each")
    parser.add_argument("--rest", action="store_true", help="only what is not accepted yet")
    parser.add_argument("--jobs", type=int, default=usable_cores(), metavar="N", help="at a time")
    parser.add_argument("chosen", nargs="*", metavar="LAB[/VARIANT]")
    options = parser.parse_args()
    there = {(lab.name, variant.name) for lab, variant in variants([])}
    known = {key_of(row): row for row in stored() if (row["lab"], row["variant"]) in there}
    machine = results.machine("cpu")
    accepted = {
        key
        for key, row in known.items()
        if (row["verdict"], row["commit"]) == ("accepted", machine["commit"])
    }
    work = [
        one
        for one in kernels(options.chosen, options.styles)
        if not options.rest or one[:3] not in accepted
    ]
    random.Random(SEED).shuffle(work)  # noqa: S311 - a run that is stopped has some of all
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(judged, work):
            known[key_of(row)] = {**row, "commit": machine["commit"]}
            if row["verdict"] != "accepted":
                print(*key_of(row), row["verdict"], row["says"], sep=": ", flush=True)
            rows = [known[key] for key in sorted(known)]
            results.write_rows(VERDICTS, dict(machine), rows, "kernels")
    print(*(f"{count} {word}" for word, count in Counter(r["verdict"] for r in rows).items()))


def kernels(chosen: Sequence[str], count: int) -> Iterator[tuple[str, str, str, str]]:
    """Lab, variant, style and text: each variant as it is, and in drawn styles.

    Styles that have been drawn least come first, so that all are drawn about equally often.
    """
    drawn: Counter[str] = Counter()
    draw = random.Random(SEED)  # noqa: S311 - not for secrets
    for lab, variant in variants([]):
        file = File(source.whole(source.load(variant.path)))
        made = {name: style(file) for name, style in STYLES.items()}
        able = [name for name, text in made.items() if text and name != PLAIN]
        draw.shuffle(able)
        styles = [PLAIN, *sorted(able, key=lambda name: drawn[name])[:count]]
        drawn.update(styles)
        if not chosen or lab.name in chosen or f"{lab.name}/{variant.name}" in chosen:
            for name in styles:
                yield lab.name, variant.name, name, str(made[name])


def judged(work: tuple[str, str, str, str]) -> results.Json:
    """The verdict on a kernel."""
    lab, variant, style, text = work
    fields: dict[str, Any] = dict.fromkeys(JudgingOptions.__dataclass_fields__) | {
        "seed": SEED, "quick": True, "strict": False, "device": "cpu", "sandbox": "auto",
        "kill_after": 60.0, "memory": "2Gi", "no_sanitize": False, "no_time": True,
        "time_limit": 1.0,
    }  # fmt: skip
    task = Task(
        lab=lab, name=variant, kind="kernel", command="", file="", options={},
        judging=JudgingOptions(**fields),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "my.cu")
        path.write_text(text, encoding="utf-8", newline="")
        report, _ = judge_one(task, path)
    verdict, says = verdict_of(report)
    return {"lab": lab, "variant": variant, "style": style, "verdict": verdict, "says": says}


def verdict_of(report: Report) -> tuple[str, str]:
    """One of WORDS, and the first lines that say why."""
    for stage in report.stages:
        says = " / ".join([stage.says, *stage.details])[:400]
        if stage.why in (Why.FOREIGN, Why.LANGUAGE, Why.NO_KERNEL) or "hidden" in says:
            return "said to cheat", says
        if stage.why is Why.SANITIZER:
            return "blamed", says
        if stage.name == "compile" and stage.status is Status.FAILED:
            return "refused", says
        if stage.status is Status.BROKEN or "could not be run" in stage.says:
            return "not judged", says
    failed = [test for test in report.tests if test.status is Status.FAILED]
    if failed or not report.passed:
        says = "; ".join(f"{test.name}: {test.why}: {test.says}" for test in failed)
        contract = any(test.why is Why.CONTRACT for test in failed)
        return "refused" if contract else "rejected", says[:400]
    return "accepted", ""


def key_of(row: results.Json) -> tuple[str, str, str]:
    """What tells a kernel apart from all others."""
    return row["lab"], row["variant"], row["style"]


def stored() -> list[results.Json]:
    """The verdicts."""
    rows: list[results.Json] = results.read(VERDICTS)["kernels"] if VERDICTS.exists() else []
    return rows


def table() -> str:
    """What the checker says of them, for docs/checking.md."""
    run, columns = results.read(VERDICTS), ["kernels", *WORDS]
    commits = Counter(row["commit"] for row in stored())
    words = ", ".join(f"{count} at commit `{commit}`" for commit, count in commits.most_common())
    where = f"Judged on {run['device']}, the latest on {run['date']}: {words}.\n"
    kinds = results.table(["style", *columns], lines(), numbers=len(columns))
    return f"{where}\n{kinds}"


def lines() -> Iterator[list[str]]:
    """The rows of the table: a style, and its kernels by verdict; the sum comes last."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in stored():
        for name in (row["style"], "all"):
            counts[name][row["verdict"]] += 1
    for name in (*STYLES, "all"):
        yield [name, str(counts[name].total()), *(str(counts[name][word]) for word in WORDS)]


if __name__ == "__main__":
    main()
