"""How many mutants of the shipped kernels the checker's public tests reject, on the CPU device.

python -m tools.mutants [LAB[/VARIANT]...]    all, or these; keeps the other results

A mutant is a kernel with one small change, made by a rule: another operator, a constant off by one,
no barrier. It is rejected if a test of the public list, with guard zones and garbage in memory,
shows a wrong answer, a crash or an endless loop, or if the sanitizer reports an error. A mutant
whose machine code is that of the original is equivalent and does not count, nor does one that does
not compile.

Stores docs/results/mutants; tools/generate.py makes the table of docs/checking.md from it.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cudalab import labs
from cudalab.backends import open_device
from cudalab.checker import cases, judge
from cudalab.checker.sandbox import sandbox as sandboxes
from cudalab.checker.sandbox.sandbox import Limits, MiB
from cudalab.checker.settings import Settings
from cudalab.checker.submit import worker
from cudalab.checker.submit.guard import GuardedDevice
from cudalab.checker.submit.kernel import Kernel
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.language import source
from cudalab.language.tokens import closing, tokenize
from cudalab.system.machine import usable_cores
from tools import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cudalab.backends.base import Device
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, HostInputs
    from cudalab.language.tokens import Token

PER_VARIANT = 48
SEED = 1
REASONS = results.FOLDER / "mutants" / "survivors.toml"
MACHINE = cache(partial(results.machine, "cpu"))
CPU_SECONDS = 8  # of a mutant: an endless loop counts as rejected
CASES: dict[str, tuple[Case, ...]] = {  # besides the default one, if the variant computes it
    "radixsort": ({"dtype": "float32"},),
    "reduce": ({"dtype": "float32", "op": "max"},),
    "scan": ({"dtype": "float32", "op": "max"},),
}

Edit = tuple[int, int, str]  # replace text[start:end]


class Made(NamedTuple):
    """A change by a rule."""

    rule: str
    edit: Edit


@dataclass(frozen=True)
class Mutant:
    """A changed kernel."""

    lab: str
    variant: str
    rule: str
    _: KW_ONLY
    line: int  # in `cudalab show --whole`
    before: str
    after: str
    text: str


# The rules ----------------------------------------------------------------------------------------

OPERATORS = {
    "relation": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "arithmetic": {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+="},
    "bits": {"<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|"},
    "logic": {"&&": "||", "||": "&&"},
}
BARRIERS = {"__syncthreads", "__syncwarp", "sync"}
FENCES = {"__threadfence", "__threadfence_block"}
NARROWER = {"size_t": "unsigned", "unsigned": "unsigned short", "double": "float", "int": "short"}
LIMITS = (1 << 10, 1 << 16, 1 << 20, 1 << 24)
ENDS = {"n", "m", "k", "count", "rows", "columns", "length"}


def changes(text: str) -> Iterator[Made]:
    """All changes that the rules make in a kernel's text."""
    tokens = [token for token in tokenize(text) if token.kind != "directive"]
    for place, token in enumerate(tokens):
        yield from operators(tokens, place)
        if token.kind == "number":
            yield from constants(token)
        elif token.kind == "name":
            yield from calls(text, tokens, place)
            yield from names(tokens, place)
        elif token.text == "!" and text[token.end] != "=":
            yield Made("logic", (token.start, token.end, ""))


def operators(tokens: list[Token], place: int) -> Iterator[Made]:
    """Another operator between two operands; operators of two signs are two tokens."""
    token = tokens[place]
    if (
        token.kind != "sign"
        or place == 0
        or (tokens[place - 1].kind == "sign" and (tokens[place - 1].text not in ")]"))
    ):
        return
    sign, after = token.text, place + 1
    while (
        after < len(tokens)
        and tokens[after].start == tokens[after - 1].end
        and (tokens[after].kind == "sign" and tokens[after].text in "<>=&|+-")
    ):
        sign, after = sign + tokens[after].text, after + 1
    for rule, table in OPERATORS.items():
        if sign in table:
            yield Made(rule, (token.start, tokens[after - 1].end, table[sign]))


