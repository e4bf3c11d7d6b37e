"""Chooses what is measured: variants, sizes, and the values of their defines. No printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from cudalab.backends.base import Device
from cudalab.bench.measured import COLD
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant, product_of
from cudalab.labs.inputs import Case, Size
from cudalab.system.records import Scalar

Chosen = tuple[list[Variant], list[str]]  # the variants, and why others are left out
# Values of each define: numbers, products of numbers and defines, or ~DEFINE (proportional to it).
Sweep = dict[str, list[str]]

ALL = "all"
MAX_COMBINATIONS = 1000
# The defines to sweep if a variant has them, and their values.
SHAPES = {
    "THREADS_PER_BLOCK": ["32", "64", "128", "256", "512", "1024"],
    "TILE": ["8", "16", "32"],
    "TILE_DIM": ["16", "32", "64"],
}
FOLLOWS = "ITEMS_PER_BLOCK"  # proportional to the threads, unless it belongs to an inner scan
FEW_THREADS = 32  # a smaller block makes no sense on a GPU


@dataclass(frozen=True, kw_only=True)
class Request:
    """The labs, variants and conditions that a call of bench measures."""

    labs: list[tuple[Lab, Case]]
    sizes: list[Size] | None = None  # None: each lab's own
    variants: str | None = None  # "all", names, or None: the first rung and the default
    kernel: Path | None = None
    dist: str | None = None
    seed: int = 0
    baselines: tuple[str, ...] = ()
    sweep: Sweep = field(default_factory=dict)
    caches: tuple[str, ...] = (COLD,)
    time_limit_s: float | None = None  # for each table


def joined(options: Iterable[tuple[str, list[str]]]) -> Sweep:
    """The values of each define; a define that is named twice gets both lists."""
    sweep: Sweep = {}
    for name, values in options:
        sweep[name] = list(dict.fromkeys([*sweep.get(name, []), *values]))
    return sweep


def check(request: Request, device: str) -> None:
    """Raise UsageError for errors that can be detected before the device is opened."""
    for lab, case in request.labs:
        if request.variants not in (None, ALL):
            named(lab, case, request.variants)
        if request.kernel:
            own_variant(lab, case, request.kernel)
    for lab, case, size in jobs(request, device):
        # Only a header is generated. Any number is a valid size, so a small one will do.
        shape = size if isinstance(size, tuple) else 1
        next(iter(lab.generate(case, shape, lab.distribution(request.dist), request.seed)))


def jobs(request: Request, device: str) -> list[tuple[Lab, Case, Size]]:
    """The lab, case and size of each table."""
    return [
        (lab, case, size)
        for lab, case in request.labs
        for size in request.sizes or [lab.teaching.bench_size(case, device)]
    ]


def own_variant(lab: Lab, case: Case, path: Path) -> Variant:
    """The variant in a student's file, named like the file."""
    own = registry.read_header(path, lab, str(path))
    registry.check_applies(own, lab, case)
    return replace(own, name=Path(own.label).name)


def named(lab: Lab, case: Case, names: str) -> list[Variant]:
    """The variants with these names, in teaching order. UsageError if one is not for the case."""
    variants = [registry.find(lab, name.strip()) for name in names.split(",")]
    for variant in variants:
        registry.check_applies(variant, lab, case)
    return sorted(variants, key=lambda variant: (variant.order, variant.name))


def select(lab: Lab, case: Case, names: str, device: str, features: frozenset[str]) -> Chosen:
    """The variants with these names, or all that the device computes, and why others are not."""
    if names != ALL:
        return named(lab, case, names), []
    usable: list[Variant] = []
    unusable: dict[str, list[str]] = {}
    for variant in registry.variants(lab):
        reason = left_out(variant, case, device, features)
        if reason:
            unusable.setdefault(reason, []).append(variant.name)
        else:
            usable.append(variant)
    return usable, [f"left out: {', '.join(left)}: {why}" for why, left in unusable.items()]


def left_out(variant: Variant, case: Case, device: str, features: frozenset[str]) -> str | None:
    """Why `all` leaves the variant out; None if it does not."""
    for axis, values in variant.applies.items():
        if case.get(axis) not in values:
            return f"computes {axis} {', '.join(values)} only"
    missing = variant.missing(features)
    if missing:
        return f"requires {', '.join(missing)}, which this {device} device lacks"
    return None


def choose(lab: Lab, case: Case, names: str | None, device: Device) -> Chosen:
    """The variants that `--variants` selects for bench; if absent, both ends of the ladder."""
    variants, notes = select(lab, case, names or ALL, device.name, device.features)
    if names is None:
        ends = [v for v in variants if v is variants[0] or v.is_default_on(device.name)]
        return ends, others(variants, ends)
    for variant in variants:
        registry.check_features(variant, device.name, device.features)
    return variants, notes


