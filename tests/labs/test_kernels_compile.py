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


def compilations():
    """Lab, variant, what the case defines, and the architecture."""
    for name in labs.names():
        lab = labs.get(name)
        for variant in registry.variants(lab):
            required = variant.architecture
            for number, (case_id, defines) in enumerate(distinct_defines(lab, variant)):
                targets = [required if capability(required) >= 90 else ARCHITECTURE]
                if number == 0:
                    targets += [
                        target for target in ALSO if capability(required) <= capability(target)
                    ]
                for target in targets:
                    yield pytest.param(
                        variant,
                        {**defines, **variant.defines},
                        target,
                        id=f"{name}-{variant.name}-{case_id}-{target}",
                    )


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


@pytest.mark.parametrize(("variant", "defines", "architecture"), list(compilations()))
def test_a_variant_compiles_without_warnings(compiler, tmp_path, variant, defines, architecture):
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(nvcc.with_defines(source.load(variant.path, variant.label).text, defines))
    flags = [*nvcc.FLAGS, *nvcc.include_flags(compiler), "-Werror", "all-warnings"]
    done = subprocess.run(
        [compiler, "-cubin", f"-arch={architecture}", *flags, kernel.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, nvcc.readable(done.stdout + done.stderr)
    assert done.stderr == ""
