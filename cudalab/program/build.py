"""Building programs, cached by the content of all their files.

To start a program that was built before, only the name of its binary is needed.
"""
# ruff: noqa: PLC0415 - a program that is cached must start at once

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.backends import facts
from cudalab.backends.choice import device_for
from cudalab.backends.cpu import blas, cccl, parts
from cudalab.backends.cpu.flags import GCC_PROGRAM, PROGRAM, for_programs, with_users
from cudalab.backends.cpu.key import cached
from cudalab.backends.cpu.toolchain import compiler_identity, find_compiler
from cudalab.output.progress import stage
from cudalab.program.files import IN_C, File, Part, gather, is_for_host
from cudalab.program.options import folders_of, libraries_of
from cudalab.system.cache import explain_full_disk

if TYPE_CHECKING:
    from cudalab.program.loops import Preprocessor, Ways

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
    gathered = gather(files, folders_of(options))
    binary = binary_for(gathered, options, device)
    if not binary.exists():
        from cudalab.program import openmp

        part = Part(files=gathered, sources=len(files), options=openmp.added(gathered, options))
        (build_with_nvcc if facts(device).nvcc else build_for_cpu)(part, binary)
    if facts(device).on_host:
        blas.provide(file.text for file in gathered)
    return binary


def binary_for(files: Sequence[File], options: Sequence[str], device: str) -> Path:
    """The path of the program's binary in the cache; it may not exist yet."""
    parts: list[str | bytes] = [device, *options]
    for file in files:
        parts += [file.label, file.text]
    for library in libraries_of(options):
        status = os.stat(library)  # noqa: PTH116 - pathlib is slow to start with
        parts += [library, f"{status.st_size} {status.st_mtime_ns}"]
    if facts(device).on_host:
        parts += [cccl.identity(file.text for file in files), *with_users(PROGRAM)]
        parts.append(compiler_identity())
    else:
        parts += [*NVCC_FLAGS, _graphics_cards(), os.environ.get("NVCC_APPEND_FLAGS", "")]
    return cached("programs", Path(files[0].path).stem, *parts)


def _graphics_cards() -> str:
    """The models of the GPUs, which binaries are compiled for."""
    models = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            models += [line for line in path.read_text().splitlines() if line.startswith("Model")]
        except OSError:
            continue
    return "\n".join(models)


# On the CPU device --------------------------------------------------------------------------------


@explain_full_disk()
def build_for_cpu(part: Part, to: Path) -> None:
    """Rewrite all files and compile the sources with the host's compiler."""
    from cudalab.program import runtime
    from cudalab.program.messages import explain

    compiler = find_compiler()
    with tempfile.TemporaryDirectory(prefix="build-", dir=to.parent) as name:
        folder = Path(name)
        made = runtime.plain(parts.used(part.texts))
        objects, ways = compile_sources(part, folder, runtime=made.folder)
        with stage("compiling the runtime, once") as known:
            objects += made.finish(lambda done, total: known.reach(done, total, "parts"))
        binary = folder / "program"
        done = compiler.link(binary, [*objects, *part.host.link], shared=False)
        if done.returncode:
            raise explain(done.stderr, part.files)
        ways.store(to)
        binary.replace(to)


def compile_sources(
    part: Part, folder: Path, *, runtime: Path, more: Sequence[str] = ()
) -> tuple[list[str], Ways]:
    """Rewrite all files and compile the sources to objects in a folder.

    The compiler finds the precompiled header in `runtime`, and gets `more` options. Returns the
    objects, and how each kernel runs.
    """
    from cudalab.program.loops import Preprocessor
    from cudalab.program.runtime import PRECOMPILED

    compiler, names = find_compiler(), part.names
    macros = folder / "macros"
    macros.write_text(part.host.macros, encoding="utf-8")
    own = [*with_users(PROGRAM), *part.flags]
    flags = [*own, *(() if "clang" in compiler.version() else GCC_PROGRAM)]
    flags += ["-I", str(runtime), *for_programs(), *cccl.flags(part.texts, compiler.version())]
    flags += ["-include", PRECOMPILED, "-include", str(macros)]
    objects = [str(folder / name) + ".o" for name in names[: part.sources]]
    commands = {}
    for i, (name, compiled) in enumerate(zip(names, objects, strict=False)):
        path, renamed = folder / name, f"-ffile-prefix-map={folder / name}={part.files[i].label}"
        of_cuda = [*compiler.compile, *flags, *more, renamed, "-c", str(path), "-o", compiled]
        on_host = [*part.host_command(i, compiled, _rewritten_c(part, i, folder)), *more]
        commands[name] = on_host if i in part.for_host else of_cuda
    read = [*compiler.compile, *own, "-include", str(macros)]
    by = Preprocessor(read, [*compiler.compile, *flags], folder / "read", part.host.macros)
    with stage(f"compiling {part.files[0].label}"):
        return objects, _compile(part.files, names, commands, runtime, by)


