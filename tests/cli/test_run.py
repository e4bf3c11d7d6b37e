"""`cudalab run`: whole programs, through the real command line."""

import contextlib
import itertools
import os
import platform
import re
import select
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import command
import pytest

from cudalab.backends.cpu import cccl
from cudalab.system.cache import cache_dir

pytestmark = pytest.mark.xdist_group("run")  # whose worker compiles each program once

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "samples" / "programs"
OWN = Path(__file__).parents[1] / "programs"

SAMPLES = {
    name: (each["files"], each["lab"], each["dtype"])
    for name, each in tomllib.loads((PROGRAMS / "programs.toml").read_text("utf-8")).items()
}
CASES = [
    (program, path)
    for program, (_, lab, dtype) in SAMPLES.items()
    for path in sorted((ROOT / "samples" / lab).glob(f"*.{dtype}.in.bin"))
]


def case_name(case):
    return case if isinstance(case, str) else case.name.removesuffix(".in.bin")


def run(files, device, *options, arguments=(), env=None, **stdin):
    """Run a program of several files, or the one in tests/programs."""
    paths = (
        [str(OWN / files)] if isinstance(files, str) else [str(PROGRAMS / each) for each in files]
    )
    behind = ["--", *arguments] if arguments else []
    return cudalab("run", "--device", device, *options, *paths, *behind, env=env, **stdin)


IS_EMULATED = "CUDALAB_EMULATOR" in os.environ
natively = pytest.mark.skipif(IS_EMULATED, reason="needs a processor that is not emulated")


def cudalab(*words, env=None, **stdin):
    if IS_EMULATED and not {"--sanitize", "--profile"}.isdisjoint(words):
        pytest.skip("Python loads the instrumented program, which is for another processor")
    return command.cudalab(*words, env={**os.environ, "COLUMNS": "160", **(env or {})}, **stdin)


@pytest.mark.parametrize(("program", "path"), CASES, ids=case_name)
def test_sample_program(program, path, device_name):
    files, lab, dtype = SAMPLES[program]
    with path.open("rb") as stdin:
        done = run(files, device_name, stdin=stdin)
    if path.name.startswith("bad-"):
        assert done.returncode not in (0, 125)
        assert done.stdout == b""
        assert done.stderr
        return
    assert done.returncode == 0, done.stderr.decode()
    expected = path.with_name(path.name.replace(".in.bin", ".out.bin")).read_bytes()
    if path.name.startswith("approx-"):
        options = ["--dtype", dtype] if lab != "table" else []
        verdict = cudalab("verify", lab, *options, str(path), "-", input=done.stdout)
        assert verdict.returncode == 0, verdict.stderr.decode()
    else:
        assert done.stdout == expected


# Odd sizes of several blocks, the last of them incomplete.
LARGER = {
    "bitonic": 5000,
    "histogram": 100_003,
    "matmul": 65,
    "radixsort": 70_001,
    "reduce": 100_003,
    "scan": 70_001,
    "solve": 40,
    "table": 70_001,
    "transpose": "300x65",
}


@pytest.mark.parametrize("program", SAMPLES)
def test_sample_program_on_a_larger_input(program, device_name, tmp_path):
    files, lab, dtype = SAMPLES[program]
    typed = ["--dtype", dtype] if lab != "table" else []
    given = tmp_path / "in.bin"
    size = ["--n", str(LARGER[lab]), "--seed", "1"]
    made = cudalab("gen", lab, *typed, *size, "-o", str(given))
    assert made.returncode == 0, made.stderr.decode()
    done = run(files, device_name, input=given.read_bytes())
    assert done.returncode == 0, done.stderr.decode()
    verdict = cudalab("verify", lab, *typed, str(given), "-", input=done.stdout)
    assert verdict.returncode == 0, verdict.stderr.decode()


def test_every_lab_has_a_program():
    labs = {path.name for path in (ROOT / "samples").iterdir() if any(path.glob("*.in.bin"))}
    assert {lab for _, lab, _ in SAMPLES.values()} == labs
    named = {name for files, _, _ in SAMPLES.values() for name in files if name.endswith(".cu")}
    assert named == {str(path.relative_to(PROGRAMS)) for path in PROGRAMS.rglob("*.cu")}


