"""What is to be done with containers next, as tables; and what never happens, whatever they do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.pod_status import is_sidecar
from shoal.cluster.node.process.pods.course import LIVENESS, STARTUP, Course, End, Problem, Run
from shoal.cluster.node.process.pods.decisions import Plan, plan
from tests.cluster.node.process.builders import a_local_pod
from tests.cluster.node.process.pods.builders import NOW, ended, running, seconds

STARTING = Course(is_starting=True)
NOTHING = Course()


def planned(pod: PodDetails, *, is_ending: bool = False, now: datetime = NOW, **courses: Course) -> Plan:
    return plan(pod, courses, now=now, began=NOW - seconds(5), is_ending=is_ending)


TWO_STEPS = a_local_pod(init=("one", "two"))
WITH_SIDECAR = a_local_pod(init=("side*", "one"))


@pytest.mark.parametrize(
    ("pod", "courses", "starts"),
    [
        (a_local_pod(), {}, ("main",)),
        (a_local_pod("a", "b"), {}, ("a",)),
        (a_local_pod("a", "b"), {"a": STARTING}, ()),
        (a_local_pod("a", "b"), {"a": running()}, ("b",)),
        (a_local_pod(), {"main": running()}, ()),
        (TWO_STEPS, {}, ("one",)),
        (TWO_STEPS, {"one": STARTING}, ()),
        (TWO_STEPS, {"one": running()}, ()),
        (TWO_STEPS, {"one": ended(0)}, ("two",)),
        (TWO_STEPS, {"one": ended(1)}, ("one",)),
        (TWO_STEPS, {"one": ended(0), "two": ended(0)}, ("main",)),
        (TWO_STEPS, {"two": ended(0)}, ("main",)),
        (WITH_SIDECAR, {"side": running(is_started=False)}, ()),
        (WITH_SIDECAR, {"side": running()}, ("one",)),
        (WITH_SIDECAR, {"side": running(), "one": ended(0)}, ("main",)),
        (WITH_SIDECAR, {"side": ended(0), "one": running()}, ("side",)),
        (WITH_SIDECAR, {"side": ended(0), "one": ended(0), "main": running()}, ("side",)),
    ],
    ids=[
        "a new pod", "the first of two", "one at a time", "the second of two", "all is well",
        "the first init container", "it is being started", "it runs", "the second after the first",
        "the first again", "all are done", "the last one tells", "a sidecar that has not started", "one that has",
        "beside it", "a sidecar again while others initialise", "a sidecar again while others run",
    ],
)  # fmt: skip
def test_containers_are_started_in_their_order(
    pod: PodDetails, courses: dict[str, Course], starts: tuple[str, ...]
) -> None:
    assert plan(pod, courses, now=NOW, began=NOW).starts == starts


RULES = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]


@pytest.mark.parametrize(
    ("policy", "container", "code", "is_again"),
    [
        ("Always", {}, 0, True),
        ("Always", {}, 1, True),
        ("OnFailure", {}, 0, False),
        ("OnFailure", {}, 1, True),
        ("Never", {}, 1, False),
        ("Never", {"restartPolicy": "OnFailure"}, 1, True),
        ("Always", {"restartPolicy": "Never"}, 1, False),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": RULES}, 42, True),
        ("Never", {"restartPolicy": "Never", "restartPolicyRules": RULES}, 41, False),
    ],
)
def test_a_container_is_started_again_by_its_own_policy_or_the_pods(
    policy: str, container: dict[str, Any], code: int, is_again: bool
) -> None:
    pod = a_local_pod({"name": "main", **container}, restartPolicy=policy)
    found = planned(pod, main=ended(code))
    assert (found.starts, found.is_over) == ((("main",), False) if is_again else ((), True))


@pytest.mark.parametrize(("attempt", "rest"), [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 300), (50, 300)])
def test_it_rests_longer_after_each_crash(attempt: int, rest: int) -> None:
    pod = a_local_pod()
    early = planned(pod, main=ended(1, attempt, ago=max(0, rest - 1)))
    assert (early.starts, early.wake) == (((), NOW + seconds(1)) if rest else (("main",), None))
    assert planned(pod, main=ended(1, attempt, ago=rest)).starts == ("main",)


def test_who_ran_for_long_starts_again_at_once() -> None:
    course = running(5, since=601).ended(End(at=NOW, exit_code=1, reason="Error"))
    assert planned(a_local_pod(), main=course).starts == ("main",)


def test_nobody_rests_longer_because_the_clock_was_set_back() -> None:
    an_hour_ago = NOW - seconds(3600)
    assert planned(a_local_pod(), main=ended(1, 3), now=an_hour_ago).starts == ("main",)
    problem = Problem(reason="ErrImagePull", message="", at=NOW, due=NOW + seconds(10))
    assert planned(a_local_pod(), main=Course(problem=problem), now=an_hour_ago).starts == ("main",)


def test_what_could_not_be_started_is_tried_again_when_it_is_due() -> None:
    problem = Problem(reason="ErrImagePull", message="", at=NOW, due=NOW + seconds(10))
    assert planned(a_local_pod(), main=Course(problem=problem)) == Plan(wake=NOW + seconds(10))


@pytest.mark.parametrize(
    ("policy", "probe", "message"),
    [
        ("Always", LIVENESS, "Container main failed liveness probe, will be restarted"),
        ("OnFailure", STARTUP, "Container main failed startup probe, will be restarted"),
        ("Never", LIVENESS, "Container main failed liveness probe"),
    ],
)
def test_who_fails_a_probe_is_ended(policy: str, probe: str, message: str) -> None:
    [stop] = planned(a_local_pod(restartPolicy=policy), main=running(failed=probe)).stops
    assert (stop.container, stop.message, stop.probe) == ("main", message, probe)
    assert planned(a_local_pod(restartPolicy=policy), main=running(failed=probe, is_stopping=True)).stops == ()


def test_who_is_given_another_image_is_started_again_with_it_whatever_the_policy_says() -> None:
    pod = a_local_pod(restartPolicy="Never")
    old = running()
    assert old.run is not None
    course = replace(old, run=replace(old.run, image="debian"))
    [stop] = planned(pod, main=course).stops
    assert (stop.message, stop.is_replaced) == ("Container main definition changed, will be restarted", True)
    gone = replace(course, is_replaced=True).ended(End(at=NOW, exit_code=143, reason="Error"))
    assert planned(pod, main=gone).starts == ("main",)


def test_when_the_last_main_container_is_done_the_rest_is_ended_in_reverse_order() -> None:
    pod = a_local_pod(init=("near*", "far*"), restartPolicy="Never")
    found = planned(pod, near=running(), far=running(), main=ended(0))
    assert [(stop.container, stop.after) for stop in found.stops] == [("far", ("main",)), ("near", ("main", "far"))]
    assert not found.is_over
    assert planned(pod, near=ended(0), far=ended(143), main=ended(0)).is_over


def test_a_pod_that_is_ended_starts_nothing_more_and_is_over_when_nothing_runs() -> None:
    pod = a_local_pod("a", "b", init=("side*",))
    found = planned(pod, is_ending=True, side=running(), a=running(), b=ended(1))
    assert (found.starts, [stop.container for stop in found.stops], found.is_over) == ((), ["a", "side"], False)
    assert not planned(pod, is_ending=True, side=ended(0), a=STARTING).is_over
    assert planned(pod, is_ending=True, side=ended(0), a=ended(0)).is_over
    assert planned(pod, is_ending=True).is_over


def test_a_pod_that_cannot_be_initialised_is_over() -> None:
    pod = a_local_pod(init=("side*", "one"), restartPolicy="Never")
    assert [stop.container for stop in planned(pod, side=running(), one=ended(1)).stops] == ["side"]
    assert planned(pod, side=ended(0), one=ended(1)).is_over


def test_a_pod_that_is_done_is_not_initialised_again() -> None:
    pod = a_local_pod(init=("one",), restartPolicy="Never")
    assert planned(pod, one=Course(former=ended(0).run), main=ended(137)).is_over


def test_the_deadline_counts_from_when_the_pod_was_taken_in() -> None:
    assert planned(a_local_pod(activeDeadlineSeconds=6), main=running()).wake == NOW + seconds(1)
    assert planned(a_local_pod(activeDeadlineSeconds=5), main=running()).is_past_deadline


def test_ephemeral_containers_run_once_whatever_the_others_do() -> None:
    pod = a_local_pod(init=("one",), ephemeralContainers=[{"name": "debug"}])
    assert planned(pod, one=STARTING).starts == ("debug",)
    assert planned(pod, one=running(), debug=ended(1)).starts == ()


def test_a_container_may_ask_for_all_to_begin_again() -> None:
    rules = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [88]}}]
    main = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": rules}
    pod = a_local_pod(main, "other", init=("one",), restartPolicy="Never")
    found = planned(pod, one=ended(0), main=ended(88), other=running())
    assert [(stop.container, stop.at_once) for stop in found.stops] == [("other", True)]
    assert not found.begins_anew
    assert planned(pod, one=ended(0), main=ended(88), other=ended(137)).begins_anew
    resting = planned(pod, one=ended(0), main=ended(88, 1), other=ended(137))
    assert (resting.begins_anew, resting.wake) == (False, NOW + seconds(10))


# What never happens


@st.composite
def pods(draw: st.DrawFn) -> PodDetails:
    init = draw(st.lists(st.sampled_from(["", "*"]), max_size=3))
    names = [f"i{number}{kind}" for number, kind in enumerate(init)]
    mains = [f"m{number}" for number in range(draw(st.integers(1, 2)))]
    return a_local_pod(*mains, init=tuple(names), restartPolicy=draw(st.sampled_from(["Always", "OnFailure", "Never"])))


@given(pods(), st.data())
def test_rules_hold_whatever_containers_do(pod: PodDetails, data: st.DataObject) -> None:
    initial, mains = pod.spec.init_containers, pod.spec.containers
    sidecars = {container.name for container in initial if is_sidecar(container)}
    courses = {container.name: NOTHING for container in (*initial, *mains)}
    is_ending = False
    now = NOW
    for _ in range(40):
        found = plan(pod, courses, now=now, began=NOW, is_ending=is_ending)
        busy = [name for name, course in courses.items() if course.is_running or course.is_starting]
        assert not (found.is_over and (busy or found.starts)), "over means over"
        assert busy or found.starts or found.wake or found.is_over, "a pod that waits is woken"
        for name in found.starts:
            course = courses[name]
            assert not course.is_running, f"{name} runs already"
            assert not course.is_starting, f"{name} is being started already"
            assert not is_ending, "nothing starts in a pod that is being ended"
            if name not in sidecars:
                assert course.run is None or pod.spec.restart_policy != "Never", f"{name} must not run again"
            if name.startswith("m"):
                for container in initial:
                    if container.name not in sidecars:
                        end = courses[container.name].end
                        assert end is not None, f"{container.name} has not ended before {name}"
                        assert end.exit_code == 0, f"{container.name} has failed before {name}"
            courses[name] = course.starting()
        for stop in found.stops:
            assert courses[stop.container].is_running, "only what runs is ended"
            courses[stop.container] = replace(courses[stop.container], is_stopping=True)
        if found.is_over:
            return
        now = _happens(data, courses, found, now)
        is_ending = is_ending or data.draw(st.integers(0, 9)) == 0


def _happens(data: st.DataObject, courses: dict[str, Course], found: Plan, now: datetime) -> datetime:
    """One thing that may happen to the containers of a pod."""
    busy = [name for name, course in courses.items() if course.is_running or course.is_starting]
    if not busy:
        return max(now, found.wake or now)
    name = data.draw(st.sampled_from(busy))
    course = courses[name]
    if course.is_starting:
        if data.draw(st.booleans()):
            run = Run(attempt=course.next_attempt, started=now)
            courses[name] = course.running(run, is_started=data.draw(st.booleans()), is_ready=True)
        else:
            courses[name] = course.refused(Problem(reason="X", message="", at=now, due=now + seconds(1)))
    elif not course.is_started:
        courses[name] = replace(course, is_started=True)
    elif data.draw(st.booleans()):
        courses[name] = course.ended(End(at=now, exit_code=data.draw(st.sampled_from([0, 1])), reason=""))
    else:
        courses[name] = replace(course, failed=LIVENESS)
    return now + seconds(1)
