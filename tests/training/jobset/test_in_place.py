"""Restarts in place: what the status says to the agents in pods."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import Pod
from shoal.api.jobset import JobSetStatus, names
from shoal.kube import ReconcileError
from shoal.training.jobset.in_place import after_attempts, is_restarted_in_place, total_pods
from tests.support.builders.pods import a_pod
from tests.training.jobset.builders import a_replicated_job, a_report, a_typed_set, restarted, said

POLICY = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}


def an_in_place_set(status: JobSetStatus | None = None) -> Any:
    return a_typed_set(a_replicated_job("rj", 2, parallelism=2, completions=2), failurePolicy=POLICY, status=status)


def a_pod_at(attempt: str | None = None, *, phase: str = "Running", restarts: int = 0) -> Pod:
    """A pod whose agent says at which attempt it is."""
    return a_pod(
        annotations={} if attempt is None else {names.IN_PLACE_ATTEMPT: attempt},
        phase=phase,
        status={"containerStatuses": [{"name": "worker", "restartCount": restarts}]},
    )


def test_a_job_set_asks_for_it_by_its_strategy() -> None:
    assert is_restarted_in_place(an_in_place_set())
    assert not is_restarted_in_place(a_typed_set(failurePolicy={"restartStrategy": "Recreate"}))
    assert not is_restarted_in_place(a_typed_set())
    assert total_pods(an_in_place_set()) == 4


@pytest.mark.parametrize(
    ("attempts", "known", "current", "previous"),
    [
        pytest.param(["0"] * 4, None, 0, None, id="all at the barrier for the first time"),
        pytest.param(["0", "0", "0", None], None, None, None, id="one has not spoken"),
        pytest.param([], None, None, None, id="none has"),
        pytest.param(["1", "0", "0", "0"], None, None, 0, id="one is ahead: the others are to follow"),
        pytest.param(["1"] * 4, 0, 1, 0, id="all have followed"),
        pytest.param(["1", "2", "1", "1"], 0, None, 1, id="one failed again"),
        pytest.param(["1", "1", "0", None], 1, None, 1, id="the newest is being made again"),
    ],
)
def test_the_status_follows_the_pods(
    attempts: list[str | None], known: int | None, current: int | None, previous: int | None
) -> None:
    job_set = an_in_place_set(JobSetStatus(previous_in_place_restart_attempt=known))
    found = after_attempts(a_report(job_set), [a_pod_at(each) for each in attempts]).status
    assert found.current_in_place_restart_attempt == current
    assert found.previous_in_place_restart_attempt == previous
    assert not found.terminal_state


def test_a_failed_pod_beside_its_replacement_does_not_count() -> None:
    pods = [*(a_pod_at("1") for _ in range(4)), a_pod_at("0", phase="Failed")]
    assert after_attempts(a_report(an_in_place_set()), pods).status.current_in_place_restart_attempt == 1


@pytest.mark.parametrize(
    ("pods", "status", "fails"),
    [
        pytest.param([a_pod_at("2")], None, False, id="as often as allowed"),
        pytest.param([a_pod_at("3")], None, True, id="more often"),
        pytest.param([a_pod_at("3")], restarted(1, counting=0), False, id="what was not to count does not"),
        pytest.param([a_pod_at(restarts=3)], None, True, id="a container that never came to the barrier"),
    ],
)
def test_too_many_attempts_fail_it(pods: list[Pod], status: JobSetStatus | None, fails: bool) -> None:
    found = after_attempts(a_report(an_in_place_set(status)), pods).status
    assert said(found.conditions) == ({"Failed": ("True", "ReachedMaxRestarts")} if fails else {})


@pytest.mark.parametrize("attempt", ["", "x", "-1"])
def test_an_attempt_that_is_no_number_is_told_of(attempt: str) -> None:
    with pytest.raises(ReconcileError, match="must be a number of 0 or more"):
        after_attempts(a_report(an_in_place_set()), [a_pod_at(attempt)])
