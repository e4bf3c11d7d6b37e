"""The table of docs/profile.md of what the sanitizer says of suites."""

from collections import Counter

from tools import results
from tools.suites.reasons import NOT_REPORTED


def tables() -> str:
    """The verdicts on programs whose mistakes are known, from docs/results/sanitize/*.json."""
    stored = results.read_all("sanitize")
    rows = [row for suite in stored for row in suite_rows(suite)]
    made = "".join(
        f"* **{suite['suite']}**: {suite['source']}.{noted(suite)} {judged_at(suite)}"
        + (f"; {suite['gpu']}.\n" if suite["gpu"] else ".\n")
        for suite in stored
    )
    heads = ["suite", "programs", "number", "`cudalab run --sanitize`", "compute-sanitizer"]
    return f"{results.table(heads, rows)}\n{made}\n{reasons(stored)}"


def reasons(stored: list[results.Json]) -> str:
    """A table of the wrong programs that are not found, and of those that are not judged."""
    rows = [
        [suite["suite"], f"`{program['name']}`", program["truth"], reason(suite, program)]
        for suite in stored
        for program in suite["programs"]
        if unfound(program)
    ]
    heads = ["suite", "not reported or not judged", "truth", "why"]
    return results.table(heads, rows)


def unfound(program: results.Json) -> bool:
    """Whether a program is wrong and not found, or was not judged."""
    return program["truth"] != "right" and not program["found"]


def reason(suite: results.Json, program: results.Json) -> str:
    """Why a program is not found: what `cudalab run` says of it, or what a reader has seen."""
    known = NOT_REPORTED.get(suite["suite"], {}).get(program["name"])
    stopped = program["truth"].endswith(": out of time")
    other = "takes longer than the limit" if stopped else "what was said is not stored"
    said: str = program.get("refused") or known or other
    return said


def judged_at(suite: results.Json) -> str:
    """The days on which programs of a suite were judged, each with its commits."""
    days: dict[str, dict[str, None]] = {}
    for program in suite["programs"]:
        days.setdefault(program["date"], {})[f"`{program['commit']}`"] = None
    return "; ".join(f"{day}, commit {', '.join(days[day])}" for day in sorted(days))


def noted(suite: results.Json) -> str:
    """The notes about right programs, and how many of these have each."""
    notes = [
        note
        for program in suite["programs"]
        if program["truth"] == "right"
        for note in program.get("notes", "").split(", ")
        if note
    ]
    counted = ", ".join(f"`{note}` {number}" for note, number in Counter(notes).most_common())
    runs = sum(program.get("runs", 0) for program in suite["programs"])
    possible = f" of {suite['possible']}" if "possible" in suite else ""
    text = f" {runs}{possible} runs." if runs else ""
    return text + (f" Right ones with a note: {counted}." if notes else "")


def suite_rows(suite: results.Json) -> list[list[str]]:
    """A row for the wrong programs of each kind, and one for the right ones."""
    rows = []
    for truth in dict.fromkeys(program["truth"] for program in suite["programs"]):
        programs = [program for program in suite["programs"] if program["truth"] == truth]
        word = "blamed" if truth == "right" else "found"
        ours = sum(bool(program["found"]) for program in programs)
        judged = [program["compute_sanitizer"] for program in programs]
        theirs = [verdict for verdict in judged if verdict is not None]
        counted = f"{sum(map(bool, theirs))} {word}" if theirs else "not run"
        counted += f" of {len(theirs)} run" if 0 < len(theirs) < len(judged) else ""
        noted = sum(not each["found"] and bool(each.get("notes")) for each in programs)
        said = f"{ours} {word}" + (f", {noted} noted" if noted and truth != "right" else "")
        rows.append([suite["suite"], truth, str(len(programs)), said, counted])
    return rows
