"""Empties namespaces that are being deleted, and lets them go when nothing is left in them.

``content`` deletes what is in one, ``conditions`` say how far that is, and ``vigil`` hears when the last of it is gone.
"""

from shoal.cluster.controllers.namespaces.controller import add_namespaces

__all__ = ["add_namespaces"]
