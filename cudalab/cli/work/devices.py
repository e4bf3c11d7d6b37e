"""What `device` does: print the properties of devices, or say why there is no GPU."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cudalab.backends import DEVICES, gpu_device, open_device
from cudalab.backends.cuda import why as gpu
from cudalab.backends.meter import QueueMeter, open_meter
from cudalab.cli import params
from cudalab.cli.documents import DeviceRow, Devices
from cudalab.errors import CudalabError, ExitCode, NoDeviceError, UsageError
from cudalab.formats import save
from cudalab.output import terminal
from cudalab.output.labels import labelled
from cudalab.output.notes import note
from cudalab.output.prose import filled

if TYPE_CHECKING:
    from cudalab.checker.doctor import Row


def device(*, name: str | None, why: bool, measured: Path | None, json_path: Path | None) -> int:
    """Print the devices' properties, explain why there is no GPU, or measure it."""
    chosen = {"--why": why, "--measure": measured, "--json": json_path}
    named = [option for option, value in chosen.items() if value]
    if len(named) > 1 or (why and name):
        params.exclude(named[0], named[1] if len(named) > 1 else str(name))
    if why:
        return _explain_gpu()
    return _measure(name, measured) if measured else _describe(name, json_path)


def _explain_gpu() -> int:
    """Print what the GPU needs as soon as it is looked at."""
    complete = True
    for check in gpu.checks():
        show_check("ok" if check.ok else "MISSING", check)
        complete = complete and check.ok
    return ExitCode.OK if complete else ExitCode.NO_DEVICE


def _describe(name: str | None, json_path: Path | None) -> int:
    """Print the properties of one device or of all, or why there is none."""
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
    name = name or gpu_device()
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


def show_check(mark: str, check: gpu.Check | Row) -> None:
    """Print what was looked at and, if something is wrong, the line to type and what else to do.

    To a terminal sentences are wrapped, and a line to type is not; a pipe gets whole lines.
    """
    click.echo(filled(f"{mark:<8} {check.name}: {check.message}", 9))
    label = f"{'':9}fix: "
    if check.cure:
        click.echo(label + check.cure)
        label = " " * len(label)
    if check.advice:
        click.echo(filled(label + check.advice, 0 if check.cure else 5))
