"""Check mode: two compilers report the same, and the parts that need none."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from instrumented import COMPILERS, forget_compiler, profiled, use

from cudalab.backends.cpu.check import CheckDevice, spread
from cudalab.backends.cpu.check.rows import FINDINGS
from cudalab.backends.cpu.compiler import commands
from cudalab.backends.cpu.compiler.toolchain import run
from cudalab.backends.trace import Finding, Place, Thread, merge_findings
from cudalab.checker.submit.program import copy_runtime
from cudalab.language import source
from cudalab.program import runtime
from cudalab.program.files import Part, gather
from cudalab.program.observed import build
from cudalab.system import elf
from cudalab.system.cache import cache_dir


def test_blocks_are_spread_over_the_grid():
    assert spread(1, 10) == [0]
    assert spread(2, 10) == [0, 9]
    assert spread(4, 10) == [0, 3, 6, 9]
    assert spread(10, 10) == list(range(10))


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZZ13reduce_blocksE6values", "values"),
        ("_ZZ12reduce_blockILj256EEffE11warp_values", "warp_values"),
        ("_ZZ1kE4tile_0", "tile"),
        ("_ZZ1kE3E2x_0", "E2x"),
        ("_ZL4tile", "tile"),
        ("tile", "tile"),
    ],
)
def test_names_of_shared_arrays(symbol, name):
    assert elf.source_name(symbol) == name


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("total", "total"),
        ("_ZL5total", "total"),
        ("_ZN5outer5totalE", "total"),
        ("_ZZ2k4PiE1c", "c"),
        ("_ZZN1A1kEiE5total_0", "total"),
        ("_Z5partsIiE", "parts"),
        ("_ZN1SIiE5totalE", "total"),
        ("_ZN1SILi8E3FooE4lastE", "last"),
        ("_ZZ1kI3FooLi12EEvT_S1_E4seen", "seen"),
        ("_Z3a1b", "a1b"),
    ],
)
def test_the_last_name_of_a_mangled_one(mangled, name):
    assert elf.last_name(mangled) == name


def test_findings_are_merged():
    one = Finding(
        "race",
        "k",
        Place("f", 1),
        Thread((0, 0, 0), (1, 0, 0)),
        buffer="b",
        other_place=Place("f", 2),
    )
    known = [one]
    merge_findings(known, [one])
    assert [f.count for f in known] == [2]
    across = replace(one, thread=Thread((0, 0, 0), (40, 0, 0)), missing="__syncthreads")
    for order in permutations([replace(one, missing="__syncwarp"), across]):
        known = []
        merge_findings(known, list(order))
        assert known == [replace(across, count=2)]  # the barrier that cures both
    late = Finding("uninitialised", "k", Place("f", 2), Thread((0, 0, 0), (0, 0, 0)), buffer="b")
    merge_findings(known, [late])
    assert [f.kind for f in known] == ["race"]


def test_an_error_is_left_out_only_where_another_one_explains_it():
    at, thread = Place("f", 1), Thread((0, 0, 0), (1, 0, 0))
    forms = [
        Finding(kind, "k", at, thread, buffer=buffer, other_place=other, detail=detail, note=note)
        for kind in sorted(set(FINDINGS))
        for buffer in (None, "b")
        for other in (None, at)
        for detail in ("", "index 4 of an array of type int[4]")
        for note in (False, True)
    ]
    for pair in product(forms, repeat=2):
        known: list[Finding] = []
        merge_findings(known, list(pair))
        assert known
        assert all(f.note for f in known) == all(f.note for f in pair), pair


@pytest.mark.parametrize(
    ("lab", "variant", "n"),
    [
        ("reduce", "unrolled_last_warp", 3000),
        ("reduce", "single_pass", 10_000),
        ("scan", "blelloch_padded", 3000),
        ("scan", "decoupled_lookback", 20_000),
        ("histogram", "warp_tagged", 3000),
        ("histogram", "per_thread_64", 3000),
        ("transpose", "tiled", 70),
        ("matmul", "tiled", 40),
        ("radixsort", "digit_4bit", 5000),
    ],
)
def test_compilers_agree_and_right_kernels_are_clean(monkeypatch, lab, variant, n):
    seen = []
    for name in COMPILERS:
        use(name, monkeypatch)
        device = profiled(lab, variant, n, detect=True)
        assert [f for f in device.findings if not f.note] == []
        seen.append((list(map(alike, device.traces)), device.findings))
    monkeypatch.undo()
    forget_compiler()
    assert seen[0] == seen[1]


def alike(trace):
    """A trace but for what compilers may do otherwise.

    One may turn two loads of a line round; one leaves a function at its last brace, one before.
    """
    accesses = tuple(replace(access, addresses=()) for access in trace.accesses)
    branches = tuple(replace(branch, lines=()) for branch in trace.branches)
    return replace(trace, accesses=accesses, branches=branches)


def test_a_damaged_cache_entry_is_built_again(tmp_path, monkeypatch):
    copy_runtime(tmp_path, check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_dir.cache_clear()
    try:
        assert profiled("transpose", "naive", 40).traces
        for path in [path for path in tmp_path.rglob("*.so") if "check" in path.name]:
            half = path.with_name("half")
            half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            half.replace(path)
        assert profiled("transpose", "naive", 40).traces
    finally:
        cache_dir.cache_clear()


@pytest.mark.parametrize("is_damaged", [True, False])
def test_only_a_damaged_header_is_removed(tmp_path, monkeypatch, is_damaged):
    """A compiler that crashes on something else leaves it for those that follow."""
    monkeypatch.setattr(commands, "cache_dir", tmp_path.joinpath)
    header = tmp_path / "observed-1" / "cudalab_program.h.gch"
    header.parent.mkdir()
    header.touch()
    crashes = f"[ ! -e '{header}' ]" if is_damaged else "false"
    command = f"{crashes} || {{ echo 'internal compiler error' >&2; exit 1; }}"
    made = str(tmp_path / "kernel.o")
    failed = commands.compile_all([("sh", "-c", command, "-I", str(header.parent), "-o", made)])
    assert bool(failed) == (not is_damaged)
    assert [path.name for path in header.parent.iterdir()] == [header.name] * (not is_damaged)


def test_a_program_is_instrumented_with_the_precompiled_header(tmp_path, monkeypatch):
    file = tmp_path / "sets.cu"
    file.write_text("__global__ void set(int* out) { *out = 1; }\nint main() {}\n")
    seen, run_all = [], commands.run_all
    monkeypatch.setattr(commands, "run_all", lambda each: seen.extend(each) or run_all(each))
    options = ["-DOWN=1", f"-I{tmp_path}"]
    part = Part(files=gather([str(file)], []), sources=1, options=options)
    build.library([part])
    words = next(command for command in seen if "-S" in command)
    with_options = words[: words.index("-S")]
    (tmp_path / "text.cpp").write_text('#include "cudalab_program.h"\n')
    done = run((*with_options, "-H", "-fsyntax-only", str(tmp_path / "text.cpp")))
    assert f"! {runtime.files(check=True)[-1]}" in done.stderr


@pytest.mark.parametrize("name", COMPILERS)
def test_files_are_named_as_the_source_says(tmp_path, monkeypatch, name):
    """Absolute and relative labels, with and without a folder."""
    use(name, monkeypatch)
    file = tmp_path / "own kernel.cu"
    file.write_text('extern "C" __global__ void set(int *out) {\n    out[threadIdx.x] = 1;\n}\n')
    for label in (str(file), "own kernel.cu", "kernels/own kernel.cu"):
        with CheckDevice(detect=False, count=True) as device:
            module = device.compile(source.load(file, label), {})
            device.launch(module["set"], 1, (8, 4), device.empty(32, np.int32))
        (access,) = device.traces[0].accesses
        assert access.place == Place(label, 2)
    monkeypatch.undo()
    forget_compiler()


def test_a_thread_of_a_plane_is_named_by_its_coordinates(tmp_path):
    file = tmp_path / "own.cu"
    file.write_text(
        'extern "C" __global__ void overrun(int *out) {\n'
        "    const unsigned t = threadIdx.y * blockDim.x + threadIdx.x;\n"
        "    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;\n"
        "    out[block * 32 + t] = 1;\n}\n"
    )
    with CheckDevice(detect=True, count=False) as device:
        module = device.compile(source.load(file, "own.cu"), {})
        device.launch(module["overrun"], (2, 3), (8, 4), device.empty(32 * 6 - 1, np.int32))
    (finding,) = device.findings
    assert finding.thread == Thread((1, 2, 0), (7, 3, 0))
    assert (finding.buffer, finding.index) == ("out", 191)