def constants(token: Token) -> Iterator[Made]:
    """A whole number, one more or one less."""
    match = re.fullmatch(r"(\d+|0x[0-9a-fA-F]+)([uUlL]*)", token.text)
    if match is not None:
        value = int(match[1], 0)
        for other in {value + 1, max(value - 1, 0)} - {value}:
            yield Made("constant", (token.start, token.end, f"{other}{match[2]}"))


def calls(text: str, tokens: list[Token], place: int) -> Iterator[Made]:
    """No barrier, no fence, an addition that is not atomic."""
    token = tokens[place]
    if place + 1 == len(tokens) or tokens[place + 1].text != "(":
        return
    end = closing(tokens, place + 1)
    if end is None:
        return
    first = place - 2 if tokens[place - 1].text in (".", "->") else place
    if token.text in BARRIERS | FENCES and tokens[end + 1].text == ";":
        rule = "barrier" if token.text in BARRIERS else "fence"
        yield Made(rule, (tokens[first].start, tokens[end].end, ""))
    if token.text == "atomicAdd":
        commas = [at for at in range(place + 2, end) if tokens[at].text == ","]
        if len(commas) == 1:
            where = text[tokens[place + 2].start : tokens[commas[0]].start]
            what = text[tokens[commas[0]].end : tokens[end].start]
            plain = (
                f"[&] {{ auto* p = {where}; auto old = *p; *p = old + ({what}); return old; }}()"
            )
            yield Made("atomic", (token.start, tokens[end].end, plain))


def names(tokens: list[Token], place: int) -> Iterator[Made]:
    """Another axis, a narrower type, a lost tail, a limit on the size."""
    token = tokens[place]
    span = (token.start, token.end)
    before = tokens[place - 1].text if place else ""
    if before == "." and token.text in "xy" and tokens[place - 2].text.endswith("Idx"):
        yield Made("axis", (*span, "y" if token.text == "x" else "x"))
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    if token.text in NARROWER and after is not None and after.kind == "name":
        yield Made("type", (*span, NARROWER[token.text]))
    if token.text in ENDS and before in ("<", ">", "=") and tokens[place - 2].text != "for":
        yield Made("tail", (*span, f"({token.text} / 32 * 32)"))
        for limit in LIMITS:
            yield Made("limit", (*span, f"({token.text} < {limit} ? {token.text} : {limit})"))


def mutants(lab: Lab, variant: Variant) -> list[Mutant]:
    """A choice of a variant's mutants: as many by each rule as possible, drawn by a fixed seed."""
    text = source.whole(source.load(variant.path))
    start = text.index("// ///\n", 1)  # the header is no part of the kernel
    by_rule: dict[str, list[Made]] = defaultdict(list)
    for made in changes(text):
        if made.edit[0] > start:
            by_rule[made.rule].append(made)
    draw = random.Random(f"{SEED}/{lab.name}/{variant.name}")  # noqa: S311 - not for secrets
    for group in by_rule.values():
        draw.shuffle(group)
    chosen: list[Made] = []
    while len(chosen) < PER_VARIANT and any(by_rule.values()):
        chosen += [group.pop() for group in by_rule.values() if group]
    return [mutant(lab.name, variant.name, text, made) for made in chosen[:PER_VARIANT]]


def mutant(lab: str, variant: str, text: str, made: Made) -> Mutant:
    """The kernel with a change, and its line before and after."""
    start, end, new = made.edit
    changed = text[:start] + new + text[end:]
    line_start = text.rfind("\n", 0, start) + 1
    return Mutant(
        lab,
        variant,
        made.rule,
        line=text.count("\n", 0, start) + 1,
        before=text[line_start : text.index("\n", end)].strip(),
        after=changed[line_start : changed.index("\n", start + len(new))].strip(),
        text=changed,
    )


# Judging ------------------------------------------------------------------------------------------

INPUTS: dict[str, list[Given]] = {}  # of each list of tests: made once in a process


class Given(NamedTuple):
    """One input of the public list."""

    case: Case
    inputs: HostInputs
    runs: int


