"""Keeps what is said of a node, its conditions, taints and its pods' readiness, true when the node itself is silent."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from shoal.api.coordination import LEASES, NODE_LEASE_NAMESPACE
from shoal.api.core import NODES, PODS, Node, Pod, PodCondition, is_ready, node_condition
from shoal.api.meta import now
from shoal.cluster.controllers.node_lifecycle.conditions import READY, UNKNOWN, conditions_of_silence
from shoal.cluster.controllers.node_lifecycle.signs_of_life import SignsOfLife
from shoal.cluster.controllers.node_lifecycle.taints import is_driving_away, plain, reason_to_drive_away, wanted_taints
from shoal.cluster.controllers.node_lifecycle.zones import Outlook, Zones
from shoal.cluster.controllers.pod_conditions import status_patch
from shoal.cluster.indexes import BY_NODE, all_pods
from shoal.kube import About, Change, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import field_changed

FIELD_MANAGER = "node-controller"

MOST_PAUSES = 5
"""So often is waited for the news to end: where nodes come and go all the time it never does."""

_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}
"""Labels that older selectors still ask for under another name."""


class NodeLifecycle:
    """Finds silent nodes, says so, and taints those that cannot run pods."""

    def __init__(self, manager: Manager, signs: SignsOfLife, zones: Zones, *, settle: float) -> None:
        self._client = manager.client
        self._events = manager.events
        self._writer = manager.writer(FIELD_MANAGER)
        self._signs = signs
        self._zones = zones
        self._settle = settle
        self._news = asyncio.Event()
        self._nodes = manager.cache.informer(NODES)
        self._pods = all_pods(manager)
        self._leases = manager.cache.informer(LEASES, namespace=NODE_LEASE_NAMESPACE)
        self._nodes.subscribe(self._node_changed)
        self._leases.subscribe(signs.lease_changed)
        self._by_lease = Controller(
            "node-lease", LEASES, self.confirm_lapse, when=lambda change: False, namespace=NODE_LEASE_NAMESPACE
        )
        self._by_node = Controller(
            "node-lifecycle",
            NODES,
            self.reconcile,
            when=field_changed(_what_matters),
            watches=[
                Watch(resource=PODS, keys=self._silent_node_of, when=field_changed(lambda pod: pod.spec.node_name))
            ],
        )
        manager.add(self._by_lease)
        manager.add(self._by_node)
        manager.add_leader_task(self._watch_leases)
        manager.add_leader_task(self._give_turns)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes what is written of one node true."""
        node = self._nodes.store.get(key)
        if node is None:
            return None
        silent_in = self._signs.silent_in(key.name)
        ready = node_condition(node, READY)
        if silent_in <= 0 and (ready is None or ready.status != UNKNOWN):
            await self._say_silent(node)
            return None  # our own change brings us back
        if ready is not None and ready.status == UNKNOWN:
            await asyncio.gather(*(self._say_not_ready(pod) for pod in self._pods.find(BY_NODE, key.name)))
        await self._taint_and_label(node)
        if silent_in <= 0 or self._signs.is_vouched_for(key.name):
            return None
        return Requeue(after=silent_in)

    async def confirm_lapse(self, key: Key) -> None:
        """Asks the server about a lease that seems to have run out before its nodes are given up.

        What we see may be late: our own silence must not be taken for theirs.
        """
        try:
            lease = await self._client.get(LEASES, key.name, key.namespace)
        except NotFound:
            self._signs.lease_gone(key.name)
        else:
            if self._signs.lease_seen(lease):
                return
        for name in self._signs.vouched_by(key.name):
            self._by_node.enqueue(Key("", name))

    async def _say_silent(self, node: Node) -> None:
        ready = node_condition(node, READY)
        changed = await self._writer.patch_status(
            NODES,
            node,
            before={"conditions": node.status.conditions},
            after={"conditions": conditions_of_silence(node, now())},
        )
        if changed and ready is not None and ready.status == "True":
            name = node.metadata.name
            self._events.normal(About.of(NODES, node), "NodeNotReady", f"Node {name} status is now: NodeNotReady")

    async def _say_not_ready(self, pod: Pod) -> None:
        if not is_ready(pod):
            return
        condition = PodCondition(type=READY, status="False", last_transition_time=now())
        metadata = pod.metadata
        try:
            await self._client.strategic_patch(
                PODS, metadata.name, status_patch(pod, condition), metadata.namespace, subresource="status",
                field_manager=FIELD_MANAGER,
            )  # fmt: skip
        except NotFound:
            return
        self._events.warning(About.of(PODS, pod), "NodeNotReady", "Node is not ready")

    async def _taint_and_label(self, node: Node) -> None:
        patch: dict[str, Any] = {}
        wanted = wanted_taints(node, drives_away=self._is_to_lose_pods(node), now=now())
        if wanted != node.spec.taints:
            patch["spec"] = {"taints": plain(wanted) or None}
        if labels := _missing_labels(node):
            patch["metadata"] = {"labels": labels}
        if patch:
            metadata = node.metadata
            patch.setdefault("metadata", {})["resourceVersion"] = metadata.resource_version
            await self._client.merge_patch(NODES, metadata.name, patch, field_manager=FIELD_MANAGER)

    def _is_to_lose_pods(self, node: Node) -> bool:
        if reason_to_drive_away(node) is None or self._zones.all_lost:
            self._zones.leave_line(node.metadata.name)
            return False
        if is_driving_away(node):
            # Its turn has been; which of the two taints it has follows its condition at once.
            self._zones.leave_line(node.metadata.name)
            return True
        has_turn = self._zones.may_lose_pods(node)
        if not has_turn:
            self._news.set()
        return has_turn

    def _judge_zones(self) -> None:
        outlook = self._zones.judge()
        if outlook is Outlook.AS_BEFORE:
            return
        if outlook is Outlook.RECOVERING:
            self._signs.give_all_time()
        for node in self._nodes.items():
            if reason_to_drive_away(node) is not None:
                self._by_node.enqueue(Key("", node.metadata.name))

    def _node_changed(self, change: Change[Node]) -> None:
        self._signs.node_changed(change)
        if self._zones.node_changed(change):
            self._news.set()
        if change.is_resync or (change.before is not None and change.after is not None):
            return
        node, name = change.latest, change.latest.metadata.name
        if change.after is not None:
            message = f"Node {name} event: Registered Node {name} in Controller"
            self._events.normal(About.of(NODES, node), "RegisteredNode", message)
        else:
            message = f"Node {name} event: Removing Node {name} from Controller"
            self._events.normal(About.of(NODES, node), "RemovingNode", message)

    def _silent_node_of(self, pod: Pod) -> list[Key]:
        node = self._nodes.get(pod.spec.node_name) if pod.spec.node_name else None
        ready = node_condition(node, READY) if node is not None else None
        return [Key("", pod.spec.node_name)] if ready is not None and ready.status == UNKNOWN else []

    async def _watch_leases(self) -> None:
        while True:
            await asyncio.sleep(self._signs.next_lapse_in())
            for name in self._signs.lapsed():
                self._by_lease.enqueue(Key(NODE_LEASE_NAMESPACE, name))

    async def _give_turns(self) -> None:
        """Lets nodes lose their pods one after another, but not while it is still coming out how many have failed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._zones.next_turn_in()):
                    await self._news.wait()
            for _ in range(MOST_PAUSES):
                if not self._news.is_set() and not len(self._by_node.queue):
                    break
                self._news.clear()
                await asyncio.sleep(self._settle)
            self._judge_zones()
            for name in self._zones.take_turns():
                self._by_node.enqueue(Key("", name))


def _what_matters(node: Node) -> object:
    """Everything of a node but its heartbeats."""
    conditions = [(condition.type, condition.status) for condition in node.status.conditions]
    return (conditions, node.spec, node.metadata.labels, node.metadata.annotations)


def _missing_labels(node: Node) -> dict[str, str]:
    labels = node.metadata.labels
    return {old: labels[new] for new, old in _LABELS.items() if new in labels and labels.get(old) != labels[new]}
