"""What is stored about mutants: a file of results, the reasons of survivors, the tables."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from cudalab import labs
from cudalab.labs import registry
from tools import results
from tools.mutants.rules import Mutant

FOLDER = results.FOLDER / "mutants"
VERDICTS = FOLDER / "cpu.json"
REASONS = FOLDER / "survivors.toml"
WORDS = ("rejected", "survived", "equivalent", "invalid")
KINDS = {  # of reasons
    "": "not examined yet",
    "hidden": "wrong answers where neither the tests nor the sanitizer look",
    "large": "wrong answers to inputs that take more time than a check has",
    "beyond": "wrong answers only to inputs of 16 GB or more, which no check can hold",
    "order": "an order of accesses that the processor of the CPU device keeps by itself",
    "same": "the same answers as the original, or others that the lab accepts, too",
}
UNSEEN = ("same", "beyond", "order")  # of which no run of a check could differ
Verdicts = list[tuple["Mutant", str]]


def stored() -> list[results.Json]:
    """The results of each variant, and the commit at which it was judged."""
    if not VERDICTS.exists():
        return []
    document = results.read(VERDICTS)
    return [{"commit": document["commit"], **row} for row in document["variants"]]


def store(machine: dict[str, str], lab: str, variant: str, verdicts: Verdicts) -> None:
    """Replace the results of a variant, by those rules of which some were judged."""
    judged = {one.rule for one, _ in verdicts}
    before = row_of(lab, variant)
    before["rules"] = {rule: n for rule, n in before["rules"].items() if rule not in judged}
    before["survivors"] = [one for one in before["survivors"] if one["rule"] not in judged]
    write(machine, before, verdicts)


def add(machine: dict[str, str], lab: str, variant: str, verdicts: Verdicts) -> None:
    """Add verdicts on further mutants of a variant."""
    write(machine, row_of(lab, variant), verdicts)


def write(machine: dict[str, str], row: results.Json, verdicts: Verdicts) -> None:
    """Store a variant's row with these verdicts in it, beside those of variants that are there."""
    counts = {rule: Counter(words) for rule, words in row["rules"].items()}
    for one, word in sorted(verdicts, key=lambda each: (each[0].rule, each[0].line, each[0].after)):
        counts.setdefault(one.rule, Counter())[word] += 1
        if word == "survived":
            keys = ("rule", "line", "before", "after")
            row["survivors"].append({key: getattr(one, key) for key in keys})
    row["rules"] = {rule: dict(words) for rule, words in counts.items()}
    row["commit"] = machine["commit"]
    key = row["lab"], row["variant"]
    kept = [each for each in stored() if (each["lab"], each["variant"]) != key and is_there(each)]
    rows = sorted([*kept, row], key=lambda each: (each["lab"], each["variant"]))
    results.write(VERDICTS, {**machine, "variants": rows})


def is_there(row: results.Json) -> bool:
    """Whether a row's variant is one of today's."""
    return row["variant"] in {one.name for one in registry.variants(labs.get(row["lab"]))}


def commits() -> str:
    """How many variants were judged at which commits, and the survivors of how many again."""
    rows = stored()
    first, again = (Counter(row[key] for row in rows if key in row) for key in ("commit", "again"))
    words = ", ".join(f"{count} variants at `{commit}`" for commit, count in first.items())
    more = ", ".join(f"{count} at `{commit}`" for commit, count in again.items())
    return f"{words}; survivors of {more} once more, by later lists of tests" if more else words


def row_of(lab: str, variant: str) -> results.Json:
    """What is stored about a variant."""
    for row in stored():
        if (row["lab"], row["variant"]) == (lab, variant):
            return row
    return {"lab": lab, "variant": variant, "rules": {}, "survivors": []}


def count(lab: str, variant: str, rules: Iterable[str]) -> int:
    """How many mutants of a variant by these rules have a verdict."""
    stored_rules = row_of(lab, variant)["rules"]
    return sum(sum(stored_rules.get(rule, {}).values()) for rule in rules)


def update(machine: dict[str, str], lab: str, variant: str, verdicts: Verdicts) -> None:
    """Replace the verdicts on survivors that are stored."""
    rows = stored()
    row = next(each for each in rows if (each["lab"], each["variant"]) == (lab, variant))
    for one, word in verdicts:
        counts = Counter(row["rules"][one.rule])
        counts.subtract(["survived"])
        counts.update([word])
        row["rules"][one.rule] = {key: count for key, count in counts.items() if count}
    row["again"] = machine["commit"]  # of the survivors alone
    dead = {(one.line, one.after) for one, word in verdicts if word != "survived"}
    row["survivors"] = [one for one in row["survivors"] if (one["line"], one["after"]) not in dead]
    results.write(VERDICTS, {**results.read(VERDICTS), "variants": rows})


