"""tools/studies/sass.py: kernels and instructions in a listing of cuobjdump."""

from __future__ import annotations

import shutil

import pytest

from tools.studies import sass

LISTING = """
\t\tFunction : reduce_blocks
\t.headerflags\t@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;

        /*0010*/              @!P0 LOP3.LUT P1, RZ, R3, 0x3, RZ, 0xc0, !PT ;
        /*0020*/              @UP0 UMOV UR4, 0x400 ;
\t\t..........


\t\tFunction : clear
        /*0000*/                   EXIT ;
"""


def test_instructions_are_listed_by_kernel_without_predicates():
    assert dict(sass.parsed(LISTING)) == {
        "reduce_blocks": [
            "LDC R1, c[0x0][0x28]",
            "LOP3.LUT P1, RZ, R3, 0x3, RZ, 0xc0, !PT",
            "UMOV UR4, 0x400",
        ],
        "clear": ["EXIT"],
    }


@pytest.mark.skipif(not shutil.which("cuobjdump"), reason="needs cuobjdump")
@pytest.mark.parametrize("lab_variant", ["reduce/interleaved_modulo", "reduce/sequential"])
def test_the_tree_divides_nowhere(lab_variant):
    ((_, code),) = sass.instructions(sass.text_of(lab_variant)).items()
    opcodes = {line.split()[0].partition(".")[0] for line in code}
    assert not opcodes & {"MUFU", "I2F", "F2I", "CALL"}  # what a division is made of
    modulo = sum(line.startswith("LOP3") for line in code)
    assert (modulo == 8) == (lab_variant == "reduce/interleaved_modulo")