def inputs_of(one: Mutant) -> list[Given]:
    """The inputs of the public list, for all cases."""
    lab = labs.get(one.lab)
    variant = registry.find(lab, one.variant)
    usual = [
        options
        for options in ({}, *CASES.get(lab.name, ()))
        if variant.computes(lab.complete(options))
    ]
    found = []
    for options in usual or [cases.case_for(lab, {}, variant)]:
        tests = cases.public(lab, options, variant, quick=False).tests
        key = f"{lab.name} {tests}"
        if key not in INPUTS:
            INPUTS[key] = list(made(lab, tests))
        found += INPUTS[key]
    return found


def made(lab: Lab, tests: Sequence[cases.Test]) -> Iterator[Given]:
    """The inputs of a list of tests."""
    for test, seed in zip(tests, cases.seeds(tests, SEED), strict=True):
        case = lab.complete(test.options)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "in.bin")
            judge.make_input(lab, case, test, seed, path)
            inputs = lab.read_file(path, case).copy()
        yield Given(case, inputs, 1 if test.large else 2)


def verdict(one: Mutant, folder: Path) -> str:
    """What the tests say: invalid, equivalent, rejected, or survived."""
    lab = labs.get(one.lab)
    path = folder / f"{one.variant}.cu"
    path.write_text(one.text, encoding="utf-8")
    inputs_of(one)  # before the fork: made once
    pid = os.fork()
    if pid == 0:
        os._exit(in_child(lab, one, path))
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "rejected"
    return ("survived", "rejected", "invalid", "equivalent")[os.WEXITSTATUS(status)]


def in_child(lab: Lab, one: Mutant, path: Path) -> int:
    """The index of the verdict, in a process of its own, whose output goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    signal.alarm(10 * CPU_SECONDS)
    with open_device("cpu", 1) as opened:
        device = worker.LoadsOnce(opened).as_device()
        try:
            changed = compiled(lab, one, device, path)
        except CudalabError:
            return 2
        path.write_text(source.whole(source.load(registry.find(lab, one.variant).path)))
        if list(map(code, changed)) == list(map(code, compiled(lab, one, device, path))):
            return 3
        path.write_text(one.text)
        variant = registry.read_header(path, lab, path.name)
        return int(any(wrong(lab, variant, device, given) for given in inputs_of(one)))


def compiled(lab: Lab, one: Mutant, device: Device, path: Path) -> list[str]:
    """The libraries of all cases that are tested."""
    variant = registry.read_header(path, lab, path.name)
    all_cases = {str(given.case): given.case for given in inputs_of(one)}
    modules = [lab.compiled(variant, device, case) for case in all_cases.values()]
    return [module.library._name for module in modules]  # type: ignore[attr-defined]  # noqa: SLF001


def code(library: str) -> bytes:
    """The machine code and the constants of a library."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "code")
        sections = ["-j", ".text", "-j", ".rodata", "-j", ".data"]
        subprocess.run(["objcopy", "-O", "binary", *sections, library, out], check=True)
        return out.read_bytes()


def wrong(lab: Lab, variant: Variant, device: Device, given: Given) -> bool:
    """Whether a test of the list rejects the kernel."""
    case, inputs, runs = given
    if lab.empty_answer(inputs, case) is not None:
        return False
    guarded = GuardedDevice(device)
    try:
        step = worker.prepare(lab, variant, guarded, inputs, case)
        answers, unwritten = worker.compute(guarded, step, runs)
    except CudalabError:
        return True
    if unwritten.any() or guarded.overruns():
        return True
    return any(lab.compare(answer, inputs, case) is not None for answer in answers)


def checked(one: Mutant, folder: Path) -> str:
    """What the whole checker says of a mutant that the tests accept: it has a sanitizer, too."""
    lab = labs.get(one.lab)
    path = folder / f"{one.variant}.cu"
    path.write_text(one.text, encoding="utf-8")
    box = sandboxes.choose("none")
    submission = Kernel(lab=lab, path=path, sandbox=box, device="cpu", label=path.name)
    settings = Settings(
        SEED,
        limits=Limits(seconds=60, cpu_seconds=60, memory_bytes=4096 * MiB),
        has_turn=True,
        sanitize=True,
        timing=False,
    )
    options = cases.case_for(lab, {}, submission.variant)
    plan = cases.public(lab, options, submission.variant, quick=True)
    report = judge.check(lab, submission, plan, box, settings)
    return "rejected" if report.exit_code else "survived"


