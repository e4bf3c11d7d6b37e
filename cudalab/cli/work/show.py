"""What `show` does: print a variant's source, or how its kernels run."""

import sys

import click

from cudalab.backends import host_device, open_device
from cudalab.backends.base import way_of
from cudalab.errors import CudalabError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.language import source


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
        from cudalab.output import code

        code.cuda_source(text.decode(), [] if whole else source.headers(loaded))
    else:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def _show_tiers(lab: Lab, variant: Variant) -> None:
    """Print how the host runs each kernel of a variant, in the first case that it computes."""
    with open_device(host_device(), 1) as device:
        registry.check_features(variant, device.name, device.features)
        case = lab.complete({axis: values[0] for axis, values in variant.applies.items()})
        module = lab.compiled(variant, device, case)
        for kernel in source.load(variant.path, variant.label).kernels:
            click.echo(f"{kernel}: {way_of(module[kernel])}")
