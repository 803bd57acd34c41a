"""What a status says, by what it said before and what is seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta import Condition, Document, find_condition
from shoal.api.trainer import JobStatus, TrainJob, TrainJobStatus
from shoal.training.framework import Outcome
from shoal.training.status import has_ended, observed_status, with_deadline_exceeded, with_error
from tests.training.builders import a_train_job

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)
JOBS = (JobStatus(name="node", ready=0, succeeded=0, failed=0, active=1, suspended=0),)
SEEN = Document.of({"metadata": {"name": "demo", "creationTimestamp": "2026-01-31T08:00:00Z"}})


def a_condition(type: str, status: Any = "True", reason: str = "R", **fields: Any) -> Condition:  # noqa: A002
    return Condition(type=type, status=status, reason=reason, message="m", last_transition_time=BEFORE, **fields)


def having(*conditions: Condition, generation: int = 7, **spec: Any) -> TrainJob:
    job = a_train_job(**spec)
    metadata = msgspec.structs.replace(job.metadata, generation=generation)
    return msgspec.structs.replace(job, metadata=metadata, status=TrainJobStatus(conditions=list(conditions)))


def observed(
    job: TrainJob, outcome: Outcome = Outcome(), *, is_supported: bool = True, seen: Document | None = SEEN
) -> TrainJobStatus:
    return observed_status(job, is_supported=is_supported, seen=seen, outcome=outcome, now=NOW)


UNSUPPORTED = a_condition("Failed", reason="TrainingRuntimeNotSupported")
FAILED = a_condition("Failed", reason="FailedJobs")


class TestUnknownRuntimes:
    def test_a_kind_that_nobody_knows_is_a_failure(self) -> None:
        [told] = observed(having(), is_supported=False, seen=None).conditions
        assert (told.type, told.status, told.reason) == ("Failed", "True", "TrainingRuntimeNotSupported")
        assert told.message == "unsupported runtime: ClusterTrainingRuntime.trainer.kubeflow.org"
        assert (told.last_transition_time, told.observed_generation) == (NOW, 7)

    def test_it_passes_when_the_kind_becomes_known(self) -> None:
        assert observed(having(UNSUPPORTED), seen=None) == TrainJobStatus()

    def test_a_real_failure_stays_when_the_kind_becomes_known(self) -> None:
        assert observed(having(FAILED), seen=None).conditions == [FAILED]

    @pytest.mark.parametrize("end", [FAILED, a_condition("Complete")])
    def test_what_is_over_is_not_taken_for_unsupported(self, end: Condition) -> None:
        assert observed(having(end), is_supported=False, seen=None).conditions == [end]


class TestSuspension:
    def test_one_that_was_never_suspended_says_nothing_of_it(self) -> None:
        assert observed(having(), seen=None) == TrainJobStatus()

    def test_suspended(self) -> None:
        [told] = observed(having(suspend=True), seen=None).conditions
        assert (told.type, told.status, told.reason, told.message) == (
            "Suspended", "True", "Suspended", "TrainJob is suspended",
        )  # fmt: skip
        assert told.last_transition_time == NOW

    def test_resumed(self) -> None:
        [told] = observed(having(a_condition("Suspended")), seen=None).conditions
        assert (told.status, told.reason, told.message) == ("False", "Resumed", "TrainJob is resumed")
        assert told.last_transition_time == NOW

    def test_resumed_long_ago_is_left_as_it_is(self) -> None:
        resumed = a_condition("Suspended", "False", "Resumed", observed_generation=3)
        assert observed(having(resumed), seen=None).conditions == [resumed]


class TestOutcomes:
    def test_an_end_is_taken_over_with_its_time(self) -> None:
        status = observed(having(), Outcome(end=a_condition("Complete"), jobs=JOBS))
        assert status.conditions == [a_condition("Complete", observed_generation=7)]
        assert status.completion_time == BEFORE
        assert status.jobs_status == list(JOBS)

    def test_what_ended_by_its_deadline_stays_so(self) -> None:
        job = having()
        late = with_deadline_exceeded(job, job.status, BEFORE)
        job = msgspec.structs.replace(job, status=late)
        status = observed(job, Outcome(end=a_condition("Complete"), jobs=JOBS))
        [told] = status.conditions
        assert (told.type, told.reason, told.message) == (
            "Failed", "DeadlineExceeded", "TrainJob exceeded its active deadline",
        )  # fmt: skip
        assert status.completion_time == BEFORE
        assert status.jobs_status == list(JOBS)

    def test_it_begins_when_its_job_set_was_made(self) -> None:
        assert observed(having(), Outcome(jobs=JOBS)).start_time == SEEN.metadata.creation_timestamp

    def test_it_begins_when_it_is_resumed(self) -> None:
        assert observed(having(a_condition("Suspended")), Outcome(jobs=JOBS)).start_time == NOW

    def test_it_does_not_begin_while_it_waits(self) -> None:
        assert observed(having(suspend=True), Outcome(jobs=JOBS, is_suspended=True)).start_time is None

    def test_it_begins_once(self) -> None:
        job = having()
        job = msgspec.structs.replace(job, status=TrainJobStatus(start_time=BEFORE))
        assert observed(job, Outcome(jobs=JOBS)).start_time == BEFORE

    def test_without_a_job_set_what_was_known_of_jobs_stays(self) -> None:
        job = having()
        job = msgspec.structs.replace(job, status=TrainJobStatus(jobs_status=list(JOBS)))
        assert observed(job, seen=None).jobs_status == list(JOBS)


class TestErrors:
    def test_an_error_keeps_the_time_when_it_was_seen_first(self) -> None:
        first = with_error(TrainJobStatus(), "no quota", BEFORE)
        assert with_error(first, "no quota", NOW) is first
        other = with_error(first, "no runtime", NOW).last_error
        assert other is not None
        assert (other.time, other.message) == (NOW, "no runtime")

    def test_it_goes_when_all_is_well(self) -> None:
        assert with_error(with_error(TrainJobStatus(), "no quota", BEFORE), "", NOW) == TrainJobStatus()

    def test_a_very_long_one_is_cut(self) -> None:
        error = with_error(TrainJobStatus(), "x" * 100_000, NOW).last_error
        assert error is not None
        assert len(error.message) == 32768


conditions = st.lists(
    st.builds(
        a_condition,
        st.sampled_from(["Suspended", "Complete", "Failed"]),
        st.sampled_from(["True", "False"]),
        st.sampled_from(["R", "TrainingRuntimeNotSupported", "DeadlineExceeded"]),
    ),
    unique_by=lambda one: one.type,
)
outcomes = st.builds(
    Outcome,
    end=st.none() | st.builds(a_condition, st.sampled_from(["Complete", "Failed"])),
    jobs=st.sampled_from([(), JOBS]),
    is_suspended=st.booleans(),
)


@given(conditions, st.booleans(), st.booleans(), outcomes)
def test_what_was_told_is_told_again_unchanged(
    given_conditions: list[Condition], suspend: bool, is_supported: bool, outcome: Outcome
) -> None:
    job = having(*given_conditions, suspend=suspend)
    once = observed(job, outcome, is_supported=is_supported)
    again = observed_status(
        msgspec.structs.replace(job, status=once),
        is_supported=is_supported,
        seen=SEEN,
        outcome=outcome,
        now=NOW + timedelta(minutes=5),
    )
    assert again == once


@given(conditions, st.booleans(), outcomes)
def test_a_real_end_is_never_taken_back(given_conditions: list[Condition], suspend: bool, outcome: Outcome) -> None:
    job = having(*given_conditions, suspend=suspend)
    failed = find_condition(job.status.conditions, "Failed")
    is_real = failed is None or failed.reason != "TrainingRuntimeNotSupported"
    if has_ended(job.status) and is_real:
        assert has_ended(observed(job, outcome))
