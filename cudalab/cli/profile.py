"""The commands `profile` and `sanitize`: the CPU device as a microscope.

Nothing heavy is imported before they run.
"""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cudalab import labs
from cudalab.backends import DEVICES, able_devices, emulated
from cudalab.cli.failures import report_errors, within
from cudalab.cli.lab import prints_to_stderr
from cudalab.cli.options import (
    CASE_HELP,
    EXISTING,
    OUT,
    CaseCommand,
    Choice,
    Sizes,
    dist_option,
    exclude,
    grouped,
    json_file_option,
    lines,
    options_present,
    quiet_option,
    seconds_option,
    seed_option,
    variant_option,
    variants_option,
)
from cudalab.cli.remarks import is_stdout, remark_options, write_remarks
from cudalab.errors import CudalabError, ExitCode, KernelError, TimeLimitError, UsageError
from cudalab.output.notes import note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant
    from cudalab.labs.inputs import Case, Size
    from cudalab.microscope.findings import Findings
    from cudalab.microscope.profile import Data, Profile
    from cudalab.microscope.sanitize import Report

BUDGET_S = 15.0  # for tracing a variant; compiling and untraced blocks come on top
PROFILE_KILL_AFTER_S = 300.0  # for a student's file
SANITIZE_KILL_AFTER_S = 120.0
FULL_SPEED_S = 15.0  # for a kernel without the instrument, compiling included


def check_data() -> None:
    """Raise a UsageError if an input file is named together with an option for random data."""
    present = options_present()
    for random in ("sizes", "dist", "seed"):
        if "data" in present and random in present:
            exclude(present["data"], present[random])


class OneSize(Sizes):
    """A single size: 1Mi, 1e6, 2^20, 300x200."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse it."""
        sizes = super().convert(value, param, ctx)
        if len(sizes) != 1:
            self.fail(f"{value!r}: only one size is possible here", param, ctx)
        return sizes


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose the data."""
    for option in (
        click.option(
            "--data",
            type=EXISTING,
            metavar="IN.bin",
            help="Input in the lab's format, instead of random data.",
        ),
        click.option(
            "--n",
            "sizes",
            type=OneSize(),
            metavar="SIZE",
            help="Size, such as 1Mi, 1e6, 2^20 or 300x200.",
        ),
        dist_option,
        seed_option,
    )[::-1]:
        command = option(command)
    return command


# profile -----------------------------------------------------------------------------------------


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
@json_file_option("Write every count as JSON; - is stdout.")
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
        return emulated(self.device) or self.compare_devices

    @property
    def on_gpu(self) -> bool:
        """Whether the GPU's own counters are read."""
        return not emulated(self.device) or self.compare_devices


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The variants to look at, with their case and data."""

    lab: Lab
    case: Case
    variants: list[Variant]
    dist: str
    seed: int
    data: Path | None

    def load(self, size: Size, folder: Path) -> Data:
        """Read the file that was named, or generate an input of `size`."""
        from cudalab.microscope import profile

        if self.data:
            return profile.from_file(self.lab, self.case, self.data)
        return profile.generated(self.lab, self.case, size, self.dist, self.seed, folder)

    def ready(self, sizes: Sequence[Size]) -> list[Data]:
        """The inputs. If a grader asks for it, this process then confines itself."""
        from cudalab.checker.submit import confine

        result = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                result.append(self.load(size, Path(folder)))
        if confine.is_asked_for():
            from cudalab.backends.base import OnlyBuilds
            from cudalab.backends.cpu.check import CheckDevice

            with CheckDevice(detect=True, count=False) as device:
                builder = OnlyBuilds(device).as_device()
                self.lab.compiled(self.variants[0], builder, self.case)
            if not confine.confine():
                raise CudalabError("the process could not be confined")
        return result


def run_profile(lab: Lab, options: ProfileOptions, case_options: dict[str, Any]) -> int:
    """Count, print and write; `case_options` are the lab's own options."""
    from cudalab.bench.suite import case_of, exit_code
    from cudalab.formats import save
    from cudalab.microscope import compare, ncu
    from cudalab.microscope.document import document, to_json
    from cudalab.microscope.remarks import of_profile
    from cudalab.microscope.show import show
    from cudalab.output import terminal

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
    if options.json_path:
        text = json.dumps(to_json(*map(document, profiles)), indent=1)
        save(options.json_path, text + "\n")
    if options.html_path:
        from cudalab.microscope.page import page

        save(options.html_path, page(profiles))
    remarks = of_profile(profiles[0])
    write_remarks(remarks, "profile", sarif=options.sarif, github=options.github)
    return exit_code({variant.exit_code for one in profiles for variant in one.variants})


