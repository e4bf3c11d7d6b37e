"""Building programs, cached by the content of all their files.

To start a program that was built before, only the name of its binary is needed.
"""
# ruff: noqa: PLC0415 - a program that is cached must start at once

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cudalab.backends import device_for, facts
from cudalab.backends.cpu.compiler import cccl, flags, toolchain
from cudalab.output.progress import stage
from cudalab.program import runtime
from cudalab.program.files import Part, gather, with_openmp
from cudalab.program.options import folders_of, libraries_of

NVCC_FLAGS = (
    "-std=c++17",
    "-O3",
    "-lineinfo",
    "-arch=native",
    "--extended-lambda",
    "--expt-relaxed-constexpr",
)
# Headers of the toolkit that a program may include, and the libraries to link for them.
NVCC_LIBRARIES = {
    "cuda.h": "-lcuda",
    "cublas": "-lcublas",
    "cublasLt": "-lcublasLt",
    "curand.h": "-lcurand",
    "cufft": "-lcufft",
    "cusparse": "-lcusparse",
    "cusolver": "-lcusolver",
}


def executable(files: Sequence[str], device: str, options: Sequence[str] = ()) -> Path:
    """A program's executable, compiled with nvcc's `options` unless there is one already.

    `device` may be "auto": nvcc compiles the program if there is a GPU, else the CPU device.
    """
    device = device_for(device)
    part = Part(files=gather(files, folders_of(options)), sources=len(files), options=options)
    binary = toolchain.cached("programs", Path(files[0]).stem, *made_of(part, device))
    known = facts(device)
    if not binary.exists() and known.nvcc:
        build_with_nvcc(with_openmp(part), binary)
    elif not binary.exists():
        from cudalab.program.plain import build_program

        build_program(with_openmp(part), binary)
    if known.on_host:
        runtime.provide_blas(part.texts)
    return binary


def made_of(part: Part, device: str) -> list[str]:
    """What decides the binary: the device, the options, and the content of all files."""
    deciding = [device, *part.options]
    for file in part.files:
        deciding += [file.label, file.text]
    for library in libraries_of(part.options):
        status = os.stat(library)  # noqa: PTH116 - pathlib is slow to start with
        deciding += [library, f"{status.st_size} {status.st_mtime_ns}"]
    if facts(device).on_host:
        return [*deciding, cccl.identity(part.texts), *flags.with_users(flags.PROGRAM)]
    return [*deciding, *NVCC_FLAGS, _graphics_cards(), os.environ.get("NVCC_APPEND_FLAGS", "")]


def _graphics_cards() -> str:
    """The models of the GPUs, which binaries are compiled for."""
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            models += [line for line in path.read_text().splitlines() if line.startswith("Model")]
        except OSError:
            continue
    return "\n".join(models)


# With nvcc ----------------------------------------------------------------------------------------


def build_with_nvcc(part: Part, to: Path) -> None:
    """Compile the unchanged files with nvcc."""
    from cudalab.backends.cpu.compiler.commands import run_all
    from cudalab.backends.cpu.compiler.pipeline import build
    from cudalab.backends.cuda.nvcc import find_nvcc, rejection

    nvcc, files, options = find_nvcc(), part.files, part.options

    def make(folder: Path) -> Path:
        binary = folder / "program"
        taken = {option.partition("=")[0] for option in options}
        ours = [flag for flag in NVCC_FLAGS if flag.partition("=")[0] not in taken]
        if taken & {"-gencode", "-code"}:
            ours.remove("-arch=native")
        command = [str(nvcc), *ours, *options]
        if part.sources > 1:
            command.append("-rdc=true")  # device functions may be in other files
        for name, library in NVCC_LIBRARIES.items():
            if any(f"<{name}" in file.text or f'"{name}' in file.text for file in files):
                command.append(library)
        command += [*(file.path for file in files[: part.sources]), "-o", str(binary)]
        with stage(f"nvcc compiles {files[0].label}"):
            failed = run_all([command])
            if "requires separate compilation mode" in failed:  # a kernel launches another one
                failed = run_all([[*command, "-rdc=true"]])
        if failed:
            raise rejection(files[0].label, failed)
        return binary

    build(to, make)
