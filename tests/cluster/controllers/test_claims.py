from __future__ import annotations

from typing import Any

import pytest

from shoal.api.apps import REPLICA_SETS, ReplicaSet, ReplicaSetSpec
from shoal.api.core import PODS, Pod, ReplicationController, ReplicationControllerSpec, is_active
from shoal.api.meta import (
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from shoal.cluster.controllers.claims import Claims, concerns_claimants, keys_of_claimants, selector_of_spec
from shoal.cluster.indexes import CHILD_INDEXES, all_pods
from shoal.kube import Change, Informer, Key, Manager
from shoal.kube.metrics import Metrics
from tests.cluster.controllers.builders import workload_manifest
from tests.support.builders.pods import controller_reference, pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


def a_pod_of_app(name: str, app: str, *, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    reference = None
    if owner is not None:
        known = owner["metadata"]
        reference = controller_reference("ReplicaSet", known["name"], version="apps/v1", uid=known["uid"])
    return pod_manifest(name, labels={"app": app}, owner=reference)


class Room:
    """Claims of ReplicaSets on pods, without the controller that would act on them."""

    def __init__(self) -> None:
        self.sets: Informer[ReplicaSet]
        self.pods: Informer[Pod]
        self.claims: Claims

    def __call__(self, manager: Manager) -> None:
        self.sets = manager.cache.informer(REPLICA_SETS, indexes=CHILD_INDEXES)
        self.pods = all_pods(manager)
        self.claims = Claims(manager.client, REPLICA_SETS, PODS)

    async def claimed(self, name: str, **options: Any) -> list[str]:
        async def known() -> ReplicaSet | None:
            return self.sets.get(name, "default")

        owner = await until(known)
        children = await self.claims.claim(owner, selector_of_spec(owner), self.pods, **options)
        return sorted(child.metadata.name for child in children)


async def owner_of(cluster: Cluster, name: str) -> str:
    pod = await cluster.read(PODS, name)
    assert pod is not None
    return str(next((owner["name"] for owner in pod["metadata"].get("ownerReferences", ())), ""))


async def test_pods_that_nobody_controls_are_adopted_and_those_of_others_are_not(cluster: Cluster) -> None:
    other = (await cluster.make(REPLICA_SETS, workload_manifest("other", replicas=0))).content
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=0))
    await cluster.make(PODS, a_pod_of_app("orphan", "web"))
    await cluster.make(PODS, a_pod_of_app("taken", "web", owner=other))
    await cluster.make(PODS, a_pod_of_app("stranger", "db"))
    async with cluster.controllers(room := Room()):
        assert await room.claimed("web") == ["orphan"]
    assert [await owner_of(cluster, name) for name in ("orphan", "taken", "stranger")] == ["web", "other", ""]


async def test_a_pod_that_is_not_selected_any_more_is_released(cluster: Cluster) -> None:
    web = (await cluster.make(REPLICA_SETS, workload_manifest(replicas=0))).content
    await cluster.make(PODS, a_pod_of_app("kept", "web", owner=web))
    await cluster.make(PODS, a_pod_of_app("leaving", "debug", owner=web))
    async with cluster.controllers(room := Room()):
        assert await room.claimed("web") == ["kept"]
    assert [await owner_of(cluster, name) for name in ("kept", "leaving")] == ["web", ""]


async def test_what_is_claimed_already_costs_no_request(cluster: Cluster) -> None:
    web = (await cluster.make(REPLICA_SETS, workload_manifest(replicas=0))).content
    await cluster.make(PODS, a_pod_of_app("kept", "web", owner=web))
    async with cluster.controllers(room := Room()) as manager:
        assert await room.claimed("web") == ["kept"]
        assert writes_of(manager) == 0


async def test_an_owner_on_its_way_out_keeps_what_it_has_and_takes_nothing(cluster: Cluster) -> None:
    web = (
        await cluster.make(REPLICA_SETS, workload_manifest(replicas=0, metadata={"finalizers": ["example.com/wait"]}))
    ).content
    await cluster.make(PODS, a_pod_of_app("kept", "web", owner=web))
    await cluster.make(PODS, a_pod_of_app("leaving", "debug", owner=web))
    await cluster.make(PODS, a_pod_of_app("orphan", "web"))
    await cluster.client.delete(REPLICA_SETS, "web", "default")
    async with cluster.controllers(room := Room()) as manager:
        assert await room.claimed("web") == ["kept"]
        assert writes_of(manager) == 0


async def test_nothing_is_adopted_by_an_owner_that_the_server_says_is_leaving(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=0, metadata={"finalizers": ["example.com/wait"]}))
    await cluster.make(PODS, a_pod_of_app("orphan", "web"))
    async with cluster.controllers(room := Room()):
        stale = room.sets.get("web", "default")
        assert stale is not None
        await cluster.client.delete(REPLICA_SETS, "web", "default")
        assert await room.claims.claim(stale, selector_of_spec(stale), room.pods) == []
    assert await owner_of(cluster, "orphan") == ""


