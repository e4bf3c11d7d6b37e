"""The GPU itself: what is particular to it, and how a crash in a kernel ends."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cudalab import labs
from cudalab.backends.cuda import device, driver
from cudalab.backends.cuda.driver import features_of
from cudalab.backends.cuda.memory import DIRECT_BYTES
from cudalab.errors import KernelError, NoDeviceError, install_command
from cudalab.labs import registry
from cudalab.language import source

REPOSITORY = Path(__file__).parents[2]


def python(program, **environment):
    """Run a program in a process of its own, which a crashed kernel may spoil."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def hidden(monkeypatch):
    """A Python without PyCUDA."""
    monkeypatch.setitem(sys.modules, "pycuda", None)


@pytest.mark.usefixtures("hidden")
def test_without_pycuda():
    assert not device.CudaDevice.available()
    assert "PyCUDA" in driver.unavailable_reason()
    with pytest.raises(NoDeviceError, match="PyCUDA") as caught:
        device.CudaDevice()
    assert install_command("cuda") in caught.value.hint
    assert caught.value.exit_code == 4


class Driver:
    """The part of PyCUDA's driver interface that opens a device and notices a crash."""

    device_attribute = SimpleNamespace(MULTIPROCESSOR_COUNT=132, L2_CACHE_SIZE=1 << 20)
    event_flags = SimpleNamespace(DISABLE_TIMING=2)

    class Error(Exception):
        """An error that the driver reports."""

    def __init__(self):
        """No kernel has crashed yet."""
        self.crashed, self.calls = False, []
        self.Context = self
        self.Device = lambda _: self

    def compute_capability(self):
        return 9, 0

    def get_attribute(self, value):
        return value

    def retain_primary_context(self):
        return self

    def __getattr__(self, name):
        """Any other call of the driver; after a crash, only a context can be detached."""

        def call(*_):
            self.calls.append(name)
            if self.crashed and name != "detach":
                raise self.Error(f"{name} failed: an illegal memory access was encountered")

        return call


def crash(driver, then):
    with device.CudaDevice() as opened:
        driver.crashed = True
        then(opened)


@pytest.mark.parametrize(
    "then", [lambda opened: opened.meter().timer(), lambda opened: opened.synchronize()]
)
def test_any_call_after_a_crash_says_so(then, monkeypatch):
    driver = Driver()
    monkeypatch.setattr(device.driver, "load", lambda: driver)
    with pytest.raises(KernelError, match="illegal memory access"):
        crash(driver, then)
    assert driver.calls[0] == "push"
    assert driver.calls[-1] == "detach"  # such a context cannot be popped


class Late(Driver):
    """A driver that makes asynchronous copies as late as it may: when it is asked for an event."""

    def __init__(self):
        """Nothing is to be copied."""
        super().__init__()
        self.waiting, self.memory = [], []

    def mem_alloc(self, nbytes):
        self.memory.append(np.full(nbytes, 0xEE, np.uint8))
        return self.memory[-1].ctypes.data

    def pagelocked_empty(self, nbytes, dtype):
        return np.full(nbytes, 0xDD, dtype)

    def memcpy_htod(self, address, array):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def memcpy_dtoh(self, array, address):
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def memcpy_htod_async(self, address, view):
        pinned = np.frombuffer(view, np.uint8)
        self.waiting.append(lambda: ctypes.memmove(address, pinned.ctypes.data, len(view)))

    def memcpy_dtoh_async(self, view, address):
        pinned = np.frombuffer(view, np.uint8)
        self.waiting.append(lambda: ctypes.memmove(pinned.ctypes.data, address, len(view)))

    def Event(self, _):  # noqa: N802 - as the driver calls it
        mark = []

        def query():
            while mark and mark[0] in self.waiting:
                self.waiting.pop(0)()
            return True

        def record():
            mark[:] = [lambda: None]
            self.waiting.append(mark[0])

        return SimpleNamespace(record=record, query=query)


@pytest.mark.parametrize("nbytes", [1, DIRECT_BYTES, DIRECT_BYTES + 1, 3 * DIRECT_BYTES + 12_345])
def test_copies_wait_for_the_buffers_that_they_use_again(nbytes, monkeypatch):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    late = Late()
    monkeypatch.setattr(device.driver, "load", lambda: late)
    with device.CudaDevice() as opened:
        buffer = opened.to_device(data)
        assert (opened.to_host(buffer) == data).all()
        assert b"".join(map(bytes, opened.chunks(buffer))) == data.tobytes()


@pytest.mark.parametrize(
    ("capability", "has", "lacks"),
    [
        (
            75,
            {"sm_75", "tensor_cores", "inline_ptx"},
            {"sm_80", "shared_96kb", "bulk_copy", "sm_75a"},
        ),
        (80, {"sm_80", "shared_96kb", "shared_160kb"}, {"sm_90", "shared_224kb"}),
        (86, {"sm_75", "sm_80", "shared_96kb"}, {"sm_90", "bulk_copy", "shared_160kb"}),
        (
            90,
            {"sm_75", "sm_80", "sm_90", "sm_90a", "clusters", "bulk_copy", "shared_224kb"},
            {"sm_100"},
        ),
        (120, {"sm_90", "sm_120", "sm_120a", "shared_96kb"}, {"sm_90a", "sm_121", "shared_160kb"}),
    ],
)
def test_features(capability, has, lacks):
    features = features_of(capability)
    assert has <= features
    assert not lacks & features


