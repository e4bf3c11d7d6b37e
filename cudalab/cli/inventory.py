"""The commands `list`, `show` and `device`: what there is to run, and what to run it on."""
# ruff: noqa: PLC0415 - `cudalab --help` must not wait for NumPy, rich or a device

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudalab import labs
from cudalab.backends import DEVICES, able_devices, open_device
from cudalab.cli.options import OUT, Choice, exclude, json_option, lines, variant_names, write_json
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError
from cudalab.output.notes import note
from cudalab.output.prose import filled

if TYPE_CHECKING:
    from cudalab.cli.documents import DeviceRow, LabRow, VariantRow
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant


# list, show --------------------------------------------------------------------------------------


@click.command(
    "list",
    epilog="\n\n".join(
        [
            lines(
                "Example",
                "cudalab list",
                "cudalab list radixsort",
                "cudalab list radixsort | grep shared",
                "cudalab list radixsort --json -",
            ),
        ]
    ),
)
@click.argument("lab", required=False, type=Choice(labs.names()))
@json_option("Write it as JSON, with all that is known of each variant; - is stdout.")
def list_variants(lab: str | None, *, json_path: Path | None) -> None:
    """List the labs and the variants that they run by default, or the variants of LAB.

    A terminal gets what fits. A pipe gets everything, one line for each.
    """
    from cudalab.cli.documents import Labs, Variants
    from cudalab.labs import registry
    from cudalab.output import terminal

    if lab is None:
        rows = [_summarized(labs.get(name)) for name in labs.names()]
        if write_json(json_path, Labs(labs=rows)):
            return
        terminal.catalogue(
            "cudalab list LAB shows a lab's variants, and what the others are for",
            ["lab", "summary", *(f"default on {device}" for device in DEVICES), "others"],
            [[row.name, row.summary, *row.default.values(), str(row.taken or "")] for row in rows],
            droppable=["others", *(f"default on {device}" for device in reversed(DEVICES))],
        )
        return
    variants = by_ladder(registry.variants(labs.get(lab)))
    taken = labs.get(lab).taken
    described = [_described(variant, taken) for variant in variants]
    document = Variants(lab=lab, summary=labs.summary(lab), variants=described)
    if write_json(json_path, document):
        return
    terminal.catalogue(
        f"{lab}: {labs.summary(lab)}",
        ["variant", "summary", "ladder", "default", "also for", "computes", "requires", "devices"],
        [_row(variant, taken) for variant in variants],
        droppable=["devices", "requires", "computes", "also for", "ladder"],
    )


def by_ladder(variants: list[Variant]) -> list[Variant]:
    """The rungs of the main ladder, which has no name, and then those of each other one."""
    ladders = list(dict.fromkeys(["", *(variant.ladder for variant in variants)]))
    return sorted(variants, key=lambda variant: ladders.index(variant.ladder))


def _summarized(lab: Lab) -> LabRow:
    """A lab in a line: its default variants are those of its usual case, on a device with all."""
    from cudalab.cli.documents import LabRow
    from cudalab.labs import registry

    def default(device: str) -> str:
        features = DEVICES[device].load().possible_features
        try:
            return registry.default(lab, lab.complete({}), device, features).name
        except UsageError:
            return ""

    return LabRow(
        name=lab.name,
        summary=labs.summary(lab.name),
        variants=len(registry.variants(lab)),
        default={device: default(device) for device in DEVICES},
        taken=len(lab.taken),
    )


def _described(variant: Variant, taken: Mapping[str, str]) -> VariantRow:
    from cudalab.cli.documents import VariantRow

    return VariantRow(
        name=variant.name,
        summary=variant.summary,
        ladder=variant.ladder,
        order=variant.order,
        adds=variant.adds,
        devices=able_devices(variant.requires),
        default=list(variant.default),
        taken=taken.get(variant.name, ""),
        computes={axis: list(values) for axis, values in variant.applies.items()},
        requires=list(variant.requires),
        precision=variant.precision,
        deterministic=variant.deterministic,
        file=str(variant.path),
    )


def _row(variant: Variant, taken: Mapping[str, str]) -> list[str]:
    return [
        variant.title,
        variant.summary,
        variant.ladder,
        ", ".join(variant.default),
        taken.get(variant.name, ""),
        "; ".join(f"{axis} {', '.join(values)}" for axis, values in variant.applies.items()),
        ", ".join(variant.requires),
        ", ".join(able_devices(variant.requires)),
    ]


