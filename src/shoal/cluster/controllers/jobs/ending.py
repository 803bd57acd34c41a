"""Whether and how a Job comes to its end.

An end has two steps. First the Job says how it will end (``FailureTarget`` or ``SuccessCriteriaMet``), and its pods are
stopped; when the last one is gone and counted it says that it has ended (``Failed`` or ``Complete``).
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.batch import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    Job,
    JobCondition,
    JobStatus,
    job_condition,
    with_condition,
)
from shoal.api.core import PENDING, RUNNING
from shoal.cluster.controllers.jobs.failure_policy import verdict_on
from shoal.cluster.controllers.jobs.observed import Observed, is_failed
from shoal.cluster.controllers.jobs.success_policy import matched_rule


def ending_of(job: Job, seen: Observed, now: datetime) -> JobCondition | None:
    """How the Job ends, where it does though pods may still run: what was said before holds, then failures go first."""
    known = job_condition(job.status, SUCCESS_CRITERIA_MET) or job_condition(job.status, FAILURE_TARGET)
    return known or _failure(job, seen, now) or _early_success(job, seen, now)


def has_succeeded(job: Job, seen: Observed, active: int) -> bool:
    """Whether everything that was wanted has succeeded, and nothing runs any more."""
    if active:
        return False
    wanted = job.spec.completions
    return seen.succeeded > 0 if wanted is None else seen.succeeded >= wanted


def success(now: datetime) -> JobCondition:
    """What is said when all completions are reached."""
    words = "Reached expected number of succeeded pods"
    return _condition(SUCCESS_CRITERIA_MET, "CompletionsReached", words, now)


def until_deadline(job: Job, started: datetime | None, now: datetime) -> float | None:
    """Seconds until the Job has been active for too long; None where it may take its time."""
    limit = job.spec.active_deadline_seconds
    if limit is None or started is None or job.spec.suspend:
        return None
    return limit - (now - started).total_seconds()


def ended(status: JobStatus, ending: JobCondition, now: datetime) -> JobStatus:
    """The status of a Job that has ended as was said."""
    if ending.type == FAILURE_TARGET:
        return with_condition(status, _condition(FAILED, ending.reason, ending.message, now))
    final = with_condition(status, _condition(COMPLETE, ending.reason, ending.message, now))
    return msgspec.structs.replace(final, completion_time=now)


def suspension(status: JobStatus, *, suspend: bool, now: datetime) -> JobStatus:
    """The status with what is said of being suspended; the clock of the deadline begins anew with each resumption."""
    if suspend:
        said = with_condition(status, _condition(SUSPENDED, "JobSuspended", "Job suspended", now))
        started = None
    else:
        resumed = _condition(SUSPENDED, "JobResumed", "Job resumed", now)
        said = with_condition(status, msgspec.structs.replace(resumed, status="False"))
        started = now
    return status if said is status else msgspec.structs.replace(said, start_time=started)


def _failure(job: Job, seen: Observed, now: datetime) -> JobCondition | None:
    spec = job.spec
    if message := _policy_failure(job, seen):
        return _condition(FAILURE_TARGET, "PodFailurePolicy", message, now)
    if seen.failed > spec.backoff_limit or _restarts_too_often(job, seen):
        words = "Job has reached the specified backoff limit"
        return _condition(FAILURE_TARGET, "BackoffLimitExceeded", words, now)
    left = until_deadline(job, job.status.start_time, now)
    if left is not None and left <= 0:
        words = "Job was active longer than specified deadline"
        return _condition(FAILURE_TARGET, "DeadlineExceeded", words, now)
    failed = len(seen.failed_indexes) if seen.failed_indexes is not None else 0
    if spec.max_failed_indexes is not None and failed > spec.max_failed_indexes:
        words = "Job has exceeded the specified maximal number of failed indexes"
        return _condition(FAILURE_TARGET, "MaxFailedIndexesExceeded", words, now)
    if failed and failed + len(seen.succeeded_indexes) >= (spec.completions or 0):
        return _condition(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes", now)
    return None


def _early_success(job: Job, seen: Observed, now: datetime) -> JobCondition | None:
    rule = matched_rule(job.spec, seen.succeeded_indexes)
    return _condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", rule, now) if rule else None


def _policy_failure(job: Job, seen: Observed) -> str:
    policy = job.spec.pod_failure_policy
    if policy is None:
        return ""
    failed = (pod for pod in seen.pods if is_failed(pod, job.spec))
    return next((words for pod in failed if (words := verdict_on(pod, policy).message)), "")


def _restarts_too_often(job: Job, seen: Observed) -> bool:
    """Whether pods that restart in place have done so as often as pods may fail."""
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        status.restart_count
        for pod in seen.pods
        if pod.status.phase in (PENDING, RUNNING)
        for status in [*pod.status.init_container_statuses, *pod.status.container_statuses]
    )
    return restarts >= max(job.spec.backoff_limit, 1)


def _condition(type_: str, reason: str, message: str, now: datetime) -> JobCondition:
    return JobCondition(
        type=type_, status="True", last_probe_time=now, last_transition_time=now, reason=reason, message=message
    )
