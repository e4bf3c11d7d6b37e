"""The CPU device itself: how it schedules, what it refuses, how it explains a crash."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from cudalab.backends.cpu import kernel_runtime
from cudalab.backends.cpu.compiler import flags, toolchain
from cudalab.backends.cpu.device import CpuDevice
from cudalab.checker.submit.program import copy_runtime
from cudalab.errors import (
    DeviceMemoryError,
    KernelCompileError,
    KernelError,
    NoDeviceError,
    install_command,
)
from cudalab.language import source
from cudalab.language.kernel_file import KernelFile

KERNELS = Path(__file__).parents[1] / "kernels"
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def device():
    with CpuDevice(2) as opened:
        yield opened


def launch(device, file, kernel, grid, block, *args):
    module = device.compile(source.load(KERNELS / file, file), {})
    device.launch(module[kernel], grid, block, *args)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "divergent_barrier",
            (
                "kernel divergent_barrier, block (0,0,0): divergent barrier: thread (0,0,0) waits "
                "at __syncthreads in misbehaving.cu:5, thread (40,0,0) at the one in "
                "misbehaving.cu:7"
            ),
        ),
        (
            "warp_against_block",
            (
                "kernel warp_against_block, block (0,0,0): deadlock: thread (0,0,0) waits at "
                "__syncwarp (misbehaving.cu:14) with mask 0xffffffff, while thread (10,0,0) waits "
                "at __syncthreads (misbehaving.cu:16)"
            ),
        ),
        (
            "lane_missing",
            (
                "kernel lane_missing, block (0,0,0): deadlock: thread (0,0,0) waits at a shuffle "
                "(misbehaving.cu:22) with mask 0xffffffff, while thread (5,0,0) waits at "
                "__syncthreads (misbehaving.cu:23)"
            ),
        ),
        (
            "not_in_mask",
            (
                "kernel not_in_mask, block (0,0,0): thread (16,0,0) is not in the mask 0x0000ffff "
                "of the warp operation it calls (misbehaving.cu:27)"
            ),
        ),
        (
            "different_operations",
            (
                "kernel different_operations, block (0,0,0): deadlock: thread (0,0,0) waits at "
                "a shuffle (misbehaving.cu:34) with mask 0xffffffff, while thread (1,0,0) waits at "
                "a vote (misbehaving.cu:32) with mask 0xffffffff"
            ),
        ),
        (
            "failing_assertion",
            (
                "kernel failing_assertion, block (0,0,0): assertion "
                '`sums[0] >= sums[threadIdx.x] && "sums ( fall )"` failed at misbehaving.cu:65'
            ),
        ),
    ],
)
def test_a_broken_rule_is_named_and_the_device_stays_usable(device, kernel, message):
    out = device.to_device(np.zeros(64, np.int32))
    with pytest.raises(KernelError) as raised:
        launch(device, "misbehaving.cu", kernel, 1, 64, out)
    assert raised.value.message == message
    assert raised.value.hint
    launch(device, "waiting.cu", "wait_in_block", 1, 64, out)
    assert device.to_host(out)[0] == 1


def test_a_thread_may_wait_for_another_of_its_block(device):
    out = device.to_device(np.zeros(50, np.int32))
    launch(device, "waiting.cu", "wait_in_block", 50, 256, out)
    assert device.to_host(out).tolist() == [1] * 50


def test_a_lock_excludes_the_other_threads(device):
    counter, mutex = (device.to_device(np.zeros(1, np.int32)) for _ in range(2))
    launch(device, "waiting.cu", "lock", 20, 70, counter, mutex)
    assert device.to_host(counter)[0] == 20 * 70


def test_stacks_are_aligned(device):
    addresses = device.to_device(np.zeros(2 * 64, np.uint64))
    launch(device, "stacks.cu", "local_address", 1, 64, addresses)
    found = device.to_host(addresses)
    assert (found > 0).all()
    assert (found % 16 == 0).all()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_blocks_may_wait_for_earlier_blocks_on_any_number_of_os_threads(threads):
    done = run_python(
        f"""
        blocks = 100
        with CpuDevice({threads}) as device:
            handed_on = device.to_device(np.zeros(blocks, np.uint32))
            ticket = device.to_device(np.zeros(1, np.uint32))
            module = device.compile(source.load(KERNELS / "waiting.cu"), {{}})
            device.launch(module["chain"], blocks, 64, handed_on, ticket)
            assert (device.to_host(handed_on) == np.arange(1, blocks + 1)).all()
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_child_launches_with_threads_of_its_own():
    """Twice each; a third child may not start any."""
    done = run_python(
        """
        import os, resource
        from contextlib import suppress
        from cudalab.errors import KernelError
        blocks = 100
        device = CpuDevice(3)
        module = device.compile(source.load(KERNELS / "waiting.cu"), {})
        def chain():
            handed_on = device.to_device(np.zeros(blocks, np.uint32))
            ticket = device.to_device(np.zeros(1, np.uint32))
            device.launch(module["chain"], blocks, 64, handed_on, ticket)
            assert (device.to_host(handed_on) == np.arange(1, blocks + 1)).all()
            return len(os.listdir("/proc/self/task"))
        def refused():
            with suppress(OSError):  # whom the limit does not bind
                os.setuid(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
            try:
                chain()
            except KernelError as error:
                return "no OS threads" in str(error)
        threads = chain()
        for child in (lambda: [chain(), chain()] == [threads, threads],) * 2 + (refused,):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if child() else 1)
            assert os.waitpid(pid, 0)[1] == 0
        chain()
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kernel", "args", "died_of", "message"),
    [
        (
            "wild_store",
            "",
            signal.SIGSEGV,
            (
                "kernel wild_store, block (0,0,0), thread (7,0,0): "
                "invalid memory access at address 0x8"
            ),
        ),
        (
            "deep_recursion",
            "",
            signal.SIGSEGV,
            "kernel deep_recursion, block (0,0,0), thread (3,0,0): stack overflow",
        ),
        (
            "division",
            ", np.int32(0)",
            signal.SIGFPE,
            "thread (0,0,0): division by zero at ",
        ),
    ],
)
def test_a_crash_says_which_thread_did_what(kernel, args, died_of, message):
    done = run_python(
        f"""
        with CpuDevice(1) as device:
            out = device.to_device(np.zeros(64, np.int32))
            module = device.compile(source.load(KERNELS / "misbehaving.cu"), {{}})
            device.launch(module["{kernel}"], 1, 64, out{args})
        """
    )
    assert done.returncode == -died_of
    assert message in done.stderr


def test_an_interrupt_is_heard_while_a_kernel_runs():
    child = start_python(
        """
        with CpuDevice(1) as device:
            out = device.to_device(np.zeros(1 << 24, np.int32))
            module = device.compile(source.load(KERNELS / "misbehaving.cu"), {})
            print("ready", flush=True)
            device.launch(module["endless"], 1, 1, out)
        """
    )
    with child:
        assert child.stdout.readline() == "ready\n"
        try:
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            _, stderr = child.communicate(timeout=30)
        finally:
            child.kill()
    assert "KeyboardInterrupt" in stderr
    assert "invalid memory access" not in stderr  # the block goes on while the process ends


def test_more_memory_than_there_is_is_refused(device):
    with pytest.raises(DeviceMemoryError, match="out of memory: 4,611,686,018,427,387,904 bytes"):
        device.empty(1 << 60, np.uint32)


@pytest.mark.parametrize("warned_of", ["", "    unsigned char less = 300;\n"])
def test_inline_ptx_is_explained(device, tmp_path, warned_of):
    file = tmp_path / "ptx.cu"
    file.write_text(
        'extern "C" __global__ void k(unsigned* out) {\n'
        f'{warned_of}    unsigned lane;\n    asm("mov.u32 %0, %%laneid;" : "=r"(lane));\n'
        "    *out = lane;\n}\n"
    )
    with pytest.raises(KernelCompileError) as raised:
        device.compile(source.load(file, "ptx.cu"), {})
    assert "ptx.cu" in raised.value.message
    assert "inline PTX" in raised.value.hint


def test_a_misspelt_barrier_is_not_called_by_our_own_name(device, tmp_path):
    file = tmp_path / "typo.cu"
    file.write_text('extern "C" __global__ void k() { __syncthreds(); }\n')
    with pytest.raises(KernelCompileError) as raised:
        device.compile(source.load(file, "typo.cu"), {})
    assert "__syncthreds" in raised.value.message
    assert "__syncthreads_at" not in raised.value.message


def test_only_the_first_errors_are_shown(device, tmp_path):
    file = tmp_path / "flood.cu"
    file.write_text("".join(f"undefined_{i} x{i};\n" for i in range(1000)))
    with pytest.raises(KernelCompileError, match=r"flood\.cu:1") as raised:
        device.compile(source.load(file, "flood.cu"), {})
    assert "undefined_10" in raised.value.message
    assert "undefined_21" not in raised.value.message


def test_an_object_larger_than_files_may_be_is_explained(device, tmp_path):
    file = tmp_path / "large.cu"
    file.write_text("__device__ char filled[1 << 28] = {1};\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, limits[1]))
    try:
        with pytest.raises(KernelCompileError, match="larger than a file may be") as raised:
            device.compile(source.load(file, "large.cu"), {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "huge array" in raised.value.hint


def test_dynamic_shared_memory_becomes_a_pointer_on_the_same_line(tmp_path):
    file = tmp_path / "dynamic.cu"
    file.write_text(
        "// extern __shared__ int commented[];\n"
        'extern "C" __global__ void k() {\n'
        "    extern __shared__ __align__(16)\n        unsigned char bytes[];\n"
        '    const char* text = "extern __shared__ int quoted[];";\n}\n'
    )
    defined = source.with_defines(source.load(file, "dynamic.cu").text, {"N": 3})
    text = KernelFile(defined).for_host(observed=True)
    assert "unsigned char* const bytes = (unsigned char*)::cudalab::cudalab_dynamic();" in text
    assert "// extern __shared__ int commented[];" in text
    assert '"extern __shared__ int quoted[];"' in text
    assert text.index("#define N 3") < text.index("void k()")
    lines = text.partition('#line 1 "dynamic.cu"\n')[2].splitlines()
    assert lines[4].strip().startswith("const char* text")


def test_a_compiler_is_looked_for_in_the_promised_order(monkeypatch):
    toolchain.find_compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler -O1")
    with pytest.raises(NoDeviceError, match="no such compiler: no-such-compiler -O1"):
        toolchain.find_compiler()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    if toolchain.find_spec("ziglang"):
        assert toolchain.find_compiler().name == "zig c++"
    toolchain.find_compiler.cache_clear()
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    with pytest.raises(NoDeviceError) as raised:
        toolchain.find_compiler()
    assert install_command("cpu") in raised.value.hint
    toolchain.find_compiler.cache_clear()


def test_a_damaged_cache_entry_is_built_again(tmp_path):
    copy_runtime(tmp_path, check=False)
    code = """
        with CpuDevice(1) as device:
            out = device.to_device(np.zeros(1, np.int32))
            module = device.compile(source.load(KERNELS / "waiting.cu"), {})
            device.launch(module["wait_in_block"], 1, 64, out)
            assert device.to_host(out)[0] == 1
        """
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    assert run_python(code, environment).returncode == 0
    entries = list((tmp_path / "cudalab" / "cpu").glob("*.so"))
    assert len(entries) == 2
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:100])
    done = run_python(code, environment)
    assert done.returncode == 0, done.stderr


def test_a_precompiled_header_leaves_no_template_to_each_file(tmp_path):
    compiler = toolchain.find_compiler()
    if not compiler.name.endswith("g++"):
        pytest.skip("only g++ precompiles the header")
    kernel_runtime.runtime_library()
    own, made = flags.kernel_flags(), tmp_path / "made"
    (tmp_path / "empty.cpp").write_text('#include "cudalab_cpu.h"\n')
    searched = kernel_runtime.searched(own)
    given = ("-c", str(tmp_path / "empty.cpp"), "-o", str(tmp_path / "empty.o"))
    command = (*compiler.compile, *own, *searched, *given, f"-fdump-tree-original={made}")
    assert toolchain.run(command).returncode == 0
    functions = re.findall(r"^;; Function (.*)", made.read_text(), re.MULTILINE)
    assert [each for each in functions if "cudalab" in each or "std::__detail" in each] == []


def test_a_precompiled_header_changes_nothing_but_the_time(tmp_path):
    """The same bytes with it, with one that is cut off or that the compiler crashes on, which is
    removed, and without it.
    """
    compiler = toolchain.find_compiler()
    if not compiler.name.endswith("g++"):
        pytest.skip("only g++ precompiles the header")
    crashing = tmp_path / "g++"
    crashing.write_text(
        f"""#!/bin/sh
        case "$*" in *" -c "*)
            test -e "$CRASHES_ON" && echo "internal compiler error: in tree_check" >&2 && exit 1
        esac
        exec {compiler.compile[0]} "$@"
        """.replace("        ", "")
    )
    crashing.chmod(0o755)
    code = """
        with CpuDevice(1) as device:
            device.compile(source.load(KERNELS / "waiting.cu"), {})
        """
    environment = {"XDG_CACHE_HOME": str(tmp_path), "CXX": str(crashing)}
    made: list[bytes] = []
    for given in ("whole", "cut off", "crash", "none"):
        done = run_python(code, environment)
        assert done.returncode == 0, done.stderr
        (kernel,) = tmp_path.rglob("waiting-*.so")
        made.append(kernel.read_bytes())
        kernel.unlink()
        headers = list(tmp_path.rglob("*.gch"))
        assert len(headers) == (given == "whole")
        if headers:
            header, whole = headers[0], headers[0].read_bytes()
            header.write_bytes(whole[: 1 << 20])
        if given == "cut off":
            header.write_bytes(whole)
            environment["CRASHES_ON"] = str(header)
    assert len(set(made)) == 1


@pytest.mark.parametrize("build", ["portable switch", "zig"])
def test_the_contract_holds_for_other_builds(build):
    environment = {"CUDALAB_CXXFLAGS": "-DCUDALAB_PORTABLE_SWITCH"}
    if build == "zig":
        if not toolchain.find_spec("ziglang"):
            pytest.skip("the ziglang package is not installed")
        environment = {"PATH": "", "CXX": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark",
         "--device", "cpu", "tests/devices/contract"],
        cwd=REPOSITORY, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


def start_python(code, environment=None):
    prelude = f"""
        import sys
        from pathlib import Path
        import numpy as np
        from cudalab.language import source
        from cudalab.backends.cpu.device import CpuDevice
        KERNELS = Path({str(KERNELS)!r})
        """
    program = textwrap.dedent(prelude) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY,
        env=os.environ | (environment or {}),
    )  # fmt: skip


def run_python(code, environment=None):
    with start_python(code, environment) as child:
        stdout, stderr = child.communicate(timeout=120)
    return subprocess.CompletedProcess(child.args, child.returncode, stdout, stderr)


def test_an_asynchronous_copy_is_made_when_it_is_awaited(device):
    """As late as a GPU may make it, so that a kernel that does not wait is wrong at once."""
    given, before = np.arange(4 * 192, dtype=np.int32), device.to_device(np.zeros(192, np.int32))
    after = device.to_device(np.zeros(192, np.int32))
    arguments = (device.to_device(given), before, after, np.int32(192))
    launch(device, "async_copies.cu", "before_and_after", 3, 64, *arguments)
    assert (device.to_host(before) == -1).all()
    np.testing.assert_array_equal(device.to_host(after), given[::4] + given[3::4])


def test_a_constant_null_pointer_is_followed(tmp_path):
    path = tmp_path / "null.cu"
    path.write_text('extern "C" __global__ void f(int *out) { *out = *(volatile int *)0; }\n')
    program = textwrap.dedent(f"""
        import numpy as np
        from pathlib import Path
        from cudalab.language import source
        from cudalab.backends.cpu.device import CpuDevice
        device = CpuDevice(1)
        module = device.compile(source.load(Path({str(path)!r}), "null.cu"), {{}})
        device.launch(module["f"], 1, 1, device.empty(1, np.int32))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV
    assert b"kernel f" in done.stderr
