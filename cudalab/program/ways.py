"""How each kernel of a program runs: as loops over the threads of a block, or why it cannot.

It is stored beside the program's binary, for `cudalab run --tier`.
"""

from dataclasses import dataclass, field
from pathlib import Path

from cudalab.language.tokens import Place


@dataclass
class Ways:
    """How each kernel of a program runs."""

    reasons: dict[str, str] = field(default_factory=dict)  # by kernel; empty for loops
    any_loops: bool = False
    places: dict[str, frozenset[Place]] = field(default_factory=dict)  # of the kernels with loops

    def refuse(self, reason: str) -> None:
        """Record that all kernels keep their fibers."""
        self.reasons = {name: before or reason for name, before in self.reasons.items()}
        self.any_loops = False

    def store(self, binary: Path) -> None:
        """Write them beside the program's binary."""
        text = "".join(f"{name}\t{reason}\n" for name, reason in self.reasons.items())
        _beside(binary).write_text(text, encoding="utf-8")

    def lines(self) -> list[str]:
        """A line of text for each kernel."""
        from cudalab.backends.cpu import kernels  # noqa: PLC0415 - nothing else here needs it

        return [
            f"{name}: {kernels.described(reason) if reason else kernels.LOOPS}"
            for name, reason in self.reasons.items()
        ]


def stored(binary: Path) -> Ways:
    """How the kernels of a compiled program run."""
    lines = _beside(binary).read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("\t") for line in lines]
    return Ways({name: reason for name, _, reason in pairs})


def _beside(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.tiers")
