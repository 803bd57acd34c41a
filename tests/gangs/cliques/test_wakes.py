"""Which changes ask for a look at a clique: every one that it goes by, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.api.grove import PodCliqueSet, PodCliqueSetUpdate, ReplicaUpdate
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.cliques import wakes
from shoal.kube import Change
from tests.gangs.builders import CLIQUE, a_clique, a_clique_pod, a_set, typed
from tests.gangs.cliques.builders import a_naming_gang

OTHER_OWNER = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": CLIQUE, "uid": "u2", "controller": True}


def a_container(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "a", "imageID": "", "restartCount": 0, **fields}


def ended(code: int) -> dict[str, Any]:
    return a_container(lastState={"terminated": {"exitCode": code}})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"going": True}, True, id="it goes"),
        pytest.param({}, {"ownerReferences": [OTHER_OWNER]}, True, id="it is another's"),
        pytest.param({}, {"hash": "old"}, True, id="its labels"),
        pytest.param({}, {"annotations": {"a": "b"}}, True, id="its annotations"),
        pytest.param({}, {"phase": "Failed"}, True, id="it has ended"),
        pytest.param({"node": "n"}, {"node": "n", "ready": True}, True, id="it is ready"),
        pytest.param({}, {"scheduled": True}, True, id="it has a node"),
        pytest.param({"gated": True}, {"scheduled": False}, True, id="it may be scheduled"),
        pytest.param({}, {"containers": [a_container(started=True)]}, True, id="a container has started"),
        pytest.param(
            {"containers": [a_container()]}, {"containers": [a_container(ready=True)]}, True, id="a container is ready"
        ),
        pytest.param({"containers": [ended(0)]}, {"containers": [ended(1)]}, True, id="a container has ended badly"),
        pytest.param(
            {"init_containers": [ended(0)]}, {"init_containers": [ended(1)]}, True, id="one that comes first has"
        ),
        pytest.param({}, {"resourceVersion": "8"}, False, id="nothing but its version"),
        pytest.param(
            {"containers": [a_container()]}, {"containers": [a_container(restartCount=1)]}, False, id="a restart alone"
        ),
    ],
)
def test_a_pod_wakes_its_clique(before: dict[str, Any], after: dict[str, Any], expected: bool) -> None:
    assert wakes.pod_concerns(Change(a_clique_pod(**before), a_clique_pod(**after))) is expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(Change(None, a_clique_pod(gated=True)), False, id="it was just made, and counted then"),
        pytest.param(Change(None, a_clique_pod(gated=True), is_resync=True), True, id="it is seen for the first time"),
        pytest.param(Change(None, a_clique_pod()), True, id="one that nobody of us has made"),
        pytest.param(Change(a_clique_pod(gated=True), None), True, id="it is gone"),
    ],
)
def test_a_pod_that_comes_or_goes_wakes_its_clique(change: Change[Pod], expected: bool) -> None:
    assert wakes.pod_concerns(change) is expected


def a_changed_gang(gang: PodGang, **metadata: Any) -> PodGang:
    return msgspec.structs.replace(gang, metadata=msgspec.structs.replace(gang.metadata, **metadata))


COMPLETE = a_naming_gang({CLIQUE: ["a"]})
INCOMPLETE = a_naming_gang({CLIQUE: ["a"]}, initialized=False)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(COMPLETE, a_naming_gang({CLIQUE: ["a"]}, uid="u2"), True, id="it is another one"),
        pytest.param(
            COMPLETE,
            a_changed_gang(COMPLETE, owner_references=a_clique_pod().metadata.owner_references),
            True,
            id="owner",
        ),
        pytest.param(
            COMPLETE,
            a_changed_gang(COMPLETE, deletion_timestamp=a_clique_pod().metadata.creation_timestamp),
            True,
            id="it goes",
        ),
        pytest.param(COMPLETE, a_naming_gang({CLIQUE: ["a"]}, backend="default"), True, id="it has another scheduler"),
        pytest.param(INCOMPLETE, COMPLETE, True, id="it is complete"),
        pytest.param(COMPLETE, a_naming_gang({CLIQUE: ["a", "b"]}), True, id="it names another pod"),
        pytest.param(
            INCOMPLETE, a_naming_gang({CLIQUE: ["b"]}, initialized=False), False, id="named before it is complete"
        ),
        pytest.param(COMPLETE, a_changed_gang(COMPLETE, resource_version="8"), False, id="nothing but its version"),
    ],
)
def test_a_gang_wakes_its_cliques(before: PodGang, after: PodGang, expected: bool) -> None:
    assert wakes.gang_concerns(Change(before, after)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(1, 2, True, id="enough have nodes"),
        pytest.param(2, 1, True, id="too few have"),
        pytest.param(2, 3, False, id="one more than enough"),
        pytest.param(0, 1, False, id="still too few"),
    ],
)
def test_a_clique_of_the_base_gang_wakes_those_that_wait_for_it(before: int, after: int, expected: bool) -> None:
    then, now = (a_clique(replicas=4, min_available=2, status={"scheduledReplicas": one}) for one in (before, after))
    assert wakes.schedule_concerns(Change(then, now)) is expected


def a_web(*, hash: str = "h", replicas: int = 1, **fields: Any) -> PodCliqueSet:  # noqa: A002 - a test's own word
    pcs = typed(a_set("web", replicas=replicas, **fields))
    return msgspec.structs.replace(pcs, status=msgspec.structs.replace(pcs.status, current_generation_hash=hash))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(a_web(hash="h2"), True, id="it has other templates"),
        pytest.param(a_web(update="OnDelete"), True, id="it updates in another way"),
        pytest.param(a_web(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), True, id="it goes"),
        pytest.param(a_web(replicas=2), False, id="it has more replicas"),
    ],
)
def test_a_set_wakes_all_its_cliques(after: PodCliqueSet, expected: bool) -> None:
    assert wakes.templates_concern(Change(a_web(), after)) is expected


def test_the_turn_of_a_replica_wakes_its_cliques() -> None:
    turn = PodCliqueSetUpdate(currently_updating=[ReplicaUpdate(replica_index=0)])
    pcs = a_web()
    rolling = msgspec.structs.replace(pcs, status=msgspec.structs.replace(pcs.status, update_progress=turn))
    assert wakes.turn_concerns(Change(pcs, rolling))
    assert not wakes.turn_concerns(Change(rolling, rolling))
