"""The controller of PodCliqueScalingGroups: it keeps the cliques of each replica of a group, and tells how they are.

``members`` says what a clique of a group looks like, ``replicas`` what there is, ``rolling`` which replicas an update
takes next, and ``status`` what the group says of itself.
"""

from shoal.gangs.groups.controller import add_groups

__all__ = ["add_groups"]
