"""Suites of programs whose mistakes are known: CUDABeaver, Indigo, NVIDIA's samples, ScoR."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from tools.suites.program import RIGHT, Program, Suite

NVIDIA = {
    "Memcheck/memcheck_demo": "out of bounds",
    "Racecheck/block_error": "race",
    "Racecheck/warp_error": "race",
    "Initcheck/memset_error": "uninitialised memory",
    "Synccheck/divergent_threads": "barrier",
    "Synccheck/illegal_syncwarp": "barrier",
    "Suppressions/suppressions_demo": RIGHT,  # asks for less memory until there is enough
    "Suppressions/suppressions_initcheck_demo": "uninitialised memory",
}
# References of CUDABeaver, by their number, with a mistake of their own.
MISTAKEN = {
    "1": "pointers that nobody has set",  # int *output, *input; both are used in the kernel
    "3": "pointers that nobody has set",  # the same
    "21": "race",  # blocks of another blockIdx.z compute and add to the same elements
    "26": "barrier",  # lanes of a mask that are not there
    # x % num where num is 0, in C++ undefined, and on a GPU a number, which is not used then.
    "151": "right, if a remainder by 0 is not used",
}
GRAPHS = tuple(f"../../input/{name}.egr" for name in ("DAG_100n_200e", "counterDAG_5n_5e"))


def nvidia(folder: Path) -> Iterator[Program]:
    """The samples of compute-sanitizer."""
    for name, truth in NVIDIA.items():
        yield Program(name, truth, (f"{name}.cu",), folder=folder)


def scor(folder: Path) -> Iterator[Program]:
    """The micro-benchmarks: their names say whether they race."""
    for path in sorted((folder / "microbenchmarks/src").glob("*.cu")):
        truth = RIGHT if path.stem.startswith("norace") else "race"
        yield Program(path.stem, truth, (path.name,), folder=path.parent)


def indigo(folder: Path) -> Iterator[Program]:
    """The irregular patterns: their names say what is wrong with them."""
    for path in sorted((folder / "indigo/indigo_sources").rglob("*.cu")):
        bounds, race = "boundsBug" in path.stem, "Bug" in path.stem
        truth = "out of bounds" if bounds else "race" if race else RIGHT
        # The graph, the threads of a block, the blocks.
        runs = ((GRAPHS[0], "256", "2"), (GRAPHS[1], "256", "2"), (GRAPHS[0], "64", "100"))
        options = ("-I", "../../indigo_include")
        yield Program(
            path.stem, truth, (path.name,), folder=path.parent, options=options, runs=runs
        )


def beaver(folder: Path) -> Iterator[Program]:
    """The plain CUDA programs: the reference of each, and the start if it crashes or is wrong."""
    for instance in sorted((folder / "data").glob("cuda_*")):
        stated = json.loads((instance / "input.json").read_text("utf-8"))
        kind = json.loads((instance / "instance.json").read_text("utf-8"))["error_category"]
        build = stated["build_command"].split()
        if build[0] != "nvcc" or "&&" in build:
            continue
        wanted = {"reference": MISTAKEN.get(instance.name.split("_")[1], RIGHT)}
        if kind in ("memory_crash", "logic_error"):
            wanted["broken_start"] = kind.replace("_", " ")
        for stem, truth in wanted.items():
            if (instance / f"{stem}.cu").exists():
                yield built(instance, build, stem, truth)


def built(instance: Path, build: list[str], stem: str, truth: str) -> Program:
    """A program of the build command of an instance, with a solution of it."""
    testbench = instance / "testbench"
    files: list[str] = []
    options: list[str] = []
    for before, word in zip(["", *build], build, strict=False):
        if word.endswith(".cu"):
            paths = [instance / f"{stem}.cu"] if word == "solution.cu" else testbench.glob(word)
            files += [os.path.relpath(path, testbench) for path in sorted(paths)]
        elif before == "-I":
            options += ["-I", word]
        elif word.startswith(("-std", "-D", "-l", "-I.")) and word != "-I":
            options.append(word)
    name = f"{instance.name.removeprefix('cuda_')}/{stem}"
    return Program(name, truth, tuple(files), folder=testbench, options=(*options, "-I", "."))


SUITES = {
    "compute-sanitizer-samples": Suite(
        "NVIDIA's samples",
        {"NVIDIA/compute-sanitizer-samples": "."},
        "all of them",
        programs=nvidia,
    ),
    "scor": Suite(
        "ScoR",
        {"csl-iisc/ScoR": "microbenchmarks/src"},
        "the micro-benchmarks. Found and blamed by racecheck counts; initcheck reports the "
        "exchange on fresh memory in five right ones",
        programs=scor,
    ),
    "cudabeaver": Suite(
        "CUDABeaver",
        {"HaoyangChen23/CUDABeaver": "data"},
        "the plain CUDA programs: the reference of each, which is right, and the start of those "
        "that crash or compute something wrong, which need not be what an instrument sees",
        programs=beaver,
    ),
    "indigo": Suite(
        "Indigo",
        {"JohnJacobsonIII/HiRace-Artifact-SC24": "indigo"},
        "all programs of `indigo_sources`, with the graphs DAG_100n_200e and counterDAG_5n_5e in 2 "
        "blocks of 256 threads, and with the first graph in 100 blocks of 64. compute-sanitizer: "
        "the programs with a race under racecheck, those out of bounds under memcheck, right ones "
        "with the first input under both, as many as the time on the GPU allowed",
        programs=indigo,
    ),
}
