"""Training runs as a person sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.trainer import TRAIN_JOBS, TrainJob
from shoal.cli.output import to_table
from shoal.cli.training.pages import progress_of, span, state_of, train_jobs_table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_job(name: str = "llama", **status: Any) -> TrainJob:
    metadata = {"name": name, "namespace": "research", "creationTimestamp": "2026-01-01T11:00:00Z"}
    body = {"metadata": metadata, "spec": {"runtimeRef": {"name": "torch-distributed"}}, "status": status}
    return TRAIN_JOBS.decode(msgspec.json.encode(body))


def is_(kind: str, status: str = "True") -> dict[str, Any]:
    since = "2026-01-01T11:30:00Z"
    return {"type": kind, "status": status, "reason": "r", "message": "m", "lastTransitionTime": since}


def jobs(name: str, **counts: int) -> dict[str, Any]:
    return {"name": name, "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0} | counts


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "Waiting"),
        ({"jobsStatus": [jobs("node", active=1)]}, "Starting"),
        ({"jobsStatus": [jobs("node"), jobs("dataset-initializer", active=1)]}, "Starting"),
        ({"jobsStatus": [jobs("node", active=1, ready=1)]}, "Running"),
        ({"jobsStatus": [jobs("node", ready=1), jobs("launcher", active=1)]}, "Starting"),
        ({"jobsStatus": [jobs("node", ready=1), jobs("launcher", ready=1)]}, "Running"),
        ({"conditions": [is_("Suspended")]}, "Suspended"),
        ({"conditions": [is_("Suspended", "False")], "jobsStatus": [jobs("node", ready=1)]}, "Running"),
        ({"conditions": [is_("Suspended", "False"), is_("Complete")]}, "Complete"),
        ({"conditions": [is_("Failed")]}, "Failed"),
        ({"lastError": {"time": "2026-01-01T11:30:00Z", "message": "no quota"}}, "Error"),
    ],
)
def test_one_word_says_how_a_run_is(status: dict[str, Any], state: str) -> None:
    assert state_of(a_job(**status)) == state


@pytest.mark.parametrize(
    ("status", "progress"),
    [
        ({}, "-"),
        ({"trainerStatus": {"progressPercentage": 40, "lastUpdatedTime": "2026-01-01T11:30:00Z"}}, "40%"),
        ({"trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 7200}}, "40%, 2h left"),
        ({"conditions": [is_("Complete")]}, "100%"),
        (
            {
                "conditions": [is_("Failed")],
                "trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 9},
            },
            "40%",
        ),
    ],
)
def test_progress_is_what_the_program_says(status: dict[str, Any], progress: str) -> None:
    assert progress_of(a_job(**status)) == progress


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (200_000, "2d")]
)
def test_a_length_of_time_is_told_in_one_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_table_of_runs_fits_a_terminal() -> None:
    metrics = [{"name": "loss", "value": "0.25"}, {"name": "lr", "value": "1e-4"}]
    status = {"progressPercentage": 40, "estimatedRemainingSeconds": 300, "metrics": metrics}
    table = train_jobs_table([a_job(trainerStatus=status)], NOW + timedelta(hours=1), with_namespace=False)
    assert to_table(table).splitlines() == [
        "NAME    RUNTIME             STATE     PROGRESS       METRICS             AGE",
        "llama   torch-distributed   Waiting   40%, 5m left   loss=0.25 lr=1e-4   2h",
    ]
    assert train_jobs_table([a_job()], NOW, with_namespace=True).rows[0][0] == "research"
