"""What kinds of devices differ in, for whoever must know before one is opened."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What commands and launch plans ask of a kind of device, in the place of its name."""

    on_host: bool  # this process runs the kernels: their code must be examined and confined
    driver: bool  # a GPU's driver is behind it: processes take turns, features differ by machine
    nvcc: bool  # nvcc compiles for it, and NVIDIA's tools and libraries work on its memory
    instrumented: bool  # it counts accesses and finds mistakes
    gpu_times: bool  # its times are a GPU's; others are labelled
    clock: str  # whose clock times its launches: "device" or "host"
    many_threads: bool  # thousands run at once, and hide how long memory takes to answer


GPU = Facts(
    on_host=False,
    driver=True,
    nvcc=True,
    instrumented=False,
    gpu_times=True,
    clock="device",
    many_threads=True,
)
HOST = Facts(
    on_host=True,
    driver=False,
    nvcc=False,
    instrumented=True,
    gpu_times=False,
    clock="host",
    many_threads=False,
)
