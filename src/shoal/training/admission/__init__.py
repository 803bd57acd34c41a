"""Admission of TrainJobs and runtimes: when patches were made, what is refused and why, and what users are warned of.

``patch_times``, ``runtimes``, ``validation`` and ``rules`` are pure; ``webhooks`` offers them to API servers at the
paths and under the names that Trainer's own webhooks have.
"""

from shoal.training.admission.lookups import Lookups
from shoal.training.admission.patch_times import with_patch_times
from shoal.training.admission.runtimes import runtime_problems
from shoal.training.admission.validation import Surroundings, train_job_problems
from shoal.training.admission.webhooks import training_webhooks, webhook_configurations

__all__ = [
    "Lookups",
    "Surroundings",
    "runtime_problems",
    "train_job_problems",
    "training_webhooks",
    "webhook_configurations",
    "with_patch_times",
]
