"""The options that `check` and `grade` share, and the rules and settings that they result in."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from cudalab.errors import UsageError
from cudalab.labs.sizes import size

if TYPE_CHECKING:
    from cudalab.checker.sandbox.running import Limits
    from cudalab.predict.gpus import Gpu


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


def limits_of(**values: Any) -> Limits:
    """The limits of a run. The command line's help does not wait for the sandbox to load."""
    from cudalab.checker.sandbox.running import Limits  # noqa: PLC0415 - as it says

    return Limits(**values)


@dataclass(frozen=True)
class Settings:
    """The settings of one check."""

    seed: int
    _: KW_ONLY
    limits: Limits = field(default_factory=limits_of)
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


@dataclass(frozen=True, kw_only=True)
class JudgingOptions:
    """The options that `check` and `grade` share."""

    tests: Path | None
    seed: int | None
    quick: bool
    strict: bool
    device: str
    threads: int | None
    sandbox: str
    kill_after: float
    memory: str
    no_sanitize: bool
    no_time: bool
    reference: str | None
    speed_points: float | None
    time_limit: float
    require_kernel: bool | None
    races: Races | None
    race_cost: float | None
    language: Language | None

    def limits(self) -> Limits:
        """The limits of each test."""
        try:
            memory = size(self.memory) if not self.memory.endswith("Gi") else _gib(self.memory)
        except ValueError as error:
            raise UsageError(f"--memory {self.memory}: {error}") from None
        seconds = self.kill_after
        return limits_of(seconds=seconds, cpu_seconds=8 * seconds, memory_bytes=memory)

    def settings(self, **rest: Any) -> Settings:
        """The settings of a check; `rest` holds the settings without an option."""
        return Settings(
            seed=fresh_seed() if self.seed is None else self.seed,
            limits=self.limits(),
            sanitize=not self.no_sanitize,
            timing=not self.no_time,
            time_limit_s=self.time_limit,
            **rest,
        )

    def rules(self, default: Rules) -> Rules:
        """The rules, of which the options replace some."""
        names = ("require_kernel", "races", "race_cost", "language")
        chosen = {name: getattr(self, name) for name in names}
        return replace(
            default, **{name: value for name, value in chosen.items() if value is not None}
        )


def fresh_seed() -> int:
    """A random seed, which nobody can predict."""
    return int.from_bytes(os.urandom(4), "little") >> 1


def _gib(text: str) -> int:
    """The bytes of a size such as 4Gi: memory is the only size that may be 2^31 or more."""
    number = text.removesuffix("Gi")
    if not number.replace(".", "", 1).isdecimal():
        raise ValueError(f"{text!r} is not a size")
    return int(float(number) * 2**30)
