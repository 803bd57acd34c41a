"""How long a TrainJob may run, and how long it is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.meta import Condition
from shoal.api.trainer import TrainJobStatus
from shoal.training.deadline import deadline, removal, seconds_until
from tests.training.builders import a_train_job

CREATED = datetime(2026, 1, 31, 9, tzinfo=UTC)
LATER = CREATED + timedelta(hours=1)


def a_condition(type: str, status: Any) -> Condition:  # noqa: A002
    return Condition(type=type, status=status, reason="R", message="", last_transition_time=LATER)


CASES: dict[str, tuple[dict[str, Any], list[Condition], datetime | None]] = {
    "from its creation": ({"activeDeadlineSeconds": 60}, [], CREATED + timedelta(seconds=60)),
    "from when it was resumed": (
        {"activeDeadlineSeconds": 60}, [a_condition("Suspended", "False")], LATER + timedelta(seconds=60),
    ),
    "not while it waits": ({"activeDeadlineSeconds": 60, "suspend": True}, [a_condition("Suspended", "True")], None),
    "not where there is none": ({}, [], None),
    "not when it is over": ({"activeDeadlineSeconds": 60}, [a_condition("Complete", "True")], None),
    "not when it failed": ({"activeDeadlineSeconds": 60}, [a_condition("Failed", "True")], None),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "conditions", "expected"), CASES.values(), ids=CASES)
def test_deadline(spec: dict[str, Any], conditions: list[Condition], expected: datetime | None) -> None:
    job = a_train_job(**spec)
    job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, creation_timestamp=CREATED))
    assert deadline(job, TrainJobStatus(conditions=conditions)) == expected


def test_what_is_over_is_kept_for_so_long() -> None:
    over = TrainJobStatus(conditions=[a_condition("Complete", "True")], completion_time=LATER)
    assert removal(a_train_job(ttlSecondsAfterFinished=90), over) == LATER + timedelta(seconds=90)
    assert removal(a_train_job(ttlSecondsAfterFinished=0), over) == LATER


def test_what_is_not_over_or_has_no_time_is_kept() -> None:
    over = TrainJobStatus(conditions=[a_condition("Complete", "True")], completion_time=LATER)
    assert removal(a_train_job(), over) is None
    assert removal(a_train_job(ttlSecondsAfterFinished=0), TrainJobStatus()) is None
    unsupported = TrainJobStatus(conditions=[a_condition("Failed", "True")])
    assert removal(a_train_job(ttlSecondsAfterFinished=0), unsupported) is None


def test_waiting_is_at_least_a_second() -> None:
    assert seconds_until(CREATED, LATER) == 1.0
    assert seconds_until(LATER, CREATED) == 3600.0