@pytest.mark.parametrize(
    "program",
    [
        "accepted",
        "cublas",
        "cublas_lt",
        "curand",
        "curand_kernels",
        "forms",
        "errors",
        "groups",
        "names",
        "numbers",
        "trigonometry",
        "edges",
        "courses",
        "lockstep",
        "intrinsics",
        "atomics",
        "mathematics",
        "assembly",
        "tensor_cores",
        "room",
        "waits",
        "background",
        "graphs",
        "launches",
        "driver",
        "arrays",
        "textures",
        "streams",
    ],
)
def test_program_prints(program, device_name):
    if IS_EMULATED and program in ("cublas", "cublas_lt"):
        pytest.skip("the BLAS of NumPy's wheel is for another processor")
    done = run(f"{program}.cu", device_name)
    if device_name == "cuda" and re.search(rb"cu(rand|blas)\w*\.h: No such file", done.stderr):
        pytest.skip("this CUDA toolkit lacks a library")
    assert done.returncode == 0, done.stderr.decode()
    texts = [done.stdout.decode(), (OWN / f"{program}.txt").read_text(encoding="utf-8")]
    if IS_EMULATED:  # the sign of a NaN is the processor's
        texts = [text.replace("-nan", "nan") for text in texts]
    assert texts[0] == texts[1]


def test_without_a_blas_the_extra_is_named(monkeypatch):
    monkeypatch.setenv("CUDALAB_BLAS", "/nowhere.so")
    done = run("cublas.cu", "cpu")
    assert "cublas.cu:145: cuBLAS needs" in done.stderr.decode()
    assert "cudalab[libraries]" in done.stderr.decode()


LIBRARY = r"""
#include <cublas_v2.h>
__global__ void add(float *x) { x[threadIdx.x] += 1; }
int main(int argc, char **argv) {
    float *x, *y, three = 3;
    cudaMalloc(&x, 16);
    cudaMalloc(&y, 16);
    cudaMemset(x, 0, 16);
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasScopy(handle, 4, x, 1, y, 1);
    add<<<1, 4>>>(y);
    if (argc == 2) cublasSscal(handle, 5, &three, x, 1);
    if (argc == 3) cublasSscal(handle, 1, &three, &three, 1);
    cublasDestroy(handle);
    cudaFree(x);
    cudaFree(y);
}
"""


def test_libraries_are_not_captured(tmp_path):
    source = tmp_path / "captured.cu"
    source.write_text(
        "#include <cstdio>\n#include <cublas_v2.h>\n#include <curand.h>\n"
        "int main() {\n"
        "    cublasHandle_t handle; cublasCreate(&handle);\n"
        "    curandGenerator_t generator;\n"
        "    curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);\n"
        "    cudaStream_t stream; cudaStreamCreate(&stream);\n"
        "    cublasSetStream(handle, stream); curandSetStream(generator, stream);\n"
        "    float *x; cudaMalloc(&x, 4);\n"
        "    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);\n"
        '    printf("%d ", cublasSscal(handle, 1, x, x, 1));\n'
        '    printf("%d ", curandGenerateUniform(generator, x, 1));\n'
        "    cudaGraph_t graph; cudaGraphExec_t instance;\n"
        '    printf("%d ", cudaStreamEndCapture(stream, &graph));\n'
        '    printf("%d", cudaGraphInstantiate(&instance, graph, 0));\n'
        "}\n"
    )
    done = cudalab("run", "--device", "cpu", str(source))
    # Not supported, a launch failure; then no graph lacks their work without a word.
    assert done.stdout == b"15 201 901 1"
    said = "not supported on the CPU device"
    assert f"captured.cu:12: {said}: cuBLAS in a" in done.stderr.decode()
    assert f"captured.cu:13: {said}: cuRAND in a" in done.stderr.decode()


def test_a_library_is_seen_by_sanitize(tmp_path):
    source = tmp_path / "library.cu"
    source.write_text(LIBRARY)
    command = ["run", "--sanitize", str(source)]
    clean, overrun, foreign = (
        cudalab(*command, *more) for more in ([], ["--", "1"], ["--", "1", "2"])
    )
    assert clean.returncode == 0, clean.stderr.decode()
    assert overrun.returncode == foreign.returncode == 3
    said = [" ".join(done.stderr.decode().split()) for done in (overrun, foreign)]
    assert f"{source}:13: cublasSscal: the memory allocated at {source}:6 ends 4 bytes" in said[0]
    assert f"{source}:14: cudaErrorIllegalAddress: cublasSscal:" in said[1]
    assert "is host memory" in said[1]


