"""Topologies: what a set's constraints mean on nodes, and schedulers' own topologies kept as bindings say.

``levels`` finds what a set asks for, ``constraints`` says it in a PodGang's words; ``controller`` tells schedulers what
levels there are (``kai`` in KAI's words), and ``drift`` what came of it.
"""

from shoal.gangs.topologies.constraints import GangConstraints, gang_constraints
from shoal.gangs.topologies.controller import add_topologies
from shoal.gangs.topologies.levels import domain_keys, levels_condition, topology_name

__all__ = [
    "GangConstraints",
    "add_topologies",
    "domain_keys",
    "gang_constraints",
    "levels_condition",
    "topology_name",
]
