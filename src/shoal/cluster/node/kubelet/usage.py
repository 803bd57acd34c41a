"""Usage as agents tell it: the text of /metrics/resource, and the document of /stats/summary."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from shoal.api.meta import format_time
from shoal.cluster.node.kubelet.answers import ContainerUsage, NodeUsage

_HEADS = (
    ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds"),
    ("container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes"),
    ("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds"),
    ("node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds"),
    ("node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes"),
)


def exposition(usage: NodeUsage, *, now: float) -> str:
    """The Prometheus text of a node and its containers."""
    stamp = int(now * 1000)
    lines: dict[str, list[str]] = {name: [] for name, _, _ in _HEADS}
    for one in usage.containers:
        labels = f'{{container="{one.container}",namespace="{one.namespace}",pod="{one.pod}"}}'
        lines["container_cpu_usage_seconds_total"].append(f"{labels} {one.cpu_seconds:.6f} {stamp}")
        lines["container_memory_working_set_bytes"].append(f"{labels} {one.memory_bytes} {stamp}")
        lines["container_start_time_seconds"].append(f"{labels} {one.started:.3f}")
    lines["node_cpu_usage_seconds_total"].append(f" {usage.cpu_seconds:.6f} {stamp}")
    lines["node_memory_working_set_bytes"].append(f" {usage.memory_bytes} {stamp}")
    text: list[str] = []
    for name, kind, words in _HEADS:
        text += [f"# HELP {name} [STABLE] {words}", f"# TYPE {name} {kind}"]
        text += [f"{name}{line}" for line in lines[name]]
    return "\n".join(text) + "\n"


def summary(usage: NodeUsage, *, now: datetime) -> dict[str, Any]:
    """The stats of a node and its pods; ``usage.containers`` are in the order of their pods."""
    moment = format_time(now)
    groups = groupby(usage.containers, key=lambda one: (one.namespace, one.pod, one.uid))
    node = {
        "nodeName": usage.node,
        "startTime": _time(usage.started),
        "cpu": _cpu(moment, usage.cpu_cores, usage.cpu_seconds),
        "memory": _memory(moment, usage.memory_bytes)
        | {"availableBytes": max(0, usage.memory_capacity - usage.memory_bytes)},
    }
    return {"node": node, "pods": [_pod(moment, *identity, list(members)) for identity, members in groups]}


def _pod(moment: str, namespace: str, name: str, uid: str, containers: list[ContainerUsage]) -> dict[str, Any]:
    return {
        "podRef": {"name": name, "namespace": namespace, "uid": uid},
        "startTime": _time(min(one.started for one in containers)),
        "containers": [
            {
                "name": one.container,
                "startTime": _time(one.started),
                "cpu": _cpu(moment, one.cpu_cores, one.cpu_seconds),
                "memory": _memory(moment, one.memory_bytes),
            }
            for one in containers
        ],
        "cpu": _cpu(moment, _sum(one.cpu_cores for one in containers), _sum(one.cpu_seconds for one in containers)),
        "memory": _memory(moment, sum(one.memory_bytes for one in containers)),
    }


def _sum(values: Iterable[float]) -> float:
    return sum(values, 0.0)


def _cpu(moment: str, cores: float, seconds: float) -> dict[str, Any]:
    return {"time": moment, "usageNanoCores": int(cores * 1e9), "usageCoreNanoSeconds": int(seconds * 1e9)}


def _memory(moment: str, size: int) -> dict[str, Any]:
    return {"time": moment, "usageBytes": size, "workingSetBytes": size, "rssBytes": size}


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
