"""Kernels that nvcc rejects are rejected on the CPU device, and no others."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from instrumented import compiled_by  # noqa: F401 - a fixture

from cudalab.backends.cpu.device import CpuDevice
from cudalab.backends.cuda import nvcc
from cudalab.errors import CudalabError, KernelCompileError, NoDeviceError
from cudalab.language import source

FOLDER = Path(__file__).parents[1] / "nvcc"


def kernels(name):
    """The kernels of a file by name; each stands behind a line of its own."""
    parts = re.split(r"^// --- (.*)\n", (FOLDER / name).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


REJECTED, TAKEN = kernels("rejects.cu"), kernels("takes.cu")
TOO_MUCH = """extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ int a[6200], b[6200];
    a[n] = b[n] = n;
    __syncthreads();
    *out = a[n % 5] + b[n % 7];
}
"""
NOT_NAMED = "__global__ void kernel(int *out, unsigned n) { *out = n; }\n"


@pytest.fixture
def compile_it(compiled_by, tmp_path):  # noqa: F811 - a fixture
    def compile_it(text, defines=None):
        if compiled_by == "zig" and "#include" in text:
            pytest.skip("zig's C++ library declares another clock() than CUDA")
        path = tmp_path / "my.cu"
        path.write_text(text)
        return CpuDevice(1).compile(source.load(path, "my.cu"), defines or {})

    return compile_it


@pytest.mark.parametrize("name", REJECTED)
def test_what_nvcc_rejects_is_rejected(compile_it, name):
    lines = REJECTED[name].splitlines()
    [(number, said)] = [
        (i, line.split("// <- ")[1]) for i, line in enumerate(lines, 1) if "<-" in line
    ]
    with pytest.raises(KernelCompileError) as caught:
        compile_it(REJECTED[name])
    assert re.search(rf"^my\.cu:{number}:.* {re.escape(said)}", caught.value.message, re.MULTILINE)


@pytest.mark.parametrize("name", TAKEN)
def test_what_nvcc_takes_is_taken(compile_it, name):
    assert compile_it(TAKEN[name])["kernel"].num_params > 0


def test_too_much_shared_memory(compile_it):
    with pytest.raises(KernelCompileError) as caught:
        compile_it(TOO_MUCH)
    assert caught.value.message == (
        "nvcc would reject the kernel:\nmy.cu: error: kernel kernel has 49,600 bytes of __shared__ "
        "variables: at most 49,152 are allowed; use extern __shared__ for more"
    )


def test_a_define_of_a_type_hides_no_function_of_the_host(compile_it):
    with pytest.raises(KernelCompileError, match="calls twice, a host function"):
        compile_it(REJECTED["function"].replace("int twice", "T twice"), {"T": "int"})


def test_a_define_may_make_a_function_the_devices(compile_it):
    compile_it(
        REJECTED["function"].replace("int twice", "ON_GPU int twice"), {"ON_GPU": "__device__"}
    )


def test_a_kernel_is_found_by_its_name(compile_it):
    with pytest.raises(CudalabError) as caught:
        compile_it(NOT_NAMED)["kernel"]
    assert caught.value.message == 'my.cu: kernel kernel is not extern "C": a GPU does not find it'
    assert caught.value.hint == 'begin it with extern "C" __global__ void kernel('


def test_a_kernel_of_a_lab_takes_no_references(compile_it):
    with pytest.raises(KernelCompileError) as caught:
        compile_it('extern "C" __global__ void kernel(int *out,\n const unsigned &n) { *out = n; }')
    assert caught.value.message == (
        "no lab can launch the kernel:\n"
        "my.cu:2: error: a lab hands in numbers and pointers: this is a reference"
    )


def test_warnings_are_left_out_of_errors(compile_it):
    with pytest.raises(KernelCompileError) as caught:
        compile_it(
            'int f() {}\nextern "C" __global__ void kernel() { char c = 1000; undeclared; }\n'
        )
    assert "undeclared" in caught.value.message
    assert "warning: " not in caught.value.message
    assert "int f()" not in caught.value.message


@pytest.mark.parametrize("text", [*REJECTED.values(), TOO_MUCH], ids=[*REJECTED, "too much"])
def test_nvcc_rejects_it(text, tmp_path):
    assert compiled_with_nvcc(text, tmp_path).returncode != 0


def test_nvcc_takes_them(tmp_path):
    """All at once, each in a namespace: to read CUDA's headers takes longer than all kernels."""
    includes, texts = set(), []
    for number, (name, text) in enumerate(TAKEN.items()):
        includes |= set(re.findall(r"^#include .*\n", text, re.MULTILINE))
        own = re.sub(r"^#include .*", "", text, flags=re.MULTILINE)
        defined = ["kernel", *re.findall(r"^#define (\w+)", own, re.MULTILINE)]
        texts += [f"#define kernel kernel_{number}", f"namespace case_{number} {{"]
        texts += [f'#line 1 "{name}"', own, "}", *(f"#undef {macro}" for macro in defined)]
    done = compiled_with_nvcc("".join(sorted(includes)) + "\n".join(texts), tmp_path)
    assert done.returncode == 0, done.stderr


def compiled_with_nvcc(text, tmp_path):
    try:
        compiler = nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)
    if shutil.which("g++") is None:
        pytest.skip("nvcc preprocesses by g++")
    path = tmp_path / "nvcc.cu"
    path.write_text(text)
    command = [compiler, *nvcc.FLAGS, "-arch=sm_75", "-cubin", path, "-o", tmp_path / "nvcc.cubin"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
