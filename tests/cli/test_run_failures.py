"""`cudalab run`: what goes wrong in a program, and what it is told of it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from whole_programs import natively, run, with_lines

from cudalab.system.cache import cache_dir

pytestmark = pytest.mark.xdist_group("run")  # whose worker compiles each program once


@with_lines
@pytest.mark.parametrize(
    ("program", "line", "words"),
    [
        ("host_reads_device.cu", 16, "of the 400 allocated at"),
        ("host_reads_variable.cu", 15, "it belongs to a __device__ or __constant__ variable"),
        ("host_frees_device.cu", 9, "before the 1000 allocated at"),
    ],
)
def test_host_code_that_follows_a_device_pointer(program, line, words):
    done = run(program, "cpu")
    message = done.stderr.decode()
    assert done.returncode == -signal.SIGSEGV
    assert done.stdout == b""
    assert f"{program}:{line}: host code dereferences the device pointer" in message
    assert words in message


@with_lines
@pytest.mark.parametrize("place", ["behind", "in the branch of an error"])
def test_host_code_that_follows_a_device_pointer_after_a_loop_of_launches(place, tmp_path):
    size = "blocks" if place == "behind" else "2000 * i + 1"
    (tmp_path / "loop.cu").write_text(
        f"""#include <cstdio>
