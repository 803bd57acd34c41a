from __future__ import annotations

from typing import Any

from shoal.api.core import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from shoal.api.meta import Document, Resource
from shoal.cluster.controllers.quotas import add_quotas
from shoal.kube import Manager, running
from shoal.kube.transport import Request, Response
from tests.cluster.controllers.builders import workload_manifest
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of

DEPLOYMENTS = Resource(type=Document, group="apps", version="v1", kind="Deployment", plural="deployments")


async def make_quota(cluster: Cluster, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    await cluster.make(RESOURCE_QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


async def make_pod(cluster: Cluster, name: str, requests: dict[str, str] | None = None, **spec: Any) -> None:
    devices = {key: amount for key, amount in (requests or {}).items() if "/" in key}  # may not be overcommitted
    await cluster.make(PODS, pod_manifest(name, requests=requests, limits=devices, **spec))


async def until_used(cluster: Cluster, wanted: dict[str, str], name: str = "q") -> dict[str, Any]:
    async def holds() -> dict[str, Any] | None:
        found = await cluster.read(RESOURCE_QUOTAS, name)
        return found if found is not None and found.get("status", {}).get("used") == wanted else None

    try:
        found: dict[str, Any] = await until(holds, within=5)
    except TimeoutError:
        raise AssertionError(await cluster.read(RESOURCE_QUOTAS, name)) from None
    return found


async def test_a_new_quota_counts_what_is_there(cluster: Cluster) -> None:
    await make_pod(cluster, "a", {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"})
    await make_pod(cluster, "b", {"cpu": "1", "memory": "512Mi"})
    await cluster.make(SERVICES, {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "5Gi"}},
    }
    await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c"}, "spec": claim})
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "m"}})
    await cluster.make(DEPLOYMENTS, workload_manifest("d"))
    wanted = {
        "pods": "2",
        "count/pods": "2",
        "requests.cpu": "1500m",
        "requests.memory": "1536Mi",
        "requests.nvidia.com/gpu": "2",
        "limits.cpu": "0",
        "services": "1",
        "services.nodeports": "1",
        "services.loadbalancers": "0",
        "requests.storage": "5Gi",
        "persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
        "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
        "count/configmaps": "1",
        "configmaps": "1",
        "count/deployments.apps": "1",
        "count/jobs.batch": "0",
    }
    hard = dict.fromkeys(wanted, "100Gi")
    await make_quota(cluster, hard | {"count/things.nowhere.example": "3"})
    async with cluster.controllers(add_quotas):
        found = await until_used(cluster, wanted)
    assert found["status"]["hard"] == found["spec"]["hard"]


async def test_what_is_freed_is_given_back(cluster: Cluster) -> None:
    await make_quota(
        cluster, {"pods": "9", "requests.cpu": "9", "count/configmaps": "9", "count/deployments.apps": "9"}
    )
    async with cluster.controllers(add_quotas) as manager:
        empty = {"pods": "0", "requests.cpu": "0", "count/configmaps": "0", "count/deployments.apps": "0"}
        await until_used(cluster, empty)
        written = writes_of(manager)
        for name in ("a", "b", "c"):
            await make_pod(cluster, name, {"cpu": "1"})
        await cluster.make(CONFIG_MAPS, {"metadata": {"name": "m"}})
        await until_used(cluster, empty | {"pods": "3", "requests.cpu": "3", "count/configmaps": "1"})
        assert writes_of(manager) == written  # admission has counted these
        await cluster.set_status(PODS, "a", {"phase": "Succeeded"})
        await until_used(cluster, empty | {"pods": "2", "requests.cpu": "2", "count/configmaps": "1"})
        await cluster.client.delete(PODS, "b", "default", grace_seconds=0)
        await until_used(cluster, empty | {"pods": "1", "requests.cpu": "1", "count/configmaps": "1"})
        await cluster.client.delete(CONFIG_MAPS, "m", "default")
        await until_used(cluster, empty | {"pods": "1", "requests.cpu": "1"})


