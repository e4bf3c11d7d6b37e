"""A witness against a mutant that the public tests accept: an input on which it is wrong.

Inputs of random sizes, distributions and cases, some of them under the sanitizer, which gets larger
ones than in a check. The original must be right on the witness. Whatever has no witness is not
shown to differ from its original.
"""

import math
import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from cudalab import labs
from cudalab.backends import open_device
from cudalab.backends.base import Device
from cudalab.checker import cases
from cudalab.checker.submit import tasks
from cudalab.errors import CudalabError
from cudalab.labs import registry, sizes
from cudalab.labs.base import Lab
from cudalab.labs.header import Variant
from cudalab.labs.inputs import Case, Size
from cudalab.labs.solve.teaching import SOME
from cudalab.language import source
from tools.mutants import verdicts
from tools.mutants.rules import Mutant

INPUT_SECONDS = 10  # of the processor, for one input: many times what an original needs
SANITIZED_SECONDS = 40
SANITIZED_EACH = 4  # one input of so many
MAX_ITEMS = 1 << 21
MAX_PRODUCTS = 1 << 25
MAX_EQUATIONS = 500
MAX_SANITIZED_EQUATIONS = 200
SANITIZED_SHARE = 64  # of MAX_ITEMS and of MAX_PRODUCTS
RESIDUES = (None, None, 0, 1, 31, 63)
FOUND = 3  # the exit status of a child


class Attempt(NamedTuple):
    """An input, and whether the sanitizer looks at it."""

    test: cases.Test
    sanitized: bool

    def words(self, lab: Lab) -> str:
        """The command that shows it."""
        options = " ".join(lab.words(lab.complete(self.test.options)))
        command = "sanitize " if self.sanitized else ""
        of_data = f"--n {sizes.in_words(self.test.size)} --dist {self.test.dist}"
        return f"{command}{lab.name} {options} {of_data} --seed {self.test.seed}"


def witness(one: Mutant, seconds: float) -> str | None:
    """The first input within so many seconds of the processor on which a mutant is wrong."""
    lab = labs.get(one.lab)
    original = source.whole(source.load(registry.find(lab, one.variant).path))
    with tempfile.TemporaryDirectory(prefix="cudalab-witness-") as folder:
        path, tried = Path(folder, f"{one.variant}.cu"), Path(folder, "tried")
        path.write_text(one.text, encoding="utf-8")
        if not shows(lambda: searched(lab, path, seconds, tried)) or not tried.exists():
            return None
        last = int(tried.read_text(encoding="utf-8"))
        path.write_text(original, encoding="utf-8")
        found = next(islice(attempts(lab, registry.read_header(path, lab, path.name)), last, None))
        if shows(lambda: searched(lab, path, 0, tried, last)):
            return None  # no input for the original either
        return found.words(lab)


def shows(work: Callable[[], bool]) -> bool:
    """Whether some work is true, or ends its process: a child whose output goes nowhere."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in (signal.SIGSEGV, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            status = FOUND if work() else 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) not in (0, FOUND):
        raise RuntimeError("the search for a witness has failed")
    return os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == FOUND


def searched(lab: Lab, path: Path, seconds: float, tried: Path, only: int | None = None) -> bool:
    """Whether a kernel file is wrong on one of the attempts, or on one; `tried` has the last."""
    with open_device("cpu", 1) as opened:
        device = tasks.LoadsOnce(opened)
        variant = registry.read_header(path, lab, path.name)
        began = time.process_time()
        for number, attempt in enumerate(attempts(lab, variant)):
            if only not in (None, number):
                continue
            tried.write_text(str(number), encoding="utf-8")
            most = SANITIZED_SECONDS if attempt.sanitized else INPUT_SECONDS
            limit = int(time.process_time() + most) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            signal.alarm(verdicts.patience(most))
            if is_wrong(lab, variant, device, attempt):
                return True
            if only is not None or time.process_time() - began > seconds:
                return False
    return False


def is_wrong(lab: Lab, variant: Variant, device: Device, attempt: Attempt) -> bool:
    """Whether a kernel is wrong on an input, or the sanitizer finds something there."""
    test = attempt.test
    case = lab.complete(test.options)
    if attempt.sanitized:
        return not verdicts.is_clean(lab, variant, case, (test.size,), test.dist)
    try:
        (given,) = verdicts.made(lab, (test,))
    except (CudalabError, ValueError):
        return False  # there is no such input
    return verdicts.wrong(lab, variant, device, given)


# Inputs ------------------------------------------------------------------------------------------


def attempts(lab: Lab, variant: Variant) -> Iterator[Attempt]:
    """Inputs without an end, each of another size, distribution and case."""
    draw = random.Random(f"{lab.name}/{variant.name}")  # noqa: S311 - no secret
    computed = [case for case in lab.cases() if variant.computes(case)]
    dists = [one for one in lab.distributions if one not in ("nan", "singular")]
    if variant.dispatch in SOME:
        dists = [one for one in dists if one in SOME[variant.dispatch]]
    for number in count():
        case = dict(draw.choice(computed)) | ({"shape": True} if lab.name == "matmul" else {})
        size, sanitized = size_of(lab, case, draw), number % SANITIZED_EACH == SANITIZED_EACH - 1
        yield Attempt(
            cases.Test(
                "a witness",
                bearable(size, lab) if sanitized else size,
                draw.choice(dists),
                options=case,
                seed=verdicts.SEED if sanitized else draw.randrange(1 << 30),
            ),
            sanitized,
        )


def size_of(lab: Lab, case: Case, draw: random.Random) -> Size:
    """A size of a case's inputs, of any order of magnitude."""

    def below(limit: float) -> int:
        number, residue = int(limit ** draw.random()), draw.choice(RESIDUES)
        return max(1, number if residue is None else number // 64 * 64 + residue)

    if lab.name == "solve":
        return below(MAX_EQUATIONS)
    if lab.name == "matmul":
        dims = [below(MAX_ITEMS) for _ in "mk" + ("" if case["product"] == "aat" else "n")]
        while dims[0] * dims[1] * dims[-1] > MAX_PRODUCTS or dims[0] * dims[-1] > MAX_ITEMS:
            place = draw.randrange(len(dims))
            dims[place] = max(1, dims[place] // draw.randrange(2, 5))
        return tuple(dims)
    if isinstance(lab.teaching.sizes(case).sanitized[0], tuple):
        rows = below(MAX_ITEMS)
        dims = [rows, below(MAX_ITEMS / rows)]
        draw.shuffle(dims)
        return tuple(dims)
    return below(MAX_ITEMS)


def bearable(size: Size, lab: Lab) -> Size:
    """A size that the sanitizer can bear."""
    if isinstance(size, int):
        limit = MAX_SANITIZED_EQUATIONS if lab.name == "solve" else MAX_ITEMS // SANITIZED_SHARE
        return min(size, limit)
    dims = list(size)
    limit = (MAX_PRODUCTS if lab.name == "matmul" else MAX_ITEMS) // SANITIZED_SHARE
    while math.prod(dims) * (dims[0] if lab.name == "matmul" and len(dims) == len("mk") else 1) > (
        limit
    ):
        dims[dims.index(max(dims))] = max(dims) * 2 // 3
    return tuple(dims)
