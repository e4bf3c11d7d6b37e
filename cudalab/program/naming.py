"""The paths of a program's files in a report for people: each once, and then its name."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cudalab.microscope.findings import FindingRow
from cudalab.program.files import File


class Names:
    """What a report calls its files; texts are to be shortened in the order of the report."""

    def __init__(self, files: Sequence[File]) -> None:
        """Files that share a name keep their paths."""
        labels = {file.label: Path(file.label).name for file in files}
        count = Counter(labels.values())
        self._name = {label: name for label, name in labels.items() if count[name] == 1}
        paths = "|".join(re.escape(label) for label, name in self._name.items() if label != name)
        self._place = re.compile(rf"(?<![\w./-])(?:{paths})(?=:\d)") if paths else None
        self._shown: set[str] = set()

    def short(self, text: str) -> str:
        """A text with the names of files whose paths have been shown."""
        return self._place.sub(self._shorter, text) if self._place else text

    def rows(self, rows: Iterable[FindingRow]) -> list[FindingRow]:
        """Findings whose descriptions have been shortened."""
        return [replace(row, what=self.short(row.what)) for row in rows]

    def _shorter(self, at: re.Match[str]) -> str:
        label = at[0]
        if label in self._shown:
            return self._name[label]
        self._shown.add(label)
        path = Path(label)
        here = Path.cwd()
        return str(path.relative_to(here)) if path.is_relative_to(here) else label
