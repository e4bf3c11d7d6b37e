"""Nsight Compute: the counters of a real GPU, by source line, in the classes of trace.py.

`ncu` runs `cudalab LAB` once for each variant and writes a report. The `ncu_report` module that
comes with it reads the counters of each machine instruction and the source line it belongs to.
docs/profile.md lists the counters.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

from cudalab.backends.cuda import nvcc
from cudalab.backends.trace import Access, Branch, Kind, LaunchTrace, Place, Space
from cudalab.errors import CudalabError, ExitCode, NoDeviceError
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.language import source
from cudalab.microscope import profile, subject

INSTALLATIONS = Path("/opt/nvidia/nsight-compute")  # a folder for each version
MAX_LAUNCHES = 200  # of a variant: each is run again for every group of counters
# Counters of each instruction.
EXECUTED = "inst_executed"  # by warps
LANES = "thread_inst_executed_true"  # by lanes whose condition holds
WAVEFRONTS = "memory_l1_wavefronts_shared"
IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared_ideal"
SECTORS = "memory_l2_theoretical_sectors_global"
IDEAL_SECTORS = "memory_l2_theoretical_sectors_global_ideal"
DIVERGENT = "smsp__branch_targets_threads_divergent"
UNIFORM = "smsp__branch_targets_threads_uniform"
BY_INSTRUCTION = (
    EXECUTED,
    LANES,
    WAVEFRONTS,
    IDEAL_WAVEFRONTS,
    SECTORS,
    IDEAL_SECTORS,
    DIVERGENT,
    UNIFORM,
)
# Counters of a launch, with the number of operations of each executed instruction.
OPERATIONS = {
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": (kind, count)
    for name, kind, count in (
        ("fadd", "float", 1),
        ("fmul", "float", 1),
        ("ffma", "float", 2),
        ("dadd", "double", 1),
        ("dmul", "double", 1),
        ("dfma", "double", 2),
        ("integer", "integer", 1),
    )
}
SHAPE = tuple(f"launch__{of}_dim_{axis}" for of in ("grid", "block") for axis in "xyz")
DEVICE_NAME = "device__attribute_display_name"
ASYNCHRONOUS = "LDGSTS"  # cp.async
# The machine's instructions that access memory, the longest names first.
_MEMORY: tuple[tuple[str, Space, Kind], ...] = (
    ("ATOMS", "shared", "atomic"),
    ("ATOMG", "global", "atomic"),
    ("ATOM", "global", "atomic"),
    ("RED", "global", "atomic"),
    (ASYNCHRONOUS, "global", "load"),  # and a store to shared memory
    ("LDG", "global", "load"),
    ("LDS", "shared", "load"),
    ("STG", "global", "store"),
    ("STS", "shared", "store"),
    ("LD", "global", "load"),
    ("ST", "global", "store"),
)
_WARP_OPERATIONS = ("SHFL", "VOTE", "MATCH", "REDUX", "WARPSYNC")
_BRANCHES = ("BRA", "BRX", "JMP", "JMX", "EXIT")
_OPCODE = re.compile(r"^\s*(?:@!?U?P\w+\s+)?(?P<name>[A-Z][A-Z0-9]*)(?P<rest>[\w.]*)")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


# The tool ----------------------------------------------------------------------------------------


def find_ncu() -> Path:
    """Nsight Compute's command line: on PATH, beside nvcc, or the newest one installed.

    NoDeviceError without it.
    """
    for candidate in _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise NoDeviceError(
        "no Nsight Compute: ncu is not on PATH",
        hint="install it with the CUDA toolkit, or leave out --device cuda: the CPU device counts "
        "without a GPU",
    )


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which("ncu"):
        yield Path(on_path)
    with suppress(NoDeviceError):
        yield nvcc.find_nvcc().parent / "ncu"
    for folder in sorted(INSTALLATIONS.glob("*"), key=_numbers, reverse=True):
        yield folder / "ncu"


def load_reader(ncu: Path) -> Any:
    """The `ncu_report` module of this installation. NoDeviceError without it."""
    for folder in _reader_folders(ncu):
        if (folder / "ncu_report.py").is_file():
            sys.path.insert(0, str(folder))
            try:
                return importlib.import_module("ncu_report")
            except ImportError as error:
                raise NoDeviceError(f"{folder}: ncu_report does not load: {error}") from None
            finally:
                sys.path.remove(str(folder))
    raise NoDeviceError(
        f"{ncu}: ncu_report.py, which reads its reports, is not beside it",
        hint="install Nsight Compute whole: the module is in its extras/python",
    )


def _reader_folders(ncu: Path) -> Iterator[Path]:
    """Folders that may contain the module, the likeliest first.

    In a toolkit's bin `ncu` is a script that starts the program from a folder of its version:
    <toolkit>/nsight-compute-2025.3.1 or /opt/nvidia/nsight-compute/2025.3.1.
    """
    real = ncu.resolve()
    above = list(real.parents)[:3]
    installed = [
        *(folder for parent in above for folder in parent.glob("nsight-compute-*")),
        *INSTALLATIONS.glob("*"),
    ]
    own = version(ncu)
    ordered = sorted(
        installed, key=lambda folder: (_numbers(folder) == own, _numbers(folder)), reverse=True
    )
    yield from (folder / "extras" / "python" for folder in (*above, *ordered))


def _numbers(folder: Path) -> tuple[int, ...]:
    """The version in a folder's name."""
    return tuple(map(int, re.findall(r"\d+", folder.name)))


