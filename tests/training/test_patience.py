"""What of a status is told at once, and what waits: counters do, and nothing that decides something."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shoal.api.jobset import JobSetStatus, ReplicatedJobStatus
from shoal.api.meta import Condition
from shoal.api.trainer import JobStatus, LastError, TrainJobStatus
from shoal.training.jobset.urgency import patience_with as job_set_patience
from shoal.training.patience import AT_FIRST, LATER, SOON
from shoal.training.status import patience_with as train_job_patience

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
ENDED = Condition(type="Completed", status="True", reason="AllJobsCompleted", message="m", last_transition_time=NOW)


def a_job_set_status(ready: int = 0, active: int = 0, restarted: int = 0, **fields: object) -> JobSetStatus:
    jobs = ReplicatedJobStatus(name="node", ready=ready, active=active, job_restarts=[restarted] if restarted else [])
    return JobSetStatus(replicated_jobs_status=[jobs], **fields)  # type: ignore[arg-type]


def a_train_job_status(ready: int = 0, active: int = 0, suspended: int = 0, **fields: object) -> TrainJobStatus:
    jobs = JobStatus(name="node", ready=ready, succeeded=0, failed=0, active=active, suspended=suspended)
    return TrainJobStatus(jobs_status=[jobs], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        pytest.param(JobSetStatus(), JobSetStatus(), 0, id="nothing to tell"),
        pytest.param(JobSetStatus(), a_job_set_status(), AT_FIRST, id="nothing has happened yet"),
        pytest.param(JobSetStatus(), a_job_set_status(active=1), LATER, id="it has begun"),
        pytest.param(JobSetStatus(), a_job_set_status(ready=1, active=1), SOON, id="it was ready at once"),
        pytest.param(a_job_set_status(active=1), a_job_set_status(ready=1, active=1), SOON, id="it is ready"),
        pytest.param(a_job_set_status(active=1), a_job_set_status(), LATER, id="it is not active any more"),
        pytest.param(a_job_set_status(), a_job_set_status(conditions=[ENDED]), 0, id="a condition"),
        pytest.param(JobSetStatus(), a_job_set_status(terminal_state="Completed"), 0, id="its end"),
        pytest.param(a_job_set_status(), a_job_set_status(restarts=1), 0, id="a restart"),
        pytest.param(a_job_set_status(), a_job_set_status(restarted=1), 0, id="a restart of one Job"),
        pytest.param(JobSetStatus(), JobSetStatus(current_in_place_restart_attempt=1), 0, id="a restart in place"),
    ],
)
def test_of_a_job_set_counters_wait_and_decisions_do_not(
    before: JobSetStatus, after: JobSetStatus, wanted: float
) -> None:
    assert job_set_patience(before, after) == wanted


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        pytest.param(TrainJobStatus(), TrainJobStatus(), 0, id="nothing to tell"),
        pytest.param(TrainJobStatus(), a_train_job_status(start_time=NOW), AT_FIRST, id="nothing has happened yet"),
        pytest.param(TrainJobStatus(), a_train_job_status(active=1, start_time=NOW), LATER, id="it has begun"),
        pytest.param(TrainJobStatus(), a_train_job_status(suspended=1), SOON, id="its Jobs wait"),
        pytest.param(a_train_job_status(), a_train_job_status(ready=1), SOON, id="it is ready"),
        pytest.param(a_train_job_status(), a_train_job_status(conditions=[ENDED]), 0, id="a condition"),
        pytest.param(
            TrainJobStatus(), TrainJobStatus(last_error=LastError(time=NOW, message="no quota")), 0, id="an error"
        ),
    ],
)
def test_of_a_train_job_counters_wait_and_decisions_do_not(
    before: TrainJobStatus, after: TrainJobStatus, wanted: float
) -> None:
    assert train_job_patience(before, after) == wanted
