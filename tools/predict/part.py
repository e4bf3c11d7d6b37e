"""The ladders on a part of a GPU, which stands for a smaller one; it was predicted before."""

from collections.abc import Sequence
from dataclasses import replace

from cudalab import labs
from cudalab.backends import choose_device, facts
from cudalab.bench.candidates import opened_alone
from cudalab.bench.choice import Request
from cudalab.bench.document import Document
from cudalab.bench.suite import Suite
from cudalab.output import live
from tools import results
from tools.predict.stored import add
from tools.studies.multiprocessors import part_of


def measure(count: int, seconds: float, names: Sequence[str], device: str = "auto") -> Document:
    """Measure ladders on so many multiprocessors, each for some seconds.

    Stores the times, unless the device is emulated: that is a rehearsal.
    """
    chosen = [(lab, lab.complete({})) for lab in map(labs.get, names)]
    request = Request(labs=chosen, variants="all", time_limit_s=seconds)
    device = choose_device(device)
    with opened_alone(device, None) as (opened, busy), live.BenchProgress() as progress:
        name = f"{opened.info().name}, {count} multiprocessors"
        with part_of(opened, count):
            suite = Suite(opened, request, progress, lambda _: None, busy)
            for _ in suite.tables():
                pass
    environment = replace(suite.document.environment, device_name=name)
    document = replace(suite.document, environment=environment)
    if facts(device).driver:
        add(results.slug(name), [document])
    return document
