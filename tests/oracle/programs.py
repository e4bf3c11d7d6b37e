"""Programs of many kernels that print a hash for each seed: as CUDA, and as plain C++."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.oracle.draws import ALONE, ENDLESS, FEW, LENT
from tests.oracle.grammar import Kernel

TEXTS = Path(__file__).parent / "texts"


@cache
def _text(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8")


def _common(seeds: list[int]) -> str:
    """What the kernels of these seeds may use."""
    if FEW <= seeds[0] < ENDLESS:
        return _text("common.h") + _text("few.h")
    more = [("alone.h", ALONE), ("loans.h", LENT)]
    return _text("common.h") + "".join(_text(name) for name, first in more if seeds[-1] >= first)


def cuda_program(seeds: list[int]) -> str:
    """Write the program whose kernels a device runs."""
    kernels = [Kernel(seed, "cuda") for seed in seeds]
    calls = "".join(
        f"    fill({k.seed}); cudaMemcpy(d, data, sizeof data, cudaMemcpyHostToDevice);"
        f" cudaMemset(o, 0, sizeof out);\n    {' '.join(k.launches)}\n"
        f"    error = cudaDeviceSynchronize();\n    cudaMemcpy(out, o, sizeof out,"
        f" cudaMemcpyDeviceToHost); print({k.seed}, error);\n"
        for k in kernels
    )
    met = _text("met.h") if seeds[-1] >= LENT and not FEW <= seeds[0] < ENDLESS else ""
    return (_text("cuda.h") + _common(seeds) + met + "".join(k.text() for k in kernels)
            + _text("main.h") + "int main() {\n    int *d, *o, error; float* r;\n"
            "    cudaMalloc(&d, sizeof data); cudaMalloc(&o, sizeof out);\n"
            "    cudaMalloc(&r, sizeof reals); fill_reals();\n"
            "    cudaMemcpy(r, reals, sizeof reals, cudaMemcpyHostToDevice);\n"
            + calls + "}\n")  # fmt: skip


def host_program(seeds: list[int]) -> str:
    """Write the reference: plain C++ with nothing of ours."""
    kernels = [Kernel(seed, "host") for seed in seeds]
    calls = "".join(
        f"    fill({k.seed}); memset(out, 0, sizeof out);\n    {' '.join(k.launches)}"
        f" print({k.seed}, 0);\n"
        for k in kernels
    )
    return (_text("host.h") + _common(seeds) + "".join(k.text() for k in kernels)
            + _text("main.h") + "int main() {\n    const int* d = data; int* o = out;"
            " const float* r = reals; fill_reals();\n" + calls + "}\n")  # fmt: skip
