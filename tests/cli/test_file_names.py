"""Instruments see kernels in files of any name: compilers' listings escape bytes beyond ASCII."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command import cudalab

from cudalab.language.quoted import unquoted

KERNEL = Path(__file__).parents[2] / "kernels" / "reduce" / "sequential.cu"
NAMES = ["лаба 1.cu", 'a"b.cu', r"a\b.cu"]
PROGRAM = """
__global__ void shifts(int* p) {
    p[threadIdx.x + 1] = 1;
}
int main() {
    int* p;
    cudaMalloc(&p, 32 * sizeof *p);
    shifts<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    cudaFree(p);
}
"""


def test_names_in_listings_have_escapes():
    assert unquoted(r"/home/\320\273\320\260.cu") == "/home/ла.cu"
    assert unquoted(r"a\"b\\c.cu") == r'a"b\c.cu'
    assert unquoted("a b.cu") == "a b.cu"


@pytest.mark.parametrize("name", NAMES)
def test_programs(tmp_path, name):
    (tmp_path / name).write_text(PROGRAM)
    words = ("run", "--device", "cpu", "--sanitize", str(tmp_path / name))
    done = cudalab(*words)
    said = done.stderr.decode()
    assert done.returncode == 3, said
    assert f"{name}:3, element 32: just past the end of 'p'" in " ".join(said.split())
    assert "on 1 of 1 lines observed" in " ".join(said.split())


@pytest.mark.parametrize("name", NAMES[:1])
def test_kernels_of_labs(tmp_path, name):
    shutil.copy(KERNEL, tmp_path / name)
    done = cudalab("sanitize", "reduce", "--kernel", str(tmp_path / name), "--n", "3000")
    assert done.returncode == 0, done.stdout.decode()
    assert b"never written" not in done.stdout
