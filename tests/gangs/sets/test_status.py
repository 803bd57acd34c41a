"""How a set is, from what was seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from shoal.api.meta import Condition
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.hashes import generation_hash, template_hash
from shoal.gangs.last_errors import GangError
from shoal.gangs.replicas import ReplicaSeen
from shoal.gangs.sets.status import DETAILED, SetSeen, gang_statuses, status_of
from tests.gangs.backends.builders import a_gang
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set, typed

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)


def web(replicas: int = 1, **status: Any) -> PodCliqueSet:
    body = a_set(
        "web",
        a_clique_template("front", 3, min_available=2),
        a_clique_template("worker"),
        groups=[a_scaling_group_template("model", ["worker"], 3, min_available=2)],
        replicas=replicas,
        metadata={"generation": 4},
    )
    pcs = typed(body)
    filled = {"currentGenerationHash": generation_hash(pcs), **status}
    return typed({**body, "status": filled})


def front(pcs: PodCliqueSet, replica: int = 0, **status: Any) -> PodClique:
    word = template_hash(pcs.spec.template.cliques[0], "")
    told = {
        "readyReplicas": 2,
        "updatedReplicas": 2,
        "currentPodTemplateHash": word,
        "currentPodCliqueSetGenerationHash": pcs.status.current_generation_hash,
        **status,
    }
    metadata = {"name": f"web-{replica}-front", "labels": {"grove.io/pod-template-hash": word}}
    spec = {"roleName": "front", "replicas": 3, "minAvailable": 2, "podSpec": a_pod_spec()}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": told}, PodClique)


def model(pcs: PodCliqueSet, replica: int = 0, *, replicas: int = 3, **status: Any) -> PodCliqueScalingGroup:
    told = {
        "availableReplicas": 2,
        "currentPodCliqueSetGenerationHash": pcs.status.current_generation_hash,
        **status,
    }
    spec = {"replicas": replicas, "minAvailable": 2, "cliqueNames": ["worker"]}
    metadata = {"name": f"web-{replica}-model"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": told}, PodCliqueScalingGroup)


def a_replica(
    index: int = 0, cliques: Sequence[PodClique] = (), groups: Sequence[PodCliqueScalingGroup] = ()
) -> ReplicaSeen:
    return ReplicaSeen(
        index=index,
        cliques={clique.metadata.name: clique for clique in cliques},
        groups={group.metadata.name: group for group in groups},
        members=(),
    )


def gang_named(name: str, replica: int = 0, *, initialized: str = "True", **metadata: Any) -> PodGang:
    labels = {"grove.io/podcliqueset-replica-index": str(replica), **metadata.pop("labels", {})}
    condition = {"type": "Initialized", "status": initialized, "reason": "", "message": ""}
    status = {"phase": "Running", "conditions": [condition]}
    return a_gang(name=name, labels=labels, metadata=metadata, status=status)


def seen(*replicas: ReplicaSeen, **more: Any) -> SetSeen:
    defaults: dict[str, Any] = {"gangs": [], "is_complete": True, "problems": [], "levels": None}
    return SetSeen(replicas=replicas, **{**defaults, **more})


WEB = web()


@pytest.mark.parametrize(
    ("replica", "available", "updated"),
    [
        pytest.param(a_replica(0, [front(WEB)], [model(WEB)]), 1, 1, id="all there"),
        pytest.param(a_replica(0, [], [model(WEB)]), 0, 0, id="a clique missing"),
        pytest.param(a_replica(0, [front(WEB)], []), 0, 0, id="a group missing"),
        pytest.param(a_replica(0, [front(WEB, readyReplicas=1)], [model(WEB)]), 0, 0, id="too few pods ready"),
        pytest.param(a_replica(0, [front(WEB)], [model(WEB, availableReplicas=1)]), 0, 0, id="too few group replicas"),
        pytest.param(a_replica(0, [front(WEB, updatedReplicas=1)], [model(WEB)]), 1, 0, id="too few pods updated"),
        pytest.param(a_replica(0, [front(WEB, currentPodTemplateHash="old")], [model(WEB)]), 1, 0, id="old template"),
        pytest.param(
            a_replica(0, [front(WEB)], [model(WEB, currentPodCliqueSetGenerationHash="old")]), 1, 0, id="old group"
        ),
    ],
)
def test_a_replica_is_available_and_updated_when_all_its_parts_are(
    replica: ReplicaSeen, available: int, updated: int
) -> None:
    status = status_of(WEB, seen(replica), NOW)
    assert (status.available_replicas, status.updated_replicas) == (available, updated)


def test_a_clique_that_is_going_does_not_count() -> None:
    clique = front(WEB)
    going = msgspec.structs.replace(clique, metadata=msgspec.structs.replace(clique.metadata, deletion_timestamp=NOW))
    assert status_of(WEB, seen(a_replica(0, [going], [model(WEB)])), NOW).available_replicas == 0


BOTH = [gang_named("web-0"), gang_named("web-0-model-0")]


@pytest.mark.parametrize(
    ("more", "replicas", "observed"),
    [
        pytest.param({"gangs": BOTH}, 3, 4, id="everything there"),
        pytest.param({"gangs": BOTH, "is_complete": False}, 3, 3, id="a child missing"),
        pytest.param({"gangs": BOTH, "problems": [GangError("ERR_X", "in the way")]}, 3, 3, id="a problem"),
        pytest.param({"gangs": BOTH[:1]}, 3, 3, id="a scaled gang missing"),
        pytest.param({"gangs": BOTH[:1]}, 2, 4, id="a scaled gang that is not wanted, as the group was scaled in"),
        pytest.param({"gangs": BOTH}, 4, 3, id="a scaled gang missing, as the group was scaled out"),
        pytest.param(
            {"gangs": [gang_named("web-0", initialized="False"), BOTH[1]]}, 3, 3, id="a gang without its pods"
        ),
    ],
)
def test_a_generation_is_observed_when_all_of_it_is_there(more: dict[str, Any], replicas: int, observed: int) -> None:
    pcs = web(observedGeneration=3)
    replica = a_replica(0, [front(pcs)], [model(pcs, replicas=replicas)])
    assert status_of(pcs, seen(replica, **more), NOW).observed_generation == observed


def test_gangs_are_told_replica_by_replica_the_base_gang_first() -> None:
    group = {"grove.io/podcliquescalinggroup": "web-2-model"}
    gangs = [
        gang_named("web-10", 10),
        gang_named("web-2-model-10", 2, labels={**group, "grove.io/podcliquescalinggroup-replica-index": "12"}),
        gang_named("web-2-model-9", 2, labels={**group, "grove.io/podcliquescalinggroup-replica-index": "11"}),
        gang_named("web-2", 2),
        gang_named("web-1", 1, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    assert [gang.name for gang in gang_statuses(gangs)] == ["web-2", "web-2-model-9", "web-2-model-10", "web-10"]


def test_a_gang_without_a_phase_is_pending_and_has_its_conditions() -> None:
    gang = msgspec.structs.replace(
        gang_named("web-0"), status=msgspec.structs.replace(gang_named("x").status, phase="")
    )
    [told] = gang_statuses([gang])
    assert told.phase == "Pending"
    assert [condition.type for condition in told.conditions] == ["Initialized"]


def test_of_very_many_gangs_only_the_phases_are_told() -> None:
    told = gang_statuses([gang_named(f"web-{index}", index) for index in range(DETAILED + 1)])
    assert len(told) == DETAILED + 1
    assert {gang.phase for gang in told} == {"Running"}
    assert not any(gang.conditions for gang in told)


def test_a_problem_keeps_the_time_when_it_was_seen_first() -> None:
    problem = GangError("ERR_X", "in the way")
    first = status_of(web(), seen(problems=[problem]), NOW)
    [told] = first.last_errors
    assert (told.code, told.description, told.observed_at) == ("ERR_X", "in the way", NOW)
    again = status_of(msgspec.structs.replace(web(), status=first), seen(problems=[problem]), LATER)
    assert again == first
    assert status_of(msgspec.structs.replace(web(), status=first), seen(), LATER).last_errors == []


def test_what_was_said_of_topologies_goes_with_the_question() -> None:
    levels = Condition(type="TopologyLevelsUnavailable", status="Unknown", reason="X", message="")
    said = status_of(web(), seen(levels=levels), NOW)
    assert said.conditions[0].last_transition_time == NOW
    assert status_of(msgspec.structs.replace(web(), status=said), seen(levels=levels), LATER) == said
    assert status_of(msgspec.structs.replace(web(), status=said), seen(), LATER).conditions == []


def test_a_status_of_nothing_new_is_the_same_status() -> None:
    pcs = web(1)
    replica = a_replica(0, [front(pcs)], [model(pcs)])
    first = status_of(pcs, seen(replica, gangs=BOTH), NOW)
    assert status_of(msgspec.structs.replace(pcs, status=first), seen(replica, gangs=BOTH), LATER) == first