def _rewritten_c(part: Part, index: int, folder: Path) -> str:
    """The path of a file in C that throws results of CUDA away, rewritten; or nothing."""
    from cudalab.program.unchecked import rewritten_c

    file = part.files[index]
    text = rewritten_c(file.text, file.path) if file.is_c and index in part.for_host else None
    if text is None or not IN_C.search(file.text):
        return ""
    path = folder / f"{index}-rewritten.c"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return str(path)


def _compile(
    files: Sequence[File],
    names: Sequence[str],
    commands: dict[str, list[str]],
    runtime: Path,
    by: Preprocessor,
) -> Ways:
    """Rewrite the files and run the commands, one for each source; how the kernels will run."""
    from cudalab.backends.cpu.regions import blamed
    from cudalab.program import loops
    from cudalab.program.messages import Refused
    from cudalab.program.parsed import ONLY_LAUNCHED
    from cudalab.program.rewrite import edited

    def compiled(texts: list[str], *more: str) -> str:
        for name, text in zip(names, texts, strict=True):
            path = by.folder.parent / name
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return _run_compilers([[*each, *more] for each in commands.values()], runtime)

    def made() -> tuple[list[str], Ways, list[str]]:
        parsed = edited(files, names, refused=refused.places, whole_tiles=not refused.messages)
        texts = [each.rewritten(ONLY_LAUNCHED) for each in parsed]
        ways = loops.add(parsed, names, sources, by, of_loops)
        return texts, ways, [each.rewritten(ONLY_LAUNCHED) for each in parsed]

    sources = [i for i in range(len(commands)) if not is_for_host(files, i)]
    refused, of_loops = Refused(files), dict[str, str]()
    while True:
        plain, ways, texts = made()
        refused.other(plain)
        failed = compiled(texts)
        of_program = compiled(plain, "-fsyntax-only") if failed and ways.any_loops else failed
        while failed and not of_program:
            if not ways.any_loops:  # the assembler refuses the program
                of_program = failed
                break
            of_loops |= blamed(failed, ways.places)
            _, ways, texts = made()
            failed = compiled(texts)
        if not failed:
            return ways
        refused.add(of_program)


def _run_compilers(commands: Sequence[Sequence[str]], runtime: Path) -> str:
    """Run the commands, which may read the precompiled header; the errors of those that fail."""
    from cudalab.backends.cpu.compiler import reads_damage, without_damaged
    from cudalab.backends.cpu.gathers import carefully
    from cudalab.program.runtime import PRECOMPILED, run_all

    attempt = partial(carefully, commands, run_all, bool)
    failed = attempt()
    if reads_damage(failed):
        header = runtime / f"{PRECOMPILED}.gch"
        failed = without_damaged([header], attempt, str)
    if "internal compiler error" in failed:  # g++ 12.2 for ARM, at a maximum of doubles
        failed = run_all([[*each, "-fno-tree-loop-vectorize"] for each in commands])
    return failed


# With nvcc ----------------------------------------------------------------------------------------


@explain_full_disk()
def build_with_nvcc(part: Part, to: Path) -> None:
    """Compile the unchanged files with nvcc."""
    from cudalab.backends.cuda.nvcc import find_nvcc, rejection
    from cudalab.program.runtime import run_all

    nvcc, files, options = find_nvcc(), part.files, part.options
    with tempfile.TemporaryDirectory(prefix="build-", dir=to.parent) as folder:
        binary = str(Path(folder, "program"))
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
        command += [*(file.path for file in files[: part.sources]), "-o", binary]
        with stage(f"nvcc compiles {files[0].label}"):
            failed = run_all([command])
            if "requires separate compilation mode" in failed:  # a kernel launches another one
                failed = run_all([[*command, "-rdc=true"]])
        if failed:
            raise rejection(files[0].label, failed)
        Path(binary).replace(to)
