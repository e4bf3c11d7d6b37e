"""Kernels that are named like the functions of the C++ library, one after another."""

from pathlib import Path

from command import cudalab

# The functions of these headers after which nvcc 13.5 lets a kernel be named in a file that says
# `using namespace std`: it refuses the names of classes.
NAMES = Path(__file__).with_name("std_names.txt").read_text(encoding="utf-8").split()
HEADERS = ("algorithm", "numeric", "utility", "functional", "cmath", "cstdio")
KERNEL = "__global__ void {}(int* total, int given) {{ *total += given; }}\n"
MAIN = """int main() {{
    int *device, host;
    cudaMalloc(&device, sizeof(int));
    cudaMemset(device, 0, sizeof(int));
{}
    cudaMemcpy(&host, device, sizeof(int), cudaMemcpyDeviceToHost);
    ::printf("%d\\n", host);
}}
"""


def test_a_kernel_may_have_the_name_of_any_function_of_the_library(tmp_path):
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    launches = "\n".join(f"    {name}<<<1, 1>>>(device, 1);" for name in NAMES)
    kernels = "".join(KERNEL.format(name) for name in NAMES)
    text = f"{includes}using namespace std;\n{kernels}{MAIN.format(launches)}"
    (tmp_path / "named.cu").write_text(text, encoding="utf-8")
    done = cudalab("run", "--device", "cpu", tmp_path / "named.cu")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == f"{len(NAMES)}\n".encode()
