"""Autoscalers on the embedded server; only the metrics are made up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec

from shoal.api.apps import DEPLOYMENTS
from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import EVENTS, PODS
from shoal.api.meta import format_time, now
from shoal.cluster.controllers.autoscaling import add_autoscaling
from shoal.kube import Manager, running
from tests.cluster.controllers.builders import workload_manifest
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}


class Bench:
    """A deployment with pods, what they use, and an autoscaler."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.usage: dict[str, str] = {}
        self.custom: dict[str, Any] = {}

    async def deploy(self, *, replicas: int, name: str = "web") -> None:
        await self.cluster.make(DEPLOYMENTS, workload_manifest(name, app=name, replicas=replicas))
        started = format_time(now() - timedelta(hours=1))
        for number in range(replicas):
            pod = f"{name}-{number}"
            requests = {"cpu": "1", "memory": "1Gi"}
            await self.cluster.make(PODS, pod_manifest(pod, labels={"app": name}, containers=["c"], requests=requests))
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
            status = {"phase": "Running", "startTime": started, "conditions": [ready]}
            await self.cluster.set_status(PODS, pod, status)
        await self.cluster.set_status(DEPLOYMENTS, name, {"replicas": replicas})

    async def autoscale(self, *metrics: dict[str, Any], name: str = "web", **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        whole = {"scaleTargetRef": target, "maxReplicas": 10, "metrics": list(metrics) or [CPU]} | spec
        await self.cluster.make(HORIZONTAL_POD_AUTOSCALERS, {"metadata": {"name": name}, "spec": whole})

    async def size(self) -> int:
        found = await self.cluster.read(DEPLOYMENTS, "web")
        assert found is not None
        return int(found["spec"]["replicas"])

    async def status(self, name: str = "web") -> dict[str, Any]:
        found = await self.cluster.read(HORIZONTAL_POD_AUTOSCALERS, name)
        assert found is not None
        return dict(found.get("status") or {})

    async def condition(self, type: str, name: str = "web") -> dict[str, Any]:  # noqa: A002
        conditions = (await self.status(name)).get("conditions") or []
        return next((one for one in conditions if one["type"] == type), {})

    async def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["message"]) for event in await self.cluster.all(EVENTS)]

    @asynccontextmanager
    async def running(self, **chosen: Any) -> AsyncIterator[Manager]:
        manager = Manager(self.cluster.server.transport(), name="controllers")
        really = manager.client.read_path

        async def read_path(path: str, query: Any = None, **more: Any) -> bytes:
            if path.startswith("/apis/metrics.k8s.io/") and self.usage:
                items = [
                    {
                        "metadata": {"name": name},
                        "timestamp": format_time(now()),
                        "window": "30s",
                        "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "512Mi"}}],
                    }
                    for name, cpu in self.usage.items()
                ]
                return msgspec.json.encode({"items": items})
            if path in self.custom:
                return msgspec.json.encode(self.custom[path])
            return await really(path, query, **more)

        manager.client.read_path = read_path  # type: ignore[method-assign]
        add_autoscaling(manager, **{"sync_period": 0.05, **chosen})
        async with running(manager):
            yield manager


async def test_a_busy_workload_grows_and_an_idle_one_shrinks_after_a_while(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=2)
    bench.usage = {"web-0": "1", "web-1": "1"}
    await bench.autoscale()
    async with bench.running():
        await until(lambda: _is(bench.size(), 4))
        await until(lambda: _has(bench.events(), "SuccessfulRescale"))
        words = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
        assert ("SuccessfulRescale", words) in await bench.events()
        status = await until(lambda: _with(bench.status(), "lastScaleTime"))
        assert status["currentMetrics"] == [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 100, "averageValue": "1"}},
            }
        ]
        assert (await bench.condition("ScalingActive"))["reason"] == "ValidMetricFound"
        bench.usage = {"web-0": "10m", "web-1": "10m"}
        await until(lambda: _reason(bench, "AbleToScale", "ScaleDownStabilized"))
        assert await bench.size() == 4
    async with bench.running(downscale_stabilization=timedelta(seconds=-1)):
        await until(lambda: _is(bench.size(), 1))
        assert (await bench.condition("ScalingLimited"))["reason"] in ("DesiredWithinRange", "TooFewReplicas")


async def test_bounds_go_before_metrics(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=4)
    await bench.autoscale(maxReplicas=2)
    async with bench.running():
        await until(lambda: _is(bench.size(), 2))
        await until(lambda: _has(bench.events(), "SuccessfulRescale"))
        words = "New size: 2; reason: Current number of replicas above Spec.MaxReplicas"
        assert ("SuccessfulRescale", words) in await bench.events()
        patch = {"spec": {"minReplicas": 3, "maxReplicas": 5}}
        await cluster.client.merge_patch(HORIZONTAL_POD_AUTOSCALERS, "web", patch, "default")
        await until(lambda: _is(bench.size(), 3))


async def test_a_workload_at_zero_is_left_alone(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=0)
    await bench.autoscale()
    async with bench.running():
        await until(lambda: _reason(bench, "ScalingActive", "ScalingDisabled"))
        assert await bench.size() == 0


