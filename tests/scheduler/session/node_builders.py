"""Tables of nodes, and requests, for tests of the rules that look at nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.nodes import Node, Nodes
from shoal.scheduler.model.resources import Mask, ResourceNames
from shoal.scheduler.model.tasks import Request
from tests.scheduler.builders import a_model_node

NIC = "example.com/nic"
NAMES = ResourceNames([NIC])


def labelled(labels: Mapping[str, Mapping[str, str]]) -> Nodes:
    """Nodes with these labels, by name."""
    return Nodes([a_model_node(name, labels=found) for name, found in labels.items()], NAMES)


def nodes_of(*nodes: Node) -> Nodes:
    return Nodes(nodes, NAMES)


def a_request(*, cpu: float = 0, whole: int = 0, nics: float = 0, gpu: GpuRequest | None = None) -> Request:
    vector = NAMES.vector({"cpu": cpu, "gpu": whole, "pods": 1, NIC: nics})
    return Request(vector, gpu=gpu or (GpuRequest(whole=whole) if whole else NOTHING))


def names_in(nodes: Nodes, mask: Mask | None) -> set[str]:
    """The nodes of a mask, by name; all of them without one."""
    rows: Iterable[int] = range(len(nodes)) if mask is None else np.flatnonzero(mask).tolist()
    return {nodes.nodes[row].name for row in rows}
