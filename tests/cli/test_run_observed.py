"""`cudalab run --sanitize` and `--profile`."""

import contextlib
import itertools
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess

import pytest
from whole_programs import (
    HAS_LINES,
    IS_EMULATED,
    OWN,
    ROOT,
    SAMPLES,
    cudalab,
    natively,
    run,
    with_lines,
)

from cudalab.backends.cpu.compiler.toolchain import find_compiler

pytestmark = pytest.mark.xdist_group("run")  # whose worker compiles each program once


def test_findings_in_kernels_that_graphs_and_kernels_launch_name_their_lines():
    done = run("nested_mistakes.cu", "cpu", "--sanitize")
    text = " ".join(done.stderr.decode().split())
    assert done.returncode == 3
    assert "1. past_end<<<1, 32>>> at" in text
    assert "nested_mistakes.cu:23: access out of bounds" in text
    assert "3. lost_update<<<1, 32>>> at" in text
    assert "nested_mistakes.cu:11: lost update" in text


@pytest.mark.skipif(
    IS_EMULATED or platform.machine() != "x86_64", reason="only x86 stops at a division by zero"
)
def test_division_by_zero_is_noted_once_for_each_line():
    done = run("edges.cu", "cpu")
    first, second = done.stderr.decode().splitlines()
    assert "kernel quotients, block (0,0,0): integer division by zero" in first
    assert "kernel remainders" in second
    if HAS_LINES:
        assert ("edges.cu:176: " in first, "edges.cu:181: " in second) == (True, True)


def test_a_failed_assertion_of_the_host_names_the_program(tmp_path):
    file = tmp_path / "asserting.cu"
    file.write_text("#include <cassert>\nint main(int n, char**) { assert(n > 9); }\n", "utf-8")
    done = run([file], "cpu", "--sanitize")
    assert done.stderr.startswith(b"asserting: ")
    assert b"asserting.cu:2: int main(int, char" in done.stderr
    assert b"): Assertion" in done.stderr


def test_lanes_that_count_on_moving_in_step_are_noted():
    notes = run("lockstep.cu", "cpu").stderr.decode().splitlines()
    assert [int(note.split(":")[2]) for note in notes] == [10, 33, 41, 55, 62]
    assert "without __syncwarp()" in notes[0]


def test_threads_that_part_at_barriers_are_noted_once():
    done = run("partings.cu", "cpu")
    assert done.stdout.decode() == (OWN / "partings.txt").read_text(encoding="utf-8")
    notes = done.stderr.decode().splitlines()
    assert len(notes) == 6, notes
    assert "thread (0,0,0) waits at __syncthreads in " in notes[0]
    assert re.search(r"partings\.cu:11, thread \(16,0,0\) at another in .*:11: ", notes[0])
    assert "they pass as at one barrier" in notes[0]


def test_sanitize_finds_what_is_wrong():
    done = run("racy.cu", "auto", "--sanitize")
    report = " ".join(done.stderr.decode().split())  # however wide it is
    assert done.returncode == 3
    assert done.stdout == b"1\n"
    assert "racy: 4 found" in report  # three below and a failed launch
    assert " 3. access out of bounds" in report
    assert "observed: 5 launches of 2 kernels" in report
    assert "1-4. reverse<<<1, 64>>> at" in report  # launches that are alike
    assert "5. beyond<<<1, 128>>> at" in report
    assert "racy.cu:18: access out of bounds" in report
    assert "data race" in report
    assert "there is no __syncthreads() between the two" in report
    assert "data[t] = s[n - 1 - t];" in report
    assert "thread 64: write of 4 bytes at" in report
    assert "racy.cu:11, element 64: just past the end of" in report
    assert "racy.cu:19: the launch failed and the program never called" in report
    assert "racy.cu:16: 1000 bytes of device memory are never freed" in report


def test_a_kernel_s_failed_assertion_is_a_finding_and_the_host_s_ends_the_program():
    done = run("kernel_crashes.cu", "cpu", "--sanitize", arguments=["assert"])
    report = " ".join(done.stderr.decode().split())
    assert (done.returncode, done.stdout.split()) == (3, [b"cudaErrorAssert"] * 3)
    assert "thread 40 at" in report
    assert "kernel_crashes.cu:18: assertion `threadIdx.x < 40` failed at" in report
    done = run("kernel_crashes.cu", "cpu", "--sanitize", arguments=["host"])
    assert done.returncode == -signal.SIGABRT
    assert b"Assertion `argv[1][1] == '!'' failed." in done.stderr


