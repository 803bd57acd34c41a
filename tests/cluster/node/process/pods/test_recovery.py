"""How far containers have come, told from a status and from what the runtime has."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shoal.cluster.node.process.pods.course import Course
from shoal.cluster.node.process.pods.recovery import recovered
from shoal.cluster.node.process.runtime.protocol import ContainerState
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.pods.builders import NOW

RUNNING = {"running": {"startedAt": "2026-01-01T11:00:00Z"}}
BROKEN = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T11:59:00Z"}}
RESTING = {"waiting": {"reason": "CrashLoopBackOff"}}


def found(attempt: int, *, code: int | None = None) -> ContainerState:
    finished = None if code is None else NOW.timestamp()
    started = NOW.timestamp() - 3600
    return ContainerState(
        id="c", sandbox="u-1", name="main", attempt=attempt, started=started, finished=finished, exit_code=code
    )


def course(status: dict[str, Any] | None, *states: ContainerState, logged: list[int] | None = None) -> Course:
    listed = [{"name": "main", **status}] if status is not None else []
    pod = a_local_pod(status={"containerStatuses": listed})
    return recovered(pod, states, {"main": logged or []}, words=lambda *_: "words", now=NOW)["main"]


@pytest.mark.parametrize(
    ("status", "states", "is_running", "attempt", "reason"),
    [
        ({"state": RUNNING, "restartCount": 1}, [found(1)], True, 1, ""),
        ({"state": RUNNING, "restartCount": 1}, [found(2)], True, 2, ""),
        (None, [found(0)], True, 0, ""),
        ({"state": RUNNING, "restartCount": 1}, [found(1, code=0)], False, 1, "Completed"),
        ({"state": RUNNING, "restartCount": 1}, [], False, 1, "ContainerStatusUnknown"),
        ({"state": RUNNING, "restartCount": 2}, [found(1, code=0)], False, 2, "ContainerStatusUnknown"),
        ({"state": BROKEN, "restartCount": 1}, [], False, 1, "Error"),
        ({"state": RESTING, "lastState": BROKEN, "restartCount": 3}, [], False, 3, "Error"),
    ],
    ids=[
        "it runs", "it was restarted and nobody wrote so", "it was started and nobody wrote so", "it ended meanwhile",
        "it was lost", "the latest was lost", "it had ended", "it rests",
    ],
)  # fmt: skip
def test_what_became_of_a_container(
    status: dict[str, Any] | None, states: list[ContainerState], is_running: bool, attempt: int, reason: str
) -> None:
    got = course(status, *states)
    assert (got.is_running, got.restarts) == (is_running, attempt)
    assert (got.end.reason if got.end is not None else "") == reason


def test_one_that_was_lost_is_not_made_to_rest_and_one_that_failed_is() -> None:
    lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": None}}
    assert course({"state": RUNNING, "restartCount": 5}).due is None
    assert course({"state": lost, "restartCount": 5}).due is None
    failed = course({"state": RESTING, "lastState": BROKEN, "restartCount": 3})
    assert failed.end is not None
    assert failed.due == failed.end.at + timedelta(seconds=40)


def test_one_that_never_ran_begins_behind_the_logs_that_are_there() -> None:
    assert course(None).next_attempt == 0
    assert course(None, logged=[0, 1]).next_attempt == 2


def test_what_it_was_is_what_it_is() -> None:
    same = course({"state": RUNNING, "restartCount": 1, "ready": True, "started": True, "imageID": "x"}, found(1))
    assert (same.is_ready, same.is_started, same.run and same.run.image_id) == (True, True, "x")


def test_a_probe_decides_anew_where_nobody_knows() -> None:
    probes: dict[str, Any] = {"readinessProbe": {"exec": {}}, "startupProbe": {"exec": {}}}
    pod = a_local_pod({"name": "main", **probes}, status={"containerStatuses": [{"name": "main", "restartCount": 0}]})
    got = recovered(pod, [found(0)], {}, words=lambda *_: "", now=NOW)["main"]
    assert (got.is_running, got.is_started, got.is_ready) == (True, False, False)


def test_how_it_ended_before_is_kept() -> None:
    got = course({"state": RUNNING, "lastState": BROKEN, "restartCount": 2}, found(2))
    assert got.former is not None
    assert got.former.end is not None
    assert (got.former.attempt, got.former.end.exit_code) == (1, 1)


def test_the_runtime_knows_the_last_words() -> None:
    got = course({"state": RUNNING, "restartCount": 0}, found(0, code=5))
    assert got.end is not None
    assert (got.end.exit_code, got.end.message) == (5, "words")
