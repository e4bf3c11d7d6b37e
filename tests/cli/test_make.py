"""`cudalab run --make`: projects with a Makefile or CMake, and the nvcc that they find."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import cudalab
from whole_programs import with_gcc

from cudalab.program.toolkit.make import environment

pytestmark = pytest.mark.xdist_group("make")  # one build for all

PROJECT = Path(__file__).parents[1] / "programs" / "separate"
ANSWER = b"1112 182 4\n"  # as in test_run.py


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder in which make has built the project."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    folder = tmp_path_factory.mktemp("make") / "project"
    shutil.copytree(PROJECT, folder)
    done = cudalab("run", "--make", "-s", cwd=folder)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr.decode()
    return folder


def nvcc(*words, cwd):
    """What our nvcc does with a command line."""
    variables = {**os.environ, **environment()}
    command = ["nvcc", *words]
    return subprocess.run(
        command, env=variables, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_a_makefile_that_names_another_toolkit(project):
    """The program needs nothing of ours to run."""
    done = subprocess.run([project / "program"], capture_output=True, env={}, check=True)
    assert done.stdout == ANSWER
    assert cudalab("run", project / "program").stdout == ANSWER


RULES = """SHELL := /bin/bash
program: main.cu
\t$(MAKE) -C deeper
\t/usr/local/cuda/bin/nvcc -I/usr/local/cuda/include -c main.cu && [[ -f main.o ]] && echo "it's &"
\tg++ main.o -L /usr/local/cuda/lib64 -lcudart -o program
"""


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_rules_that_name_another_toolkit(shell, tmp_path):
    """In a makefile that make calls, too. NVIDIA's own would need its library or its driver."""
    if shutil.which("make") is None or shutil.which("g++") is None:
        pytest.skip("make or g++ is not installed")
    text = "int main() { return cudaGetLastError() ? 1 : 42; }"
    for folder in (tmp_path, tmp_path / "deeper"):
        folder.mkdir(exist_ok=True)
        (folder / "main.cu").write_text(text, encoding="utf-8")
    rules = RULES if shell == "bash" else RULES.replace("[[ -f main.o ]]", "[ -f main.o ]")[18:]
    (tmp_path / "Makefile").write_text(rules, encoding="utf-8")
    deeper = "program: main.cu\n\t/opt/cuda-12.1/bin/nvcc main.cu -o program"
    (tmp_path / "deeper" / "Makefile").write_text(deeper, encoding="utf-8")
    done = cudalab("run", "--make", "-s", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"it's &\n"), done.stderr.decode()
    for program in (tmp_path / "program", tmp_path / "deeper" / "program"):
        assert subprocess.run([program], env={}, check=False).returncode == 42


def test_a_file_of_c_that_calls_the_runtime(tmp_path):
    """Whose compiler is the host's."""
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("make or gcc is not installed")
    shutil.copytree(PROJECT.with_name("in_c"), tmp_path, dirs_exist_ok=True)
    rules = "program: main.cu data.o unnamed.o\n\tnvcc $^ -o $@\n"
    (tmp_path / "Makefile").write_text(rules, encoding="utf-8")
    done = cudalab("run", "--make", "-s", "CC=gcc", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr.decode()
    ran = subprocess.run([tmp_path / "program"], capture_output=True, env={}, check=True)
    assert ran.stdout == b"1 32 4 3\n600 1\ninvalid copy direction for memcpy\n"


@pytest.mark.parametrize("flags", ["CFLAGS=-fPIC", "CFLAGS=-fno-pic"])
def test_objects_of_another_compiler_under_the_instrument(flags, tmp_path):
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("make or gcc is not installed")
    shutil.copytree(PROJECT.with_name("in_c"), tmp_path, dirs_exist_ok=True)
    rules = "program: main.cu data.o unnamed.o\n\tnvcc $^ -o $@\n"
    (tmp_path / "Makefile").write_text(rules, encoding="utf-8")
    built = cudalab("run", "--make", "-s", "CC=gcc", flags, cwd=tmp_path)
    done = cudalab("run", "--sanitize", "./program", cwd=tmp_path)
    messages = done.stderr.decode()
    if flags == "CFLAGS=-fPIC":
        assert (built.returncode, done.returncode) == (0, 0), messages
        assert done.stdout.splitlines()[1] == b"600 1"
        assert "observed: 1 launch of 1 kernel" in messages
        assert "Not looked at: data.o, unnamed.o" in messages
    elif built.returncode == 0:  # where programs may be at any address, it does not link at all
        assert done.returncode == 125
        assert "data.o: its compiler did not get -fPIC" in messages


def test_a_file_of_c_that_calls_a_library_is_refused_in_words(tmp_path):
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("make or gcc is not installed")
    text = "#include <cublas_v2.h>\nint main(void) { return 0; }\n"
    (tmp_path / "main.c").write_text(text, encoding="utf-8")
    (tmp_path / "Makefile").write_text("main: main.c\n", encoding="utf-8")
    refused = cudalab("run", "--make", "CC=gcc", cwd=tmp_path)
    assert refused.returncode != 0
    assert b"error: #error on the CPU device this header needs C++" in refused.stderr
    assert cudalab("run", "--make", "-s", "CC=g++", cwd=tmp_path).returncode == 0


def test_a_program_that_make_has_built_under_the_instrument(project):
    clean = cudalab("run", "--sanitize", "./program", cwd=project)
    assert (clean.returncode, clean.stdout) == (0, ANSWER), clean.stderr.decode()
    found = cudalab("run", "--sanitize", "project/program", "--", "fail", cwd=project.parent)
    assert found.returncode == 3
    assert "project/other.cu:15" in found.stderr.decode()


def test_a_program_that_nvcc_has_linked_apart_under_the_instrument(tmp_path):
    """What it is linked with is known from nvcc's last command line."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    text = "extern int own(); __global__ void k() {} int main() { k<<<1, 1>>>(); return own(); }"
    (tmp_path / "main.cu").write_text(text, encoding="utf-8")
    (tmp_path / "own.cpp").write_text("int own() { return 42; }", encoding="utf-8")
    steps = (
        ["g++", "-c", "-fPIC", "own.cpp"],
        ["ar", "rcs", "libown.a", "own.o"],
        ["nvcc", "-c", "main.cu"],
        ["nvcc", "main.o", "-L", ".", "-lown", "-o", "library"],
        ["nvcc", "main.o", "own.o", "-o", "object"],
    )
    for step in steps:
        done = subprocess.run(step, env={**os.environ, **environment()}, cwd=tmp_path, check=False)
        assert done.returncode == 0, step
    assert cudalab("run", "--sanitize", "library", cwd=tmp_path).returncode == 42
    assert cudalab("run", "--sanitize", "object", cwd=tmp_path).returncode == 42
    (tmp_path / "own.o").unlink()
    refused = cudalab("run", "--sanitize", "object", cwd=tmp_path)
    assert refused.returncode == 125
    assert b"own.o: No such file or directory, but it is linked" in refused.stderr


SIZED = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.18)
project(sized LANGUAGES CXX CUDA)
add_executable(sized main.cu)
target_compile_definitions(sized PRIVATE SIZE=${SIZE} NAME="${NAME}")
""",
    "main.cu": """#include <cstdio>
__global__ void fill(int* p) { p[threadIdx.x] = SIZE; }
int main() {
    int *d, h[SIZE];
    cudaMalloc(&d, sizeof h);
    fill<<<1, SIZE>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf(NAME "%d\\n", h[SIZE - 1]);
}
""",
}


