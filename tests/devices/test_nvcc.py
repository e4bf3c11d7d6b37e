"""How nvcc is found, fed and understood, and the cache of what it made. Needs no GPU."""

from __future__ import annotations

import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from toolkits import toolkit

from cudalab.backends.cuda import device, driver, nvcc
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
    if shutil.which("gcc") is None:
        pytest.skip("nvcc calls gcc")
    try:
        return nvcc.find_nvcc()
    except NoDeviceError as error:
        pytest.skip(error.message)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any toolkit; where they would be."""
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda_path"))
    monkeypatch.setattr(nvcc, "SYSTEM", tmp_path / "local" / "cuda")
    monkeypatch.setattr(nvcc, "_nvidia_packages", lambda: [tmp_path / "wheels"])
    monkeypatch.setattr(driver, "release", lambda: None)
    return tmp_path


def test_where_nvcc_is_looked_for(bare):
    with pytest.raises(NoDeviceError, match="no CUDA compiler") as caught:
        nvcc.find_nvcc()
    assert "[cuda]" in caught.value.hint
    for place in (  # each is preferred to those before it
        "wheels/cu13",
        "local/cuda",
        "cuda_path",
        "home",
        "path",
    ):
        path = toolkit(bare / place)
        assert nvcc.find_nvcc() == path
    path.chmod(0o644)
    assert nvcc.find_nvcc() == bare / "home" / "bin" / "nvcc"


OLD, VOLTA = "sm_60 sm_70 sm_75 sm_80 sm_90", "sm_70"
NEW = "sm_75 sm_80 sm_90 sm_100 sm_120"


@pytest.mark.parametrize(
    ("newest", "arch", "toolkits", "expected"),
    [
        # A driver before 580: the wheel's nvcc 13 is of no use, the machine's is.
        ((12, 4), "sm_75", {"wheels/cu13": ("13.0", NEW), "local/cuda": ("12.2", OLD)}, "local"),
        ((12, 4), "sm_75", {"path": ("13.1", NEW), "local/cuda-12.2": ("12.2", OLD)}, "cuda-12.2"),
        # A newer minor version runs on an older driver.
        ((12, 4), "sm_75", {"path": ("12.9", NEW), "local/cuda": ("12.2", OLD)}, "path"),
        # Of those that are only installed the newest is taken.
        ((13, 0), "sm_90", {"local/cuda": ("12.8", NEW), "wheels/cu13": ("13.2", NEW)}, "cu13"),
        (
            (12, 8),
            "sm_90",
            {"local/cuda-12.2": ("12.2", OLD), "local/cuda-12.10": ("12.10", OLD)},
            "cuda-12.10",
        ),
        # CUDA 13 has dropped the architectures before sm_75; CUDA 12.2 has none of the newest.
        ((13, 0), VOLTA, {"path": ("13.0", NEW), "wheels/cu13": ("13.0", NEW)}, None),
        ((13, 0), VOLTA, {"path": ("13.0", NEW), "local/cuda-12.8": ("12.8", OLD)}, "cuda-12.8"),
        ((13, 0), "sm_120", {"path": ("12.2", OLD), "wheels/cu13": ("13.0", NEW)}, "cu13"),
        # Without a driver, or where no GPU is meant, what the user names is taken.
        (None, None, {"path": ("12.2", OLD), "wheels/cu13": ("13.0", NEW)}, "path"),
        ((12, 4), "sm_75", {"path": ("13.0", NEW)}, None),
        # One that says nothing about itself may fit.
        ((12, 4), "sm_75", {"path": ("", "")}, "path"),
    ],
)
def test_the_nvcc_whose_code_the_driver_and_the_gpu_can_run(
    bare, monkeypatch, newest, arch, toolkits, expected
):
    monkeypatch.setattr(driver, "release", lambda: newest and driver.Release(*newest))
    for place, facts in toolkits.items():
        toolkit(bare / place, *facts)
    if expected:
        assert expected in nvcc.find_nvcc(arch).parts
    else:
        with pytest.raises(NoDeviceError, match="fits the GPU") as caught:
            nvcc.find_nvcc(arch)
        assert caught.value.message.count("nvcc: it ") == len(toolkits)
        assert "device --why" in caught.value.hint


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
    assert source.with_defines(text, {"T": "unsigned long long", "N": 4}).splitlines() == [
        "#include <cuda_fp16.h>",
        "#  include <cstdio>",
        "using cudalab_T = unsigned long long;",
        "#define T cudalab_T",
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


def test_a_folder_with_a_space_where_nvcc_asks_for_the_gpu(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "a folder")
    message = "nvcc fatal   : Could not open __nvcc_device_query output file tmpxft_1"
    assert "TMPDIR has a space" in str(nvcc.rejection("a.cu", message))
    assert "TMPDIR" not in str(nvcc.rejection("a.cu", "nvcc fatal   : Cannot open cicc"))


@pytest.mark.usefixtures("own_cache")
def test_cache(tmp_path):
    compiler = toolkit(tmp_path)
    key = nvcc.cache_key(compiler, "text", "sm_90")
    assert nvcc.cached(key) is None
    nvcc.store(key, b"cubin")
    assert nvcc.cached(key) == b"cubin"
    assert nvcc.cached(nvcc.cache_key(compiler, "text ", "sm_90")) is None
    assert nvcc.cached(nvcc.cache_key(compiler, "text", "sm_90a")) is None
    compiler.write_text("#!/bin/sh\n# another version\n")
    assert nvcc.cached(nvcc.cache_key(compiler, "text", "sm_90")) is None


@pytest.mark.usefixtures("own_cache")
def test_one_of_several_compiles_for_all():
    compiled = []

    def compile_once(number):
        with nvcc.compiling("key"):
            if nvcc.cached("key") is None:
                time.sleep(0.05)  # as long as nvcc: meanwhile the others come
                compiled.append(number)
                nvcc.store("key", b"cubin")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(compile_once, range(4)))
    assert len(compiled) == 1


def test_a_cache_without_locks_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(nvcc, "cache_dir", lambda _: tmp_path / "missing")
    with nvcc.compiling("key"):
        pass


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
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    nvcc.store("key", b"cubin")
    assert nvcc.cached("key") is None


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_kernels_of_the_tests_compile(compiler, path, tmp_path):
    text = source.with_defines(source.load(path, path.name).text, {"T": "float", "FACTOR": 3})
    (tmp_path / "kernel.cu").write_text(text)
    command = [compiler, "-cubin", "-arch=sm_90", *nvcc.FLAGS]
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


def test_the_measuring_kernels_compile(compiler, tmp_path):
    kernels = Path(device.__file__).with_name("measure.cu")
    for target in ("sm_75", "sm_90"):
        out = tmp_path / f"{target}.cubin"
        flags = [*nvcc.FLAGS, "-Werror", "all-warnings"]
        command = [compiler, "-cubin", f"-arch={target}", *flags, kernels, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
