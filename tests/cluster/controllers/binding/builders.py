"""Nodes, pods, and a whole scheduler without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.api.core import Node, Pod
from shoal.cluster.controllers.binding.candidates import HEAPS, Candidates
from shoal.cluster.controllers.binding.demand import Shapes
from shoal.cluster.controllers.binding.filters import explain
from shoal.cluster.controllers.binding.picture import Picture
from shoal.cluster.controllers.binding.waiting import Waiting

READY = {"type": "Ready", "status": "True"}


def node_manifest(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    taints: Iterable[dict[str, str]] = (),
    unschedulable: bool = False,
    ready: str = "True",
    **allocatable: str,
) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"} | {
        key.replace("gpu", "nvidia.com/gpu"): value for key, value in allocatable.items()
    }
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | (labels or {})},
        "spec": {"unschedulable": unschedulable, "taints": list(taints)},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [READY | {"status": ready}] if ready else [],
        },
    }


def pod_manifest(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    namespace: str = "default",
    requests: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": requests or {}}}
    if "gpu" in (requests or {}):
        assert requests is not None
        gpus = {"nvidia.com/gpu": requests["gpu"]}
        others = {key: value for key, value in requests.items() if key != "gpu"}
        container["resources"] = {"requests": others | gpus, "limits": gpus}
    if (port := spec.pop("host_port", None)) is not None:
        container["ports"] = [{"containerPort": 80, "hostPort": port}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container]} | spec,
    }


def a_node(name: str, **chosen: Any) -> Node:
    return msgspec.convert(node_manifest(name, **chosen), Node)


def a_pod(name: str, **chosen: Any) -> Pod:
    manifest = pod_manifest(name, **chosen)
    manifest["metadata"]["uid"] = f"uid-{name}"
    return msgspec.convert(manifest, Pod)


def away_from(key: str = "kubernetes.io/hostname", **labels: str) -> dict[str, Any]:
    return {"podAntiAffinity": _required(key, labels)}


def near_to(key: str = "kubernetes.io/hostname", **labels: str) -> dict[str, Any]:
    return {"podAffinity": _required(key, labels)}


def on_nodes(*expressions: dict[str, Any], fields: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _required(key: str, labels: dict[str, str]) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


class Scheduler:
    """Nodes, pods on them, and decisions; nothing is written anywhere."""

    def __init__(self, nodes: Iterable[Node] = (), *, heaps: int = HEAPS) -> None:
        self.picture = Picture()
        self.candidates = Candidates(self.picture, heaps=heaps)
        self.shapes = Shapes()
        self.waiting = Waiting()
        self.places: dict[str, str] = {}
        for node in nodes:
            self.picture.put_node(node)

    def place(self, pod: Pod, *, on: str = "") -> str:
        """Where a pod goes; empty where it fits nowhere."""
        load = self.shapes.load_of(pod)
        if not on:
            choice = self.candidates.choose(load)
            if choice.node is None:
                return ""
            on = choice.node.name
        self.picture.place(pod.metadata.uid, load, on)
        self.places[pod.metadata.name] = on
        return on

    def remove(self, pod: Pod) -> None:
        self.picture.remove(pod.metadata.uid)
        self.places.pop(pod.metadata.name, None)

    def why(self, pod: Pod) -> str:
        return explain(self.shapes.load_of(pod), self.picture, by_volumes=lambda state: "")
