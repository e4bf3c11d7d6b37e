"""Say how the CPU device runs the kernels of all variants, and compare the ways.

python -m tools.studies tiers             write docs/results/tiers, as `cudalab show --tier` says it
python -m tools.studies tiers compare     run each case of each variant with loops and with fibers,
                                          and name those whose answers have other bytes; words
                                          choose variants
python -m tools.generate                  writes the table of docs/performance/cpu.md

A variant has left the fibers if none of its kernels has any: the threads of each are loops, or run
one after another, which a kernel without barriers allows. Variants that need a GPU do not count.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence

from cudalab import labs, runner
from cudalab.backends.cpu.device import CpuDevice
from cudalab.formats import InputStream
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.labs.solve.spectrum import RefusalError
from cudalab.language import source
from cudalab.system.machine import processor_name
from tools import results
from tools.results import table

STORED = results.FOLDER / "tiers" / "cpu.json"
# Sizes at which tiles and blocks end, and beyond them: an order, or a length.
ORDERS, LENGTHS = (1, 33, 100, 129), (1, 257, 2049, 20_001)
MATRICES = frozenset({"matmul", "softmax", "solve", "transpose"})


def variants() -> Iterator[tuple[Lab, Variant]]:
    """All variants of all labs."""
    for name in labs.names():
        for variant in registry.variants(labs.get(name)):
            yield labs.get(name), variant


def cases(lab: Lab, variant: Variant) -> list[Case]:
    """The cases that a variant computes."""
    return [case for case in lab.cases() if variant.computes(case)]


def how(lab: Lab, variant: Variant) -> dict[str, str]:
    """How the threads of each kernel run, in the first case that a variant computes."""
    module = lab.compiled(variant, CpuDevice(1, loops=True), cases(lab, variant)[0])
    kernels = source.load(variant.path, variant.label).kernels
    return {name: getattr(module[name], "how", "") for name in kernels}


def counted() -> str:
    """The table of the stored variants."""
    document = results.read(STORED)
    all_of = document["variants"]
    kernels = Counter(each.partition(":")[0] for way in all_of for each in way["kernels"].values())
    fibers = [way["name"] for way in all_of if _has_fibers(way)]
    left = len(all_of) - len(fibers)
    columns = ["", "number", "share"]
    total = sum(kernels.values())
    rows = [
        ["variants that the CPU device runs", str(len(all_of)), "100 %"],
        ["of them without fibers", str(left), f"{left / len(all_of):.0%}".replace("%", " %")],
        *(
            [f"kernels: {way}", str(number), f"{number / total:.0%}".replace("%", " %")]
            for way, number in kernels.most_common()
        ),
        ["variants for GPUs only", str(document["for_gpus"]), "not counted"],
    ]
    names = ", ".join(f"`{name}`" for name in fibers)
    return f"{table(columns, rows)}\nWith fibers in at least one kernel: {names}.\n"


def _has_fibers(way: results.Json) -> bool:
    return any(each.startswith("fibers") for each in way["kernels"].values())


def answer(lab: Lab, variant: Variant, case: Case, n: int, *, loops: bool) -> bytes:
    """The answer of one run; nothing if the method refuses the input."""
    with tempfile.TemporaryFile() as file:
        file.writelines(lab.generate(case, n, lab.distributions[0], 1))
        file.seek(0)
        device = CpuDevice(1, loops=loops)
        step = runner.prepare(
            lab, variant, device, lab.read(InputStream(file.fileno()), case), case
        )
        try:
            step()
        except RefusalError:
            return b""
        return device.to_host(step.out).tobytes()


def compare(words: Sequence[str]) -> int:
    """Compare the answers with loops and with fibers; the exit status."""
    number = 0
    different = []
    for lab, variant in variants():
        name = f"{lab.name}/{variant.name}"
        if variant.missing(CpuDevice.features) or not variant.deterministic:
            continue
        if words and not any(word in name for word in words):
            continue
        for case in cases(lab, variant):
            wide = lab.name in MATRICES or case.get("along", "all") != "all"
            for n in ORDERS if wide else LENGTHS:
                both = {answer(lab, variant, case, n, loops=each) for each in (True, False)}
                number += 1
                if len(both) > 1:
                    different.append(f"{name} {dict(case)} n = {n}")
                    sys.stdout.write(f"different: {different[-1]}\n")
    sys.stdout.write(f"{number} runs, {len(different)} different\n")
    return bool(different)


def main(*arguments: str) -> int:
    """Store how all variants run, or compare the ways."""
    if arguments[:1] == ("compare",):
        return compare(arguments[1:])
    able = [each for each in variants() if not each[1].missing(CpuDevice.features)]
    rows = [
        {"name": f"{lab.name}/{variant.name}", "kernels": how(lab, variant)}
        for lab, variant in able
    ]
    head: results.Json = {
        "device": processor_name(),
        "compiler": CpuDevice(1).info().compiler,
        "date": results.today(),
        "for_gpus": len(list(variants())) - len(able),
    }
    results.write_rows(STORED, head, rows, "variants")
    return 0
