"""Files, devices and processes for the tests of the command line."""

import os
import signal
from contextlib import suppress

import pytest
from sorting import OWN_KERNEL, STARTED


@pytest.fixture(autouse=True)
def no_process_is_left():
    """A test that fails while its process runs would leave it behind."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(OSError), process:
            pass


@pytest.fixture
def own(tmp_path):
    """Write a student's file whose first kernel has this body."""

    def write(body):
        path = tmp_path / "my.cu"
        path.write_text(OWN_KERNEL.replace("BODY", body), encoding="utf-8")
        return path

    return write


@pytest.fixture
def no_gpu():
    """An environment in which the driver shows no device."""
    return {"CUDA_VISIBLE_DEVICES": ""}
