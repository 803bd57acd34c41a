"""What the pods of each gang hold and wait for, kept as they change.

A change of one pod moves the figures of its gang by the difference, so that it costs the same whether the gang has ten
pods or ten thousand. What was counted of each pod is remembered: what it holds may depend on its node, which changes
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from shoal.api import kai_names as names
from shoal.api.core import Node, Pod
from shoal.kube import Change, Key
from shoal.kube.store import key_of
from shoal.scheduler.gpu_memory import gpu_memory_of
from shoal.scheduler.podgroups.use import PodUse, depends_on_node, pod_use, what_counts
from shoal.scheduler.resource_lists import Amounts, add_to


@dataclass(slots=True)
class GangUse:
    """The figures of one gang."""

    requested: Amounts = field(default_factory=dict)
    allocated: Amounts = field(default_factory=dict)
    pods: int = 0


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted of a pod, and for which gang; one object for all pods of a gang that are alike."""

    gang: Key
    use: PodUse


class Ledger:
    """The figures of each gang. Nodes and pods are looked up as they are now."""

    def __init__(self, node_of: Callable[[str], Node | None], pod_of: Callable[[Key], Pod | None]) -> None:
        self._node_of = node_of
        self._pod_of = pod_of
        self._gangs: dict[Key, GangUse] = {}
        self._counted: dict[str, _Counted] = {}
        self._alike: dict[object, _Counted] = {}
        self._by_node: dict[str, dict[str, Key]] = {}

    def record(self, change: Change[Pod]) -> None:
        """Takes up what happened to a pod."""
        if not concerns_a_gang(change):
            return
        if change.before is not None:
            self._drop(change.before)
        if change.after is not None:
            self._count(change.after)

    def record_node(self, change: Change[Node]) -> None:
        """Takes up that a node's GPUs may have more or less memory than was thought."""
        for key in list(self._by_node.get(change.latest.metadata.name, {}).values()):
            if (pod := self._pod_of(key)) is not None:
                self._drop(pod)
                self._count(pod)

    def gangs_on(self, node: str) -> Iterable[Key]:
        """The gangs whose figures depend on a node."""
        return {self._counted[uid].gang for uid in self._by_node.get(node, ())}

    def use_of(self, gang: Key) -> GangUse:
        """The figures of a gang, not to be changed."""
        return self._gangs.get(gang) or GangUse()

    def __len__(self) -> int:
        return len(self._counted)

    def _count(self, pod: Pod) -> None:
        gang = gang_of(pod)
        if gang is None:
            return
        memory = None
        if pod.spec.node_name and depends_on_node(pod):
            self._by_node.setdefault(pod.spec.node_name, {})[pod.metadata.uid] = key_of(pod)
            node = self._node_of(pod.spec.node_name)
            memory = None if node is None else gpu_memory_of(node.metadata.labels)
        counted = self._counted[pod.metadata.uid] = self._shared(gang, pod_use(pod, memory))
        figures = self._gangs.setdefault(gang, GangUse())
        figures.pods += 1
        add_to(figures.requested, counted.use.requested)
        add_to(figures.allocated, counted.use.allocated)

    def _drop(self, pod: Pod) -> None:
        counted = self._counted.pop(pod.metadata.uid, None)
        if counted is None:
            return
        if (on_node := self._by_node.get(pod.spec.node_name)) is not None:
            on_node.pop(pod.metadata.uid, None)
            if not on_node:
                del self._by_node[pod.spec.node_name]
        figures = self._gangs[counted.gang]
        figures.pods -= 1
        add_to(figures.requested, counted.use.requested, -1)
        add_to(figures.allocated, counted.use.allocated, -1)
        if not figures.pods:
            del self._gangs[counted.gang]

    def _shared(self, gang: Key, use: PodUse) -> _Counted:
        """There are few kinds of pods, and very many pods."""
        if len(self._alike) > _MOST_ALIKE:
            self._alike.clear()
        alike = (gang, tuple(use.requested.items()), tuple(use.allocated.items()))
        return self._alike.setdefault(alike, _Counted(gang, use))


_MOST_ALIKE: Final = 10_000
"""How many kinds of pods are remembered before all are forgotten: what is remembered only saves memory."""


def gang_of(pod: Pod) -> Key | None:
    """The gang that a pod says it is of."""
    name = pod.metadata.annotations.get(names.POD_GROUP)
    return Key(pod.metadata.namespace, name) if name else None


def concerns_a_gang(change: Change[Pod]) -> bool:
    """Whether a change of a pod can move the figures of a gang."""
    before, after = change.before, change.after
    if before is None or after is None:
        return names.POD_GROUP in change.latest.metadata.annotations
    if names.POD_GROUP not in before.metadata.annotations and names.POD_GROUP not in after.metadata.annotations:
        return False
    return before.metadata.uid != after.metadata.uid or what_counts(before) != what_counts(after)
