"""The command `profile`. Nothing heavy is imported before it runs."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import DEVICES, able_devices, facts
from cudalab.cli.failures import within
from cudalab.cli.options import (
    CASE_HELP,
    EXISTING,
    OUT,
    CaseCommand,
    Choice,
    exclude,
    grouped,
    is_stdout,
    json_option,
    lines,
    quiet_option,
    seconds_option,
    variants_option,
    write_json,
)
from cudalab.cli.remarks import remark_options, write_remarks
from cudalab.cli.subject import check_data, data_options
from cudalab.errors import UsageError
from cudalab.microscope.subject import Subject
from cudalab.output.notes import note
from cudalab.system.supervise import prints_to_stderr

if TYPE_CHECKING:
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.microscope.profile import Profile
    from cudalab.microscope.subject import Data

BUDGET_S = 15.0  # for tracing a variant; compiling and untraced blocks come on top
PROFILE_KILL_AFTER_S = 300.0  # for a student's file


@click.command(
    "profile",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab profile reduce --variants interleaved_strided,sequential",
                "cudalab profile transpose --variants all --n 1024 --html transpose.html",
                "cudalab profile histogram --data in.bin       # are there bank conflicts?",
                "cudalab profile matmul --aat --banks 16 --kernel my.cu",
            ),
            CASE_HELP,
        ]
    ),
)
@click.argument("lab", type=Choice(labs.names()), metavar="LAB")
@variants_option(
    "all (that compute the case), or comma-separated names. Default: one that has something to "
    "show, and one without it; all with --data.",
)
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Profile your own file only.")
@data_options
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    metavar="SAMPLE",
    help="Number of blocks to trace in each launch. Default: as many as a few seconds allow.",
)
@click.option(
    "--banks",
    type=Choice(["16", "32"]),
    default="32",
    show_default=True,
    help="16 counts by the rule of the lecture's GPUs: half a warp at a time.",
)
@click.option(
    "--device",
    type=Choice(list(DEVICES)),
    default="cpu",
    show_default=True,
    help="cuda: the counters of the GPU itself, read by Nsight Compute.",
)
@click.option(
    "--compare-devices",
    is_flag=True,
    help="Show both devices side by side; needs Nsight Compute.",
)
@json_option("Write every count as JSON; - is stdout.")
@click.option("--html", "html_path", type=OUT, metavar="FILE", help="Write one page for a browser.")
@remark_options()
@seconds_option(
    "--kill-after",
    f"Abort the run after this time. Default: {PROFILE_KILL_AFTER_S:g} with --kernel, else none.",
)
@quiet_option
def profile(*, lab: str, kill_after: float | None, **rest: Any) -> int:
    """Run a lab and count what every line costs: sectors, bank conflicts, divergent branches.

    The kernels run on the CPU device, which sees each access of the blocks that it traces.
    """
    check_data()
    options = grouped(ProfileOptions, rest)
    if options.kernel and options.variants:
        exclude("--variants", "--kernel")
    if options.banks != "32" and options.on_gpu:
        raise UsageError("--banks 16 counts on the CPU device only", hint="a GPU has 32 banks")
    if options.kernel:
        kill_after = kill_after or PROFILE_KILL_AFTER_S
    return within(kill_after, partial(run_profile, labs.get(lab), options, rest))


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


def run_profile(lab: Lab, options: ProfileOptions, case_options: dict[str, Any]) -> int:
    """Count, print and write; `case_options` are the lab's own options."""
    from cudalab.bench.choice import case_of
    from cudalab.bench.suite import exit_code
    from cudalab.formats import save
    from cudalab.microscope import compare, ncu
    from cudalab.microscope.annotate import show
    from cudalab.microscope.document import document, to_json
    from cudalab.microscope.remarks import of_profile
    from cudalab.output import terminal

    if not (options.on_cpu or options.on_gpu):
        raise UsageError(f"nothing counts what kernels do on the {options.device} device")
    if options.on_gpu:
        ncu.find_ncu()  # before anything is computed
    case = case_of(lab, case_options)
    names = options.variants or ("all" if options.data else None)
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
    if not (options.github or is_stdout(options.json_path, options.sarif)):
        for one in profiles:
            show(one)
        if options.compare_devices:
            terminal.grid(compare.grid(*profiles))
    write_json(options.json_path, to_json(*map(document, profiles)))
    if options.html_path:
        from cudalab.microscope.page import page

        save(options.html_path, page(profiles))
    remarks = of_profile(profiles[0])
    write_remarks(remarks, "profile", sarif=options.sarif, github=options.github)
    return exit_code({variant.exit_code for one in profiles for variant in one.variants})


def count(subject: Subject, options: ProfileOptions) -> list[Profile]:
    """Profile on each device that counts, the CPU device first."""
    from cudalab.microscope import ncu
    from cudalab.output import live

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
) -> tuple[list[Variant], list[str]]:
    """Choose the student's file, the named variants, or those with something to show."""
    from cudalab.bench.choice import own_variant
    from cudalab.labs import registry

    if kernel:
        return [own_variant(lab, case, kernel)], []
    if names not in (None, "all"):
        named = [registry.find(lab, one.strip()) for one in names.split(",")]
        for variant in named:
            registry.check_applies(variant, lab, case)
        return named, []
    every = registry.variants(lab)
    computing = [
        variant
        for variant in every
        if variant.computes(case) and device in able_devices(variant.requires)
    ]
    if names == "all":
        left_out = [variant.name for variant in every if variant not in computing]
        return computing, [f"left out: {', '.join(left_out)}"] if left_out else []
    chosen, why = showcase(lab, computing)
    others = len(computing) - len(chosen)
    more = f"; {others} more with --variants all" if others else ""
    note(f"no variant is named: {why}{more}")
    return chosen, [more.removeprefix("; ")] if others else []


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
    from cudalab.backends.cpu.check import CheckDevice
    from cudalab.bench import choice
    from cudalab.microscope import local_arrays
    from cudalab.microscope import profile as profiles
    from cudalab.predict import local_memory
    from cudalab.system.machine import processor_name

    result = profiles.Profile(
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
                profiles.profile_variant(
                    subject.lab, variant, device, lambda: device.traces, data, subject.case
                )
            )
            profiled = result.variants[-1]
            said = local_arrays.note(
                profiled, device.local_lines, device.in_local_memory, by_gcc=device.by_gcc
            )
            result.notes += [said] if said else []
    return result
