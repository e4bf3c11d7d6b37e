"""What is known of the random kernels of tests/oracle, as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.results import ROOT, read, table

if TYPE_CHECKING:
    from tools.results import Json

STORED = ROOT / "docs" / "results" / "oracle"


def compared() -> str:
    """Tables of how many kernels were compared with what, and of the faults that were planted."""
    gpus = [_of_gpu(read(path)) for path in sorted(STORED.glob("nvidia-*.json"))]
    hosts = [_of_host(read(path)) for path in sorted(STORED.glob("host-*.json"))]
    columns = ["compared", "grammar", "date", "kernels", "differ", "refused"]
    parts = [table(columns, gpus + hosts, numbers=3), _foreign(), _tiers(), _faults()]
    return "\n".join(part for part in parts if part).rstrip()


def _of_gpu(document: Json) -> list[str]:
    differ = document.get("differ")
    return [f"{document['device']} with plain C++", str(document["version"]), document["date"],
            f"{document['count']:,}", "" if differ is None else str(len(differ)),
            str(document["failed"])]  # fmt: skip


def _of_host(document: Json) -> list[str]:
    ways = ", ".join(document["ways"])
    differ = {seed for _, seed in document["differ"]}
    refused = {seed for _, seed, _ in document["refused"]}
    return [f"the CPU device ({ways}) with plain C++", str(document["version"]), document["date"],
            f"{document['count']:,}", str(len(differ)), str(len(refused))]  # fmt: skip


def _foreign() -> str:
    """Tables of the kernels of another generator."""
    path = STORED / "foreign.json"
    if not path.exists():
        return ""
    document = read(path)
    rows = [[verdict, str(count)] for verdict, count in document["verdicts"].items()]
    return (
        f"{document['count']} kernels of {document['generator']}, on the CPU device"
        f" ({', '.join(document['ways'])}) and as plain C++ in which one thread runs at a time"
        f" ({document['machine']}, {document['date']}, commit `{document['commit']}`):\n\n"
    ) + table(["verdict", "kernels"], rows, numbers=1)


REASONS = (  # how kernels run, as they are counted: what a reason begins with, and its row
    ("refused", r"in a program with a kernel that is refused"),
    ("loops over the threads of a block", r"loops over"),
    ("one thread after another", r"one thread after another"),
    ("fibers: loops that the compiler refuses", r"fibers: the compiler refuses"),
    ("fibers: a warp's operation in a branch that not all lanes may take",
     r"fibers: __\w+ in a branch that not all lanes may take"),
    ("fibers: a function with a barrier where no statement is", r"fibers: pass\w+ in a region"),
)  # fmt: skip


def _tiers() -> str:
    """A table of how the kernels of each comparison have run where they may be loops."""
    documents = [read(path) for path in sorted(STORED.glob("host-*.json"))]
    counted: dict[str, dict[int, int]] = {}
    for column, document in enumerate(documents):
        for text, number in document["kernels"].items():
            way, _, kind = text.partition(": ")
            if way == "loops":
                row = counted.setdefault(_row(kind), {})
                row[column] = row.get(column, 0) + number
    if not counted:
        return ""
    rows = sorted(counted.items(), key=lambda row: -sum(row[1].values()))
    columns = [f"from {document['first']:,}" for document in documents]
    cells = [[kind, *(str(by.get(i, 0)) for i in range(len(documents)))] for kind, by in rows]
    return ("How the kernels of these seeds run where they may be loops, and why some do not:\n\n"
            + table(["kernels run as", *columns], cells, numbers=len(columns)))  # fmt: skip


def _row(kind: str) -> str:
    """The row in which a way to run is counted."""
    return next((row for row, pattern in REASONS if re.match(pattern, kind)), kind)


def _faults() -> str:
    """A table of the planted faults that were looked for."""
    path = STORED / "faults.json"
    if not path.exists():
        return ""
    document = read(path)
    hunts = sorted(document["faults"], key=lambda each: each["seconds"])
    rows = [[each["name"], str(each["seed"] or "not found"), each["shown"], each["machine"],
             f"{each['date']}, `{each['commit']}`", str(each["kernels"]), f"{each['seconds']:.0f}"]
            for each in hunts]  # fmt: skip
    found = sum(1 for each in hunts if each["seed"])
    columns = ["planted fault", "found by seed", "with", "on", "when", "kernels", "processor, s"]
    return (
        f"{found} of {len(rows)} planted faults are found by kernels of version"
        f" {document['version']} of the grammar, with {' and '.join(document['ways'])}. A seed"
        " counts if it has the host function's answer without the fault. The last column is the"
        " processor's time until the fault was found, or until the search was ended.\n\n"
    ) + table(columns, rows, numbers=2)
