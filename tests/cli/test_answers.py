"""Small programs whose answers follow from the language, alone in their files, in both ways.

What surrounds a kernel decides what an optimizer does with it: a fault may show itself only where
there is nothing else.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from cudalab import program
from cudalab.backends.cpu.compiler.flags import PART, PROGRAM, RUNTIME, check_flags, kernel_flags
from cudalab.errors import KernelCompileError
from cudalab.program.build import executable
from tests.command import cudalab
from tests.random_groups import outcome

MAIN = """
int main() {
    int *out, host[64] = {};
    cudaMalloc(&out, sizeof host);
    cudaMemset(out, 0, sizeof host);
    k<<<1, %s>>>(out, 5);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("%%s:", cudaGetErrorName(cudaGetLastError()));
    for (int i = 0; i < 64; i++)
        if (host[i]) printf(" %%d=%%d", i, host[i]);
}
"""
ALL_FIVE = " ".join(f"{i}=5" for i in range(64))
GUARDED = {
    "one thread": ("if (threadIdx.x == 1) for (int i = 0; i < n; i++) out[i] += i + 1;", 1),
    "not the first": ("if (!(threadIdx.x != 31)) for (int i = 0; i < n; i++) out[i] += i + 1;", 1),
    "the first": ("if (threadIdx.x < 1) for (int i = 0; i < n; i++) out[i] += i + 1;", 1),
    "return": ("if (threadIdx.x != 7) return; for (int i = 0; i < n; i++) out[i] += i + 1;", 1),
    "the last": (
        "if (threadIdx.x == blockDim.x - 1) { int s = 0; while (s < n) { out[s] += s + 1; s++; } }",
        1,
    ),
    "two": ("if (threadIdx.x / 2 == 4) for (int i = 0; i < n; i++) atomicAdd(out + i, i + 1);", 2),
}  # fmt: skip


def both_ways(folder, kernel, block):
    source = folder / "program.cu"
    source.write_text(f"#include <cstdio>\n{kernel}\n{MAIN % block}", encoding="utf-8")
    binary = executable([str(source)], "cpu")
    loops, fibers = (outcome(binary, way) for way in "10")
    assert loops == fibers
    status, printed, messages = loops
    assert (status, messages) == (0, "")
    return printed


@pytest.mark.parametrize(("body", "threads"), GUARDED.values(), ids=GUARDED)
def test_a_loop_behind_a_guard_runs_for_its_threads_only(tmp_path, body, threads):
    printed = both_ways(tmp_path, f"__global__ void k(int* out, int n) {{ {body} }}", "32")
    assert printed == "cudaSuccess: " + " ".join(f"{i}={threads * (i + 1)}" for i in range(5))


# What the text that we write beside a user's has been called, or might be.
NAMES = (
    *("t_", "x_", "y_", "z_", "row_", "first_", "lane_", "lanes_", "B_", "position_", "mask_"),
    *("live_", "index", "k_all_", "out_1_", "k_one_by_one_", "a_1_", "next_1_", "current"),
)


@pytest.mark.parametrize("block", ["64", "dim3(16, 4)"])
def test_a_program_may_use_any_name(tmp_path, block):
    own = " ".join(f"int {name} = n; {name} += 0;" for name in NAMES)
    sum_of = " + ".join(NAMES)
    at = "threadIdx.y * blockDim.x + threadIdx.x"
    kernel = (
        f"__global__ void k(int* out, int n) {{ {own} out[{at}] = ({sum_of}) / {len(NAMES)}; }}"
    )
    assert both_ways(tmp_path, kernel, block) == f"cudaSuccess: {ALL_FIVE}"


@pytest.mark.parametrize("name", ["t_", "x_", "B_", "lane_"])
def test_a_parameter_may_have_any_name(tmp_path, name):
    kernel = f"__global__ void k(int* out, int {name}) {{ out[threadIdx.x] = {name}; }}"
    assert both_ways(tmp_path, kernel, "64") == f"cudaSuccess: {ALL_FIVE}"


def test_names_written_beside_a_program_s_own_are_marked():
    """No text that is written into a user's scope has a name that a user might write."""
    regions = RUNTIME.parent / "regions"
    literals = re.compile(r'"(?:[^"\\\n]|\\.)*"')
    text = (RUNTIME / "kernels" / "regions.h").read_text(encoding="utf-8")
    macros = re.findall(r"^ *#define .*(?:\\\n.*)*", text, re.MULTILINE)
    written = [*macros]
    for file in {*regions.glob("*.py")} - {regions / "given.py"}:  # which only reads names
        written += literals.findall(file.read_text(encoding="utf-8"))
    unmarked = re.compile(r"(?<![\w:])(?!cudalab_)(?:[a-zA-Z]\w*|\})_(?![\w{])")
    found = {match[0] for each in written for match in unmarked.finditer(each)}
    assert found == {"make_"}  # how CUDA's own make_float2 begins


