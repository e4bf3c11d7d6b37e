"""The instructor's rules: what a submission must be besides correct. See docs/checking.md."""

from dataclasses import dataclass
from typing import Literal, get_args

Races = Literal["free", "warning", "points"]
Language = Literal["cuda", "any"]
RACES: tuple[Races, ...] = get_args(Races)
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of a check."""

    # Whether a program's own kernels must compute its answer.
    require_kernel: bool = True
    # Findings of the sanitizer in a correct submission: free, a warning, or a loss of points.
    races: Races = "points"
    race_cost: float = 0.5  # the share of the points
    # cuda: kernel files and CUDA programs; any: other programs, too. None: what the command says.
    language: Language | None = None

    @property
    def only_cuda(self) -> bool:
        """Whether submissions that are not CUDA source are refused."""
        return self.language not in (None, "any")