def test_findings_in_kernels_that_graphs_and_kernels_launch_name_their_lines():
    done = run("nested_mistakes.cu", "cpu", "--sanitize")
    text = " ".join(done.stderr.decode().split())
    assert done.returncode == 3
    assert "1. past_end<<<1, 32>>> at" in text
    assert "nested_mistakes.cu:23: access out of bounds" in text
    assert "3. lost_update<<<1, 32>>> at" in text
    assert "nested_mistakes.cu:11: lost update" in text


def test_kernel_that_waits_for_its_children(tmp_path):
    source = tmp_path / "waits.cu"
    source.write_text(
        "#include <cstdio>\n__global__ void child() {}\n__global__ void parent() {\n"
        "    child<<<1, 1>>>();\n    cudaDeviceSynchronize();\n}\n"
        "int main() {\n    parent<<<1, 1>>>();\n"
        "    std::puts(cudaGetErrorName(cudaDeviceSynchronize()));\n}\n"
    )
    done = cudalab("run", "--device", "cpu", str(source))
    assert done.stdout == b"cudaErrorLaunchFailure\n"
    assert "waits.cu:5: cudaDeviceSynchronize cannot be called in a kernel" in done.stderr.decode()


@pytest.mark.skipif(
    IS_EMULATED or platform.machine() != "x86_64", reason="only x86 stops at a division by zero"
)
def test_division_by_zero_is_noted_once_for_each_line():
    done = run("edges.cu", "cpu")
    first, second = done.stderr.decode().splitlines()
    assert "edges.cu:176: kernel quotients, block (0,0,0): integer division by zero" in first
    assert "edges.cu:181: kernel remainders" in second


MIXED = [str(OWN / "mixed" / name) for name in ("main.cu", "sum.cpp", "sum.c")]


@pytest.mark.parametrize("instrument", [(), ("--sanitize",)], ids=str)
def test_program_of_several_languages_with_a_line_for_nvcc(instrument):
    line = "-O3 -std=c++14 -arch=sm_75 -Xcompiler -fopenmp,-Wall -D N=32 -L/none -lcublas -lm"
    done = cudalab("run", "--device", "cpu", *instrument, *line.split(), *MIXED)
    if b"OpenMP with this compiler" in done.stderr:
        pytest.skip("the compiler has no OpenMP")
    assert (done.returncode, done.stdout) == (0, b"41664 41664\n"), done.stderr.decode()


SEPARATE = [str(OWN / "separate" / name) for name in ("main.cu", "other.cu")]


@pytest.mark.parametrize("instrument", ["", "--sanitize", "--profile"])
def test_files_are_compiled_apart(instrument):
    """6 + 6 + 100 + 1000 for thread 0; 2 * 3 * 30 and the second call; the first and the third."""
    options = ["--device", "cpu", *filter(None, [instrument])]
    done = cudalab("run", *options, *SEPARATE)
    assert (done.returncode, done.stdout) == (0, b"1112 182 4\n"), done.stderr.decode()
    if instrument == "--profile":
        assert b"main.cu" in done.stderr
        assert b"other.cu" in done.stderr
    if instrument == "--sanitize":
        found = cudalab("run", *options, *SEPARATE, "--", "fail")
        line = f"{SEPARATE[1]}:15"
        assert found.returncode == 3
        assert line in found.stderr.decode(), found.stderr.decode()


def test_options_that_make_no_program_are_refused():
    assert refuse("-c", *MIXED).startswith("Error: -c: `cudalab run` compiles a program")


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


# NVIDIA's libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["thrust", "libcu", "cub"])
def test_program_with_nvidias_libraries(program, device_name):
    need_cccl(device_name)
    done = run(f"{program}.cu", device_name)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == (OWN / f"{program}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", ["libcu", "cub"])
def test_no_findings_in_nvidias_libraries(program):
    need_cccl("cpu")
    done = run(f"{program}.cu", "cpu", "--sanitize")
    assert done.stdout.decode() == (OWN / f"{program}.txt").read_text(encoding="utf-8")
    assert f"{program}: clean\nobserved: " in done.stderr.decode()


