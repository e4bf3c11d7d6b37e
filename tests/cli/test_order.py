"""`cudalab run --sanitize` on the order of streams, copies and host code."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import command
import pytest

from cudalab.program.files import File
from cudalab.program.observed import build

PROGRAMS = Path(__file__).parents[1] / "programs"
IS_EMULATED = "CUDALAB_EMULATOR" in os.environ
pytestmark = pytest.mark.skipif(IS_EMULATED, reason="Python loads the instrumented program")


def sanitize(program, *options, text=None, folder=None, arguments=()):
    path = PROGRAMS / f"{program}.cu"
    if text is not None:
        path = folder / f"{program}.cu"
        path.write_text(text)
    words = ("run", "--device", "cpu", "--sanitize", *options, path, "--", *arguments)
    done = command.cudalab(*words, text=True)
    return done.returncode, done.stderr


def pairs(path):
    """The lines that each finding names, with what kind it is."""
    (run,) = json.loads(path.read_text())["runs"]
    return {
        (
            result["ruleId"],
            result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in run["results"]
    }


def test_all_that_nothing_orders_is_found_and_named(tmp_path):
    status, report = sanitize("unordered", "--sarif", tmp_path / "found.sarif")
    cases = {}
    for number, line in enumerate((PROGRAMS / "unordered.cu").read_text().splitlines(), 1):
        if mark := re.search(r"// case (\d+)", line):
            cases.setdefault(int(mark[1]), []).append(number)
    kinds = dict.fromkeys(cases, "stream_race") | dict.fromkeys(range(1, 7), "host_race")
    kinds |= {14: "copy_under_way", 15: "used_too_early", 16: "freed_in_use"}
    kinds |= dict.fromkeys((18, 19, 20), "host_race")
    assert pairs(tmp_path / "found.sarif") == {
        (kinds[case], earlier, later) for case, (earlier, later) in cases.items()
    }
    assert status == 3
    assert "unordered: 4 found" in report
    report = " ".join(report.split())
    assert "Kernel fill, launched at line 26 in the default stream, writes byte 20" in report
    reads = r"at line 11; the host reads it at \S*unordered\.cu:27\. Nothing makes the host wait\."
    assert re.search(reads, report)
    assert report.count("unordered.cu:") > 1 == report.count("/unordered.cu:")  # the path, once
    assert "5. note: copy that may still be under way" in report


def test_work_that_is_ordered_is_clean():
    status, report = sanitize("ordered")
    assert (status, "ordered: clean" in report) == (0, True), report
    assert "Looked at: the accesses of the kernels; the order of kernels, copies" in report


WOKEN = """
#include <cstdio>
#include <thread>
__global__ void fill(int* to) { *to = 5; }
void read(void* from) {
    std::thread([=] { printf("%d\\n", *(int*)from); }).join();
}
int main() {
    int *pinned, *device;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMallocHost(&pinned, sizeof(int));
    cudaMalloc(&device, sizeof(int));
    fill<<<1, 1, 0, stream>>>(device);
    cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaLaunchHostFunc(stream, read, pinned);
    cudaStreamSynchronize(stream);
    cudaFree(device), cudaFreeHost(pinned), cudaStreamDestroy(stream);
}
"""


def test_a_thread_that_a_function_of_the_host_wakes_comes_after_its_stream(tmp_path):
    status, report = sanitize("woken", text=WOKEN, folder=tmp_path)
    assert (status, "woken: clean" in report) == (0, True), report


ON_HOST = """
#include <thrust/sort.h>
#include <thrust/pair.h>
__global__ void nothing() {}
int main() { nothing<<<1, 1>>>(); return cub::DeviceScan(); }
"""


def test_libraries_that_are_not_looked_at_are_named():
    def names(text):
        file = File("x.cu", "x.cu", text)
        return build.unobserved([file], [])

    assert "Thrust's algorithms" in names(ON_HOST)
    assert "CUB's algorithms for whole devices" in names(ON_HOST)
    assert len(names("#include <thrust/complex.h>")) == 1


WAITS = """
#include <cstdio>
#include <unistd.h>
__global__ void nothing() {}
int main() {
    nothing<<<1, 1>>>();
    puts("waits");
    fflush(stdout);
    pause();
}
"""


def test_a_program_that_is_ended_has_a_report(tmp_path):
    (tmp_path / "waits.cu").write_text(WAITS)
    words = ("-m", "cudalab", "run", "--device", "cpu", "--sanitize", tmp_path / "waits.cu")
    words += ("--json", tmp_path / "report.json")
    run = subprocess.Popen(
        (sys.executable, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert run.stdout.readline() == "waits\n"
    run.terminate()
    _, report = run.communicate(timeout=60)
    assert run.returncode == -signal.SIGTERM
    assert "waits: clean, until SIGTERM ended it" in report
    assert "observed: 1 launch" in report
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["ended_by"] == "SIGTERM"


ENDS_ITSELF = """
#include <csignal>
#include <unistd.h>
int main() {
    kill(getppid(), SIGTERM);
    pause();
}
"""


def test_a_program_that_is_ended_at_once_has_a_report(tmp_path):
    (tmp_path / "ends.cu").write_text(ENDS_ITSELF)
    words = ("-m", "cudalab", "run", "--device", "cpu", "--sanitize", tmp_path / "ends.cu")
    run = subprocess.run(
        (sys.executable, *words), check=False, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == -signal.SIGTERM
    assert "until SIGTERM ended it" in run.stderr


def test_a_program_that_lacks_a_library_says_so(tmp_path):
    text = 'extern "C" int lacking(); __global__ void k() {} int main() { return lacking(); }'
    status, report = sanitize("lacks", text=text, folder=tmp_path)
    assert status == 125
    assert "the program does not link: lacking is declared, but no file defines it" in report
    assert "Traceback" not in report


OWN_DEFAULT = """
__global__ void fill(int* to) { to[threadIdx.x] = 1; }
int main() {
    int* a;
    cudaMalloc(&a, 128);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, 32>>>(a);
    fill<<<1, 32, 0, stream>>>(a);
    cudaDeviceSynchronize();
    cudaFree(a);
}
"""


def test_the_default_stream_of_each_thread_waits_for_no_other(tmp_path):
    status, report = sanitize("own", text=OWN_DEFAULT, folder=tmp_path)
    assert status == 0, report
    option = "--default-stream=per-thread"
    status, report = sanitize("own", option, text=OWN_DEFAULT, folder=tmp_path)
    assert status == 3
    assert "launched at line 8 in the thread's default stream" in " ".join(report.split())


FAILS = """
__global__ void fill(int* to, long long at) { to[at + threadIdx.x] = 1; }
int main(int argc, char** argv) {
    int *a, sum = 0;
    cudaMallocManaged(&a, 128);
    fill<<<1, 32>>>(a, 0);
    fill<<<1, 32>>>(a, 1ll << 40);
    if (argc > 1) cudaDeviceSynchronize();
    for (int i = 0; i < 32; ++i) sum += a[i];
    return sum != 32;
}
"""


def test_a_host_that_waits_for_a_kernel_that_fails_has_waited(tmp_path):
    for waits, arguments in ((True, ["waits"]), (False, [])):
        status, report = sanitize("fails", text=FAILS, folder=tmp_path, arguments=arguments)
        assert (status, "1. access out of bounds" in report) == (3, True), report
        assert ("host that does not wait" in report) is not waits
