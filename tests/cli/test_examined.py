"""Whole programs under an instrument: long launches, waits, early returns, stray pointers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import cudalab

from cudalab.backends.cpu.assembly.listing import Counts, Listing
from cudalab.backends.cpu.layout import IS_HEADER
from cudalab.program.observed import report as reports
from cudalab.program.observed.run import Launch, Observed

pytestmark = pytest.mark.xdist_group("examined")  # one report for all

PROGRAMS = Path(__file__).parents[1] / "programs"
PROGRAM = PROGRAMS / "examined.cu"


@pytest.fixture(scope="module")
def report():
    command = ("run", "--device", "cpu", "--sanitize", "--kill-after", "0.5", str(PROGRAM))
    done = cudalab(*command)
    assert done.returncode == 3, done.stderr.decode()
    assert done.stdout == b"42\n"
    return " ".join(done.stderr.decode().split())


def line_of(mark):
    lines = PROGRAM.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if f"@{mark}" in line)


def test_a_long_launch_says_how_far_it_was_examined(report):
    match = re.search(r"takes_long<<<64, 64>>> at \S+: (\d+) of 64 blocks", report)
    assert match
    assert 0 < int(match[1]) < 64
    assert "--kill-after SECONDS examines for longer" in report
    assert "does not end" not in report


def test_launches_that_are_alike_share_a_line():
    launches = [("a.cu:3", 3), ("a.cu:3", 9), ("a.cu:4", 5), ("a.cu:5", None)]
    seen = Observed()
    for place, blocks in launches:
        seen.launches.append(Launch("k", (64, 1, 1), (32, 1, 1), place, examined=blocks))
    assert reports._partly_examined(seen) == [
        "k<<<64, 32>>> at a.cu:3: 3 to 9 of 64 blocks, 2 launches",
        "k<<<64, 32>>> at a.cu:4: 5 of 64 blocks",
    ]


def test_another_buffer_than_the_pointer_came_from(report):
    assert "examined: 2 found" in report  # this, and the null pointer
    assert f"{PROGRAM.name}:{line_of('strays')}, in memory that no argument of the launch" in report


def test_a_null_pointer_leads_to_no_buffer(report):
    place = rf"write of 4 bytes at \S*{PROGRAM.name}:{line_of('strays')}"
    assert re.search(f"{place}, through a null pointer\\.", report)


def test_memory_that_a_kernel_allocates_is_its_own(report):
    assert f"{PROGRAM.name}:{line_of('allocates')}" not in report


def test_a_forked_child_has_no_device(report):
    assert (
        f"{PROGRAM.name}:{line_of('forks')}: cudaErrorInitializationError: a forked process"
        in report
    )


def test_a_return_before_a_barrier_is_a_note_at_its_line(report):
    assert "note: threads that returned before a barrier" in report
    assert re.search(rf"last seen at \S*{PROGRAM.name}:{line_of('returns')}\.", report)


def test_only_the_sanitizer_takes_kill_after():
    refused = cudalab("run", "--kill-after", "1", str(PROGRAM))
    assert refused.returncode == 125
    assert b"--kill-after needs --sanitize" in refused.stderr
    assert refused.stdout == b""


def test_calls_in_our_headers_are_known_by_either_compilers_names():
    """By clang's, whose folder stands apart, as by g++'s."""
    folder = "/here/cudalab/backends/cpu/runtime/include/cudalab"
    files = [f'"{folder}" "launch.h"', f'"{folder}/launch.h"', '"/here" "program.cu"']
    listing = Listing({"program.cu"}, Counts())
    for number, name in enumerate(files, 1):
        for row in (f"\t.file\t{number} {name}", f"\t.loc\t{number} 9 0", "\tcall\tf"):
            listing.read(row)
    assert [bool(site.flags & IS_HEADER) for site in listing.sites] == [True, True, False]


@pytest.mark.parametrize("words", [("--profile",), ("--sanitize", "--kill-after", "0.02")])
def test_blocks_that_nobody_looks_at_compute_the_same(words):
    done = cudalab("run", "--device", "cpu", *words, PROGRAMS / "aggregates.cu")
    said = done.stderr.decode()
    assert "64 of 500" in said if words == ("--profile",) else "of 500 blocks" in said
    assert (done.returncode, done.stdout) == (0, (PROGRAMS / "aggregates.txt").read_bytes())


WAITS_FOR_THE_HOST = """#include <cstdio>
__global__ void waits(volatile int* flag) {
    while (!*flag) {
    }
}
int main() {
    int* flag;
    cudaMallocHost(&flag, sizeof(int));
    *flag = 0;
    waits<<<1, 1>>>(flag);
    *(volatile int*)flag = 1;
    std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
    cudaFreeHost(flag);
}
"""


def test_a_counted_kernel_that_waits_for_the_host_ends(tmp_path):
    (tmp_path / "waits.cu").write_text(WAITS_FOR_THE_HOST)
    code = (
        "from cudalab.cli.app import main; from cudalab.program.observed import run; import sys; "
        "run.KILL_AFTER_S = 0.2; main()"
    )
    words = [sys.executable, "-c", code, "run", "--device", "cpu", "--profile", "waits.cu"]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.stdout == b"cudaErrorLaunchFailure\n"
    said = " ".join(done.stderr.decode().split())
    assert "did not end in time; while an instrument looks, a launch ends before the host" in said