@with_lines
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("host_reads_device", "host_reads_device.cu:16 dereferences the device pointer"),
        ("host_reads_variable", "host_reads_variable.cu:15 dereferences the device pointer"),
        ("host_frees_device", "host_frees_device.cu:9 dereferences the device pointer"),
        ("kernel_crashes", "kernel_crashes.cu:91 dereferences a null pointer"),
    ],
)
def test_a_crash_of_the_host_is_a_finding_with_its_line(program, words):
    done = run(f"{program}.cu", "cpu", "--sanitize", arguments=["wild"])
    report = " ".join(done.stderr.decode().split())
    assert done.returncode == 3
    assert words in report
    assert ": 1 found" in report
    assert "nothing behind this line was observed" in report.lower()


@with_lines
def test_a_profile_tells_of_a_crash_of_the_host_and_ends_as_the_program_does():
    done = run("host_reads_device.cu", "cpu", "--profile")
    assert done.returncode == -signal.SIGSEGV
    assert b"host_reads_device.cu:16: host code dereferences the device pointer" in done.stderr


def test_references_of_textures_work_with_a_note():
    done = run("references.cu", "cpu")
    assert done.stdout.decode().splitlines() == [
        *("0 0.0627451", "1 1.18824", "2 2.31373", "3 3.43922", "4 4.56471", "5 5.6902"),
        *("6 6.81569", "7 7.9098", "offset 0, cudaSuccess"),
    ]
    note = done.stderr.decode()
    assert not note or "references.cu:5: nvcc 12 and later refuse texture references" in note


def test_sanitize_sees_reads_through_a_texture():
    done = run("references.cu", "cpu", "--sanitize")
    report = done.stderr.decode()
    assert done.returncode == 3
    assert "references: 1 found" in report
    assert "thread 7 reads a buffer[8] in global memory" in report
    assert "out[threadIdx.x] = tex1Dfetch(samples, threadIdx.x + 1);" in report


@pytest.mark.parametrize(
    ("program", "case"),
    [
        ("scan_raii", "scan/tail.float32"),
        ("histogram_streams", "histogram/random.uint8"),
        ("radixsort_digits", "radixsort/course.uint32"),
    ],
)
def test_sanitize_finds_nothing_in_the_samples(program, case):
    with (ROOT / "samples" / f"{case}.in.bin").open("rb") as stdin:
        done = run(SAMPLES[program][0], "cpu", "--sanitize", stdin=stdin)
    assert done.returncode == 0
    assert done.stdout == (ROOT / "samples" / f"{case}.out.bin").read_bytes()
    assert ": clean" in done.stderr.decode()


def test_sanitize_finds_nothing_in_any_form_of_launch():
    done = run("forms.cu", "cpu", "--sanitize")
    assert done.stdout.decode() == (OWN / "forms.txt").read_text(encoding="utf-8")
    assert (done.returncode, b"forms: clean" in done.stderr) == (0, True)
    # Only where a lambda reads what it has captured, and at no launch over several lines.
    assert b"forms.cu:220)" in done.stderr


def test_a_function_that_must_be_inlined_need_not_say_inline(tmp_path):
    program = tmp_path / "inlined.cu"
    program.write_text(
        """#include <cstdio>
__device__ int five() __attribute__((always_inline));
__device__ int five() { return 5; }
__global__ void store(int* out) { *out = five(); }
int main() {
    int *out, host;
    cudaMalloc(&out, sizeof(int));
    store<<<1, 1>>>(out);
    cudaMemcpy(&host, out, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d\\n", host);
    cudaFree(out);
}
"""
    )
    done = cudalab("run", "--device", "cpu", "--sanitize", str(program))
    assert (done.returncode, done.stdout) == (0, b"5\n"), done.stderr.decode()
    assert b"accesses on 1 of 1 lines observed" in done.stderr


@pytest.mark.skipif("g++" not in find_compiler().name, reason="clang copies by memcpy")
def test_a_structure_that_may_not_be_aligned_is_listed():
    done = run("whole_structures.cu", "cpu", "--sanitize")
    report = " ".join(done.stderr.decode().split())
    assert done.returncode == 0
    assert "whole_structures.cu:10)" in report


GRID = ["120 120", "160 160", "120 120", "80 80"]


def test_blocks_pass_numbers_on(device_name):
    assert run("grid_races.cu", device_name).stdout.decode().splitlines() == GRID


@pytest.mark.parametrize("option", ["--sanitize", "--profile"])
def test_grids_that_wait_are_observed(option):
    done = run("grid_races.cu", "cpu", option)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == GRID
    if option == "--sanitize":
        assert b"grid_races: clean" in done.stderr
    else:
        assert b"4 of 4" in done.stderr