def test_no_macro_of_a_program_has_a_name_that_is_put_into_its_text():
    written = re.compile(r"::cudalab::(?!cudalab_)(\w+)")
    folder = Path(program.__file__).parent
    found = {name for file in folder.rglob("*.py") for name in written.findall(file.read_text())}
    # These stand behind the program's text, where its macros are no longer defined.
    assert found == {"AddLoops", "BlockLauncher", "OneRow"}


def test_no_memory_has_two_names_in_a_program(tmp_path):
    """A compiler takes two names for two objects: it may read one before it writes the other."""
    for field in ("thread_idx", "block_idx", "block_dim", "grid_dim"):
        source = Path(tmp_path, f"{field}.cu")
        text = f"__global__ void k(int* p) {{ *p = ::cudalab::current.{field}.x; }} int main() {{}}"
        source.write_text(text, encoding="utf-8")
        with pytest.raises(Exception, match=f"no member named .{field}"):
            executable([str(source)], "cpu")


def test_variables_get_other_names_at_one_place_only():
    renamed = re.compile(r"^.*\bextern\b(?! \"C\")[^(;]*__asm__.*$", re.MULTILINE)
    found = {
        path.name: matches
        for path in sorted(RUNTIME.rglob("*"))
        if path.suffix in (".h", ".cuh", ".cpp")
        and (matches := renamed.findall(path.read_text(encoding="utf-8")))
    }
    assert list(found) == ["runtime.h"]
    assert len(found["runtime.h"]) == 1


# Indices outside of shared arrays that a compiler finds out: it adds them to the array's place.
FAR = """
__global__ void k(int* out, int n) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x, value = 0;
    s[t] = t;
    __syncthreads();
    if (t + 1 <= 0) s[t] = n;  // never
    if (t == 0 && n == %s) value = s[t - 1];
    if (n == 99) out[0] = value;
    out[t] = s[63 - t];
}
"""


SIGNED = """
__global__ void before(int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    if (t == 0) out[0] = s[t - 2];
}
__global__ void extern_before(int* out) {
    extern __shared__ int d[];
    int t = threadIdx.x;
    if (t == 0) out[1] = d[t - 1];
}
"""


def test_an_index_far_outside_of_a_shared_array_is_no_error_of_the_linker(tmp_path):
    printed = both_ways(tmp_path, FAR % 6, "64")
    assert printed == "cudaSuccess: " + " ".join(f"{i}={63 - i}" for i in range(63))