def test_findings_name_the_line_that_called_a_library(tmp_path):
    need_cccl("cpu")
    source = tmp_path / "program.cu"
    source.write_text(
        "#include <cub/block/block_store.cuh>\n"
        "#include <thrust/device_vector.h>\n"
        "__global__ void k(const int *in, int *out) {\n"
        "    int items[2] = {in[0], in[1]};\n"
        "    cub::StoreDirectBlocked(threadIdx.x, out, items);\n"
        "}\n"
        "int main() {\n"
        "    thrust::device_vector<int> in(2, 1), out(5);\n"
        "    k<<<1, 3>>>(in.data().get(), out.data().get());\n"
        "}\n"
    )
    done = cudalab("run", "--device", "cpu", "--sanitize", str(source))
    assert done.returncode == 3
    report = " ".join(done.stderr.decode().split())
    assert "program: 1 found " in report
    assert "thread 2: write of 4 bytes at" in report
    assert "program.cu:5, element 5" in report


def test_programs_find_in_thrust_what_it_includes_in_cuda_13(tmp_path):
    need_cccl("cpu")
    program = tmp_path / "prints.cu"
    program.write_text(
        "#include <thrust/device_vector.h>\n"
        "int main() { thrust::device_vector<int> v(3); std::cout << v.size() << std::endl; }\n"
    )
    done = cudalab("run", "--device", "cpu", str(program))
    assert done.stdout == b"3\n", done.stderr.decode()


def test_a_forgotten_copy_is_caught_in_a_program_with_thrust():
    need_cccl("cpu")
    done = run("thrust.cu", "cpu", arguments=["touch"])
    message = done.stderr.decode()
    assert done.returncode == -signal.SIGSEGV
    assert "tests/programs/thrust.cu:237: host code dereferences the device pointer" in message
    assert "it is byte 12 of the 40 allocated at tests/programs/thrust.cu:235" in message


def need_cccl(device):
    if device == "cpu" and cccl.why_missing():
        pytest.skip(cccl.why_missing())


# What goes wrong in a program --------------------------------------------------------------------


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


@pytest.mark.parametrize("crash", CRASHES)
def test_kernel_that_crashes_leaves_an_error_for_good(crash):
    done = run("kernel_crashes.cu", "cpu", arguments=[crash])
    name, *words = CRASHES[crash]
    assert done.returncode == 0
    assert done.stdout.decode().split() == [name] * 3
    for each in words:
        assert each in done.stderr.decode()


@natively
def test_a_crash_has_its_line_though_the_program_was_compiled_again(tmp_path):
    source = tmp_path / "late.cu"
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
    assert b"late.cu:3: a null pointer is dereferenced" in message


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


# The program's own matters -----------------------------------------------------------------------

ECHO = r"""
#include <cstdio>
#include <cstdlib>
#include <name.h>
int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) printf("%s\n", argv[i]);
    fprintf(stderr, "%d %s\n", VALUE, NAME);
    int c;
    while ((c = getchar()) != EOF) putchar(c);
    size_t free_bytes, total;
    cudaMemGetInfo(&free_bytes, &total);
    fprintf(stderr, "%zu\n", total);
    return VALUE;
}
"""


@pytest.fixture
def echo(tmp_path):
    (tmp_path / "echo.cu").write_text(ECHO)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "name.h").write_text('#pragma once\n#define NAME "here<<<>>>"\n')
    return [
        *("-I", str(tmp_path / "include")),
        *("-D", "VALUE=42", "-D", "N=7", str(tmp_path / "echo.cu")),  # our headers use N, too
    ]


@natively
def test_streams_arguments_and_status_are_the_programs(echo, device_name, tmp_path):
    binary = tmp_path / "echo"
    for _ in range(2):  # compiled, then cached
        done = cudalab(
            *("run", "--device", device_name, "-o", str(binary), *echo),
            *("--", "--device", "a b", "-o"),
            input=b"\x00\x1a\r\n\xff",
            env={"CUDALAB_DEVICE_MEMORY": "3M"},
        )
        assert done.returncode == 42
        assert done.stdout == b"--device\na b\n-o\n\x00\x1a\r\n\xff"
        lines = done.stderr.decode().splitlines()
        assert lines[0] == "42 here<<<>>>"
        assert device_name == "cuda" or lines[1:] == [str(3 << 20)]
    own = subprocess.run([binary, "x"], input=b"y", capture_output=True, check=False)
    assert (own.returncode, own.stdout) == (42, b"x\ny")


@pytest.mark.parametrize("size", ["abc", "-1G", "0", "2GB", "3 M"])
def test_a_memory_size_that_is_none_is_refused(echo, size):
    done = cudalab("run", "--device", "cpu", *echo, env={"CUDALAB_DEVICE_MEMORY": size})
    assert done.returncode == 125
    assert done.stdout == b""
    said = f"CUDALAB_DEVICE_MEMORY={size}: not a size such as 512M or 2G"
    assert done.stderr.decode().splitlines()[-1] == said


