"""How a submission is judged, whatever it is."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from cudalab.checker.sandbox.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How to judge."""

    seed: int
    _: KW_ONLY
    limits: Limits = field(default_factory=Limits)
    jobs: int = 2  # tests at a time, on the CPU
    sanitize: bool = True
    timing: bool = True
    time_limit_s: float = 2.0  # of sampling
    has_turn: bool = False  # whoever asks holds the GPU already, for several checks
    keep: Path | None = None  # where the inputs of failed tests are left
    tell: Callable[[str], None] = field(default=lambda _what: None)
    # Beside other checks: what may run together, and what must have the machine for itself.
    together: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
    alone: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
