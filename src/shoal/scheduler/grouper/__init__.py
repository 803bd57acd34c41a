"""The pod grouper: gives every pod of our schedulers the PodGroup that its workload asks for.

``kinds`` are the rules, pure functions from a pod and the objects above it to the group; ``controller`` runs them.
"""

from shoal.scheduler.grouper.controller import FIELD_MANAGER, add_grouper
from shoal.scheduler.grouper.pods import GroupedPod, is_grouped_elsewhere
from shoal.scheduler.grouper.settings import GrouperSettings

__all__ = ["FIELD_MANAGER", "GroupedPod", "GrouperSettings", "add_grouper", "is_grouped_elsewhere"]
