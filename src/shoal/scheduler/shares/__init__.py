"""What queues are entitled to: their tree, the division of the cluster among them, and the rules that follow from it.

``tree`` knows what every queue holds and may hold; ``division`` shares out; ``order`` and ``job_order`` say who is
next; ``capacity``, ``reclaim`` and ``min_runtime`` what may be given and taken away; ``usage`` remembers the past.
"""

from shoal.scheduler.shares.capacity import Excess, over_capacity, over_limit, over_quota
from shoal.scheduler.shares.job_order import JobsByQueue, job_rank
from shoal.scheduler.shares.tree import QueueTree, Share

__all__ = [
    "Excess",
    "JobsByQueue",
    "QueueTree",
    "Share",
    "job_rank",
    "over_capacity",
    "over_limit",
    "over_quota",
]
