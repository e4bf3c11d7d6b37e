"""What `list`, `show`, `device` and `doctor` do: print what there is."""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from cudalab import labs
from cudalab.backends import DEVICES, able_devices, open_device
from cudalab.backends.base import way_of
from cudalab.backends.cuda import why as gpu
from cudalab.backends.meter import QueueMeter, open_meter
from cudalab.cli import params
from cudalab.cli.documents import DeviceRow, Devices, LabRow, Labs, VariantRow, Variants
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError
from cudalab.formats import save
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source
from cudalab.output.labels import labelled
from cudalab.output.notes import note
from cudalab.output.prose import filled


def list_labs(json_path: Path | None) -> None:
    """List the labs."""
    from cudalab.output import terminal

    rows = [_summarized(labs.get(name)) for name in labs.names()]
    if params.write_json(json_path, Labs(labs=rows)):
        return
    terminal.catalogue(
        "cudalab list LAB shows a lab's variants, and what the others are for",
        ["lab", "summary", *(f"default on {device}" for device in DEVICES), "others"],
        [[row.name, row.summary, *row.default.values(), str(row.taken or "")] for row in rows],
        droppable=["others", *(f"default on {device}" for device in reversed(DEVICES))],
    )


def list_variants(lab: Lab, json_path: Path | None) -> None:
    """List the variants of a lab."""
    from cudalab.output import terminal

    variants = by_ladder(registry.variants(lab))
    described = [_described(variant, lab.taken) for variant in variants]
    document = Variants(lab=lab.name, summary=labs.summary(lab.name), variants=described)
    if params.write_json(json_path, document):
        return
    terminal.catalogue(
        f"{lab.name}: {labs.summary(lab.name)}",
        ["variant", "summary", "ladder", "default", "also for", "computes", "requires", "devices"],
        [_row(variant, lab.taken) for variant in variants],
        droppable=["devices", "requires", "computes", "also for", "ladder"],
    )


def by_ladder(variants: list[Variant]) -> list[Variant]:
    """The rungs of the main ladder, which has no name, and then those of each other one."""
    ladders = list(dict.fromkeys(["", *(variant.ladder for variant in variants)]))
    return sorted(variants, key=lambda variant: ladders.index(variant.ladder))


def _summarized(lab: Lab) -> LabRow:
    """A lab in a line: its default variants are those of its usual case, on a device with all."""

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


def show(lab: Lab, *, variant: str | None, whole: bool, tier: bool) -> None:
    """Print a variant's source, or how its kernels run."""
    if variant is None:
        names = ", ".join(each.name for each in registry.variants(lab))
        raise UsageError(
            f"the name of a variant is missing: cudalab show {lab.name} VARIANT", names
        )
    selected = registry.find(lab, variant)
    if sys.stdout is None:
        raise CudalabError("stdout is closed")
    if tier:
        _show_tiers(lab, selected)
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
    name = next(name for name, kind in DEVICES.items() if kind.facts.on_host)
    with open_device(name, 1) as device:
        registry.check_features(variant, device.name, device.features)
        case = lab.complete({axis: values[0] for axis, values in variant.applies.items()})
        module = lab.compiled(variant, device, case)
        for kernel in source.load(variant.path, variant.label).kernels:
            click.echo(f"{kernel}: {way_of(module[kernel])}")


def device(*, name: str | None, why: bool, measured: Path | None, json_path: Path | None) -> int:
    """Print the devices' properties, explain why there is no GPU, or measure it."""
    from cudalab.output import terminal

    chosen = {"--why": why, "--measure": measured, "--json": json_path}
    named = [option for option, value in chosen.items() if value]
    if len(named) > 1 or (why and name):
        params.exclude(named[0], named[1] if len(named) > 1 else str(name))
    if why:
        cured = True
        for check in gpu.checks():
            show_check("MISSING" if check.cure else "ok", check.name, check.message, check.cure)
            cured = cured and not check.cure
        return ExitCode.OK if cured else ExitCode.NO_DEVICE
    if measured:
        return _measure(name, measured)
    described = _properties(name)
    if params.write_json(json_path, Devices(devices=described)):
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


def doctor(json_path: Path | None) -> int:
    """Print the result of every check as soon as it is there."""
    from cudalab.checker import doctor as checks

    found, part, usable = [], "", True
    for row in checks.rows():
        found.append(row)
        usable = usable and (row.ok or not row.needed)
        if not params.is_stdout(json_path):
            if row.part != part:
                click.echo(f"{row.part}:" if not part else f"\n{row.part}:")
                part = row.part
            show_check(row.mark, row.name, row.message, row.cure)
    params.write_json(json_path, checks.Document(usable=usable, checks=found))
    return ExitCode.OK if usable else ExitCode.NO_DEVICE


def _properties(name: str | None) -> list[DeviceRow]:
    """The properties of one device, or of each kind, or why there is none of it."""
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
    name = name or next(each for each, kind in DEVICES.items() if kind.facts.driver)
    if not DEVICES[name].facts.driver:
        raise UsageError(f"--measure is for GPUs: the {name} device runs kernels on the host")
    from cudalab.bench.candidates import opened_alone
    from cudalab.predict import gpus, measure

    with opened_alone(name, None) as (opened, busy):
        meter = open_meter(opened)
        if not isinstance(meter, QueueMeter):
            raise CudalabError(f"the {name} device has no clock to measure by")
        if busy:
            note(f"the GPU is busy, so the numbers are doubtful: {', '.join(busy)}")
        facts = measure.measure(opened, meter, opened.info())
    save(path, gpus.text(facts))
    return ExitCode.OK


def show_check(mark: str, name: str, message: str, cure: str) -> None:
    """Print what was looked at and, if something is wrong, what mends it.

    To a terminal sentences are wrapped, and a line to type is not; a pipe gets whole lines.
    """
    click.echo(filled(f"{mark:<8} {name}: {message}", 9))
    if cure:
        is_sentence = ", " in cure
        line = f"         cure: {cure}"
        click.echo(filled(line, 6) if is_sentence else line)
