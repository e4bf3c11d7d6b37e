"""How nvcc is found, fed and understood, and the cache of what it made. Needs no GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cudalab.backends.cuda import nvcc
from cudalab.errors import KernelCompileError, NoDeviceError
from cudalab.language import source
from cudalab.system.cache import cache_dir

KERNELS = Path(__file__).parents[1] / "kernels"
FIXTURES = sorted(path for path in KERNELS.glob("*.cu") if path.name != "rejected.cu")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_dir.cache_clear()
    yield tmp_path / "cache"
    cache_dir.cache_clear()


@pytest.fixture(scope="module")
def compiler():
    try:
        return nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)


def executable(folder):
    folder.mkdir(parents=True)
    path = folder / "nvcc"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_where_nvcc_is_looked_for(tmp_path, monkeypatch):
    wheels = tmp_path / "site-packages"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path"))
    monkeypatch.setattr(nvcc, "SYSTEM_NVCC", tmp_path / "system" / "bin" / "nvcc")
    monkeypatch.setattr(nvcc, "_nvidia_packages", lambda: [wheels])
    with pytest.raises(NoDeviceError, match="no CUDA compiler") as caught:
        nvcc.find_nvcc()
    assert "cudalab[cuda]" in caught.value.hint
    for place in (  # each is preferred to those before it
        wheels / "cuda_nvcc" / "bin",
        wheels / "cu13" / "bin",
        tmp_path / "system" / "bin",
        tmp_path / "path" / "bin",
        tmp_path / "home" / "bin",
        tmp_path / "bin",
    ):
        path = executable(place)
        assert nvcc.find_nvcc() == path
    path.chmod(0o644)
    assert nvcc.find_nvcc() == tmp_path / "home" / "bin" / "nvcc"


def test_headers_of_older_wheels(tmp_path):
    (tmp_path / "cuda_runtime" / "include").mkdir(parents=True)
    old = tmp_path / "cuda_nvcc" / "bin" / "nvcc"
    assert nvcc.include_flags(old) == [f"-I{tmp_path / 'cuda_runtime' / 'include'}"]
    assert nvcc.include_flags(tmp_path / "cu13" / "bin" / "nvcc") == []


def test_defines_stand_behind_system_headers():
    text = """#line 1 "my.cu"
#include <cuda_fp16.h>
// #include <in_a_comment>
#if USE_MMA
#include <mma.h>
#endif
  #  include <cstdio>
T x;
"""
    assert nvcc.with_defines(text, {"T": "unsigned int", "N": 4}).splitlines() == [
        "#include <cuda_fp16.h>",
        "#  include <cstdio>",
        "#define T unsigned int",
        "#define N 4",
        *text.splitlines(),
    ]


def test_messages_name_places_as_other_compilers_do():
    messages = """my dir/my.cu(3): warning #177-D: variable "unused" was declared but never read
   int unused;
       ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

my (2).cu(14): error: identifier "x" is undefined
1 error detected in the compilation of "kernel.cu".
"""
    assert nvcc.readable(messages).splitlines() == [
        'my dir/my.cu:3: warning #177-D: variable "unused" was declared but never read',
        "   int unused;",
        "       ^",
        'my (2).cu:14: error: identifier "x" is undefined',
    ]


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ('a.cu(3): error: identifier "x" is undefined', KernelCompileError, "a.cu:3: error"),
        ("ptxas error   : Entry function 'f' uses too much shared data", KernelCompileError, "f"),
        (
            "gcc: not found\nnvcc fatal   : Failed to preprocess host compiler properties.",
            NoDeviceError,
            r"C\+\+ compiler on the host",
        ),
        (
            "host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later",
            NoDeviceError,
            "does not accept the host compiler",
        ),
        (
            "nvcc fatal   : Unsupported gpu architecture 'sm_52'",
            NoDeviceError,
            "cannot compile for the device",
        ),
        ("nvcc fatal   : Cannot open cicc", NoDeviceError, "does not work here"),
    ],
)
def test_whose_fault_it_is(messages, kind, words):
    error = nvcc.rejection("a.cu", messages)
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error


@pytest.mark.usefixtures("own_cache")
def test_cache(tmp_path):
    compiler = executable(tmp_path / "bin")
    key = nvcc.cache_key(compiler, "text", "sm_90")
    assert nvcc.cached(key) is None
    nvcc.store(key, b"cubin")
    assert nvcc.cached(key) == b"cubin"
    assert nvcc.cached(nvcc.cache_key(compiler, "text ", "sm_90")) is None
    assert nvcc.cached(nvcc.cache_key(compiler, "text", "sm_90a")) is None
    compiler.write_text("#!/bin/sh\n# another version\n")
    assert nvcc.cached(nvcc.cache_key(compiler, "text", "sm_90")) is None


def test_damaged_entries_are_not_used(own_cache):
    nvcc.store("key", b"cubin" * 100)
    (entry,) = own_cache.rglob("*.cubin")
    whole = entry.read_bytes()
    for length in (0, 1, 31, 32, 33, len(whole) - 1):
        entry.write_bytes(whole[:length])
        assert nvcc.cached("key") is None
    entry.write_bytes(b"C" + whole[1:])
    assert nvcc.cached("key") is None
    nvcc.store("key", b"cubin" * 100)
    assert entry.read_bytes() == whole
    assert list(entry.parent.iterdir()) == [entry]


@pytest.mark.usefixtures("own_cache")
def test_a_full_disk_is_no_error(monkeypatch):
    def fail(**_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nvcc.tempfile, "mkstemp", fail)
    nvcc.store("key", b"cubin")
    assert nvcc.cached("key") is None


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_kernels_of_the_tests_compile(compiler, path, tmp_path):
    text = nvcc.with_defines(source.load(path, path.name).text, {"T": "float", "FACTOR": 3})
    (tmp_path / "kernel.cu").write_text(text)
    command = [compiler, "-cubin", "-arch=sm_90", *nvcc.FLAGS, *nvcc.include_flags(compiler)]
    done = subprocess.run(
        [*command, "kernel.cu"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_rejected_kernel(compiler, tmp_path):
    path = KERNELS / "rejected.cu"
    (tmp_path / "kernel.cu").write_text(source.load(path, "rejected.cu").text)
    done = subprocess.run(
        [compiler, "-cubin", "-arch=sm_90", "kernel.cu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    error = nvcc.rejection("rejected.cu", done.stderr)
    assert type(error) is KernelCompileError
    assert 'rejected.cu:4: error: identifier "undeclared_name" is undefined' in error.message
    assert "kernel.cu" not in error.message
