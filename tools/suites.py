"""Run programs of others whose mistakes are known under cudalab's own sanitizer.

python -m tools.suites CLONES [SUITE | SUITE/PROGRAM]...    all that CLONES has, or these

CLONES is a folder of git repositories, named as in SUITES. Stores their verdicts, and nothing of
their code, in docs/results/sanitize; tools/generate.py makes a table of docs/profile.md of them.
What is stored when the tool is stopped, counts. The programs run as they are: read them first.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cudalab.microscope import findings
from tools import results
from tools.measure import COMMAND
from tools.sanitize import FOLDER, MACHINE, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.sanitize import Kinds

LIMIT_S = 300


@dataclass(frozen=True)
class Program:
    """A program of a suite, in a folder of its own, and what is known of it."""

    name: str
    truth: str  # "right", or what is wrong with it
    files: tuple[str, ...]
    _: KW_ONLY
    options: tuple[str, ...] = ()
    runs: tuple[tuple[str, ...], ...] = ((),)  # the arguments of each run


@dataclass(frozen=True)
class Suite:
    """A suite: its repository's part, and its programs in a copy of that."""

    title: str
    repository: str
    part: str
    about: str
    _: KW_ONLY
    programs: Callable[[Path], Iterator[Program]]


# GPUVerify: kernels without a host ---------------------------------------------------------------

ABOUT_GPUVERIFY = (
    "the kernels of `testsuite/CUDA` but for those about annotations, each with a host program "
    "that is made for it: at most 4 blocks of 1,024 threads, and three inputs (zeros, ones, small "
    "numbers that differ). A precondition that an input does not meet ends the kernel. What fails "
    "there may be an assertion, or a mistake that these inputs do not lead to; `refused` are "
    "those that are no CUDA for a compiler, such as calls of functions that nobody has declared"
)
# What its kernels say to the verifier means nothing to a compiler; preconditions hold.
ANNOTATIONS = """
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <type_traits>
#define __requires(condition) \\
    if (!(condition)) return
#define __invariant(...)
#define __global_invariant(...)
#define __ensures(...)
#define __assert(...)
#define __assume(condition) \\
    if (!(condition)) return
#define __requires_fresh_array(...)
"""
HOST = """
template <class T> struct Parameters;
template <class R, class First, class... More> struct Parameters<R (*)(First, More...)> {
    using first = First;
    using rest = R (*)(More...);
};
template <int i, class Kernel>
struct Argument : Argument<i - 1, typename Parameters<Kernel>::rest> {};
template <class Kernel> struct Argument<0, Kernel> {
    using type = typename Parameters<Kernel>::first;
};
static int input;
static int number(int i) { return input == 0 ? 0 : input == 1 ? 1 : (i * 7 + 3) % 64; }
static void* memory() {
    static int values[1 << 18];
    for (int i = 0; i < 1 << 18; i++) values[i] = number(i);
    void* made;
    cudaMalloc(&made, sizeof values);
    cudaMemcpy(made, values, sizeof values, cudaMemcpyHostToDevice);
    return made;
}
template <class T> T argument() {
    if constexpr (std::is_pointer_v<T>) {
        return (T)memory();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        return (T)number(4);
    } else {
        T made;
        for (size_t i = 0; i + 8 <= sizeof made && alignof(T) == 8; i += 8)
            *(void**)((char*)&made + i) = memory();
        for (size_t i = 0; i + 4 <= sizeof made && alignof(T) < 8; i += 4)
            *(int*)((char*)&made + i) = number(4);
        return made;
    }
}
int main(int, char** arguments) {
    input = atoi(arguments[1]);
"""
_KERNEL = re.compile(
    r"__global__\s+(?:static\s+|inline\s+)*void\s+(?:__\w+(?:\(.*?\))?\s+)*(\w+)\s*\("
)
_SIZE = {name: re.compile(rf"--{name}=\[?([\d,]+)") for name in ("blockDim", "gridDim")}


