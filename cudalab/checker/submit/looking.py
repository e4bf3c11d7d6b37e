"""The worker's look for races, lost barriers and accesses out of bounds in a submitted kernel."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cudalab import labs
from cudalab.backends.base import OnlyBuilds
from cudalab.backends.cpu.check import CheckDevice
from cudalab.checker.submit import confine
from cudalab.checker.submit.reports import FINDINGS, OUT
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.inputs import Size
from cudalab.microscope import KILL_AFTER_S, supervised
from cudalab.microscope.sanitize import ORDERS
from cudalab.microscope.subject import Subject


def orders(sizes: Sequence[Size]) -> list[int]:
    """How many orders of blocks and warps each size runs in: the smallest one in all of them.

    They show whether an answer depends on the order. A race shows in any.
    """
    return [ORDERS, *(1 for _ in sizes[1:])]


def sanitize(spec: dict[str, Any], load: Callable[[], None]) -> int:
    """Do as `cudalab sanitize` does: on an input, or on the sizes that it would choose.

    It takes the kernels as they were compiled for the tests, and compiles the instrumented ones
    beside its report.
    """
    lab, case = labs.get(spec["lab"]), spec["cases"][0]

    def confined(subject: Subject) -> None:
        with CheckDevice(detect=True, count=False) as device:
            lab.compiled(subject.variants[0], OnlyBuilds(device), case)
        load()
        if spec["confine"] and not confine.confine():
            raise CudalabError("the process could not be confined")

    def look() -> int:
        variant = registry.read_header(Path(spec["kernel"]), lab, spec["label"])
        subject = Subject(
            lab=lab,
            case=case,
            variants=[variant],
            dist=lab.distributions[0],
            seed=spec["seed"],
            data=Path(spec["input"]) if spec["input"] else None,
            confine=confined,
        )
        sizes = lab.teaching.sizes(case).sanitized
        sizes = sizes[:1] if subject.data else sizes
        status, found = supervised.examine(subject, sizes, orders(sizes), KILL_AFTER_S, counts=True)
        if not status:
            Path(OUT, FINDINGS).write_text(json.dumps(asdict(found)), encoding="utf-8")
        return status

    return supervised.guarded(look)
