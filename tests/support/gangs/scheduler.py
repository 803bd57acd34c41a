"""A small gang scheduler for tests: it binds a PodGang as a whole or not at all.

``placements`` is the whole of its judgement, a pure function. It knows what nodes have room for, node selectors,
affinity, taints and cordons, and the topology that a PodGang requires. It is slow and forgets nothing.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from shoal.api.core import NODES, PODS, Node, Pod, is_active, is_finished, is_node_ready, pod_condition
from shoal.api.grove import names
from shoal.api.meta import parse_quantity
from shoal.api.scheduler_grove_io import POD_GANGS, GangTopologyConstraint, PodGang
from shoal.cluster.placement import NodeRequirements, untolerated
from shoal.cluster.pod_resources import pod_requests
from shoal.kube import ApiError, Manager, Transport, running

Placement = tuple[Pod, str]
"""A pod, and the node that it gets."""


@dataclass
class Room:
    """What is left of the nodes."""

    nodes: Mapping[str, Node]
    free: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node], pods: Iterable[Pod], assumed: Mapping[str, str]) -> Room:
        """The room that the pods on them leave."""
        known = {node.metadata.name: node for node in nodes}
        room = cls(known)
        for name, node in known.items():
            room.free[name] = {key: parse_quantity(amount).nano for key, amount in node.status.allocatable.items()}
        for pod in pods:
            if (node_name := node_of(pod, assumed)) in known and not is_finished(pod):
                room.take(pod, node_name)
        return room

    def take(self, pod: Pod, node: str) -> None:
        """Puts a pod on a node."""
        free = self.free[node]
        for key, amount in _asked(pod).items():
            free[key] = free.get(key, 0) - amount

    def copy(self) -> Room:
        """The same room, to try something in."""
        return Room(self.nodes, {name: dict(free) for name, free in self.free.items()})

    def fitting(self, pod: Pod, labels: Mapping[str, str]) -> str | None:
        """The fullest node with these labels that will have a pod."""
        asked = _asked(pod)
        requirements = NodeRequirements.of(pod.spec.node_selector, pod.spec.affinity)
        found = [
            name
            for name, node in self.nodes.items()
            if labels.items() <= node.metadata.labels.items()
            and _is_open(node, pod)
            and requirements.matches(node)
            and all(self.free[name].get(key, 0) >= amount for key, amount in asked.items())
        ]
        return min(found, key=lambda name: (self.free[name].get("cpu", 0), name), default=None)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Some podgroups of a gang whose pods must all be on nodes with one value of a label."""

    groups: frozenset[str]
    key: str


def placements(
    gangs: Iterable[PodGang], pods: Sequence[Pod], nodes: Iterable[Node], assumed: Mapping[str, str] | None = None
) -> list[Placement]:
    """Where pods go now: base gangs first, each with enough pods of all its podgroups at once, or with none."""
    known = assumed or {}
    room = Room.of(nodes, pods, known)
    members: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        members[pod.metadata.namespace, pod.metadata.labels.get(names.GANG_LABEL, "")].append(pod)
    found: list[Placement] = []
    for gang in sorted(gangs, key=_turn):
        mine = members[gang.metadata.namespace, gang.metadata.name]
        found += _placed(gang, mine, room, known)
    return found


def _placed(gang: PodGang, pods: Sequence[Pod], room: Room, assumed: Mapping[str, str]) -> list[Placement]:
    """Where the pods of a gang go that wait for a node; what is chosen is taken from the room."""
    needed: list[Pod] = []
    further: list[Pod] = []
    on_nodes: list[Placement] = []
    for group in gang.spec.pod_groups:
        mine = sorted((pod for pod in pods if _group(pod) == group.name), key=_order)
        bound = [(pod, node) for pod in mine if is_active(pod) and (node := node_of(pod, assumed))]
        waiting = [
            pod for pod in mine if is_active(pod) and not node_of(pod, assumed) and not pod.spec.scheduling_gates
        ]
        missing = max(0, group.min_replicas - len(bound))
        if len(waiting) < missing:
            return []
        on_nodes += bound
        needed += waiting[:missing]
        further += waiting[missing:]
    for values in _choices(list(_scopes(gang)), on_nodes, room):
        attempt = room.copy()
        chosen = _put_all(needed, values, attempt)
        if len(chosen) == len(needed):
            chosen += _put_all(further, values, attempt)
            room.free = attempt.free
            return chosen
    return []


def _put_all(pods: Iterable[Pod], values: Mapping[Scope, str], room: Room) -> list[Placement]:
    """Puts those pods on nodes that fit on one."""
    chosen = []
    for pod in pods:
        labels = {scope.key: value for scope, value in values.items() if _group(pod) in scope.groups}
        node = room.fitting(pod, labels)
        if node is not None:
            room.take(pod, node)
            chosen.append((pod, node))
    return chosen


