"""The table of programs, and the folders in which they are compiled and run."""

import gzip
import json
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("programs.toml")
STORED = Path(__file__).parents[2] / "docs/results/world/programs.json"
_LIBRARIES = (  # what a source says, and what nvcc links for it
    (re.compile(r"\bcublasLt"), "-lcublasLt"),
    (re.compile(r"\bcublas"), "-lcublas"),
    (re.compile(r"\bcurandCreate"), "-lcurand"),
    (re.compile(r"#include\s*[<\"]cuda\.h|\bcu[A-Z]\w+\("), "-lcuda"),
)
_SOURCES = frozenset({".cu", ".cuh", ".h", ".hpp", ".c", ".cpp", ".cc"})


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a repository: where it is, how it is compiled, and how it is run."""

    set: str
    folder: str
    files: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    tolerance: float = 1e-5
    varies: str = ""  # why it prints something else on every device
    says: str = ""  # an expression for what it prints if its own check passes
    differs: str = ""  # what is known of a difference that nobody has explained

    @property
    def name(self) -> str:
        first = self.files[0].rpartition("/")[2].rpartition(".")[0]
        return f"{self.folder}/{first} {' '.join(self.arguments)}".strip()


def sets() -> dict[str, dict[str, str]]:
    """The repository and the commit of each set."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return {
        name: {key: each[key] for key in ("repository", "commit")} for name, each in table.items()
    }


def programs() -> list[Program]:
    """All programs of the table."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return [
        Program(
            set=name,
            folder=row["folder"],
            files=tuple(row["files"]),
            arguments=tuple(row.get("arguments", ())),
            options=(*_from(row["folder"], each["options"]), *row.get("options", ())),
            writes=tuple(row.get("writes", ())),
            tolerance=row.get("tolerance", Program.tolerance),
            varies=row.get("varies", ""),
            says=row.get("says", each.get("says", "")),
            differs=row.get("differs", ""),
        )
        for name, each in table.items()
        for row in each["programs"]
    ]


def chosen(only: str, verdicts: list[str]) -> list[Program]:
    """The programs whose set and name contain `only`.

    With `verdicts`, those that the stored table gives these, in their order; "none" are new.
    """
    named = [each for each in programs() if only in f"{each.set} {each.name}"]
    if not verdicts:
        return named
    given = {(row["set"], row["program"]): row["verdict"] for row in stored()}
    by_verdict: dict[str, list[Program]] = {}
    for each in named:
        by_verdict.setdefault(given.get((each.set, each.name), "none"), []).append(each)
    return [each for verdict in verdicts for each in by_verdict.get(verdict, [])]


def stored() -> list[dict[str, str]]:
    """The rows of the stored table."""
    rows: list[dict[str, str]] = json.loads(STORED.read_text("utf-8"))["programs"]
    return rows


def by_build(chosen: list[Program]) -> list[list[Program]]:
    """The programs in groups that are compiled alike, and differ in their arguments only."""
    groups: dict[tuple[object, ...], list[Program]] = {}
    for each in chosen:
        key = (each.set, each.folder, each.files, each.options)
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _from(folder: str, options: list[str]) -> list[str]:
    """Options of a set, whose folders are those of its repository, seen from a program's folder."""
    up = "../" * len(Path(folder).parts)
    return [f"-I{up}{each[2:]}" if each.startswith("-I") else each for each in options]


def libraries(folder: Path) -> list[str]:
    """What nvcc links for the sources of a folder."""
    text = "\n".join(
        path.read_text("utf-8", errors="replace")
        for path in sorted(folder.iterdir())
        if path.suffix in _SOURCES
    )
    return [option for wanted, option in _LIBRARIES if wanted.search(text)]


def copied(program: Program, sources: Path, to: Path) -> Path:
    """A copy of a program's folder in which it can be compiled and run; beside links to the rest.

    What a program writes stays in its copy, so several runs of one folder do not meet.
    """
    original = sources / program.set
    here = to
    parts = Path(program.folder).parts
    for part in parts:
        for each in original.iterdir():
            if each.name != part:
                (here / each.name).symlink_to(each.resolve())
        original, here = original / part, here / part
        here.mkdir()
    shutil.copytree(original, here, dirs_exist_ok=True)
    return here


def write_rows(path: Path, head: dict[str, str], rows: list[dict[str, object]]) -> None:
    """Write a record: its head, and a line for each program."""
    lines = [json.dumps(each) for each in (head, *rows)]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
