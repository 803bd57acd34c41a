"""All nodes, as volumes and devices ask about them: each question is answered once, for all nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from shoal.api.core import PersistentVolume
from shoal.api.meta import LabelSelector
from shoal.scheduler.model.nodes import Node, Nodes
from shoal.scheduler.model.resources import Mask, ResourceNames
from shoal.scheduler.session.labels import LabelIndex

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_NEW_NAMES: Final = {_ZONE: _ZONE, _REGION: _REGION, _OLD_ZONE: _ZONE, _OLD_REGION: _REGION}
_SEPARATOR: Final = "__"
"""Between the zones of a volume that is in several."""
_MOST_KEPT: Final = 4096
_encode = msgspec.json.Encoder(order="sorted").encode


class Ground:
    """The nodes that there are."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._labels = LabelIndex(nodes)
        self._answers: dict[bytes, Mask] = {}
        self._names: dict[bytes, frozenset[str] | None] = {}
        self._reaching: dict[int, tuple[list[PersistentVolume], Mask]] = {}

    @staticmethod
    def of_one(name: str, labels: Mapping[str, str]) -> Ground:
        """A single node, for those who ask about no other."""
        resources = ResourceNames()
        return Ground(Nodes([Node(name=name, allocatable=resources.vector({}), labels=labels)], resources))

    @property
    def everywhere(self) -> Mask:
        """[nodes] all of them."""
        return np.ones(len(self._nodes), dtype=np.bool_)

    @property
    def nowhere(self) -> Mask:
        """[nodes] none of them."""
        return np.zeros(len(self._nodes), dtype=np.bool_)

    def names(self, mask: Mask) -> frozenset[str] | None:
        """The nodes of a mask, one set for all who ask for the same; None: all."""
        key = mask.tobytes()
        if key not in self._names:
            if len(self._names) >= _MOST_KEPT:
                self._names.clear()
            rows = np.flatnonzero(mask).tolist()
            self._names[key] = None if mask.all() else frozenset(self._nodes.nodes[row].name for row in rows)
        return self._names[key]

    def named(self, name: str) -> Mask:
        """[nodes] the one of this name."""
        mask = self.nowhere
        row = self._nodes.index.get(name)
        if row is not None:
            mask[row] = True
        return mask

    def selected(self, terms: Sequence[Mapping[str, Any]]) -> Mask:
        """[nodes] those that match one of these node selector terms."""
        return self.once(_encode(["terms", terms]), lambda: self._labels.matching_any(terms))

    def reaching(self, volume: PersistentVolume) -> Mask:
        """[nodes] those that a volume's node affinity allows."""
        required = (volume.spec.node_affinity or {}).get("required")
        return self.everywhere if required is None else self.selected(required.get("nodeSelectorTerms") or ())

    def reaching_any(self, volumes: list[PersistentVolume]) -> Mask:
        """[nodes] those that reach one of these volumes; answered once for a list, which must not change."""
        found = self._reaching.get(id(volumes))
        if found is None:
            if len(self._reaching) >= _MOST_KEPT:
                self._reaching.clear()
            mask = self.nowhere
            for volume in volumes:
                mask |= self.reaching(volume)
            found = self._reaching[id(volumes)] = volumes, mask
        return found[1]

    def in_zones_of(self, labels: Mapping[str, str]) -> Mask:
        """[nodes] those in the zones and regions that a volume's labels name; nodes that are in none at all will do."""
        named = {key: labels[key] for key in _NEW_NAMES if key in labels}
        return self.once(_encode(["zones", named]), lambda: self._in_zones(named))

    def allowed_by(self, topologies: Sequence[Mapping[str, Any]]) -> Mask:
        """[nodes] those that match one of a class's allowed topologies; a class that names none allows all."""
        if not topologies:
            return self.everywhere
        terms = [
            {
                "matchExpressions": [
                    {**expression, "operator": "In"} for expression in topology.get("matchLabelExpressions") or ()
                ]
            }
            for topology in topologies
        ]
        return self.selected(terms)

    def labelled(self, selector: LabelSelector | None) -> Mask:
        """[nodes] those that a label selector means; one that is not there means none, an empty one all."""
        if selector is None:
            return self.nowhere
        labels: list[dict[str, Any]] = [
            {"key": key, "operator": "In", "values": [value]} for key, value in selector.match_labels.items()
        ]
        expressions = [*labels, *(msgspec.to_builtins(one) for one in selector.match_expressions)]
        return self.selected([{"matchExpressions": expressions}]) if expressions else self.everywhere

    def _in_zones(self, named: Mapping[str, str]) -> Mask:
        unzoned = self.everywhere
        for key in _NEW_NAMES:
            unzoned &= ~self._labels.column(key).is_present
        mask = self.everywhere
        for key, zones in named.items():
            wanted = [{"key": key, "operator": "In", "values": zones.split(_SEPARATOR)}]
            matching = self._labels.matching({"matchExpressions": wanted})
            lacking = ~self._labels.column(key).is_present
            renamed = self._labels.matching({"matchExpressions": [{**wanted[0], "key": _NEW_NAMES[key]}]})
            mask &= matching | (lacking & renamed)
        return mask | unzoned

    def once(self, key: bytes, ask: Callable[[], Mask]) -> Mask:
        """[nodes] the answer to a question, which is asked once for each key."""
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= _MOST_KEPT:
                self._answers.clear()
            found = self._answers[key] = ask()
            found.flags.writeable = False
        return found
