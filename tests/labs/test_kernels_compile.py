"""Every variant of every lab, for every element type it computes, through nvcc without a warning.

Needs no GPU. The oldest architecture in use and that of consumer GPUs, which have fewer threads a
multiprocessor, see each variant once, for its first element type.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.errors import NoDeviceError
from cudalab.labs import registry
from cudalab.language import source

ARCHITECTURE = "sm_90"
ALSO = ("sm_75", "sm_89")
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


def compilations():
    """A variant, its cases by their ids, and the architecture."""
    for name in labs.names():
        lab = labs.get(name)
        for variant in registry.variants(lab):
            required = variant.architecture
            every = dict(distinct_defines(lab, variant))
            first = dict(list(every.items())[:1])
            targets = {required if capability(required) >= 90 else ARCHITECTURE: every}
            targets |= {
                target: first for target in ALSO if capability(required) <= capability(target)
            }
            for target, cases in targets.items():
                yield pytest.param(variant, cases, target, id=f"{name}-{variant.name}-{target}")


def capability(architecture):
    """Turn "sm_90a" into 90; nothing required is 0."""
    return int(re.sub(r"\D", "", architecture or "0"))


def distinct_defines(lab, variant):
    """What the cases of a variant define for its kernels, with the id of the first such case."""
    found = {}
    for case in filter(variant.computes, lab.cases()):
        chosen = "-".join(str(case[axis]) for axis in lab.axes if axis not in lab.derived)
        defines = lab.kernel_defines(case)
        if defines not in found.values():
            found.setdefault(chosen, defines)
    yield from found.items()


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize(("variant", "cases", "architecture"), list(compilations()))
def test_a_variant_compiles_without_warnings(compiler, tmp_path, variant, cases, architecture):
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(one_file(variant, cases))
    flags = [*nvcc.FLAGS, "-Werror", "all-warnings"]
    done = subprocess.run(
        [compiler, "-cubin", f"-arch={architecture}", *flags, kernel.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, nvcc.readable(done.stdout + done.stderr)
    assert done.stderr == ""


def one_file(variant, cases):
    """The variant for each case, one behind the other: nvcc reads CUDA's headers once for all.

    Each has a namespace and kernels of its own, and a label that names the case in messages.
    """
    pieces = []
    for number, (case_id, defines) in enumerate(cases.items()):
        loaded = source.load(variant.path, f"{variant.label}, {case_id}")
        text = nvcc.with_defines(loaded.text, {})
        system_includes = text.removesuffix(loaded.text)
        own = {**defines, **variant.defines, **{k: f"{k}_{number}" for k in loaded.kernels}}
        pieces += [
            system_includes,
            *(f"#define {name} {value}" for name, value in own.items()),
            f"namespace case_{number} {{",
            loaded.text,
            "}",
            *(f"#undef {name}" for name in [*own, *_DEFINED.findall(text)]),
        ]
    return "\n".join(pieces)
