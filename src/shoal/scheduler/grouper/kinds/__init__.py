"""From the kind of a workload to the rule by which its pods are grouped: one small module for each family of kinds.

A kind is known by its group and name, in whatever version it is served.
"""

from shoal.scheduler.grouper.kinds.registry import KNOWN_KINDS, READ_WHOLE, beside, subject, wanted_group

__all__ = ["KNOWN_KINDS", "READ_WHOLE", "beside", "subject", "wanted_group"]