def count(subject: Subject, options: ProfileOptions) -> list[Profile]:
    """Profile on each device that counts, the CPU device first."""
    from cudalab.microscope import ncu
    from cudalab.output import terminal

    lab, case = subject.lab, subject.case
    size = options.sizes[0] if options.sizes else lab.teaching.bench_size(case, "cpu")
    profiles: list[Profile] = []
    with (
        terminal.BenchProgress() as progress,
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
    from cudalab.bench.suite import own_variant
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
    ends = [v for v in variants if v is variants[0] or not all(map(emulated, v.default))]
    return ends, f"the profile is of {' and '.join(variant.name for variant in ends)}"


def on_cpu(subject: Subject, data: Data, banks: int, blocks: int | None, progress: Any) -> Profile:
    """Profile every variant under the instrument."""
    from cudalab.backends.cpu.check import CheckDevice
    from cudalab.bench import suite
    from cudalab.microscope import profile as profiles
    from cudalab.system.machine import processor_name

    result = profiles.Profile(
        device="cpu",
        device_name=processor_name(),
        banks=banks,
        lab=subject.lab.name,
        case=suite.shown_case(subject.lab, subject.case),
        input=data.words,
        items=subject.lab.teaching.items(data.inputs, subject.case),
        flops=subject.lab.teaching.flops(data.inputs.params),
    )
    for variant in subject.variants:
        progress.step(variant.name)
        budget = None if blocks else BUDGET_S
        with CheckDevice(
            detect=False, count=True, banks=banks, blocks=blocks, budget_s=budget
        ) as device:
            result.variants.append(
                profiles.profile_variant(
                    subject.lab, variant, device, lambda: device.traces, data, subject.case
                )
            )
    return result


# sanitize ----------------------------------------------------------------------------------------


@click.command(
    "sanitize",
    cls=CaseCommand,
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab sanitize reduce --kernel my.cu",
                "cudalab sanitize scan --variant blelloch --n 5000",
                "cudalab sanitize histogram --kernel my.cu --data in.bin --json report.json",
            ),
            CASE_HELP,
            f"Exit status {ExitCode.WRONG_ANSWER} when something is found.",
        ]
    ),
)
@click.argument("lab", type=Choice(labs.names()), metavar="LAB")
@variant_option("Variant to examine. Default: the CPU device's default.")
@click.option("--kernel", type=EXISTING, metavar="FILE.cu", help="Examine your own file.")
@data_options
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of orders of blocks and warps to run: the usual one, then shuffled ones.",
)
@json_file_option("Write all findings as JSON; - is stdout.")
@remark_options()
@seconds_option(
    "--kill-after",
    "Report a run that takes longer as a loop that does not end.",
    SANITIZE_KILL_AFTER_S,
)
@quiet_option
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
    """Run an instrumented kernel in several orders of its threads and report what is wrong.

    It finds data races, barriers that some threads miss, out-of-bounds accesses, reads of
    uninitialised memory, wrong masks, deadlocks, and results that depend on the order of blocks
    and threads.
    """
    from cudalab.bench import suite
    from cudalab.formats import save
    from cudalab.labs import registry
    from cudalab.microscope.remarks import of_findings

    check_data()
    if variant and kernel:
        exclude("--variant", "--kernel")
    chosen_lab = labs.get(lab)
    case = suite.case_of(chosen_lab, options)
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
    status, document = watched(subject, inputs[:1] if data else inputs, orders, kill_after)
    if status:
        return status
    if json_path:
        save(json_path, json.dumps(asdict(document), indent=1) + "\n")
    if not (github or is_stdout(json_path, sarif)):
        show_findings(document)
    remarks = of_findings(document.findings, document.file)
    write_remarks(remarks, "sanitize", sarif=sarif, github=github)
    return ExitCode.OK if document.clean else ExitCode.WRONG_ANSWER