@click.command(
    epilog=lines(
        "Example",
        "cudalab show radixsort split_1bit",
        "cudalab show radixsort split_1bit > my.cu",
        "cudalab show --whole scan decoupled_lookback",
        "cudalab show --tier matmul tiled",
    ),
)
@click.argument("lab", type=Choice(labs.names()))
@click.argument("variant", required=False, metavar="VARIANT", shell_complete=variant_names)
@click.option("--whole", is_flag=True, help="Print one file that compiles, its headers inlined.")
@click.option("--tier", is_flag=True, help="Say how the CPU device runs its kernels, and why.")
def show(lab: str, variant: str | None, whole: bool, tier: bool) -> None:
    """Print a variant's source: highlighted on a terminal, the file's bytes otherwise.

    A terminal also shows which headers the variant includes; --whole prints their text, each in
    the place of its #include. With --tier, one line for each kernel says instead whether its
    threads are loops on the CPU device, or fibers, and why not loops.
    """
    from cudalab.labs import registry
    from cudalab.language import source

    if variant is None:
        names = ", ".join(each.name for each in registry.variants(labs.get(lab)))
        raise UsageError(f"the name of a variant is missing: cudalab show {lab} VARIANT", names)
    selected = registry.find(labs.get(lab), variant)
    if sys.stdout is None:
        raise CudalabError("stdout is closed")
    if tier:
        _show_tiers(labs.get(lab), selected)
        return
    loaded = source.load(selected.path, selected.label)
    text = source.whole(loaded).encode() if whole else selected.path.read_bytes()
    if sys.stdout.isatty():
        from cudalab.output import terminal

        terminal.cuda_source(text.decode(), [] if whole else source.headers(loaded))
    else:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def _show_tiers(lab: Lab, variant: Variant) -> None:
    """Print how the host runs each kernel of a variant, in the first case that it computes."""
    from cudalab.backends.base import way_of
    from cudalab.labs import registry
    from cudalab.language import source

    name = next(name for name, kind in DEVICES.items() if kind.facts.on_host)
    with open_device(name, 1) as device:
        registry.check_features(variant, device.name, device.features)
        case = lab.complete({axis: values[0] for axis, values in variant.applies.items()})
        module = lab.compiled(variant, device, case)
        for kernel in source.load(variant.path, variant.label).kernels:
            click.echo(f"{kernel}: {way_of(module[kernel])}")


# device ------------------------------------------------------------------------------------------


@click.command(
    epilog=lines(
        "Example",
        "cudalab device",
        "cudalab device cuda",
        "cudalab device --why         # the part of `cudalab doctor` about the GPU",
        "cudalab device --measure mygpu.toml",
    )
)
@click.argument(
    "name", required=False, type=Choice(list(DEVICES)), metavar=f"[{'|'.join(DEVICES)}]"
)
@click.option(
    "--why",
    is_flag=True,
    help="Check what the GPU needs, from the driver to PyCUDA: print what is missing and the line "
    f"that cures it. Exit status {ExitCode.NO_DEVICE} if anything is.",
)
@click.option(
    "--measure",
    "measured",
    type=OUT,
    metavar="FILE.toml",
    help="Measure the GPU for a minute and write its file for `cudalab predict --gpu FILE.toml`.",
)
@json_option()
def device(name: str | None, *, why: bool, measured: Path | None, json_path: Path | None) -> int:
    """Print the properties of the devices."""
    from cudalab.cli.documents import Devices
    from cudalab.output import terminal
    from cudalab.output.labels import labelled

    chosen = {"--why": why, "--measure": measured, "--json": json_path}
    named = [option for option, value in chosen.items() if value]
    if len(named) > 1 or (why and name):
        exclude(named[0], named[1] if len(named) > 1 else str(name))
    if why:
        return _explain_gpu()
    if measured:
        return _measure(name, measured)
    described = _properties(name)
    if write_json(json_path, Devices(devices=described)):
        return ExitCode.OK
    for one in described:
        title = f"{one.name} device"
        if one.available:
            terminal.properties(title, labelled(one.properties))
        else:
            click.echo(filled(f"{title}: {one.reason}", 2))
            if one.hint:
                click.echo(filled(f"  {one.hint}"))
    return ExitCode.OK


def _properties(name: str | None) -> list[DeviceRow]:
    """The properties of one device, or of each kind, or why there is none of it."""
    from cudalab.cli.documents import DeviceRow

    described: list[DeviceRow] = []
    for each in [name] if name else DEVICES:
        try:
            with open_device(each) as opened:
                properties = asdict(opened.info())
        except NoDeviceError as error:
            if name:
                raise
            hint = error.hint or ""
            described.append(DeviceRow(name=each, available=False, reason=error.message, hint=hint))
        else:
            described.append(DeviceRow(name=each, available=True, properties=properties))
    return described


def _measure(name: str | None, path: Path) -> int:
    """Write the file of a GPU; the first kind of device that is one, if none is named."""
    from cudalab.backends.meter import QueueMeter, open_meter
    from cudalab.bench.candidates import opened_alone
    from cudalab.formats import save
    from cudalab.predict import gpus
    from cudalab.predict.measure import measure

    name = name or next(each for each, kind in DEVICES.items() if kind.facts.driver)
    if not DEVICES[name].facts.driver:
        raise UsageError(f"--measure is for GPUs: the {name} device runs kernels on the host")
    with opened_alone(name, None) as (opened, busy):
        meter = open_meter(opened)
        if not isinstance(meter, QueueMeter):
            raise CudalabError(f"the {name} device has no clock to measure by")
        if busy:
            note(f"the GPU is busy, so the numbers are doubtful: {', '.join(busy)}")
        gpu = measure(opened, meter, opened.info())
    save(path, gpus.text(gpu))
    return ExitCode.OK


def _explain_gpu() -> int:
    """Print the result of every check; a line to type is never wrapped."""
    from cudalab.backends.cuda import why

    cured = True
    for check in why.checks():
        show_check("MISSING" if check.cure else "ok", check.name, check.message, check.cure)
        cured = cured and not check.cure
    return ExitCode.OK if cured else ExitCode.NO_DEVICE


def show_check(mark: str, name: str, message: str, cure: str) -> None:
    """Print what was looked at and, if something is wrong, what mends it.

    To a terminal sentences are wrapped, and a line to type is not; a pipe gets whole lines.
    """
    click.echo(filled(f"{mark:<8} {name}: {message}", 9))
    if cure:
        is_sentence = ", " in cure
        line = f"         cure: {cure}"
        click.echo(filled(line, 6) if is_sentence else line)
