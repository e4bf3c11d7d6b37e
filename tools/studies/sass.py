"""The machine code of a kernel file: what a claim about the hardware can be checked with.

python -m tools.studies sass LAB/VARIANT|FILE.cu [WORD...]

prints how often each instruction occurs in each kernel, or the instructions that begin with one of
the words, such as ATOMS. A variant is compiled for the first case that it computes. Needs nvcc and
cuobjdump, which are in the CUDA toolkit; no GPU.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cudalab import labs
from cudalab.backends.cuda import nvcc
from cudalab.labs import registry
from cudalab.language import source
from tools.studies import counters

ARCHITECTURE = "sm_90a"
_KERNEL = re.compile(r"\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?(?P<text>[A-Z][^;]*?)\s*;")


def instructions(text: str) -> dict[str, list[str]]:
    """The instructions of each kernel of a CUDA source text, without their predicates."""
    with tempfile.TemporaryDirectory() as folder:
        file, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        file.write_text(text, encoding="utf-8")
        compiler = str(nvcc.find_nvcc())
        words = [compiler, *nvcc.FLAGS, "-cubin", f"-arch={ARCHITECTURE}", "-o", str(cubin)]
        subprocess.run([*words, str(file)], check=True)
        listed = subprocess.run(
            [cuobjdump(), "-sass", str(cubin)], check=True, capture_output=True, text=True
        )
    return dict(parsed(listed.stdout))


def parsed(listing: str) -> Iterator[tuple[str, list[str]]]:
    """The kernels of a listing of cuobjdump, each with its instructions."""
    _, *parts = _KERNEL.split(listing)
    for name, code in zip(parts[::2], parts[1::2], strict=True):
        yield name, [found["text"] for found in _INSTRUCTION.finditer(code)]


def cuobjdump() -> str:
    """The program, from PATH or beside nvcc."""
    beside = nvcc.find_nvcc().with_name("cuobjdump")
    found = shutil.which("cuobjdump") or (beside.exists() and str(beside))
    if not found:
        sys.exit("there is no cuobjdump on PATH nor beside nvcc: it is in the CUDA toolkit")
    return found


def text_of(name: str) -> str:
    """The text of a variant as it is compiled for its first case, or of a file as it is."""
    if name.endswith(".cu"):
        return Path(name).read_text(encoding="utf-8")
    lab_name, _, variant_name = name.partition("/")
    lab = labs.get(lab_name)
    variant = registry.find(lab, variant_name)
    defines = lab.kernel_defines(counters.first_case(lab, variant)) | variant.defines
    return source.with_defines(source.load(variant.path, variant.label).text, defines)


def main(name: str = "", *words: str) -> None:
    """Print the counts, or the instructions that begin with one of the words."""
    if not name:
        sys.exit(__doc__)
    for kernel, code in instructions(text_of(name)).items():
        print(f"{kernel}: {len(code)} instructions")
        if words:
            print(*(f"  {line}" for line in code if line.startswith(words)), sep="\n")
        else:
            counts = Counter(line.split()[0] for line in code)
            print("  " + ", ".join(f"{opcode} {n}" for opcode, n in counts.most_common()))
