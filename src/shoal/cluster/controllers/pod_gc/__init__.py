"""Removes pods that nobody else will: those of nodes that are gone, those that cannot end, and ended ones beyond count.

A pod is removed by force, since no node answers for it, and is failed first, so that whoever made it knows.
"""

from shoal.cluster.controllers.pod_gc.controller import add_pod_gc

__all__ = ["add_pod_gc"]
