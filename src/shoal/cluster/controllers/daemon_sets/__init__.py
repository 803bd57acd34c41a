"""Keeps a pod of each DaemonSet on every node that may have it, and replaces those of an old template.

``eligibility`` says which nodes, ``objects`` what pod, ``plan`` and ``rollout`` what to make and delete, ``status``
what to tell; ``controller`` is the reconcile, with its ``history`` and the patience of ``failures``.
"""

from shoal.cluster.controllers.daemon_sets.controller import add_daemon_sets

__all__ = ["add_daemon_sets"]
