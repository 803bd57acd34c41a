"""The nodes and what they carry, kept up to date by watch events and by our own decisions.

A decision counts at once, before the server knows of it (the pod is *assumed* to be there); the watch confirms it, or
it is given back. Whatever may make room is noted in ``improved``, a log that each reader follows at its own pace, so
that no event costs more than its own node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from shoal.api.core import Node, Taint, is_node_ready, node_condition
from shoal.cluster.controllers.binding.demand import HOSTNAME, HostPort, Load, Shape, whole_units
from shoal.cluster.controllers.binding.peers import NamespaceLabels, Neighbours, Spread
from shoal.cluster.placement import HARD_EFFECTS, NO_SCHEDULE, untolerated
from shoal.cluster.pod_resources import amounts

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect=NO_SCHEDULE)
UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect=NO_SCHEDULE)

BADNESS_BITS = 20
_SPREAD_KEPT = 256

Standing = tuple[bool, tuple[tuple[str, str, str], ...]]
"""Whether a node is closed, and its taints: what it is beside its labels, in a form that can be compared."""


class NodeState:
    """One node: what it is, what is left of it, and who is there. ``node`` is None while only its pods are known."""

    __slots__ = ("allocatable", "cpu", "free", "loads", "memory", "name", "node", "number", "ports", "standing",
                 "taints", "weight_of_cpu", "weight_of_memory")  # fmt: skip

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.node: Node | None = None
        self.taints: tuple[Taint, ...] = ()
        self.standing: Standing = (False, ())
        self.allocatable: dict[str, int] = {}
        self.free: dict[str, int] = {}
        self.cpu = self.memory = 0
        self.weight_of_cpu = self.weight_of_memory = 0.0
        self.ports: dict[HostPort, int] = {}
        self.loads: dict[str, Load] = {}

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the node; none while it is not known."""
        return self.node.metadata.labels if self.node is not None else {}

    def badness(self, cpu: int, memory: int) -> int:
        """How full the node would be with so much more: the mean share of processors and memory, as a whole number."""
        return int((self.cpu + cpu) * self.weight_of_cpu + (self.memory + memory) * self.weight_of_memory)

    def become(self, node: Node) -> None:
        """Takes a new state of the node itself; what it carries stays."""
        self.node = node
        taints = [taint for taint in node.spec.taints if taint.effect in HARD_EFFECTS]
        if not is_node_ready(node):
            # The node lifecycle controller says so by a taint in a moment; nothing must come here until it does.
            ready = node_condition(node, "Ready")
            implied = UNREACHABLE if ready is not None and ready.status == "Unknown" else NOT_READY
            if not any((taint.key, taint.effect) == (implied.key, implied.effect) for taint in taints):
                taints.append(implied)
        self.taints = tuple(taints)
        self.standing = (node.spec.unschedulable, tuple((taint.key, taint.value, taint.effect) for taint in taints))
        allocatable = node.status.allocatable or node.status.capacity
        new = {name: whole_units(name, amount) for name, amount in amounts(allocatable).items()}
        for name in self.free.keys() | new.keys():
            self.free[name] = self.free.get(name, 0) + new.get(name, 0) - self.allocatable.get(name, 0)
        self.allocatable = new
        scale = 1 << (BADNESS_BITS - 1)
        self.weight_of_cpu = scale / new["cpu"] if new.get("cpu") else 0.0
        self.weight_of_memory = scale / new["memory"] if new.get("memory") else 0.0

    def carry(self, load: Load, by: int) -> None:
        """Takes a load on (1) or off (-1)."""
        shape, free = load.shape, self.free
        for name, amount in shape.requests.items():
            free[name] = free.get(name, 0) - by * amount
        self.cpu += by * shape.cpu
        self.memory += by * shape.memory
        for port in shape.ports:
            self.ports[port] = self.ports.get(port, 0) + by
            if not self.ports[port]:
                del self.ports[port]