async def test_without_metrics_nothing_changes_and_it_is_said_once(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=2)
    await bench.autoscale()
    async with bench.running():
        await until(lambda: _reason(bench, "ScalingActive", "FailedGetResourceMetric"))
        problem = "failed to get cpu utilization: unable to get metrics for resource cpu: "
        condition = await bench.condition("ScalingActive")
        assert condition["message"].startswith(f"the HPA was unable to compute the replica count: {problem}")
        assert (await bench.status())["currentMetrics"] == [{"type": ""}]
        await until(lambda: _has(bench.events(), "FailedComputeMetricsReplicas"))
    async with bench.running() as manager:
        await bench.autoscale(name="other", scaleTargetRef={"apiVersion": "v9/v9", "kind": "Nope", "name": "x"})
        await until(lambda: _reason(bench, "AbleToScale", "FailedGetScale", "other"))
        await until(lambda: _has(bench.events(), "FailedGetScale"))
        assert ("FailedGetScale", 'no matches for kind "Nope" in group "v9"') in await bench.events()
        assert writes_of(manager) == 2  # what the other one says


async def test_a_missing_target_is_told(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.autoscale()
    async with bench.running():
        await until(lambda: _reason(bench, "AbleToScale", "FailedGetScale"))
        assert (await bench.condition("AbleToScale"))["message"] == (
            'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found'
        )


async def test_two_autoscalers_of_the_same_pods_are_told_of_each_other(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=2)
    bench.usage = {"web-0": "1", "web-1": "1"}
    await bench.autoscale()
    await bench.autoscale(name="twin")
    async with bench.running():
        await until(lambda: _reason(bench, "ScalingActive", "AmbiguousSelector"))
        assert (await bench.condition("ScalingActive"))["message"] == (
            "pods by selector app=web are controlled by multiple HPAs: [{twin default} {web default}]"
        )


async def test_metrics_of_pods_objects_and_the_outside_are_read_where_they_are_served(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=2)
    root, place = "/apis/custom.metrics.k8s.io", "namespaces/default"
    stamp = format_time(now())
    bench.custom = {
        root: {"preferredVersion": {"version": "v1beta2"}},
        f"{root}/v1beta2/{place}/pods/*/qps": {
            "items": [
                {"describedObject": {"name": f"web-{number}"}, "timestamp": stamp, "value": "10"} for number in range(2)
            ]
        },
        f"{root}/v1beta2/{place}/services/s/hits": {"items": [{"timestamp": stamp, "value": "10"}]},
        f"/apis/external.metrics.k8s.io/v1beta1/{place}/queue": {
            "items": [{"timestamp": stamp, "value": "30"}, {"timestamp": stamp, "value": "40"}]
        },
    }
    service = {"apiVersion": "v1", "kind": "Service", "name": "s"}
    average = {"type": "AverageValue", "averageValue": "10"}
    await bench.autoscale(
        {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": average}},
        {
            "type": "Object",
            "object": {
                "describedObject": service,
                "metric": {"name": "hits"},
                "target": {"type": "Value", "value": "10"},
            },
        },
        {"type": "External", "external": {"metric": {"name": "queue"}, "target": average}},
        behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 3, "periodSeconds": 600}]}},
    )
    async with bench.running():
        await until(lambda: _is(bench.size(), 5))  # seven are wanted, three may be added
        await until(lambda: _has(bench.events(), "SuccessfulRescale"))
        words = "New size: 5; reason: external metric queue(nil) above target"
        assert ("SuccessfulRescale", words) in await bench.events()
        await until(lambda: _reason(bench, "ScalingLimited", "ScaleUpLimit"))
        found = (await bench.status())["currentMetrics"]
        assert [one["type"] for one in found] == ["Pods", "Object", "External"]
        assert found[0]["pods"]["current"] == {"averageValue": "10"}
        assert found[1]["object"]["current"] == {"value": "10"}
        assert found[2]["external"]["current"] == {"averageValue": "35"}


async def test_a_missing_api_is_told_by_its_name(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=2)
    target = {"type": "AverageValue", "averageValue": "10"}
    await bench.autoscale({"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": target}})
    async with bench.running():
        await until(lambda: _reason(bench, "ScalingActive", "FailedGetPodsMetric"))
        assert (await bench.condition("ScalingActive"))["message"] == (
            "the HPA was unable to compute the replica count: unable to get metric qps: unable to fetch metrics from "
            "custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
        )


async def test_an_external_api_that_nobody_serves_is_told_by_the_name_of_the_metric(cluster: Cluster) -> None:
    bench = Bench(cluster)
    await bench.deploy(replicas=1)
    target = {"type": "AverageValue", "averageValue": "10"}
    await bench.autoscale({"type": "External", "external": {"metric": {"name": "queue"}, "target": target}})
    async with bench.running():
        await until(lambda: _reason(bench, "ScalingActive", "FailedGetExternalMetric"))
        message = (await bench.condition("ScalingActive"))["message"]
        assert message.endswith("the server could not find the requested resource (get queue.external.metrics.k8s.io)")


async def _is(found: Any, wanted: int) -> bool:
    return bool(await found == wanted)


async def _has(events: Any, reason: str) -> bool:
    return any(found == reason for found, _ in await events)


async def _with(status: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = await status
    return found if found.get(name) else {}


async def _reason(bench: Bench, type: str, reason: str, name: str = "web") -> bool:  # noqa: A002
    return bool((await bench.condition(type, name)).get("reason") == reason)