def others(variants: Sequence[Variant], chosen: Sequence[Variant]) -> list[str]:
    """A note of how many variants are not chosen, if any."""
    left = len(variants) - len(chosen)
    return [f"{left} more with --variants all"] if left else []


def combinations(variant: Variant, sweep: Mapping[str, Sequence[str]]) -> list[Variant]:
    """The variant with each combination of values for its defines."""
    count = prod(len(values) for values in sweep.values())
    if count > MAX_COMBINATIONS:
        raise UsageError(
            f"--sweep: {count:,} combinations are too many", hint=f"{MAX_COMBINATIONS:,} at most"
        )
    result = []
    for values in product(*sweep.values()):
        texts = dict(zip(sweep, values, strict=True))
        defines: dict[str, int | str] = dict(variant.defines)
        defines |= {name: int(text) for name, text in texts.items() if text.isdecimal()}
        for name, text in texts.items():
            if text.startswith("~"):  # scaled by the same factor as another define
                usual, other = variant.defines, text[1:]
                if other not in usual:
                    raise UsageError(f"--sweep {name}: {variant.name} does not define {other}")
                defines[name] = int(usual[name]) * int(defines[other]) // int(usual[other])
            elif not text.isdecimal():
                defines[name] = _product(name, text, defines)
        label = " ".join(f"{name}={defines[name]}" for name in sweep)
        result.append(replace(variant, name=f"{variant.name}[{label}]", defines=defines))
    return result


def free_defines(sweep: Sweep) -> list[str]:
    """The defines with values of their own, from which the others follow."""
    free = [name for name, values in sweep.items() if all(v.isdecimal() for v in values)]
    return free or list(sweep)


def _product(name: str, text: str, defines: Mapping[str, int | str]) -> int:
    """The number for a value such as 2*THREADS_PER_BLOCK."""
    try:
        return product_of(text, defines)
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"--sweep {name}: '{text}' is no number and no product of numbers and defines",
            hint="such as 32, 2*THREADS_PER_BLOCK, or ~THREADS_PER_BLOCK: in proportion to it",
        ) from None


def shown_case(lab: Lab, case: Case) -> dict[str, Scalar]:
    """The axes of the case, and the options that differ from their defaults."""
    defaults = lab.complete({})
    axes = {axis: case[axis] for axis in lab.axes if axis not in lab.derived}
    rest = {
        name: value
        for name, value in case.items()
        if name not in lab.axes and value not in (None, defaults.get(name))
    }
    return axes | rest


def case_of(lab: Lab, options: Mapping[str, Any]) -> Case:
    """The complete case. UsageError for options that bench does not measure."""
    case = lab.complete(dict(options))
    if case.get("text"):
        raise UsageError("--text is not measured", hint="bench measures the binary streams")
    return case


def default_sizes(lab: Lab, case: Case, device: str) -> list[Size]:
    """Three sizes, up to the one that bench measures."""
    most = lab.teaching.bench_size(case, device)
    if not isinstance(most, int):
        return [most]
    steps = (4, 2, 1) if lab.teaching.sizes(case).is_order else (16, 4, 1)
    return [max(most // step, 1) for step in steps]


def launch_shapes(variant: Variant) -> dict[str, list[str]] | None:
    """A sweep over the variant's block or tile size; None if it has none.

    The items of a block stay in proportion to its threads. Where tiles of BM x BN and registers
    decide how many threads there are, no single number can be changed.
    """
    defines = variant.defines
    if "BM" in defines or _number(defines, "THREADS_PER_BLOCK", FEW_THREADS) < FEW_THREADS:
        return None
    name = next((name for name in SHAPES if isinstance(defines.get(name), int)), None)
    if name is None:
        return None
    sweep = {name: SHAPES[name]}
    each, rest = divmod(_number(defines, FOLLOWS, 0), _number(defines, name, 1))
    if name == "THREADS_PER_BLOCK" and "SCAN_THREADS" not in defines and each and not rest:
        sweep[FOLLOWS] = [f"{each}*{name}"]
    return sweep


def _number(defines: Mapping[str, int | str], name: str, otherwise: int) -> int:
    value = defines.get(name)
    return value if isinstance(value, int) else otherwise


def swept_variants(lab: Lab, case: Case, device: str, features: frozenset[str]) -> list[Variant]:
    """The first variant of the ladder and the default, if they have a launch shape."""
    able = [
        variant
        for variant in registry.variants(lab)
        if variant.computes(case) and not variant.missing(features) and launch_shapes(variant)
    ]
    usual = next((variant for variant in able if variant.is_default_on(device)), None)
    chosen = {variant.name: variant for variant in (*able[:1], usual) if variant}
    return list(chosen.values())
