"""What runs in this room, with the times that Kubernetes has by default."""

from __future__ import annotations

from shoal.cluster.controllers.node_lifecycle.controller import NodeLifecycle
from shoal.cluster.controllers.node_lifecycle.eviction import TaintEviction
from shoal.cluster.controllers.node_lifecycle.signs_of_life import SignsOfLife
from shoal.cluster.controllers.node_lifecycle.zones import EvictionLimits, Zones
from shoal.kube import Manager


def add_node_lifecycle(
    manager: Manager,
    *,
    grace: float = 50.0,
    startup_grace: float = 60.0,
    settle: float = 1.0,
    limits: EvictionLimits = EvictionLimits(),
) -> None:
    """Watches over the nodes of a cluster.

    A node that is silent for ``grace`` seconds, or ``startup_grace`` where it has never said how it is, counts as lost.
    How many are is judged when no further one has failed for ``settle`` seconds; before that none loses its pods.
    """
    signs = SignsOfLife(grace=grace, startup_grace=startup_grace)
    NodeLifecycle(manager, signs, Zones(limits), settle=settle)
    TaintEviction(manager)
