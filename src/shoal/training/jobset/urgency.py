"""Which changes of a JobSet's status somebody waits for."""

from __future__ import annotations

from msgspec.structs import replace

from shoal.api.jobset import JobSetStatus, ReplicatedJobStatus
from shoal.training.patience import patience_with_counters


def patience_with(before: JobSetStatus, after: JobSetStatus) -> float:
    """Seconds for which a change of the status can wait; none where it decides something, or changes nothing."""
    if before == after or _decisive(before) != _decisive(after):
        return 0.0
    return patience_with_counters(before.replicated_jobs_status, after.replicated_jobs_status)


def _decisive(status: JobSetStatus) -> JobSetStatus:
    """A status without its counters; what is kept of restarts is no counter, since it decides which Jobs go."""
    kept = [
        ReplicatedJobStatus(
            name=each.name,
            job_restarts=each.job_restarts,
            job_restarts_count_towards_max=each.job_restarts_count_towards_max,
        )
        for each in status.replicated_jobs_status
        if each.job_restarts or each.job_restarts_count_towards_max
    ]
    return replace(status, replicated_jobs_status=kept)
