"""A node as it is shown."""

from __future__ import annotations

import msgspec

from shoal.api.visualizer import NodeView
from shoal.visualizer.shapes.resources import ResourceStats, resource_stats
from shoal.visualizer.shapes.slots import Slot, slots


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A node's resources under the names of both generations, and its devices."""

    name: str
    status: str
    resources: ResourceStats
    """The same as `allocatable`: what the first version called it."""
    allocatable: ResourceStats
    used: ResourceStats
    gpu_slots: tuple[Slot, ...]
    gpu_model: str
    schedulable: bool


def node_shape(node: NodeView) -> Node:
    """A node as it is shown."""
    allocatable = resource_stats(node.allocatable)
    return Node(
        name=node.name,
        status="Ready" if node.ready else "NotReady",
        resources=allocatable,
        allocatable=allocatable,
        used=resource_stats(node.used),
        gpu_slots=slots(node),
        gpu_model=node.gpu_model,
        schedulable=node.schedulable,
    )
