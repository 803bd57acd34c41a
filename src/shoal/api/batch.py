"""The batch group: Jobs, whose pods run to their end, and CronJobs, which make Jobs by a schedule."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from shoal.api.core.references import ObjectReference
from shoal.api.meta import ConditionStatus, LabelSelector, Object, Resource, Wire

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
"""Keeps a pod until its end has been counted in its Job's status."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""Label and annotation: which index of an Indexed Job a pod works on."""
INDEX_FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
"""Annotation: how many pods of the index failed before this one."""
INDEX_IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotation: how many failures before this pod the pod failure policy told to ignore."""
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
"""Label: the uid of the Job that a pod belongs to."""
SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation: for what time a CronJob made a Job."""
JOB_CONTROLLER = "kubernetes.io/job-controller"
"""Who manages a Job that names nobody else."""

INDEXED = "Indexed"
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
FAILURE_TARGET, SUCCESS_CRITERIA_MET = "FailureTarget", "SuccessCriteriaMet"
"""The types of a Job's conditions; the last two say how it will end once its last pods are gone."""


class ExitCodes(Wire, frozen=True, kw_only=True):
    """The exit codes that a rule is about."""

    container_name: str | None = None
    operator: str = ""
    values: list[int] = []


class ConditionPattern(Wire, frozen=True, kw_only=True):
    """A condition of a pod that a rule is about."""

    type: str = ""
    status: str = "True"


class PodFailureRule(Wire, frozen=True, kw_only=True):
    """What to do about a pod that failed in a certain way."""

    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: list[ConditionPattern] = []


class PodFailurePolicy(Wire, frozen=True, kw_only=True):
    """Rules for failed pods; the first that matches decides."""

    rules: list[PodFailureRule] = []


class SuccessRule(Wire, frozen=True, kw_only=True):
    """Indexes, or a number of them, whose success is enough."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Wire, frozen=True, kw_only=True):
    """Rules by which an Indexed Job succeeds before all of its indexes have; any one is enough."""

    rules: list[SuccessRule] = []


class JobSpec(Wire, frozen=True, kw_only=True):
    """What is to run, how often and how much at once."""

    parallelism: int = 1
    completions: int | None = None
    """None makes a work queue: it is done when one pod succeeded and all have ended."""
    active_deadline_seconds: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    selector: LabelSelector | None = None
    manual_selector: bool = False
    template: dict[str, Any] = {}
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    managed_by: str = JOB_CONTROLLER


class JobCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a Job."""

    type: str = ""
    status: ConditionStatus
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class UncountedPods(Wire, frozen=True, kw_only=True):
    """The uids of ended pods that still have their finalizer, and so are not in the counters yet."""

    succeeded: list[str] = []
    failed: list[str] = []


class JobStatus(Wire, frozen=True, kw_only=True):
    """How far a Job has come."""

    conditions: list[JobCondition] = []
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    ready: int | None = None


class Job(Object, frozen=True, kw_only=True):
    """Pods that run to their end."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(Wire, frozen=True, kw_only=True):
    """When to make which Jobs."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = {}
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(Wire, frozen=True, kw_only=True):
    """Which Jobs run, and when the last one was due and the last one succeeded."""

    active: list[ObjectReference] = []
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Object, frozen=True, kw_only=True):
    """Jobs by a schedule."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


JOBS = Resource(type=Job, group="batch", version="v1", kind="Job", plural="jobs")
CRON_JOBS = Resource(type=CronJob, group="batch", version="v1", kind="CronJob", plural="cronjobs")


def job_condition(status: JobStatus, type: str) -> JobCondition | None:  # noqa: A002 - the wire's own word
    """The condition of a type, where it holds."""
    return next((known for known in status.conditions if known.type == type and known.status == "True"), None)


def finished_condition(job: Job) -> JobCondition | None:
    """How a Job ended: its Complete or Failed condition; None while it has not."""
    for condition in job.status.conditions:
        if condition.type in (COMPLETE, FAILED) and condition.status == "True":
            return condition
    return None


def with_condition(status: JobStatus, new: JobCondition) -> JobStatus:
    """A status with a condition said: the very same where it says so already, and nothing denied that never held."""
    for place, known in enumerate(status.conditions):
        if known.type == new.type:
            if (known.status, known.reason, known.message) == (new.status, new.reason, new.message):
                return status
            conditions = [*status.conditions[:place], new, *status.conditions[place + 1 :]]
            return msgspec.structs.replace(status, conditions=conditions)
    if new.status == "False":
        return status
    return msgspec.structs.replace(status, conditions=[*status.conditions, new])
