"""ReplicaSets and ReplicationControllers: each keeps a number of equal pods, by one and the same rule.

``controller`` watches and writes; ``status`` says what is to be told of a set, and when to look at it again.
"""

from shoal.cluster.controllers.replica_sets.controller import add_replica_sets

__all__ = ["add_replica_sets"]