def test_options_of_cmake_configure_and_others_build(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    for name, text in SIZED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for size in (8, 16):
        words = ["-DNAME=wide-", "-D", f"SIZE={size}", "-G", "Unix Makefiles", "-j2"]
        done = cudalab("run", "--make", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        program = subprocess.run([tmp_path / "build" / "sized"], capture_output=True, check=True)
        assert program.stdout == f"wide-{size}\n".encode()


def test_a_cmake_project(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("Makefile"))
    build = tmp_path / "project" / "build"
    done = cudalab("run", "--make", "-j2", cwd=build.parent)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    run = functools.partial(subprocess.run, capture_output=True, check=True)
    assert run([build / "program"]).stdout == ANSWER
    assert run([build / "devices"]).stdout == b"no error: 1\n"
    refused = cudalab("run", "--sanitize", build / "devices")
    assert refused.returncode == 125
    assert b"devices: not built by cudalab's nvcc" in refused.stderr


def test_command_lines_of_nvcc(project):
    assert "nvcc: NVIDIA (R) Cuda compiler driver" in nvcc("--version", cwd=project).stdout
    (project / "words").write_text("-DN=4 -I .")
    line = "-x cu -c devices.cpp --options-file words -MD -MT this -MF rule -o apart.o -fopenmp"
    line += f" -I{environment()['CUDA_PATH']}/include"  # as CMake's include_directories says it
    done = nvcc(*line.split(), cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (project / "rule").read_text().split() == ["this", ":", "\\", "devices.cpp"]
    done = nvcc("-lib", "other.o", "-o", "libother.a", cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = nvcc("-cuda", "main.cu", cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    libraries = f"-L. -lother -L{environment()['CUDA_PATH']}/lib64 -lcudart"
    line = f"g++ -std=c++17 -w -fpermissive main.cu.cpp.ii -o translated {libraries}"
    subprocess.run(line.split(), cwd=project, check=True)
    ran = subprocess.run([project / "translated"], capture_output=True, check=True)
    assert ran.stdout == ANSWER
    done = nvcc("main.cu", "-L.", "-lother", "--nonsense", cwd=project)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "note: --nonsense: means nothing on the CPU device\n"
    ran = subprocess.run([project / "a.out"], capture_output=True, check=True)
    assert ran.stdout == ANSWER


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-ptx main.cu", "Error: -ptx: the CPU device has no code for GPUs"),
        ("-shared main.cu -o libmain.so", "no shared libraries"),
        ("-c none.cu", "Error: none.cu: no such file"),
        ("", "Error: no input files"),
        ("main.o", "does not link"),
    ],
)
def test_what_nvcc_cannot_make(line, words, project):
    done = nvcc(*line.split(), cwd=project)
    assert done.returncode != 0
    assert words in done.stderr


@with_gcc
def test_no_project(tmp_path):
    done = cudalab("run", "--make", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        125,
        b"Error: no Makefile and no CMakeLists.txt here",
    )
