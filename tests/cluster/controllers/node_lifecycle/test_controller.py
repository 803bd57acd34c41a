from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from shoal.api.coordination import LEASES, NODE_LEASE_NAMESPACE
from shoal.api.core import EVENTS, LEASE, NAMESPACES, NODES, PODS
from shoal.api.meta import format_micro_time, format_time, now
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.controllers.node_lifecycle.zones import EvictionLimits
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

GRACE = 0.6
lifecycle = partial(add_node_lifecycle, grace=GRACE, startup_grace=GRACE, settle=0.1, limits=EvictionLimits(rate=20))
patient = partial(add_node_lifecycle, grace=300, startup_grace=300, settle=0.1, limits=EvictionLimits(rate=20))

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


async def make_node(cluster: Cluster, name: str, *, ready: str | None = "True", lease: str = "") -> None:
    annotations = {LEASE: lease} if lease else {}
    await cluster.make(NODES, {"metadata": {"name": name, "annotations": annotations}})
    if ready is not None:
        await beat(cluster, name, ready=ready)


async def beat(cluster: Cluster, name: str, *, ready: str = "True") -> None:
    """A node says how it is."""
    moment = format_time(now())
    times = {"lastHeartbeatTime": moment, "lastTransitionTime": moment, "reason": "R", "message": "m"}
    conditions = [{"type": "Ready", "status": ready, **times}]
    conditions += [{"type": name, "status": "False", **times} for name in PRESSURES]
    await cluster.set_status(NODES, name, {"conditions": conditions})


async def renew(cluster: Cluster, name: str) -> None:
    spec = {"holderIdentity": name, "renewTime": format_micro_time(datetime.now(UTC))}
    if await cluster.read(LEASES, name, NODE_LEASE_NAMESPACE) is None:
        if await cluster.read(NAMESPACES, NODE_LEASE_NAMESPACE) is None:
            await cluster.make(NAMESPACES, {"metadata": {"name": NODE_LEASE_NAMESPACE}})
        await cluster.make(LEASES, {"metadata": {"name": name}, "spec": spec}, NODE_LEASE_NAMESPACE)
    else:
        await cluster.client.merge_patch(LEASES.documents(), name, {"spec": spec}, NODE_LEASE_NAMESPACE)


@asynccontextmanager
async def kept_alive(cluster: Cluster, *leases: str) -> AsyncIterator[None]:
    """Leases that are renewed for the length of a block."""

    async def keep() -> None:
        while True:
            for lease in leases:
                await renew(cluster, lease)
            await asyncio.sleep(GRACE / 5)

    task = asyncio.create_task(keep())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def make_pod(cluster: Cluster, name: str, node: str, *, tolerations: list[dict[str, Any]] | None = None) -> None:
    await cluster.make(PODS, pod_manifest(name, node=node, tolerations=tolerations or []))
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(now())}
    await cluster.set_status(PODS, name, {"phase": "Running", "conditions": [ready]})


async def status_of(cluster: Cluster, node: str, condition: str = "Ready") -> str | None:
    found = await cluster.read(NODES, node) or {}
    conditions = found.get("status", {}).get("conditions") or []
    return next((each["status"] for each in conditions if each["type"] == condition), None)


