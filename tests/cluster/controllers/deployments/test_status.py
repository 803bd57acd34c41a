from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.apps import DeploymentCondition, DeploymentStatus, ReplicaSet
from shoal.api.core import REPLICA_FAILURE, ReplicaCondition
from shoal.cluster.controllers.deployments.status import (
    AVAILABLE,
    PROGRESSING,
    condition_of,
    counted,
    next_look,
    paused_or_resumed,
    rolled_out,
    with_condition,
)
from tests.cluster.controllers.deployments.builders import NOW, a_deployment, a_set

BEFORE = NOW - timedelta(minutes=10)


def progress(
    reason: str, status: Any = "True", *, at: datetime = BEFORE, message: str = "", kind: str = PROGRESSING
) -> DeploymentCondition:
    return DeploymentCondition(
        type=kind, status=status, reason=reason, message=message, last_update_time=at, last_transition_time=at
    )


UPDATED = progress("ReplicaSetUpdated")
COMPLETE = progress("NewReplicaSetAvailable")
LATE = progress("ProgressDeadlineExceeded", "False")


def counts(replicas: int, updated: int, available: int, *conditions: DeploymentCondition) -> DeploymentStatus:
    return DeploymentStatus(
        replicas=replicas, updated_replicas=updated, available_replicas=available, conditions=list(conditions)
    )


def test_the_status_adds_up_what_the_sets_tell() -> None:
    new = a_set(2, name="new", actual=2, available=1, ready_replicas=2, observed_generation=1, terminating_replicas=1)
    old = a_set(2, name="old", actual=3, available=2, ready_replicas=2, observed_generation=1, terminating_replicas=2)
    status = counted(a_deployment(3, surge=1, unavailable=0), [], new, [old], NOW)
    assert status == DeploymentStatus(
        observed_generation=1,
        replicas=5,
        updated_replicas=2,
        ready_replicas=4,
        available_replicas=3,
        unavailable_replicas=1,
        terminating_replicas=3,
        conditions=[
            progress("MinimumReplicasAvailable", at=NOW, message="Deployment has minimum availability.", kind=AVAILABLE)
        ],
    )


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        pytest.param([a_set(1)], 0, id="one that was never looked at counts for nothing"),
        pytest.param([a_set(1, observed_generation=1)], None, id="one that does not tell makes the sum unknown"),
        pytest.param([a_set(1, observed_generation=1, terminating_replicas=2), a_set(1)], 2, id="a sum"),
        pytest.param([], 0, id="no set at all"),
    ],
)
def test_pods_on_their_way_out_are_added_up_where_all_tell(sets: list[ReplicaSet], expected: int | None) -> None:
    assert counted(a_deployment(), [], None, sets, NOW).terminating_replicas == expected


def test_too_few_available_pods_are_told() -> None:
    status = counted(a_deployment(4, unavailable=1), [], a_set(4, available=2), [], NOW)
    condition = condition_of(status.conditions, AVAILABLE)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "MinimumReplicasUnavailable")
    assert condition.message == "Deployment does not have minimum availability."


@pytest.mark.parametrize(
    ("replicas", "before", "new", "old", "expected"),
    [
        pytest.param(
            3, counts(3, 3, 3, COMPLETE), a_set(3, available=2), [],
            ("True", "NewReplicaSetAvailable", BEFORE, BEFORE),
            id="a rollout that is over stays so when a pod fails",
        ),
        pytest.param(
            3, counts(3, 2, 2, UPDATED), a_set(3, available=2), [a_set(0, name="old", actual=1, available=1)],
            ("True", "ReplicaSetUpdated", NOW, BEFORE), id="progress is told anew, from the same transition",
        ),
        pytest.param(
            3, counts(3, 2, 2, LATE), a_set(3, available=2), [a_set(0, name="old", actual=1, available=1)],
            ("True", "ReplicaSetUpdated", NOW, NOW), id="progress after all",
        ),
        pytest.param(
            3, counts(3, 2, 2), a_set(3, available=2), [a_set(0, name="old", actual=1, available=1)],
            ("True", "ReplicaSetUpdated", NOW, NOW), id="progress for the first time",
        ),
        pytest.param(
            3, counts(3, 3, 2, UPDATED), a_set(3, available=3), [],
            ("True", "NewReplicaSetAvailable", NOW, BEFORE), id="complete",
        ),
        pytest.param(
            3, counts(3, 3, 2, LATE), a_set(3, available=3), [],
            ("True", "NewReplicaSetAvailable", NOW, NOW), id="complete after all",
        ),
        pytest.param(
            0, counts(3, 3, 3, UPDATED), None, [a_set(0)],
            ("True", "NewReplicaSetAvailable", NOW, BEFORE), id="complete with no pods and no set",
        ),
        pytest.param(
            3, counts(3, 3, 2, UPDATED), a_set(3, available=2), [],
            ("False", "ProgressDeadlineExceeded", NOW, NOW), id="late",
        ),
        pytest.param(
            3, counts(3, 3, 2, LATE), a_set(3, available=2), [],
            ("False", "ProgressDeadlineExceeded", BEFORE, BEFORE), id="late, and told so",
        ),
        pytest.param(
            3, counts(3, 3, 2, progress("ReplicaSetUpdated", at=NOW)), a_set(3, available=2), [],
            ("True", "ReplicaSetUpdated", NOW, NOW), id="there is time left",
        ),
    ],
)  # fmt: skip
def test_how_a_rollout_goes(
    replicas: int,
    before: DeploymentStatus,
    new: ReplicaSet | None,
    old: list[ReplicaSet],
    expected: tuple[str, str, datetime, datetime],
) -> None:
    deployment = a_deployment(replicas, status=before, progress_deadline_seconds=60)
    condition = condition_of(rolled_out(deployment, before.conditions, new, old, NOW).conditions, PROGRESSING)
    assert condition is not None
    told = (condition.status, condition.reason, condition.last_update_time, condition.last_transition_time)
    assert told == expected


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (a_set(3, name="web-x", available=3), 'ReplicaSet "web-x" has successfully progressed.'),
        (a_set(3, name="web-x", available=1), 'ReplicaSet "web-x" is progressing.'),
        (a_set(3, name="web-x", available=0), 'ReplicaSet "web-x" has timed out progressing.'),
    ],
    ids=["complete", "under way", "late"],
)
def test_a_rollout_is_told_of_in_words(new: ReplicaSet, message: str) -> None:
    deployment = a_deployment(3, status=counts(3, 3, 0, UPDATED), progress_deadline_seconds=60)
    condition = condition_of(rolled_out(deployment, [UPDATED], new, [], NOW).conditions, PROGRESSING)
    assert condition is not None
    assert condition.message == message


