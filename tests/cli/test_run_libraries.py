"""`cudalab run`: programs that use NVIDIA's libraries."""

import signal
from pathlib import Path

import pytest
from whole_programs import OWN, cudalab, run, with_lines

from cudalab.backends.cpu.compiler import cccl, flags

pytestmark = pytest.mark.xdist_group("run")  # whose worker compiles each program once


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
    assert (
        f"{source.name}:13: cublasSscal: the memory allocated at {source.name}:6 ends 4 bytes"
        in said[0]
    )
    assert f"{source.name}:14: cudaErrorIllegalAddress: cublasSscal:" in said[1]
    assert "is host memory" in said[1]


# NVIDIA's libraries -------------------------------------------------------------------------------


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


@with_lines  # of the program, from which Thrust's own code was called
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


# Failures of `run` itself: exit status 125 --------------------------------------------------------


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


LITERALS = r"""
#include <cuda.h>
#include <cstdio>
#include <cstring>
__global__ void tell(const char **where) { *where = "a word of the kernel"; }
int main() {
    const char **where;
    cudaMallocManaged(&where, sizeof *where);
    tell<<<1, 1>>>(where);
    cudaDeviceSynchronize();
    CUdeviceptr base;
    size_t bytes;
    printf("%d ", cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)*where));  // without cuInit
    char text[64];
    printf("%d ", cudaMemcpy(text, (char *)base, bytes, cudaMemcpyDeviceToHost));
    printf("%s ", text);
    printf("%d ", cudaMemcpy(text, (char *)base, bytes + 1, cudaMemcpyDeviceToHost));
    printf("%d ", cudaMemcpy(text, "another", 8, cudaMemcpyDeviceToHost));
    printf("%d", cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)text));
}
"""


def test_a_literal_of_a_kernel_is_copied_as_the_driver_describes_it(tmp_path):
    program = tmp_path / "literals.cu"
    program.write_text(LITERALS)
    done = run(str(program), "cpu")
    assert done.stdout.decode() == "0 0 a word of the kernel 1 1 1"


OVERLAP = r"""
#include <cuda.h>
#include <cstdio>
int main() {
    cudaDeviceProp device;
    int engines, overlap;
    cudaGetDeviceProperties(&device, 0);
    cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, 0);
    cuInit(0);
    cuDeviceGetAttribute(&overlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 0);
    printf("%d %d %d %d", device.deviceOverlap, device.asyncEngineCount, engines, overlap);
}
"""


def test_programs_about_streams_do_not_end_for_want_of_a_copy_engine(tmp_path):
    program = tmp_path / "overlap.cu"
    program.write_text(OVERLAP)
    assert run(str(program), "cpu").stdout == b"1 1 1 1"


SIDES = r"""
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/transform.h>
#include <cstdio>
struct Side {
    __host__ __device__ int operator()(int x) const {
#ifdef __CUDA_ARCH__
        return x + 10;
#else
        return x + 20;
#endif
    }
};
int main() {
    thrust::host_vector<int> host(1, 1);
    thrust::device_vector<int> device(1, 1);
    thrust::transform(host.begin(), host.end(), host.begin(), Side());
    thrust::transform(device.begin(), device.end(), device.begin(), Side());
    const int on_device = device[0];
    printf("%d %d %d", host[0], on_device, Side()(1));
}
"""


def test_what_thrust_does_on_the_device_sees_its_architecture(tmp_path):
    need_cccl("cpu")
    program = tmp_path / "sides.cu"
    program.write_text(SIDES)
    done = run(str(program), "cpu")
    assert done.stdout == b"21 11 21", done.stderr.decode()


HELPED = """\
{device}
0 {flags} 0
{options}
pgm 0
64 64 128 128 128 Turing Ada Hopper
  Device 0: <          Ampere >, Compute SM 8.0 detected
3 -3 1
1 0
helpers.cu

error: sdkFindFilePath: file <nonesuch.zzz> not found!
1
0
1 1 3
0
cudaErrorInvalidValue
"""


@pytest.mark.parametrize(
    ("arguments", "device", "flags", "options"),
    [
        ([], "", "0 0", "0 0 0 null 0 -1"),
        (["-Verbose", "--n=7", "-f=2.5", "-name=ab", "-d=1.25"], "", "1 1", "7 2.5 1 ab 1 1"),
        (["-device=0", "-x"], "0", "0 0", "0 0 0 null 0 -1"),
        (["-device=9"], "9", "", ""),
    ],
)
def test_headers_of_samples(arguments, device, flags, options):
    """What the program prints with NVIDIA's own headers."""
    done = cudalab("run", "--device", "cpu", "helpers.cu", "--", *arguments, cwd=OWN)
    heads = {
        "": 'GPU Device 0: "Ampere" with compute capability 8.0\n',
        "0": 'gpuDeviceInit() CUDA Device [0]: "Ampere',
    }
    expected = HELPED.format(device=heads.get(device), flags=flags, options=options)
    assert done.stdout.decode() == (expected if device in heads else "exiting...\n")
    assert done.returncode == 1
    words = "CUDA error at helpers.cu:" if device in heads else "1 CUDA capable GPU device(s)"
    assert words in done.stderr.decode()


