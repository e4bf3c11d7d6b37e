"""How far the grader can be trusted on this machine: it judges submissions of known quality.

Every variant must be accepted; every broken kernel and every cheat must be rejected. Nobody knows
whether a grader that was never attacked withstands an attack.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

from cudalab import labs
from cudalab.backends import facts
from cudalab.checker import cases, judge
from cudalab.checker.options import Settings, fresh_seed
from cudalab.checker.sandbox.running import Limits, MiB
from cudalab.checker.sandbox.sandbox import Sandbox
from cudalab.checker.submit.kernel import Kernel, own_kernel
from cudalab.checker.submit.submission import Command
from cudalab.checker.verdicts import Report, Status
from cudalab.errors import CudalabError, ExitCode
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.teaching import Mutant
from cudalab.language import source

CHEATS = Path(__file__).with_name("cheats")
LIMITS = Limits(seconds=4, cpu_seconds=30, memory_bytes=768 * MiB)  # of cheats
PATIENT_S = 60.0  # for what time must not decide: right variants, mutants, and the sandbox
# On a GPU each run creates its own context, and several of them wait for the driver.
GPU_LIMITS = Limits(seconds=10, cpu_seconds=60, memory_bytes=2048 * MiB)
MAX_ON_A_GPU = 12  # submissions at a time
ON_HOST = {  # not on a GPU
    "background_thread",
    "before_main",
    "calls_the_system",
    "constructor",
    "host_call",
    "patched_clock",
    "searches_memory",
}
_LABEL = re.compile(r"^(?://|#) (?P<key>lab|summary|needs): (?P<value>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """A submission whose right verdict is known."""

    group: str  # "variants", "lossy variants", "mutants" or "cheats"
    lab: str
    name: str
    what: str
    _: KW_ONLY
    path: Path | None = None
    mutant: Mutant | None = None
    needs: str = ""  # to be rejected: a real "sandbox"; "timing"; or to run "alone"

    @property
    def must_pass(self) -> bool:
        """Whether it must be accepted: only the variants are right."""
        return self.group == "variants"


@dataclass(frozen=True)
class Finding:
    """The verdict on a job."""

    job: Job
    passed: bool
    why: str
    broken: bool = False  # nothing could be judged

    @property
    def right(self) -> bool:
        """Whether the verdict is the right one."""
        return not self.broken and self.passed is self.job.must_pass


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """The verdict on one submission."""

    group: str  # variants, lossy variants, mutants, cheats
    lab: str
    name: str
    what: str
    accepted: bool
    right: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """The document of `cudalab selftest`."""

    schema: str = "cudalab-selftest/1"
    device: str
    sandbox: str
    trusted: bool  # whether no verdict is wrong
    verdicts: list[VerdictRow]


def document(results: Sequence[Finding], sandbox: Sandbox, device: str) -> Document:
    """All verdicts, as data."""
    return Document(
        device=device,
        sandbox=sandbox.kind,
        trusted=all(one.right for one in results),
        verdicts=[
            VerdictRow(
                group=one.job.group,
                lab=one.job.lab,
                name=one.job.name,
                what=one.job.what,
                accepted=one.passed,
                right=one.right,
                why=one.why,
            )
            for one in results
        ],
    )


def jobs(chosen: Sequence[str], device: str, features: frozenset[str]) -> Iterator[Job]:
    """Everything to judge for these labs."""
    for name in chosen:
        lab = labs.get(name)
        for variant in registry.variants(lab):
            if not variant.missing(features):
                group = "lossy variants" if variant.precision else "variants"
                yield Job(group, name, variant.name, variant.summary)
        for mutant in lab.teaching.mutants:
            if facts(device).on_host or mutant.shows_on_gpu:
                title = f"{mutant.variant}: {mutant.mistake}"
                yield Job("mutants", name, title, mutant.mistake, mutant=mutant)
    for path in sorted(CHEATS.iterdir()):
        if path.suffix in (".cu", ".py"):
            text = path.read_text(encoding="utf-8")
            labels = {m["key"]: m["value"] for m in _LABEL.finditer(text)}
            summary = re.search(r'summary\s*=\s*"([^"]*)"', text)
            what = labels.get("summary") or (summary[1] if summary else "")
            on_host = path.stem in ON_HOST
            if labels["lab"] in chosen and (facts(device).on_host or not on_host):
                yield Job(
                    "cheats",
                    labels["lab"],
                    path.stem,
                    what,
                    path=path,
                    needs=labels.get("needs", ""),
                )


def run(
    jobs: Sequence[Job],
    sandbox: Sandbox,
    device: str,
    workers: int,
    on_result: Callable[[Finding, int], None],
) -> list[Finding]:
    """Judge all jobs; `on_result` gets each verdict and how many there are so far."""
    results: list[Finding] = []
    alone = [job for job in jobs if job.needs in ("timing", "alone")]
    together = [job for job in jobs if job not in alone]
    workers = workers if not facts(device).driver else min(workers, MAX_ON_A_GPU)
    with judge.turn(device):  # holds the GPU for all of them: nothing is timed while several run
        with ThreadPoolExecutor(workers) as pool:
            for result in pool.map(lambda job: _judge(job, sandbox, device), together):
                results.append(result)
                on_result(result, len(results))
        for job in alone:
            results.append(_judge(job, sandbox, device))
            on_result(results[-1], len(results))
    return results


def _judge(job: Job, sandbox: Sandbox, device: str) -> Finding:
    try:
        report = _check(job, sandbox, device)
    except CudalabError as error:
        return Finding(job, passed=False, why=error.message, broken=True)
    if report.exit_code in (ExitCode.ERROR, ExitCode.NO_DEVICE):
        return Finding(job, passed=False, why=_why(report), broken=True)
    passed = report.passed
    if job.needs == "timing" and report.speed is not None:
        passed = passed and report.speed.points > 0  # a cheat passes if it earns points for speed
    return Finding(job, passed, _why(report))


def _check(job: Job, sandbox: Sandbox, device: str) -> Report:
    lab, timing = labs.get(job.lab), job.needs == "timing" or job.name == "only_once"
    with ExitStack() as stack:
        submission = _submission(job, lab, sandbox, device, stack)
        limits = GPU_LIMITS if facts(submission.device).driver else LIMITS
        if job.group != "cheats" or job.needs == "sandbox":
            limits = replace(limits, seconds=PATIENT_S, cpu_seconds=4 * PATIENT_S)
        settings = Settings(
            fresh_seed(),
            limits=limits,
            jobs=4 if job.needs == "alone" else 1,
            has_turn=True,
            sanitize=job.group == "mutants",
            timing=timing,
            time_limit_s=0.3,
        )
        options = cases.case_for(lab, {}, submission.variant)
        plan = cases.public(lab, options, submission.variant, quick=True)
        if timing:
            speed = cases.Speed(points=1, reference="global_halving", zero=3)
            plan = replace(plan, speed=speed)
        return judge.check(lab, submission, plan, sandbox, settings)


def _submission(
    job: Job, lab: Lab, sandbox: Sandbox, device: str, stack: ExitStack
) -> Kernel | Command:
    if job.group.endswith("variants"):
        return own_kernel(lab, registry.find(lab, job.name), device)
    if job.mutant is not None:
        path = source.kernels_dir() / lab.name / f"{job.mutant.variant}.cu"
        text = path.read_text(encoding="utf-8")
        if job.mutant.old not in text:
            raise CudalabError(f"{path.name} has changed: there is no {job.mutant.old!r} in it")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudalab-mutant-")))
        changed = folder / "mutant.cu"
        changed.write_text(text.replace(job.mutant.old, job.mutant.new), encoding="utf-8")
        return Kernel(lab=lab, path=changed, sandbox=sandbox, device=device, label="mutant.cu")
    assert job.path is not None
    if job.path.suffix == ".cu":
        return Kernel(lab=lab, path=job.path, sandbox=sandbox, device=device, label=job.path.name)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cudalab-cheat-")))
    (folder / job.path.name).write_bytes(job.path.read_bytes())
    words = [sys.executable, job.path.name]
    return Command(words, sandbox, name=job.path.name, folder=folder, device="cpu")


def _why(report: Report) -> str:
    for test in report.tests:
        if test.status is Status.FAILED:
            return f"{test.why}: {test.says}" if test.says else str(test.why)
    for stage in report.stages:
        if stage.status in (Status.FAILED, Status.BROKEN):
            return ": ".join(filter(None, (str(stage.why), stage.says, *stage.details[:1])))
    return f"{report.speed.ratio:.1f} times the reference's time" if report.speed else "passed"


def leaks(results: Sequence[Finding]) -> list[Finding]:
    """Cheats that were accepted because this sandbox does not isolate submissions."""
    return [one for one in results if not one.right and one.job.needs == "sandbox"]


def summary(results: Sequence[Finding], sandbox: Sandbox, device: str) -> list[str]:
    """How many verdicts were right, and what this says about grading here."""
    counts = []
    for group, verb in (
        ("variants", "accepted"),
        ("lossy variants", "rejected"),
        ("mutants", "rejected"),
        ("cheats", "rejected"),
    ):
        judged = [one for one in results if one.job.group == group]
        if judged:
            counts.append(f"{sum(one.right for one in judged)} of {len(judged)} {group} {verb}")
    lines = [f"{'; '.join(counts)}: on the {device} device, sandbox {sandbox.kind}, just now."]
    leaked = leaks(results)
    if leaked:
        names = ", ".join(one.job.name for one in leaked)
        lines.append(
            f"OPEN: {names}: sandbox {sandbox.kind} does not isolate submissions: they can read "
            "files and reach the network. Install bubblewrap, or judge only submissions of "
            "people whom you trust."
        )
    if not facts(device).gpu_times:
        lines.append(
            "Verdicts on answers hold for a GPU as well, except for inline PTX and what depends "
            "on timing; times on this device say nothing about a GPU's."
        )
    wrong = [one for one in results if not one.right and one not in leaked]
    lines.append(
        f"{len(wrong)} verdicts were wrong: do not grade with it."
        if wrong
        else "No verdict was wrong. Only the attacks that somebody thought of are in here."
    )
    return lines
