"""When a JobSet has succeeded: once all, or any one, of the Jobs that count have."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.batch import Job
from shoal.api.jobset import JobSet, SuccessPolicy
from shoal.api.jobset.job_sets import ANY
from shoal.training.jobset.buckets import replicated_job_of


def has_succeeded(job_set: JobSet, successful: Iterable[Job]) -> bool:
    """Whether the Jobs that succeeded are enough."""
    policy = job_set.spec.success_policy or SuccessPolicy(operator="All")
    found = sum(_counts(policy, replicated_job_of(job)) for job in successful)
    if policy.operator == ANY:
        return found > 0
    return found >= sum(each.count for each in job_set.spec.replicated_jobs if _counts(policy, each.name))


def _counts(policy: SuccessPolicy, replicated_job: str) -> bool:
    return not policy.target_replicated_jobs or replicated_job in policy.target_replicated_jobs
