"""The conditions of a JobSet, their reasons and messages, and the events that have no condition."""

from __future__ import annotations

from typing import Final

# Condition types. Completed and Failed end a JobSet.
COMPLETED: Final = "Completed"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
STARTUP_POLICY_IN_PROGRESS: Final = "StartupPolicyInProgress"
STARTUP_POLICY_COMPLETED: Final = "StartupPolicyCompleted"
RESTARTING: Final = "RestartingJobSet"

# Reasons.
ALL_JOBS_COMPLETED: Final = "AllJobsCompleted"
FAILED_JOBS: Final = "FailedJobs"
REACHED_MAX_RESTARTS: Final = "ReachedMaxRestarts"
DEFAULT_FAILURE_POLICY: Final = "DefaultFailurePolicy"
FAILURE_POLICY_PREFIX: Final = "FailurePolicy_"
SUSPENDED_JOBS: Final = "SuspendedJobs"
RESUME_JOBS: Final = "ResumeJobs"
IN_ORDER_IN_PROGRESS: Final = "InOrderStartupPolicyInProgress"
IN_ORDER_COMPLETED: Final = "InOrderStartupPolicyCompleted"
# Why a restart is over.
JOBS_READY: Final = "JobsReady"
JOB_SET_FAILED: Final = "JobSetFailed"
JOB_SET_COMPLETED: Final = "JobSetCompleted"
JOB_SET_SUSPENDED: Final = "JobSetSuspended"
# Reasons of events alone.
JOB_CREATION_FAILED: Final = "JobCreationFailed"
SERVICE_CREATION_FAILED: Final = "HeadlessServiceCreationFailed"
CLAIM_CREATION_FAILED: Final = "PVCCreationFailed"
# Why a pod was deleted, as a condition of the pod.
PLACEMENT_VIOLATION: Final = "ExclusivePlacementViolation"

# Messages.
COMPLETED_MESSAGE: Final = "jobset completed successfully"
FAILED_JOBS_MESSAGE: Final = "jobset failed due to one or more job failures"
MAX_RESTARTS_MESSAGE: Final = "jobset failed due to reaching max number of restarts"
SUSPENDED_MESSAGE: Final = "jobset is suspended"
RESUMED_MESSAGE: Final = "jobset is resumed"
JOBS_READY_MESSAGE: Final = "all jobs are ready"
FAILED_MESSAGE: Final = "jobset failed"
IN_ORDER_IN_PROGRESS_MESSAGE: Final = "in order startup policy is in progress"
IN_ORDER_COMPLETED_MESSAGE: Final = "in order startup policy has completed"
PLACEMENT_VIOLATION_MESSAGE: Final = "Pod violated JobSet exclusive placement policy"


def with_first_failed(message: str, job: str) -> str:
    """A message about failed Jobs, with the first of them named."""
    return f"{message} (first failed job: {job})"


def rule_reason(rule: str) -> str:
    """Why a JobSet restarts: the failure policy's rule by its name."""
    return f"{FAILURE_POLICY_PREFIX}{rule}"


def action_reason(action: str) -> str:
    """The reason of the event, or of the Failed condition, that an action of a failure policy leaves."""
    return f"{action}FailurePolicyAction"


def action_message(action: str) -> str:
    """What was done about a failed Job."""
    return f"applying {action} failure policy action"
