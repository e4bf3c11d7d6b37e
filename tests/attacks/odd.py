"""A class of 300 entries as hands and programs make them, graded once.

python -m tests.attacks.odd FOLDER [SANDBOX]

Makes FOLDER/class and grades it into FOLDER/out: right, wrong and racy kernels under names of any
bytes, links, pipes, empty files, archives of every kind, folders with what no folder should hold.
Exit 0 if every entry is judged or refused by name, nothing outside of FOLDER/out was written and
no report holds a control character. Prints the time and the memory that it took.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

from cudalab import labs
from cudalab.labs import registry
from cudalab.language import source

ENTRIES = 300
OTHERS = ("rar", "7z", "docx", "pdf", "txt", "cpp", "py", "exe", "gz")
LINKED = (("x/link.cu", tarfile.SYMTYPE), ("x/device", tarfile.CHRTYPE))
OUTSIDE = (("up", "../up.cu"), ("absolute", "/abs.cu"), ("drive", "C:\\x.cu"))
NAMES = [
    *("a b", "-rf", "--help", "two\nlines", "tab\there", "\u202eright", "\u2066iso", "\u200bzero"),
    *("e\u0301", "\u00e9", "日本語", "'quote", '"double', "$(id)", "`id`", ";rm", "%s%n", "=cmd|x"),
    *("+1", "@SUM", "<b>x<b>", "\x1b[31mred", "null\x01", "~", "*", "?", "[a]", "{b}", "#c", "!d"),
    *("&e", "x" * 252, "é" * 126, "CON", "nul", "a.b.c", "a" * 100 + "\n" * 50, "end."),
]


def kernels() -> tuple[bytes, bytes, bytes]:
    """A right kernel, a wrong one and one with a race."""
    variant = registry.find(labs.get("reduce"), "sequential")
    right = source.whole(source.load(variant.path)).encode()
    wrong = right.replace(b"i < n ?", b"i < n - 1 ?")
    racy = right.replace(b"__syncthreads();  // the next level", b"// the next level")
    if len({right, wrong, racy}) < len((right, wrong, racy)):
        raise SystemExit("the kernel has changed: it has no such lines")
    return right, wrong, racy


def zipped(*files: tuple[str, bytes]) -> bytes:
    """A zip file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return data.getvalue()


def tarred(content: bytes, *others: tuple[str, bytes]) -> bytes:
    """A tar file with a kernel, and members of other types."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        info = tarfile.TarInfo("x/my.cu")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
        for name, kind in others:
            other = tarfile.TarInfo(name)
            other.type, other.linkname = kind, "/etc/passwd"
            archive.addfile(other)
    return data.getvalue()


def files(texts: tuple[bytes, bytes, bytes]) -> dict[str, bytes]:
    """The entries that are plain files."""
    right, wrong, _ = texts
    made = {f"{name}.cu": texts[k % 3] if k < 12 else b"no kernel" for k, name in enumerate(NAMES)}
    made |= {os.fsdecode(b"sou\xe8et.cu"): right, os.fsdecode(b"\xff\xfe.cu"): b"x"}
    made |= {f"plain{k}.cu": texts[k % 3] + b"// %d\n" % k for k in range(60)}
    made |= {f"empty{k}.cu": b"" for k in range(20)}
    made |= {f"a zip {k}.cu": zipped(("my.cu", right)) for k in range(15)}
    made |= {f"good{k}.zip": zipped((f"d{k}/my.cu", texts[k % 3])) for k in range(15)}
    made |= {f"{name}.zip": zipped((path, right)) for name, path in OUTSIDE}
    made |= {f"tar{k}.tar.gz": tarred(right, *LINKED) for k in range(10)}
    made |= {f"other.{kind}": b"something" for kind in OTHERS}
    return made | {
        "CAPITALS.CU": right, "crlf.cu": right.replace(b"\n", b"\r\n"), "cut.zip": b"PK\3\4",
        "bom.cu": b"\xef\xbb\xbf" + right, "utf16.cu": right.decode().encode("utf-16"),
        "nul.cu": right.replace(b"tid", b"t\0d", 1), "huge.cu": right + b"// " + b"x" * (5 << 20),
        "bomb.zip": zipped(("my.cu", bytes(200 << 20))), "empty.zip": zipped(), "void.tar": b"",
        "many.zip": zipped(*((f"f{k}.cu", b"") for k in range(2500))), "wrong.cu": wrong,
    }  # fmt: skip


def make(folder: Path) -> None:
    """Fill a folder with the class."""
    texts = kernels()
    folder.mkdir(parents=True)
    for name, data in files(texts).items():
        (folder / name).write_bytes(data)
    for name, target in (("root", "/"), ("chain", "root"), ("gone.cu", "gone"), ("self", "self")):
        (folder / name).symlink_to(target)
    for number in range(15):
        (folder / f"link{number}.cu").symlink_to("/etc/passwd")
        os.mkfifo(folder / f"pipe{number}.cu")
    for number in range(20):
        inside = folder / f"folder{number}"
        (inside / "a\nb").mkdir(parents=True)
        if number % 4:
            (inside / "my.cu").write_bytes(texts[number % 3])
            (inside / ("z" * 255)).write_bytes(b"")
            (inside / "loop").symlink_to("/")
            os.mkfifo(inside / "pipe")
    deep = folder / "deep" / "/".join("d" * 100)
    deep.mkdir(parents=True)
    (deep / "my.cu").write_bytes(texts[0])
    for number in range(ENTRIES - len(list(folder.iterdir()))):
        (folder / f"more{number}.cu").write_bytes((*texts, b"int main() {}\n")[number % 4])


def main() -> int:
    """Make the class, grade it, and say what is wrong with the results."""
    folder = Path(sys.argv[1])
    make(folder / "class")
    began = time.monotonic()
    command = [sys.executable, "-m", "cudalab", "grade", str(folder / "class"), "--lab", "reduce"]
    command += ["--out", str(folder / "out"), "--quick", "--no-time", "--device", "cpu"]
    command += ["--sandbox", sys.argv[2] if len(sys.argv) > 2 else "auto", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = [done.stdout, done.stderr, (folder / "out" / "summary.html").read_text()]
    dirty = {
        letter for text in texts for letter in text if not (letter.isprintable() or letter == "\n")
    }
    silent = [row["name"] for row in rows if not (float(row["points"] or 0) or row["cause"])]
    print(  # noqa: T201 - a command
        f"status {done.returncode}, {len(rows)} of {ENTRIES} entries, of which without a cause: "
        f"{silent}; control characters: {sorted(dirty)}; most points "
        f"{sorted({row['max_points'] for row in rows})}; {time.monotonic() - began:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processors, "
        f"{used.ru_maxrss >> 10} MiB in the largest process"
    )
    return int(bool(done.returncode or len(rows) != ENTRIES or dirty or silent))


if __name__ == "__main__":
    sys.exit(main())