def known_survivors() -> set[tuple[str, str, int, str]]:
    """The survivors that a test could reject: lab, variant, line, and the line's text."""
    return {
        (row["lab"], row["variant"], one["line"], one["after"])
        for row, one in survivors()
        if kind_of(row, one) not in UNSEEN
    }


def survivors() -> Iterator[tuple[results.Json, results.Json]]:
    """All survivors, each after the row of its variant."""
    for row in stored():
        for one in row["survivors"]:
            yield row, one


def lines(*, by_rule: bool) -> Iterable[list[str]]:
    """The rows of a table: a lab or a rule, and its mutants by verdict; the sum comes last.

    The last two columns are the shares of rejected ones: of those that can differ in a check, and
    of those that can differ at all.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in stored():
        for rule, words in row["rules"].items():
            for key in (rule if by_rule else row["lab"], "all"):
                counts[key].update(words)
    for row, one in survivors():
        for key in (one["rule"] if by_rule else row["lab"], "all"):
            counts[key][kind_of(row, one)] += 1
    counts["all"] = counts.pop("all", Counter())
    for key, of in counts.items():
        judged = of["rejected"] + of["survived"]
        shares = (
            100 * of["rejected"] / max(1, judged - sum(of[kind] for kind in kinds))
            for kinds in (UNSEEN, ("same",))
        )
        yield [key, *(f"{of[word]:,}" for word in WORDS), *(f"{one:.1f} %" for one in shares)]


def kind_of(row: results.Json, survivor: results.Json) -> str:
    """The kind of a survivor's reason: one of KINDS."""
    return reasons().get((row["lab"], survivor["after"]), ("", ""))[1]


@cache
def reasons() -> dict[tuple[str, str], tuple[str, str]]:
    """Why no test rejects a mutant, and of what kind the reason is.

    By the lab, and by the line as it is after the change.
    """
    document = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return {
        (lab, after): (reason["text"], reason["kind"])
        for reason in document["reason"]
        for lab, lines_of_lab in reason["lines"].items()
        for after in lines_of_lab
    }


def kinds() -> Iterable[list[str]]:
    """The rows of the table of kinds: how many survivors there are of each."""
    counts = Counter(kind_of(row, one) for row, one in survivors())
    for kind, text in KINDS.items():
        if counts[kind]:
            yield [text, f"{counts[kind]:,}"]


def explained() -> Iterable[list[str]]:
    """The rows of the table of reasons: how many survivors each explains, where, an example."""
    groups: dict[tuple[str, str], list[tuple[results.Json, results.Json]]] = defaultdict(list)
    for row, one in survivors():
        groups[reasons().get((row["lab"], one["after"]), ("", ""))].append((row, one))
    order = list(KINDS)
    for (reason, kind), members in sorted(
        groups.items(), key=lambda each: (order.index(each[0][1]), -len(each[1]))
    ):
        labs = ", ".join(f"`{lab}`" for lab in sorted({row["lab"] for row, _ in members}))
        example = min((one for _, one in members), key=lambda one: len(one["after"]))
        code = [f"`{example[key].replace('|', chr(0x2758))}`" for key in ("before", "after")]
        yield [reason or KINDS[kind], labs, *code, str(len(members))]


def table() -> str:
    """How many mutants the public tests reject, from docs/results/mutants."""
    columns = [*WORDS, "rejected of those that differ in a check", "of all that differ"]
    run = results.read(VERDICTS)
    return "\n".join(
        [
            (
                f"The latest were judged on {run['date']} at commit `{run['commit']}`, on "
                f"{run['device']}: {commits()}.\n"
            ),
            results.table(["lab", *columns], lines(by_rule=False), numbers=len(columns)),
            results.table(["rule", *columns], lines(by_rule=True), numbers=len(columns)),
            "What the survivors compute:\n",
            results.table(["answers", "mutants"], kinds(), numbers=1),
            "Why no test rejects them, with an example of each reason:\n",
            results.table(
                ["reason", "labs", "before", "after", "mutants"],
                explained(),
                numbers=1,
            ),
        ]
    )
