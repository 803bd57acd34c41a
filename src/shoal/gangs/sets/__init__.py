"""PodCliqueSets: what is there once for a set, what is there for each of its replicas, and how the set is.

``controller`` works on whole sets and stays light: it is woken by every change of what they are made of.
``replica_controller`` compares and writes the children of one replica at a time. ``progress`` is how the second tells
the first; the other modules are pure: the bodies of children, and the status.
"""

from shoal.gangs.sets.controller import add_sets

__all__ = ["add_sets"]
