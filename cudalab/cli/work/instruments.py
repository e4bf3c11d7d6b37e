"""What `profile` and `sanitize` do: count or examine, print, and write files."""

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends import DEVICES, facts
from cudalab.backends.cpu.check import CheckDevice
from cudalab.bench import choice
from cudalab.cli import params
from cudalab.cli.failures import report_errors, within
from cudalab.errors import ExitCode, UsageError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.microscope import compare, findings, local_arrays, ncu, supervised
from cudalab.microscope.annotate import show
from cudalab.microscope.document import document, to_json
from cudalab.microscope.page import page
from cudalab.microscope.profile import Profile, profile_variant
from cudalab.microscope.remarks import of_findings, of_profile
from cudalab.microscope.sanitize import covered
from cudalab.microscope.subject import Data, Subject
from cudalab.output import code, live, terminal
from cudalab.output.notes import note
from cudalab.predict import local_memory
from cudalab.system.machine import processor_name
from cudalab.system.supervise import prints_to_stderr

BUDGET_S = 15.0  # for tracing a variant; compiling and untraced blocks come on top


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options of `profile`, except the lab's own."""

    kernel: Path | None
    variants: str | None
    sizes: list[Size] | None
    dist: str | None
    seed: int
    data: Path | None
    blocks: int | None
    banks: str
    device: str
    compare_devices: bool
    json_path: Path | None
    html_path: Path | None
    sarif: Path | None
    github: bool

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU device's instrument counts."""
        return facts(self.device).instrumented or self.compare_devices

    @property
    def on_gpu(self) -> bool:
        """Whether the GPU's own counters are read."""
        return facts(self.device).nvcc or self.compare_devices


def profile(*, lab: str, kill_after: float | None, **rest: Any) -> int:
    """Profile within the time limit."""
    params.check_data()
    options = params.grouped(ProfileOptions, rest)
    if options.kernel and options.variants:
        params.exclude("--variants", "--kernel")
    if options.banks != "32" and options.on_gpu:
        raise UsageError("--banks 16 counts on the CPU device only", hint="a GPU has 32 banks")
    if options.kernel:
        kill_after = kill_after or params.KERNEL_KILL_AFTER_S
    return within(kill_after, partial(run_profile, labs.get(lab), options, rest))


def run_profile(lab: Lab, options: ProfileOptions, case_options: dict[str, Any]) -> int:
    """Count, print and write; `case_options` are the lab's own options."""
    if not (options.on_cpu or options.on_gpu):
        raise UsageError(f"nothing counts what kernels do on the {options.device} device")
    if options.on_gpu:
        ncu.find_ncu()  # before anything is computed
    case = choice.case_of(lab, case_options)
    names = options.variants or (params.ALL if options.data else None)
    variants, notes = choose(lab, case, options.kernel, names, options.device)
    subject = Subject(
        lab=lab,
        case=case,
        variants=variants,
        dist=lab.distribution(options.dist),
        seed=options.seed,
        data=options.data,
    )
    profiles = count(subject, options)
    profiles[-1].notes += notes
    if not (options.github or params.is_stdout(options.json_path, options.sarif)):
        for one in profiles:
            show(one)
        if options.compare_devices:
            terminal.grid(compare.grid(*profiles))
    params.write_json(options.json_path, to_json(*map(document, profiles)))
    if options.html_path:
        save(options.html_path, page(profiles))
    remarks = of_profile(profiles[0])
    params.write_remarks(remarks, "profile", sarif=options.sarif, github=options.github)
    return ExitCode.of_all(variant.exit_code for one in profiles for variant in one.variants)


def count(subject: Subject, options: ProfileOptions) -> list[Profile]:
    """Profile on each device that counts, the CPU device first."""
    lab, case = subject.lab, subject.case
    size = options.sizes[0] if options.sizes else lab.teaching.bench_size(case, "cpu")
    profiles: list[Profile] = []
    with (
        live.BenchProgress() as progress,
        tempfile.TemporaryDirectory() as folder,
        prints_to_stderr(),
    ):
        progress.begin(f"profile {lab.name}")
        data = subject.load(size, Path(folder))
        if options.on_cpu:
            counted = on_cpu(subject, data, int(options.banks), options.blocks, progress)
            profiles.append(counted)
        if options.on_gpu:
            progress.step("Nsight Compute")
            counted = ncu.on_cuda(lab, case, subject.variants, data, Path(folder), options.kernel)
            profiles.append(counted)
    return profiles


