"""Which accesses nvcc makes in local memory, and what a profile says of the others."""

import json
from pathlib import Path

import pytest
from command import cudalab

from cudalab.backends.cuda import nvcc
from cudalab.backends.trace import Place
from cudalab.errors import NoDeviceError
from cudalab.microscope.local_arrays import note
from cudalab.microscope.profile import VariantProfile
from cudalab.predict import kept, local_memory

LABEL = "own/ranks.cu"
PTX = """
.func (.param .b32 func_retval0) _Z7largestPKii(
    .param .b64 _Z7largestPKii_param_0
)
{
    .loc 1 3 5
    ld.param.u64 %rd1, [_Z7largestPKii_param_0];
    ld.u32 %r1, [%rd2];
}
.visible .entry kept(
{
    .local .align 16 .b8 __local_depot0[32];
    .loc 1 8 5
    st.local.u32 [%rd2], %r1;
}
.visible .entry ranks(
{
    .loc 1 11 5
    @%p1 st.local.v4.u32 [%rd2], {%r48, %r48, %r48, %r48};
    .loc 1 12 5
    ld.global.u32 %r21, [%rd7];
    st.shared.u32 [%rd7], %r21;
    .loc 2 99 5, function_name $L__info_string0, inlined_at 1 13 5
    ld.volatile.local.u32 %r22, [%rd9];
}
    .file 1 "/home/a/own/ranks.cu"
    .file 2 "/usr/include/cuda/some.h"
"""
LOG = """
ptxas info : Compiling entry function 'ranks' for 'sm_90'
ptxas info : Function properties for ranks
    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info : Function properties for kept
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
PROGRAM = """
#include <cstdio>
__global__ void ranks(const int* in, int* out) {
    int far[64], near[4];
    for (int k = 0; k < 64; ++k) far[k] = k;
    for (int k = 0; k < 4; ++k) near[k] = in[k];
    far[in[threadIdx.x]] += 1;
    out[threadIdx.x] = far[in[31 - threadIdx.x]];
    for (int k = 0; k < 4; ++k) out[threadIdx.x] += near[k];
    int* p = near;
    if (in[0] == 7) out[0] = p[2];
}
int main() {
    int *in, *out;
    cudaMallocManaged(&in, 128);
    cudaMallocManaged(&out, 128);
    for (int i = 0; i < 32; ++i) in[i] = i;
    ranks<<<1, 32>>>(in, out);
    cudaDeviceSynchronize();
    printf("%d\\n", out[3]);
    cudaFree(in);
    cudaFree(out);
}
"""


def test_lines_with_accesses_to_local_memory_are_read_from_ptx():
    found = set(local_memory.in_listing(PTX, LOG, {1: LABEL}))
    # The function without a kernel may get any array; what is in registers has no stack.
    assert found == {(LABEL, 3, "load"), (LABEL, 11, "store"), (LABEL, 13, "load")}
    assert set(local_memory.in_listing(PTX, "", {1: LABEL})) == set()


def test_a_function_that_spills_is_named_by_its_first_line():
    log = """
ptxas info : Function properties for ranks
    256 bytes stack frame, 12 bytes spill stores, 0 bytes spill loads
ptxas info : Function properties for kept
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info : Function properties for _Z7largestPKii
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""
    found = set(local_memory.in_listing(PTX, log, {1: LABEL}))
    spills = {access for access in found if access[2] == "spill"}
    assert spills == {(LABEL, 3, "spill"), (LABEL, 11, "spill")}
    assert not {each for each in local_memory.in_listing(PTX, LOG, {1: LABEL}) if "spill" in each}


def test_nvcc_compiles_a_program_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(nvcc, "find_nvcc", lambda _: Path("nvcc"))
    monkeypatch.setattr(nvcc, "release", lambda _: None)
    monkeypatch.setattr(kept, "cache_dir", lambda _: tmp_path)
    monkeypatch.setattr(local_memory, "_listing", lambda words: asked.append(words) or (PTX, LOG))

    def accesses(text, *options):
        return local_memory.of_program(["a.cu"], {LABEL: text}, options)

    first = accesses("int x;")
    assert (LABEL, 3, "load") in first
    assert accesses("int x;") == first
    assert len(asked) == 1
    accesses("int x;", "-DN=3")
    accesses("int y;")
    assert len(asked) == 3


def test_a_profile_says_where_local_arrays_are():
    text = (
        "__global__ void f() {\n    int own[8];\n    own[1] = 2;\n    x.y = own[3];\n    p = &q;\n}"
    )
    variant = VariantProfile(name="mine", summary="", label="a.cu", texts={"a.cu": text})
    used = [Place("a.cu", line) for line in (3, 4, 5)]

    def said(accesses, by_gcc=True):
        return note(variant, used, accesses, by_gcc=by_gcc)

    assert "not counted (lines 3, 4): nvcc decides" in said(None)
    assert "in registers, or leaves them out (lines 3, 4)" in said(frozenset())
    assert "(lines 4)" in said({("a.cu", 3, "store")})
    assert said({("a.cu", line, "load") for line in (3, 4)}) == ""
    assert "it takes g++" in said({("a.cu", 3, "store")}, by_gcc=False)
    spilling = said({("a.cu", 2, "spill")}, by_gcc=False)
    assert "(lines 3, 4); nvcc has too few registers" in spilling
    assert "functions that begin at lines 2" in spilling


def test_a_program_s_profile_counts_what_nvcc_has_in_local_memory(tmp_path):
    try:
        nvcc.find_nvcc(local_memory.ARCH)
    except NoDeviceError as error:
        pytest.skip(str(error))
    (tmp_path / "ranks.cu").write_text(PROGRAM)
    done = cudalab("run", "--device", "cpu", "--profile", "--json", "-", str(tmp_path / "ranks.cu"))
    document = json.loads(done.stdout)
    rows = {
        (row["line"], row["access"]): (row["requests"], row["sectors"])
        for row in document["accesses"]
        if row["space"] == "local"
    }
    assert rows == {
        (5, "store"): (64, 256),
        (7, "load"): (1, 32),
        (7, "store"): (1, 32),
        (8, "load"): (1, 32),
    }
    assert "keeps local arrays in registers" in document["notes"][0]
    (kernel,) = document["kernels"]
    assert (kernel["local_store_requests"], kernel["local_load_sectors"]) == (65, 64)
