"""Keep the Russian documents in step with the English ones that they follow.

python -m tools.translations               those whose English text has changed since
python -m tools.translations student.md    note that it follows its English text of today

Their blocks of code are copies, which `python -m tools.generate` refreshes. Their sentences are a
translator's: the first line of a document names the English one, the commit at which it was read,
and a hash of its sentences. When those change, tests/unit/test_translations.py says so.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from tools import results
from tools.transcripts import BLOCK

FOLDER = results.ROOT / "docs" / "ru"
_HEAD = re.compile(r"<!-- follows (?P<path>\S+), commit (?P<commit>\w+), text (?P<hash>\w+) -->\n")


class Translation(NamedTuple):
    """A document, what it says, and what its first line says of the English one."""

    path: Path
    text: str
    original: Path
    commit: str
    hash: str


def translations() -> Iterator[Translation]:
    """The documents of docs/ru; ends the process if one does not say what it follows."""
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        head = _HEAD.match(text)
        if not head:
            sys.exit(f"{path.name}: the first line does not say which document it follows")
        yield Translation(path, text, results.ROOT / head["path"], head["commit"], head["hash"])


def pages() -> Iterator[tuple[Path, str]]:
    """Each document with the English one's blocks of code in place of its own.

    Ends the process if there are more blocks in one of the two.
    """
    for each in translations():
        blocks = [match[0] for match in BLOCK.finditer(each.original.read_text(encoding="utf-8"))]
        if len(blocks) != len(BLOCK.findall(each.text)):
            sys.exit(f"{each.path.name}: {each.original.name} has {len(blocks)} blocks of code")
        between = BLOCK.sub("\0", each.text).split("\0")
        yield each.path, "".join(map("".join, zip(between, [*blocks, ""], strict=True)))


def hash_of_sentences(document: Path) -> str:
    """Changes with the sentences of a document, not with its blocks of code."""
    sentences = BLOCK.sub("", document.read_text(encoding="utf-8"))
    return hashlib.sha256(sentences.encode()).hexdigest()[:12]


def behind() -> list[str]:
    """What a translator has to look at: the command that shows it, for each document."""
    return [
        f"{each.path.name} is behind: git diff {each.commit} -- "
        f"{each.original.relative_to(results.ROOT)}; then python -m tools.translations "
        f"{each.path.name}"
        for each in translations()
        if each.hash != hash_of_sentences(each.original)
    ]


def follow(names: Collection[str]) -> None:
    """Write today's commit and sentences of the English text into these documents' first lines."""
    documents = {each.path.name: each for each in translations()}
    if unknown := set(names) - set(documents):
        sys.exit(f"no such translation: {', '.join(sorted(unknown))}")
    for each in (documents[name] for name in names):
        name = each.original.relative_to(results.ROOT)
        command = ["git", "log", "-1", "--format=%h", "--", str(name)]
        commit = subprocess.check_output(command, text=True, cwd=results.ROOT).strip()
        new = f"<!-- follows {name}, commit {commit}, text {hash_of_sentences(each.original)} -->\n"
        each.path.write_text(_HEAD.sub(new, each.text, count=1), encoding="utf-8")


if __name__ == "__main__":
    follow(sys.argv[1:])
    print("\n".join(behind()))
