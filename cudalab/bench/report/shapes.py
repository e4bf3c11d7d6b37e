"""The sizes and launch shapes to measure for a report."""

from collections.abc import Mapping

from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size

# The defines to sweep if a variant has them, and their values.
SHAPES = {
    "THREADS_PER_BLOCK": ["32", "64", "128", "256", "512", "1024"],
    "TILE": ["8", "16", "32"],
    "TILE_DIM": ["16", "32", "64"],
}
FOLLOWS = "ITEMS_PER_BLOCK"  # proportional to the threads, unless it belongs to an inner scan
FEW_THREADS = 32  # a smaller block makes no sense on a GPU


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
