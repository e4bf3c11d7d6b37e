"""Calls of the API that failed, and that nobody looked at: `cudalab run --sanitize`, and plain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import cudalab

pytestmark = pytest.mark.xdist_group("unchecked")  # one build for all

PROGRAM = Path(__file__).parents[1] / "programs" / "unchecked.cu"


def report(part, status, tmp_path):
    path = tmp_path / "found.json"
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", path, PROGRAM, "--", part)
    assert done.returncode == status, done.stderr.decode()
    return json.loads(path.read_text())


def marked(words):
    lines = PROGRAM.read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if f"// {words}" in line]


def places(texts):
    return [int(text.removeprefix(f"{PROGRAM}:").partition(":")[0]) for text in texts]


def test_each_failure_that_nobody_looks_at_is_found_once(tmp_path):
    found = report("0", 3, tmp_path)
    assert places(found["ignored"]) == marked("thrown away")
    assert (found["findings"], found["follows"], found["clean"]) == ([], [], False)


def test_a_program_that_looks_at_its_failures_is_clean(tmp_path):
    found = report("1", 0, tmp_path)
    assert (found["ignored"], found["clean"]) == ([], True)


def test_what_is_done_with_memory_that_was_never_made_follows_from_that(tmp_path):
    found = report("2", 3, tmp_path)
    assert places(found["ignored"]) == marked("never made")
    assert found["findings"] == []
    filled = marked("never made")[0] + 1
    assert places(found["follows"]) == [filled, *marked("through null"), filled + 1]
    assert found["follows"][1].endswith(", through a null pointer.")


NOTE = "cudalab: unchecked.cu:{}: {} failed and the program does not look at its result: {}"


def run(part):
    """The notes of an ordinary run."""
    done = cudalab("run", "--device", "cpu", PROGRAM.name, "--", part, cwd=PROGRAM.parent)
    assert done.returncode != 125
    return done.stderr.decode().splitlines()


def test_an_ordinary_run_tells_of_the_first_such_call():
    first, *_, launch = marked("thrown away")
    of_launch, of_call = run("0")
    assert of_launch.startswith(f"cudalab: unchecked.cu:{launch}: the launch failed and the")
    assert of_call.startswith(NOTE.format(first, "cudaMemcpy", "cudaErrorInvalidValue"))
    assert run("1") == []
    never_made = NOTE.format(*marked("never made"), "cudaMalloc", "cudaErrorMemoryAllocation")
    assert any(note.startswith(never_made) for note in run("2"))


FORMS = """#include <cstdio>
#define FREE(p) cudaFree(p)
template <class T>
void copy(T* a, T* b, bool is_first) {
    switch (is_first) {
        case true: cudaMemcpy(a, b, sizeof(T), cudaMemcpyHostToHost);  // thrown away
    }
}
int main(int count, char**) {
    int *device, host = 0;
    cudaMalloc(&device, 4), cudaMemset(device, 0, 4);
    cudaError_t read = count ? cudaSuccess : cudaFree(&host);
    read = count < 0 ? cudaSuccess : cudaFree(&host);
    FREE(&host);
    [&] { return cudaFree(&host); }();
    copy(device, &host, read == cudaErrorInvalidValue);
    FREE(device);
}
"""


def test_what_is_a_statement_by_itself(tmp_path):
    (tmp_path / "forms.cu").write_text(FORMS, encoding="utf-8")
    done = cudalab("run", "--device", "cpu", "forms.cu", cwd=tmp_path)
    said = done.stderr.decode().splitlines()
    assert len(said) == 1
    assert said[0].startswith("cudalab: forms.cu:6: cudaMemcpy failed and the program")


BIG = """
#include <cstdio>
__global__ void k(unsigned *out) {
    __shared__ unsigned a[16384];
    a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = a[31 - threadIdx.x];
}
int main() {
    unsigned *out;
    cudaMalloc(&out, 128);
    k<<<1, 32>>>(out);
    cudaFuncAttributes of_k;
    cudaFuncGetAttributes(&of_k, k);
    printf("%s, %zu\\n", cudaGetErrorString(cudaGetLastError()), of_k.sharedSizeBytes);
    cudaFree(out);
}
"""


def test_more_static_shared_memory_than_nvcc_allows_fails_under_the_sanitizer_too(tmp_path):
    program = tmp_path / "big.cu"
    program.write_text(BIG)
    for more in ([], ["--sanitize"]):
        done = cudalab("run", "--device", "cpu", *more, program)
        assert done.stdout.decode() == "invalid argument, 65536\n"


IN_C = r"""
#include "size.h"
#include <cuda_runtime.h>
#include <stdio.h>
void fill(int* a, int n);
int main(void) {
    int *a, n = SIZE, host[SIZE] = {0};
    void* arguments[2] = {&a, &n};
    dim3 grid = {1, 1, 1}, block = {SIZE, 1, 1};
    struct cudaFuncAttributes of_fill;
    cudaMalloc((void**)&a, sizeof host);
    printf("%d ", cudaLaunchKernel((const void*)fill, grid, block, arguments, 0, 0));
    cudaMemcpy(host, a, sizeof host, cudaMemcpyHostToDevice);
    if (cudaMemcpy(host, host, 1, cudaMemcpyHostToDevice) != cudaSuccess) host[0] = 1;
    cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost);
    cudaFuncGetAttributes(&of_fill, (const void*)fill);
    printf("%d %d %d", host[0], host[3], of_fill.maxThreadsPerBlock);
    return 0;
}
"""


def test_a_file_of_c_launches_kernels_and_is_told_what_it_does_not_look_at(tmp_path):
    (tmp_path / "main.c").write_text(IN_C)
    (tmp_path / "size.h").write_text("#define SIZE 4\n")
    kernel = 'extern "C" __global__ void fill(int* a, int n) { a[threadIdx.x] = n; }\n'
    (tmp_path / "fill.cu").write_text(kernel)
    done = cudalab("run", "--device", "cpu", "main.c", "fill.cu", cwd=tmp_path)
    (told,) = done.stderr.decode().splitlines()
    assert done.stdout == b"0 4 4 1024"
    assert told.startswith("cudalab: main.c:13: cudaMemcpy failed and the program does not look")
