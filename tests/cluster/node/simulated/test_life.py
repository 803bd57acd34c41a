"""The steps of a simulated pod's life, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.cluster.node.crash_loop import rest_before_restart
from shoal.cluster.node.simulated.life import Place, Step, next_step, stops_at
from shoal.cluster.node.simulated.rules import Rules
from tests.support.builders.pods import a_pod

T0 = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
PLACE = Place(host_ip="10.192.0.1", pod_ip="10.244.0.1")
ENDING = a_pod(restartPolicy="Never")
LASTING = a_pod(namespace="default", uid="u-1", restartPolicy="Always")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def after(pod: Pod, step: Step) -> Pod:
    """The pod with the step's report as its status."""
    report = step.report
    status = msgspec.structs.replace(
        pod.status,
        phase=report.phase,
        reason=report.reason,
        start_time=report.start_time,
        container_statuses=list(report.containers),
        init_container_statuses=list(report.init_containers),
        pod_ip=report.pod_ip,
    )
    return msgspec.structs.replace(pod, status=status)


def step_at(pod: Pod, rules: Rules, seconds: float, *, failed_before: int = 0) -> Step:
    return next_step(pod, rules, PLACE, now=at(seconds), failed_before=failed_before)


def test_a_life_with_all_its_times() -> None:
    rules = Rules(start_delay=5, ready_delay=3, run_time=20)
    pod = ENDING
    story = []
    moment: float = 0
    while True:
        step = step_at(pod, rules, moment)
        pod = after(pod, step)
        story.append((moment, step.report.phase, step.report.containers[0].ready))
        if step.wake is None:
            break
        moment = (step.wake - T0).total_seconds()
    assert story == [
        (0, "Pending", False),
        (5, "Running", False),
        (8, "Running", True),
        (25, "Succeeded", False),
    ]


def test_a_process_that_comes_late_takes_the_step_that_is_due() -> None:
    rules = Rules(run_time=20)
    pod = after(ENDING, step_at(ENDING, rules, 0))
    step = step_at(pod, rules, 3600)
    ended = step.report.containers[0].state.terminated
    assert ended is not None
    assert (step.report.phase, ended.started_at, ended.finished_at) == ("Succeeded", T0, at(3600))


def test_a_step_that_was_taken_is_not_taken_again() -> None:
    rules = Rules(ready_delay=10)
    pod = after(ENDING, step_at(ENDING, rules, 0))
    again = step_at(pod, rules, 4)
    assert list(again.report.containers) == pod.status.container_statuses
    assert again.wake == at(10)


@pytest.mark.parametrize(("restarts", "seconds"), list(enumerate([0, 10, 20, 40, 80, 160, 300, 300])))
def test_each_restart_takes_longer(restarts: int, seconds: int) -> None:
    assert rest_before_restart(restarts) == seconds


def test_a_container_that_goes_on_failing_rests_before_each_restart() -> None:
    rules = Rules(run_time=1, outcome="Failed")
    pod = LASTING
    story: list[tuple[float, str, int]] = []
    moment: float = 0
    while moment < 50:
        step = step_at(pod, rules, moment)
        pod = after(pod, step)
        state = step.report.containers[0].state
        shown = "running" if state.running else state.waiting.reason if state.waiting else "ended"
        story.append((moment, shown, step.report.containers[0].restart_count))
        assert step.report.phase == "Running"
        assert step.wake is not None
        moment = (step.wake - T0).total_seconds()
    assert story == [
        (0, "running", 0),
        (1, "running", 1),
        (2, "CrashLoopBackOff", 1),
        (12, "running", 2),
        (13, "CrashLoopBackOff", 2),
        (33, "running", 3),
        (34, "CrashLoopBackOff", 3),
    ]
    waiting = pod.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.message == "back-off 40s restarting failed container=main pod=web_default(u-1)"


@pytest.mark.parametrize(("failed_before", "phase"), [(0, "Failed"), (1, "Failed"), (2, "Succeeded"), (3, "Succeeded")])
def test_the_first_attempts_fail(failed_before: int, phase: str) -> None:
    rules = Rules(run_time=1, fail_first=2)
    pod = after(ENDING, step_at(ENDING, rules, 0))
    assert step_at(pod, rules, 1, failed_before=failed_before).report.phase == phase


def test_an_eviction_ends_the_pod_as_a_whole() -> None:
    rules = Rules(run_time=1, outcome="Evicted")
    pod = after(LASTING, step_at(LASTING, rules, 0))
    report = step_at(pod, rules, 1).report
    assert (report.phase, report.reason) == ("Failed", "Evicted")
    assert report.disruption is not None
    assert report.disruption.reason == "TerminationByKubelet"


def test_a_deadline_counts_from_the_start_of_the_pod() -> None:
    rules = Rules(start_delay=100)
    pod = a_pod(restartPolicy="Never", activeDeadlineSeconds=30)
    step = step_at(pod, rules, 0)
    assert step.wake == at(30)
    late = step_at(after(pod, step), rules, 30)
    assert (late.report.phase, late.report.reason, late.wake) == ("Failed", "DeadlineExceeded", None)


def test_several_containers_and_sidecars_end_together() -> None:
    init = ["prepare", {"name": "proxy", "restartPolicy": "Always"}]
    pod = a_pod(containers=["a", "b"], init=init, restartPolicy="Never")
    rules = Rules(run_time=5)
    pod = after(pod, step_at(pod, rules, 0))
    assert pod.status.init_container_statuses[0].state.terminated is not None
    assert pod.status.init_container_statuses[1].state.running is not None
    report = step_at(pod, rules, 5).report
    assert report.phase == "Succeeded"
    assert all(status.state.terminated for status in (*report.containers, *report.init_containers))


@pytest.mark.parametrize(
    ("stop_time", "phase", "seconds"), [(0, "Running", 0), (5, "Running", 5), (99, "Running", 30), (5, "Pending", 0)]
)
def test_a_pod_stops_at_once_or_within_its_grace(stop_time: float, phase: str, seconds: float) -> None:
    pod = a_pod(phase=phase, deleted=at(30), metadata={"deletionGracePeriodSeconds": 30}, restartPolicy="Never")
    assert stops_at(pod, Rules(stop_time=stop_time)) == at(seconds)


def test_a_step_within_the_second_of_the_start_does_not_move_the_start() -> None:
    """The wire knows whole seconds: what is remembered beside it is the moment of the start, not of a later step."""
    rules = Rules(ready_delay=0.3, run_time=0.8)
    moments = [at(0.1)]

    def exactly(second: datetime) -> datetime:
        return moments[-1] if moments[-1].replace(microsecond=0) == second else second

    pod = ENDING
    story = []
    for seconds in (0.1, 0.4, 0.5, 0.9):
        step = next_step(pod, rules, PLACE, now=at(seconds), exactly=exactly, failed_before=0)
        if step.begins:
            moments.append(at(seconds))
        pod = after(pod, step)
        story.append((step.begins, step.report.phase, step.report.containers[0].ready))
    assert story == [
        (True, "Running", False),
        (False, "Running", True),
        (False, "Running", True),
        (False, "Succeeded", False),
    ]
