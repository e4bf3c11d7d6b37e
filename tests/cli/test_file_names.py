"""Instruments see kernels in files of any name and encoding, and count lines as compilers do.

Compilers' listings escape bytes beyond ASCII in names.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from command import cudalab

from cudalab.language import source
from cudalab.language.source import unquoted

KERNEL = Path(__file__).parents[2] / "kernels" / "reduce" / "sequential.cu"
NAMES = ["лаба 1.cu", 'a"b.cu', r"a\b.cu"]
PROGRAM = """
__global__ void shifts(int* p) {
    p[threadIdx.x + 1] = 1;
}
int main() {
    int* p;
    cudaMalloc(&p, 32 * sizeof *p);
    shifts<<<1, 32>>>(p);
    cudaDeviceSynchronize();
    cudaFree(p);
}
"""


def test_names_in_listings_have_escapes():
    assert unquoted(r"/home/\320\273\320\260.cu") == "/home/ла.cu"
    assert unquoted(r"a\"b\\c.cu") == r'a"b\c.cu'
    assert unquoted("a b.cu") == "a b.cu"


@pytest.mark.parametrize("name", NAMES)
def test_programs(tmp_path, name):
    (tmp_path / name).write_text(PROGRAM)
    words = ("run", "--device", "cpu", "--sanitize", str(tmp_path / name))
    done = cudalab(*words)
    said = done.stderr.decode()
    assert done.returncode == 3, said
    assert f"{name}:3, element 32: just past the end of 'p'" in " ".join(said.split())
    assert "on 1 of 1 lines observed" in " ".join(said.split())


@pytest.mark.parametrize("name", [NAMES[0], os.fsdecode(b"caf\xe9.cu")])
def test_kernels_of_labs(tmp_path, name):
    """Also of files whose names are of no encoding, as from an archive of another system."""
    shutil.copy(KERNEL, tmp_path / name)
    done = cudalab("sanitize", "reduce", "--kernel", str(tmp_path / name), "--n", "3000")
    assert done.returncode == 0, done.stdout.decode()
    assert b"never written" not in done.stdout


def test_a_form_feed_does_not_end_a_line(tmp_path):
    assert source.lines_of("a\f\n\u2028b\x85\n\nc\n") == ["a\f", "\u2028b\x85", "", "c"]
    assert source.lines_of("") == []
    path, log = tmp_path / "pages.cu", tmp_path / "pages.sarif"
    path.write_text("// one\n\f\n// \u2028\n" + PROGRAM, encoding="utf-8")
    done = cudalab("run", "--device", "cpu", "--sanitize", "--sarif", str(log), str(path))
    assert "6 | p[threadIdx.x + 1] = 1;" in done.stderr.decode()
    (finding,) = json.loads(log.read_text())["runs"][0]["results"]
    region = finding["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["snippet"]["text"]) == (6, "p[threadIdx.x + 1]")


def test_comments_in_another_encoding(tmp_path):
    text = PROGRAM.replace("= 1;", "= 1;  // за границей")
    (tmp_path / "old.cu").write_text(text, encoding="cp1251")
    for mode, status in (("--sanitize", 3), ("--profile", 0)):
        done = cudalab("run", "--device", "cpu", mode, str(tmp_path / "old.cu"))
        assert done.returncode == status, done.stderr
        assert b"p[threadIdx.x + 1] = 1;" in done.stderr


def test_a_kernel_s_name_beyond_ascii_is_refused(tmp_path):
    (tmp_path / "a.cu").write_text(PROGRAM.replace("shifts", "сдвиг"))
    done = cudalab("run", "--device", "cpu", str(tmp_path / "a.cu"))
    assert done.returncode == 125
    assert b"line 2: the name of the kernel cannot be read" in done.stderr
    assert b"Traceback" not in done.stderr
