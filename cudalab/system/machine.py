"""The host: its cores, its memory, its processor."""

import os
import platform
from pathlib import Path


def usable_cores() -> int:
    """The cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_memory() -> int:
    """An estimate of the bytes that can still be allocated without swapping."""
    try:
        with open("/proc/meminfo", encoding="ascii") as meminfo:  # noqa: PTH123 - read on each alloc
            for line in meminfo:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return total_memory()


def resident_memory() -> int:
    """The bytes of memory that this process occupies; 0 if unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - read while kernels run
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def last_level_cache() -> int:
    """Total bytes of the last-level caches of the usable cores; 64 MiB if unknown."""
    caches: dict[str, int] = {}
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    for core in cores:
        levels = Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")
        try:
            by_level = {int((path / "level").read_text()): path for path in levels}
            last = by_level[max(by_level)]
            size = (last / "size").read_text().strip()  # such as 32768K
            shared = (last / "shared_cpu_list").read_text()
            caches[shared] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            continue
    return sum(caches.values()) or 64 << 20


def processor_name() -> str:
    """The system's name for the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:  # noqa: PTH123
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
