"""Small nodes and tasks for tests of the rules that look at nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.nodes import Node, Nodes
from shoal.scheduler.model.resources import Mask, ResourceNames
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request, Task

NAMES = ResourceNames(["example.com/nic"])


def a_node(name: str, *, cpu: float = 8000, gpus: float = 8, nics: float = 0, pods: float = 100, **more: Any) -> Node:
    allocatable = NAMES.vector({"cpu": cpu, "memory": 1e9, "gpu": gpus, "pods": pods, "example.com/nic": nics})
    return Node(name=name, allocatable=allocatable, **more)


def labelled(labels: Mapping[str, Mapping[str, str]]) -> Nodes:
    """Nodes with these labels, by name."""
    return Nodes([a_node(name, labels=found) for name, found in labels.items()], NAMES)


def nodes_of(*nodes: Node) -> Nodes:
    return Nodes(nodes, NAMES)


def a_request(*, cpu: float = 0, whole: int = 0, nics: float = 0, gpu: GpuRequest | None = None) -> Request:
    vector = NAMES.vector({"cpu": cpu, "gpu": whole, "pods": 1, "example.com/nic": nics})
    return Request(vector, gpu=gpu or (GpuRequest(whole=whole) if whole else NOTHING))


def a_task(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    constraints: Constraints = ANYWHERE,
    request: Request | None = None,
) -> Task:
    return Task(
        uid=name,
        name=name,
        namespace=namespace,
        request=request or a_request(),
        labels=labels or {},
        constraints=constraints,
    )


def names_in(nodes: Nodes, mask: Mask | None) -> set[str]:
    """The nodes of a mask, by name; all of them without one."""
    rows: Iterable[int] = range(len(nodes)) if mask is None else np.flatnonzero(mask).tolist()
    return {nodes.nodes[row].name for row in rows}
