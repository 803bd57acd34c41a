"""The queue controller: what each queue and the queues below it hold and wait for, in its status and as metrics.

``tree`` and ``status`` are pure; ``ledger`` keeps the sums of each queue's gangs as they change; ``controller`` writes
what they add up to, and ``metrics`` shows it.
"""

from shoal.scheduler.queues.controller import add_queues
from shoal.scheduler.queues.settings import QueueSettings, label_map

__all__ = ["QueueSettings", "add_queues", "label_map"]
