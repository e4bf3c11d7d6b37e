"""Count what loads and stores cost in shared memory, on a GPU and by the CPU device's model.

python -m tools.studies patterns cuda COUNTS.json     on a machine with a GPU, PyCUDA and ncu
python -m tools.studies patterns compare COUNTS.json  the CPU device's model compared with them

A warp makes one access of 4, 8 or 16 bytes in each of many patterns, chosen to tell possible rules
apart. A GPU's counts are stored in docs/results/patterns/; the model (shared_cost in
check_count.h) has to give the same.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cudalab.backends import open_device
from cudalab.backends.base import Device
from cudalab.backends.cpu.check import CheckDevice
from cudalab.language import source
from cudalab.microscope import ncu
from tools import results
from tools.studies import counters

Pattern = list[int | None]  # the item of each lane; None: it takes no part
Row = dict[str, Any]

KERNELS = Path(__file__).with_name("shared_patterns.cu")
TYPES = {4: "unsigned", 8: "uint2", 16: "uint4"}
ACCESSES = ("load", "store")
ITEMS = 1024
SEED = 7
# Quantity -> the counter, by access.
COUNTERS = {
    "requests": "smsp__inst_executed_op_shared_{}.sum",
    "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum",
    "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
}
SHORT = {"load": "ld", "store": "st"}


# Patterns ----------------------------------------------------------------------------------------


def patterns() -> dict[str, Pattern]:
    """All patterns by name, in a fixed order."""
    lanes = range(32)
    named: dict[str, Pattern] = {"linear": list(lanes), "reversed": [31 - t for t in lanes]}
    for stride in (2, 3, 4, 5, 8, 16, 17, 32, 33):
        named[f"stride {stride}"] = [stride * t for t in lanes]
    named["one item"] = [5] * 32
    for size in (2, 4, 8, 16):  # neighbours want the same item; groups want the same items
        named[f"same item for {size} neighbours"] = [t // size for t in lanes]
        named[f"same {size} items for each {size} lanes"] = [t % size for t in lanes]
        named[f"{size} neighbours on every 16th item"] = [16 * (t // size) for t in lanes]
        named[f"lanes swapped at distance {size}"] = [t ^ size for t in lanes]
    named["two items, odd and even lanes"] = [t % 2 * 16 for t in lanes]
    named["pairs, one of which is apart"] = [t // 2 if t != 9 else 40 for t in lanes]
    for name, active in masks().items():
        for stride in (1, 2, 16):
            named[f"{name}, stride {stride}"] = [stride * t if t in active else None for t in lanes]
        named[f"{name}, pairs on one item"] = [t // 2 if t in active else None for t in lanes]
    return named | dict(chances())


def masks() -> dict[str, set[int]]:
    """The lanes that take part in a pattern, for patterns in which some do not."""
    return {
        "first half": set(range(16)),
        "second half": set(range(16, 32)),
        "first quarter": set(range(8)),
        "middle quarters": set(range(8, 24)),
        "first and third quarter": {*range(8), *range(16, 24)},
        "even lanes": set(range(0, 32, 2)),
        "every fourth lane": set(range(0, 32, 4)),
        "two lanes of different halves": {3, 21},
        "all but one": set(range(32)) - {13},
    }


def chances() -> Iterator[tuple[str, Pattern]]:
    """Random patterns, the same in every run."""
    dice = random.Random(SEED)  # noqa: S311 - no secret
    for number in range(3):
        yield f"permutation {number}", dice.sample(range(32), 32)
    for items in (4, 16, 32, 64, 256):
        for number in range(2):
            yield f"any of {items} items {number}", [dice.randrange(items) for _ in range(32)]
    for number in range(4):
        pair = [dice.randrange(64) for _ in range(16)]
        yield f"pairs on any of 64 items {number}", [pair[t // 2] for t in range(32)]
    for number in range(4):
        pair = [dice.randrange(64) for _ in range(16)]
        yield f"pairs at distance 2 {number}", [pair[t // 4 * 2 + t % 2] for t in range(32)]
    for number in range(4):
        yield (
            f"some lanes on any of 64 items {number}",
            [dice.randrange(64) if dice.random() < 0.5 else None for _ in range(32)],
        )


def rows() -> Iterator[Row]:
    """Every access that is counted."""
    for size in TYPES:
        for access in ACCESSES:
            for name, items in patterns().items():
                yield {"bytes": size, "access": access, "pattern": name, "items": items}


# Running -----------------------------------------------------------------------------------------


def launch(device: Device, chosen: list[Row]) -> Iterator[Row]:
    """Launch the kernel of each row, and yield the row after the launch."""
    text = source.load(KERNELS, "tools/studies/shared_patterns.cu")
    modules = {
        size: device.compile(text, {"T": name, "ITEMS": ITEMS}) for size, name in TYPES.items()
    }
    items = [[-1 if item is None else item for item in row["items"]] for row in chosen]
    every_item = device.to_device(np.array(items, np.int32))
    before = device.to_device(np.zeros(ITEMS * max(TYPES), np.uint8))
    after = device.empty(ITEMS * max(TYPES), np.uint8)
    for number, row in enumerate(chosen):
        kernel = modules[row["bytes"]][f"{row['access']}_pattern"]
        device.launch(kernel, 1, 32, every_item, np.int32(number), before, after)
        yield row
    device.synchronize()


def model(chosen: list[Row]) -> list[int]:
    """The wavefronts of each row on the CPU device."""
    with CheckDevice(detect=False, count=True) as device:
        return [
            sum(
                access.wavefronts
                for access in device.traces[-1].accesses
                if access.space == "shared" and access.kind == row["access"]
            )
            for row in launch(device, chosen)
        ]


def cuda(path: Path) -> None:
    """Count every row on the GPU."""
    tool, log = ncu.find_ncu(), path.with_suffix(".csv")
    names = [counter.format(short) for counter in COUNTERS.values() for short in SHORT.values()]
    words = [
        *(str(tool), "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"),
        *("--cache-control", "none", "--log-file", str(log), "--metrics", ",".join(names)),
        *(sys.executable, "-m", "tools.studies", "patterns", "child"),
    ]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    chosen = list(rows())
    seen = counters.table(log.read_text(encoding="utf-8", errors="replace"))
    if done.returncode or len(seen) != len(chosen):
        sys.exit(f"ncu ended with {done.returncode}, saw {len(seen)} of {len(chosen)} launches")
    for row, counts in zip(chosen, seen, strict=True):
        for quantity, counter in COUNTERS.items():
            row[quantity] = counters.number(counts[counter.format(SHORT[row["access"]])])
    head = {
        "device": done.stdout.strip(),
        "ncu": counters.version(tool),
        "date": results.today(),
        "counters": COUNTERS,
    }
    results.write_rows(path, head, chosen)


def child() -> None:
    """The process that ncu watches."""
    with open_device("cuda") as device:
        for _ in launch(device, list(rows())):
            pass
        print(device.info().name)


def compare(path: Path) -> None:
    """Print each access for which the model and the GPU count different wavefronts."""
    stored = results.read(path)
    rows = stored["rows"]
    wrong = 0
    for row, wavefronts in zip(rows, model(rows), strict=True):
        if wavefronts != row["wavefronts"]:
            wrong += 1
            print(
                f"{row['access']:<6} {row['bytes']:>2} bytes  {row['pattern']:<45} "
                f"{wavefronts:>3} here, {row['wavefronts']:>3} there"
            )
    print(f"{stored['device']}: {len(rows) - wrong} of {len(rows)} accesses equal")


def main(command: str = "", *paths: str) -> None:
    """One of the commands above, or `child`, which ncu runs."""
    if command == "cuda":
        cuda(Path(paths[0]))
    elif command == "compare":
        compare(Path(paths[0]))
    elif command == "child":
        child()
    else:
        sys.exit(__doc__)
