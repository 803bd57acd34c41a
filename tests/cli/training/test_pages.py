"""Training runs as a person sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.cli.output import to_table
from shoal.cli.training.pages import hints, metrics_of, progress_of, span, train_jobs_table
from shoal.cli.training.states import Standing, standing_of
from tests.cli.training.examples import a_job, is_, jobs

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUNNING: dict[str, Any] = {"jobsStatus": [jobs("node", active=1, ready=1)]}
HALFWAY: dict[str, Any] = {"trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 7200}}


@pytest.mark.parametrize(
    ("status", "progress"),
    [
        ({}, "-"),
        ({"trainerStatus": {"progressPercentage": 40, "lastUpdatedTime": "2026-01-01T11:30:00Z"}}, "40%"),
        (HALFWAY | RUNNING, "40%, 2h left"),
        (HALFWAY | {"conditions": [is_("Suspended")]}, "40%"),
        (HALFWAY | {"conditions": [is_("Failed")]}, "40%"),
        (HALFWAY | {"conditions": [is_("Complete")]}, "40%"),
        (HALFWAY, "40%"),
        ({"conditions": [is_("Complete")]}, "100%"),
    ],
)
def test_progress_is_what_the_program_says_and_time_is_left_only_while_it_runs(
    status: dict[str, Any], progress: str
) -> None:
    job = a_job(**status)
    assert progress_of(job, standing_of(job)) == progress


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (200_000, "2d")]
)
def test_a_length_of_time_is_told_in_one_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_table_of_runs_says_how_far_they_are() -> None:
    metrics = [{"name": "loss", "value": "0.25"}, {"name": "lr", "value": "1e-4"}]
    status = {"progressPercentage": 40, "estimatedRemainingSeconds": 300, "metrics": metrics}
    found = [(a_job(trainerStatus=status, **RUNNING), Standing("Running"))]
    table = train_jobs_table(found, NOW + timedelta(hours=1), with_namespace=False, is_wide=False)
    assert to_table(table).splitlines() == [
        "NAME    RUNTIME             STATE     PROGRESS       METRICS             AGE",
        "llama   torch-distributed   Running   40%, 5m left   loss=0.25 lr=1e-4   2h",
    ]
    assert train_jobs_table(found, NOW, with_namespace=True, is_wide=False).rows[0][0] == "research"


def test_a_wide_table_says_why_in_one_line() -> None:
    found = [(a_job(), Standing("Failed", "FailedJobs: two\nlines")), (a_job("fine"), Standing("Running"))]
    table = train_jobs_table(found, NOW, with_namespace=False, is_wide=True)
    assert table.heading[-1] == "reason"
    assert [row[-1] for row in table.rows] == ["FailedJobs: two lines", "-"]


def test_a_wide_table_has_all_metrics() -> None:
    job = a_job(trainerStatus={"metrics": [{"name": f"m{index}", "value": "1"} for index in range(5)]})
    assert metrics_of(job, most=3) == "m0=1 m1=1 m2=1"
    assert metrics_of(job, most=None) == "m0=1 m1=1 m2=1 m3=1 m4=1"


FULL, BROKEN = Standing("Pending", waits_for_room=True), Standing("Failed", is_trouble=True)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(a_job("a"), Standing("Running"))], []),
        ([(a_job("a"), FULL)], ["a waits for room: ask shoal explain trainjob/a -n research"]),
        ([(a_job("a", namespace="default"), FULL)], ["a waits for room: ask shoal explain trainjob/a"]),
        (
            [(a_job("a"), FULL), (a_job("b"), BROKEN), (a_job("c"), FULL)],
            [
                "a and c wait for room: ask shoal explain trainjob/a -n research",
                "-o wide says what is wrong with b",
            ],
        ),
        ([(a_job(name), BROKEN) for name in "abcd"], ["-o wide says what is wrong with a and 3 more"]),
    ],
    ids=["all is well", "no room", "in the usual namespace", "both", "many"],
)
def test_who_does_not_get_on_is_named_with_what_to_ask_next(found: Any, said: list[str]) -> None:
    assert hints(found, "") == said


def test_a_hint_names_the_cluster_that_was_asked() -> None:
    assert hints([(a_job("a"), FULL)], " --data-dir /d")[0].endswith(
        "shoal explain trainjob/a -n research --data-dir /d"
    )
