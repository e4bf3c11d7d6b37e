"""The sanitizer: what it says, each broken kernel found at its line, every right variant clean."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from dataclasses import asdict
from itertools import permutations
from pathlib import Path

import pytest
from command import cudalab
from traced import FILE, finding

from cudalab import labs
from cudalab.backends.cpu.check import rows
from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cpu.kernel_runtime import check_runtime_library
from cudalab.backends.trace import Place, Thread
from cudalab.labs import registry
from cudalab.language.source import kernels_dir
from cudalab.microscope import explanations, findings, sanitize
from cudalab.output import code
from tools import results
from tools import sanitize as shipped

ROOT = Path(__file__).parents[2]

VARIANTS, PROGRAMS = (shipped.FOLDER / f"{name}.json" for name in ("variants", "programs"))
BROKEN = Path(__file__).parents[1] / "broken"
_EXPECT = re.compile(r"^// /// expect\n(?P<toml>(?://[^\n]*\n)*?)// ///$", re.MULTILINE)

# Words -------------------------------------------------------------------------------------------


def test_every_kind_of_the_instrument_is_explained():
    assert set(rows.FINDINGS) <= set(explanations.KINDS)


@pytest.mark.parametrize("kind", sorted(explanations.KINDS))
def test_whatever_is_known_of_a_finding_it_can_be_said(kind):
    said = explanations.explain(finding(kind))
    assert all((said.title, said.what, said.why, said.cure))
    assert "None" not in said.what
    assert said.what.endswith(".")


@pytest.mark.parametrize("case", explanations._CASES, ids=lambda case: str(case["when"]))
def test_each_case_of_the_table_has_a_finding(case):
    """No condition is misspelt, and no case before it takes all of its findings."""
    assert case.keys() <= {"when", "goes_on", "title", "what", "why", "adds", "cure"}
    fields = {name: value[0] if isinstance(value, list) else value
              for name, value in case["when"].items()}  # fmt: skip
    if between := fields.pop("between", None):
        fields |= {"missing": "__syncwarp"} if between == "lanes" else {}
        fields["other_thread"] = Thread((3 + (between == "blocks"), 0, 0), (18, 0, 0))
    if fields.pop("unlike", False):
        fields |= {"access": "load", "other_access": "atomic"}
    if fields.pop("is_before", False):
        fields["beyond"] = -4
    if words := fields.pop("says", None):
        fields["detail"] = words
    said = explanations.explain(finding(fields.pop("kind", "out_of_bounds"), **fields))
    assert case.get("title", said.title) == said.title
    assert case.get("adds", "") in said.why
    assert case.get("why", "") in said.why
    assert "goes_on" in case or case.get("cure", said.cure) == said.cure


def test_a_race_names_both_ends_and_the_barrier():
    said = explanations.explain(
        finding(
            "race",
            access="load",
            space="shared",
            buffer="values",
            index=81,
            other_place=Place(FILE, 26),
            other_thread=Thread((3, 0, 0), (81, 0, 0)),
            other_access="store",
            missing="__syncthreads",
        )
    )
    assert said.what == (
        f"block 3, thread 17 reads values[81] in shared memory at {FILE}:31, "
        f"thread 81 writes it at {FILE}:26: there is no __syncthreads() between the two."
    )
    assert "Put __syncthreads() between the two" in said.cure


@pytest.mark.parametrize("missing", ["__syncwarp", "__syncthreads"])
def test_warp_synchronous_code_is_explained(missing):
    said = explanations.explain(finding("race", missing=missing, detail="volatile"))
    assert "independent thread scheduling" in said.why
    assert "7.0" in said.why


def test_a_race_between_blocks_has_no_barrier():
    said = explanations.explain(
        finding(
            "race",
            access="store",
            space="global",
            buffer="out",
            index=0,
            other_place=Place(FILE, 31),
            other_thread=Thread((4, 0, 0), (17, 0, 0)),
            other_access="store",
        )
    )
    assert "block 4, thread 17 writes it at the same line" in said.what
    assert "No barrier waits for another block" in said.why


@pytest.mark.parametrize(
    ("beyond", "words"),
    [
        (0, "just past the end of 'x' in global memory"),
        (4, "4 bytes past the end of 'x'"),
        (-1, "1 byte before the start of 'x'"),
        (None, "in memory that no argument of the launch leads to"),
    ],
)
def test_how_far_out_of_bounds(beyond, words):
    found = finding(
        "out_of_bounds",
        access="load",
        space="global",
        bytes=4,
        buffer="x" if beyond is not None else None,
        index=1000,
        beyond=beyond,
    )
    assert words in explanations.explain(found).what


def test_coordinates_are_shown_as_far_as_they_are_used():
    thread = Thread((0, 2, 0), (1, 2, 3))
    assert explanations.name_of(thread) == "block (0, 2), thread (1, 2, 3)"


def test_an_early_return_is_allowed_today():
    found = finding("barrier_divergence", other_thread=Thread((3, 0, 0), (200, 0, 0)), note=True)
    said = explanations.explain(found)
    assert "thread 200 has left the kernel" in said.what
    assert "undefined" in said.why


def test_a_barrier_that_was_skipped():
    said = explanations.explain(
        finding("barrier_divergence", other_thread=Thread((3, 0, 0), (200, 0, 0)), detail="left")
    ).what
    assert said == f"block 3, thread 17 waits at {FILE}:31, but thread 200 has left the kernel."


# The report --------------------------------------------------------------------------------------


@pytest.fixture
def report(tmp_path):
    """Makes reports."""
    lab = labs.get("reduce")
    variant = registry.find(lab, "interleaved_strided")
    with ExitStack() as stack:

        def make():
            path = tmp_path / "report.json"
            found = sanitize.Report(lab, variant, lab.complete({}), path)
            stack.callback(found.close)
            return found

        yield make


def test_the_same_mistake_is_one_finding(report):
    found = report()
    one = finding("race", other_place=Place(FILE, 26), other_thread=Thread((3, 0, 0), (1, 0, 0)))
    turned = finding("race", place=Place(FILE, 26), other_place=Place(FILE, 31), count=4)
    found.add([one], "n = 10")
    found.add([turned, finding("race"), finding("same_word", note=True)], "n = 20")
    document = found.saved()
    assert document == found.document()
    assert [(row.kind, row.count) for row in document.findings] == [
        ("race", 5),
        ("race", 1),
        ("same_word", 1),
    ]
    assert not document.clean
    assert document.findings[0].input == "n = 10"


def test_findings_are_counted_as_they_are_numbered(capsys):
    rows = {}
    for line, other in ((31, 26), (26, 31), (40, 26)):  # the ends of a race have no order
        race = finding("race", place=Place(FILE, line), other_place=Place(FILE, other))
        sanitize.add_rows(rows, [sanitize.finding_row(race, "")])
    note = finding("same_word", note=True)
    sanitize.add_rows(rows, [sanitize.finding_row(note, "")])
    groups = findings.grouped(rows.values())
    assert [len(group) for group in groups] == [2, 1]
    assert findings.errors(groups) == 1
    code.findings("title", groups)
    printed = capsys.readouterr().out
    assert re.findall(r"^\d\. .*", printed, re.MULTILINE) == [
        "1. data race, seen 3 times",
        "2. note: lanes of one instruction write the same word",
    ]


def test_the_barrier_that_cures_both_is_named(report):
    other = {"other_place": Place(FILE, 26), "other_thread": Thread((3, 0, 0), (1, 0, 0))}
    within = finding("race", missing="__syncwarp", count=8, **other)
    across = finding("race", missing="__syncthreads", thread=Thread((3, 0, 0), (81, 0, 0)), **other)
    for order in permutations([within, across]):
        found = report()
        for one in order:
            found.add([one], "n = 10")
        (row,) = found.document().findings
        assert (row.missing, row.thread, row.count) == ("__syncthreads", [81, 0, 0], 9)
        assert "no __syncthreads() between" in row.what
        assert "Put __syncthreads()" in row.cure


def test_notes_leave_a_kernel_clean(report):
    found = report()
    found.add([finding("same_word", note=True)], "n = 10")
    assert found.document().clean


def test_keys_are_documented(report):
    found = report()
    found.add([finding("race")], "n = 10")
    text = (BROKEN.parent.parent / "docs" / "profile.md").read_text(encoding="utf-8")
    document = asdict(found.document())
    keys = [*document, *document["findings"][0], *explanations.KINDS]
    assert not [key for key in keys if f"`{key}`" not in text]


def test_the_rule_of_each_kind_is_documented():
    text = (BROKEN.parent.parent / "docs" / "profile.md").read_text(encoding="utf-8")
    rules = text.partition("### The rule behind each finding")[2].partition("###")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]+\|", rules, re.MULTILINE))))
    conditions = [case["when"] for case in explanations._CASES]
    races = [when for when in conditions if {"missing", "detail"} <= when.keys()]
    named_there = (one for when in races for one in (when["missing"], when["detail"]))
    words = (one if isinstance(one, list) else [one] for one in named_there)
    details = {word for one in words for word in one if word} | {"volatile"}
    missing = set(filter(None, rows._MISSING))
    assert set(explanations.KINDS) | details | missing <= named


# Broken kernels ----------------------------------------------------------------------------------


def expectation(path):
    """What a file says about itself, and its marked lines."""
    text = path.read_text(encoding="utf-8")
    block = _EXPECT.search(text)
    if block is None:
        return None
    lines = [line.removeprefix("//").removeprefix(" ") for line in block["toml"].splitlines()]
    expected = tomllib.loads("\n".join(lines))
    marked = [n for n, line in enumerate(text.splitlines(), 1) if re.search(r"// \(\d\)", line)]
    return expected, marked


IMPATIENT = """
from cudalab.cli import app
from cudalab.microscope import supervised