def test_a_race_between_blocks_of_a_grid_that_does_not_wait():
    done = run("grid_races.cu", "cpu", "--sanitize", arguments=["no"])
    assert done.returncode == 3
    assert "data race" in done.stderr.decode()
    assert "grid_races.cu:21" in done.stderr.decode()


def test_groups_and_grids_under_the_instrument():
    done = run("groups.cu", "cpu", "--sanitize")
    assert done.stdout.decode() == (OWN / "groups.txt").read_text(encoding="utf-8")


def test_a_grid_that_waits_in_vain_under_the_instrument():
    done = run("grid_broken.cu", "cpu", "--sanitize", arguments=["leaves"])
    report = " ".join(done.stderr.decode().split())
    assert done.returncode == 3
    assert done.stdout == b"cudaErrorLaunchFailure\ncudaSuccess, cudaSuccess\n"
    assert "3 of 4 blocks wait at grid.sync(), the others have ended" in report


def test_a_program_without_kernels_is_not_called_clean(tmp_path):
    path = tmp_path / "silent.cu"
    path.write_text("int main() { return 0; }\n")
    done = run([path], "cpu", "--sanitize")
    assert done.returncode == 0
    assert b"silent: no kernel was launched, so nothing was observed" in done.stderr


def test_a_library_that_is_missing_is_named(tmp_path):
    path = tmp_path / "links.cu"
    path.write_text("int main() { return 0; }\n")
    done = run([path], "cpu", "--sanitize", "-lno_such_library")
    assert done.returncode == 125
    assert b"error: no library no_such_library: neither" in done.stderr


def test_an_instrument_that_does_not_start_is_no_verdict(monkeypatch):
    from cudalab.errors import CudalabError  # noqa: PLC0415 - of this test alone
    from cudalab.program.observed import run as instrument  # noqa: PLC0415 - as above

    monkeypatch.setattr(instrument, "_Program", None)
    with pytest.raises(CudalabError, match="nothing was observed"):
        instrument.observe(None, ["program"], detect=True)


def test_profile_counts_by_launch_and_by_line():
    path = ROOT / "samples" / "transpose" / "course.float32.in.bin"
    done = run(SAMPLES["transpose_dynamic"][0], "cpu", "--profile", input=path.read_bytes())
    report = done.stderr.decode()
    assert done.returncode == 0
    assert done.stdout == path.with_name("course.float32.out.bin").read_bytes()
    assert "transpose_dynamic: 1 launch of 1 kernel" in report
    assert "never freed" not in report
    assert "bank conflicts: no" in report
    assert "to[(size_t)row * rows + column] = tile[" in report


CALLED = """__global__ void add(int* data, int n) {
    int i = threadIdx.x;
    if (i < n) data[i] += 1;
}
int main() {
    int* data;
    cudaMalloc(&data, 256);
    cudaMemset(data, 0, 256);
    void (*function)(int*, int) = add;
    add<<<1, 64>>>(data, 40);
    CALL
    int first;
    cudaMemcpy(&first, data, 4, cudaMemcpyDeviceToHost);
    cudaFree(data);
}
"""


@pytest.mark.parametrize(("call", "status"), [("", 0), ("function(data, 5);", 3)])
def test_a_kernel_that_is_called_as_a_function_does_not_run(call, status, tmp_path):
    file, report = tmp_path / "called.cu", tmp_path / "report.json"
    file.write_text(CALLED.replace("CALL", call), encoding="utf-8")
    done = cudalab("run", "--sanitize", "--json", str(report), str(file))
    document = json.loads(report.read_text("utf-8"))
    assert (done.returncode, document["findings"], document["launches"]) == (status, [], 1)
    assert len(document["ignored"]) == bool(call)
    assert all("add was called as a function" in text for text in document["ignored"])
    done = cudalab("run", "--profile", str(file))
    assert b"branches: 1 a warp, 50 % split" in done.stdout + done.stderr


def test_sanitize_changes_nothing_of_what_headers_read():
    done = run("textures.cu", "cpu", "--sanitize", "--kill-after", "20")
    assert (done.returncode, done.stdout) == (0, (OWN / "textures.txt").read_bytes())


MASKS = """__global__ void half(int* data) {
    if (threadIdx.x <= 16) {
        unsigned mask = (1u << threadIdx.x) - (threadIdx.x == 16);
        __syncwarp(mask);
    }
    __syncthreads();
    data[threadIdx.x] = 1;
}
int main() {
    int* data;
    cudaMalloc(&data, 128);
    half<<<1, 32>>>(data);
    return cudaDeviceSynchronize() == cudaSuccess;
}
"""


