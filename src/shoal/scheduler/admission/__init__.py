"""Admission: what of queues, gangs, topologies and shards is refused when it is written, and what is warned of.

``queues``, ``pod_groups``, ``topologies`` and ``shards`` are pure rules; ``webhooks`` offers them to API servers at the
paths and under the names that KAI's own webhooks have. ``everything`` adds them all, those of pods included.
"""

from shoal.scheduler.admission.everything import add_all_webhooks, unregistered
from shoal.scheduler.admission.settings import AdmissionSettings
from shoal.scheduler.admission.webhooks import add_scheduler_webhooks, webhook_configurations

__all__ = [
    "AdmissionSettings",
    "add_all_webhooks",
    "add_scheduler_webhooks",
    "unregistered",
    "webhook_configurations",
]
