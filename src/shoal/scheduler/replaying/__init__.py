"""Replay: what a scheduler would decide upon a snapshot, and what would change if things were otherwise.

``replay`` runs one cycle; ``changes`` makes another snapshot of one (more nodes, another quota, one more job);
``difference`` says what that changed. Nothing is asked of a cluster.
"""

from shoal.scheduler.replaying.changes import InvalidChange, with_bound, with_nodes
from shoal.scheduler.replaying.comparing import Difference, difference
from shoal.scheduler.replaying.running import Eviction, Placement, Replay, Waiting, replay
from shoal.scheduler.replaying.submitting import with_submitted

__all__ = [
    "Difference",
    "Eviction",
    "InvalidChange",
    "Placement",
    "Replay",
    "Waiting",
    "difference",
    "replay",
    "with_bound",
    "with_nodes",
    "with_submitted",
]