def test_lanes_that_wait_for_each_other_because_of_their_masks_are_one_finding(tmp_path):
    file, report = tmp_path / "masks.cu", tmp_path / "report.json"
    file.write_text(MASKS, encoding="utf-8")
    done = cudalab("run", "--sanitize", "--json", str(report), str(file))
    document = json.loads(report.read_text("utf-8"))
    assert (done.returncode, {each["kind"] for each in document["findings"]}) == (3, {"wrong_mask"})
    assert ["deadlock" in text for text in document["follows"]] == [True]


def test_profile_tells_what_the_program_lets_pass():
    report = " ".join(run("racy.cu", "cpu", "--profile").stderr.decode().split())
    assert "racy: 5 launches of 2 kernels" in report
    assert "1-4 │ reverse" in report  # launches that are alike
    assert "1000 bytes of device memory are never freed" in report
    assert "racy.cu:19: the launch failed and the program never called" in report


KINDS_OF_STREAMS = ("file", "pipe", "terminal", "nowhere")


@contextlib.contextmanager
def stream_of(kind, path):
    """A descriptor of such a stream, and a function that returns what was written; once."""
    if kind == "nowhere":
        reading, writing = None, os.open(os.devnull, os.O_WRONLY)
    elif kind == "file":
        reading = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        writing = os.open(path, os.O_WRONLY)
    else:
        reading, writing = os.pipe() if kind == "pipe" else os.openpty()

    def read():
        if reading is None:
            return None
        if kind == "pipe":
            os.close(writing)
        text = b""
        while kind != "terminal" or select.select([reading], [], [], 0)[0]:
            part = os.read(reading, 65536)
            text += part
            if not part:
                break
        return text.decode().replace("\r\n", "\n")

    try:
        yield writing, read
    finally:
        for each in (reading, writing):
            with contextlib.suppress(TypeError, OSError):
                os.close(each)


@natively
@pytest.mark.parametrize(
    ("option", "pairs"),
    [
        ("--sanitize", tuple(itertools.product(KINDS_OF_STREAMS, repeat=2))),
        ("--profile", (("file", "pipe"), ("pipe", "terminal"), ("nowhere", "pipe"))),
    ],
)
def test_the_report_arrives_wherever_the_streams_lead(option, pairs, tmp_path):
    for out, err in pairs:
        with stream_of(out, tmp_path / "out") as stdout, stream_of(err, tmp_path / "err") as stderr:
            done = run("racy.cu", "cpu", option, stdout=stdout[0], stderr=stderr[0])
            said, report = stdout[1](), stderr[1]()
        assert done.returncode == (3 if option == "--sanitize" else 0), (out, err, report)
        assert said in (None, "1\n"), (out, err)
        assert report is None or "5 launches of 2 kernels" in report, (out, err, report)


def test_status_of_an_observed_program_is_its_own():
    done = run("kernel_reads_host.cu", "cpu", "--sanitize")
    assert done.returncode == 3
    assert b"points to host memory" in done.stderr


LINKS_STATICALLY = """#!/bin/sh
case " $* " in *" -shared "*) exec g++ "$@" -static-libstdc++ ;; *) exec g++ "$@" ;; esac
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ links its library statically here")
def test_a_library_that_is_linked_in_stays_apart_from_that_of_python(tmp_path):
    compiler, source = tmp_path / "compiler", tmp_path / "prints.cu"
    compiler.write_text(LINKS_STATICALLY)
    compiler.chmod(0o755)
    source.write_text("#include <iostream>\nint main() { std::cout << 1.5 << std::endl; }\n")
    variables = {**os.environ, "CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path)}
    variables["CUDALAB_CXXFLAGS"] = "-O0"  # for the runtime, which this compiler has not made yet
    done = cudalab("run", "--device", "cpu", "--sanitize", source, env=variables)
    assert (done.returncode, done.stdout) == (0, b"1.5\n"), done.stderr.decode()
    (library,) = tmp_path.glob("cudalab/cpu/prints-check-*.so")
    assert b"std::cout" in symbols_of(library, "--defined-only")  # so it was linked in
    assert b"std::cout" not in symbols_of(library, "--dynamic", "--defined-only")


def symbols_of(library, *options):
    command = ["nm", "--demangle", *options, library]
    return subprocess.run(command, capture_output=True, check=True).stdout