@pytest.mark.parametrize("deadline", [None, 2**31 - 1], ids=["none", "without end"])
def test_without_a_deadline_nothing_is_said_of_progress(deadline: int | None) -> None:
    deployment = a_deployment(3, conditions=[UPDATED], progress_deadline_seconds=deadline)
    status = rolled_out(deployment, [UPDATED], a_set(3, available=3), [], NOW)
    assert condition_of(status.conditions, PROGRESSING) is None


def test_the_failure_of_a_set_is_the_deployments_and_the_newest_ones_goes_first() -> None:
    def failing(name: str) -> ReplicaSet:
        condition = ReplicaCondition(
            type=REPLICA_FAILURE, status="True", reason="FailedCreate", message=name, last_transition_time=BEFORE
        )
        return a_set(1, name=name, conditions=[condition])

    deployment = a_deployment(progress_deadline_seconds=60)
    status = rolled_out(deployment, [], failing("new"), [failing("old")], NOW)
    told = progress("FailedCreate", message="new", kind=REPLICA_FAILURE)
    assert condition_of(status.conditions, REPLICA_FAILURE) == told
    status = rolled_out(deployment, status.conditions, a_set(1), [], NOW)
    assert condition_of(status.conditions, REPLICA_FAILURE) is None


@pytest.mark.parametrize(
    ("paused", "before", "reason"),
    [
        pytest.param(True, UPDATED, "DeploymentPaused", id="paused"),
        pytest.param(True, None, "DeploymentPaused", id="paused from the start"),
        pytest.param(False, progress("DeploymentPaused", "Unknown"), "DeploymentResumed", id="resumed"),
        pytest.param(False, UPDATED, "ReplicaSetUpdated", id="neither"),
        pytest.param(True, LATE, "ProgressDeadlineExceeded", id="late, which a pause does not hide"),
    ],
)
def test_a_pause_is_told(paused: bool, before: DeploymentCondition | None, reason: str) -> None:
    told = [before] if before is not None else []
    deployment = a_deployment(paused=paused, progress_deadline_seconds=60)
    condition = condition_of(paused_or_resumed(deployment, told, NOW), PROGRESSING)
    assert condition is not None
    assert condition.reason == reason


@pytest.mark.parametrize(
    ("told", "new", "expected"),
    [
        pytest.param([UPDATED], progress("ReplicaSetUpdated", at=NOW), [UPDATED], id="told already"),
        pytest.param(
            [UPDATED, progress("X", kind=AVAILABLE)],
            progress("NewReplicaSetAvailable", at=NOW),
            ["X", "NewReplicaSetAvailable"],
            id="another reason goes to the end",
        ),
    ],
)
def test_a_condition_is_told_once(
    told: list[DeploymentCondition], new: DeploymentCondition, expected: list[Any]
) -> None:
    after = with_condition(told, new)
    assert (after is told) if expected == told else [condition.reason for condition in after] == expected


@pytest.mark.parametrize(
    ("deadline", "status", "seconds_on", "expected"),
    [
        pytest.param(None, counts(3, 3, 1, UPDATED), 0, None, id="no deadline"),
        pytest.param(2**31 - 1, counts(3, 3, 1, UPDATED), 0, None, id="a deadline without end"),
        pytest.param(60, counts(3, 3, 1), 0, None, id="nothing to measure from"),
        pytest.param(60, counts(3, 3, 3, UPDATED), 0, None, id="complete"),
        pytest.param(60, counts(3, 3, 1, LATE), 0, None, id="late already"),
        pytest.param(60, counts(3, 3, 1, UPDATED), 30, 31, id="half of the time left"),
        pytest.param(60, counts(3, 3, 1, UPDATED), 60, 1, id="no time left"),
        pytest.param(60, counts(3, 3, 1, UPDATED), 120, 1, id="past the deadline"),
    ],
)
def test_a_rollout_that_stands_still_is_looked_at_when_it_would_be_late(
    deadline: int | None, status: DeploymentStatus, seconds_on: int, expected: float | None
) -> None:
    deployment = a_deployment(3, progress_deadline_seconds=deadline)
    seen = msgspec.structs.replace(status, observed_generation=1)
    assert next_look(deployment, seen, BEFORE + timedelta(seconds=seconds_on)) == expected
