"""The part of the checker that runs a submitted kernel. It runs inside the sandbox.

No report of this process can make an answer right: the grader compares the bytes, and it alone
knows the right answer. The reports only explain: the launches, the guard zones that were overrun,
the errors of the compiler.

    python -m cudalab.checker.submit.worker [LAB]

reads specifications from stdin, as lines of JSON, and forks a child for each one: with all modules
imported, and without any code of the submission. It replies with how the child has ended. A child
that loads the submission confines itself before (confine.py), so none can reach the next one.
With the name of a lab, it looks up before what each child would look up.

    compile  compiles for each case and loads nothing; with fibers beside what is there, if told
    cases    for each input: a report, a file for each different answer, and one with a bit for
             each element that no run has written
    time     computes on command; see `serve`
    sanitize looks for races and the like (looking.py)
"""

import gc
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cudalab import labs
from cudalab.backends import open_device
from cudalab.backends.cpu import kernel_runtime
from cudalab.backends.cpu.compiler.flags import QUICK
from cudalab.backends.cpu.device import LOOPS
from cudalab.checker.submit import confine, reports, tasks
from cudalab.errors import CudalabError
from cudalab.labs import registry
from cudalab.labs.base import Lab
from cudalab.language import source
from cudalab.system.cache import ADDITIONS, READ_ONLY

Mode = Callable[["Json", Callable[[], None]], int]  # a specification, and what `forked` gives

Json = dict[str, Any]
RAISED = 1  # Python's exit status after an uncaught exception
COLLECT_EVERY = 50_000  # new objects: a child ends soon, and a look at all of them copies pages


def main(more: Mapping[str, Mode] = MappingProxyType({})) -> int:
    """Fork a child for each specification; `more` are modes besides those above, by name."""
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)
    channel = tasks.Channel()
    confine.hide()
    probe = forked(lambda _: 0 if confine.confine() else 1)
    channel.reply(reports.CONFINES if probe.status == 0 else reports.CONFINES_NOT)
    while line := channel.read():
        spec = json.loads(line)

        def child(load: Callable[[], None], spec: Json = spec) -> int:
            if spec["mode"] != "time":
                channel.close()
            if spec["mode"] in more:
                return prepared(spec, load, more[spec["mode"]])
            return work(spec, channel, load)

        channel.reply(json.dumps(asdict(forked(child))))
    return 0


def forked(child: Callable[[Callable[[], None]], int]) -> reports.Reply:
    """How a child ended. It calls its argument right before it loads code of the submission."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = RAISED
        try:
            os.close(reading)

            def load() -> None:
                os.write(writing, b"L")
                os.close(writing)

            status = child(load)
        except BaseException:  # noqa: BLE001 - nothing may unwind into the parent's frames
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    loaded = os.read(reading, 1) == b"L"
    os.close(reading)
    _, status, usage = os.wait4(pid, 0)
    ended = os.waitstatus_to_exitcode(status)
    return reports.Reply(status=ended, loaded=loaded, peak_bytes=usage.ru_maxrss * 1024)


def prepared(spec: Json, load: Callable[[], None], mode: Mode) -> int:
    """Do in a child, within its limits, what a mode of another module does."""
    limit(spec)
    return mode(spec, load)


def limit(spec: Json) -> None:
    """Set the limits of a child, and where it may write."""
    for name, value in spec["rlimits"].items():
        which = getattr(resource, name)
        allowed = resource.getrlimit(which)[1]  # of the worker, which a child cannot raise
        bound = value if allowed == resource.RLIM_INFINITY else min(value, allowed)
        resource.setrlimit(which, (bound, bound))
    if not spec["confine"]:  # no code of the submission runs on the host
        confine.hide(hidden=False)
    if spec["read_only"]:  # so is the box, but for its folder of outputs
        os.environ |= {READ_ONLY: "1", "TMPDIR": str(Path(reports.OUT).absolute())}
    if spec.get("adds"):  # beside what has been compiled before
        os.environ[ADDITIONS] = str(Path(reports.OUT).absolute())
    if spec.get("quick"):
        os.environ[QUICK] = "1"
    if spec.get("fibers"):
        os.environ[LOOPS] = "0"
    if spec.get("kernels_dir"):
        source.use_kernels_dir(Path(spec["kernels_dir"]))


def work(spec: Json, channel: tasks.Channel, load: Callable[[], None]) -> int:
    """Do in a child what the specification describes."""
    limit(spec)
    if spec["mode"] == "sanitize":
        from cudalab.checker.submit import looking  # noqa: PLC0415 - one child of several does it

        return looking.sanitize(spec, load)
    lab, mode = labs.get(spec["lab"]), spec["mode"]
    outputs = tasks.Outputs(spec)
    with ExitStack() as stack:
        try:
            device = stack.enter_context(open_device(spec["device"], spec.get("threads")))
            variant = registry.read_header(Path(spec["kernel"]), lab, spec["label"])
            registry.check_features(variant, device.name, device.features)
        except CudalabError as error:
            outputs.fail(error)
            return int(error.exit_code)
        if mode == "compile":
            tasks.compile_cases(lab, variant, device, spec, outputs)
            return 0
        device = tasks.LoadsOnce(device, load, confined=spec["confine"])
        if mode == "cases":
            tasks.run_cases(lab, variant, device, spec, outputs)
        else:
            tasks.serve(lab, variant, device, spec, channel, outputs)
    return 0


def warm_up(lab: Lab) -> None:
    """Look up once what each child would look up: the compiler, its flags, the lab's modules."""
    lab.teaching.sizes(lab.complete({}))
    np.random.__name__  # noqa: B018 - a module that loads others when it is used
    kernel_runtime.look_up()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        warm_up(labs.get(name))
    sys.exit(main())
