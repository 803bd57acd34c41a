"""Gangs as other schedulers' users say them: Kubernetes' Workloads, Koordinator's and Volcano's PodGroups.

``workloads``, ``coscheduling`` and ``volcano`` say in the model's words what objects and pods say (pure functions, to a
`Plan`); ``sources`` finds the objects in the cluster, and ``gangs`` keeps the model told.
"""

from shoal.scheduler.watching.dialects.gangs import add_dialects

__all__ = ["add_dialects"]
