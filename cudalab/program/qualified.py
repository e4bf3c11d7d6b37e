"""Kernels whose names are ambiguous after a `using namespace`: `swap`, `count` or `max`.

nvcc resolves the name by the launch's arguments. Here the launch names the kernel in full: the one
outside all namespaces, with the types of its parameters.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cudalab.program.parsed import Parsed


def kernels(files: Sequence[Parsed], plain: set[str], templates: set[str]) -> dict[str, str]:
    """The kernels of a program with a `using namespace`, each as an expression of C++.

    A template's is its name.
    """
    uses = any(
        (one.text, other.text) == ("using", "namespace")
        for each in files
        for one, other in pairwise(each.tokens)
    )
    if not uses:
        return {}
    found: dict[str, str | None] = {}
    inside: set[str] = set()
    for kernel in (one for each in files for one in each.structure.kernels if not one.scope):
        name, types = kernel.name, ", ".join(kernel.types)
        known = found.get(name, types) == types and not any(sign in types for sign in "([{")
        found[name] = types if known else None
        inside |= {name} if kernel.is_inside else set()
    return {
        name: f"::{name}" if name in templates else f"static_cast<void (*)({types})>(::{name})"
        for name, types in found.items()
        if name not in inside and (name in templates or (types is not None and name in plain))
    }
