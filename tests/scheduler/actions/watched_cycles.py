"""Cycles that are watched: what was decided, and what everybody had before each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from shoal.scheduler.actions import cycle
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import ACTIONS, Scenario, State
from shoal.scheduler.scenarios.engine import Outcome, TaskOutcome
from shoal.scheduler.scenarios.folding import next_scenario, settled
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.session.statement import Operation
from shoal.scheduler.shares.tree import Held

NOW = 1_000_000.0


@dataclass(frozen=True)
class Committed:
    """One statement that was carried out, what queues held before it, and what they held after it."""

    operations: Sequence[Operation]
    before: Mapping[str, Held]
    after: Mapping[str, Held]


class WatchedSession(Session):
    """A session that remembers every commit."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        super().__init__(cluster, settings, now=NOW)
        self.at_first = self.shares.copy_of_amounts()
        self.committed: list[Committed] = []

    def carry_out(self, operations: Sequence[Operation]) -> None:
        before = self.committed[-1].after if self.committed else self.at_first
        after = self.shares.copy_of_amounts()
        self.committed.append(Committed(tuple(operations), before, after))
        super().carry_out(operations)


def watched(
    scenario: Scenario, *, settings: Settings | None = None, actions: Sequence[str] = ACTIONS
) -> WatchedSession:
    """A cycle that has decided, and is not closed."""
    session = WatchedSession(cluster_of(scenario, NOW), settings or settings_of(scenario))
    cycle.run(session, actions)
    return session


def following(scenario: Scenario, session: Session) -> Scenario:
    """The scenario of the next cycle: everything that was decided has happened."""
    tasks = {
        task.name: TaskOutcome(cast(State, task.status.word), task.node, task.gpu_groups)
        for job in session.cluster.jobs.values()
        for task in job.tasks.values()
    }
    return next_scenario(scenario, settled(scenario, Outcome(tasks)))
