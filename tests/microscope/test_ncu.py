"""Nsight Compute: its installation found, a case as a command, a report as a trace."""

from __future__ import annotations

import sys

import pytest
from traced import FILE

from cudalab.backends.trace import Access, Place
from cudalab.errors import NoDeviceError
from cudalab.microscope import ncu

# Reports -----------------------------------------------------------------------------------------


class Metric:
    """A counter as ncu_report gives it."""

    def __init__(self, value=None, by_address=None):
        self.value, self.by_address = value, by_address or {}

    def as_double(self):
        return self.value

    def as_string(self):
        return self.value

    def num_instances(self):
        return len(self.by_address)

    def correlation_ids(self):
        return Addresses(list(self.by_address))

    def as_uint64(self, i):
        return list(self.by_address.values())[i]


class Addresses(list):
    def as_uint64(self, i):
        return self[i]


class Info:
    def __init__(self, file, line):
        self.file_name, self.line = (lambda: file), (lambda: line)


SASS = {
    0: "      LDG.E R2, desc[UR4][R2.64] ",
    16: "@!P0 STS.128 [R5], R2 ",
    32: "      BAR.SYNC.DEFER_BLOCKING 0x0 ",
    48: "@P1   BRA 0x7f ",
    64: "      IADD3 R1, R1, 1, RZ ",
}
METRICS = {
    "launch__grid_dim_x": Metric(2.0),
    "launch__block_dim_x": Metric(64.0),
    "device__attribute_display_name": Metric("a GPU"),
    "inst_executed": Metric(by_address={0: 4, 16: 4, 32: 4, 48: 4, 64: 4}),
    "thread_inst_executed_true": Metric(by_address={0: 128, 16: 64, 64: 128}),
    ncu.SECTORS: Metric(by_address={0: 64}),
    ncu.IDEAL_SECTORS: Metric(by_address={0: 16}),
    ncu.WAVEFRONTS: Metric(by_address={16: 32}),
    ncu.IDEAL_WAVEFRONTS: Metric(by_address={16: 16}),
    ncu.DIVERGENT: Metric(by_address={48: 1}),
    ncu.UNIFORM: Metric(by_address={48: 3}),
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": Metric(100.0),
    "smsp__sass_thread_inst_executed_op_integer_pred_on.sum": Metric(300.0),
}


