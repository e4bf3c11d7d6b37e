"""The settings that apply to every kind of submission."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from cudalab.checker.sandbox.running import Limits
from cudalab.predict.gpus import Gpu


@dataclass(frozen=True)
class Settings:
    """The settings of one check."""

    seed: int
    _: KW_ONLY
    limits: Limits = field(default_factory=Limits)
    jobs: int = 2  # tests at a time
    sanitize: bool = True
    timing: bool = True
    time_limit_s: float = 2.0  # of sampling
    predict_on: Gpu | None = None  # the GPU for which the model predicts a right kernel's time
    has_turn: bool = False  # the caller already holds the GPU, for several checks
    keep: Path | None = None  # the folder for the inputs of failed tests
    on_stage: Callable[[str], None] = field(default=lambda _name: None)  # called as each begins
    # For parallel checks: entered by work that may run beside others, and by work that must not.
    together: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
    alone: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)