supervised.FULL_SPEED_S = {}
app.main()
"""
OPTIONS = {"kill_after", "orders"}  # with which a file is looked at


def broken():
    """The files that say what is wrong with them."""
    return [path for path in sorted(BROKEN.glob("*/*.cu")) if expectation(path)]


def sanitized(*words, patience=None, **options):
    """The exit status and the document of `cudalab sanitize`.

    `patience` is for how many seconds it looks whether a kernel ends at full speed.
    """
    words = ("sanitize", *words, "--json", "-")
    if patience is None:
        done = cudalab(*words, text=True, **options)
    else:
        command = (sys.executable, "-c", IMPATIENT.format(patience), *map(str, words))
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_broken_kernels_of_many_labs():
    assert len(broken()) >= 20
    assert len({path.parent.name for path in broken()}) >= 6


@pytest.mark.parametrize("path", broken(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_broken_kernel_is_found_at_its_line(path):
    expected, marked = expectation(path)
    lab = labs.get(path.parent.name)
    applies = registry.read_header(path, lab).applies
    words = [
        word
        for axis, values in applies.items()
        if axis not in lab.derived and axis not in lab.flags
        for word in (f"--{axis}", values[0])
    ]
    if "orders" in expected:
        words += ["--orders", expected["orders"]]
    check_runtime_library()  # before the seconds of a limit are counted
    patience = 1 if expected["kind"] == "infinite_loop" else None
    note = expected.get("note", False)
    limits = [[]]
    if "kill_after" in expected:  # more and more seconds, as the machine may be busy
        limits = [["--kill-after", times * expected["kill_after"]] for times in (1, 4, 16)]
    for limit in limits:
        status, document = sanitized(lab.name, "--kernel", path, *words, *limit, patience=patience)
        found = [row for row in document["findings"] if row["note"] == note]
        fitting = [row for row in found if fits(row, expected, marked, path)]
        if fitting:
            break
    assert status == (0 if note else 3)
    assert document["clean"] == note
    assert fitting, json.dumps(found, indent=1)
    assert expected.get("says", "") in fitting[0]["why"]


def fits(row, expected, marked, path):
    """Whether a finding is the one that the file expects."""
    fields = {key: value for key, value in expected.items() if key not in {"says", *OPTIONS}}
    right = all(
        row[key] in value if isinstance(value, list) else row[key] == value
        for key, value in fields.items()
    )
    if not marked:
        return right
    ends = [(row["file"], row["line"])]
    if row["other_line"] and row["kind"] != "barrier_divergence":
        ends.append((row["other_file"], row["other_line"]))
    return right and all(file == str(path) and line in marked for file, line in ends)


# Right variants ----------------------------------------------------------------------------------


def test_every_variant_was_judged_clean_as_it_is():
    rows = {row["name"]: row for row in results.read(VARIANTS)["programs"]}
    for lab in map(labs.get, labs.names()):
        for variant in registry.variants(lab):
            if variant.missing(CpuDevice.features):
                continue
            name = f"{lab.name}/{variant.name}"
            assert name in rows, f"python -m tools.sanitize {name}"
            assert not rows[name]["found"]
            assert rows[name]["sha256"] == shipped.digest(variant), (
                f"changed since it was judged: python -m tools.sanitize {name}"
            )


@pytest.mark.parametrize("name", labs.names())
def test_the_default_variant_is_clean(name):
    """In a process of its own: this one may have run check mode, which a fork does not survive."""
    code = f"""
