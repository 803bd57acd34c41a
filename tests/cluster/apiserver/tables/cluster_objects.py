"""Nodes, plain objects and events for their tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.meta import format_micro_time
from tests.cluster.apiserver.tables.cases import Case, Object, ago, condition, named


def cluster_cases(prefix: str) -> Iterator[Case]:
    def node(name: str, *, labels: dict[str, str] | None = None, status: Object | None = None, **spec: Any) -> Case:
        body = named(f"{prefix}-node-{name}", metadata={"labels": labels or {}}, spec=spec)
        return Case("v1", "Node", body, {"status": {"status": status}} if status else {})

    roles = {
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/control-plane": "x",
        "kubernetes.io/role": "z",
    }
    about = {"kubeletVersion": "v1.36.4", "osImage": "Some Linux", "kernelVersion": "6.1", "architecture": "arm64"}
    about |= {"containerRuntimeVersion": "containerd://2", "machineID": "", "systemUUID": "", "bootID": ""}
    about |= {"kubeProxyVersion": "", "operatingSystem": "linux"}
    addresses = [
        {"type": "Hostname", "address": "h"},
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "ExternalIP", "address": "192.0.2.1"},
        {"type": "InternalIP", "address": "10.0.0.2"},
    ]
    yield node("plain")
    yield node(
        "ready", labels=roles, status={"conditions": [condition("Ready")], "nodeInfo": about, "addresses": addresses}
    )
    yield node("cordoned", labels={"kubernetes.io/role": ""}, unschedulable=True)
    yield node("unready", status={"conditions": [condition("Ready", "False"), condition("DiskPressure")]})
    yield node("lost", status={"conditions": [condition("Ready", "Unknown")]}, unschedulable=True)

    yield Case("v1", "ConfigMap", named("config", data={"a": "b", "c": "d"}, binaryData={"e": "AA=="}))
    yield Case("v1", "ConfigMap", named("config-empty"))
    yield Case("v1", "Secret", named("secret", stringData={"a": "b"}))
    yield Case("v1", "Secret", named("secret-typed", type="test.io/kind"))
    yield Case("v1", "ServiceAccount", named("account"))
    yield Case("v1", "LimitRange", named("limits", spec={"limits": []}))
    hard = {"cpu": "2", "limits.memory": "1Gi", "pods": "10", "limits.cpu": "3", "requests.example.com/gpu": "4"}
    yield Case("v1", "ResourceQuota", named("quota", spec={"hard": {"configmaps": "900"}}))
    yield Case(
        "v1",
        "ResourceQuota",
        named("quota-used", spec={}),
        {"status": {"status": {"hard": hard, "used": {"cpu": "500m", "limits.cpu": "1"}}}},
    )
    yield Case("coordination.k8s.io/v1", "Lease", named("lease", spec={"holderIdentity": "me"}))
    yield Case("coordination.k8s.io/v1", "Lease", named("lease-free", spec={}))
    yield Case("scheduling.k8s.io/v1", "PriorityClass", named(f"{prefix}-high", value=1000))
    yield Case(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        named(f"{prefix}-low", value=-5, preemptionPolicy="Never"),
    )
    yield Case("node.k8s.io/v1", "RuntimeClass", named(f"{prefix}-runtime", handler="runc"))


def event_cases(namespace: str) -> Iterator[Case]:
    home = {"namespace": namespace}
    about = {**home, "kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"}

    def event(name: str, *, of: Object | None = None, **more: Any) -> Case:
        made = {"involvedObject": about if of is None else of, "reason": "Because", "type": "Normal", **more}
        return Case("v1", "Event", named(f"event-{name}", **made))

    yield event("plain", message="  it happened \n", source={"component": "c", "host": "h"}, count=3)
    yield event("bare", of=home)
    yield event("kind", of={**home, "kind": "Node"}, source={"component": "c"}, reportingComponent="other")
    new: Object = {"action": "A", "reportingComponent": "test.io/r", "reportingInstance": "r-1"}
    micro = format_micro_time(datetime.now(UTC) - timedelta(minutes=33, seconds=1.5))
    yield event("new", eventTime=micro, **new)
    series = {"count": 12, "lastObservedTime": format_micro_time(datetime.now(UTC) - timedelta(seconds=45))}
    yield event("series", eventTime=micro, series=series, **new)
    for past in (
        {"seconds": 0}, {"seconds": 118.5}, {"seconds": 121}, {"minutes": 5}, {"minutes": 9.5}, {"minutes": 11},
        {"minutes": 179.5}, {"hours": 3}, {"hours": 7.99}, {"hours": 8.5}, {"hours": 47.5}, {"hours": 48.01},
        {"days": 3.3}, {"days": 7.99}, {"days": 8.01}, {"days": 729}, {"days": 730.01}, {"days": 1000}, {"days": 2919},
        {"days": 2921}, {"days": 9000}, {"days": 120000}, {"seconds": -1}, {"seconds": -30},
    ):  # fmt: skip
        (unit, amount), *_ = past.items()
        name = f"{unit}-{amount}".replace("--", "-minus-")
        yield event(name, firstTimestamp=ago(**past), lastTimestamp=ago(**past), count=1)
    yield Case(
        "events.k8s.io/v1",
        "Event",
        named("event-other", eventTime=micro, reason="R", type="Warning", regarding=about, note="noted")
        | {"action": "A", "reportingController": "test.io/r", "reportingInstance": "r-1"},
    )
