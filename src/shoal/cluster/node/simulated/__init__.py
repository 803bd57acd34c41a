"""Nodes without machines: pods on them go through their lives by rules, and nothing runs.

``add_simulated_nodes`` adds their agent to a manager; ``Pool`` says which nodes to make. A Node with the annotation
``kwok.x-k8s.io/node: fake`` is simulated too, whoever made it.
"""

from shoal.cluster.node.simulated.agent import add_simulated_nodes
from shoal.cluster.node.simulated.pools import InvalidPool, Pool

__all__ = ["InvalidPool", "Pool", "add_simulated_nodes"]
