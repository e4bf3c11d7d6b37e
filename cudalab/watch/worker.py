"""The worker of a watcher: the checker's, which also looks at a kernel with both instruments.

python -m cudalab.watch.worker
"""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends.base import OnlyBuilds
from cudalab.backends.cpu.check import CheckDevice
from cudalab.bench.choice import shown_case
from cudalab.checker.submit import confine, worker
from cudalab.checker.submit.reports import OUT
from cudalab.errors import CudalabError, KernelError, TimeLimitError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case
from cudalab.microscope import profile, sanitize, subject
from cudalab.microscope.supervised import guarded
from cudalab.system.machine import processor_name
from cudalab.watch.costs import BLOCKS, COSTS, FINDINGS, LAUNCHES, Costs, costs_of, small_sizes

BANKS = 32


def observe(spec: dict[str, Any], load: Callable[[], None]) -> int:
    """Look at a kernel file: `findings.jsonl` and `costs.json` have what was seen."""
    lab, case = labs.get(spec["lab"]), spec["case"]
    variant = registry.read_header(Path(spec["kernel"]), lab, spec["label"])
    inputs = inputs_of(lab, case, spec["input"], spec.get("seed", 0))
    report = sanitize.Report(lab, variant, case, Path(OUT, FINDINGS))
    costs = Path(OUT, COSTS).open("wb")  # noqa: SIM115 - a confined process opens no file
    with CheckDevice(detect=True, count=False) as device:
        lab.compiled(variant, OnlyBuilds(device), case)
    load()
    if spec["confine"] and not confine.confine():
        raise CudalabError("the process could not be confined")
    examine(report, inputs[0], spec["kill_after"])
    counted = count(lab, variant, case, inputs[-1], spec["kill_after"])
    costs.write(json.dumps(asdict(counted)).encode() + b"\n")
    costs.close()
    report.close()
    return 0


def inputs_of(lab: Lab, case: Case, path: str, seed: int) -> list[subject.Data]:
    """The input in a file, or small ones; each is mapped from a file of its own."""
    if path:
        return [subject.from_file(lab, case, Path(path), "the failed test's input")]
    inputs = []
    for size in small_sizes(lab, case):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            dist = lab.distributions[0]
            inputs.append(subject.generated(lab, case, size, dist, seed, Path(folder)))
    return inputs


def examine(report: sanitize.Report, data: subject.Data, kill_after: float) -> None:
    """Look for what is wrong, in several orders."""

    def instrument(order: int) -> CheckDevice:
        return CheckDevice(detect=True, count=False, seed=order or None, kill_after=kill_after)

    report.save()
    try:
        sanitize.check(report, data, instrument)
    except TimeLimitError as error:
        report.rows["ended",] = sanitize.crash_row(error, "infinite_loop")
    except KernelError as error:
        report.rows["ended",] = sanitize.crash_row(error, "crash")
    report.save()


def count(lab: Lab, variant: Variant, case: Case, data: subject.Data, kill_after: float) -> Costs:
    """What the accesses and branches of one run cost."""
    result = profile.Profile(
        device="cpu",
        device_name=processor_name(),
        banks=BANKS,
        lab=lab.name,
        case=shown_case(lab, case),
        input=data.words,
    )
    sample: dict[str, Any] = {"blocks": BLOCKS, "launches": LAUNCHES, "kill_after": kill_after}
    with CheckDevice(detect=False, count=True, banks=BANKS, **sample) as device:
        one = profile.profile_variant(lab, variant, device, lambda: device.traces, data, case)
    result.variants.append(one)
    return costs_of(result)


if __name__ == "__main__":
    worker.warm_up(labs.get(sys.argv[1]))
    modes = {"observe": lambda spec, load: guarded(partial(observe, spec, load))}
    sys.exit(worker.main(modes))
