"""What follows from failed Jobs: which rule of the policy decides, and what becomes of the JobSet then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from shoal.api.batch import Job, JobCondition, finished_condition
from shoal.api.jobset import FailurePolicy, FailureRule, JobSetStatus, ReplicatedJobStatus, names, reasons
from shoal.api.jobset.job_sets import (
    FAIL_JOB_SET,
    RESTART_JOB,
    RESTART_JOB_AND_IGNORE_MAX,
    RESTART_JOB_SET,
    RESTART_JOB_SET_AND_IGNORE_MAX,
)
from shoal.kube import TerminalError
from shoal.training.jobset.buckets import first_failed, number, replicated_job_of
from shoal.training.jobset.conditions import Report
from shoal.training.jobset.patterns import matches

SINGLE_JOB_ACTIONS = (RESTART_JOB, RESTART_JOB_AND_IGNORE_MAX)


@dataclass(frozen=True)
class Decision:
    """What to do, by which rule (None where the policy's default decides), and the first Job that it is about."""

    action: str
    job: Job
    rule: FailureRule | None = None


def decision_of(policy: FailurePolicy, failed: Sequence[Job]) -> Decision | None:
    """The first rule, in the policy's order, that any failed Job fits; a restart of everything where none does."""
    for rule in policy.rules:
        if first := first_failed(job for job in failed if _fits(rule, job, finished_condition(job))):
            return Decision(rule.action, first[0], rule)
    first = first_failed(failed)
    return Decision(RESTART_JOB_SET, first[0]) if first else None


def after_failure(report: Report, failed: Sequence[Job], *, restarts_single_jobs: bool) -> Report:
    """The JobSet's status, and what is told of it, after these Jobs failed."""
    policy = report.job_set.spec.failure_policy
    if policy is None:
        first = first_failed(failed)
        return report if first is None else _fail(report, reasons.FAILED_JOBS, reasons.FAILED_JOBS_MESSAGE, first[0])
    decision = decision_of(policy, failed)
    if decision is None:
        return report
    action, job = decision.action, decision.job
    if action in SINGLE_JOB_ACTIONS and not restarts_single_jobs:
        raise TerminalError(
            f"rule {decision.rule.name if decision.rule else ''} of spec.failurePolicy asks for {action}, which is not "
            "enabled: enable restarts of single Jobs, or use RestartJobSet"
        )
    if action == FAIL_JOB_SET:
        return _fail(report, reasons.action_reason(action), reasons.action_message(action), job)
    counts = action in (RESTART_JOB_SET, RESTART_JOB)
    if counts and restarts_that_count(report.status) >= policy.most_restarts:
        return _fail(report, reasons.REACHED_MAX_RESTARTS, reasons.MAX_RESTARTS_MESSAGE, job)
    said = reasons.with_first_failed(reasons.action_message(action), job.metadata.name)
    if action in (RESTART_JOB_SET, RESTART_JOB_SET_AND_IGNORE_MAX):
        why = reasons.rule_reason(decision.rule.name) if decision.rule else reasons.DEFAULT_FAILURE_POLICY
        report = _restart_all(report, counts=counts).saying(reasons.RESTARTING, "True", why, said, is_bad=True)
    else:
        report = _restart_one(report, job, counts=counts)
    return report.telling(reasons.action_reason(action), said, is_bad=True)


def restarts_that_count(status: JobSetStatus) -> int:
    """The restarts that count towards the maximum, of the whole and of single Jobs."""
    single = (sum(each.job_restarts_count_towards_max) for each in status.replicated_jobs_status)
    return status.restarts_count_towards_max + sum(single)


def _fits(rule: FailureRule, job: Job, end: JobCondition | None) -> bool:
    if end is None:
        return False
    if rule.on_job_failure_reasons and end.reason not in rule.on_job_failure_reasons:
        return False
    patterns = rule.on_job_failure_message_patterns
    if patterns and not any(matches(pattern, end.message) for pattern in patterns):
        return False
    replicated_job = replicated_job_of(job)
    return bool(replicated_job) and (not rule.target_replicated_jobs or replicated_job in rule.target_replicated_jobs)


def _fail(report: Report, reason: str, message: str, job: Job) -> Report:
    return report.failed(reason, reasons.with_first_failed(message, job.metadata.name))


def _restart_all(report: Report, *, counts: bool) -> Report:
    status = report.status
    return report.having(
        replace(
            status,
            restarts=status.restarts + 1,
            restarts_count_towards_max=status.restarts_count_towards_max + counts,
        )
    )


def _restart_one(report: Report, job: Job, *, counts: bool) -> Report:
    name, index = replicated_job_of(job), number(job, names.JOB_INDEX)
    replicas = {each.name: each.count for each in report.job_set.spec.replicated_jobs}.get(name, 0)

    def restarted(each: ReplicatedJobStatus) -> ReplicatedJobStatus:
        if each.name != name:
            return each
        counted = each.job_restarts_count_towards_max
        return replace(
            each,
            job_restarts=_one_more(each.job_restarts, index, replicas),
            job_restarts_count_towards_max=_one_more(counted, index, replicas) if counts else counted,
        )

    statuses = [restarted(each) for each in report.status.replicated_jobs_status]
    return report.having(replace(report.status, replicated_jobs_status=statuses))


def _one_more(counts: list[int], index: int, replicas: int) -> list[int]:
    whole = counts + [0] * (replicas - len(counts))
    return [count + (place == index) for place, count in enumerate(whole)]
