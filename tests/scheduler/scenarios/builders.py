"""Small scenarios and outcomes to compare."""

from __future__ import annotations

from typing import Any

from shoal.scheduler.scenarios import Scenario, TaskOutcome, UnreadableCaseError
from shoal.scheduler.scenarios.cases import State
from shoal.scheduler.scenarios.reading import parse


def a_case(**changes: Any) -> dict[str, Any]:
    """A case as YAML would give it: one node, one queue, one job that runs and one that waits."""
    return {
        "id": "case",
        "actions": "allocate",
        "nodes": {"n0": {"gpus": 2}},
        "queues": [{"name": "a", "gpu_quota": 2}],
        "jobs": [
            {"name": "run", "queue": "a", "gpu": 1, "tasks": [{"state": "Running", "node": "n0"}]},
            {"name": "wait", "queue": "a", "gpu": 1, "tasks": [{"state": "Pending"}]},
        ],
        "expect": {"jobs": {"run": {"state": "Running", "node": "n0"}, "wait": {"state": "Binding", "node": "n0"}}},
        **changes,
    }


def a_scenario(**changes: Any) -> Scenario:
    """The same, read."""
    (case,) = parse("cases.yaml", {"scenarios": [a_case(**changes)]}).cases
    assert isinstance(case, Scenario), case
    return case


def refusal(**changes: Any) -> UnreadableCaseError:
    """Why a case cannot be read."""
    (case,) = parse("cases.yaml", {"scenarios": [a_case(**changes)]}).cases
    assert isinstance(case, UnreadableCaseError), case
    return case


def a_task(state: State, node: str = "", *groups: str, gpus: float = 1.0) -> TaskOutcome:
    """A task at the end of a session."""
    return TaskOutcome(state, node, groups, gpus)