def gpuverify(folder: Path) -> Iterator[Program]:
    """The kernels of the suite, each behind a header and before a main function of its own."""
    for path in sorted(folder.rglob("kernel.cu")):
        name = path.parent.relative_to(folder / "testsuite/CUDA").as_posix()
        text = path.read_text("utf-8")
        first, options = [*text.splitlines(), "", ""][:2]
        if name.startswith("annotation_tests") or "_ERROR" in first.upper():
            continue
        right = first.lower().startswith("//pass")
        in_step = right and "warp-sync" in options
        host = path.with_name("program.cu")
        host.write_text(with_host(text, options), "utf-8")
        defines = tuple(re.findall(r"-D\S+", options))
        truth = "right, if warps move in step" if in_step else "right" if right else "fails"
        where = host.relative_to(folder).as_posix()
        yield Program(name, truth, (where,), options=defines, runs=(("0",), ("1",), ("2",)))


def with_host(text: str, options: str) -> str:
    """A kernel file with a main function that launches its kernels in the sizes of its options."""
    launches = "".join(
        f"    {name}<<<{shape(options, 'gridDim', 4)}, {shape(options, 'blockDim', 1024)}>>>("
        + ", ".join(f"argument<Argument<{i}, decltype(&{name})>::type>()" for i in range(count))
        + ");\n"
        for name, count in kernels(text)
    )
    main = f"{HOST}{launches}    cudaDeviceSynchronize();\n}}\n"
    return f'{ANNOTATIONS}#line 1 "kernel.cu"\n{text}{main}'


def kernels(text: str) -> Iterator[tuple[str, int]]:
    """The name of each kernel, and the number of its parameters."""
    for match in _KERNEL.finditer(text):
        end, depth, commas = match.end(), 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            commas += text[end] == "," and depth == 1
            end += 1
        is_empty = text[match.end() : end - 1].strip() in ("", "void")
        yield match[1], 0 if is_empty else commas + 1


def shape(options: str, name: str, most: int) -> str:
    """A grid or block of at most `most` items, as a dim3."""
    match = _SIZE[name].search(options)
    sizes = [int(each) for each in match[1].split(",") if each] if match else [1]
    for i, size in enumerate(sizes):
        sizes[i] = min(size, most)
        most //= sizes[i]
    return f"dim3({', '.join(map(str, sizes))})"


# Programs ----------------------------------------------------------------------------------------

NVIDIA = {
    "Memcheck/memcheck_demo": "out of bounds",
    "Racecheck/block_error": "race",
    "Racecheck/warp_error": "race",
    "Initcheck/memset_error": "uninitialised memory",
    "Synccheck/divergent_threads": "barrier",
    "Synccheck/illegal_syncwarp": "barrier",
    "Suppressions/suppressions_demo": "out of bounds",
    "Suppressions/suppressions_initcheck_demo": "uninitialised memory",
}


def nvidia(_: Path) -> Iterator[Program]:
    """The samples of compute-sanitizer that have a mistake."""
    for name, truth in NVIDIA.items():
        yield Program(name, truth, (f"{name}.cu",))


def scor(folder: Path) -> Iterator[Program]:
    """The micro-benchmarks: their names say whether they race."""
    for path in sorted((folder / "microbenchmarks/src").glob("*.cu")):
        truth = "right" if path.stem.startswith("norace") else "race"
        yield Program(path.stem, truth, (path.relative_to(folder).as_posix(),))


def beaver(folder: Path) -> Iterator[Program]:
    """The plain CUDA programs: the reference of each, and the start if it crashes or is wrong."""
    for instance in sorted((folder / "data").glob("cuda_*")):
        stated = json.loads((instance / "input.json").read_text("utf-8"))
        kind = json.loads((instance / "instance.json").read_text("utf-8"))["error_category"]
        build = stated["build_command"].split()
        if build[0] != "nvcc" or "&&" in build:
            continue
        testbench = instance / "testbench"
        wanted = {"reference": "right"}
        if kind in ("memory_crash", "logic_error"):
            wanted["broken_start"] = kind.replace("_", " ")
        for stem, truth in wanted.items():
            if (instance / f"{stem}.cu").exists():
                yield built(folder, instance, testbench, build, stem, truth)