def watched(
    subject: Subject, sizes: tuple[Size, ...], orders: int, kill_after: float
) -> tuple[int, Findings]:
    """Examine in a child process that may crash or hang; return its exit status and findings."""
    from cudalab.microscope import sanitize as sanitizer
    from cudalab.system.supervise import supervise

    variant, status, ended = subject.variants[0], 0, None
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        report = sanitizer.Report(subject.lab, variant, subject.case, Path(folder, "report.json"))
        stack.callback(report.close)
        report.save()
        try:
            work = partial(look, subject, report, sizes, orders, kill_after)
            status = supervise(partial(report_errors, work), kill_after)
        except TimeLimitError as error:
            ended = sanitizer.crash_row(error, "infinite_loop")
        except KernelError as error:
            ended = sanitizer.crash_row(error, "crash")
        document = report.saved()
    kinds = {row.kind for row in document.findings}
    if ended and ended.kind not in kinds:
        document = replace(document, clean=False, findings=[ended, *document.findings])
        kinds.add(ended.kind)
    if "infinite_loop" in kinds:
        size = sizes[max(len(document.inputs) - 1, 0)]
        if ends(subject, size, max(kill_after / 4, FULL_SPEED_S)):
            raise TimeLimitError(
                f"{variant.name} takes longer than --kill-after {kill_after:g} s under the "
                "instrument, but it does end at full speed",
                hint="a smaller --n, or a longer --kill-after",
            )
    return status, document


def look(
    subject: Subject, report: Report, sizes: tuple[Size, ...], orders: int, kill_after: float
) -> int:
    """Run all inputs, with the instrument and without it; this is the child process."""
    from cudalab.backends.cpu.check import CheckDevice
    from cudalab.backends.cpu.device import CpuDevice
    from cudalab.microscope import sanitize as sanitizer

    def instrument(order: int) -> CheckDevice:
        # The usual order first: its findings are the easiest to follow.
        return CheckDevice(detect=True, count=False, seed=order or None, kill_after=kill_after / 4)

    with prints_to_stderr():
        for data in subject.ready(sizes):
            sanitizer.check(report, data, instrument, CpuDevice, orders)
            if not report.clean:
                break
    return 0


def ends(subject: Subject, size: Size, seconds: float) -> bool:
    """Whether the kernel ends within `seconds` without the instrument."""
    from cudalab.system.supervise import supervise

    try:
        return supervise(partial(at_full_speed, subject, size), seconds) == 0
    except (KernelError, TimeLimitError):
        return False


def at_full_speed(subject: Subject, size: Size) -> int:
    """Compute once, as `cudalab LAB` does; this is a child process."""
    from cudalab.backends.cpu.device import CpuDevice
    from cudalab.microscope import sanitize as sanitizer

    (data,) = subject.ready([size])
    with CpuDevice() as device:
        try:
            sanitizer.answer(subject.lab, subject.variants[0], subject.case, data, device)
        except CudalabError:
            return int(ExitCode.ERROR)
    return 0


def show_findings(document: Findings) -> None:
    """Print the findings, or that there are none."""
    from cudalab.microscope.findings import errors, grouped
    from cudalab.output import terminal

    groups = grouped(document.findings)
    verdict = "clean" if document.clean else f"{errors(groups)} found"
    title = f"{document.lab} {document.variant} ({document.file}): {verdict}"
    terminal.findings(f"{title}\nlooked at: {'; '.join(document.inputs)}", groups)
