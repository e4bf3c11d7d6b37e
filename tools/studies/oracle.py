"""What is known of the random kernels of tests/oracle, as tables."""

import re
from collections import Counter

from tools.results import ROOT, Json, read, table

STORED = ROOT / "docs" / "results" / "oracle"


def compared() -> str:
    """Tables of how many kernels were compared with what, and of the faults that were planted."""
    gpus = [_of_gpu(read(path)) for path in sorted(STORED.glob("nvidia-*.json"))]
    hosts = [_of_host(read(path)) for path in sorted(STORED.glob("host-*.json"))]
    columns = ["compared", "from", "on", "when", "kernels", "differ", "refused"]
    foreign = [_foreign(read(path)) for path in sorted(STORED.glob("foreign*.json"))]
    parts = [table(columns, gpus + hosts, numbers=3), _totals(), *foreign, _tiers(), _faults()]
    return "\n".join(part for part in parts if part).rstrip()


def _of_gpu(document: Json) -> list[str]:
    return [f"{document['device']} with plain C++", f"{document['first']:,}",
            document["compiler"].split("/")[0], _when(document), f"{document['count']:,}",
            str(len(document["differ"])), str(document["failed"])]  # fmt: skip


def _when(document: Json) -> str:
    """The date, and the commit if it is known."""
    return str(document["date"]) + (f", `{document['commit']}`" if document.get("commit") else "")


def _seeds(document: Json, what: str) -> int:
    """How many seeds differ, or are refused."""
    return len({seed for _, seed, *_ in document[what]})


def _of_host(document: Json) -> list[str]:
    ways = ", ".join(document["ways"])
    return [f"the CPU device ({ways}) with plain C++", f"{document['first']:,}",
            document.get("machine", ""), _when(document), f"{document['count']:,}",
            str(_seeds(document, "differ")), str(_seeds(document, "refused"))]  # fmt: skip


def _totals() -> str:
    """A sentence with the sums over all comparisons of the CPU device."""
    documents = [read(path) for path in sorted(STORED.glob("host-*.json"))]
    count, differ, refused = (
        sum(each) for each in zip(*((document["count"], _seeds(document, "differ"),
                                     _seeds(document, "refused")) for document in documents),
                                  strict=True)
    )  # fmt: skip
    return (
        f"In all {count:,} kernels of the CPU device, each in two ways or more: {differ}"
        f" differ{'s' if differ == 1 else ''}, {refused} are refused by their line.\n"
    )


def _foreign(document: Json) -> str:
    """A table of the kernels of another generator."""
    rows = [[verdict, str(count)] for verdict, count in document["verdicts"].items()]
    return (
        f"{document['count']} kernels of {document['generator']} ({', '.join(document['ways'])}),"
        " compared with plain C++ in which one thread runs at a time"
        f" ({document['machine']}, {document['date']}, commit `{document['commit']}`). What plain"
        " C++ does not end in a minute has no reference:\n\n"
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

RARE = 0.001  # of all kernels: rarer reasons are counted together


def _tiers() -> str:
    """A table of how the kernels of all comparisons have run where they may be loops."""
    counted: Counter[str] = Counter()
    for document in (read(path) for path in sorted(STORED.glob("host-*.json"))):
        for text, number in document["kernels"].items():
            way, _, kind = text.partition(": ")
            if way == document["ways"][0]:
                counted[_row(kind)] += number
    if not counted:
        return ""
    total = counted.total()
    shown = [(kind, count) for kind, count in counted.most_common() if count >= RARE * total]
    rest = total - sum(count for _, count in shown)
    rows = [[kind, f"{count:,}", f"{count / total:.1%}"] for kind, count in shown]
    rows.append(["other reasons for fibers, each rarer", f"{rest:,}", f"{rest / total:.1%}"])
    return ("How the kernels of these seeds run where they may be loops, and why some do not:\n\n"
            + table(["kernels run as", "kernels", "share"], rows, numbers=2))  # fmt: skip


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
        f"{found} of {len(rows)} planted faults that were looked for are found by kernels of"
        f" version {document['version']} of the grammar, with {' and '.join(document['ways'])}."
        " A seed counts if it has the host function's answer without the fault. The last column is"
        " the processor's time until the fault was found, or until the search was ended.\n\n"
    ) + table(columns, rows, numbers=2)
