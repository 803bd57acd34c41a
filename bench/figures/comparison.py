"""A figure of ours beside a peer's, as a ratio, and the budget for that ratio."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "MISSED", "not run", ""]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A bound of a ratio, or of the figure itself where there is no peer."""

    at_least: float | None = None
    at_most: float | None = None
    shown: str

    def holds(self, value: float) -> bool:
        """Whether a value is within the bounds."""
        above = self.at_least is None or value >= self.at_least
        below = self.at_most is None or value <= self.at_most
        return above and below


@dataclass(frozen=True)
class Sample:
    """One figure from each round."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        return cls(tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def over(self, other: Sample) -> Sample:
        """The ratio in each round: rounds differ by what else the machine does, which both have suffered."""
        return Sample(tuple(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One line of the table."""

    what: str
    unit: str
    ours: Sample
    peer_name: str = ""
    peer: Sample | None = None
    not_run: str = ""
    """Why the peer was not run."""
    budget: Budget | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.peer_name})" if self.peer_name else self.what

    @property
    def ratio(self) -> Sample | None:
        return self.ours.over(self.peer) if self.peer is not None else None

    @property
    def verdict(self) -> Verdict:
        if self.not_run:
            return "not run"
        if self.budget is None:
            return ""
        judged = self.ratio if self.peer_name else self.ours
        assert judged is not None
        return "ok" if self.budget.holds(judged.median) else "MISSED"
