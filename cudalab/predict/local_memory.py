"""Which loads and stores nvcc makes in local memory: those of arrays that no register can hold.

PTX names their lines, and the assembler says how many bytes of stack a function needs: 0 if it has
found registers for what PTX has in local memory. It also says which functions spill, that is, keep
in local memory what registers do not suffice for; PTX does not have these accesses.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cudalab.backends.cuda import nvcc
from cudalab.errors import CudalabError
from cudalab.language.source import Source
from cudalab.predict import code, kept

LocalAccess = tuple[str, int, str]  # file, line, "load", "store" or "spill"

ARCH = "sm_90"
_ACCESS = re.compile(
    r"\s*(?:@!?%\w+\s+)?(ld|st)(?:\.volatile)?\.(local\.|(?:v[248]\.)?[busf]\d+\s)"
)
_FUNCTION = re.compile(r"^(?:\.\w+ )*\.(?P<kind>entry|func)\b.*?(?P<name>\w+)\(")
_FRAME = re.compile(r"properties for (\w+)\s+(\d+) bytes stack frame, (.*)")
_KINDS = {"ld": "load", "st": "store"}


def of_source(source: Source, defines: Mapping[str, str | int]) -> frozenset[LocalAccess] | None:
    """The accesses of a kernel file of a lab. None where no nvcc says it."""
    try:
        ptx, log = code.listing(source, defines, ARCH)
    except CudalabError:
        return None
    return frozenset(in_listing(ptx, log, code.own_files(ptx, source)))


def of_program(
    sources: Iterable[str], texts: Mapping[str, str], options: Sequence[str]
) -> frozenset[LocalAccess] | None:
    """The accesses of a program compiled with `options`. None where no nvcc says it.

    `texts` are those of the sources and of the headers that they include, by their names.
    """
    try:
        compiler = nvcc.find_nvcc(ARCH)
    except CudalabError:
        return None
    given = [one for one in options if not one.startswith(("-arch", "-gencode", "-code", "-l"))]
    taken = {option.partition("=")[0] for option in given}
    flags = [*(flag for flag in nvcc.FLAGS if flag.partition("=")[0] not in taken), *given]
    found: set[LocalAccess] = set()
    parts = [part for each in texts.items() for part in each]
    for source in sources:
        command = [str(compiler), *flags, f"-arch={ARCH}", source]
        name = kept.key(nvcc.release(compiler), *command, *parts)
        listing = kept.load(name) or _listing(command)
        if listing is None:
            return None
        kept.save(name, listing)
        ptx, log = listing
        found |= set(in_listing(ptx, log, code.files(ptx, [*texts])))
    return frozenset(found)


def _listing(command: Sequence[str]) -> tuple[str, str] | None:
    """PTX, and what the assembler says of each kernel; None if nvcc refuses the source."""
    with tempfile.TemporaryDirectory() as folder:
        keep = ("-cubin", "-keep", "-keep-dir", folder, "-Xptxas", "-v")
        words = [*command, *keep, "-o", f"{folder}/program.cubin"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        listings = [*Path(folder).glob("*.ptx")]
        if done.returncode != 0 or not listings:
            return None
        return listings[0].read_text(encoding="utf-8", errors="replace"), done.stdout + done.stderr


def in_listing(ptx: str, log: str, files: Mapping[int, str]) -> Iterator[LocalAccess]:
    """The accesses of PTX, by the source's own lines; `files` are its names by their number there.

    An access that names no memory may be one, if any function has a stack, and so may that of a
    function to the array of its caller. A function that spills has a "spill" at its first line.
    """
    said = _FRAME.findall(log)
    frames = {name: int(frame) for name, frame, _ in said}
    spilling = {name for name, _, spilled in said if re.search("[1-9]", spilled)}
    most = max(frames.values(), default=0)
    place, frame, spills = ("", 0), 0, False
    for line in ptx.splitlines():
        at = code.place(line, files)
        place = at or place
        if begins := _FUNCTION.match(line):
            frame = frames.get(begins["name"], most) if begins["kind"] == "entry" else most
            spills = begins["name"] in spilling
        if at and spills:
            yield (*at, "spill")
            spills = False
        match = _ACCESS.match(line)
        if match and (frame if match[2] == "local." else most):
            yield (*place, _KINDS[match[1]])
