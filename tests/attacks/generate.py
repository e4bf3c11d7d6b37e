"""A class of submissions, with the verdict that each must get: right ones, broken ones, attacks.

    python tests/attacks/generate.py LAB COUNT FOLDER

writes them and FOLDER.json, a map from name to "pass", "fail" or "open", if only bubblewrap keeps
an attack out. Only the generator knows it.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from cudalab import labs
from cudalab.backends.cpu.device import CpuDevice
from cudalab.labs import registry

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
BROKEN = ROOT / "tests" / "broken"
CHEATS = ROOT / "cudalab" / "checker" / "cheats"
WALLS = re.compile(r"^(?:#|//) needs: (\w+)$", re.MULTILINE)

# Right on every GPU there is, though not by the book: the sanitizer has a note, no verdict.
ONLY_NOTED = {"early_return"}

PROGRAMS = {  # right programs, in a few words each
    "reduce": "total = sum(struct.unpack_from(f'<{n}i', data, 4)) & 0xFFFFFFFF\n"
    "out = struct.pack('<I', total)\n",
    "radixsort": "out = struct.pack(f'<{n}I', *sorted(struct.unpack_from(f'<{n}I', data, 4)))\n",
    "histogram": "counts = [0] * 256\n"
    "for byte in data[4:4 + n]: counts[byte] += 1\n"
    "out = struct.pack('<256I', *counts)\n",
}
READ = "import struct, sys\ndata = sys.stdin.buffer.read()\n(n,) = struct.unpack_from('<i', data)\n"
WRITE = "sys.stdout.buffer.write(out)\n"


def variants(lab: str) -> list[Path]:
    """The lab's variants that run on the CPU and compute the lab's usual case."""
    found = labs.get(lab)
    usual = found.complete({})
    return [
        variant.path
        for variant in registry.variants(found)
        if variant.computes(usual) and not variant.missing(CpuDevice.features)
    ]


def renamed(text: str, chance: random.Random) -> str:
    """Another student's hand: other comments, another summary."""
    text = re.sub(r'summary\s*=\s*"[^"]*"', f'summary = "hand-in {chance.random():.6f}"', text)
    text = re.sub(r"^// default.*\n", "", text, flags=re.MULTILINE)
    return text + f"\n// {chance.random()}\n"


def wrong_answers(lab: str) -> list[str]:
    """Programs that are wrong in ways of their own."""
    right = PROGRAMS[lab]
    return [
        READ + right + "out = out[:-1]\n" + WRITE,
        READ + right + "out = data[:4] + out\n" + WRITE,
        READ + right + "out = out + b'time: 3 ms\\n'\n" + WRITE,
        READ + right + "out = bytes(len(out))\n" + WRITE,
        READ + "out = data\n" + WRITE,
        READ + right + "out = bytes(reversed(out))\n" + WRITE,
        "raise SystemExit('not finished')\n",
        "",
    ]


def hand_ins(lab: str, chance: random.Random) -> list[tuple[str, str, str, str]]:
    """Name, file name, text and verdict of each different submission."""
    broken = sorted((BROKEN / lab).glob("*.cu"))
    broken += sorted((BROKEN / "bench").glob("*.cu")) if lab == "reduce" else []
    found = [
        (f"right-{path.stem}", "my.cu", renamed(path.read_text(), chance), "pass")
        for path in variants(lab)
    ]
    found += [
        (
            f"broken-{path.parent.name}-{path.stem}",
            "my.cu",
            path.read_text(),
            "pass" if path.stem in ONLY_NOTED else "fail",
        )
        for path in broken
    ]
    if lab in PROGRAMS:
        found.append(("right-program", "solve.py", READ + PROGRAMS[lab] + WRITE, "pass"))
        found += [
            (f"wrong-{number}", "solve.py", text, "fail")
            for number, text in enumerate(wrong_answers(lab))
        ]
    if lab == "reduce":
        for path in sorted(CHEATS.iterdir()):
            needs = WALLS.search(path.read_text()) if path.suffix in (".cu", ".py") else None
            if path.suffix in (".cu", ".py") and (needs is None or needs[1] != "timing"):
                verdict = "open" if needs is not None and needs[1] == "sandbox" else "fail"
                found.append((f"cheat-{path.stem}", path.name, path.read_text(), verdict))
    return found


def generate(lab: str, count: int, folder: Path, seed: int = 1) -> dict[str, str]:
    """Write `count` submissions as files, folders and archives; what each must get."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    folder.mkdir(parents=True)
    kinds = hand_ins(lab, chance)
    verdicts = {}
    for number in range(count):
        what, file_name, text, verdict = kinds[number % len(kinds)]
        name = f"{number:03d}-{what}"
        write(folder, name, file_name, text, number // len(kinds) + number)
        verdicts[name] = verdict
    return verdicts


def write(folder: Path, name: str, file_name: str, text: str, number: int) -> None:
    """As students do: a file, a folder, an archive with a folder in it, an archive without."""
    with tempfile.TemporaryDirectory() as held:
        inner = Path(held, name)
        inner.mkdir()
        (inner / file_name).write_text(text)
        (inner / "README.txt").write_text("my solution\n")
        match number % 4:
            case 0:
                shutil.copy(inner / file_name, folder / f"{name}{Path(file_name).suffix}")
            case 1:
                shutil.copytree(inner, folder / name)
            case 2:
                with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
                    archive.write(inner / file_name, f"{name}/{file_name}")
                    archive.write(inner / "README.txt", f"{name}/README.txt")
            case _:
                with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
                    archive.add(inner / file_name, file_name)


if __name__ == "__main__":
    lab, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    made = generate(lab, count, folder)
    Path(f"{folder}.json").write_text(json.dumps(made, indent=1) + "\n")
    print(f"{len(made)} submissions in {folder}: {sum(v == 'pass' for v in made.values())} right")  # noqa: T201
