"""Nodes, queues, topologies and gangs as the model has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from shoal.api import kai_names as names
from shoal.api import scheduling_run_ai as wire
from shoal.api.core import nodes as wire_nodes
from shoal.api.kai_scheduler import Topology as WireTopology
from shoal.api.meta.duration import InvalidDuration, parse_duration
from shoal.api.meta.time import InvalidTime, parse_time
from shoal.scheduler.gpu_memory import gpu_memory_of
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import DEFAULT_POD_SET, Job, PodSet, SubGroup, TopologyWish
from shoal.scheduler.model.nodes import UNKNOWN_GPU_MEMORY, Node
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.resource_lists import ONE, amounts_of
from shoal.scheduler.watching.kinds import seconds
from shoal.scheduler.watching.needs import NO_GEAR, Gear

_MEGA: Final = 1e6
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
"""Conditions of a node that must be False for it to take pods."""
Levels = Mapping[str, Mapping[str, str]]
"""What each level of each topology may be called: its label by alias and by itself."""


def node_of(
    node: wire_nodes.Node, resources: ResourceNames, *, mig_label: str = names.MIG_WORKER, gear: Gear = NO_GEAR
) -> Node:
    """A node, without what is on it. ``gear``: what it has by the word of other objects."""
    labels = node.metadata.labels
    amounts: dict[str, float] = dict(gear.attachable)
    gpus = float(gear.claimed_gpus)
    for name, nano in amounts_of(node.status.allocatable).items():
        if name == "cpu":
            amounts["cpu"] = nano / ONE * 1000
        elif name in names.GPUS:
            gpus += nano / ONE
        else:
            amounts[name] = nano / ONE
    memory = gpu_memory_of(labels)
    has_instances = any(name.startswith(names.MIG_PREFIX) for name in amounts)
    has_mig = labels[mig_label] == "true" if mig_label in labels else has_instances
    strategy = labels.get(names.NODE_MIG_STRATEGY, "") if has_mig else ""
    return Node(
        name=node.metadata.name,
        allocatable=resources.vector({**amounts, "gpu": gpus}),
        labels=labels,
        taints=tuple(msgspec.to_builtins(taint) for taint in node.spec.taints),
        is_ready=any(one.type == "Ready" and one.status == "True" for one in node.status.conditions),
        is_unschedulable=node.spec.unschedulable,
        pressures=tuple(one.type for one in node.status.conditions if one.type in _PRESSURES and one.status != "False"),
        gpu_memory=UNKNOWN_GPU_MEMORY if memory is None else memory,
        is_gpu_memory_known=memory is not None,
        gpu_count=_count(labels.get(names.NODE_GPU_COUNT), int(gpus)),
        has_claimed_gpus=gear.claimed_gpus > 0,
        has_mig=has_mig,
        mig_strategy=strategy if strategy in ("single", "mixed") else "",
    )


def queue_of(queue: wire.Queue) -> Queue:
    """A queue. What its units mean is said here and nowhere else: CPU in thousandths, memory in millions of bytes."""
    spec, resources = queue.spec, queue.spec.resources or wire.QueueResources()
    parts = resources.cpu, resources.memory, resources.gpu
    quota = [_bound(part.quota) for part in parts]
    limit = [_bound(part.limit) for part in parts]
    weight = [float(part.over_quota_weight or 0) for part in parts]
    return Queue(
        name=queue.metadata.name,
        uid=queue.metadata.uid,
        parent=spec.parent_queue,
        title=spec.display_name,
        priority=names.DEFAULT_QUEUE_PRIORITY if spec.priority is None else spec.priority,
        created=seconds(queue.metadata.creation_timestamp),
        quota=Amounts(quota[0], quota[1] * _MEGA, quota[2]),
        limit=Amounts(limit[0], limit[1] * _MEGA, limit[2]),
        weight=Amounts(*weight),
        preempt_min_runtime=length_of(spec.preempt_min_runtime),
        reclaim_min_runtime=length_of(spec.reclaim_min_runtime),
    )


def topology_of(topology: WireTopology) -> Topology:
    """A topology, by the labels of its levels."""
    return Topology(topology.metadata.name, tuple(level.node_label for level in topology.spec.levels))


def job_of(group: wire.PodGroup, priority: Callable[[str], int], levels: Levels) -> Job:
    """A gang, without its pods."""
    spec, annotations = group.spec, group.metadata.annotations
    value = priority(spec.priority_class_name)
    is_preemptible = value < names.NON_PREEMPTIBLE_FROM
    if spec.preemptibility:
        is_preemptible = spec.preemptibility == "preemptible"
    grace = length_of(spec.staleness_grace_period)
    return Job(
        uid=group.metadata.uid,
        name=group.metadata.name,
        namespace=group.metadata.namespace,
        queue=spec.queue,
        priority=value,
        is_preemptible=is_preemptible,
        created=seconds(group.metadata.creation_timestamp),
        root=_root(spec, levels),
        preemption_delay=length_of(spec.preemption_delay) or 0.0,
        staleness_grace=grace,
        last_start=moment_of(annotations.get(names.LAST_START)),
        last_eviction=moment_of(annotations.get(names.LAST_EVICTION)),
        stale_since=moment_of(annotations.get(names.STALE_SINCE)),
        marks_unschedulable=spec.mark_unschedulable is not False,
    )


def length_of(text: str | None) -> float | None:
    """A length of time in seconds; None where nothing is said, or nothing that can be understood."""
    if not text:
        return None
    try:
        return parse_duration(text).seconds
    except InvalidDuration:
        return None


def moment_of(text: str | None) -> float | None:
    """A moment that is written down; None where none is."""
    if not text:
        return None
    try:
        return _timestamp(parse_time(text))
    except InvalidTime:
        return None


def _timestamp(moment: datetime) -> float:
    return moment.timestamp()


def _bound(written: float | None) -> float:
    amount = 0.0 if written is None else float(written)
    return UNLIMITED if amount < 0 else amount


def _count(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _root(spec: wire.PodGroupSpec, levels: Levels) -> SubGroup:
    wish = _wish(spec.topology_constraint, levels)
    if not spec.sub_groups:
        minimum = 1 if spec.min_member is None else spec.min_member
        return SubGroup(name="", topology=wish, pod_sets=[PodSet(name=DEFAULT_POD_SET, min_member=minimum)])
    root = SubGroup(name="", min_children=spec.min_sub_group, topology=wish)
    _grow(root, "", spec.sub_groups, levels, seen=set())
    return root


def _grow(place: SubGroup, name: str, parts: Sequence[wire.SubGroup], levels: Levels, *, seen: set[str]) -> None:
    inner = {part.parent for part in parts}
    for part in parts:
        if part.parent != name or part.name in seen:
            continue
        seen.add(part.name)
        wish = _wish(part.topology_constraint, levels)
        if part.name in inner:
            child = SubGroup(name=part.name, min_children=part.min_sub_group, topology=wish)
            place.groups.append(child)
            _grow(child, part.name, parts, levels, seen=seen)
        else:
            minimum = 1 if part.min_member is None else part.min_member
            place.pod_sets.append(PodSet(name=part.name, min_member=minimum, topology=wish))


def _wish(constraint: wire.TopologyConstraint | None, levels: Levels) -> TopologyWish | None:
    if constraint is None or not (constraint.required_topology_level or constraint.preferred_topology_level):
        return None
    known = levels.get(constraint.topology, {})
    wish = TopologyWish(constraint.topology, constraint.required_topology_level, constraint.preferred_topology_level)
    return replace(
        wish, required=known.get(wish.required, wish.required), preferred=known.get(wish.preferred, wish.preferred)
    )
