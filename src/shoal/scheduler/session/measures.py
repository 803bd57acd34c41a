"""What a cycle did and how long it took: plain counts, for those who watch a scheduler from outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple


class Tried(NamedTuple):
    """What became of a job for which victims were sought."""

    action: str
    result: str
    """``solved``, ``generators_exhausted`` or ``deadline_exhausted``."""
    is_cut_short: bool
    """Whether what was left of the action's time was less than a job may have."""


class Attempt(NamedTuple):
    """A kind of attempt at a scenario: whose, found in which way, and what came of it."""

    action: str
    generator: str
    result: str


@dataclass(slots=True)
class Measures:
    """The counts of one cycle."""

    dividing: float = 0.0
    """How many seconds it took to divide what there is among queues."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each action took."""
    served: Counter[str] = field(default_factory=Counter)
    """By action, how often a job was given something, or promised it."""
    sought: Counter[str] = field(default_factory=Counter)
    """By action, how many jobs victims were sought for."""
    filtered: Counter[str] = field(default_factory=Counter)
    """By action, scenarios that could not hold the job by a look at them alone."""
    searches: Counter[Tried] = field(default_factory=Counter)
    exhausted: Counter[str] = field(default_factory=Counter)
    """Actions whose time was up before all were tried."""
    scenarios: Counter[Attempt] = field(default_factory=Counter)
    """Scenarios by state: ``emitted``, then ``duplicate`` or ``simulated``, and maybe ``validator_rejected``."""
    attempts: dict[Attempt, list[float]] = field(default_factory=dict)
    """How many seconds each scenario took, and each look for one that found no more."""

    def attempted(self, action: str, generator: str, result: str, seconds: float) -> None:
        """One attempt is over."""
        self.attempts.setdefault(Attempt(action, generator, result), []).append(seconds)
