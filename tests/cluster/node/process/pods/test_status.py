"""What a pod's status says, from how far its containers have come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.pod_status import status_patch
from shoal.cluster.node.process.pods.course import Course, Problem, Run
from shoal.cluster.node.process.pods.status import (
    Seen,
    end_of,
    identities,
    last_words,
    next_change,
    refusal,
    report_of,
)
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState, Ids
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.pods.builders import NOW, ended, running, seconds


def seen(pod: PodDetails, courses: dict[str, Course], **more: Any) -> Seen:
    given = {"began": NOW, "host_ip": "10.88.0.1", "pod_ip": "10.88.0.2", "has_sandbox": True, **more}
    return Seen(pod=pod, courses=courses, **given)


def told(
    pod: PodDetails, courses: dict[str, Course], container: str = "main", **more: Any
) -> tuple[str, dict[str, Any]]:
    """The phase, and the status of a container as the wire has it."""
    report = report_of(seen(pod, courses, **more), now=NOW)
    everyone = (*report.containers, *report.init_containers, *report.ephemeral_containers)
    status = next(one for one in everyone if one.name == container)
    return report.phase, msgspec.to_builtins(status)


def problem(reason: str, *, ago: float, due: float | None = None) -> Problem:
    return Problem(reason=reason, message="why", at=NOW - seconds(ago), due=None if due is None else NOW + seconds(due))


@pytest.mark.parametrize(
    ("course", "phase", "state"),
    [
        (Course(), "Pending", {"waiting": {"reason": "ContainerCreating"}}),
        (Course(is_starting=True), "Pending", {"waiting": {"reason": "ContainerCreating"}}),
        (running(is_starting=True, is_started=False), "Pending", {"waiting": {"reason": "ContainerCreating"}}),
        (running(), "Running", {"running": {"startedAt": "2026-01-01T11:59:00Z"}}),
        (
            Course(problem=problem("ErrImagePull", ago=0, due=10)),
            "Pending",
            {"waiting": {"reason": "ErrImagePull", "message": "why"}},
        ),
        (
            Course(problem=problem("ErrImagePull", ago=2, due=8)),
            "Pending",
            {
                "waiting": {
                    "reason": "ImagePullBackOff",
                    "message": 'Back-off pulling image "busybox": ErrImagePull: why',
                }
            },
        ),
        (
            ended(128, 1, problem=problem("RunContainerError", ago=0)),
            "Running",
            {"waiting": {"reason": "RunContainerError", "message": "why"}},
        ),
        (
            ended(1, 2, ago=3, problem=problem("RunContainerError", ago=3)),
            "Running",
            {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 20s restarting failed container=main pod=web_team(u-1)",
                }
            },
        ),
    ],
    ids=[
        "nothing yet", "being started", "its hook runs", "running", "no image", "no image for a while",
        "not started just now", "not started a while ago",
    ],
)  # fmt: skip
def test_what_a_container_does(course: Course, phase: str, state: dict[str, Any]) -> None:
    found = told(a_local_pod(), {"main": course})
    assert (found[0], found[1]["state"]) == (phase, state)


def test_a_container_that_rests_shows_how_it_ended_before() -> None:
    _, status = told(a_local_pod(), {"main": ended(3, 1)})
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 3


def test_started_and_ready_are_two_things() -> None:
    waiting = running(is_started=False, is_ready=False)
    assert told(a_local_pod(), {"main": waiting})[1].get("ready", False) is False
    assert told(a_local_pod(), {"main": waiting})[1]["started"] is False
    started = told(a_local_pod(), {"main": running(is_ready=False)})[1]
    assert (started["started"], started.get("ready", False)) == (True, False)


def test_a_pod_with_a_sidecar_that_has_not_started_is_pending() -> None:
    pod = a_local_pod(init=("side*",))
    assert told(pod, {"side": running(is_started=False)})[0] == "Pending"
    assert told(pod, {"side": running(is_started=False), "main": running()})[0] == "Running"


@pytest.mark.parametrize(
    ("courses", "phase"),
    [
        ({"main": ended(0)}, "Succeeded"),
        ({"main": ended(1)}, "Failed"),
        ({}, "Failed"),
    ],
)
def test_a_pod_that_was_ended_has_a_last_phase_whatever_its_policy(courses: dict[str, Course], phase: str) -> None:
    assert told(a_local_pod(restartPolicy="Always"), courses, is_over=True)[0] == phase


def test_a_container_that_cannot_be_found_has_failed() -> None:
    pod = a_local_pod("main", "other")
    _, status = told(pod, {"main": ended(0)}, "other", is_over=True)
    assert status["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert status["state"]["terminated"]["exitCode"] == 137
    _, never = told(a_local_pod(init=("one",)), {"one": ended(1)}, is_over=True)
    assert never["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_the_reason_of_a_pod_that_was_ended_is_told_with_its_last_phase_alone() -> None:
    over = report_of(seen(a_local_pod(), {"main": ended(0)}, is_over=True, reason="DeadlineExceeded"), now=NOW)
    assert (over.phase, over.reason) == ("Failed", "DeadlineExceeded")
    still = report_of(seen(a_local_pod(), {"main": running()}, reason="DeadlineExceeded"), now=NOW)
    assert (still.phase, still.reason) == ("Running", "")


def test_a_refused_pod_says_so() -> None:
    report = refusal(a_local_pod(), "OutOfcpu", "no", now=NOW, host_ip="10.88.0.1")
    assert (report.phase, report.reason, report.message) == ("Failed", "OutOfcpu", "Pod was rejected: no")


def test_runs_have_names_of_their_own_and_tell_who_they_run_as() -> None:
    main = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    mount = {"name": "v", "mountPath": "/v", "readOnly": True}
    pod = a_local_pod({**main, "volumeMounts": [mount]})
    spec = ContainerSpec(id="", sandbox="", name="main", argv=[], scratch="", log="", ids=Ids(user=7, group=8))
    course = running(1, former=ended(1).run)
    identify = identities(pod, {"main": course}, lambda name: spec)
    patch = status_patch(pod, report_of(seen(pod, {"main": course}), now=NOW), now=NOW, identify=identify)
    [status] = patch["containerStatuses"]
    assert status["containerID"].startswith("shoal://")
    assert status["lastState"]["terminated"]["containerID"] != status["containerID"]
    assert status["user"] == {"linux": {"uid": 7, "gid": 8, "supplementalGroups": [8]}}
    assert status["allocatedResources"] == status["resources"]["requests"] == {"cpu": "1"}
    assert status["volumeMounts"] == [{**mount, "recursiveReadOnly": "Disabled"}]


def test_a_reason_that_is_shown_for_a_moment_is_looked_at_again() -> None:
    courses = {"a": Course(problem=problem("ErrImagePull", ago=0.5, due=9)), "b": running()}
    assert next_change(courses, now=NOW) == NOW + seconds(0.5)
    assert next_change({"a": Course(problem=problem("ErrImagePull", ago=2, due=9))}, now=NOW) is None


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        ({"exit_code": 0}, 0, "Completed"),
        ({"exit_code": 2}, 2, "Error"),
        ({"exit_code": 137, "signal": 9}, 137, "Error"),
        ({"exit_code": 137, "signal": 9, "is_out_of_memory": True}, 137, "OOMKilled"),
    ],
)
def test_how_a_run_ended(more: dict[str, Any], code: int, reason: str) -> None:
    state = ContainerState(id="c", sandbox="u-1", name="main", attempt=0, started=1.0, finished=2.5, **more)
    end = end_of(state, "words")
    assert (end.exit_code, end.reason, end.message, end.at.timestamp()) == (code, reason, "words", 2.5)


class TestLastWords:
    """What a container had to say about its end."""

    def words(self, folder: Path, *, policy: str = "File", code: int = 1) -> str:
        container = ContainerDetails(name="main", termination_message_policy=policy)
        return last_words(container, code, file=folder / "file", log=folder / "log")

    def test_are_in_a_file(self, tmp_path: Path) -> None:
        assert self.words(tmp_path) == ""
        (tmp_path / "file").write_text("well\n")
        assert self.words(tmp_path) == "well\n"
        (tmp_path / "file").write_text("x" * 5000 + "end")
        assert len(self.words(tmp_path)) == 4096
        assert self.words(tmp_path).endswith("end")

    def test_are_the_end_of_the_log_where_it_failed_and_may_say_so(self, tmp_path: Path) -> None:
        records = [f"2026-01-01T12:00:00.000000000Z stdout F line {number}" for number in range(200)]
        records.append("2026-01-01T12:00:00.000000000Z stderr P cut")
        (tmp_path / "log").write_text("\n".join(records) + "\n")
        assert self.words(tmp_path) == ""
        assert self.words(tmp_path, policy="FallbackToLogsOnError", code=0) == ""
        found = self.words(tmp_path, policy="FallbackToLogsOnError").splitlines()
        assert (len(found), found[-2:]) == (80, ["line 199", "cut"])

    def test_are_not_read_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "file").symlink_to("/etc/passwd")
        assert self.words(tmp_path) == ""


def test_an_attempt_without_a_run_is_not_counted() -> None:
    course = Course(former=Run(attempt=4, started=NOW, end=None))
    assert (course.restarts, course.next_attempt) == (4, 5)
