"""The features that the CPU device lacks, and where a program uses them.

MISSING is the only list of their names; a feature that is added is removed from it. A program is
refused with one line that lists everything it lacks, each with the first place that needs it.
"""

import re
from dataclasses import KW_ONLY, dataclass

from cudalab.backends.cpu.compiler import cccl
from cudalab.backends.cpu.compiler.flags import has_header
from cudalab.errors import NoDeviceError
from cudalab.program import spelling


@dataclass(frozen=True)
class Feature:
    """A feature, and the signs by which a program shows that it needs it."""

    name: str
    _: KW_ONLY
    headers: str = ""  # how the names of its headers begin
    others: str = ""  # the same, of headers that a machine may have
    names: str = ""  # names that nothing else has; their mere use is enough
    unknown: str = ""  # names that other things may have, too; they count if no compiler knows them
    linked: str = ""  # the same of functions that are declared, but that no file defines


# Regular expressions. The first feature that fits is named.
MISSING = (
    Feature("this part of cuBLASLt", unknown=r"cublasLt\w*|CUBLASLT\w*"),
    Feature("cuBLASXt", headers=r"cublasXt", unknown=r"cublasXt\w*"),
    Feature("cuBLAS's old interface", headers=r"cublas\.h"),
    Feature("this part of cuBLAS", unknown=r"cublas\w*"),
    Feature("cuFFT", headers=r"cufft", unknown=r"cufft\w*"),
    Feature("cuSPARSE", headers=r"cusparse", unknown=r"cusparse\w*"),
    Feature("cuSOLVER", headers=r"cusolver", unknown=r"cusolver\w*"),
    Feature("this part of cuRAND", headers=r"curand", unknown=r"curand\w*"),
    Feature("cuDNN", headers=r"cudnn", unknown=r"cudnn\w*"),
    Feature("cuTENSOR", headers=r"cutensor", unknown=r"cutensor\w*"),
    Feature("CUTLASS", headers=r"cutlass/"),
    Feature("CuTe", headers=r"cute/"),
    Feature("NPP", headers=r"npp", names=r"nppi\w+"),
    Feature("nvJPEG", headers=r"nvjpeg", names=r"nvjpeg\w+"),
    Feature("NVRTC", headers=r"nvrtc", names=r"nvrtc[A-Z]\w*"),
    Feature("nvJitLink", headers=r"nvJitLink", names=r"nvJitLink\w*"),
    Feature("this part of NVTX", headers=r"nvToolsExt|nvtx3/", unknown=r"nvtx\w*"),
    Feature("NVML", headers=r"nvml\.h", names=r"nvml[A-Z]\w*"),
    Feature("NCCL", others=r"nccl", names=r"nccl[A-Z]\w*"),
    Feature("this part of tensor cores", unknown=r"nvcuda|wmma"),
    Feature("small floating point", headers=r"cuda_fp[468]", names=r"__nv_fp[468]\w*"),
    Feature(
        "OpenGL",
        headers=r"cuda_gl_interop|cudaGL",
        others=r"GL/|GLFW/|glad/",
        names=r"cudaGL\w*|cudaGraphicsGL\w*|gl[A-Z]\w+Buffers?",
        linked=r"gl(?:u|ut|ew|fw|X)?[A-Z]\w+|gladLoad\w+",
    ),
    Feature("EGL", headers=r"cuda_egl|cudaEGL", others=r"EGL/", names=r"cu(?:da)?EGL\w*"),
    Feature("VDPAU", headers=r"cuda_vdpau|cudaVDPAU"),
    Feature("Direct3D", headers=r"cuda_d3d", others=r"d3d1"),
    Feature("Vulkan", others=r"vulkan/"),
    Feature("graphics interoperation", names=r"cudaGraphics\w*"),
    Feature("NvSci", headers=r"nvsci|cudla", names=r"NvSci\w*"),
    Feature("external memory", names=r"cuda(?:Import)?External\w*"),
    Feature("MPI", others=r"mpi\.h", names=r"MPI_[A-Z]\w*"),
    Feature("Boost", others=r"boost/"),
    Feature("OpenMP with this compiler", others=r"omp\.h"),
    Feature("this part of CUDA graphs", unknown=r"cuda(?:Graph|UserObject)\w*"),
    Feature("memory shared between processes", names=r"cu(?:da)?Ipc\w*"),
    Feature(
        "modules of the driver interface",
        names=r"cu(?:Module|Link|Library|Func)[A-Z]\w*|cuLaunch\w*Kernel\w*|CU(?:module|function)",
    ),
    Feature(
        "this part of the driver interface",
        headers=r"cudaTypedefs",
        unknown=r"cu[A-Z]\w+|CU[a-z]\w+",
    ),
    Feature("thread block clusters", names=r"__cluster_dims__|this_cluster|cluster_group"),
    Feature("this part of memory pools", unknown=r"cudaMemPool\w*"),
)
# CCCL's parts, which are missing unless it is installed.
_CCCL = (("thrust/", "Thrust"), ("cub/", "CUB"), ("", "libcu++"))
# The names of many courses' own headers, such as cuda_check.h, begin as NVIDIA's do.
_CUDA_HEADER = re.compile(
    r"cuda(?:\.h|/|rt_|Typedefs|(?:D3D\d*|EGL|GL|VDPAU|Profiler)(?:Typedefs)?\.h|_(?:awbarrier|bf16"
    r"|compat|(?:d3d\d+|egl|gl|vdpau)_interop|device_runtime|fp\d|occupancy|pipeline|profiler_api"
    r"|runtime|stdint|(?:surface|texture)_types))"
    r"|cu(?:b/|blas|fft|rand|sparse|solver|Complex|pti|file|dnn|tensor|tlass/|te/)|thrust/"
    r"|nv(?:/|rtc|ml\.h|jpeg|tx|Tools|cuvid|vm|blas|JitLink|fatbin|PTX)|npp|mma\.h"
    r"|sm_\d|crt/|cooperative_groups|(?:channel|driver|device|surface|texture|vector|library)_\w+\.h"
)
_CUDA_SPACE = re.compile(r"cooperative_groups|cg|cuda|nvcuda|thrust|cub")


