"""The podgroup controller: what the pods of each gang hold and wait for, in its status.

``use`` and ``preemptibility`` are pure; ``ledger`` keeps the sums of each gang's pods as they change; ``controller``
writes them.
"""

from shoal.scheduler.podgroups.controller import add_pod_groups
from shoal.scheduler.podgroups.settings import PodGroupSettings

__all__ = ["PodGroupSettings", "add_pod_groups"]
