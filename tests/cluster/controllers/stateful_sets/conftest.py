"""StatefulSets, and what a node would do for their pods."""

from __future__ import annotations

from typing import Any

from shoal.api.apps import STATEFUL_SETS
from shoal.api.core import PODS
from shoal.api.meta import format_time, now
from tests.cluster.controllers.builders import workload_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

LABELS = {"app": "web"}


def stateful_set_manifest(**given: Any) -> dict[str, Any]:
    defaults = {"replicas": 3, "image": "one", "serviceName": "web", "pod": {"terminationGracePeriodSeconds": 0}}
    return workload_manifest(**{**defaults, **given})


def a_claim_template(name: str = "data") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"kind": "disk"}}, "spec": spec}


async def pod_names(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in await cluster.all(PODS)]


async def ready(cluster: Cluster, name: str) -> None:
    """Waits for a pod, and makes it run."""
    await until(lambda: cluster.read(PODS, name))
    at = format_time(now())
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": at}
    await cluster.set_status(PODS, name, {"phase": "Running", "conditions": [condition]})


async def status_is(cluster: Cluster, name: str = "web", **wanted: Any) -> dict[str, Any]:
    """Waits until a StatefulSet's status says so."""

    async def says() -> dict[str, Any] | None:
        found = await cluster.read(STATEFUL_SETS, name)
        assert found is not None
        status = found.get("status", {})
        return status if all(status.get(key, 0) == value for key, value in wanted.items()) else None

    status: dict[str, Any] = await until(says, within=10)
    return status
