"""Run the commands of README.md and the tutorials, and put in what they print.

python -m tools.transcripts [DOCUMENT...]           rewrite the outputs
python -m tools.transcripts --check [DOCUMENT...]   exit 1 and show the outputs that have changed

A block ```console is a transcript: lines after `$ ` are commands, the others are what they print.
A block with a title is a file, which the commands below it find. `<!-- varies -->` above a
transcript says that each run or machine prints other words: only the first one is compared.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import NamedTuple

from tools import results

DOCUMENTS = (
    results.ROOT / "README.md",
    *sorted((results.ROOT / "docs" / "tutorials").glob("*.md")),
)
REPOSITORY = ("kernels", "samples", "tests")  # the folders that commands may name

BLOCK = re.compile(
    r"(?P<varies><!-- varies -->\n)?^```(?P<info>.*)\n(?P<body>(?:.*\n)*?)^```$", re.MULTILINE
)
_TITLE = re.compile(r'title="(?P<file>[\w./-]+)"')
_COMMAND = re.compile(
    r"^\$ (?P<command>(?:.*\\\n> )*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE
)
_WAITS = "note: compiling "  # printed if it takes long
_VARIES = re.compile(
    r"\d[\d,]*\.\d+"  # times; a count has no decimal point
    r"|(?<=, got )-?\d+|\d+(?= different answers)"  # a race has another end each time
    r"|(?<=sandbox )\w+(?::.*)?"  # what the machine can isolate
)
_LINE = re.compile(r"[─━═]+|  +")  # as wide as the figures in a table


class Difference(NamedTuple):
    """A command that prints something other than its document says."""

    command: str
    documented: str
    printed: str


def rewritten(text: str, folder: Path) -> tuple[str, list[Difference]]:
    """A document with the output of its commands, which run in `folder`, and what has changed."""
    differences = []

    def block(match: re.Match[str]) -> str:
        if title := _TITLE.search(match["info"]):
            (folder / title["file"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / title["file"]).write_text(match["body"], encoding="utf-8")
        if match["info"].split() != ["console"]:
            return match[0]
        compared = first_word if match["varies"] else comparable

        def command(match: re.Match[str]) -> str:
            printed = run(match["command"].replace("\\\n> ", "\\\n"), folder)
            if compared(printed) != compared(match["output"]):
                differences.append(Difference(match["command"], match["output"], printed))
            return f"$ {match['command']}\n{printed}"

        body = _COMMAND.sub(command, match["body"])
        return f"{match['varies'] or ''}```{match['info']}\n{body}```"

    return BLOCK.sub(block, text), differences


def run(command: str, folder: Path) -> str:
    """The lines that a command prints on stdout and stderr, on a machine without a GPU."""
    environment = (
        os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CUDA_VISIBLE_DEVICES": "",
            "LC_ALL": "C.UTF-8",
        }
        | ({} if " | " in command else {"COLUMNS": "80"})
    )  # a pipe has no columns
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
        cwd=folder,
        env=environment,
    )
    lines = [line.rstrip() + "\n" for line in done.stdout.decode().splitlines()]
    return "".join(line for line in lines if not line.startswith(_WAITS))


def comparable(output: str) -> str:
    """An output without its times and the widths of its columns."""
    return _LINE.sub(" ", _VARIES.sub("#", output))


def first_word(output: str) -> str:
    """The word that an output begins with."""
    return output.partition(" ")[0]


def replay(document: Path) -> tuple[str, list[Difference]]:
    """The document with the output of its commands, run in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for linked in REPOSITORY:
            (folder / linked).symlink_to(results.ROOT / linked)
        return rewritten(document.read_text(encoding="utf-8"), folder)


def main() -> int:
    parser = ArgumentParser(
        "python -m tools.transcripts",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("documents", nargs="*", type=Path, metavar="DOCUMENT")
    options = parser.parse_args()
    changed = False
    for document in options.documents or DOCUMENTS:
        text, differences = replay(document)
        for command, documented, printed in differences:
            changed = True
            print(f"{document.name}: $ {command}")
            print(*difflib.ndiff(documented.splitlines(), printed.splitlines()), sep="\n")
        if not options.check:
            document.write_text(text, encoding="utf-8")
    return int(options.check and changed)


if __name__ == "__main__":
    sys.exit(main())
