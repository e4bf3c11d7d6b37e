"""Opens a device for measuring, a GPU for one process at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cudalab.backends import facts, open_device
from cudalab.backends.base import Device
from cudalab.system import exclusive


@contextmanager
def opened_alone(name: str, threads: int | None) -> Iterator[tuple[Device, list[str]]]:
    """The device, and other processes that use it. BusyError while another one measures."""
    with ExitStack() as stack:
        busy: list[str] = []
        gpu = exclusive.visible_gpu() if facts(name).driver else ""
        if gpu:
            stack.enter_context(exclusive.alone(gpu))
            busy = exclusive.other_processes(gpu)
        yield stack.enter_context(open_device(name, threads)), busy