# KiB, of the CUDA C++ programming guide, technical specifications per compute capability.
SHARED_MEMORY = {70: 96, 75: 64, 80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}


@pytest.mark.parametrize("capability", SHARED_MEMORY)
def test_a_device_that_takes_a_variant_has_its_shared_memory(capability):
    features = features_of(capability)
    for variant in (v for name in labs.names() for v in registry.variants(labs.get(name))):
        if features.issuperset(variant.requires):
            needed = int(variant.defines.get("SHARED_BYTES", 0))
            assert needed <= SHARED_MEMORY[capability] << 10, variant.name


@pytest.mark.parametrize("lab", labs.names())
def test_a_small_gpu_has_a_default_for_every_case(lab):
    """A T4, for example: the rungs that need more than it has are not the only defaults."""
    chosen = labs.get(lab)
    for case in chosen.cases():
        assert registry.default(chosen, case, "cuda", features_of(75))


CRASH = """
    from pathlib import Path
    import numpy as np
    from cudalab.language import source
    from cudalab.backends.cuda.device import CudaDevice
    from cudalab.errors import KernelError

    try:
        with CudaDevice() as device:
            module = device.compile(source.load(Path("tests/kernels/crashing.cu")), {})
            out = device.to_device(np.zeros(4, np.int32))
            device.launch(module["write_far_away"], 1, 1, out, np.int64(1 << 40))
            %s
    except KernelError as error:
        print(error.message)
        print(error.hint)
"""


@pytest.mark.cuda
@pytest.mark.parametrize(
    "then",
    [
        "device.to_host(out)",
        "list(device.chunks(out))",
        "device.synchronize()",
        "pass",
        "timer = device.meter().timer(); timer.start(); timer.stop(); timer.ms",
        "[device.launch(module['write_far_away'], 1, 1, out, np.int64(0)) for _ in range(10**6)]",
    ],
)
def test_crash_in_a_kernel(then):
    done = python(CRASH % then)
    assert "illegal memory access" in done.stdout
    assert "write_far_away" in done.stdout
    assert "--device cpu" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("leave", "status"),
    [("raise SystemExit(3)", 3), ("1 / 0", 1), ("raise KeyboardInterrupt", -2), ("pass", 0)],
)
def test_every_way_out_pops_the_context(leave, status):
    done = python(f"""
        import numpy as np
        from cudalab.backends.cuda.device import CudaDevice
        with CudaDevice() as device:
            large = device.to_device(np.zeros(30_000_000, np.uint8))
            pieces = device.chunks(large)
            next(pieces)
            {leave}
    """)
    assert done.returncode == status
    assert "PyCUDA" not in done.stderr


@pytest.mark.cuda
def test_process_that_never_leaves():
    done = python("""
        from cudalab.backends.cuda.device import CudaDevice
        device = CudaDevice().__enter__()
        buffer = device.empty(1000, "f4")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.cuda
def test_memory_that_another_thread_drops_is_freed():
    done = python("""
        import threading
        from cudalab.backends.cuda.device import CudaDevice
        with CudaDevice() as device:
            free = lambda: device._driver.mem_get_info()[0]
            before = free()
            held = [device.empty(1 << 30, "u1")]
            assert free() < before
            thread = threading.Thread(target=held.clear)
            thread.start()
            thread.join()
            small = device.empty(1, "u1")
            print(before - free() < 1 << 29)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.cuda
def test_hidden_devices():
    done = python(
        "from cudalab.backends.cuda.driver import unavailable_reason; print(unavailable_reason())",
        CUDA_VISIBLE_DEVICES="",
    )
    assert done.stdout.startswith("there is no CUDA device: ")
    assert done.stderr == ""


@pytest.mark.cuda
def test_kernel_without_extern_c(tmp_path):
    (tmp_path / "mangled.cu").write_text("__global__ void f(int *out) { *out = 1; }\n")
    with device.CudaDevice() as opened:
        module = opened.compile(source.load(tmp_path / "mangled.cu"), {})
        with pytest.raises(device.CudalabError, match="kernel f cannot be found") as caught:
            module["f"]
    assert 'extern "C"' in caught.value.hint


@pytest.mark.cuda
def test_registers_limit_the_block(tmp_path):
    (tmp_path / "bounded.cu").write_text(
        'extern "C" __global__ void __launch_bounds__(128) f(int *out) { *out = 1; }\n'
    )
    with device.CudaDevice() as opened:
        module = opened.compile(source.load(tmp_path / "bounded.cu"), {})
        out = opened.empty(1, np.int32)
        with pytest.raises(
            device.KernelError, match="at most 128 threads a block, launched with 256"
        ):
            opened.launch(module["f"], 1, 256, out)
        opened.launch(module["f"], 1, 128, out)
        assert opened.to_host(out)[0] == 1


@pytest.mark.cuda
def test_warnings_are_shown_once(tmp_path, capsys):
    (tmp_path / "warned.cu").write_text(
        f"// {tmp_path}\n"
        'extern "C" __global__ void f(int *out) {\n    int unused;\n    *out = 1;\n}\n'
    )
    with device.CudaDevice() as opened:
        opened.compile(source.load(tmp_path / "warned.cu", "warned.cu"), {})
        first = capsys.readouterr()
        opened.compile(source.load(tmp_path / "warned.cu", "warned.cu"), {})
    assert first.err.startswith("warned.cu:3: warning")
    assert first.out == ""
    assert capsys.readouterr().err == ""
