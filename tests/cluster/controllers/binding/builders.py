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
from tests.support.builders.nodes import node_manifest
from tests.support.builders.pods import pod_manifest

GPU = "nvidia.com/gpu"


def worker_manifest(name: str, *, unschedulable: bool = False, ready: str = "True", **given: Any) -> dict[str, Any]:
    """A node; ``cpu``, ``memory``, ``pods`` and ``gpu`` are what it has to give."""
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    amounts |= {key: given.pop(key) for key in amounts if key in given}
    gpus = int(given.pop("gpu", 0))
    return node_manifest(name, allocatable=amounts, gpus=gpus, cordoned=unschedulable, ready=ready or None, **given)


def pending_manifest(
    name: str, *, requests: dict[str, str] | None = None, host_port: int | None = None, **given: Any
) -> dict[str, Any]:
    """A pod that waits for a node; what it asks for of ``gpu`` is its limit too."""
    asked = dict(requests or {})
    gpus = {GPU: asked.pop("gpu")} if "gpu" in asked else {}
    ports = [] if host_port is None else [{"containerPort": 80, "hostPort": host_port}]
    main = {"name": "main", "ports": ports}
    return pod_manifest(
        name, containers=[main], requests=asked | gpus, limits=gpus, **{"namespace": "default", **given}
    )


def a_worker(name: str, **chosen: Any) -> Node:
    return msgspec.convert(worker_manifest(name, **chosen), Node)


def a_pending_pod(name: str, **chosen: Any) -> Pod:
    return msgspec.convert(pending_manifest(name, uid=f"uid-{name}", **chosen), Pod)


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