async def taints_of(cluster: Cluster, node: str) -> set[tuple[str, str]]:
    found = await cluster.read(NODES, node) or {}
    taints = found.get("spec", {}).get("taints") or []
    return {(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in taints}


async def has_taints(cluster: Cluster, node: str, *taints: tuple[str, str]) -> bool:
    return await taints_of(cluster, node) == set(taints)


async def events(cluster: Cluster, reason: str) -> list[str]:
    found = await cluster.all(EVENTS, "")
    return [event["message"] for event in found if event["reason"] == reason]


async def test_a_node_that_falls_silent_is_unknown_tainted_and_its_pods_not_ready(cluster: Cluster) -> None:
    await make_node(cluster, "well")
    await make_node(cluster, "lost")
    await make_pod(cluster, "p", "lost", tolerations=[{"operator": "Exists"}])
    async with kept_alive(cluster, "well"), cluster.controllers(lifecycle):
        unreachable = [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
        await until(partial(has_taints, cluster, "lost", *unreachable))
        assert [await status_of(cluster, "lost", name) for name in ("Ready", *PRESSURES)] == ["Unknown"] * 4
        pod = await cluster.read(PODS, "p") or {}
        assert [each["status"] for each in pod["status"]["conditions"] if each["type"] == "Ready"] == ["False"]
        assert await taints_of(cluster, "well") == set()

        async def is_told() -> bool:
            told = set(await events(cluster, "NodeNotReady"))
            return told == {"Node lost status is now: NodeNotReady", "Node is not ready"}

        await until(is_told)
        async with kept_alive(cluster, "lost"):
            await beat(cluster, "lost")
            await until(partial(has_taints, cluster, "lost"))


async def test_one_lease_vouches_for_a_pool(cluster: Cluster) -> None:
    await renew(cluster, "pool")
    for number in range(5):
        await make_node(cluster, f"n{number}", lease="pool")
    async with cluster.controllers(lifecycle):
        async with kept_alive(cluster, "pool"):
            await asyncio.sleep(2 * GRACE)
            assert {await status_of(cluster, f"n{number}") for number in range(5)} == {"True"}

        async def all_unknown() -> bool:
            return {await status_of(cluster, f"n{number}") for number in range(5)} == {"Unknown"}

        await until(all_unknown)


async def test_when_all_nodes_are_lost_their_pods_stay(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    await make_node(cluster, "b")
    await make_pod(cluster, "p", "a")
    async with cluster.controllers(lifecycle):
        await until(partial(has_taints, cluster, "a", ("unreachable", "NoSchedule")))
        await until(partial(has_taints, cluster, "b", ("unreachable", "NoSchedule")))
        await asyncio.sleep(0.3)
        assert await taints_of(cluster, "a") == {("unreachable", "NoSchedule")}
        async with kept_alive(cluster, "b"):
            await beat(cluster, "b")
            await until(partial(has_taints, cluster, "a", ("unreachable", "NoSchedule"), ("unreachable", "NoExecute")))


async def test_a_node_that_never_says_anything_is_given_up(cluster: Cluster) -> None:
    await make_node(cluster, "mute", ready=None)
    async with cluster.controllers(lifecycle):

        async def is_unknown() -> bool:
            return await status_of(cluster, "mute") == "Unknown"

        await until(is_unknown)
        found = await cluster.read(NODES, "mute") or {}
        assert {each["reason"] for each in found["status"]["conditions"]} == {"NodeStatusNeverUpdated"}
        assert {each["message"] for each in found["status"]["conditions"]} == {"Kubelet never posted node status."}


async def test_taints_follow_conditions_and_cordons(cluster: Cluster) -> None:
    async with cluster.controllers(patient):
        await make_node(cluster, "a")
        await make_node(cluster, "b")
        await until(partial(has_taints, cluster, "a"))
        await cluster.client.merge_patch(NODES.documents(), "a", {"spec": {"unschedulable": True}})
        await until(partial(has_taints, cluster, "a", ("unschedulable", "NoSchedule")))
        await beat(cluster, "a", ready="False")
        not_ready = [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]
        await until(partial(has_taints, cluster, "a", ("unschedulable", "NoSchedule"), *not_ready))
        await cluster.client.merge_patch(NODES.documents(), "a", {"spec": {"unschedulable": None}})
        await until(partial(has_taints, cluster, "a", *not_ready))
        await beat(cluster, "a")
        await until(partial(has_taints, cluster, "a"))


async def test_older_names_of_labels_are_kept_equal(cluster: Cluster) -> None:
    async with cluster.controllers(patient):
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "x"}
        await cluster.make(NODES, {"metadata": {"name": "a", "labels": labels}})

        async def is_labelled() -> bool:
            found = await cluster.read(NODES, "a") or {}
            held = found["metadata"]["labels"]
            return (held.get("beta.kubernetes.io/os"), held.get("beta.kubernetes.io/arch")) == ("linux", "arm64")

        await until(is_labelled)


async def taint(cluster: Cluster, node: str, key: str | None) -> None:
    taints = [{"key": key, "effect": "NoExecute"}] if key else None
    await cluster.client.merge_patch(NODES.documents(), node, {"spec": {"taints": taints}})


async def is_leaving(cluster: Cluster, pod: str) -> bool:
    found = await cluster.read(PODS, pod)
    return found is None or "deletionTimestamp" in found["metadata"]


def tolerating(key: str, seconds: int | None = None) -> dict[str, Any]:
    toleration: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else toleration | {"tolerationSeconds": seconds}


async def test_pods_leave_a_tainted_node_as_their_tolerations_say(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    await make_pod(cluster, "at-once", "a")
    await make_pod(cluster, "soon", "a", tolerations=[tolerating("k", 1)])
    await make_pod(cluster, "never", "a", tolerations=[tolerating("k")])
    async with cluster.controllers(patient):
        await taint(cluster, "a", "k")
        await until(partial(is_leaving, cluster, "at-once"))
        assert not await is_leaving(cluster, "soon")
        leaving = await cluster.read(PODS, "at-once") or {}
        condition = next(each for each in leaving["status"]["conditions"] if each["type"] == "DisruptionTarget")
        assert condition["status"] == "True"
        assert condition["reason"] == "DeletionByTaintManager"
        assert condition["message"] == "Taint manager: deleting due to NoExecute taint"
        assert condition["observedGeneration"] == 1
        await until(partial(is_leaving, cluster, "soon"))
        assert not await is_leaving(cluster, "never")
        # A pod that comes later meets the taint as well.
        await make_pod(cluster, "late", "a")
        await until(partial(is_leaving, cluster, "late"))

        async def is_told() -> bool:
            return set(await events(cluster, "TaintManagerEviction")) == {
                f"Marking for deletion Pod default/{name}" for name in ("at-once", "soon", "late")
            }

        await until(is_told)


async def test_a_planned_eviction_is_dropped_when_the_taint_goes(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    await make_pod(cluster, "p", "a", tolerations=[tolerating("k", 300)])
    async with cluster.controllers(patient) as manager:
        await taint(cluster, "a", "k")

        async def is_planned() -> bool:
            samples = [sample for family in manager.metrics.reconciles.collect() for sample in family.samples]
            return any(
                sample.labels.get("controller") == "taint-eviction"
                and sample.labels.get("result") == "requeue_after"
                and sample.value > 0
                for sample in samples
            )

        await until(is_planned)
        await taint(cluster, "a", None)

        async def is_told() -> bool:
            return await events(cluster, "TaintManagerEviction") == ["Cancelling deletion of Pod default/p"]

        await until(is_told)
        assert not await is_leaving(cluster, "p")


async def test_a_controller_that_starts_on_a_settled_cluster_writes_nothing(cluster: Cluster) -> None:
    await make_node(cluster, "well")
    await make_node(cluster, "other")
    await make_node(cluster, "lost", ready="False")
    await make_pod(cluster, "p", "lost", tolerations=[{"operator": "Exists"}])
    async with cluster.controllers(patient):
        await until(partial(has_taints, cluster, "lost", ("not-ready", "NoSchedule"), ("not-ready", "NoExecute")))
        await until(partial(has_taints, cluster, "well"))
        await until(partial(has_taints, cluster, "other"))
    async with cluster.controllers(patient) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
