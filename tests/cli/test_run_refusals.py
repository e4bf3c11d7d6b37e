"""`cudalab run`: its own failures, whose exit status is 125."""

import shlex
import subprocess

import pytest
from whole_programs import MIXED, cudalab, run

from cudalab.backends.cuda import nvcc
from cudalab.errors import NoDeviceError

pytestmark = pytest.mark.xdist_group("run")  # whose worker compiles each program once


def test_options_that_make_no_program_are_refused():
    assert refuse("-c", *MIXED).startswith("Error: -c: `cudalab run` compiles a program")


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


def test_openmp_is_added(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(
        "// #pragma omp, in a comment\n"
        "int main() {\n"
        "    int sum = 0;\n"
        "    #pragma omp parallel for num_threads(2) reduction(+ : sum)\n"
        "    for (int i = 0; i < 4; ++i) sum += i;\n"
        "#ifdef _OPENMP\n"
        "    return sum;\n"
        "#endif\n"
        "}\n"
    )
    done = cudalab("run", "--device", "cpu", source)
    if b"note" not in done.stderr:
        pytest.skip("the compiler has no OpenMP")
    assert done.returncode == 6
    words = f"{source}:4: OpenMP: compiled with -Xcompiler -fopenmp, as nvcc needs it"
    assert words.encode() in done.stderr
    assert cudalab("run", "--device", "cpu", "--quiet", source).stderr == b""


def test_what_the_linker_misses_is_named_by_the_programs_line(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text("void nowhere();\nint main() {\n    nowhere();\n}\n")
    message = refuse(str(source))
    assert message.startswith(f"Error: {source} does not link:\n")
    assert f"{source}:3" in message
    assert "nowhere()" in message
    assert ".cpp" not in message


@pytest.mark.parametrize(
    ("folder", "name"),
    [("lab/include", "cuda_utils.cuh"), ("lab", "cudaCheck.h"), ("our code", "cuda_timer.h")],
)
def test_a_header_in_a_folder_beside_is_found(folder, name, tmp_path):
    source = tmp_path / "lab" / "src" / "sum.cu" if folder == "lab" else tmp_path / "lab" / "sum.cu"
    header = tmp_path / folder / name  # not one of CUDA's, in spite of its name
    for each in (source, header):
        each.parent.mkdir(parents=True, exist_ok=True)
    header.write_text("#pragma once\n", encoding="utf-8")
    source.write_text(f'#include "{name}"\nint main() {{}}\n', encoding="utf-8")
    said = cudalab("run", "--device", "cpu", str(source)).stderr.decode()
    found = str(header.parent)
    assert f":1: error: no header {name}; it is in {found}: add -I {shlex.quote(found)}" in said
    done = cudalab("run", "--device", "cpu", "-I", found, str(source))
    assert done.returncode == 0, done.stderr


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


@pytest.mark.parametrize("loops", ["0", "1"])
def test_no_conversion_is_silently_the_hosts(loops):
    """What is not a GPU's value names its line and ends the program."""
    refused = 0
    for way in range(26):
        done = run("unfitting.cu", "cpu", arguments=[str(way)], env={"CUDALAB_LOOPS": loops})
        said, message = done.stdout.decode(), done.stderr.decode()
        refused += done.returncode == 125
        assert (done.returncode == 125 and "unfitting.cu:" in message) or said == "2147483647\n", (
            way
        )
    assert refused < 20


def test_graphics_whose_header_is_there_are_refused_in_one_line(tmp_path):
    """The compiler finds the header, so it is the linker that finds nothing."""
    (tmp_path / "GL").mkdir()
    (tmp_path / "GL" / "glut.h").write_text(
        'extern "C" void glutInit(int*, char**);\nextern "C" void glBegin(unsigned);\n'
        "#define GL_LINES 1\n"
    )
    source = tmp_path / "window.cu"
    source.write_text(
        '#include "GL/glut.h"\nint main(int n, char** a) {\n    glutInit(&n, a);\n'
        "    glBegin(GL_LINES);\n}\n"
    )
    done = cudalab("run", "--device", "cpu", source)
    assert (done.returncode, done.stdout) == (125, b"")
    said = done.stderr.decode()
    assert said == f"Error: not supported on the CPU device: OpenGL: glutInit ({source}:3)\n"


# Programs whose host code names what threads have, and whether nvcc makes programs of them.
OF_THREADS = {
    "int main() { return blockIdx.x * blockDim.x + threadIdx.x; }": False,
    "__global__ void k() {} int main() { k<<<gridDim, 1>>>(); }": False,
    "int f(int i) { for (int k = 0; k < 2; ++k) i += gridDim.x; return i; } int main() {}": False,
    "int main() { auto f = [](int i) { return i + threadIdx.x; }; return f(2); }": False,
    "__global__ void k() {} int main() { dim3 gridDim(2); k<<<gridDim, 4>>>(); }": True,
    "int main() { cudaLaunchConfig_t c; c.gridDim = 1; return sizeof(threadIdx) - 12; }": True,
    "int main() { struct F { __device__ int of() { return threadIdx.x; } }; }": True,
    "static inline int f() { return threadIdx.x; } int main() {}": True,
    "int f(int threadIdx) { return threadIdx; } int main() { return f(0); }": True,
    "int main() {\n#ifdef __CUDA_ARCH__\n    return threadIdx.x;\n#endif\n}": True,
}


@pytest.mark.parametrize(("text", "is_right"), OF_THREADS.items())
def test_host_code_has_no_threads(text, is_right, tmp_path):
    source = tmp_path / "p.cu"
    source.write_text(f"#include <cuda_runtime.h>\n{text}\n", encoding="utf-8")
    done = cudalab("run", "--device", "cpu", str(source))
    words = b"p.cu:2: error: threadIdx, blockDim and the like are for device code"
    assert (words in done.stderr) is not is_right, done.stderr.decode()
    assert done.returncode == (0 if is_right else 125), done.stderr.decode()


@pytest.mark.parametrize(("text", "is_right"), OF_THREADS.items())
def test_nvcc_refuses_threads_in_host_code(text, is_right, tmp_path):
    try:
        compiler = nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)
    (tmp_path / "p.cu").write_text(f"{text}\n", encoding="utf-8")
    done = subprocess.run(
        [compiler, "-arch=sm_75", "p.cu", "-o", "p"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode == 0) is is_right, done.stderr.decode()