def test_more_static_shared_memory_than_nvcc_allows(tmp_path):
    source = tmp_path / "big.cu"
    source.write_text(
        "#include <cstdio>\n"
        "__global__ void k(int *out) {\n"
        "    __shared__ int v[20000];\n"
        "    v[threadIdx.x] = threadIdx.x;\n"
        "    __syncthreads();\n"
        "    out[threadIdx.x] = v[blockDim.x - 1 - threadIdx.x];\n"
        "}\n"
        "int main() {\n"
        "    int *d;\n"
        "    cudaMalloc(&d, 128);\n"
        "    k<<<1, 32>>>(d);\n"
        "    puts(cudaGetErrorName(cudaGetLastError()));\n"
        "}\n"
    )
    done = cudalab("run", "--device", "cpu", str(source), env={"CUDALAB_ERRORS": "1"})
    assert (done.returncode, done.stdout) == (0, b"cudaErrorInvalidValue\n")
    assert b"80000 bytes of __shared__ variables: nvcc compiles no kernel with more" in done.stderr


REFUSED = """#include <cstdio>
typedef unsigned u;
__global__ void named(int* out, float f) { u T = threadIdx.x; int i = (int)(T) + f; out[T] = i; }
template <typename T> struct Place { T line, column; };
template <typename T> __global__ void other(T* out) {
    const T two = 2;
    Place<T> place = {.line = two, .column = (T)1.5f};
    out[threadIdx.x] = place.line + place.column;
}
template <int N> __global__ void divides(u* out) {
    u t = threadIdx.x, a[64];
    a[t / N] = (bool)(t);
    out[t] = a[t / N];
}
struct Converts { float v; __device__ operator int() { return (int)v; } };
template <class C> __global__ void converts(C c, int* out) { int i = (int)c; *out = i; }
struct Bits { u low : 4, high : 28; };
template <class B> __device__ B& same(B& bits) { return bits; }
template <class B> __device__ void add(B& bits, float x, int* out) {
    int low = bits.low;
    bits.high += x;
    *out = bits.high + low;
}
template <class B> __device__ void add_to_same(B& bits, float x) {
    same(bits).high +=
        x;
}
__global__ void adds(int* out, float x, bool b) {
    Bits bits = {1, 2};
    add(bits, x, out);
    if (b) add_to_same(bits, x);
}
__global__ void fields(int* out, int n, float x) {
    Bits bits = {1, 2};
    bits.low += x, bits.high <<= n;
    *out = (int)(bits.low + bits.high);
}
__global__ void shift(int* out, u n) { out[threadIdx.x] = 1u << (n + threadIdx.x); }
int main(int argc, char**) {
    int *out, h[64], first, bad = 0;
    cudaMalloc(&out, sizeof h);
    auto show = [&] { cudaMemcpy(&first, out, 4, cudaMemcpyDeviceToHost); printf("%d ", first); };
    named<<<1, 64>>>(out, 1.5f), show();
    other<<<1, 64>>>(out), show();
    divides<3><<<1, 64>>>((u*)out), show();
    converts<<<1, 1>>>(Converts{-3e9f}, out), show();
    fields<<<1, 1>>>(out, 33, 2.5f), show();
    shift<<<1, 64>>>(out, 5);
    cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
    for (u i = 0; i < 64; i++) bad += (u)h[i] != (i + 5 < 32 ? 1u << (i + 5) : 0u);
    printf("%d wrong\\n", bad);
    adds<<<1, 1>>>(out, 1.5f, argc > 1), show();
    cudaDeviceSynchronize();
    puts("done");
}
"""


def test_a_statement_without_a_gpus_arithmetic_is_refused_alone(tmp_path):
    program = tmp_path / "refused.cu"
    program.write_text(REFUSED)
    before = b"1 3 0 -2147483648 3 0 wrong\n"
    done = cudalab("run", "--device", "cpu", program)
    assert (done.returncode, done.stdout) == (0, before + b"4 done\n"), done.stderr.decode()
    done = cudalab("run", "--device", "cpu", program, "--", "adds")
    assert (done.returncode, done.stdout) == (125, before)
    line = REFUSED.splitlines().index("    same(bits).high +=") + 1
    assert f"Error: {program}:{line}: not supported on the CPU device".encode() in done.stderr
    done = cudalab("run", "--device", "cpu", "--sanitize", program, "--", "adds")
    message = f"refused: nothing found before {program}:{line}, where the program was refused"
    assert done.returncode == 125
    assert message in " ".join(done.stderr.decode().split())
    assert b"clean" not in done.stderr


