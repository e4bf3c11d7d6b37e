"""How many mutants of the shipped kernels the checker's public tests reject, on the CPU device.

python -m tools.mutants [LAB[/VARIANT]...]               all, or these; keeps the other results
python -m tools.mutants --survivors [LAB[/VARIANT]...]   only survivors whose answers can be wrong
python -m tools.mutants --sometimes 6 [LAB[/VARIANT]...] only mistakes that show sometimes, 6 each
python -m tools.mutants --sometimes 6 --rest             of these, those without a verdict; goes on
python -m tools.mutants --witness 20 [LAB[/VARIANT]...]  looks for inputs that show survivors

A mutant is a kernel with one small change, made by a rule (rules.py): another operator, a constant
off by one, no barrier; or such a change in some blocks, for some sizes, one operator or one type
alone (sometimes.py). It is rejected if the public tests or the sanitizer reject it (verdicts.py).
A mutant whose machine code is that of the original is equivalent; one that does not compile is
invalid. Neither counts.

--witness stores nothing: it spends so many seconds of the processor on each survivor without a
proof that it equals its original, and prints the first input on which it is wrong (witness.py).
Stores docs/results/mutants/cpu.json, with the machine of the last run; tools/generate.py makes the
tables of docs/checking.md from it.
"""

from __future__ import annotations

import os
import random
import signal
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import SimpleQueue

from cudalab import labs
from cudalab.backends import open_device
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.system.machine import usable_cores
from tools import results
from tools.mutants import rules, sometimes, tables, witness
from tools.mutants.rules import Mutant
from tools.mutants.verdicts import verdict


def main() -> None:
    """Judge the mutants, a variant at a time; store the counts and the survivors of each."""
    parser = ArgumentParser(
        "python -m tools.mutants",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--survivors", action="store_true", help="only what survived last time")
    parser.add_argument("--sometimes", type=int, metavar="N", help="N of these kinds, no others")
    parser.add_argument("--rest", action="store_true", help="only those without a verdict")
    parser.add_argument("--witness", type=float, metavar="SECONDS", help="look for such inputs")
    parser.add_argument("--jobs", type=int, default=usable_cores(), metavar="N", help="at a time")
    parser.add_argument("chosen", nargs="*", metavar="LAB[/VARIANT]")
    options = parser.parse_args()
    if options.rest and options.sometimes is None:
        parser.error("--rest goes with --sometimes")
    if options.witness is not None:
        look_for_witnesses(options.chosen, options.witness)
        return
    again, chosen = options.survivors, options.chosen
    store = tables.update if again else tables.add if options.rest else tables.store
    machine = results.machine("cpu")
    known = tables.known_survivors() if again else set()
    # Processes, for a child that is forked while other threads hold locks may wait for ever.
    cores: SimpleQueue[int] = SimpleQueue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    pool = ProcessPoolExecutor(
        options.jobs, initializer=settle, initargs=(cores, options.jobs == usable_cores())
    )
    try:
        begun: dict[Future[str], Mutant] = {}
        work = variants(chosen)
        random.Random(rules.SEED).shuffle(work)  # noqa: S311 - a stopped run has some of all
        for lab, variant in work:
            drawn = mutants(lab, variant, options.sometimes)
            judged = tables.count(lab.name, variant.name, sometimes.CONDITIONS)
            for one in drawn[judged:] if options.rest else drawn:
                if not again or (one.lab, one.variant, one.line, one.after) in known:
                    begun[pool.submit(verdict, one)] = one
        waiting = Counter((one.lab, one.variant) for one in begun.values())
        done: dict[tuple[str, str], tables.Verdicts] = defaultdict(list)
        for future in as_completed(begun):
            one = begun[future]
            key = one.lab, one.variant
            done[key].append((one, future.result()))
            if len(done[key]) == waiting[key]:
                store(machine, *key, done[key])
                counts = Counter(each for _, each in done[key])
                print(*key, *(f"{count} {each}" for each, count in counts.items()), flush=True)
    finally:
        pool.shutdown(cancel_futures=True)


def look_for_witnesses(chosen: Sequence[str], seconds: float) -> None:
    """Print the survivors, and an input on which each is wrong if one is found."""
    known = tables.known_survivors()
    for lab, variant in variants(chosen):
        for one in mutants(lab, variant, None):
            if (one.lab, one.variant, one.line, one.after) in known:
                found = witness.witness(one, seconds)
                print(f"{lab.name} {variant.name}:{one.line} {one.after}", flush=True)
                print(f"    {found or 'no input shows it'}", flush=True)


def mutants(lab: Lab, variant: Variant, sometimes_only: int | None) -> list[Mutant]:
    """The mutants of a variant: all, or so many of those that show only sometimes."""
    if sometimes_only is not None:
        return sometimes.mutants(lab, variant)[:sometimes_only]
    return rules.mutants(lab, variant) + sometimes.mutants(lab, variant)


def settle(cores: SimpleQueue[int], alone: bool) -> None:
    """Leave Ctrl-C to the parent, and keep to a core of its own where workers have all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if alone:
        os.sched_setaffinity(0, {cores.get()})


def variants(chosen: Sequence[str]) -> list[tuple[Lab, Variant]]:
    """The exact variants that the CPU device runs: all, or those of the chosen names."""
    with open_device("cpu", 1) as device:
        features = device.features
    return [
        (labs.get(name), variant)
        for name in labs.names()
        for variant in registry.variants(labs.get(name))
        if not variant.missing(features)
        and not variant.precision
        and (not chosen or name in chosen or f"{name}/{variant.name}" in chosen)
    ]


if __name__ == "__main__":
    main()
