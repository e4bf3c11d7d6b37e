"""tools/mutants: the rules, a verdict of each kind, and that every survivor has a reason."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cudalab import labs
from cudalab.labs import registry
from tools.mutants import rules, sometimes, tables

ROOT = Path(__file__).parents[2]

CASES = {
    "relation": ("if (i < n) f();", "if (i <= n) f();"),
    "arithmetic": ("x = a + b;", "x = a - b;"),
    "bits": ("x = a >> b;", "x = a << b;"),
    "logic": ("if (a && b) f();", "if (a || b) f();"),
    "constant": ("x = 7;", "x = 8;"),
    "barrier": ("tile.sync();", ";"),
    "fence": ("__threadfence();", ";"),
    "atomic": (
        "atomicAdd(&sum, v);",
        "[&] { auto* p = &sum; auto old = *p; *p = old + (v); return old; }();",
    ),
    "axis": ("r = blockIdx.x;", "r = blockIdx.y;"),
    "type": ("x = (size_t)r * cols;", "x = (unsigned)r * cols;"),
    "tail": ("if (i < n) f();", "if (i < (n / 32 * 32)) f();"),
    "limit": ("if (i < n) f();", "if (i < (n < 16777216 ? n : 16777216)) f();"),
    "index": ("x = a[i];", "x = a[(i) + 1];"),
    "size": ("__shared__ T tile[N];", "__shared__ T tile[(N) - 1];"),
    "padding": ("x = in ? y : Op::identity();", "x = in ? y : decltype(Op::identity()){};"),
    "special": ("if (low > high) f();", "if (!(low <= high)) f();"),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_makes_its_mistake(rule):
    before, after = CASES[rule]
    found = [
        before[: made.start] + made.new + before[made.end :]
        for made in rules.changes(before)
        if made.rule == rule
    ]
    assert after in found


KERNEL = """// /// cudalab
// ///
__global__ void f(const T* x, T* out, unsigned n) {
    __shared__ T v[256];
    v[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) atomicAdd(out, v[i]);
}
"""


def test_mistakes_that_show_sometimes():
    """Each kind puts a change under its condition; without a size there is none on it."""
    found = {
        (made.rule, KERNEL[: made.start] + made.new + KERNEL[made.end :])
        for seed in range(40)
        for made in sometimes.conditional(KERNEL, random.Random(seed))  # noqa: S311 - no secret
    }
    for rule, before, after in (
        (
            "last block",
            "x[i]",
            "x[(i) + ((blockIdx.x > 0 && blockIdx.x + 1 == gridDim.x) ? 1 : 0)]",
        ),
        ("later blocks", "__syncthreads()", "if (!(blockIdx.x >= 3)) __syncthreads()"),
        ("residue", "i < n)", "((n % 32 == 31) ? i <= n : i < n))"),
        ("bound", "i < n)", "i < ((n > 3000) ? (n / 32 * 32) : n))"),
        ("operator", "x[i]", "x[(i) + ((MUTATED_MAX) ? 1 : 0)]"),
        ("dtype", "x[i]", "x[(i) + ((T(0.5) != T(0)) ? 1 : 0)]"),
    ):
        assert (rule, KERNEL.replace(before, after, 1)) in found
    nowhere = KERNEL.replace("unsigned n", "unsigned")
    rules_made = {made.rule for made in sometimes.conditional(nowhere, random.Random(0))}  # noqa: S311 - no secret
    assert rules_made == set(sometimes.CONDITIONS) - {"residue", "bound"}


def test_every_rule_is_tested_and_used():
    stored = {rule for row in tables.stored() for rule in row["rules"]}
    assert stored == set(CASES) | set(sometimes.CONDITIONS)


@pytest.mark.parametrize(
    "text",
    [
        "const unsigned lane = threadIdx.x % 32;",  # fits in any type
        "static __device__ T identity() { return 1; }",
        "x = static_cast<T>(y);",
        "f([&] { g(); });",
    ],
)
def test_what_cannot_differ_or_compile_is_not_made(text):
    made = {one.rule for one in rules.changes(text)} - {"arithmetic", "constant", "axis"}
    assert made == set()


def test_mutants_are_drawn_the_same_way_each_time():
    lab = labs.get("reduce")
    variant = registry.find(lab, "sequential")
    first, second = rules.mutants(lab, variant), rules.mutants(lab, variant)
    assert first == second
    assert len({one.text for one in first}) == len(first) == rules.PER_VARIANT


VERDICTS = """
from dataclasses import replace
from cudalab import labs
from cudalab.labs import registry
from tools.mutants import rules, verdicts
lab = labs.get("table")
every = {one.after: one for one in rules.mutants(lab, registry.find(lab, "accurate"))}
tail = next(one for one in every.values() if one.rule == "tail")
same = replace(tail, text=tail.text.replace("(n / 32 * 32)", "(n * 1)"))
wrong = replace(tail, text=f"{tail.text}?")
print(*map(verdicts.verdict, (tail, same, wrong)))
verdicts.in_child = lambda *_: 1 / 0
try:
    print(verdicts.verdict(tail))
