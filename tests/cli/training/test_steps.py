"""Which pod is which step of a training run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.core import ContainerStatus, Pod
from shoal.api.core.pods import ContainerState, PodStatus, RunningState, TerminatedState, WaitingState
from shoal.api.meta import ObjectMeta
from shoal.cli.training.steps import steps_of

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def a_pod(job: str, index: int = 0, *, uid: str = "", age: int = 0, status: ContainerStatus | None = None) -> Pod:
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": job, "batch.kubernetes.io/job-completion-index": str(index)}
    metadata = ObjectMeta(
        name=f"{job}-{index}-{uid}", uid=uid, labels=labels, creation_timestamp=BEGIN - timedelta(seconds=age)
    )
    return Pod(metadata=metadata, status=PodStatus(container_statuses=[status] if status else []))


@pytest.mark.parametrize(
    ("pods", "steps"),
    [
        ([], []),
        ([a_pod("node", 10), a_pod("node", 2), a_pod("node", 0)], ["node-0", "node-2", "node-10"]),
        (
            [a_pod("node"), a_pod("model-initializer"), a_pod("dataset-initializer")],
            ["dataset-initializer", "model-initializer", "node-0"],
        ),
        ([a_pod("node", 0), a_pod("launcher"), a_pod("node", 1)], ["node-0", "node-1", "node-2"]),
        ([a_pod("something-else"), a_pod("node")], ["node-0"]),
    ],
    ids=["none", "by number", "initializers first", "a launcher is the first", "others are none"],
)
def test_steps_are_named_as_by_the_sdk_and_in_order(pods: list[Pod], steps: list[str]) -> None:
    assert [step.name for step in steps_of(pods)] == steps


def test_of_several_pods_for_a_step_the_newest_counts() -> None:
    (step,) = steps_of([a_pod("node", uid="new", age=1), a_pod("node", uid="old", age=9)])
    assert step.pod.metadata.uid == "new"


def test_each_life_of_a_container_has_a_log_of_its_own() -> None:
    def life(state: ContainerState, restarts: int) -> tuple[str, int] | None:
        status = ContainerStatus(name="node", state=state, restart_count=restarts)
        (step,) = steps_of([a_pod("node", uid="u", status=status)])
        return step.life

    running, waiting = ContainerState(running=RunningState()), ContainerState(waiting=WaitingState())
    assert life(waiting, 0) is None
    assert life(running, 0) == ("u", 0)
    assert life(running, 2) == ("u", 2)
    (unborn,) = steps_of([a_pod("node")])
    assert unborn.life is None


def test_a_container_that_waits_to_be_restarted_has_its_last_log() -> None:
    waiting, ended = ContainerState(waiting=WaitingState()), ContainerState(terminated=TerminatedState(exit_code=1))
    status = ContainerStatus(name="node", state=waiting, last_state=ended, restart_count=2)
    (step,) = steps_of([a_pod("node", uid="u", status=status)])
    assert step.life == ("u", 2)