class Lacking:
    """The features a program lacks, each with the name that gives it away and its place."""

    def __init__(self) -> None:
        """Start empty."""
        self._places: dict[str, str] = {}
        self.hint = ""

    def __bool__(self) -> bool:
        """Whether anything is missing."""
        return bool(self._places)

    def add(self, feature: str, place: str, name: str = "") -> None:
        """Record the first place that needs a feature."""
        if not any(known.partition(": ")[0] == feature for known in self._places):
            self._places[f"{feature}: {name}" if name else feature] = place

    def add_header(self, header: str, place: str) -> None:
        """Record an #include of a missing header that is NVIDIA's or belongs to a feature."""
        if _is_own(header):
            return None
        if cccl.is_part(header):
            library = next(name for prefix, name in _CCCL if header.startswith(prefix))
            self.hint = cccl.why_missing()
            return self.add(library if self.hint else f"<{header}>", place)
        for feature in MISSING:
            if _begins(feature.headers, header) or _begins(feature.others, header):
                return self.add(feature.name, place)
        if _CUDA_HEADER.match(header) and not spelling.close_header(header):
            self.add(header, place)
        return None

    def add_name(self, name: str, place: str, space: str = "") -> None:
        """Record a name unknown to the compiler that is CUDA's or in one of CUDA's namespaces."""
        for feature in MISSING:
            if re.fullmatch(f"{feature.names}|{feature.unknown}", name):
                return self.add(feature.name, place, name)
        if spelling.is_cuda_name(name):
            if not spelling.meant(name) and not spelling.is_barrier(name):
                self.add(name, place)
        elif _CUDA_SPACE.match(space):
            self.add(f"{space}::{name}", place)
        return None

    def add_linked(self, name: str, place: str) -> None:
        """Record a function that no file defines, if it belongs to a feature."""
        for feature in MISSING:
            if feature.linked and re.fullmatch(feature.linked, name.partition("(")[0]):
                self.add(feature.name, place, name.partition("(")[0])

    def error(self) -> NoDeviceError:
        """The error that lists everything."""
        each = ", ".join(f"{what} ({place})" for what, place in self._places.items())
        return NoDeviceError(f"not supported on the CPU device: {each}", hint=self.hint or None)


def is_cuda_header(name: str) -> bool:
    """Whether a header is one of CUDA's."""
    return bool(_CUDA_HEADER.match(name) and not _is_own(name)) or has_header(name)


def _is_own(header: str) -> bool:
    """Whether a header is a program's own: NVIDIA's with this ending are in folders."""
    return header.endswith(".cuh") and "/" not in header


def is_missing_header(name: str) -> bool:
    """Whether a header is one of NVIDIA's that the CPU device lacks."""
    if _is_own(name) or has_header(name) or (cccl.is_part(name) and cccl.has(name)):
        return False
    return bool(_CUDA_HEADER.match(name)) or any(_begins(each.headers, name) for each in MISSING)


def _begins(pattern: str, name: str) -> bool:
    return bool(pattern and re.match(pattern, name))