LACKING_TEXTURES = """#include <cstdio>
int main() {
    cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
    cudaResourceDesc resource = {};
    cudaMalloc3DArray(&resource.res.array.array, &bytes, make_cudaExtent(8, 8, 6),
                      cudaArrayCubemap);
    cudaTextureDesc srgb = {}, seamless = {};
    srgb.normalizedCoords = seamless.normalizedCoords = 1;
    srgb.readMode = cudaReadModeNormalizedFloat;
    srgb.sRGB = seamless.seamlessCubemap = 1;
    for (cudaTextureDesc each : {srgb, seamless}) {
        cudaTextureObject_t texture;
        printf("%s ", cudaGetErrorName(cudaCreateTextureObject(&texture, &resource, &each, 0)));
    }
}
"""


def test_what_textures_lack_is_an_error_of_the_call(tmp_path):
    program = tmp_path / "textures.cu"
    program.write_text(LACKING_TEXTURES)
    done = cudalab("run", "--device", "cpu", program)
    assert done.stdout == b"cudaErrorNotSupported cudaErrorNotSupported "


def test_a_gpu_that_is_not_there_is_refused(echo):
    done = cudalab("run", "--device", "cuda", *echo, env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout) == (125, b"")
    assert b"Error: the program cannot be run on a GPU: there is none here\nHint: " in done.stderr


def test_changed_header_is_noticed(echo, tmp_path):
    assert b"here<<<>>>" in cudalab("run", "--device", "cpu", *echo).stderr
    (tmp_path / "include" / "name.h").write_text('#define NAME "there"\n')
    assert b"there" in cudalab("run", "--device", "cpu", *echo).stderr


