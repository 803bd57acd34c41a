"""Admission of JobSets: what is filled in, what is refused and why; and of their pods, where placement is exclusive.

``defaults``, ``validation``, ``updates`` and ``volumes`` are pure; ``webhooks`` offers them to API servers.
"""

from shoal.training.jobset.admission.defaults import defaulted
from shoal.training.jobset.admission.updates import update_problems
from shoal.training.jobset.admission.validation import job_set_findings
from shoal.training.jobset.admission.webhooks import CONFIGURATIONS, Lookups, job_set_webhooks, webhook_configurations

__all__ = [
    "CONFIGURATIONS",
    "Lookups",
    "defaulted",
    "job_set_findings",
    "job_set_webhooks",
    "update_problems",
    "webhook_configurations",
]
