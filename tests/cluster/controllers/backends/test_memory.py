from __future__ import annotations

from datetime import timedelta

import msgspec

from shoal.api.core import PODS, SERVICES, Pod, Service
from shoal.cluster.controllers.backends import Members, Pacing, TriggerTimes, changes_endpoints
from shoal.kube import Change, Key
from shoal.kube.store import key_of
from tests.support.builders.services import START, a_backend, a_service, make_pod
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

SERVICE = a_service()


def ready_at(name: str, second: int) -> Pod:
    return a_backend(name, "10.0.0.1", ready_since=second)


def test_a_new_services_change_is_its_creation() -> None:
    assert TriggerTimes().of(SERVICE, [ready_at("a", 5)]) == START


def test_the_earliest_of_several_changes_counts() -> None:
    times = TriggerTimes()
    times.of(SERVICE, [ready_at("a", 1)])
    changed = [ready_at("a", 1), ready_at("b", 9), ready_at("c", 7)]
    assert times.of(SERVICE, changed) == START + timedelta(seconds=7)
    assert times.of(SERVICE, changed) is None


def test_a_deletion_has_no_date_and_a_pod_that_came_back_has_its_own() -> None:
    times = TriggerTimes()
    times.of(SERVICE, [ready_at("a", 1), ready_at("b", 2)])
    assert times.of(SERVICE, [ready_at("a", 1)]) is None
    assert times.of(SERVICE, [ready_at("a", 1), ready_at("b", 4)]) == START + timedelta(seconds=4)


def test_a_service_that_was_forgotten_is_new_again() -> None:
    times = TriggerTimes()
    times.of(SERVICE, [])
    times.forget(key_of(SERVICE))
    assert times.of(SERVICE, []) == START


def test_a_service_rests_in_proportion_to_its_pods() -> None:
    now = 100.0
    pacing = Pacing(clock=lambda: now)
    key = Key("default", "web")
    assert pacing.wait(key) == 0
    pacing.looked(key, pods=5000)
    assert 0.4 < pacing.wait(key) < 0.6
    now = 101.0
    assert pacing.wait(key) == 0


def _changed(before: Pod | None, after: Pod | None) -> bool:
    return changes_endpoints(Change(before, after))


def test_only_what_endpoints_show_of_a_pod_matters() -> None:
    pod = a_backend("p", "10.0.0.1")
    annotated = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations={"a": "b"}))
    pending = a_backend("p")
    assert not _changed(pod, annotated)
    assert not _changed(None, pending)
    assert not _changed(pending, a_backend("p", labels={"app": "other"}))
    assert not _changed(pending, None)
    assert _changed(pending, pod)
    assert _changed(None, pod)
    assert _changed(pod, None)
    assert _changed(pod, a_backend("p", "10.0.0.2"))
    assert _changed(pod, a_backend("p", "10.0.0.1", ready=False))
    assert _changed(pod, a_backend("p", "10.0.0.1", going=True))
    assert _changed(pod, a_backend("p", "10.0.0.1", phase="Failed"))
    assert _changed(pod, a_backend("p", "10.0.0.1", labels={"app": "other"}))
    assert _changed(pod, a_backend("p", "10.0.0.1", hostname="h"))


async def test_members_follow_labels_and_selectors(cluster: Cluster) -> None:
    members: list[Members] = []
    async with cluster.controllers(lambda manager: members.append(Members(manager))):
        (found,) = members
        await cluster.make(SERVICES, {"metadata": {"name": "web"}, "spec": _selecting(app="web", tier="front")})
        await make_pod(cluster, "a", "", labels={"app": "web", "tier": "front"})
        await make_pod(cluster, "b", "", labels={"app": "web", "tier": "back"})

        def service() -> Service | None:
            return found.services.get("web", "default")

        async def has(*names: str) -> None:
            async def holds() -> bool:
                known = service()
                return known is not None and sorted(pod.metadata.name for pod in found.of(known)) == list(names)

            await until(holds, within=10)

        await has("a")
        await cluster.client.merge_patch(PODS, "b", {"metadata": {"labels": {"tier": "front"}}}, "default")
        await has("a", "b")
        await cluster.client.merge_patch(PODS, "a", {"metadata": {"labels": {"app": "other"}}}, "default")
        await has("b")
        await make_pod(cluster, "c", "", labels={"app": "web", "tier": "front"})
        await has("b", "c")
        await cluster.client.delete(PODS, "b", "default", grace_seconds=0)
        await has("c")
        await cluster.client.merge_patch(SERVICES, "web", {"spec": {"selector": {"app": "other"}}}, "default")
        await has("a")


async def test_services_that_select_by_the_same_labels_have_pods_of_their_own(cluster: Cluster) -> None:
    members: list[Members] = []
    async with cluster.controllers(lambda manager: members.append(Members(manager))):
        (found,) = members
        for index in ("0", "1"):
            selector = _selecting(app="web", index=index)
            await cluster.make(SERVICES, {"metadata": {"name": f"web-{index}"}, "spec": selector})
            await make_pod(cluster, f"pod-{index}", "", labels={"app": "web", "index": index, "more": "x"})
        await cluster.make(SERVICES, {"metadata": {"name": "all"}, "spec": _selecting(app="web")})
        await cluster.make(SERVICES, {"metadata": {"name": "none"}, "spec": {"ports": [{"port": 80}]}})

        def seen() -> dict[str, list[str]]:
            services = {service.metadata.name: found.of(service) for service in found.services.items("default")}
            chosen = {name: sorted(pod.metadata.name for pod in pods) for name, pods in services.items()}
            return {name: chosen.get(name, []) for name in ("web-0", "web-1", "all", "none")}

        def selecting(pod: str) -> list[str]:
            known = found.pods.get(pod, "default")
            return [] if known is None else sorted(key.name for key in found.selecting(known))

        async def all_is_seen() -> bool:
            each = {"web-0": ["pod-0"], "web-1": ["pod-1"], "all": ["pod-0", "pod-1"], "none": []}
            return seen() == each and selecting("pod-1") == ["all", "web-1"]

        async def one_is_gone() -> bool:
            return selecting("pod-1") == ["all"] and seen()["all"] == ["pod-0", "pod-1"]

        await until(all_is_seen, within=10)
        await cluster.client.delete(SERVICES, "web-1", "default")
        await until(one_is_gone, within=10)
        await cluster.client.delete(SERVICES, "web-0", "default")
        await until(lambda: _answer(selecting("pod-0") == ["all"]), within=10)


async def _answer(holds: bool) -> bool:
    return holds


def _selecting(**labels: str) -> dict[str, object]:
    return {"selector": labels, "ports": [{"port": 80}]}