def choose(
    lab: Lab, case: Case, kernel: Path | None, names: str | None, device: str
) -> choice.Chosen:
    """Choose the student's file, the named variants, or those with something to show."""
    if kernel:
        return [choice.own_variant(lab, case, kernel)], []
    features = DEVICES[device].load().possible_features
    variants, left_out = choice.select(lab, case, names or choice.ALL, device, features)
    if names is not None:
        return variants, left_out
    chosen, why = showcase(lab, variants)
    more = choice.others(variants, chosen)
    note("; ".join([f"no variant is named: {why}", *more]))
    return chosen, more


def showcase(lab: Lab, variants: list[Variant]) -> tuple[list[Variant], str]:
    """The lab's first pair of which both are in `variants`, else the ladder's ends, and why."""
    by_name = {variant.name: variant for variant in variants}
    for one in lab.teaching.showcases:
        if {one.variant, one.cure} <= by_name.keys():
            why = f"{one.variant} has {one.shows}, {one.cure} is without"
            return [by_name[one.variant], by_name[one.cure]], why
    ends = [
        v
        for v in variants
        if v is variants[0] or not all(facts(each).on_host for each in v.default)
    ]
    return ends, f"the profile is of {' and '.join(variant.name for variant in ends)}"


def on_cpu(subject: Subject, data: Data, banks: int, blocks: int | None, progress: Any) -> Profile:
    """Profile every variant under the instrument."""
    result = Profile(
        device="cpu",
        device_name=processor_name(),
        banks=banks,
        lab=subject.lab.name,
        case=choice.shown_case(subject.lab, subject.case),
        input=data.words,
        items=subject.lab.teaching.items(data.inputs, subject.case),
        flops=subject.lab.teaching.flops(data.inputs.params),
    )
    for variant in subject.variants:
        progress.step(variant.name)
        budget = None if blocks else BUDGET_S
        with CheckDevice(
            detect=False,
            count=True,
            banks=banks,
            blocks=blocks,
            budget_s=budget,
            local=local_memory.of_source,
        ) as device:
            result.variants.append(
                profile_variant(
                    subject.lab, variant, device, lambda: device.traces, data, subject.case
                )
            )
            profiled = result.variants[-1]
            missing = local_arrays.note(
                profiled, device.local_lines, device.in_local_memory, by_gcc=device.by_gcc
            )
            result.notes += [missing] if missing else []
    return result


def sanitize(
    *,
    lab: str,
    variant: str | None,
    kernel: Path | None,
    sizes: list[Size] | None,
    dist: str | None,
    seed: int,
    data: Path | None,
    orders: int,
    json_path: Path | None,
    sarif: Path | None,
    github: bool,
    kill_after: float,
    **options: Any,
) -> int:
    """Sanitize, print, and write files."""
    params.check_data()
    if variant and kernel:
        params.exclude("--variant", "--kernel")
    chosen_lab = labs.get(lab)
    case = choice.case_of(chosen_lab, options)
    if kernel:
        selected = registry.read_header(kernel, chosen_lab, str(kernel))
    elif variant:
        selected = registry.find(chosen_lab, variant)
    else:
        selected = registry.default(chosen_lab, case, "cpu")
    registry.check_applies(selected, chosen_lab, case)
    subject = Subject(
        lab=chosen_lab,
        case=case,
        variants=[selected],
        dist=chosen_lab.distribution(dist),
        seed=seed,
        data=data,
    )
    inputs = tuple(sizes or chosen_lab.teaching.sizes(case).sanitized)
    inputs = inputs[:1] if data else inputs
    status, document = supervised.examine(
        subject, inputs, [orders] * len(inputs), kill_after, report_errors
    )
    if status:
        return status
    params.write_json(json_path, document)
    if not (github or params.is_stdout(json_path, sarif)):
        show_findings(document)
    remarks = of_findings(document.findings, document.file)
    params.write_remarks(remarks, "sanitize", sarif=sarif, github=github)
    return ExitCode.OK if document.clean else ExitCode.WRONG_ANSWER


def show_findings(document: findings.Findings) -> None:
    """Print the findings, or that there are none."""
    groups = findings.grouped(document.findings)
    verdict = "clean" if document.clean else f"{findings.errors(groups)} found"
    title = f"{document.lab} {document.variant} ({document.file}): {verdict}"
    code.findings(f"{title}\nlooked at: {'; '.join(document.inputs)}", groups)
    listed, observed = document.not_looked_at, document.lines_observed or 0
    if observed or listed:
        terminal.lines(["", *covered("the accesses of the kernels", observed, listed, ())])