def built(folder: Path, instance: Path, testbench: Path, build: list[str], *of: str) -> Program:
    """A program of the build command of an instance, with a solution of it."""
    stem, truth = of
    files: list[str] = []
    options: list[str] = []
    for before, word in zip(["", *build], build, strict=False):
        if word.endswith(".cu"):
            solution = word == "solution.cu"
            paths = [instance / f"{stem}.cu"] if solution else sorted(testbench.glob(word))
            files += [path.relative_to(folder).as_posix() for path in paths]
        elif before == "-I":
            options += ["-I", (testbench / word).relative_to(folder).as_posix()]
        elif word.startswith(("-std", "-D", "-l", "-I.")) and word != "-I":
            options.append(word)
    options += ["-I", testbench.relative_to(folder).as_posix()]
    name = f"{instance.name.removeprefix('cuda_')}/{stem}"
    return Program(name, truth, tuple(files), options=tuple(options))


SUITES = {
    "gpuverify": Suite(
        "GPUVerify",
        "mc-imperial/gpuverify",
        "testsuite/CUDA",
        ABOUT_GPUVERIFY,
        programs=gpuverify,
    ),
    "compute-sanitizer-samples": Suite(
        "NVIDIA's samples",
        "NVIDIA/compute-sanitizer-samples",
        ".",
        "those that have a mistake",
        programs=nvidia,
    ),
    "scor": Suite(
        "ScoR",
        "csl-iisc/ScoR",
        "microbenchmarks/src",
        "the micro-benchmarks. Found and blamed by racecheck counts; initcheck reports the "
        "exchange on fresh memory in five right ones",
        programs=scor,
    ),
    "cudabeaver": Suite(
        "CUDABeaver",
        "HaoyangChen23/CUDABeaver",
        "data",
        "the plain CUDA programs: the reference of each, which is right, and the start of those "
        "that crash or compute something wrong, which need not be what an instrument sees",
        programs=beaver,
    ),
}


# Running and storing -----------------------------------------------------------------------------


def copied(clone: Path, part: str, to: Path) -> str:
    """Unpack a part of a repository's newest commit, and name that."""
    head = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=clone)
    packed = subprocess.check_output(["git", "archive", "HEAD", part], cwd=clone)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(to, filter="data")
    return head.decode().strip()


def judged(program: Program, folder: Path) -> Kinds | None:
    """The findings in all runs of a program; None if it does not run under the instrument."""
    kinds: Kinds = []
    for arguments in program.runs:
        path = folder / "findings.json"
        path.unlink(missing_ok=True)
        words = ["run", "--device", "cpu", "--sanitize", "--json", str(path), *program.options]
        command = [*COMMAND, *words, *program.files, "--", *arguments]
        try:
            subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return None
        if not path.exists():
            return None
        found = findings.read(path)
        kinds += [(each.kind, each.note) for each in found.findings]
        kinds += [("ignored_failure", False) for _ in found.ignored]
    return kinds


def verdict(program: Program, kinds: Kinds | None, known: results.Json) -> results.Json:
    """What is stored of a program; what compute-sanitizer has said of it stays."""
    more = {"runs": len(program.runs), "compute_sanitizer": known.get("compute_sanitizer")}
    truth = "refused" if kinds is None else program.truth
    return row(program.name, truth, [kinds or []], **more)


def judge(clones: Path, key: str, only: str) -> None:
    """Judge the programs of a suite whose name is `only`, or all, and store each as it comes."""
    suite, path = SUITES[key], FOLDER / f"{key}.json"
    before: results.Json = results.read(path) if path.exists() else {"programs": [], "gpu": ""}
    rows = {each["name"]: each for each in before["programs"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commit = copied(clones / suite.repository.rpartition("/")[2], suite.part, folder)
        head = {
            "suite": suite.title,
            "source": f"{suite.repository}, commit `{commit}`, {suite.about}",
            "date": MACHINE()["date"],
            "commit": MACHINE()["commit"],
            "gpu": before["gpu"],
        }
        for program in suite.programs(folder):
            if only in ("", program.name):
                kinds = judged(program, folder)
                rows[program.name] = verdict(program, kinds, rows.get(program.name, {}))
                print(program.name, rows[program.name]["truth"], rows[program.name]["found"])
                results.write_rows(path, head, [rows[each] for each in sorted(rows)], "programs")


def main(clones: str, *chosen: str) -> None:
    """Judge the suites or programs that were chosen."""
    for each in chosen or SUITES:
        key, _, only = each.partition("/")
        if key not in SUITES:
            sys.exit(f"{key}: no suite; there are {', '.join(SUITES)}")
        judge(Path(clones), key, only)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
