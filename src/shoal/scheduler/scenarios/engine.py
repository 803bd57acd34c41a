"""The one seam between cases and the scheduler: a scenario and actions go in, what a session decided comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from shoal.scheduler.actions import cycle
from shoal.scheduler.model.resources import GPU
from shoal.scheduler.model.statuses import ACTIVE_USED
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import Scenario, State
from shoal.scheduler.session.session import Session


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """A task at the end of a session."""

    state: State
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    """The devices that it shares, by whatever names the engine gave them."""
    gpus: float = 0.0
    """Whole or parts of GPUs that it holds or is promised; for a task with MIG instances or none, 0."""


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """A node's whole GPUs at the end of a session."""

    idle_gpus: float
    releasing_gpus: float


@dataclass(frozen=True, slots=True)
class Calls:
    """How much a session set about to do."""

    binds: int = 0
    evictions: int = 0
    pipelines: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of everything at the end of a session, tasks by name (``<job>-<index>``)."""

    tasks: Mapping[str, TaskOutcome]
    nodes: Mapping[str, NodeOutcome] = field(default_factory=dict)
    calls: Calls = Calls()


class Engine(Protocol):
    """Whatever decides."""

    def __call__(self, scenario: Scenario, actions: Sequence[str], now: float) -> Outcome:
        """Builds one session of a scenario, runs actions on it once, in their order, and says what came of it."""
        ...


def run(scenario: Scenario, actions: Sequence[str], now: float) -> Outcome:
    """The scheduler's own engine."""
    session = Session(cluster_of(scenario, now), settings_of(scenario), now=now)
    cycle.run(session, actions)
    nodes = session.nodes
    return Outcome(
        tasks={
            task.name: TaskOutcome(
                state=cast(State, task.status.word),
                node=task.node,
                gpu_groups=task.gpu_groups,
                gpus=task.accepted.gpu if task.status in ACTIVE_USED and not task.request.gpu.mig else 0.0,
            )
            for job in session.cluster.jobs.values()
            for task in job.tasks.values()
        },
        nodes={
            node.name: NodeOutcome(
                idle_gpus=float(nodes.idle[row, GPU]), releasing_gpus=float(nodes.releasing[row, GPU])
            )
            for row, node in enumerate(nodes.nodes)
        },
        calls=Calls(session.calls.binds, session.calls.evictions, session.calls.pipelines),
    )
