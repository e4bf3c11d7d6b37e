"""The options that `check` and `grade` share, and the settings that they result in."""
# ruff: noqa: PLC0415 - the command line reads this before it knows what it needs

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudalab.errors import UsageError
from cudalab.labs.sizes import size

if TYPE_CHECKING:
    from cudalab.checker.cases import Plan
    from cudalab.checker.rules import Language, Races, Rules
    from cudalab.checker.sandbox.running import Limits
    from cudalab.checker.settings import Settings
    from cudalab.labs.base import Lab
    from cudalab.labs.header import Variant


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
        from cudalab.checker.sandbox.running import Limits

        try:
            memory = size(self.memory) if not self.memory.endswith("Gi") else _gib(self.memory)
        except ValueError as error:
            raise UsageError(f"--memory {self.memory}: {error}") from None
        return Limits(seconds=self.kill_after, cpu_seconds=8 * self.kill_after, memory_bytes=memory)

    def settings(self, **rest: Any) -> Settings:
        """The settings of a check; `rest` holds the settings without an option."""
        from cudalab.checker.cases import fresh_seed
        from cudalab.checker.settings import Settings

        return Settings(
            seed=fresh_seed() if self.seed is None else self.seed,
            limits=self.limits(),
            sanitize=not self.no_sanitize,
            timing=not self.no_time,
            time_limit_s=self.time_limit,
            **rest,
        )

    def plan(self, lab: Lab, variant: Variant | None, lab_options: dict[str, Any]) -> Plan:
        """The tests for a kernel with that header, or for a program; and the rule for speed."""
        from cudalab.checker import cases
        from cudalab.labs import registry

        chosen = any(lab_options.get(axis) is not None for axis in lab.axes)
        lab_options = cases.case_for(lab, lab_options, variant)
        if self.tests:
            plan = cases.load(self.tests, lab, lab_options)
        else:
            plan = cases.public(lab, lab_options, variant, quick=self.quick)
            plan = replace(plan, draws=not chosen)
        if self.strict:
            plan = cases.strict(plan)
        speed = plan.speed
        if self.reference:
            registry.find(lab, self.reference)  # an unknown name is an error before anything runs
            speed = replace(speed, reference=self.reference)
        if self.speed_points is not None:
            speed = replace(speed, points=self.speed_points)
        return replace(plan, speed=speed, rules=self.rules(plan.rules))

    def rules(self, default: Rules) -> Rules:
        """The rules, of which the options replace some."""
        names = ("require_kernel", "races", "race_cost", "language")
        chosen = {name: getattr(self, name) for name in names}
        return replace(
            default, **{name: value for name, value in chosen.items() if value is not None}
        )


def _gib(text: str) -> int:
    """The bytes of a size such as 4Gi: memory is the only size that may be 2^31 or more."""
    number = text.removesuffix("Gi")
    if not number.replace(".", "", 1).isdecimal():
        raise ValueError(f"{text!r} is not a size")
    return int(float(number) * 2**30)