async def test_scopes_choose_what_is_counted(cluster: Cluster) -> None:
    await make_pod(cluster, "best")
    await make_pod(cluster, "asks", {"cpu": "1"})
    await make_pod(cluster, "ends", {"cpu": "1"}, activeDeadlineSeconds=60)
    await make_quota(cluster, {"pods": "9"}, "best", scopes=["BestEffort"])
    await make_quota(cluster, {"pods": "9"}, "other", scopes=["NotBestEffort", "NotTerminating"])
    await make_quota(cluster, {"pods": "9"}, "ending", scopes=["Terminating"])
    selected = {"scopeName": "PriorityClass", "operator": "DoesNotExist"}
    await make_quota(cluster, {"pods": "9"}, "plain", scopeSelector={"matchExpressions": [selected]})
    async with cluster.controllers(add_quotas):
        await until_used(cluster, {"pods": "1"}, "best")
        await until_used(cluster, {"pods": "1"}, "other")
        await until_used(cluster, {"pods": "1"}, "ending")
        await until_used(cluster, {"pods": "3"}, "plain")


async def test_a_changed_limit_is_shown_and_one_that_is_gone_is_not(cluster: Cluster) -> None:
    await make_pod(cluster, "a", {"cpu": "1"})
    await make_quota(cluster, {"pods": "9", "requests.cpu": "9"})
    async with cluster.controllers(add_quotas):
        await until_used(cluster, {"pods": "1", "requests.cpu": "1"})
        patch = {"spec": {"hard": {"pods": "5", "requests.cpu": None, "services": "2"}}}
        await cluster.client.merge_patch(RESOURCE_QUOTAS, "q", patch, "default")
        found = await until_used(cluster, {"pods": "1", "services": "0"})
        assert found["status"]["hard"] == {"pods": "5", "services": "2"}


async def test_nothing_is_written_after_a_restart(cluster: Cluster) -> None:
    await make_pod(cluster, "a", {"cpu": "1", "memory": "1Gi"})
    await make_quota(cluster, {"pods": "9", "requests.cpu": "9", "requests.memory": "9Gi", "count/configmaps": "9"})
    used = {"pods": "1", "requests.cpu": "1", "requests.memory": "1Gi", "count/configmaps": "0"}
    async with cluster.controllers(add_quotas):
        await until_used(cluster, used)
    async with cluster.controllers(add_quotas) as again:
        await make_quota(cluster, {"services": "1"}, "fence")
        await until_used(cluster, {"services": "0"}, "fence")
        assert writes_of(again) == 1


async def test_a_kind_that_cannot_be_read_keeps_no_quota_from_the_rest(cluster: Cluster) -> None:
    transport = FaultyTransport(cluster.server.transport())
    transport.faults.append(
        lambda request: Response(500, {}, b"{}") if request.path == "/apis/apps/v1/deployments" else None
    )
    manager = Manager(transport, name="controllers")
    add_quotas(manager)
    async with running(manager):
        await make_quota(cluster, {"pods": "5", "count/deployments.apps": "5"})
        await until_used(cluster, {"pods": "0"})
        await make_pod(cluster, "a")
        transport.faults.clear()
        await until_used(cluster, {"pods": "1", "count/deployments.apps": "0"})


async def test_what_is_served_is_asked_for_again_where_the_first_answer_failed(cluster: Cluster) -> None:
    transport = FaultyTransport(cluster.server.transport())

    def refuse_once(request: Request) -> Response | None:
        if request.path != "/apis":
            return None
        transport.faults.clear()
        return Response(403, {}, b"{}")

    transport.faults.append(refuse_once)
    manager = Manager(transport, name="controllers")
    add_quotas(manager)
    async with running(manager):
        await make_quota(cluster, {"count/deployments.apps": "5"})
        await until_used(cluster, {"count/deployments.apps": "0"})
