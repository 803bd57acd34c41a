"""The nodes of the pool, as the model has them and as they were last seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from shoal.api.core import nodes as wire_nodes
from shoal.scheduler.model.nodes import Node
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.watching.needs import Gear
from shoal.scheduler.watching.reading import node_of
from shoal.scheduler.watching.settings import MirrorSettings


class Changes(NamedTuple):
    """What became of the nodes."""

    nodes: set[str]
    """Those that are not as they were."""
    is_relabelled: bool
    """Whether there are others now, or others in name or labels."""


class Machines:
    """Reads nodes, and says which are others than before."""

    def __init__(self, settings: MirrorSettings, resources: ResourceNames, gear: Callable[[str], Gear]) -> None:
        """``gear``: what a node has by the word of other objects."""
        self._settings = settings
        self._resources = resources
        self._gear = gear
        self._seen: dict[str, wire_nodes.Node] = {}
        self.nodes: dict[str, Node] = {}

    def last_seen(self, names: Iterable[str] | None) -> dict[str, wire_nodes.Node]:
        """Nodes as they were last seen; of no names: all."""
        if names is None:
            return dict(self._seen)
        return {name: self._seen[name] for name in names if name in self._seen}

    def see(self, seen: Mapping[str, wire_nodes.Node | None]) -> Changes:
        """Takes nodes in."""
        changes, is_relabelled = set(), False
        for name, node in seen.items():
            before = self.nodes.get(name)
            if node is None or not self._settings.is_of_pool(node.metadata.labels):
                self._seen.pop(name, None)
                if before is not None:
                    del self.nodes[name]
                    changes.add(name)
                    is_relabelled = True
                continue
            self._seen[name] = node
            after = node_of(node, self._resources, mig_label=self._settings.mig_label, gear=self._gear(name))
            if before is None or not _is_same(before, after):
                is_relabelled = is_relabelled or before is None or before.labels != after.labels
                self.nodes[name] = after
                changes.add(name)
        return Changes(changes, is_relabelled)


def _is_same(before: Node, after: Node) -> bool:
    return (
        len(before.allocatable) == len(after.allocatable)
        and bool((before.allocatable == after.allocatable).all())
        and before.labels == after.labels
        and before.taints == after.taints
        and before.is_ready == after.is_ready
        and before.is_unschedulable == after.is_unschedulable
        and before.pressures == after.pressures
        and before.has_claimed_gpus == after.has_claimed_gpus
    )
