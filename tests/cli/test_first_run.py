"""The first run on a machine without a compiler: what zig compiles for it, and what it must not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cudalab.backends.cpu.compiler.flags import for_runtime
from cudalab.backends.cpu.compiler.toolchain import environment
from cudalab.program import runtime

pytest.importorskip("ziglang", reason="the compiler of machines without one is an extra")

pytestmark = pytest.mark.xdist_group("first_run")  # zig compiles once for all

REPOSITORY = Path(__file__).parents[2]
SAMPLES = REPOSITORY / "samples"

# A half, and a division of 128 bits: processors lack both, so the compiler calls functions.
ARITHMETIC = """
#include <cstdio>
#include <stdexcept>
#include <vector>
__global__ void compute(double* numbers, unsigned long long* words) {
    numbers[0] = 2 * (double)(_Float16)numbers[0];
    words[2] = (unsigned long long)((((unsigned __int128)words[0] << 64) | words[1]) / words[2]);
}
int main() {
    std::vector<double> numbers(1, 1.0009);
    std::vector<unsigned long long> words = {5, 7, 11};
    double* x;
    unsigned long long* n;
    cudaMalloc(&x, sizeof(double));
    cudaMalloc(&n, 3 * sizeof *n);
    cudaMemcpy(x, numbers.data(), sizeof *x, cudaMemcpyHostToDevice);
    cudaMemcpy(n, words.data(), 3 * sizeof *n, cudaMemcpyHostToDevice);
    compute<<<1, 1>>>(x, n);
    cudaMemcpy(numbers.data(), x, sizeof *x, cudaMemcpyDeviceToHost);
    cudaMemcpy(words.data(), n, 3 * sizeof *n, cudaMemcpyDeviceToHost);
    try {
        words.at(3) = 0;
    } catch (const std::out_of_range&) {
        std::printf("%.10f %llu\\n", numbers[0], words[2]);
    }
}
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The environment of a machine without a compiler, and with empty caches."""
    home = tmp_path_factory.mktemp("home")
    ours = ("ZIG_", "CUDALAB_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PATH": "", "CXX": "", "HOME": str(home), "XDG_CACHE_HOME": str(home)}


def run(bare, *words, stdin=os.devnull):
    with open(stdin, "rb") as file:  # noqa: PTH123 - os.devnull, too
        done = subprocess.run(
            [sys.executable, "-m", "cudalab", *map(str, words)],
            stdin=file, capture_output=True, env=bare, cwd=REPOSITORY, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", ["radixsort", "run samples/programs/radixsort_report.cu"])
def test_a_first_run_is_right(bare, words):
    lab = SAMPLES / "radixsort"
    answer = run(bare, *words.split(), stdin=lab / "course.uint32.in.bin")
    assert answer == (lab / "course.uint32.out.bin").read_bytes()


def test_what_a_processor_lacks_comes_from_the_machines_libraries(bare, tmp_path):
    program = tmp_path / "arithmetic.cu"
    program.write_text(ARITHMETIC, encoding="utf-8")
    assert run(bare, "run", program) == b"2.0019531250 8384883669867978007\n"


def test_zig_has_compiled_no_library(bare):
    """Its C++ library takes a minute of processor time, its arithmetic and checks 20 seconds."""
    archives = {path.name for path in Path(bare["HOME"]).rglob("*.a")}
    assert archives <= {"libc_nonshared.a"}


@pytest.mark.parametrize("part", [*runtime.OF_OBSERVED, *runtime.OF_CHECK])
def test_clang_reads_what_an_observed_program_has(part, tmp_path):
    """The parts that no other first run compiles: linking them would take zig's minute."""
    zig = Path(find_spec("ziglang").origin).with_name("zig")
    flags = [*runtime.flags_of(part), *for_runtime(), "-O0", "-o", tmp_path / "part.o"]
    command = [zig, "c++", *flags, "-c", runtime.sources()[part]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