async def test_those_that_do_not_count_are_neither_adopted_nor_released(cluster: Cluster) -> None:
    web = (await cluster.make(REPLICA_SETS, workload_manifest(replicas=0))).content
    for name, app, owner in (("ended", "web", web), ("ended-other", "debug", web), ("ended-orphan", "web", None)):
        await cluster.make(PODS, a_pod_of_app(name, app, owner=owner))
        await cluster.set_status(PODS, name, {"phase": "Succeeded"})
    async with cluster.controllers(room := Room()) as manager:
        assert await room.claimed("web", only=is_active) == []
        assert writes_of(manager) == 0


async def test_of_two_who_select_a_pod_one_gets_it(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest("one", replicas=0))
    await cluster.make(REPLICA_SETS, workload_manifest("two", replicas=0))
    await cluster.make(PODS, a_pod_of_app("orphan", "web"))
    async with cluster.controllers(room := Room()):
        first, second = await room.claimed("one"), None
        # The cache may still show it without a controller: the server decides.
        second = await room.claimed("two")
    assert (first, second) == (["orphan"], [])
    assert await owner_of(cluster, "orphan") == "one"


def selecting(labels: dict[str, str] | None = None, *requirements: LabelSelectorRequirement) -> ReplicaSet:
    selector = LabelSelector(match_labels=labels or {}, match_expressions=list(requirements))
    return ReplicaSet(metadata=ObjectMeta(name="web", namespace="a"), spec=ReplicaSetSpec(selector=selector))


def test_an_empty_selector_selects_nothing() -> None:
    for owner in (selecting(), ReplicaSet(), ReplicationController()):
        assert not selector_of_spec(owner).matches({"app": "web"})


def test_a_selector_is_labels_or_requirements() -> None:
    with_both = selecting({"app": "web"}, LabelSelectorRequirement(key="tier", operator="In", values=["a", "b"]))
    plain = ReplicationController(spec=ReplicationControllerSpec(selector={"app": "web"}))
    assert selector_of_spec(with_both).matches({"app": "web", "tier": "b"})
    assert not selector_of_spec(with_both).matches({"app": "web"})
    assert selector_of_spec(plain).matches({"app": "web"})


def test_a_selector_that_is_not_valid_is_refused() -> None:
    with pytest.raises(InvalidSelector):
        selector_of_spec(selecting({"app": "no such value!"}))


def pod(*, controller: str = "", kind: str = "ReplicaSet", **labels: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=controller, uid=controller, controller=True)
    metadata = ObjectMeta(name="p", namespace="a", labels=labels, owner_references=[owner] if controller else [])
    return Pod(metadata=metadata)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, pod(app="web"), True, id="an orphan that appeared"),
        pytest.param(pod(app="web"), pod(app="web"), False, id="an orphan whose labels stay"),
        pytest.param(pod(app="db"), pod(app="web"), True, id="an orphan with other labels"),
        pytest.param(pod(app="web"), None, False, id="an orphan that is gone"),
        pytest.param(pod(controller="a"), pod(app="web"), True, id="an orphan that was released"),
        pytest.param(pod(controller="a"), pod(controller="a"), True, id="a child that changed"),
        pytest.param(pod(controller="a"), None, True, id="a child that is gone"),
    ],
)
def test_what_concerns_those_who_may_claim(before: Pod | None, after: Pod | None, expected: bool) -> None:
    assert concerns_claimants(Change(before, after)) is expected


def test_a_child_is_its_controllers_and_an_orphan_that_of_all_who_select_it(cluster_less_informer: Any) -> None:
    keys = keys_of_claimants(REPLICA_SETS, cluster_less_informer, selector_of_spec)
    assert list(keys(pod(controller="db", app="web"))) == [Key("a", "db")]
    assert list(keys(pod(controller="db", kind="Job", app="web"))) == []
    assert list(keys(pod(app="web"))) == [Key("a", "web")]
    assert list(keys(pod(app="other"))) == []
    assert list(keys(pod())) == []


@pytest.fixture
def cluster_less_informer() -> Informer[ReplicaSet]:
    """What a cache shows of three ReplicaSets, one of which cannot be understood."""

    class NoClient:
        metrics = Metrics()

    informer: Informer[ReplicaSet] = Informer(NoClient(), REPLICA_SETS)  # type: ignore[arg-type]
    informer.add_indexes(CHILD_INDEXES)
    for name, labels in (("broken", {"app": "no such value!"}), ("web", {"app": "web"}), ("db", {"app": "db"})):
        found = selecting(labels)
        informer.store.put(ReplicaSet(metadata=ObjectMeta(name=name, namespace="a", uid=name), spec=found.spec))
    return informer