from dataclasses import replace
from cudalab import labs
from cudalab.labs import registry
from tools import sanitize
lab = labs.get({name!r})
run = next(sanitize.runs(registry.default(lab, lab.complete({{}}), "cpu")))
kinds = sanitize.judged(replace(run, sizes=run.sizes[:1]), orders=1)
print([kind for kind, note in kinds if not note])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_shipped_programs_were_judged():
    rows = {row["name"]: row for row in results.read(PROGRAMS)["programs"]}
    assert rows.keys() == {name for name, _, _ in shipped.programs()}
    for name, row in rows.items():
        assert bool(row["found"]) == (name.partition("/")[2] in shipped.REPORTED), name


def test_lanes_that_write_one_word_are_a_note():
    status, document = sanitized("histogram", "--variant", "warp_tagged")
    assert status == 0
    assert document["clean"]
    assert {row["kind"] for row in document["findings"]} == {"same_word"}


# The command -------------------------------------------------------------------------------------


def test_a_clean_kernel_exits_0_and_says_so():
    done = cudalab("sanitize", "transpose", "--variant", "tiled", text=True)
    assert done.returncode == 0, done.stderr
    assert "clean" in done.stdout


def test_findings_are_told_with_why_and_cure():
    path = BROKEN / "reduce" / "missing_barrier.cu"
    done = cudalab("sanitize", "reduce", "--kernel", path, text=True)
    assert done.returncode == 3, done.stderr
    for word in ("data race", "Why:", "Cure:", "__syncthreads", f"{path}:"):
        assert word in done.stdout.replace("\n   ", " "), done.stdout