def test_closed_pipe_ends_the_program(tmp_path):
    source = tmp_path / "endless.cu"
    source.write_text('#include <cstdio>\nint main() { for (;;) puts("y"); }\n')
    command = [sys.executable, "-m", "cudalab", "run", "--device", "cpu", str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(4) == b"y\ny\n"
        process.stdout.close()
        assert process.wait(60) == -signal.SIGPIPE


def test_output_of_kernels_is_in_order(tmp_path, device_name):
    source = tmp_path / "order.cu"
    source.write_text(
        "#include <cstdio>\n"
        '__global__ void say(int n) { printf("kernel %d, thread %d\\n", n, threadIdx.x); }\n'
        'int main() { for (int i = 0; i < 3; ++i) { printf("host %d\\n", i); fflush(stdout);\n'
        "say<<<1, 2>>>(i); cudaDeviceSynchronize(); } }\n"
    )
    done = cudalab("run", "--device", device_name, str(source))
    expected = "".join(f"host {i}\nkernel {i}, thread 0\nkernel {i}, thread 1\n" for i in range(3))
    assert done.stdout.decode() == expected


def test_a_program_with_asynchronous_copies(tmp_path, device_name):
    source = tmp_path / "copies.cu"
    source.write_text(
        "#include <cooperative_groups.h>\n"
        "#include <cooperative_groups/memcpy_async.h>\n"
        "#include <cuda_pipeline.h>\n"
        "#include <cstdio>\n"
        "namespace cg = cooperative_groups;\n"
        "__device__ int numbers[64];\n"
        "__global__ void k() {\n"
        "  __shared__ int own[32], ours[64];\n"
        "  const int t = threadIdx.x;\n"
        "  __pipeline_memcpy_async(&own[t], &numbers[t + 32], 4);\n"
        "  __pipeline_commit();\n"
        "  auto block = cg::this_thread_block();\n"
        "  cg::memcpy_async(block, ours, numbers, sizeof ours);\n"
        "  cg::wait(block);\n"
        "  __pipeline_wait_prior(0);\n"
        '  printf("%d ", own[t] + 100 * ours[63 - t]);\n'
        "}\n"
        "int main() {\n"
        "  int host[64];\n"
        "  for (int i = 0; i < 64; ++i) host[i] = i;\n"
        "  cudaMemcpyToSymbol(numbers, host, sizeof host);\n"
        "  k<<<1, 32>>>();\n"
        "  return cudaDeviceSynchronize();\n"
        "}\n"
    )
    done = cudalab("run", "--device", device_name, str(source))
    assert done.returncode == 0, done.stderr
    found = [int(word) for word in done.stdout.split()]
    assert found == [t + 32 + 100 * (63 - t) for t in range(32)]


@natively
def test_shared_memory_by_addresses_of_32_bits(tmp_path):
    source = tmp_path / "addresses.cu"
    source.write_text(
        "#include <cstdio>\n"
        "__global__ void swizzle(unsigned* out) {\n"
        "  __shared__ __align__(128) unsigned tile[8 * 32];\n"
        "  const unsigned t = threadIdx.x, row = t / 32, column = t % 32;\n"
        "  unsigned at = (unsigned)__cvta_generic_to_shared(&tile[row * 32 + column]);\n"
        '  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at ^ row << 4), "r"(t) : "memory");\n'
        "  __syncthreads();\n"
        "  out[t] = tile[row * 32 + (column ^ row << 2)];\n"
        "}\n"
        "int main() {\n"
        "  unsigned wrong = 0, *out;\n"
        "  cudaMallocManaged(&out, 256 * sizeof *out);\n"
        "  swizzle<<<1, 256>>>(out);\n"
        "  cudaDeviceSynchronize();\n"
        "  for (unsigned i = 0; i < 256; ++i) wrong += out[i] != i;\n"
        '  printf("%u wrong\\n", wrong);\n'
        "  cudaFree(out);\n"
        "}\n"
    )
    far = {"MALLOC_ARENA_MAX": "1"}  # a library's thread-local memory lies far from the stacks
    for options, env in (([], {}), (["--sanitize"], {}), (["--sanitize"], far)):
        done = cudalab("run", "--device", "cpu", *options, str(source), env=env)
        assert (done.returncode, done.stdout) == (0, b"0 wrong\n"), (options, env, done.stderr)


def test_cached_program_starts_at_once(tmp_path):
    source = tmp_path / "start.cu"
    source.write_text("int main() { return 7; }\n")
    command = ["run", "--device", "cpu", str(source)]
    assert cudalab(*command).returncode == 7
    times = []
    for _ in range(5):
        began = time.perf_counter()
        assert cudalab(*command).returncode == 7
        times.append(time.perf_counter() - began)
    assert min(times) < 0.5  # 0.06 s measured; a busy machine takes longer


# Under the instrument ----------------------------------------------------------------------------


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


def test_an_instrument_that_does_not_start_is_no_verdict(monkeypatch):
    from cudalab.errors import CudalabError  # noqa: PLC0415 - of this test alone
    from cudalab.program import observe  # noqa: PLC0415 - as above

    monkeypatch.setattr(observe, "_Program", None)
    with pytest.raises(CudalabError, match="nothing was observed"):
        observe.observe(None, ["program"], detect=True, count=False)


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
    done = run("host_frees_device.cu", "cpu", "--sanitize")
    assert done.returncode == -signal.SIGSEGV


# Failures of `run` itself: exit status 125 -------------------------------------------------------


def refuse(*words):
    done = cudalab("run", "--device", "cpu", *words)
    assert done.returncode == 125
    assert done.stdout == b""
    return done.stderr.decode()


def test_wrong_use():
    assert "no-such.cu: no such file" in refuse("no-such.cu")
    assert "Missing argument" in refuse()
    assert "No such option" in refuse("--nonsense", "x.cu")
    assert "exclude each other" in refuse("--sanitize", "--profile", "x.cu")


def test_compile_errors_name_the_programs_line(tmp_path):
    (tmp_path / "part.cuh").write_text(
        "#pragma once\n\ninline int half(int x) { return x / two; }\n"
    )
    source = tmp_path / "main.cu"
    source.write_text(
        '#include "part.cuh"\n'
        "__global__ void k(float *a, int n) { a[n] = 1; }\n"
        "int main() {\n"
        "    float *a = 0;\n"
        "    k<<<1,\n"
        "        32>>>(a, 5);\n"
        "    return undeclared;\n"
        "}\n"
    )
    message = refuse(str(source))
    assert f"{tmp_path}/part.cuh:3:" in message
    assert f"{source}:7:" in message
    assert "cudalab_a" not in message
    assert f"{source}:7:" in refuse("--sanitize", str(source))
    source.write_text("__global__ void k(int *a) {}\nint main() {\n    k<<<1, 1>>>(1.5);\n}\n")
    message = refuse(str(source))
    assert f"{source}:3: error: the arguments" in message
    assert "do not match the kernel's parameters (int" in message
    assert message.endswith("\n    k<<<1, 1>>>(1.5);\n")


def test_openmp_has_to_be_asked_for(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(
        'extern "C" int omp_get_thread_num();\nint main() { return omp_get_thread_num(); }\n'
    )
    assert refuse(str(source)).endswith("and of nvcc: -Xcompiler -fopenmp\n")


def test_what_the_linker_misses_is_named_by_the_programs_line(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text("void nowhere();\nint main() {\n    nowhere();\n}\n")
    message = refuse(str(source))
    assert message.startswith(f"Error: {source} does not link:\n")
    assert f"{source}:3" in message
    assert "nowhere()" in message
    assert ".cpp" not in message


def test_program_without_main(tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text("__global__ void k(int *a) { a[0] = 1; }\n")
    assert "kernel.cu has no main function\nHint: a file of kernels" in refuse(str(source))


UNSUPPORTED = {
    "cuDNN": ("\n#include <cudnn.h>\nint main() {}\n", 2),
    "inline PTX": (
        '__global__ void k() {\n  asm volatile("griddepcontrol.wait;");\n}\nint main() {}\n',
        2,
    ),
    "NVRTC: nvrtcProgram": ("int main() {\n\n  nvrtcProgram program;\n}\n", 3),
    "cudaNoSuchFunction": ("int main() {\n  return cudaNoSuchFunction();\n}\n", 2),
    "crt/no_such.h": ("#include <crt/no_such.h>\nint main() {}\n", 1),
    "MPI": ("#ifdef __linux__\n#include <mpi.h>\n#endif\nint main() {}\n", 2),
    "cooperative_groups::no_such_group": (
        "#include <cooperative_groups.h>\nint main() { cooperative_groups::no_such_group g; }\n",
        2,
    ),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_the_device_lacks_is_named(what, tmp_path):
    text, line = UNSUPPORTED[what]
    source = tmp_path / "program.cu"
    source.write_text(text)
    message = refuse(str(source))
    assert message.startswith(f"Error: not supported on the CPU device: {what}")
    assert f"({source}:{line})" in message
    assert len(message.splitlines()) == 1


def test_all_that_the_device_lacks_is_named_at_once(tmp_path):
    (tmp_path / "own.cuh").write_text("#pragma once\n#include <nvrtc.h>\n#include <cudaGL.h>\n")
    source, other = tmp_path / "program.cu", tmp_path / "other.cu"
    source.write_text(
        '#include "own.cuh"\n#if 0\n#include <cudnn.h>\n#endif\n'
        "void f(cudaGraphicsResource *r, nvrtcProgram p);\nint main() {}\n"
    )
    other.write_text('#include "own.cuh"\nint g(const char *n) { return cuModuleLoad(0, n); }\n')
    assert refuse(str(source), str(other)) == (
        f"Error: not supported on the CPU device: NVRTC ({tmp_path}/own.cuh:2), "
        f"OpenGL ({tmp_path}/own.cuh:3), "
        f"graphics interoperation: cudaGraphicsResource ({source}:5), "
        f"modules of the driver interface: cuModuleLoad ({other}:2)\n"
    )


OLDER = r"""
#include <cstdio>
#include <cublas_v2.h>
#include <curand_kernel.h>
int main() {
    float *x, *out, host[32], one = 1, zero = 0;
    cudaMalloc(&x, 64);
    cudaMalloc(&out, 128);
    curandGenerator_t generator;
    curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
    curandGenerateUniform(generator, x, 16);
    cublasHandle_t handle;
    cublasCreate(&handle);
    const auto algorithm = CUBLAS_GEMM_DEFAULT;
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 4, 4, 4, &one, x, CUDA_R_32F, 4, x, CUDA_R_32F,
                 4, &zero, out, CUDA_R_32F, 4, CUDA_R_32F, algorithm);
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 4, 4, 4, &one, x, CUDA_R_32F, 4, x, CUDA_R_32F,
                 4, &zero, out + 16, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, algorithm);
    cudaMemcpy(host, out, 128, cudaMemcpyDeviceToHost);
    int same = 0;
    for (int i = 0; i < 16; ++i) same += host[i] > 0 && host[i] == host[16 + i];
    printf("%d\n", same);
}
"""


def test_older_forms_of_libraries(tmp_path):
    source = tmp_path / "older.cu"
    source.write_text(OLDER)
    assert run([source], "cpu").stdout == b"16\n"
