"""Several kernel files as one: a compiler that starts once reads its own headers once."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

import pytest

from cudalab.backends.cpu.compiler.flags import QUICK
from cudalab.language import source

LONG_AS_LOOPS = {"radixsort", "scan", "solve"}  # labs whose loops take a minute to compile
RUN_LONG = {"split_1bit", "complete_pivot", "richardson_coalesced"}  # of these: as fibers, longer
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def one_file(pieces):
    """Variants with their defines, one behind the other; a piece is a variant, an id and defines.

    Each has a namespace and kernels of its own, and a label that names the case in messages.
    """
    texts = []
    for number, (variant, case_id, defines) in enumerate(pieces):
        loaded, system_includes, defined = _read(variant.path, variant.label)
        own = {**defines, **variant.defines, **{k: f"{k}_{number}" for k in loaded.kernels}}
        texts += [
            system_includes,
            *(f"#define {name} {value}" for name, value in own.items()),
            f"namespace case_{number} {{",
            loaded.text.replace(f'"{variant.label}"', f'"{variant.label}, {case_id}"'),
            "}",
            *(f"#undef {name}" for name in [*own, *defined]),
        ]
    return "\n".join(texts)


@lru_cache(1)
def _read(path, label):
    """A variant, the system's headers that it includes, and the macros that it defines."""
    loaded = source.load(path, label)
    text = source.with_defines(loaded.text, {})
    return loaded, text.removesuffix(loaded.text), _DEFINED.findall(text)


def compile_together(device, lab, variant, cases):
    """The kernels of a variant for each of its cases, in two libraries.

    The first case of each element type is compiled as for a run, but for the loops of some labs.
    The others take a third of the time: with fibers, and hardly optimized. A variable in constant
    memory is looked up by its name alone, so a file that has one is compiled for each case: the
    first one as for a run.
    """
    loaded = source.load(variant.path, variant.label)
    defines = [lab.kernel_defines(case) for case in cases]
    types = [each.get("T") for each in defines]
    hurried = [found in types[:number] for number, found in enumerate(types)]
    is_long = lab.name in LONG_AS_LOOPS and variant.name not in RUN_LONG
    if "__constant__" in loaded.text:
        kernels = []
        for number, each in enumerate(defines):
            with _ways(device, loops=number == 0 or not is_long, hurried=hurried[number]):
                kernels.append(device.compile(loaded, each | variant.defines))
        return kernels
    kernels = {}
    for is_hurried in sorted({*hurried}):
        numbers = [number for number, each in enumerate(hurried) if each == is_hurried]
        pieces = [(variant, number, defines[number]) for number in numbers]
        with _ways(device, loops=not is_long, hurried=is_hurried):
            kernels |= zip(numbers, _library(device, loaded, pieces), strict=True)
    return [kernels[number] for number in range(len(cases))]


@contextmanager
def _ways(device, *, loops, hurried):
    """Compile for the device with `loops`, if it has any, or in a hurry, which is with fibers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "loops", device.loops and loops and not hurried)
        if hurried:
            patch.setenv(QUICK, "1")
        yield


def _library(device, loaded, pieces):
    """The kernels of each piece, of one library."""
    numbers = range(len(pieces))
    visible = [f"using namespace case_{number};" for number in numbers]
    text = "\n".join([f'#line 1 "{loaded.label}"', one_file(pieces), *visible])
    kernels = {
        f"{k}_{number}": params for k, params in loaded.kernels.items() for number in numbers
    }
    module = device.compile(replace(loaded, text=text, kernels=kernels), {})
    return [_Case(module, loaded, number) for number in numbers]


class _Case:
    """The kernels of one case, by the names that they have in the file."""

    def __init__(self, module, loaded, number):
        self._module, self._number = module, number
        self.source = loaded

    def __getitem__(self, name):
        return self._module[f"{name}_{self._number}"]
