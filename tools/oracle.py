"""What is known of the random kernels of tests/oracle, as tables."""

from __future__ import annotations

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
    return "\n".join([table(columns, gpus + hosts, numbers=3), _faults()]).rstrip()


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
        f" {document['version']} of the grammar, with {' and '.join(document['ways'])}. Each was"
        f" looked for in {document['limit_s']:.0f} s of a processor's time, in programs of few"
        " kernels; a seed counts if it has the host function's answer without the fault.\n\n"
    ) + table(columns, rows, numbers=2)