VECTORS = r"""
#include <cstdio>
#include "helper_math.h"
__host__ __device__ void fill(float4 *out) {
    const float3 a = make_float3(1, 2, 2), b = make_float3(make_float2(0, -3), 4.f);
    float4 v = make_float4(cross(a, b), dot(a, b));
    v += make_float4(2.5f);
    out[0] = v;
    out[1] = make_float4(normalize(a) * 3.f, length(a));
    out[2] = make_float4(lerp(a, b, 0.5f)) - 1.f;
    out[3] = make_float4(make_int4(clamp(make_int3(-5, 2, 9), 0, 7), 6));
    out[4] = make_float4(fmaxf(-b, a) / make_float3(2.f), fracf(-1.25f));
    out[5] = make_float4(reflect(b, make_float3(0, 1, 0)), smoothstep(0.f, 2.f, 1.f));
    out[6] = make_float4(make_uint4(make_uint3(7u) * 3u - 1u, min(2, 3)));
}
__global__ void k(float4 *out) { fill(out); }
int main() {
    float4 *out, h[7];
    cudaMallocManaged(&out, sizeof h);
    k<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    fill(h);
    for (int i = 0; i < 7; ++i) {
        printf("%g %g %g %g\n", out[i].x, out[i].y, out[i].z, out[i].w);
        if (length(h[i] - out[i]) > 1e-6f) printf("the host has another one\n");
    }
}
"""


def test_arithmetic_of_samples_with_vectors(tmp_path):
    source = tmp_path / "vectors.cu"
    source.write_text(VECTORS)
    done = cudalab("run", "--device", "cpu", str(source))
    assert done.stdout.decode().splitlines() == [
        "16.5 -1.5 -0.5 4.5",
        "1 2 2 3",
        "-0.5 -1.5 2 -1",
        "0 2 7 6",
        "0.5 1.5 1 0.75",
        "0 3 4 0.5",
        "20 20 20 2",
    ], done.stderr.decode()


@pytest.mark.skipif(cccl.installed() is None, reason="needs Thrust's headers")
def test_policies_of_thrust_come_with_its_algorithms(tmp_path):
    source = tmp_path / "sorted.cu"
    source.write_text(
        "#include <thrust/device_vector.h>\n#include <thrust/sort.h>\nint main() {\n"
        "    int host[3] = {4, 3, 2}; thrust::sort(thrust::host, host, host + 3);\n"
        "    thrust::device_vector<int> all(host, host + 3);\n"
        "    thrust::sort(thrust::device, all.begin(), all.end(), thrust::greater<int>());\n"
        "    return 10 * host[0] + all[0];\n}\n"
    )
    assert cudalab("run", "--device", "cpu", str(source)).returncode == 24


def test_headers_of_samples_are_named(tmp_path):
    source = tmp_path / "user.cu"
    source.write_text("#include <cstdio>\n#include <helper_cuda.h>\nint main() {}\n")
    done = cudalab("run", "--device", "cpu", str(source))
    said = "user.cu:2: no helper_cuda.h of NVIDIA's samples here: cudalab brings its own\n"
    assert done.stderr.decode().endswith(said)
    (tmp_path / "helper_cuda.h").write_text('#error "of the program"\n')
    assert (
        b"of the program"
        in cudalab("run", "--device", "cpu", "-I", str(tmp_path), str(source)).stderr
    )


def test_headers_that_mean_the_same_as_that_of_the_runtime(tmp_path):
    folder = Path(flags.CUDA_RUNTIME).parent / "aliases"
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h*"))
    assert {"sm_61_intrinsics.h", "crt/device_functions.h"} < set(names)
    source = tmp_path / "headers.cu"
    source.write_text(
        "".join(f"#include <{name}>\n" for name in names)
        + "__global__ void k(int *p) { *p = __dp4a(0x01020304, 0x01010101, 5); }\n"
        "int main() { int *p; cudaMallocManaged(&p, 4); k<<<1, 1>>>(p);"
        " return cudaDeviceSynchronize() + *p; }\n"
    )
    assert cudalab("run", "--device", "cpu", str(source)).returncode == 15
