"""`cudalab run --sanitize`: whatever is put around a user's access, the access is the user's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import cudalab

from cudalab.backends.cpu.compiler import toolchain
from cudalab.microscope import sanitize

pytestmark = pytest.mark.xdist_group("wrapped")  # one report for all

PROGRAM = Path(__file__).parents[1] / "programs" / "wrapped.cu"
WITH_GCC = "g++" in toolchain.find_compiler().name


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrapped") / "found.json"
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", path, PROGRAM)
    assert done.returncode == 3, done.stderr.decode()
    return json.loads(path.read_text())


def assert_each_bug_is_reported(program, report, unseen=()):
    """Each line marked `bug` has a finding of its kind, and no other line has one."""
    lines = program.read_text().splitlines()
    bugs = {
        n: None if n in unseen else re.search("// bug: ([^,]*)", line)
        for n, line in enumerate(lines, 1)
    }
    found = {}
    for row in report["findings"]:
        if not row["note"]:
            found.setdefault(row["line"], set()).add(row["kind"])
    kinds = {
        "past the end": {"out_of_bounds"},
        "misaligned": {"misaligned"} if WITH_GCC else {"misaligned", "out_of_bounds"},
        "race": {"race", "lost_update"},
        "uninitialised": {"uninitialised"},
        "freed": {"after_free"},
        "other values": {"same_word"},
        "zero": {"zero_division"},
        "skipped": {"barrier_divergence"},
    }
    assert set(found) == {n for n, bug in bugs.items() if bug}
    assert {n: bugs[n][1] for n in found if not found[n] <= kinds[bugs[n][1]]} == {}


def test_each_bug_is_reported_at_its_own_line_and_nothing_else(report):
    assert_each_bug_is_reported(PROGRAM, report)


def test_each_kind_of_memory_is_looked_at_however_it_is_reached(tmp_path):
    program, path = PROGRAM.with_name("memory.cu"), tmp_path / "found.json"
    cudalab("run", "--device", "cpu", "--sanitize", "--json", path, program)
    report, lines = json.loads(path.read_text()), program.read_text().splitlines()
    unseen = [] if WITH_GCC else [n for n, line in enumerate(lines, 1) if "by g++" in line]
    assert_each_bug_is_reported(program, report, unseen)
    if WITH_GCC:
        assert report["not_looked_at"] == []
    else:  # clang knows that these arrays may lie anywhere; how far ++ goes it does not check
        *anywhere, _ = unseen
        places = {f"{program}:{n}: {sanitize.WHOLE}" for n in anywhere}
        assert places <= set(report["not_looked_at"])
    what = {row["line"]: row["what"] for row in report["findings"]}
    far = next(n for n, line in enumerate(lines, 1) if "++;  // bug" in line)
    assert "index 16 of the array c[16]" in what[far] or "past the end of 'c'" in what[far]
    values = next(n for n, line in enumerate(lines, 1) if "bug: other values" in line)
    assert [row["note"] for row in report["findings"] if row["line"] == values] == [False]
    fields = next(n for n, line in enumerate(lines, 1) if "f->a" in line)
    assert "bit fields" in what[fields] or not WITH_GCC


LEAKS = """#include <cuda_runtime.h>
__global__ void fill(int* p) { p[threadIdx.x] = 1; }
int main(int argc, char**) {
    int* p;
    cudaMalloc(&p, 512);
    fill<<<1, argc > 1 ? 512 : 128>>>(p);
    cudaDeviceSynchronize();
    return 7;
}
"""


@pytest.mark.parametrize(
    ("options", "arguments", "status", "counted", "follows"),
    [((), (), 7, False, 0), (("--leaks",), (), 3, True, 0), (("--leaks",), ("far",), 3, False, 1)],
)
def test_a_leak_is_a_note_unless_it_counts_and_nothing_that_follows_counts(
    tmp_path, options, arguments, status, counted, follows
):
    program, path, found = tmp_path / "leaks.cu", tmp_path / "found.json", tmp_path / "found.sarif"
    program.write_text(LEAKS)
    words = ("run", "--device", "cpu", "--sanitize", *options, "--json", path, "--sarif", found)
    done = cudalab(*words, program, "--", *arguments)
    report = json.loads(path.read_text())
    assert (done.returncode, report["clean"]) == (status, status != 3)
    assert len(report["leaks"]) == 1
    assert (len(report["follows"]), report["ignored"]) == (follows, [])
    assert len(report["findings"]) == (1 if arguments else 0)
    assert (b"leaks: 1 found" in done.stderr) == (status == 3)
    levels = {r["ruleId"]: r["level"] for r in json.loads(found.read_text())["runs"][0]["results"]}
    assert levels["leak"] == ("error" if counted else "warning")


def test_the_accesses_of_all_lines_are_looked_at(report):
    lines = PROGRAM.read_text().splitlines()
    kernels = lines[: next(n for n, line in enumerate(lines) if "struct Memory" in line)]
    accesses = [
        line for line in kernels if "// bug" in line or re.search(r"^    \w+\[.*\] = ", line)
    ]
    last = "    if (threadIdx.x == 0) y[0] = sums[0];"
    assert report["lines_observed"] == len(accesses) + kernels.count(last)
    expected = {"make_uchar4": sanitize.OWN}  # the vector on its way
    if not WITH_GCC:
        expected["&behind"] = sanitize.WHOLE
    assert report["not_looked_at"] == [
        f"{PROGRAM}:{n}: {what}"
        for word, what in expected.items()
        for n, line in enumerate(lines, start=1)
        if word in line
    ]


UNHOOKED = """#include <cuda_runtime.h>
__attribute__((no_sanitize("thread"))) __device__ int peek(const int* p, int i) {
    int bias = 3;
    if (i < 0)
        return p[-i];
    return p[i] + bias;
}
__global__ void copies(const int* x, int* y) {
    y[threadIdx.x] = peek(x, threadIdx.x + 1);
}
int main() {
    int *x, *y;
    cudaMalloc(&x, 512);
    cudaMalloc(&y, 512);
    copies<<<1, 128>>>(x, y);
    cudaFree(x);
    cudaFree(y);
}
"""


def test_a_line_that_the_compiler_does_not_instrument_is_named(tmp_path):
    program, path = tmp_path / "unhooked.cu", tmp_path / "found.json"
    program.write_text(UNHOOKED)
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", path, program)
    report = json.loads(path.read_text())
    assert report["lines_observed"] == 1
    assert report["not_looked_at"] == [f"{program}:6: the compiler gives them no hook"]
    assert "accesses on 1 of 2 lines observed" in " ".join(done.stderr.decode().split())


HIDDEN = """#include <cuda_runtime.h>
#include "cpu/runtime/hidden.h"
__global__ void copies(const int* x, int* y) {
    int i = threadIdx.x;
    y[i] = i;
    y[i] = hidden(x + i);
}
int main() {
    int* x;
    cudaMalloc(&x, 512);
    cudaMemset(x, 0, 512);
    copies<<<1, 64>>>(x, x + 64);
    cudaDeviceSynchronize();
    cudaFree(x);
}
"""


def test_a_line_of_which_a_header_hides_one_access_is_named(tmp_path):
    program, path = tmp_path / "hides.cu", tmp_path / "found.json"
    header = tmp_path / "cpu" / "runtime" / "hidden.h"  # as the device's own headers are called
    header.parent.mkdir(parents=True)
    header.write_text("__device__ inline int hidden(const int* p) { return *p; }\n")
    program.write_text(HIDDEN)
    cudalab("run", "--device", "cpu", "--sanitize", "--json", path, program)
    report = json.loads(path.read_text())
    assert report["lines_observed"] == 1
    assert report["not_looked_at"] == [f"{program}:6: made in a header of cudalab"]
