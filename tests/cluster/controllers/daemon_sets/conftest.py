"""DaemonSets, nodes, and what nodes and the scheduler would do for their pods."""

from __future__ import annotations

from typing import Any

from shoal.api.apps import DAEMON_SETS
from shoal.api.core import NODES, PODS
from shoal.api.meta import format_time, now
from tests.cluster.controllers.builders import workload_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

LABELS = {"app": "agent"}


def daemon_set_manifest(*, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    shape = {"terminationGracePeriodSeconds": 0, **(pod or {})}
    return workload_manifest("agent", app="agent", image="one", pod=shape, **spec)


async def add_node(cluster: Cluster, name: str, *, taints: Any = (), **labels: str) -> None:
    """Adds a node that is ready: the server marks new ones as not ready until somebody takes that off."""
    await cluster.make(NODES, {"metadata": {"name": name, "labels": labels}})
    await cluster.client.merge_patch(NODES.documents(), name, {"spec": {"taints": list(taints)}})


async def pods_by_node(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """The pods by the node that each is for."""
    found: dict[str, list[dict[str, Any]]] = {}
    for pod in await cluster.all(PODS):
        affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        found.setdefault(affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0], []).append(pod)
    return found


async def nodes_are(cluster: Cluster, *names: str) -> None:
    """Waits until just these nodes have a pod each."""

    async def so() -> bool:
        return sorted(await pods_by_node(cluster)) == sorted(names)

    await until(so, within=10)


async def run_pod(cluster: Cluster, pod: dict[str, Any], node: str) -> None:
    """Binds a pod, and makes it ready."""
    name = pod["metadata"]["name"]
    if "nodeName" not in pod["spec"]:
        await cluster.client.bind(PODS, name, "default", node=node)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(now())}
    await cluster.set_status(PODS, name, {"phase": "Running", "conditions": [condition]})


async def run_all(cluster: Cluster) -> None:
    """Binds and readies whatever is not running yet."""
    for node, pods in (await pods_by_node(cluster)).items():
        for pod in pods:
            if pod["status"].get("phase") == "Pending":
                await run_pod(cluster, pod, node)


async def status_is(cluster: Cluster, name: str = "agent", **wanted: Any) -> dict[str, Any]:
    """Waits until a DaemonSet's status says so."""

    async def says() -> dict[str, Any] | None:
        found = await cluster.read(DAEMON_SETS, name)
        assert found is not None
        status = found.get("status", {})
        return status if all(status.get(key, 0) == value for key, value in wanted.items()) else None

    status: dict[str, Any] = await until(says, within=10)
    return status