class Picture:
    """All nodes and all pods that are on them or on their way."""

    def __init__(self, namespace_labels: NamespaceLabels = lambda namespace: {}) -> None:
        self.nodes: list[NodeState] = []
        """By number; where one went there is an empty place, until another takes it."""
        self.count = 0
        """How many nodes there are."""
        self.nodes_version = 0
        """Rises with every change of a node itself."""
        self.version = 0
        """Rises with every change at all."""
        self.improved = Log()
        self.neighbours = Neighbours(namespace_labels)
        self._vacant: list[int] = []
        self._spread_over: dict[tuple[Shape, tuple[Spread, ...], Spread], tuple[int, Collection[str]]] = {}
        self._by_name: dict[str, NodeState] = {}
        self._by_hostname: dict[str, set[str]] = {}
        self._place: dict[str, NodeState] = {}
        """Where each pod is, by its uid."""

    def node(self, name: str) -> NodeState | None:
        """The node of that name, if there is one."""
        state = self._by_name.get(name)
        return state if state is not None and state.node is not None else None

    def nodes_of_host(self, hostname: str) -> set[str]:
        """The nodes that carry this host name as their label."""
        return self._by_hostname.get(hostname, set())

    def load_of(self, uid: str) -> tuple[Load, str] | None:
        """A pod that is placed, and the name of its node."""
        state = self._place.get(uid)
        return (state.loads[uid], state.name) if state is not None else None

    def put_node(self, node: Node) -> bool:
        """A node came or changed; False where nothing about it matters here, such as a heartbeat."""
        state = self._state(node.metadata.name)
        before = state.node
        if before is not None and _same(before, node):
            state.node = node
            return False
        if before is None:
            self.count += 1
        relabelled = before is None or before.metadata.labels != node.metadata.labels
        if relabelled:
            self._count_all(state, -1)
        state.become(node)
        if relabelled:
            self._count_all(state, 1)
        self._changed(state, is_node=True)
        return True

    def remove_node(self, name: str) -> None:
        """A node went; the pods that are still said to be there are kept for when it comes back."""
        state = self.node(name)
        if state is None:
            return
        self._count_all(state, -1)
        state.node = None
        for resource, amount in state.allocatable.items():
            state.free[resource] -= amount
        state.allocatable = {}
        self.count -= 1
        self.nodes_version += 1
        self.version += 1
        self._vacate(state)

    def place(self, uid: str, load: Load, node: str) -> bool:
        """A pod is on a node, or is taken to be; False where that was known."""
        held = self._place.get(uid)
        if held is not None:
            if held.name == node and held.loads[uid].equals(load):
                return False
            self.remove(uid)
        state = self._state(node)
        self._place[uid] = state
        state.loads[uid] = load
        state.carry(load, 1)
        self.version += 1
        if state.node is not None:
            self.neighbours.arrive(load, state.labels)
        return True

    def remove(self, uid: str) -> NodeState | None:
        """A pod has left, or was never there after all; gives the node that it leaves."""
        state = self._place.pop(uid, None)
        if state is None:
            return None
        load = state.loads.pop(uid)
        state.carry(load, -1)
        if state.node is not None:
            self.neighbours.arrive(load, state.labels, by=-1)
        self._changed(state)
        self._vacate(state)
        return state

    def placed(self) -> list[tuple[Load, Mapping[str, str]]]:
        """Every pod that is on a node, with the labels of that node."""
        return [(load, state.labels) for state in self.nodes if state.node is not None for load in state.loads.values()]

    def reason_by_peers(self, load: Load) -> Callable[[Mapping[str, str]], str]:
        """What a pod's neighbours have against a node, by its labels; empty where nothing."""
        return self.neighbours.judge(load, self.placed, lambda spread: self._domains(load, spread))

    def _domains(self, load: Load, spread: Spread) -> Collection[str]:
        """The places over which a pod is to be spread: those of nodes that it may be on, if its own wishes count."""
        known = self._spread_over.get((load.shape, load.peers.spread, spread))
        if known is not None and known[0] == self.nodes_version:
            return known[1]
        keys = [one.term.topology_key for one in load.peers.spread]
        shape = load.shape
        found = {
            node.metadata.labels[spread.term.topology_key]
            for state in self.nodes
            if (node := state.node) is not None
            and all(key in node.metadata.labels for key in keys)
            and (not spread.honors_affinity or shape.requirements.matches(node))
            and (not spread.honors_taints or not untolerated(state.taints, shape.tolerations))
        }
        if len(self._spread_over) >= _SPREAD_KEPT:
            self._spread_over.clear()
        self._spread_over[load.shape, load.peers.spread, spread] = (self.nodes_version, found)
        return found

    def _state(self, name: str) -> NodeState:
        state = self._by_name.get(name)
        if state is None:
            number = self._vacant.pop() if self._vacant else len(self.nodes)
            state = self._by_name[name] = NodeState(name, number)
            if number == len(self.nodes):
                self.nodes.append(state)
            else:
                self.nodes[number] = state
        return state

    def _vacate(self, state: NodeState) -> None:
        """Forgets a node that went, once none of its pods is left."""
        if state.node is None and not state.loads:
            del self._by_name[state.name]
            self._vacant.append(state.number)

    def _count_all(self, state: NodeState, by: int) -> None:
        """Counts a node's pods and its host name, before (-1) and after (1) its labels change."""
        if state.node is None:
            return
        for load in state.loads.values():
            self.neighbours.arrive(load, state.labels, by=by)
        hostname = state.labels.get(HOSTNAME)
        if hostname is not None:
            names = self._by_hostname.setdefault(hostname, set())
            (names.add if by > 0 else names.discard)(state.name)
            if not names:
                del self._by_hostname[hostname]

    def _changed(self, state: NodeState, *, is_node: bool = False) -> None:
        self.version += 1
        self.nodes_version += is_node
        self.improved.note(state.number, limit=4 * len(self.nodes) + 1024)


class Log:
    """Numbers in the order they were noted, for readers who each remember how far they have read."""

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._start = 0

    @property
    def end(self) -> int:
        """How far one who has read everything has read."""
        return self._start + len(self._entries)

    def note(self, number: int, *, limit: int) -> None:
        """Adds a number; more than ``limit`` are not kept."""
        self._entries.append(number)
        if len(self._entries) > limit:
            dropped = len(self._entries) // 2
            del self._entries[:dropped]
            self._start += dropped

    def since(self, position: int) -> set[int] | None:
        """The numbers noted since then; None where some are not kept any more."""
        if position < self._start:
            return None
        return set(self._entries[position - self._start :])


def _same(before: Node, after: Node) -> bool:
    """Whether two states of a node are the same to one who places pods."""
    return (
        before.spec == after.spec
        and before.metadata.labels == after.metadata.labels
        and before.status.allocatable == after.status.allocatable
        and before.status.capacity == after.status.capacity
        and _readiness(before) == _readiness(after)
    )


def _readiness(node: Node) -> str:
    ready = node_condition(node, "Ready")
    return ready.status if ready is not None else ""
