"""What the controller must know of a scheduler that has a topology of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.api.grove import ClusterTopologyBinding
from shoal.api.meta import Document, Resource


@dataclass(frozen=True, kw_only=True)
class TopologyScheduler:
    """A scheduler whose topology is a cluster-scoped object with an ordered list of node labels."""

    name: str
    """The ``schedulerName`` of pods that mean it."""
    resource: Resource[Document]
    wanted: Callable[[ClusterTopologyBinding], dict[str, Any]]
    """The object that says what a binding says, under the binding's name."""
    keys_of: Callable[[Mapping[str, Any]], Sequence[str]]
    """The node labels of an object's levels, widest first."""

    @property
    def definition(self) -> str:
        """The CRD that must be there."""
        return self.resource.full_name
