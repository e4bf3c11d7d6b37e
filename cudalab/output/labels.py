"""The labels of a device's properties, the same for all devices."""

from collections.abc import Mapping

# Field -> label, in the order of display.
LABELS = {
    "name": "name",
    "capability": "compute capability",
    "memory_bytes": "global memory (bytes)",
    "constant_bytes": "constant memory (bytes)",
    "shared_bytes": "shared memory per block (bytes)",
    "shared_optin_bytes": "shared memory per block, opt-in (bytes)",
    "shared_core_bytes": "shared memory per multiprocessor (bytes)",
    "registers_per_block": "registers per block",
    "max_threads": "max threads per block",
    "max_block": "max block dimensions",
    "max_grid": "max grid dimensions",
    "warp_size": "warp size",
    "cores": "multiprocessors",
    "threads": "OS threads used",
    "max_threads_per_core": "max threads per multiprocessor",
    "max_blocks_per_core": "max blocks per multiprocessor",
    "l2_bytes": "L2 cache (bytes)",
    "clock_mhz": "clock (MHz)",
    "memory_clock_mhz": "memory clock (MHz)",
    "memory_bus_bits": "memory bus (bits)",
    "dram_gbs": "peak memory bandwidth (GB/s)",
    "driver": "driver",
    "pycuda": "PyCUDA built for",
    "compiler": "compiler",
}


def labelled(numbers: Mapping[str, object]) -> dict[str, str | int | float]:
    """The device's properties by label, without those that the device does not have."""
    return {
        label: _shown(name, numbers[name])
        for name, label in LABELS.items()
        if numbers[name] not in (None, "")
    }


def _shown(name: str, value: object) -> str | int | float:
    if isinstance(value, tuple):
        return ("." if name == "capability" else " x ").join(map(str, value))
    return value if isinstance(value, int | float) else str(value)
