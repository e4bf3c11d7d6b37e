"""Which devices the tests run on: `pytest --device cpu|cuda|all`."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

# Before NumPy is imported, here and in each command that a test runs: the threads of its linear
# algebra spin while they wait, on cores that other tests need.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Python keeps what it has compiled: each of a thousand processes would compile it again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from cudalab import backends
from cudalab.backends.cpu import regions
from cudalab.backends.cpu.kernel_runtime import quick_files, runtime_library
from cudalab.errors import NoDeviceError
from cudalab.program import runtime
from cudalab.system.cache import cache_dir
from cudalab.system.machine import usable_cores

regions.MISTAKES = ()  # they are failures here

HUGE_AT_ONCE = 4  # tests of 12 GiB each
DEVICES = {name: (name,) for name in backends.DEVICES} | {"all": tuple(backends.DEVICES)[::-1]}


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        choices=sorted(DEVICES),
        default="cpu",
        help="run the tests on the CPU device (default), on the GPU, or on both",
    )


def pytest_configure(config):
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a script's background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Zig compiles its C++ library for a minute if a program needs it: tests share that.
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_dir("zig")))
    # Before a test that expects no note on stderr:
    made = [] if config.option.collectonly else [runtime_library, quick_files]
    if config.getoption("numprocesses", None):  # or else each of the workers would do so
        made += [partial(runtime.files, check=check) for check in (True, False)]
        if not Path(__file__).with_name("unit").joinpath("__pycache__").exists():
            made.insert(0, partial(compile_modules, config.invocation_params.args))
    else:
        gc.disable()  # collecting tests makes many objects and no garbage
    with suppress(NoDeviceError), ThreadPoolExecutor() as pool:
        for compiling in [pool.submit(make) for make in made]:
            compiling.result()
    config.addinivalue_line("markers", "cuda: needs a GPU; runs with --device cuda or all")
    config.addinivalue_line("markers", "quick: a verdict on every lab and command in a minute")


def compile_modules(args):
    """Collect the tests: Python keeps what it compiles of them and of cudalab."""
    once = ("--collect-only", "-q", "-n0")
    command = [sys.executable, "-m", "pytest", *args, *once]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(50_000)  # reading a kernel makes a tree: to look at it often takes a third
    gc.enable()


def pytest_xdist_auto_num_workers():
    """Two more than cores: some tests wait, for a process that is to be ended or a limit."""
    return usable_cores() + 2


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    # One worker gets a file whose tests take milliseconds, or share kernels: it compiles them once.
    # Workers on a GPU share the cache of compiled kernels, and its machine has memory for several
    # of the largest arrays.
    on_gpu = chosen_devices(config) == ("cuda",)
    grouped = {"unit"} if on_gpu else {"unit", "labs", "contract"}
    for number, item in enumerate(items):
        if on_gpu and item.path.stem == "test_huge":
            item.add_marker(pytest.mark.xdist_group(f"huge {number % HUGE_AT_ONCE}"))
        elif item.path.parent.name in grouped and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    yield
    if hasattr(config, "workerinput"):
        items.sort(key=places_of(items).get)
    if "cuda" in chosen_devices(config):
        return
    skip = pytest.mark.skip(reason="needs a GPU: pytest --device cuda")
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(skip)


def places_of(items):
    """Where each test stands: groups first, so that none ends alone.

    All other tests are mixed, a part of each folder at a time: those of some compute, while others
    wait for a process to end.
    """
    alone = [item for item in items if not item.get_closest_marker("xdist_group")]
    places = dict.fromkeys(items, 0.0)
    in_folder, seen = Counter(item.path.parent for item in alone), Counter()
    for item in alone:
        seen[item.path.parent] += 1
        places[item] = seen[item.path.parent] / in_folder[item.path.parent]
    return places


def pytest_generate_tests(metafunc):
    if "device_name" in metafunc.fixturenames:
        metafunc.parametrize(
            "device_name", chosen_devices(metafunc.config), indirect=True, scope="session"
        )


def chosen_devices(config):
    """The devices that --device names. One that is missing makes its tests fail, not vanish."""
    return DEVICES[config.getoption("--device")]


@pytest.fixture
def lock_of_its_own(monkeypatch, tmp_path):
    """For tests that measure on a GPU: its lock is a temporary file, and they may run at once."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture(scope="session")
def device_name(request):
    return request.param


@pytest.fixture(scope="session")
def device(device_name):
    """The device itself, opened once for all tests."""
    with backends.open_device(device_name) as opened:
        yield opened
