"""The documents: generated parts are fresh, and what they say to paste can be found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import generate, results

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "*.toml",
        "docs/**/*",
        "tools/**/*",
        "samples/**/*.md",
        "cudalab/**/*",
        "kernels/**/*",
    )
    for path in REPOSITORY.glob(pattern)
    if path.is_file() and path.suffix not in (".pyc", ".png")
)
# A folder that exists on one machine only. (The usual places of CUDA's tools are everybody's.)
ONE_MACHINE = re.compile(
    r"(?<![\w./-])/(?:home|root|Users|work|mnt|tmp|opt(?!/nvidia/)|srv|data)/[\w.-]"
)


def test_generated_parts_are_fresh():
    command = [sys.executable, "-m", "tools.generate", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr


def test_every_part_stands_in_one_document_once():
    texts = [document.read_text(encoding="utf-8") for document in generate.DOCUMENTS]
    found = [name for text in texts for name in re.findall(r"<!-- generated: ([a-z-]+) -->", text)]
    assert sorted(generate.PARTS) == sorted(found)


def test_a_stale_part_is_named():
    commands = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    text = commands.replace("| 130 |", "| 131 |")
    assert generate.stale_parts(text, generate.generated(text)) == ["exit-codes"]


def test_no_results_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert generate.figures() == "No measurement is stored yet.\n"


FIGURE = {"figure": "sort", "target": "≤ 4", "measured": 3.5, "unit": "s", "how": "median of 5"}
STORED = {
    "device": "Some GPU",
    "driver": "580.1",
    "date": "2026-01-31",
    "commit": "abc1234",
    "figures": [
        FIGURE,
        {**FIGURE, "measured": 4.5},
        {**FIGURE, "target": "≥ 1000", "measured": 1234, "unit": "keys/s"},
        {**FIGURE, "target": ""},
    ],
}


def test_results_of_several_machines(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(STORED), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({**STORED, "driver": "", "figures": []}))
    (tmp_path / "tests.txt").write_text("not a measurement")
    assert generate.figures() == (
        "Some GPU, driver 580.1, 2026-01-31, commit `abc1234`\n\n"
        "| figure | target | measured | how |\n"
        "| --- | --- | --- | --- |\n"
        "| sort | ≤ 4 s | 3.5 s | median of 5 |\n"
        "| sort | ≤ 4 s | 4.5 s (missed) | median of 5 |\n"
        "| sort | ≥ 1000 keys/s | 1,234 keys/s | median of 5 |\n"
        "| sort |  | 3.5 s | median of 5 |\n"
        "\n"
        "Some GPU, 2026-01-31, commit `abc1234`\n\n"
        "| figure | target | measured | how |\n"
        "| --- | --- | --- | --- |\n"
    )


@pytest.mark.parametrize(
    ("stored", "wrong"),
    [
        ({**STORED, "machine": "x"}, "machine"),
        ({key: value for key, value in STORED.items() if key != "commit"}, "commit"),
        ({**STORED, "figures": [{**FIGURE, "measured": "3.5"}]}, "measured"),
        ({**STORED, "figures": [{**FIGURE, "target": "fast"}]}, "target"),
        ({**STORED, "figures": [{**FIGURE, "unit": None}]}, "unit"),
    ],
)
def test_malformed_results_are_refused(tmp_path, monkeypatch, stored, wrong):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(SystemExit) as caught:
        generate.figures()
    assert caught.value.code == f"{path}: missing, unknown or of the wrong form: {wrong}"


def test_the_readme_is_short():
    assert len(README.encode()) <= 10 * 1024


def test_the_readme_has_the_two_lines_to_paste():
    start, *others = (
        line for line in README.splitlines() if line.startswith("python3 -m venv .venv && ")
    )
    (test,) = others
    assert " .venv/bin/cudalab radixsort < " in start
    assert test.endswith(".venv/bin/pytest -n auto")
    for line in (start, test):
        assert f"```sh\n{line}\n```" in README
        for sample in re.findall(r"samples/\S+", line):
            assert (REPOSITORY / sample).is_file()


def test_ci_runs_the_readme_s_test_line():
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    pattern = re.search(r"^test_line=\$\(grep -E '(.+)' README\.md\)$", script, re.MULTILINE)[1]
    found = [line for line in README.splitlines() if re.search(pattern, line)]
    assert len(found) == 1
    assert found[0].endswith("pytest -n auto")
    assert script.count("$test_line") == 2  # shown and run


def test_links_lead_somewhere():
    documents = [path for path in TEXTS if path.suffix == ".md"]
    assert len(documents) > 20
    for document in documents:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text("utf-8"), flags=re.DOTALL)
        for link, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
            target = document.parent / link if link else document
            assert link.startswith("https://") or target.exists(), link
            if heading and target.suffix == ".md" and target.is_file():
                assert heading in headings(target), f"{document.name}: {link}#{heading}"


def headings(document):
    """What links to the document's headings end with, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


PLACES = (REPOSITORY, REPOSITORY / "cudalab", REPOSITORY / "cudalab" / "backends" / "cpu")


def test_contributing_names_files_that_exist():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.-]+/[\w./-]*)`", text))
    files = {name for name in named if not re.search("my_|LAB", name)}
    assert len(files) > 20
    assert {name for name in files if not any((place / name).exists() for place in PLACES)} == set()


def test_tables_of_folders_and_commands_are_complete():
    contributing = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    results = (REPOSITORY / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    runtime = REPOSITORY / "cudalab" / "backends" / "cpu" / "runtime"
    commands = [
        path for path in (REPOSITORY / "tools").glob("*.py") if "__main__" in path.read_text()
    ]
    commands += [path.parent for path in (REPOSITORY / "tools").glob("*/__main__.py")]
    kept = [path for path in (REPOSITORY / "docs" / "results").iterdir() if path.is_dir()]
    folders = [*runtime.iterdir(), *(runtime / "optional").iterdir()]
    assert min(len(commands), len(kept), len(folders)) > 10
    assert [path.stem for path in commands if f"`tools.{path.stem}" not in contributing] == []
    assert [path.name for path in kept if f"| `{path.name}/` |" not in results] == []
    assert [path.name for path in folders if f"`{path.name}`" not in contributing] == []


def test_texts_have_no_tabs_and_no_machine_s_own_paths():
    assert len(TEXTS) > 500
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        assert "\t" not in text, path
        assert not ONE_MACHINE.search(text), path
        assert text.endswith("\n") or not text, path


def test_every_extra_is_explained():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    table = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8").split("## Extras")[1]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(project["project"]["optional-dependencies"])