def test_an_index_just_before_a_shared_array_is_found(tmp_path):
    """An unsigned index before the first element is one far behind the array."""
    source = tmp_path / "program.cu"
    others = "before<<<1, 64>>>(out);\n    extern_before<<<1, 64, 256>>>(out);\n    k<<<"
    text = f"#include <cstdio>\n{FAR % 5}{SIGNED}{(MAIN % 64).replace('k<<<', others)}"
    source.write_text(text, encoding="utf-8")
    done = cudalab("run", "--device", "cpu", "--sanitize", "--json", "-", source, text=True)
    found = json.loads(done.stdout[done.stdout.index("{") :])
    errors = {row["code"]: row for row in found["findings"] if not row["note"]}
    signed = errors.pop("if (t == 0) out[0] = s[t - 2];")
    dynamic = errors.pop("if (t == 0) out[1] = d[t - 1];")
    (unsigned,) = errors.values()
    assert {row["kind"] for row in (signed, dynamic, unsigned)} == {"out_of_bounds"}
    assert (signed["buffer"], signed["beyond"]) == ("s", -8)
    assert (dynamic["space"], dynamic["beyond"]) == ("shared", -4)
    assert (unsigned["line"], unsigned["detail"]) == (9, "index 4294967295 of the array s[64]")
    assert found["lines_observed"] == 5  # the crash ends k at its second one
    assert not found["not_looked_at"]


def test_a_loop_that_does_not_end_is_not_left(tmp_path):
    """C++ lets a compiler take for granted that such loops end; CUDA does not."""
    source = tmp_path / "program.cu"
    kernel = "__global__ void k(int* out, int n) { while (n) n |= 1; out[0] = 1; }"
    source.write_text(f"#include <cstdio>\n{kernel}\n{MAIN % 1}", encoding="utf-8")
    binary = executable([str(source)], "cpu")
    for way in "10":
        own = {**os.environ, "CUDALAB_LOOPS": way}
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([binary], env=own, timeout=1, check=True)
    for flags in (kernel_flags(), check_flags(), PROGRAM, PART):
        assert "-fno-finite-loops" in flags


# What copies of an argument do, and what becomes of it in a thread and on the host.
COPIES = """
int copies, ends;
struct Value {
    int* p;
    int n = 7;
    Value() { cudaMallocManaged(&p, sizeof *p); *p = 1; }
    Value(const Value& other) : n(other.n) { cudaMallocManaged(&p, sizeof *p); *p = ++copies; }
    ~Value() { cudaDeviceSynchronize(); cudaFree(p); ends++; }
};
__global__ void plain(Value v, int* out) { if (threadIdx.x == 0) out[0] += v.n * 10 + *v.p; v.n++; }
__global__ void meeting(Value v, int* out) {
    if (threadIdx.x == 1) v.n++;
    __syncthreads();
    atomicAdd(out, v.n);
}
template <class T>
__global__ void of_template(T v, int* out) { if (threadIdx.x == 0) out[0] += v.n++ * 10 + *v.p; }
int main() {
    int* out;
    cudaMallocManaged(&out, 64);
    *out = 0;
    const Value v;
    auto show = [&](const char* name) {
        cudaError_t error = cudaDeviceSynchronize();
        printf("%s %s %d %d %d\\n", name, cudaGetErrorName(error), *out, copies, ends);
        *out = copies = ends = 0;
    };
    plain<<<1, 64>>>(v, out); show("plain");
    meeting<<<1, 64>>>(v, out); show("meeting");
    of_template<<<1, 64>>>(v, out); show("deduced");
    of_template<Value><<<1, 64>>>(v, out); show("named");
    void (*pointer)(Value, int*) = plain;
    pointer<<<1, 64>>>(v, out); show("pointer");
}
"""


