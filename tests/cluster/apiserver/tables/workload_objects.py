"""Workloads, jobs and autoscalers for their tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from shoal.api.meta import format_time
from tests.cluster.apiserver.tables.cases import Case, Object, ago, named, pod_template


def workload_cases() -> Iterator[Case]:
    selector = {"matchLabels": {"app": "x", "tier": "a"}}
    wordy = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "app", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "NotIn", "values": ["z"]},
        ],
    }
    for name, chosen in {"plain": selector, "wordy": wordy}.items():
        spec = {"selector": chosen, "template": pod_template("one", "two")}
        counts = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 1}
        yield Case("apps/v1", "ReplicaSet", named(f"rs-{name}", spec={"replicas": 0, **spec}))
        yield Case(
            "apps/v1",
            "Deployment",
            named(f"deploy-{name}", spec={"replicas": 0, "paused": True, **spec}),
            {"status": {"status": {**counts, "updatedReplicas": 3}}},
        )
        yield Case("apps/v1", "StatefulSet", named(f"sts-{name}", spec={"replicas": 0, "serviceName": "s", **spec}))
        daemons = {**spec, "template": pod_template("one", nodeSelector={"no": "such", "a": "b"})}
        yield Case("apps/v1", "DaemonSet", named(f"ds-{name}", spec=daemons))
    yield Case("apps/v1", "Deployment", named("deploy-four", spec={**spec, "replicas": 4, "paused": True}))
    yield Case("v1", "ReplicationController", named("rc", spec={"replicas": 0, "template": pod_template("one", "two")}))
    yield Case("v1", "PodTemplate", named("template", template=pod_template("one", "two")))
    bare = {"spec": {"containers": [{"name": "only", "image": "i"}]}}
    yield Case("v1", "PodTemplate", named("template-without-labels", template=bare))
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1", "controller": True}
    grown = {**owner, "apiVersion": "v1", "kind": "Pod"}
    for name, owners in {
        "owned": [owner],
        "core": [grown],
        "free": [],
        "held": [{**owner, "controller": False}],
    }.items():
        revision = named(f"revision-{name}", metadata={"ownerReferences": owners}, revision=len(name), data={"a": 1})
        yield Case("apps/v1", "ControllerRevision", revision)
    budgets: dict[str, Object] = {
        "least": {"minAvailable": 2},
        "share": {"minAvailable": "50%"},
        "most": {"maxUnavailable": "30%"},
        "none": {},
    }
    for name, limits in budgets.items():
        yield Case(
            "policy/v1",
            "PodDisruptionBudget",
            named(f"budget-{name}", spec={**limits, "selector": selector}),
            {
                "status": {
                    "status": {"disruptionsAllowed": 3, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
                }
            },
        )


def job_cases() -> Iterator[Case]:
    template = pod_template("one", "two", restartPolicy="Never")

    def job(name: str, spec: Object, status: Object, *, is_deleted: bool = False) -> Case:
        body = named(f"job-{name}", spec={"template": template, "suspend": True, **spec})
        return Case("batch/v1", "Job", body, {"status": {"status": status}} if status else {}, is_deleted)

    now = format_time(datetime.now(UTC))
    start = ago(hours=2, minutes=7)
    yield job("suspended", {}, {})
    yield job("many", {"parallelism": 5, "completions": 9}, {})
    # Where another manages a job, its state is that other's to write.
    others = {"managedBy": "tables.test/nobody", "suspend": False}
    yield job("queue", {**others, "parallelism": 4}, {"startTime": start, "active": 2, "ready": 0})
    yield job("queue-of-one", {**others, "completions": 2}, {"startTime": start, "active": 1, "ready": 0})
    ended = {"startTime": start, "ready": 0, "uncountedTerminatedPods": {}}
    met, target = _met("SuccessCriteriaMet", now), _met("FailureTarget", now)
    yield job(
        "complete",
        others,
        {**ended, "completionTime": now, "succeeded": 1, "conditions": [met, _met("Complete", now)]},
    )
    yield job("failed", others, {**ended, "conditions": [target, _met("Failed", now)]})
    yield job("failing", others, {**ended, "conditions": [target]})
    yield job("succeeding", others, {**ended, "succeeded": 1, "conditions": [met]})
    yield job("stopped", others, {"ready": 0, "conditions": [_met("Suspended", now)]})
    yield job("deleted", others, {}, is_deleted=True)

    times: Object = {"jobTemplate": {"spec": {"template": template}}, "schedule": "0 0 29 2 *"}
    yield Case("batch/v1", "CronJob", named("cron", spec=times))
    yield Case("batch/v1", "CronJob", named("cron-zone", spec={**times, "timeZone": "Etc/UTC", "suspend": True}))
    running = [{"kind": "Job", "name": name, "namespace": "x", "uid": name} for name in "ab"]
    yield Case(
        "batch/v1",
        "CronJob",
        named("cron-active", spec={**times, "suspend": True}),
        {"status": {"status": {"active": running, "lastScheduleTime": ago(days=8, hours=3)}}},
    )


def _met(kind: str, when: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Tried", "lastTransitionTime": when, "lastProbeTime": when}


def autoscaler_cases() -> Iterator[Case]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nothing"}

    def resource(name: str, **wanted: Any) -> Object:
        return {"type": "Resource", "resource": {"name": name, "target": wanted}}

    def container(name: str, **wanted: Any) -> Object:
        return {"type": "ContainerResource", "containerResource": {"name": name, "container": "c", "target": wanted}}

    half, amount = {"type": "Utilization", "averageUtilization": 50}, {"type": "AverageValue", "averageValue": "100m"}
    metric, whole = {"name": "m"}, {"type": "Value", "value": "10"}
    object_of = {"describedObject": {"kind": "Service", "name": "s"}, "metric": metric}
    cpu, cpu_amount = resource("cpu", **half), resource("cpu", **amount)
    pods = {"type": "Pods", "pods": {"metric": metric, "target": amount}}
    outside = {"type": "External", "external": {"metric": metric, "target": whole}}
    outside_share = {"type": "External", "external": {"metric": metric, "target": amount}}
    thing = {"type": "Object", "object": {**object_of, "target": whole}}
    thing_share = {"type": "Object", "object": {**object_of, "target": amount}}

    def current(kind: str, source: str, more: Object, **values: Any) -> Object:
        return {"type": kind, source: {**more, "current": values}}

    measured = {"metric": metric}
    known: dict[str, tuple[list[Object], list[Object]]] = {
        "cpu": ([cpu], [current("Resource", "resource", {"name": "cpu"}, averageUtilization=70, averageValue="1")]),
        "cpu-unknown": ([cpu], []),
        "cpu-amount": ([cpu_amount], [current("Resource", "resource", {"name": "cpu"}, averageValue="250m")]),
        "container": (
            [container("memory", **half)],
            [
                current(
                    "ContainerResource", "containerResource", {"name": "memory", "container": "c"}, averageUtilization=9
                )
            ],
        ),
        "container-amount": (
            [container("memory", **amount)],
            [
                current(
                    "ContainerResource", "containerResource", {"name": "memory", "container": "c"}, averageValue="9Mi"
                )
            ],
        ),
        "pods": ([pods], [current("Pods", "pods", measured, averageValue="5")]),
        "external": ([outside], [current("External", "external", measured, value="7")]),
        "external-share": ([outside_share], [current("External", "external", measured, averageValue="3")]),
        "external-share-unknown": ([outside_share], [current("External", "external", measured, value="3")]),
        "object": ([thing], [current("Object", "object", object_of, value="7")]),
        "object-share": ([thing_share], [current("Object", "object", object_of, averageValue="8")]),
        "three": ([cpu, pods, outside], [current("Pods", "pods", measured, averageValue="5")]),
        "two": ([cpu, outside], []),
    }
    for name, (metrics, statuses) in known.items():
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5, "metrics": metrics}
        yield Case(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            named(f"hpa-{name}", spec=spec),
            {"status": {"status": {"currentMetrics": statuses, "desiredReplicas": 0, "currentReplicas": 3}}},
        )
    plain = {"scaleTargetRef": target, "maxReplicas": 5}
    yield Case("autoscaling/v1", "HorizontalPodAutoscaler", named("hpa-v1", spec=plain))
    spec = {**plain, "targetCPUUtilizationPercentage": 30}
    yield Case("autoscaling/v1", "HorizontalPodAutoscaler", named("hpa-v1-cpu", spec=spec))