def version(ncu: Path) -> tuple[int, ...]:
    """The version that `ncu --version` prints, such as (2025, 3, 1); empty if it does not start."""
    try:
        done = subprocess.run([str(ncu), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    match = re.search(r"^Version (\d+)\.(\d+)\.(\d+)", done.stdout, re.MULTILINE)
    return tuple(map(int, match.groups())) if match else ()


def run(ncu: Path, metrics: Sequence[str], report: Path, command: Sequence[str]) -> None:
    """Run `command` under ncu, which writes `report`. CudalabError with ncu's own message."""
    words = [
        *(str(ncu), "--force-overwrite", "--export", str(report), "--target-processes", "all"),
        *("--clock-control", "none", "--cache-control", "none"),
        *("--launch-count", str(MAX_LAUNCHES), "--metrics", ",".join(metrics), *command),
    ]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode or not report.exists():
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        hint = None
        if "ERR_NVGPUCTRPERM" in output:
            hint = "the driver lets only administrators read counters: run it as root"
        raise CudalabError(f"ncu failed:\n{output}", hint)


# Reading a report --------------------------------------------------------------------------------


@dataclass
class Instruction:
    """One instruction of the machine code, and its counters."""

    sass: str
    place: Place
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def traces(report: Any, labels: Iterable[str]) -> list[LaunchTrace]:
    """The launches of a report that `ncu_report.load_report` has read."""
    labels = list(labels)
    return [_launch(action, labels) for action in actions(report)]


def actions(report: Any) -> Iterator[Any]:
    """The launches of a report, in order, as objects of `ncu_report`."""
    for number in range(report.num_ranges()):
        one = report.range_by_idx(number)
        yield from (one.action_by_idx(i) for i in range(one.num_actions()))


def device_name(report: Any) -> str:
    """The GPU of the first launch; empty without launches."""
    first = next(actions(report), None)
    metric = None if first is None else first.metric_by_name(DEVICE_NAME)
    return "" if metric is None else str(metric.as_string())


def _launch(action: Any, labels: Sequence[str]) -> LaunchTrace:
    executed = instructions(action, labels)
    grid = _dim(action, "grid")
    block = _dim(action, "block")
    blocks = grid[0] * grid[1] * grid[2]
    warps = -(-block[0] * block[1] * block[2] // 32)
    barriers: dict[Place, int] = defaultdict(int)
    warp_operations: dict[Place, int] = defaultdict(int)
    for one in executed:
        name = opcode(one.sass)[0]
        if name == "BAR":
            barriers[one.place] += one.counts[EXECUTED] // warps
        elif name in _WARP_OPERATIONS:
            warp_operations[one.place] += one.counts[EXECUTED]
    operations: dict[str, int] = defaultdict(int)
    for name, (kind, count) in OPERATIONS.items():
        operations[kind] += count * int(_value(action, name))
    return LaunchTrace(
        kernel=str(action.name()),
        grid=grid,
        block=block,
        blocks=blocks,
        blocks_traced=blocks,
        warps_traced=blocks * warps,
        accesses=_together(chain.from_iterable(map(_accesses, executed))),
        branches=tuple(filter(None, map(_branch, executed))),
        barriers=dict(barriers),
        warp_operations=dict(warp_operations),
        operations={kind: count for kind, count in operations.items() if count},
    )


def _dim(action: Any, of: str) -> tuple[int, int, int]:
    x, y, z = (int(_value(action, f"launch__{of}_dim_{axis}")) or 1 for axis in "xyz")
    return x, y, z


def _value(action: Any, name: str) -> float:
    metric = action.metric_by_name(name)
    return float(metric.as_double()) if metric is not None else 0.0


def instructions(action: Any, labels: Sequence[str]) -> list[Instruction]:
    """All instructions with a counter, in the order of their addresses."""
    by_address: dict[int, Instruction] = {}
    for name in BY_INSTRUCTION:
        metric = action.metric_by_name(name)
        if metric is None or not metric.num_instances():
            continue
        addresses = metric.correlation_ids()
        for i in range(metric.num_instances()):
            pc = int(addresses.as_uint64(i))
            if pc not in by_address:
                place = Place("", 0)
                if info := action.source_info(pc):
                    path = info.file_name()  # as messages have it, if it is one of ours
                    file = next((label for label in labels if path.endswith(label)), path)
                    place = Place(file, int(info.line()))
                by_address[pc] = Instruction(str(action.sass_by_pc(pc)), place)
            by_address[pc].counts[name] += int(metric.as_uint64(i))
    return [by_address[pc] for pc in sorted(by_address)]


def opcode(sass: str) -> tuple[str, str]:
    """An instruction's name and its modifiers, without a predicate."""
    match = _OPCODE.match(sass)
    return (match["name"], match["rest"]) if match else ("", "")


def memory_access(sass: str) -> tuple[Space, Kind, int] | None:
    """The memory that an instruction accesses, how, and the bytes per lane; None if it does not."""
    name, modifiers = opcode(sass)
    width = next((_WIDTHS[part] for part in modifiers.split(".") if part in _WIDTHS), 4)
    return next(((space, kind, width) for known, space, kind in _MEMORY if name == known), None)


def is_branch(sass: str) -> bool:
    """Whether the lanes of a warp may diverge at an instruction."""
    return opcode(sass)[0] in _BRANCHES


def _accesses(one: Instruction) -> Iterator[Access]:
    """The accesses of an instruction; an asynchronous copy is a load and a shared store."""
    accessed = memory_access(one.sass)
    if accessed is None or not one.counts[EXECUTED]:
        return
    yield _access(one, *accessed)
    if opcode(one.sass)[0] == ASYNCHRONOUS:
        yield _access(one, "shared", "store", accessed[2])


def _access(one: Instruction, space: Space, kind: Kind, width: int) -> Access:
    shared = space == "shared"
    wavefronts, ideal = one.counts[WAVEFRONTS], one.counts[IDEAL_WAVEFRONTS]
    mean = wavefronts / ideal if shared and ideal else 1.0 if shared else 0.0
    return Access(
        place=one.place,
        space=space,
        kind=kind,
        bytes_per_lane=width,
        requests=one.counts[EXECUTED],
        lanes=one.counts[LANES],
        sectors=0 if shared else one.counts[SECTORS],
        ideal_sectors=0 if shared else one.counts[IDEAL_SECTORS],
        wavefronts=wavefronts if shared else 0,
        ideal_wavefronts=ideal if shared else 0,
        conflict_degree_max=ceil(mean - 0.005) if shared else 0,  # the hardware adds up, no more
        conflict_degree_mean=mean,
    )


def _together(accesses: Iterable[Access]) -> tuple[Access, ...]:
    """One access for each line, memory, kind and width, which merges copies of a loop body."""
    same: dict[tuple[Any, ...], list[Access]] = defaultdict(list)
    for one in accesses:
        same[one.place, one.space, one.kind, one.bytes_per_lane].append(one)
    return tuple(map(profile.merged_access, same.values()))


def _branch(one: Instruction) -> Branch | None:
    divergent, uniform = one.counts[DIVERGENT], one.counts[UNIFORM]
    if not is_branch(one.sass) or not divergent + uniform:
        return None
    return Branch(
        place=one.place,
        executions=divergent + uniform,
        divergent=divergent,
        lanes_first=0,
        lanes_second=0,
    )


# The command's part ------------------------------------------------------------------------------


def on_cuda(
    lab: Lab,
    case: Case,
    variants: Sequence[Variant],
    data: subject.Data,
    folder: Path,
    own_file: Path | None = None,
) -> profile.Profile:
    """Run each variant under ncu, with reports and outputs in `folder`, and profile it."""
    ncu = find_ncu()
    reader = load_reader(ncu)
    shown = {axis: case[axis] for axis in lab.axes}
    result = profile.Profile(
        device="cuda",
        device_name="a GPU",
        banks=32,
        lab=lab.name,
        case=shown,
        input=data.words,
        items=lab.teaching.items(data.inputs, case),
        flops=lab.teaching.flops(data.inputs.params),
    )
    for variant in variants:
        chosen = ["--kernel", str(own_file)] if own_file else ["--variant", variant.name]
        command = [
            *(sys.executable, "-m", "cudalab", "--kernels", str(source.kernels_dir()), lab.name),
            *("--device", "cuda", *chosen, *lab.words(case)),
            *("-i", str(data.path), "-o", str(folder / "out.bin")),
        ]
        one = profile.VariantProfile(
            name=variant.name,
            summary=variant.summary,
            label=variant.label,
            order=variant.order,
            texts=subject.texts_of(source.load(variant.path, variant.label)),
        )
        report = folder / f"{len(result.variants)}.ncu-rep"
        try:
            run(ncu, [*BY_INSTRUCTION, *SHAPE, *OPERATIONS], report, command)
            loaded = reader.load_report(str(report))
            result.device_name = device_name(loaded) or result.device_name
            launches = traces(loaded, one.texts)
            one.kernels = profile.merged(launches)
            if len(launches) == MAX_LAUNCHES:
                result.notes.append(f"{variant.name}: only its first {MAX_LAUNCHES} launches")
        except CudalabError as error:
            one.failed, one.exit_code = error.message, int(ExitCode.ERROR)
        result.variants.append(one)
    return result
