"""The same nodes and pods before the real kube-scheduler and before ours: both say the same of who fits nowhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shoal.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICE_ACCOUNTS, is_finished
from shoal.api.meta import Resource
from shoal.cluster.controllers.binding import add_binding
from shoal.kube import AlreadyExists, Client, NotFound
from tests.cluster.controllers.binding.builders import away_from, near_to, on_nodes, pending_manifest, worker_manifest
from tests.support.clusters.client import client_to, until
from tests.support.clusters.in_process import Cluster

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
NAMED = on_nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["full"]}])

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "zone",
        "minDomains": 2,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "shy"}},
    }
]

WORLD: list[tuple[Resource[Any], dict[str, Any]]] = [
    (NODES, worker_manifest("closed", unschedulable=True, gpu="8")),
    (NODES, worker_manifest("full", gpu="1", pods="2")),
    (NODES, worker_manifest("roomy", gpu="2", labels={"zone": "a"})),
    (NODES, worker_manifest("tainted", taints=[TAINT], gpu="8")),
    (PODS, pending_manifest("shy", nodeName="roomy", labels={"app": "shy"}, affinity=away_from("zone", app="loud"))),
    (PODS, pending_manifest("big", nodeName="full", requests={"cpu": "3", "gpu": "1"})),
    (PODS, pending_manifest("porter", nodeName="roomy", host_port=8080)),
    (
        PERSISTENT_VOLUME_CLAIMS,
        {
            "metadata": {"name": "unbound"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
            },
        },
    ),
    (PODS, pending_manifest("greedy", requests={"cpu": "3", "gpu": "4"})),
    (PODS, pending_manifest("picky", nodeSelector={"zone": "b"})),
    (PODS, pending_manifest("lonely", affinity=near_to("zone", app="nobody"))),
    (PODS, pending_manifest("shunned", labels={"app": "loud"}, nodeSelector={"zone": "a"})),
    (PODS, pending_manifest("avoiding", affinity=away_from("zone", app="shy"), nodeSelector={"zone": "a"})),
    (PODS, pending_manifest("named", affinity=NAMED, requests={"cpu": "2"})),
    (PODS, pending_manifest("harbour", host_port=8080, nodeSelector={"zone": "a"})),
    (PODS, pending_manifest("claimless", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "none"}}])),
    (PODS, pending_manifest("unbound", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "unbound"}}])),
    (PODS, pending_manifest("evenly", labels={"app": "shy"}, topologySpreadConstraints=SPREAD)),
    (PODS, pending_manifest("gated", schedulingGates=[{"name": "wait"}])),
]
WAITING = {"evenly", "greedy", "picky", "lonely", "shunned", "avoiding", "named", "harbour", "claimless", "unbound"}


async def test_both_schedulers_say_the_same(cluster: Cluster, start_kube: Callable[..., Any]) -> None:
    real = start_kube(scheduler=True)
    async with client_to(real.kubeconfig) as client:
        await _make(client)
        theirs = await until(lambda: _said(client), within=60)
    async with cluster.controllers(add_binding):
        await _make(cluster.client)
        ours = await until(lambda: _said(cluster.client))
    assert ours == theirs


async def _make(client: Client) -> None:
    with suppress(AlreadyExists):
        await client.create(SERVICE_ACCOUNTS.documents(), {"metadata": {"name": "default"}}, "default")
    for resource, manifest in WORLD:
        body = {key: value for key, value in manifest.items() if key != "status"}
        namespace = "default" if resource.namespaced else ""
        await client.create(resource.documents(), body, namespace)
        if resource is NODES:
            name = manifest["metadata"]["name"]
            status = {"status": manifest["status"]}
            await client.merge_patch(NODES, name, {"spec": {"taints": manifest["spec"].get("taints")}})
            await client.merge_patch(NODES, name, status, subresource="status")


async def _said(client: Client) -> dict[str, tuple[str, str]]:
    """What the pods that wait say, once all of them say it with every node in sight; what follows is on preemption."""
    said = {}
    for name in WAITING:
        try:
            pod = await client.get(PODS, name, "default")
        except NotFound:
            return {}
        assert not pod.spec.node_name
        assert not is_finished(pod)
        condition = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        if condition is None or "0/4" not in condition.message:
            return {}
        said[name] = (condition.reason, condition.message.partition(". ")[0].removesuffix("."))
    return said
