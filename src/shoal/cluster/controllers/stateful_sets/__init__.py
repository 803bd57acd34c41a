"""Keeps the pods of StatefulSets: each with its name, number, hostname and volumes, in their order, and up to date.

``identity`` says who a pod is, ``volumes`` which claims it has and who owns them, ``plan`` what to do next, ``status``
what to tell; ``pods`` does it, and ``controller`` is the reconcile.
"""

from shoal.cluster.controllers.stateful_sets.controller import add_stateful_sets

__all__ = ["add_stateful_sets"]