# The whole ----------------------------------------------------------------------------------------


def run(*chosen: str) -> None:
    """Judge all mutants, a variant at a time; store the counts and the survivors of each."""
    with open_device("cpu", 1) as device:
        features = device.features
    variants = [
        (labs.get(name), variant)
        for name in labs.names()
        for variant in registry.variants(labs.get(name))
        if not variant.missing(features)
        and not variant.precision
        and (not chosen or name in chosen or f"{name}/{variant.name}" in chosen)
    ]
    # Processes, for a child that is forked while other threads hold locks may wait for ever.
    with ProcessPoolExecutor(usable_cores()) as pool:
        begun = [
            (
                lab,
                variant,
                [(one, pool.submit(in_a_folder, one)) for one in mutants(lab, variant)],
            )
            for lab, variant in variants
        ]
        for lab, variant, futures in begun:
            words = [(one, future.result()) for one, future in futures]
            store(lab.name, variant.name, words)
            print(lab.name, variant.name, dict(Counter(word for _, word in words)), flush=True)


def in_a_folder(one: Mutant) -> str:
    """The verdict on a mutant: by the tests, then by the whole checker."""
    with tempfile.TemporaryDirectory(prefix="cudalab-mutant-") as folder:
        word = verdict(one, Path(folder))
        return checked(one, Path(folder)) if word == "survived" else word


def store(lab: str, variant: str, verdicts: list[tuple[Mutant, str]]) -> None:
    """Replace the results of a variant."""
    path = results.FOLDER / "mutants" / f"{results.slug(MACHINE()['device'])}.json"
    before = results.read(path)["variants"] if path.exists() else []
    kept = [row for row in before if (row["lab"], row["variant"]) != (lab, variant)]
    by_rule = {
        rule: dict(Counter(word for one, word in verdicts if one.rule == rule))
        for rule in dict.fromkeys(one.rule for one, _ in verdicts)
    }
    survivors = [
        {"rule": one.rule, "line": one.line, "before": one.before, "after": one.after}
        for one, word in verdicts
        if word == "survived"
    ]
    row = {"lab": lab, "variant": variant, "rules": by_rule, "survivors": survivors}
    rows = sorted([*kept, row], key=lambda each: (each["lab"], each["variant"]))
    results.write(path, {**MACHINE(), "variants": rows})


# The tables ---------------------------------------------------------------------------------------

WORDS = ("rejected", "survived", "equivalent", "invalid")


def lines(stored: Sequence[results.Json], *, by_rule: bool) -> Iterable[list[str]]:
    """The rows of a table: a lab or a rule, and its mutants by verdict; the sum comes last."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in (row for run in stored for row in run["variants"]):
        for rule, words in row["rules"].items():
            for key in (rule if by_rule else row["lab"], "all"):
                counts[key].update(words)
    counts["all"] = counts.pop("all", Counter())
    for key, of in counts.items():
        judged = of["rejected"] + of["survived"]
        share = f"{100 * of['rejected'] / judged:.1f} %" if judged else ""
        yield [key, *(f"{of[word]:,}" for word in WORDS), share]


def survivors(stored: Sequence[results.Json]) -> Iterable[list[str]]:
    """The rows of the table of survivors: where, what has changed, and why no test rejects it."""
    reasons = {
        (each["lab"], each["after"]): each["reason"]
        for each in tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"]
    }
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in (row for run in stored for row in run["variants"]):
        for one in row["survivors"]:
            found[row["lab"], one["before"], one["after"]].append(row["variant"])
    for (lab, before, after), variants in found.items():
        where = f"`{lab}`: {', '.join(dict.fromkeys(variants))}"
        code = [f"`{line.replace('|', chr(0x2758))}`" for line in (before, after)]
        yield [where, *code, reasons.get((lab, after), "not examined yet")]


if __name__ == "__main__":
    run(*sys.argv[1:])