def test_arguments_are_copied_on_the_host_once(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(f"#include <cstdio>\n{COPIES}", encoding="utf-8")
    binary = executable([str(source)], "cpu")
    for way in "10":
        status, printed, messages = outcome(binary, way)
        assert (status, messages) == (0, "")
        assert printed.splitlines() == [
            "plain cudaSuccess 71 1 1",
            f"meeting cudaSuccess {64 * 7 + 1} 1 1",
            "deduced cudaSuccess 71 1 1",
            "named cudaSuccess 71 1 1",
            "pointer cudaSuccess 71 1 1",
        ]


def test_a_kernel_that_is_called_without_a_configuration_is_refused(tmp_path):
    source = tmp_path / "program.cu"
    text = """__global__ void k(int* p) {}
int main() {
    int* d = nullptr;
    k<<<1, 1>>>(d);
    k(d);
}
"""
    source.write_text(text, encoding="utf-8")
    with pytest.raises(KernelCompileError) as caught:
        executable([str(source)], "cpu")
    assert "program.cu:5: error: a __global__ function call must be configured" in str(caught.value)
    source.write_text(text.replace("    k(d);\n", ""), encoding="utf-8")
    assert outcome(executable([str(source)], "cpu"), "1") == (0, "", "")


def test_the_host_finds_a_function_that_alone_is_of_the_mathematical_library(tmp_path):
    source = tmp_path / "angles.cu"
    source.write_text(
        "#include <cmath>\n#include <cstdio>\n"
        "__global__ void k(float* out) { *out = sinf(*out) + cosf(*out); }\n"
        "int main(int count, char**) {\n"
        "    const float x = count / 2.0f;\n"
        '    printf("%.6f %.6f\\n", sinf(x), cosf(x));\n'
        "}\n",
        encoding="utf-8",
    )
    done = cudalab("run", "--device", "cpu", str(source))
    assert done.stdout == b"0.479426 0.877583\n", done.stderr


def test_a_macro_launches_templates_that_its_parameters_name(tmp_path):
    source = tmp_path / "macro.cu"
    source.write_text(
        "#include <cstdio>\n"
        "template <class T> __global__ void set(T* p, T v) { p[threadIdx.x] = v; }\n"
        "template <class T, int N> __global__ void add(T* p, T v) { p[threadIdx.x] += v * N; }\n"
        "#define BOTH(first, second, type, number, least) \\\n"
        "    first<type><<<1, number>>>(d, 2); \\\n"
        "    if (least < number && number > (3)) second<type, 3><<<1, number>>>(d, 1);\n"
        "int main() {\n"
        "    float *d, h[4];\n"
        "    cudaMalloc(&d, sizeof h);\n"
        "    BOTH(set, add, float, 4, 2)\n"
        "    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);\n"
        '    printf("%g %g\\n", h[0], h[3]);\n'
        "}\n",
        encoding="utf-8",
    )
    done = cudalab("run", "--device", "cpu", str(source))
    assert done.stdout == b"5 5\n", done.stderr


def test_functions_without_a_value_are_returned_in_loops_too(tmp_path):
    source = tmp_path / "handed.cu"
    source.write_text(
        "#include <cstdio>\n"
        "__device__ void add(int* p, int v) { p[threadIdx.x] += v; }\n"
        "__device__ void meet(int* p, int v) {\n"
        "    __shared__ int s[64];\n"
        "    s[threadIdx.x] = v + threadIdx.x;\n"
        "    __syncthreads();\n"
        "    return add(p, s[63 - threadIdx.x]);\n"
        "}\n"
        "__device__ void one(int* p, int v) {\n"
        "    if (v > 100) return add(p, 1);\n"
        "    __syncthreads();\n"
        "    return meet(p, v);\n"
        "}\n"
        "__global__ void k(int* p, int v) {\n"
        "    one(p, v);\n"
        "    __syncthreads();\n"
        "    if (threadIdx.x == 3) return add(p, 1000);\n"
        "    return add(p, v);\n"
        "}\n"
        "int main() {\n"
        "    int *d, h[64];\n"
        "    cudaMalloc(&d, sizeof h);\n"
        "    cudaMemset(d, 0, sizeof h);\n"
        "    k<<<1, 64>>>(d, 5);\n"
        "    k<<<1, 64>>>(d, 200);\n"
        "    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);\n"
        '    for (int each : h) printf("%d ", each);\n'
        "}\n",
        encoding="utf-8",
    )
    said = cudalab("run", "--device", "cpu", "--tier", str(source)).stdout
    assert said == b"k: loops over the threads of a block\n"
    done = cudalab("run", "--device", "cpu", str(source))
    shared = [5 + 63 - i + 1 for i in range(64)]
    own = [2000 if i == 3 else 205 for i in range(64)]
    assert [int(word) for word in done.stdout.split()] == [*map(int.__add__, shared, own)]
