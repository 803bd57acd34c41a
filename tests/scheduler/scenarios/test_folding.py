"""What becomes of a cycle's decisions before the next one."""

from __future__ import annotations

import pytest

from shoal.scheduler.scenarios import Outcome, TaskOutcome
from shoal.scheduler.scenarios.folding import next_scenario, settled
from tests.scheduler.scenarios.builders import a_scenario, a_task


@pytest.mark.parametrize(
    ("decided", "is_deleted", "becomes"),
    [
        (a_task("Binding", "n0", "g"), False, a_task("Running", "n0", "g")),
        (a_task("Pipelined", "n0", "g"), False, TaskOutcome("Pending")),
        (a_task("Releasing", "n0", "g"), False, TaskOutcome("Pending")),
        (a_task("Releasing", "n0", "g"), True, a_task("Releasing", "n0", "g")),
        (a_task("Pipelined", "n0"), True, TaskOutcome("Pending")),
        (a_task("Running", "n0", "g"), False, a_task("Running", "n0", "g")),
        (a_task("Pending"), False, a_task("Pending")),
        (a_task("Failed", "n0"), False, a_task("Failed", "n0")),
        (a_task("Gated"), False, a_task("Gated")),
    ],
    ids=lambda value: f"{value.state}" if isinstance(value, TaskOutcome) else str(value),
)
def test_a_decision_has_happened_by_the_next_cycle(
    decided: TaskOutcome, is_deleted: bool, becomes: TaskOutcome
) -> None:
    job = {"name": "j", "queue": "a", "gpu": 0.5, "deleted": is_deleted, "tasks": [{"state": "Pending"}]}
    scenario = a_scenario(jobs=[job], expect={})

    after = settled(scenario, Outcome({"j-0": decided}))
    following = next_scenario(scenario, after).jobs[0].tasks[0]

    assert after.tasks["j-0"] == becomes
    assert (following.state, following.node, following.gpu_groups) == (becomes.state, becomes.node, becomes.gpu_groups)


def test_what_a_task_asks_for_stays() -> None:
    job = {"name": "j", "queue": "a", "tasks": [{"state": "Pending", "node_affinity": ["n0"], "task_priority": 3}]}
    scenario = a_scenario(jobs=[job], expect={})

    following = next_scenario(scenario, settled(scenario, Outcome({"j-0": a_task("Binding", "n0")})))

    assert following.jobs[0].tasks[0].node_affinity == ("n0",)
    assert following.jobs[0].tasks[0].task_priority == 3
