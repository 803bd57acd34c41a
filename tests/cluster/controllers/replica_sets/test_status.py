from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.apps import ReplicaSet, ReplicaSetSpec, ReplicaSetStatus
from shoal.api.core import REPLICA_FAILURE, Pod, ReplicaCondition
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.replica_sets.status import failure_condition, next_look, wanted_status
from shoal.kube import Forbidden
from shoal.kube.errors import Status
from tests.support.builders.pods import a_condition, a_pod

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
FAILURE = ReplicaCondition(type=REPLICA_FAILURE, status="True", reason="FailedCreate", message="no")
OTHER = ReplicaCondition(type="Other", status="True")


def a_set(*, min_ready_seconds: int = 0) -> ReplicaSet:
    spec = ReplicaSetSpec(
        template={"metadata": {"labels": {"app": "web", "tier": "a"}}}, min_ready_seconds=min_ready_seconds
    )
    return ReplicaSet(metadata=ObjectMeta(generation=3), spec=spec)


def a_replica(*, ready_for: float | None = None, **labels: str) -> Pod:
    since = NOW - timedelta(seconds=ready_for or 0)
    conditions = [] if ready_for is None else [a_condition("Ready", since=since)]
    return a_pod(labels=labels, phase="Running", conditions=conditions)


@pytest.mark.parametrize(
    ("pods", "min_ready_seconds", "counts"),
    [
        pytest.param([], 0, (0, 0, 0, 0), id="none"),
        pytest.param([a_replica(app="web", tier="a")], 0, (1, 1, 0, 0), id="with the template's labels"),
        pytest.param([a_replica(app="web", tier="a", more="x")], 0, (1, 1, 0, 0), id="with more labels"),
        pytest.param([a_replica(app="web"), a_replica(app="web", tier="a")], 0, (2, 1, 0, 0), id="with fewer labels"),
        pytest.param([a_replica(app="web", ready_for=0), a_replica(app="web")], 0, (2, 0, 1, 1), id="ready"),
        pytest.param([a_replica(ready_for=9), a_replica(ready_for=10)], 10, (2, 0, 2, 1), id="ready for long enough"),
    ],
)
def test_pods_are_counted_by_how_far_they_have_come(
    pods: list[Pod], min_ready_seconds: int, counts: tuple[int, ...]
) -> None:
    owner = a_set(min_ready_seconds=min_ready_seconds)
    status = wanted_status(owner, owner.status, pods, failure=None, now=NOW)
    replicas, labeled, ready, available = counts
    assert status == ReplicaSetStatus(
        replicas=replicas,
        fully_labeled_replicas=labeled,
        ready_replicas=ready,
        available_replicas=available,
        observed_generation=3,
    )


@pytest.mark.parametrize(
    ("before", "failure", "after"),
    [
        pytest.param([], FAILURE, [FAILURE], id="a failure is told"),
        pytest.param([OTHER], FAILURE, [OTHER, FAILURE], id="beside others"),
        pytest.param(
            [FAILURE],
            ReplicaCondition(type=REPLICA_FAILURE, status="True", reason="FailedDelete"),
            [FAILURE],
            id="one that is told stays as it was told first",
        ),
        pytest.param([FAILURE, OTHER], None, [OTHER], id="one that is over goes"),
        pytest.param([OTHER], None, [OTHER], id="others are left alone"),
    ],
)
def test_what_keeps_a_set_from_its_size_is_a_condition(
    before: list[ReplicaCondition], failure: ReplicaCondition | None, after: list[ReplicaCondition]
) -> None:
    owner = a_set()
    status = wanted_status(owner, ReplicaSetStatus(conditions=before), [], failure=failure, now=NOW)
    assert status.conditions == after


def test_a_failure_says_what_was_tried_and_what_the_server_said() -> None:
    error = Forbidden(Status(message="quota exceeded", reason="Forbidden", code=403), request="POST /pods")
    made, deleted = (failure_condition(error, surplus=surplus, now=NOW) for surplus in (-1, 1))
    assert (made.reason, made.message) == ("FailedCreate", "quota exceeded")
    assert (deleted.reason, deleted.message) == ("FailedDelete", "unable to delete pods: quota exceeded")
    assert made.last_transition_time == NOW.replace(microsecond=0)


@pytest.mark.parametrize(
    ("ready_for", "min_ready_seconds", "after"),
    [
        pytest.param([1.0, 4.0, 20.0], 10, 6.0, id="the next one"),
        pytest.param([20.0], 10, None, id="all are available"),
        pytest.param([1.0], 0, None, id="ready is enough"),
    ],
)
def test_the_set_is_looked_at_again_when_the_next_pod_becomes_available(
    ready_for: list[float], min_ready_seconds: int, after: float | None
) -> None:
    owner = a_set(min_ready_seconds=min_ready_seconds)
    pods = [a_replica(ready_for=seconds) for seconds in ready_for]
    status = wanted_status(owner, owner.status, pods, failure=None, now=NOW)
    assert next_look(status, pods, min_ready_seconds=min_ready_seconds, now=NOW) == after
