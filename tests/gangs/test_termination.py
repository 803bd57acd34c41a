"""What is torn down: gangs that once worked and have been broken for longer than the set's delay, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from shoal.api.grove import GANG_TERMINATION_IN_PROGRESS, PodClique, PodCliqueScalingGroup, names
from shoal.api.meta import Condition
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.termination import (
    Due,
    due,
    due_group_replicas,
    termination_delay,
    was_ever_healthy,
    was_ever_scheduled,
)
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed
from tests.gangs.groups.observed import MADE, NOW, WELL, a_clique, a_condition, a_group, ago, breached, scheduled

HOUR = timedelta(hours=1)
LOST = scheduled("False", ago(hours=3))


def the_set(**fields: Any) -> Any:
    group = a_scaling_group_template("group", ["members"])
    cliques = [a_clique_template("workers"), a_clique_template("members")]
    return typed(a_set("web", *cliques, groups=[group], **{"replicas": 3, "terminationDelay": "1h", **fields}))


def a_replica(
    index: int = 0,
    *,
    clique: PodClique | None = None,
    group: PodCliqueScalingGroup | None = None,
    lacks: str = "",
    members: Sequence[PodClique] = (),
) -> ReplicaSeen:
    clique = clique or a_clique(conditions=WELL)
    group = group or a_group(conditions=[breached("False")])
    return ReplicaSeen(
        index=index,
        cliques={} if lacks == "clique" else {f"web-{index}-workers": clique},
        groups={} if lacks == "group" else {f"web-{index}-group": group},
        members=members,
    )


def a_member(*conditions: Condition) -> PodClique:
    return a_clique("web-0-group-0-members", conditions=conditions, labels={names.SCALING_GROUP_LABEL: "web-0-group"})


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], False, id="nothing was told yet"),
        pytest.param([scheduled("True")], True, id="it is scheduled"),
        pytest.param([scheduled("True", ago(seconds=1))], True, id="it is scheduled since a moment"),
        pytest.param([scheduled("False", MADE)], False, id="it is not since it was made"),
        pytest.param([scheduled("False", MADE + timedelta(seconds=5))], False, id="the first report came late"),
        pytest.param([scheduled("False", MADE + timedelta(seconds=6))], True, id="it has changed to not scheduled"),
    ],
)
def test_a_clique_was_ever_scheduled(conditions: list[Condition], expected: bool) -> None:
    assert was_ever_scheduled(a_clique(conditions=conditions)) is expected


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([], False, id="nothing was told yet"),
        pytest.param([breached("False")], True, id="it is well"),
        pytest.param([breached("True", MADE)], False, id="it is broken since it was made"),
        pytest.param([breached("Unknown", MADE)], False, id="it was never well when its update began"),
        pytest.param([breached("True", ago(hours=1))], True, id="it broke later"),
    ],
)
def test_a_group_was_ever_healthy(conditions: list[Condition], expected: bool) -> None:
    assert was_ever_healthy(a_group(conditions=conditions)) is expected


@pytest.mark.parametrize(
    ("replica", "expected"),
    [
        pytest.param(a_replica(), Due(), id="all is well"),
        pytest.param(
            a_replica(clique=a_clique(conditions=[LOST, breached("True", ago(hours=1))])),
            Due(replicas=(0,)),
            id="a clique is broken for the whole delay",
        ),
        pytest.param(
            a_replica(clique=a_clique(conditions=[LOST, breached("True", ago(minutes=59, seconds=30))])),
            Due(again_after=30.0),
            id="a clique is broken for less: exactly the rest is waited for",
        ),
        pytest.param(
            a_replica(clique=a_clique(conditions=[scheduled("True"), breached("True", ago(hours=2))])),
            Due(replicas=(0,)),
            id="a clique is on nodes, but crashes",
        ),
        pytest.param(
            a_replica(clique=a_clique(conditions=[scheduled("False"), breached("True")])),
            Due(),
            id="a clique was never scheduled",
        ),
        pytest.param(
            a_replica(clique=a_clique(conditions=[LOST, breached("Unknown", ago(hours=2))])),
            Due(),
            id="a clique is updated",
        ),
        pytest.param(
            a_replica(group=a_group(conditions=[breached("True", ago(hours=2))])),
            Due(replicas=(0,)),
            id="a group is broken",
        ),
        pytest.param(a_replica(group=a_group(conditions=[breached("True", MADE)])), Due(), id="a group was never well"),
        pytest.param(
            a_replica(
                group=a_group(
                    conditions=[breached("True", ago(hours=2)), a_condition(GANG_TERMINATION_IN_PROGRESS, "True")]
                )
            ),
            Due(),
            id="a group was torn down already",
        ),
        pytest.param(
            a_replica(group=a_group(conditions=[breached("True", ago(hours=2))]), lacks="clique"),
            Due(),
            id="a clique is missing: it is being torn down or made",
        ),
        pytest.param(
            a_replica(
                clique=a_clique(conditions=WELL, deleting=True),
                group=a_group(conditions=[breached("True", ago(hours=2))]),
            ),
            Due(),
            id="a clique is going",
        ),
        pytest.param(
            a_replica(
                clique=a_clique(conditions=[LOST, breached("True", ago(minutes=10))]),
                group=a_group(conditions=[breached("True", ago(hours=2))]),
            ),
            Due(replicas=(0,)),
            id="the part that is broken longest decides",
        ),
        pytest.param(
            a_replica(
                group=a_group(conditions=[breached("True", MADE)]),
                members=[a_member(scheduled("True"), breached("True", ago(hours=2)))],
            ),
            Due(replicas=(0,)),
            id="a group broke too soon to tell, but its clique was on nodes",
        ),
        pytest.param(
            a_replica(
                group=a_group(conditions=[breached("True", MADE)]),
                members=[a_member(scheduled("True"), breached("True", ago(minutes=45)))],
            ),
            Due(again_after=900.0),
            id="of such a group the time counts since its clique broke",
        ),
        pytest.param(
            a_replica(
                group=a_group(conditions=[breached("True", MADE)]),
                members=[a_member(scheduled("True", ago(seconds=1)), breached("False", ago(seconds=1)))],
            ),
            Due(),
            id="a group waited for long, and has not said yet that it is well",
        ),
    ],
)
def test_a_replica_is_due(replica: ReplicaSeen, expected: Due) -> None:
    assert due(the_set(), [replica], NOW) == expected


def test_each_replica_has_its_own_time_and_the_next_one_is_waited_for() -> None:
    def broken_for(index: int, **length: float) -> ReplicaSeen:
        return a_replica(index, clique=a_clique(conditions=[LOST, breached("True", ago(**length))]))

    found = due(the_set(), [broken_for(2, hours=3), broken_for(0, minutes=20), broken_for(1, minutes=50)], NOW)

    assert found == Due(replicas=(2,), again_after=600.0)


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        pytest.param("90s", timedelta(seconds=90), id="as it says"),
        pytest.param(None, timedelta(hours=4), id="four hours where it says nothing"),
        pytest.param("soon", timedelta(hours=4), id="four hours where it cannot be read"),
    ],
)
def test_the_delay_of_a_set(delay: str | None, expected: timedelta) -> None:
    assert termination_delay(the_set(terminationDelay=delay)) == expected


BROKEN = [a_clique(conditions=[LOST, breached("True", ago(hours=2))])]
BREAKING = [a_clique(conditions=[LOST, breached("True", ago(minutes=45))])]
WAITING = [a_clique(conditions=[scheduled("False"), breached("True")])]
SOUND = [a_clique(conditions=WELL)]


@pytest.mark.parametrize(
    ("replicas", "healthy", "minimum", "expected"),
    [
        pytest.param({0: SOUND, 1: SOUND}, 2, 1, Due(), id="all are well"),
        pytest.param({0: SOUND, 1: BROKEN}, 1, 1, Due(replicas=(1,)), id="one is broken, and enough are well"),
        pytest.param({0: SOUND, 1: BROKEN}, 1, 2, Due(), id="too few are well: the whole gang is broken"),
        pytest.param({0: SOUND, 1: BREAKING}, 1, 1, Due(again_after=900.0), id="its time is not up"),
        pytest.param({0: SOUND, 1: WAITING}, 1, 1, Due(), id="it was never scheduled"),
        pytest.param(
            {0: SOUND, 1: BREAKING, 2: BROKEN}, 1, 1, Due(replicas=(2,), again_after=900.0), id="one now, one later"
        ),
        pytest.param({0: SOUND, 1: [*SOUND, *BROKEN]}, 1, 1, Due(replicas=(1,)), id="one broken clique suffices"),
    ],
)
def test_a_replica_of_a_group_is_due(
    replicas: dict[int, list[PodClique]], healthy: int, minimum: int, expected: Due
) -> None:
    assert due_group_replicas(replicas, healthy=healthy, minimum=minimum, delay=HOUR, now=NOW) == expected


def test_what_is_due_comes_to_be_due_as_time_goes_by() -> None:
    replica = a_replica(clique=a_clique(conditions=[LOST, breached("True", ago(minutes=30))]))
    waiting = due(the_set(), [replica], NOW)
    assert waiting.again_after is not None

    later: datetime = NOW + timedelta(seconds=waiting.again_after)

    assert due(the_set(), [replica], later) == Due(replicas=(0,))