class Action:
    """A launch as ncu_report gives it."""

    def name(self):
        return "reduce_blocks"

    def metric_by_name(self, name):
        return METRICS.get(name)

    def source_info(self, pc):
        return Info(f"/somewhere/{FILE}", 30 + pc // 16) if pc != 64 else None

    def sass_by_pc(self, pc):
        return SASS[pc]


class Report:
    def num_ranges(self):
        return 1

    def num_actions(self):
        return 1

    def range_by_idx(self, _):
        return self

    def action_by_idx(self, _):
        return Action()


def test_a_report_of_ncu_becomes_a_trace():
    (launch,) = ncu.traces(Report(), [FILE])
    assert (launch.kernel, launch.grid, launch.block) == ("reduce_blocks", (2, 1, 1), (64, 1, 1))
    assert (launch.blocks_traced, launch.warps_traced) == (2, 4)
    load, store = launch.accesses
    assert (load.place, load.space, load.kind) == (Place(FILE, 30), "global", "load")
    assert (load.requests, load.lanes, load.sectors, load.ideal_sectors) == (4, 128, 64, 16)
    assert (store.space, store.bytes_per_lane, store.wavefronts) == ("shared", 16, 32)
    assert (store.conflict_degree_max, store.conflict_degree_mean) == (2, 2.0)
    (branch,) = launch.branches
    assert (branch.executions, branch.divergent) == (4, 1)
    assert launch.barriers == {Place(FILE, 32): 2}
    assert launch.operations == {"float": 200, "integer": 300}
    assert ncu.device_name(Report()) == "a GPU"


def test_copies_of_a_line_are_one_access():
    place = Place(FILE, 31)
    found = [
        Access(
            place=place,
            space="shared",
            kind="load",
            bytes_per_lane=width,
            requests=requests,
            lanes=32 * requests,
            wavefronts=wavefronts,
            ideal_wavefronts=ideal,
            conflict_degree_max=worst,
            conflict_degree_mean=mean,
        )
        for width, requests, wavefronts, ideal, worst, mean in (
            (4, 10, 20, 10, 2, 2.0),
            (16, 5, 20, 20, 1, 1.0),
            (4, 30, 30, 30, 1, 1.0),
        )
    ]
    narrow, wide = ncu._together(found)
    assert (narrow.requests, narrow.lanes, narrow.wavefronts) == (40, 1280, 50)
    assert (narrow.conflict_degree_max, narrow.conflict_degree_mean) == (2, 1.25)
    assert (wide.bytes_per_lane, wide.requests) == (16, 5)


def test_an_asynchronous_copy_loads_and_stores():
    counts = {ncu.EXECUTED: 4, ncu.LANES: 128, ncu.SECTORS: 64, ncu.WAVEFRONTS: 16}
    copy = ncu.Instruction("LDGSTS.E.BYPASS.128 [R7], desc[UR6][R2.64]", Place(FILE, 31))
    copy.counts.update(counts)
    load, store = ncu._accesses(copy)
    assert (load.space, load.kind, load.sectors, load.wavefronts) == ("global", "load", 64, 0)
    assert (store.space, store.kind, store.sectors, store.wavefronts) == ("shared", "store", 0, 16)
    assert load.bytes_per_lane == store.bytes_per_lane == 16


def test_names_of_instructions():
    assert ncu.opcode("@!PT LDS.U.128 R4, [R0]") == ("LDS", ".U.128")
    assert ncu.opcode("ATOMS.POPC.INC.32 RZ, [R2]")[0] == "ATOMS"
    assert ncu.opcode("") == ("", "")


# Finding the tool --------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine's folders: nothing on PATH, a toolkit, and a place for installations."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(ncu.nvcc, "find_nvcc", lambda: tmp_path / "cuda" / "bin" / "nvcc")
    monkeypatch.setattr(ncu, "INSTALLATIONS", tmp_path / "opt")
    monkeypatch.setattr(ncu.sys, "modules", {**sys.modules})  # each test imports its own reader
    ncu.sys.modules.pop("ncu_report", None)
    return tmp_path


def tool(path, version=""):
    """A script that says which version it starts, as the one in a toolkit's bin."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = f"NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {version}.0 (build 1)"
    path.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def reader(folder):
    """An installation's module, which says where it comes from."""
    module = folder / "extras" / "python" / "ncu_report.py"
    module.parent.mkdir(parents=True)
    module.write_text(f"name = {folder.name!r}\n", encoding="utf-8")


@pytest.mark.usefixtures("machine")
def test_without_ncu_the_reason_is_told():
    with pytest.raises(NoDeviceError, match="no Nsight Compute"):
        ncu.find_ncu()


def test_ncu_on_path_comes_before_the_toolkits_and_that_before_the_newest(machine):
    (machine / "opt").mkdir()
    tool(machine / "opt" / "2025.9.0" / "ncu")
    newest = tool(machine / "opt" / "2025.10.0" / "ncu")
    assert ncu.find_ncu() == newest
    beside = tool(machine / "cuda" / "bin" / "ncu")
    assert ncu.find_ncu() == beside
    on_path = tool(machine / "bin" / "ncu")
    assert ncu.find_ncu() == on_path


def test_a_reader_that_is_not_there(machine):
    with pytest.raises(NoDeviceError, match="is not beside it"):
        ncu.load_reader(tool(machine / "cuda" / "bin" / "ncu", "2025.3.1"))


def test_the_reader_beside_the_program(machine):
    reader(machine / "opt" / "2025.3.1")
    reader(machine / "opt" / "2026.1.0")
    found = ncu.load_reader(tool(machine / "opt" / "2025.3.1" / "ncu", "2025.3.1"))
    assert found.name == "2025.3.1"


@pytest.mark.parametrize(
    ("version", "folder"),
    [("2025.3.1", "2025.3.1"), ("", "2025.10.0")],  # the newest, where ncu does not say its own
)
def test_the_reader_of_a_toolkits_script(machine, version, folder):
    for name in ("2024.3.2", "2025.3.1", "2025.10.0"):
        reader(machine / "opt" / name)
    reader(machine / "cuda" / "nsight-compute-2025.2.0")
    found = ncu.load_reader(tool(machine / "cuda" / "bin" / "ncu", version))
    assert found.name == folder


def test_the_reader_in_the_toolkits_folder(machine):
    reader(machine / "cuda" / "nsight-compute-2025.2.0")
    found = ncu.load_reader(tool(machine / "cuda" / "bin" / "ncu", "2025.2.0"))
    assert found.name == "nsight-compute-2025.2.0"