def _choices(scopes: Sequence[Scope], on_nodes: Sequence[Placement], room: Room) -> Iterator[Mapping[Scope, str]]:
    """The values of labels to try for each scope: that of the pods which are there, or any."""
    options = []
    for scope in scopes:
        labels = {
            room.nodes[node].metadata.labels.get(scope.key) for pod, node in on_nodes if _group(pod) in scope.groups
        }
        possible = labels or {node.metadata.labels.get(scope.key) for node in room.nodes.values()}
        options.append(sorted(value for value in possible if value is not None))
    for values in itertools.product(*options):
        yield dict(zip(scopes, values, strict=True))


def _scopes(gang: PodGang) -> Iterator[Scope]:
    everything = frozenset(group.name for group in gang.spec.pod_groups)
    constrained: list[tuple[frozenset[str], GangTopologyConstraint | None]] = [
        (everything, gang.spec.topology_constraint)
    ]
    constrained += [
        (frozenset(config.pod_group_names), config.topology_constraint)
        for config in gang.spec.topology_constraint_group_configs
    ]
    constrained += [(frozenset({group.name}), group.topology_constraint) for group in gang.spec.pod_groups]
    for groups, constraint in constrained:
        if constraint is not None and constraint.pack_constraint is not None and constraint.pack_constraint.required:
            yield Scope(groups=groups, key=constraint.pack_constraint.required)


class GangScheduler:
    """Binds pods through the API, over and over, as things change."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._pods = manager.cache.informer(PODS)
        self._nodes = manager.cache.informer(NODES)
        self._gangs = manager.cache.informer(POD_GANGS)
        self._changed = asyncio.Event()
        self._assumed: dict[str, str] = {}
        for informer in (self._pods, self._nodes, self._gangs):
            informer.subscribe(lambda _change: self._changed.set())
        manager.add_leader_task(self._run)

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            pods = self._pods.items()
            unseen = {pod.metadata.uid for pod in pods if not pod.spec.node_name}
            self._assumed = {uid: node for uid, node in self._assumed.items() if uid in unseen}
            chosen = placements(self._gangs.items(), pods, self._nodes.items(), self._assumed)
            await asyncio.gather(*(self._bind(pod, node) for pod, node in chosen))
            placed = {pod.metadata.uid for pod, _ in chosen}
            await asyncio.gather(*(self._tell(pod) for pod in pods if pod.metadata.uid not in placed))
            await self._changed.wait()

    async def _bind(self, pod: Pod, node: str) -> None:
        metadata = pod.metadata
        with suppress(ApiError):  # it was deleted a moment ago
            await self._client.bind(PODS, metadata.name, metadata.namespace, node=node, uid=metadata.uid)
            self._assumed[metadata.uid] = node

    async def _tell(self, pod: Pod) -> None:
        """Says of a pod that may be scheduled and fits nowhere that it waits, as schedulers do."""
        condition = pod_condition(pod, "PodScheduled")
        is_told = condition is not None and condition.reason == "Unschedulable"
        if is_told or pod.spec.scheduling_gates or not is_active(pod) or node_of(pod, self._assumed):
            return
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        }
        with suppress(ApiError):
            await self._client.strategic_patch(
                PODS, pod.metadata.name, patch, pod.metadata.namespace, subresource="status"
            )


@asynccontextmanager
async def gang_scheduling(transport: Transport) -> AsyncIterator[None]:
    """A scheduler at work on all namespaces, for the length of a block."""
    manager = Manager(transport, name="gang-scheduler")
    GangScheduler(manager)
    async with running(manager):
        yield


def node_of(pod: Pod, assumed: Mapping[str, str]) -> str:
    """The node that a pod has or is about to have; empty where it has none."""
    return pod.spec.node_name or assumed.get(pod.metadata.uid, "")


def _asked(pod: Pod) -> dict[str, int]:
    """What a pod asks for, in billionths; a place for itself as well."""
    return {**{key: amount.nano for key, amount in pod_requests(pod).items() if amount.nano}, "pods": 10**9}


def _is_open(node: Node, pod: Pod) -> bool:
    is_well = is_node_ready(node) and not node.spec.unschedulable and not node.metadata.is_deleting
    return is_well and not untolerated(node.spec.taints, pod.spec.tolerations)


def _group(pod: Pod) -> str:
    return pod.metadata.labels.get(names.CLIQUE_LABEL, "")


def _order(pod: Pod) -> tuple[int, str]:
    return int(pod.metadata.labels.get(names.POD_INDEX_LABEL, "0")), pod.metadata.name


def _turn(gang: PodGang) -> tuple[bool, float, str]:
    created = gang.metadata.creation_timestamp
    is_scaled = names.SCALING_GROUP_LABEL in gang.metadata.labels
    return is_scaled, created.timestamp() if created is not None else 0.0, gang.metadata.name