except ZeroDivisionError:
    print("the child goes on")


def crowded(*_):
    raise BlockingIOError


verdicts.in_child = crowded
try:
    print(verdicts.verdict(tail))
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="clang's code differs for equal texts")
def test_verdicts():
    """In a process of its own: its children would miss the threads of a device used here."""
    command = [sys.executable, "-c", VERDICTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    crowd = "the machine starts no more processes: fewer --jobs"
    assert done.stdout == f"rejected equivalent invalid\nrejected\n{crowd}\n"


def test_every_reason_is_that_of_a_survivor():
    lines = {(row["lab"], one["after"]) for row, one in tables.survivors()}
    assert set(tables.reasons()) <= lines


def test_stored_verdicts_are_on_variants_that_are_there():
    assert all(tables.is_there(row) for row in tables.stored())
    assert not tables.is_there({"lab": "scan", "variant": "gone"})


def test_shares_leave_out_what_cannot_differ(tmp_path, monkeypatch):
    """In the first, what no run of a check shows; in both, what equals the original."""
    monkeypatch.setattr(tables, "VERDICTS", tmp_path / "cpu.json")
    kinds = {("scan", f"b{line}"): ("why", kind) for line, kind in enumerate(tables.KINDS)}
    monkeypatch.setattr(tables, "reasons", lambda: kinds)
    made = [
        rules.Mutant("scan", "one", "tail", line=line, before="a", after=f"b{line}", text="")
        for line in range(len(tables.KINDS) + 6)
    ]
    words = ["survived"] * len(tables.KINDS) + ["rejected"] * 6
    head = {"device": "a machine", "commit": "first"}
    tables.store(head, "scan", "one", list(zip(made, words, strict=True)))
    *_, in_checks, at_all = list(tables.lines(by_rule=True))[-1]
    assert (in_checks, at_all) == ("66.7 %", "54.5 %")  # 6 of 9, 6 of 11
    assert {line for *_, line, _ in tables.known_survivors()} == {0, 1, 2}
    tables.update({"device": "another", "commit": "second"}, "scan", "one", [(made[0], "rejected")])
    assert len(tables.known_survivors()) == 2
    assert tables.commits() == (
        "1 variants at `first`; survivors of 1 at `second` once more, by later lists of tests"
    )


def test_further_verdicts_are_added(tmp_path, monkeypatch):
    """A run that was stopped goes on: what has a verdict keeps it and is not judged again."""
    monkeypatch.setattr(tables, "VERDICTS", tmp_path / "cpu.json")
    machine = {"device": "a machine", "commit": "first"}

    def made(line, rule="bound"):
        return rules.Mutant("scan", "one", rule, line=line, before="a", after=f"b{line}", text="")

    tables.store(machine, "scan", "one", [(made(1), "survived"), (made(2, "tail"), "rejected")])
    tables.add(machine, "scan", "one", [(made(3), "survived"), (made(4), "rejected")])
    (row,) = tables.stored()
    assert row["rules"] == {"bound": {"survived": 2, "rejected": 1}, "tail": {"rejected": 1}}
    assert [one["line"] for one in row["survivors"]] == [1, 3]
    assert tables.count("scan", "one", sometimes.CONDITIONS) == 3
    tables.store(machine, "scan", "one", [(made(5), "rejected")])  # the rule anew
    (row,) = tables.stored()
    assert (row["rules"]["bound"], row["survivors"]) == ({"rejected": 1}, [])