def test_a_data_file_is_looked_at(tmp_path):
    data = tmp_path / "in.bin"
    assert cudalab("gen", "histogram", "--n", "500", "-o", data).returncode == 0
    status, document = sanitized(
        "histogram", "--kernel", BROKEN / "histogram" / "unsynchronised_counter.cu", "--data", data
    )
    assert status == 3
    assert document["inputs"] == [str(data)]


def test_a_kernel_that_does_not_compile_exits_5(tmp_path):
    text = (BROKEN / "table" / "off_by_one.cu").read_text(encoding="utf-8")
    own = tmp_path / "own.cu"
    own.write_text(text.replace("sinf(", "nonsense("), encoding="utf-8")
    done = cudalab("sanitize", "table", "--kernel", own, text=True)
    assert done.returncode == 5
    assert "nonsense" in done.stderr


def test_a_kernel_that_is_only_slow_is_not_accused():
    words = ("reduce", "--variant", "sequential", "--n", 2**22, "--kill-after", 4)
    done = cudalab("sanitize", *words, text=True)
    assert done.returncode == 6, done.stdout
    assert "it does end at full speed" in done.stderr


def test_every_kind_has_a_broken_kernel():
    kinds = [expectation(path)[0]["kind"] for path in broken()]
    named = {kind for one in kinds for kind in ([one] if isinstance(one, str) else one)}
    notes = {"same_word", "same_value"}  # see test_memory_model.py
    # The order, and the host's code, are of programs alone.
    kernels = {kind for kind, about in explanations.KINDS.items() if not about.orders_work}
    assert named == kernels - {"host_crash"} - notes


@pytest.mark.parametrize("command", ["sanitize", "profile"])
def test_what_a_kernel_prints_is_no_part_of_the_report(command, tmp_path):
    own = tmp_path / "own.cu"
    text = (kernels_dir() / "transpose" / "naive.cu").read_text(encoding="utf-8")
    head, brace, rest = text.partition(") {\n")
    own.write_text(f'{head}{brace}    printf("block %u\\n", blockIdx.x);\n{rest}', encoding="utf-8")
    words = ("transpose", "--n", "40", "--kernel", own, "--json", "-")
    done = cudalab(command, *words, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["schema"] == f"cudalab-{command}/1"
    assert "block 3" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "reduce/missing_barrier",
        "reduce/warp_synchronous",
        "reduce/off_by_one_tail",
        "reduce/lost_update",
        "scan/shared_overrun",
        "scan/wrong_mask",
    ],
)
def test_both_compilers_find_the_same(name):
    pytest.importorskip("ziglang", reason="the other compiler is an extra")
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compare with")
    lab, path = name.partition("/")[0], BROKEN / f"{name}.cu"
    found = []
    for compiler in ("g++", f"{sys.executable} -m ziglang c++"):
        words = (lab, "--dtype", "int32", "--kernel", path, "--n", 1000)
        _, document = sanitized(*words, env={**os.environ, "CXX": compiler})
        # How often depends on which operand of an expression a compiler reads first.
        found.append([{**row, "count": 0} for row in document["findings"]])
    assert found[0] == found[1]
