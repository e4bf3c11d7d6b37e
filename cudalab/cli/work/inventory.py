"""What `list` does: print the labs, or the variants of one."""

from collections.abc import Mapping
from pathlib import Path

from cudalab import labs
from cudalab.backends import DEVICES, able_devices
from cudalab.cli import params
from cudalab.cli.documents import LabRow, Labs, VariantRow, Variants
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.output import terminal


def list_labs(json_path: Path | None) -> None:
    """List the labs."""
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