__global__ void add(int *a) {{ a[threadIdx.x] += 1; }}
int main() {{
    int *a, blocks = 4;
    cudaMalloc(&a, 4096);
    for (int i = 0; i < blocks; i++) {{
        add<<<1, {size}>>>(a);
        if (cudaGetLastError() != cudaSuccess) {{
            printf("%d", a[0]);
            return 1;
        }}
    }}
    printf("%d", a[0]);
}}
"""
    )
    done = run(str(tmp_path / "loop.cu"), "cpu")
    line = 13 if place == "behind" else 9
    assert done.returncode == -signal.SIGSEGV
    assert f"loop.cu:{line}: host code dereferences the device pointer" in done.stderr.decode()


@with_lines
def test_the_line_is_the_programs_own_where_the_system_inlines_its_functions():
    done = run("host_reads_variable.cu", "cpu", "-Xcompiler", "-D_FORTIFY_SOURCE=2")
    assert "host_reads_variable.cu:15: host code dereferences the device" in done.stderr.decode()


def test_kernel_that_is_given_a_host_pointer():
    done = run("kernel_reads_host.cu", "cpu")
    assert done.returncode == 3
    assert done.stdout.decode().split() == ["cudaErrorIllegalAddress"] * 2
    assert (
        "kernel_reads_host.cu:14: cudaErrorIllegalAddress: kernel add: argument 1 points to "
        in (done.stderr.decode())
    )


CRASHES = {
    "far": (
        "cudaErrorIllegalAddress",
        "thread (5,0,0): ",
        "kernel_crashes.cu:9: access to address",
    ),
    "null": ("cudaErrorIllegalAddress", "thread (3,0,0): ", ":14: a null pointer is dereferenced"),
    "assert": ("cudaErrorAssert", "thread: [40,0,0] Assertion `threadIdx.x < 40` failed", ":18"),
    "trap": ("cudaErrorLaunchFailure", "thread (1,0,0): ", "__trap()"),
    "constant": (
        "cudaErrorLaunchFailure",
        "thread (0,0,0): ",
        "kernel_crashes.cu:40: a kernel writes to a __constant__ variable",
    ),
    "overflow": ("cudaErrorIllegalAddress", "thread (0,0,0): ", "stack overflow"),
    "divergence": ("cudaErrorIllegalInstruction", "divergent barrier: ", "kernel_crashes.cu:32"),
    "used after free": ("cudaErrorIllegalAddress", "freed memory", "256 allocated at"),
    "small array": ("cudaErrorIllegalAddress", "its stack is overwritten", "run --sanitize`"),
    "print": ("cudaErrorIllegalAddress", "kernel_crashes.cu:51: access to", "run --sanitize`"),
}


@with_lines
@pytest.mark.parametrize("crash", CRASHES)
def test_kernel_that_crashes_leaves_an_error_for_good(crash):
    done = run("kernel_crashes.cu", "cpu", arguments=[crash])
    name, *words = CRASHES[crash]
    assert done.returncode == 0
    assert done.stdout.decode().split() == [name] * 3
    for each in words:
        assert each in done.stderr.decode()


@with_lines
@natively
def test_a_crash_has_its_line_though_the_program_was_compiled_again(tmp_path):
    source = tmp_path / "Lab 2" / "late.cu"
    source.parent.mkdir()
    source.write_text(
        "#include <cstdio>\n__global__ void late(int *p) {\n    *p = 1;\n}\n"
        'int main() {\n    puts("ready");\n    fflush(stdout);\n    getchar();\n'
        "    late<<<1, 1>>>(nullptr);\n    return cudaDeviceSynchronize() != cudaSuccess;\n}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "cudalab", "run", "--device", "cpu", source],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == b"ready\n"
        compiled = Path(f"/proc/{process.pid}/exe").readlink()
        assert compiled.is_relative_to(cache_dir("programs"))
        compiled.unlink()
        _, message = process.communicate(b"\n", timeout=60)
    assert process.returncode == 1
    assert b"Lab 2/late.cu:3: a null pointer is dereferenced" in message


@pytest.mark.parametrize(
    ("which", "error", "words"),
    [
        ("leaves", "LaunchFailure", "3 of 4 blocks wait at grid.sync()"),
        ("crashes", "IllegalAddress", "block (1,0,0): thread (7,0,0): "),
        ("ordinary", "LaunchFailure", "needs cudaLaunchCooperativeKernel"),
    ],
)
def test_grid_that_waits_in_vain(which, error, words):
    done = run("grid_broken.cu", "cpu", arguments=[which])
    assert done.stdout.decode() == f"cudaError{error}\ncudaSuccess, cudaSuccess\n"
    assert words in done.stderr.decode()


@with_lines
@pytest.mark.parametrize(
    ("which", "error", "words"),
    [
        (
            "flag",
            "LaunchTimeout",
            [
                "kernel reads_a_flag: deadlock: block (0,0,0), thread (0,0,0) waits in a loop at ",
                "deadlocks.cu:11, thread (1,0,0) waits at __syncthreads (",
                "deadlocks.cu:13), and 62 others wait",
            ],
        ),
        ("grid", "LaunchTimeout", ["32 blocks that run wait, and 8 more cannot start"]),
        ("one", "IllegalAddress", ["block (0,0,0): thread (0,0,0): ", "deadlocks.cu:24: access"]),
        ("host", None, []),
        ("beside", "LaunchTimeout", ["kernel writes_a_flag (", "cannot start: here one kernel"]),
        ("clock", None, []),
        ("turns", None, []),
        ("exit", None, ["LaunchTimeout: kernel reads_a_flag: deadlock: block (0,0,0), thread"]),
    ],
)
def test_kernel_that_waits_for_ever_ends(which, error, words):
    done = run("deadlocks.cu", "cpu", arguments=[which])
    message = done.stderr.decode()
    assert done.stdout.decode() == (f"cudaError{error}\n" if error else "cudaSuccess\n"), message
    assert all(each in message for each in words), message


@with_lines
def test_host_code_that_follows_a_null_pointer():
    done = run("kernel_crashes.cu", "cpu", arguments=["wild"])
    assert done.returncode == -signal.SIGSEGV
    assert b"kernel_crashes.cu:91: host code dereferences a null pointer" in done.stderr


def test_failed_assertion_of_the_host_aborts():
    done = run("kernel_crashes.cu", "cpu", arguments=["host"])
    assert done.returncode == -signal.SIGABRT
    assert b"Assertion `argv[1][1] == '!'' failed." in done.stderr


def test_launch_whose_error_nobody_asked_for():
    done = run("kernel_crashes.cu", "cpu", arguments=["launch"])
    assert done.returncode == 0
    assert b"kernel_crashes.cu:96: the launch failed and the program never called" in done.stderr
    assert b"2000 x 1 x 1 threads: 1 to 1024 are allowed" in done.stderr
