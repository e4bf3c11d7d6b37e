"""The registry of variants: each is declared in the header of its .cu file and nowhere else.

An unknown key or value, or a second default for a case, is an error that names file and line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import combinations, product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.backends import DEVICES
from cudalab.errors import HeaderError, NoDeviceError, UsageError, nearest
from cudalab.labs.header import ARCHITECTURE, Header, Variant
from cudalab.language import source

if TYPE_CHECKING:
    from cudalab.backends.base import Device
    from cudalab.labs.base import Lab
    from cudalab.labs.inputs import Case, Inputs

# Valid in `requires`, besides compute capabilities such as "sm_80" or "sm_90a".
FEATURES = (
    "inline_ptx", "tensor_cores", "shared_96kb", "shared_160kb", "shared_224kb", "bulk_copy",
    "clusters",
)  # fmt: skip

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def variants(lab: Lab) -> list[Variant]:
    """All variants of `lab` in teaching order. HeaderError for the first invalid header."""
    folder = source.kernels_dir() / lab.name
    result = [read_header(path, lab) for path in sorted(folder.glob("*.cu"))]
    if not result:
        raise HeaderError(f"no variants of {lab.name} in {folder}")
    result.sort(key=lambda variant: (variant.order, variant.name))
    _check_defaults(lab, result)
    return result


def find(lab: Lab, name: str) -> Variant:
    """The variant called `name`. UsageError with the nearest names if there is none."""
    path = source.kernels_dir() / lab.name / f"{name}.cu"
    if _IDENTIFIER.fullmatch(name) and path.is_file():
        return read_header(path, lab)
    raise UsageError(
        f"{lab.name} has no variant '{name}'",
        hint=nearest(name, [variant.name for variant in variants(lab)])
        + f" (`cudalab list {lab.name}` describes them)",
    )


def default(
    lab: Lab, case: Mapping[str, Any], device: str, features: frozenset[str] = frozenset()
) -> Variant:
    """The variant that `device` takes for `case` if the user names none.

    If there are several, the last in teaching order whose requirements `features` meet.
    """
    for variant in reversed(variants(lab)):
        able = variant.computes(case) and not variant.missing(features)
        if able and variant.is_default_on(device):
            return variant
    described = ", ".join(f"{axis} {value}" for axis, value in case.items())
    raise UsageError(
        f"no variant of {lab.name} is the default for {described} on the {device} device",
        hint=f"choose one with --variant: `cudalab list {lab.name}`",
    )


def choose(lab: Lab, inputs: Inputs, case: Case, device: Device) -> Variant:
    """The variant that `device` takes for these inputs if the user names none."""
    chosen = lab.choose(inputs, case, device)
    names = [chosen] if isinstance(chosen, str) else chosen or ()
    candidates = (find(lab, name) for name in names)
    able = (one for one in candidates if not one.missing(device.features))
    return next(able, None) or default(lab, case, device.name, device.features)


def check_applies(variant: Variant, lab: Lab, case: Mapping[str, Any]) -> None:
    """Raise a UsageError if `variant` does not compute `case`."""
    for axis, values in variant.applies.items():
        if case.get(axis) not in values:
            others = [v.name for v in variants(lab) if v.computes(case)]
            raise UsageError(
                f"variant {variant.name} does not compute {axis} {case.get(axis)}: "
                f"only {', '.join(values)}",
                hint=f"variants that do: {', '.join(others)}" if others else None,
            )


def check_features(variant: Variant, device: str, features: frozenset[str]) -> None:
    """Raise a NoDeviceError if the device lacks what the variant requires: no fallback."""
    missing = variant.missing(features)
    if missing:
        raise NoDeviceError(
            f"variant {variant.name} requires {', '.join(missing)}, "
            f"which this {device} device does not have",
            hint=f"`cudalab list {variant.lab}` shows which variants run where",
        )


def read_header(path: Path, lab: Lab, label: str | None = None) -> Variant:
    """Parse and validate the header of a file."""
    label = os.fsencode(label or f"kernels/{lab.name}/{path.name}").decode(errors="replace")
    header = Header(path, label, lab.name)
    checked = _Validator(header, lab).checked(header.values())
    return Variant(lab=lab.name, name=path.stem, path=path, label=label, **checked)


class _Validator:
    """Turns a header's values into those of a Variant, or raises an error at the right line."""

    def __init__(self, header: Header, lab: Lab) -> None:
        self.error = header.error
        self.lab = lab

    def checked(self, values: dict[str, Any]) -> dict[str, Any]:
        known = {
            "summary": self._line,
            "order": self._order,
            "dispatch": self._dispatch,
            "ladder": self._line,
            "adds": self._line,
            "defines": self._defines,
            "requires": self._requires,
            "applies": self._applies,
            "default": self._default,
            "deterministic": self._deterministic,
            "precision": self._precision,
        }
        for key in values:
            if key not in known:
                raise self.error(key, f"unknown key '{key}': {nearest(key, list(known))}")
        for key in ("summary", "order", "dispatch"):
            if key not in values:
                raise self.error(None, f"the header lacks '{key}'")
        checked = {key: known[key](key, value) for key, value in values.items()}
        if checked.get("precision") and checked.get("default"):
            raise self.error(
                "default",
                f"a variant of precision {values['precision']} is lossy: it cannot be a default",
            )
        return checked

    def _line(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise self.error(key, f"{key} must be one line of text")
        return value

    def _order(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise self.error(key, f"order must be a number, got {value!r}")
        return value

    def _dispatch(self, key: str, value: object) -> str:
        plans = self.lab.dispatches()
        if value not in plans:
            raise self.error(
                key, f"{self.lab.name} has no dispatch {value!r}: {nearest(str(value), plans)}"
            )
        return str(value)

    def _defines(self, key: str, value: object) -> dict[str, int | str]:
        if not isinstance(value, dict):
            raise self.error(key, "defines must be a table such as { THREADS_PER_BLOCK = 256 }")
        for name, number in value.items():
            if not _IDENTIFIER.fullmatch(name) or name == "T":
                raise self.error(key, f"defines: '{name}' cannot be defined")
            if isinstance(number, bool) or not isinstance(number, int | str):
                raise self.error(key, f"defines: {name} must be an integer or a string")
        return dict(value)

    def _requires(self, key: str, value: object) -> tuple[str, ...]:
        features = self._strings(key, value)
        for feature in features:
            if feature not in FEATURES and not ARCHITECTURE.fullmatch(feature):
                raise self.error(
                    key,
                    f"'{feature}' is no feature and no compute capability such as sm_80: "
                    f"{nearest(feature, list(FEATURES))}",
                )
        return features

    def _applies(self, key: str, value: object) -> dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            raise self.error(key, 'applies must be a table such as { dtype = ["int32"] }')
        applies = {}
        for axis, values in value.items():
            if axis not in self.lab.axes:
                raise self.error(
                    key,
                    f"applies: {self.lab.name} has no option '{axis}': "
                    f"{nearest(axis, list(self.lab.axes))}",
                )
            applies[axis] = self._strings(key, values)
            if not applies[axis]:
                raise self.error(key, f"applies: {axis} must name at least one value")
            for name in applies[axis]:
                if name not in self.lab.axes[axis]:
                    raise self.error(
                        key,
                        f"applies: {axis} has no value '{name}': "
                        f"{nearest(name, list(self.lab.axes[axis]))}",
                    )
        return applies

    def _default(self, key: str, value: object) -> tuple[str, ...]:
        devices = self._strings(key, value)
        for device in devices:
            if device not in DEVICES:
                raise self.error(
                    key, f"default: unknown device '{device}': {nearest(device, DEVICES)}"
                )
        return devices

    def _deterministic(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error(key, "deterministic must be true or false")
        return value

    def _precision(self, key: str, value: object) -> str:
        """Check the format to which a lossy variant rounds: the lab must have a bound for it."""
        offered = list(self.lab.precisions)
        if value not in offered:
            known = nearest(str(value), offered) if offered else "its variants lose nothing"
            raise self.error(key, f"{self.lab.name} has no precision {value!r}: {known}")
        return str(value)

    def _strings(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"{key} must be a list of strings")
        return tuple(value)


def _check_defaults(lab: Lab, variants: list[Variant]) -> None:
    """Raise a HeaderError if two variants with the same requirements are default for one case.

    A later rung that computes fewer cases may take those over.
    """
    cases = [dict(zip(lab.axes, values, strict=True)) for values in product(*lab.axes.values())]

    def computed(variant: Variant) -> list[dict[str, str]]:
        return [case for case in cases if variant.computes(case)]

    for device in DEVICES:
        for one, two in combinations([v for v in variants if device in v.default], 2):
            both = [case for case in computed(two) if one.computes(case)]
            takes_over = len(computed(two)) < len(computed(one))
            if one.requires == two.requires and both and not takes_over:
                described = ", ".join(f"{axis} {value}" for axis, value in both[0].items())
                raise Header(two.path, two.label).error(
                    "default",
                    f"a second default for {described} on {device}: {one.label} is one already",
                )
