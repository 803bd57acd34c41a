"""How a training run is, in a word, and why."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import Pod
from shoal.cli.training.states import Standing, needs_pods, standing_of
from tests.cli.training.examples import (
    a_job,
    a_pod_of,
    a_pod_that,
    a_pod_without_room,
    is_,
    jobs,
    last_error,
)


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
        ({"lastError": last_error("no quota")}, "Error"),
    ],
)
def test_one_word_says_how_a_run_is(status: dict[str, Any], state: str) -> None:
    assert standing_of(a_job(**status)).state == state


CRASHED = {"terminated": {"exitCode": 3, "reason": "Error"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
NO_PROGRAM = {"terminated": {"exitCode": 128, "reason": "StartError", "message": 'exec: "trian": not found\n'}}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


@pytest.mark.parametrize(
    ("pod", "state", "reason"),
    [
        pytest.param(
            a_pod_that(state=waits("CrashLoopBackOff", "back-off 20s"), lastState=CRASHED, restarts=2),
            "CrashLoopBackOff",
            "node-0: exit code 3, restarted 2 times",
            id="it crashes",
        ),
        pytest.param(
            a_pod_that(state=waits("CrashLoopBackOff", "back-off 10s"), lastState=NO_PROGRAM, restarts=1),
            "CrashLoopBackOff",
            'node-0: exit code 128 (StartError): exec: "trian": not found, restarted once',
            id="its program is not there",
        ),
        pytest.param(a_pod_that(state=KILLED), "OOMKilled", "node-0: exit code 137 (OOMKilled)", id="it was killed"),
        pytest.param(
            a_pod_that(index=1, state=waits("CreateContainerConfigError", 'configmap "c" not found')),
            "CreateContainerConfigError",
            'node-1: configmap "c" not found',
            id="its configuration is not there",
        ),
        pytest.param(
            a_pod_that(job="data-loader", state=waits("ErrImagePull", "no such image")),
            "ErrImagePull",
            "data-loader-0-data-loader-0: no such image",
            id="a job of another name",
        ),
        pytest.param(a_pod_that(state=waits("ContainerCreating")), "Starting", "", id="it is about to start"),
        pytest.param(a_pod_without_room(), "Pending", "no GPUs are free", id="no room"),
        pytest.param(a_pod_of("node", node=""), "Pending", "", id="nobody looked for a node yet"),
    ],
)
def test_pods_tell_what_the_status_hides(pod: Pod, state: str, reason: str) -> None:
    job = a_job(jobsStatus=[jobs("node", active=1)])
    assert needs_pods(job)
    found = standing_of(job, [pod])
    assert (found.state, found.reason) == (state, reason)
    assert found.is_trouble == (state not in ("Pending", "Starting"))


def test_a_run_without_room_is_one_that_the_scheduler_can_explain() -> None:
    assert standing_of(a_job(), [a_pod_without_room()]).waits_for_room
    assert not standing_of(a_job(), [a_pod_without_room(reason="SchedulingGated", message="")]).waits_for_room


def test_an_evicted_pod_says_why_though_it_has_no_containers() -> None:
    evicted = a_pod_of("node", phase="Failed", status={"reason": "Evicted", "message": "low on disk"})
    assert standing_of(a_job(), [evicted]) == Standing("Evicted", "node-0: low on disk", is_trouble=True)


def test_of_a_step_that_was_tried_again_only_the_last_try_counts() -> None:
    before = a_pod_that(state=CRASHED)
    now = a_pod_of("node", uid="later", age=-5)
    assert standing_of(a_job(), [now, before]).state == "Starting"


def test_ranks_are_told_by_the_status_before_the_launcher_has_a_pod() -> None:
    job = a_job(jobsStatus=[jobs("node", active=1), jobs("launcher")])
    assert standing_of(job, [a_pod_that(state=CRASHED)]).reason == "node-1: exit code 3"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"conditions": [is_("Failed", reason="DeadlineExceeded", message="too late")]}, "DeadlineExceeded: too late"),
        ({"conditions": [is_("Failed", "False")], "lastError": last_error("no quota")}, "no quota"),
        ({"conditions": [is_("Complete")]}, ""),
    ],
)
def test_a_run_says_why(status: dict[str, Any], reason: str) -> None:
    assert standing_of(a_job(**status)).reason == reason


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [is_("Complete")]},
        {"conditions": [is_("Failed")]},
        {"conditions": [is_("Suspended")]},
        {"jobsStatus": [jobs("node", ready=1)]},
    ],
)
def test_pods_are_not_read_for_a_run_that_needs_none(status: dict[str, Any]) -> None:
    assert not needs_pods(a_job(**status))
