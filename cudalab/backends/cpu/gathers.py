"""Loads that g++ makes wrong from version 12 on, where it vectorizes a loop.

Their address counts with a truth value: for the index of `table[a[i] > 1 && b[i] < 2]` it takes the
mask of the comparisons, in which true is -1. No option leaves out such loads alone, so g++ also
writes down its loops before it vectorizes them, and where one has such an address, the file is
compiled again with its loops as they are written.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from cudalab.backends.cpu.toolchain import find_compiler

Command = Sequence[str]

Result = TypeVar("Result")

_FAULTY = re.compile(r"\) (1[2-9]|[2-9]\d)\.\d+\.\d+$")  # g++'s versions from 12 on; not clang's
_LOOPS = "-fdump-tree-ifcvt="  # the pass before the vectorizer
_NOT_VECTORIZED = "-fno-tree-loop-vectorize"

_NAME = r"[\w.]+"
_FUNCTION = re.compile(r"^;; Function ", re.MULTILINE)
_DECLARED = re.compile(rf"^  ([^;=()]+?)({_NAME});$", re.MULTILINE)  # type and name
_SET = re.compile(rf"^  ({_NAME}) = (.+);", re.MULTILINE)
_CONVERSION = re.compile(rf"\([\w ]+\) ({_NAME})")
_COUNTING = re.compile(rf"({_NAME}) (?:[-+*]|<<) ({_NAME})")
_INDEX = re.compile(r"\[([^\]]*)\]")


def carefully(
    commands: Sequence[Command],
    run: Callable[[Sequence[Command]], Result],
    failed: Callable[[Result], object],
) -> Result:
    """Run compilers, and those again whose vectorized loads would be wrong, unless one fails."""
    if not _FAULTY.search(find_compiler().version()):
        return run(commands)
    written = [Path(f"{command[command.index('-o') + 1]}.loops") for command in commands]
    done = run([[*one, f"{_LOOPS}{to}"] for one, to in zip(commands, written, strict=True)])
    if failed(done):
        return done
    wrong = [
        [*command, _NOT_VECTORIZED]
        for command, loops in zip(commands, written, strict=True)
        if loops.exists() and counts_with_truth(loops.read_text(errors="replace"))
    ]
    return run(wrong) if wrong else done


def counts_with_truth(loops: str) -> bool:
    """Whether an address of these functions, in g++'s own text, counts with a truth value."""
    return any(map(_of_function, _FUNCTION.split(loops)))


def _of_function(text: str) -> bool:
    types: dict[str, str] = {name: kind.strip() for kind, name in _DECLARED.findall(text)}

    def kind(name: str) -> str:
        return types.get(name, types.get(name.rpartition("_")[0], ""))  # or one of its versions

    counts = set[str]()  # names whose values count with a truth value
    sets, known = _SET.findall(text.replace("(D)", "")), -1
    while known != len(counts):
        known = len(counts)
        for name, value in sets:
            converted = _CONVERSION.fullmatch(value)
            counted = _COUNTING.fullmatch(value)
            if converted and (converted[1] in counts or kind(converted[1]) == "bool"):
                counts.add(name)
            elif counted and counts.intersection(counted.groups()):
                if kind(name).endswith("*"):
                    return True
                counts.add(name)
            elif any(counts.intersection(re.findall(_NAME, at)) for at in _INDEX.findall(value)):
                return True
    return False
