"""Hooks for objects that functions take and return in registers, on each kind of processor."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from cudalab.backends.cpu.assembly.hooks import with_hooks

PROGRAM = Path(__file__).parents[1] / "kernels" / "objects.cpp"
# A digit for each byte of the objects: how often it was accessed. There is padding behind 2 and
# behind 12 bytes; the last object has 3 bytes, and is read with the padding behind it.
WRITTEN = f"1100{'1' * 8}0000{'1' * 35}{'0' * 13}"
READ = f"1100{'1' * 8}0000{'1' * 40}{'0' * 8}"


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_each_byte_of_an_object_is_observed_once(processor, tmp_path):
    is_own = platform.machine() == processor
    compiler, emulator = "g++", []
    if not is_own:
        compiler = f"{processor}-linux-gnu-g++"
        emulator = [f"qemu-{processor}", "-L", f"/usr/{processor}-linux-gnu"]
    for tool in (compiler, *emulator[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine")
    listing, binary = tmp_path / "objects.s", tmp_path / "objects"
    options = ("-O0", "-std=c++17", "-fPIC", "-fno-omit-frame-pointer")
    command = [compiler, *options, "-fsanitize=thread", "-S", str(PROGRAM), "-o", str(listing)]
    subprocess.run(command, check=True)
    rows = with_hooks(listing.read_text().splitlines())
    listing.write_text("\n".join([*rows, ""]))
    subprocess.run([compiler, str(listing), "-o", str(binary)], check=True)
    done = subprocess.run([*emulator, str(binary)], capture_output=True, text=True, check=True)
    total, reads, writes = done.stdout.splitlines()
    assert total == "35"  # no register has changed
    assert reads.split() == [READ, "1" * 8]
    assert writes.split() == [WRITTEN, "1" * 8]
