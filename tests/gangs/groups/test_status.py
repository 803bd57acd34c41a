"""What a scaling group says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shoal.api.grove import GANG_TERMINATION_IN_PROGRESS, MIN_AVAILABLE_BREACHED, PodCliqueScalingGroupUpdate
from shoal.api.meta import Condition, find_condition
from shoal.gangs.groups.rolling import Step
from shoal.gangs.groups.status import conditions_of, current_hash, status_of
from shoal.gangs.hashes import generation_hash
from shoal.gangs.last_errors import GangError
from tests.gangs.groups.observed import MADE, NOW, a_condition, a_group, ago, breached
from tests.gangs.groups.worlds import replicas_of, the_set

AT_REST = Step(progress=None)
RUNNING = Step(progress=PodCliqueScalingGroupUpdate(update_started_at=MADE, pod_clique_set_generation_hash="any"))


@pytest.mark.parametrize(
    ("state", "scheduled", "available", "updated", "healthy"),
    [
        pytest.param(("well", 1), 1, 1, 1, 1, id="all is well"),
        pytest.param(("well", 2), 1, 1, 0, 1, id="of another template"),
        pytest.param(("old pods", 1), 1, 1, 0, 1, id="its pods are of another template"),
        pytest.param(("unready", 1), 1, 0, 0, 1, id="on nodes, and still starting"),
        pytest.param(("broken", 1), 1, 0, 0, 0, id="on nodes, and crashing"),
        pytest.param(("pending", 1), 0, 0, 0, 0, id="not on nodes"),
        pytest.param(("fresh", 1), 0, 0, 0, 0, id="nothing was told of it yet"),
        pytest.param(("half", 1), 0, 0, 0, 0, id="a clique is missing"),
        pytest.param(("going", 1), 0, 0, 0, 0, id="a clique is going"),
        pytest.param(("missing", 1), 0, 0, 0, 0, id="nothing is there"),
    ],
)
def test_a_replica_counts(state: tuple[str, int], scheduled: int, available: int, updated: int, healthy: int) -> None:
    pcs = the_set(1)
    status = status_of(pcs, a_group(), replicas_of(pcs, state), AT_REST, [], NOW)

    assert (status.scheduled_replicas, status.available_replicas, status.updated_replicas) == (
        scheduled,
        available,
        updated,
    )
    told = find_condition(status.conditions, MIN_AVAILABLE_BREACHED)
    assert told is not None
    assert told.status == ("False" if healthy else "True")


def test_a_status_tells_what_was_asked_for_and_how_pods_are_found() -> None:
    pcs = the_set(1)

    status = status_of(pcs, a_group(replicas=3), replicas_of(pcs, *[("well", 1)] * 3), AT_REST, [], NOW)

    assert (status.replicas, status.observed_generation) == (3, 1)
    assert status.selector == (
        "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=web,"
        "grove.io/podcliquescalinggroup=web-0-group"
    )


def test_an_error_is_told_and_the_generation_is_not_claimed() -> None:
    pcs = the_set(1)

    status = status_of(pcs, a_group(), replicas_of(pcs, ("well", 1)), AT_REST, [GangError("ERR_X", "no room")], NOW)

    assert [(error.code, error.description, error.observed_at) for error in status.last_errors] == [
        ("ERR_X", "no room", NOW)
    ]
    assert status.observed_generation is None


@pytest.mark.parametrize(
    ("states", "minimum", "expected"),
    [
        pytest.param(["well", "well"], 2, ("False", "SufficientAvailablePodCliqueScalingGroupReplicas"), id="enough"),
        pytest.param(["well", "broken"], 1, ("False", "SufficientAvailablePodCliqueScalingGroupReplicas"), id="spare"),
        pytest.param(
            ["well", "broken"], 2, ("True", "InsufficientAvailablePodCliqueScalingGroupReplicas"), id="too few"
        ),
    ],
)
def test_a_group_is_broken_when_too_few_replicas_are_well(
    states: Sequence[str], minimum: int, expected: tuple[str, str]
) -> None:
    group = a_group(minimum=minimum, conditions=[breached("False")])
    replicas = replicas_of(the_set(1), *[(state, 1) for state in states])

    [told] = conditions_of(group, replicas, AT_REST, NOW)

    assert (told.status, told.reason) == expected
    assert told.last_transition_time == (NOW if told.status == "True" else MADE)


def test_while_replicas_are_replaced_nobody_knows_whether_it_is_broken() -> None:
    group = a_group(conditions=[breached("False")])

    [told] = conditions_of(group, replicas_of(the_set(1), ("broken", 1)), RUNNING, NOW)

    assert (told.status, told.reason, told.last_transition_time) == ("Unknown", "UpdateInProgress", NOW)


@pytest.mark.parametrize(
    ("before", "step"),
    [
        pytest.param([], AT_REST, id="told for the first time"),
        pytest.param([breached("True", MADE)], RUNNING, id="an update begins"),
        pytest.param([breached("Unknown", MADE)], AT_REST, id="an update ends"),
    ],
)
def test_a_group_that_was_never_well_says_so_by_the_time_of_its_creation(before: list[Condition], step: Step) -> None:
    [told] = conditions_of(a_group(conditions=before), replicas_of(the_set(1), ("pending", 1)), step, NOW)

    assert told.last_transition_time == MADE


def test_the_termination_of_a_gang_is_over_when_the_group_is_well_again() -> None:
    foreign = a_condition("Foreign", "True")
    before = [a_condition(GANG_TERMINATION_IN_PROGRESS, "True"), foreign, breached("True", ago(hours=1))]

    recovering = conditions_of(a_group(conditions=before), replicas_of(the_set(1), ("pending", 1)), AT_REST, NOW)
    well = conditions_of(a_group(conditions=before), replicas_of(the_set(1), ("well", 1)), AT_REST, NOW)

    assert find_condition(recovering, GANG_TERMINATION_IN_PROGRESS) is not None
    assert [condition.type for condition in well] == ["Foreign", MIN_AVAILABLE_BREACHED]


NEW, OLD = generation_hash(the_set(2)), generation_hash(the_set(1))


@pytest.mark.parametrize(
    ("states", "before", "step", "known", "expected"),
    [
        pytest.param([("well", 2), ("well", 2)], OLD, AT_REST, 2, NEW, id="all have arrived"),
        pytest.param([("well", 2), ("pending", 2)], OLD, AT_REST, 2, NEW, id="one has no room, and has arrived"),
        pytest.param([("well", 2), ("old pods", 2)], OLD, AT_REST, 2, OLD, id="pods of one have not"),
        pytest.param([("well", 2), ("well", 1)], OLD, AT_REST, 2, OLD, id="one is old"),
        pytest.param([("well", 2), ("fresh", 2)], NEW, AT_REST, 2, NEW, id="one is added"),
        pytest.param([("well", 2), ("well", 1)], NEW, AT_REST, 2, "", id="one was made from other templates since"),
        pytest.param([("well", 2), ("well", 2)], OLD, RUNNING, 2, OLD, id="the update runs"),
        pytest.param([("well", 2), ("well", 2)], OLD, AT_REST, 1, OLD, id="the set has not told of its templates"),
    ],
)
def test_the_templates_that_all_replicas_have(states: Any, before: str, step: Step, known: int, expected: str) -> None:
    pcs = the_set(2, known=known)

    assert current_hash(pcs, a_group(generation_hash=before), replicas_of(pcs, *states), step) == expected
