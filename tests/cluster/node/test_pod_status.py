"""How a pod is reported: phases and conditions from the states of containers, as a kubelet has them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.core import Container, ContainerStatus, Pod
from shoal.cluster.node.pod_status import Identity, Report, conditions_of, phase_of, status_patch
from tests.support.builders.pods import a_pod

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)

RUNNING = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
BROKEN = {"terminated": {"exitCode": 1, "reason": "Error"}}
SIDECAR = {"name": "side", "restartPolicy": "Always"}
CHANGED_ONCE = a_pod(metadata={"generation": 2})


def a_status(name: str, state: dict[str, Any], *, ready: bool = False, **more: Any) -> ContainerStatus:
    return msgspec.convert({"name": name, "state": state, "ready": ready, **more}, ContainerStatus)


@pytest.mark.parametrize(
    ("policy", "states", "phase"),
    [
        ("Always", [WAITING], "Pending"),
        ("Always", [RUNNING, WAITING], "Pending"),
        ("Always", [RUNNING], "Running"),
        ("Always", [RUNNING, DONE], "Running"),
        ("Always", [DONE, BROKEN], "Running"),
        ("OnFailure", [DONE], "Succeeded"),
        ("OnFailure", [DONE, BROKEN], "Running"),
        ("Never", [DONE, DONE], "Succeeded"),
        ("Never", [DONE, BROKEN], "Failed"),
        ("Never", [RUNNING, BROKEN], "Running"),
    ],
)
def test_the_phase_follows_from_the_containers(policy: str, states: list[dict[str, Any]], phase: str) -> None:
    names = [f"c{number}" for number in range(len(states))]
    statuses = [a_status(name, state) for name, state in zip(names, states, strict=True)]
    assert phase_of(a_pod(containers=names, restartPolicy=policy), statuses) == phase


def test_a_container_that_rests_before_its_restart_keeps_the_pod_running() -> None:
    status = a_status("main", {"waiting": {"reason": "CrashLoopBackOff"}}, lastState=BROKEN)
    assert phase_of(a_pod(), [status]) == "Running"


@pytest.mark.parametrize(
    ("policy", "init", "phase"),
    [
        ("Always", RUNNING, "Pending"),
        ("Never", BROKEN, "Failed"),
        ("OnFailure", BROKEN, "Pending"),
        ("Never", DONE, "Running"),
    ],
)
def test_init_containers_come_first(policy: str, init: dict[str, Any], phase: str) -> None:
    pod = a_pod(init=["prepare"], restartPolicy=policy)
    assert phase_of(pod, [a_status("main", RUNNING)], [a_status("prepare", init)]) == phase


def test_a_sidecar_has_no_say_in_how_the_pod_ends() -> None:
    pod = a_pod(init=[SIDECAR], restartPolicy="Never")
    assert phase_of(pod, [a_status("main", DONE)], [a_status("side", BROKEN)]) == "Succeeded"


def a_report(phase: str, *containers: ContainerStatus, **more: Any) -> Report:
    return Report(
        phase=phase, start_time=NOW, containers=containers, host_ip="10.0.0.1", **{"pod_ip": "10.1.0.1", **more}
    )


def told(pod: Pod, report: Report) -> dict[str, tuple[str, str, str]]:
    return {one.type: (one.status, one.reason, one.message) for one in conditions_of(pod, report)}


def test_containers_that_are_not_ready_are_named() -> None:
    pod = a_pod(containers=["a", "b"], init=[SIDECAR])
    report = a_report(
        "Running",
        a_status("a", RUNNING, ready=True),
        a_status("b", RUNNING),
        init_containers=[a_status("side", RUNNING)],
    )
    words = ("False", "ContainersNotReady", "containers with unready status: [side b]")
    assert told(pod, report)["Ready"] == told(pod, report)["ContainersReady"] == words


def test_what_is_not_initialized_is_named() -> None:
    report = a_report("Pending", a_status("main", WAITING), init_containers=[a_status("prepare", WAITING)], pod_ip="")
    conditions = told(a_pod(init=["prepare"]), report)
    assert conditions["Initialized"] == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [prepare]",
    )
    assert conditions["PodReadyToStartContainers"][0] == "False"


@pytest.mark.parametrize(("phase", "reason"), [("Succeeded", "PodCompleted"), ("Failed", "PodFailed")])
def test_a_finished_pod_is_not_ready_and_says_why(phase: str, reason: str) -> None:
    conditions = told(a_pod(restartPolicy="Never"), a_report(phase, a_status("main", DONE)))
    assert conditions["Ready"] == conditions["ContainersReady"] == ("False", reason, "")
    assert conditions["Initialized"] == ("True", "PodCompleted" if phase == "Succeeded" else "", "")


def test_readiness_gates_are_told_apart() -> None:
    gates = [{"conditionType": "x/missing"}, {"conditionType": "x/closed"}]
    pod = a_pod(readinessGates=gates, conditions={"x/closed": "False"})
    message = told(pod, a_report("Running", a_status("main", RUNNING, ready=True)))["Ready"][2]
    assert message == (
        'corresponding condition of pod readiness gate "x/missing" does not exist., '
        'the status of pod readiness gate "x/closed" is not "True", but False'
    )


def identify(container: Container, restarts: int) -> Identity:
    return Identity(f"test://{container.name}-{restarts}", "image")


def applied(pod: Pod, patch: dict[str, Any]) -> Pod:
    """The pod after the patch, as the server would have it: lists of conditions are merged by type."""
    status = msgspec.to_builtins(pod.status)
    held = {one["type"]: one for one in status.pop("conditions", [])}
    for entry in patch.get("conditions", ()):
        merged = held.get(entry["type"], {}) | entry
        held[entry["type"]] = {key: value for key, value in merged.items() if value is not None}
    plain = {key: value for key, value in (status | patch).items() if value is not None and not key.startswith("$")}
    plain["conditions"] = [held[one["type"]] for one in patch.get("$setElementOrder/conditions", ()) or held.values()]
    return msgspec.structs.replace(pod, status=msgspec.convert(plain, type(pod.status)))


def test_what_the_status_says_already_is_not_written_again() -> None:
    pod = CHANGED_ONCE
    report = a_report("Running", a_status("main", RUNNING, ready=True))
    after = applied(pod, status_patch(pod, report, now=NOW, identify=identify))
    assert status_patch(after, report, now=LATER, identify=identify) == {}


def test_only_what_changed_is_written_and_transition_times_tell_of_transitions_alone() -> None:
    pod = CHANGED_ONCE
    unready = a_report("Running", a_status("main", RUNNING))
    pod = applied(pod, status_patch(pod, unready, now=NOW, identify=identify))
    ready = a_report("Running", a_status("main", RUNNING, ready=True))
    patch = status_patch(pod, ready, now=LATER, identify=identify)
    assert set(patch) == {"containerStatuses", "conditions", "$setElementOrder/conditions"}
    assert [one["type"] for one in patch["conditions"]] == ["Ready", "ContainersReady"]
    assert patch["conditions"][0] == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-01-01T12:00:30Z",
        "reason": None,
        "message": None,
    }


def test_a_restarted_container_points_to_the_one_before_it() -> None:
    status = a_status("main", RUNNING, ready=True, restartCount=2, lastState=BROKEN)
    patch = status_patch(CHANGED_ONCE, a_report("Running", status), now=NOW, identify=identify)
    [written] = patch["containerStatuses"]
    assert (written["containerID"], written["lastState"]["terminated"]["containerID"]) == (
        "test://main-2",
        "test://main-1",
    )


def test_conditions_of_others_come_first_and_stay() -> None:
    pod = a_pod(metadata={"generation": 2}, conditions={"PodScheduled": "True", "x/y": "True"})
    patch = status_patch(pod, a_report("Running", a_status("main", RUNNING)), now=NOW, identify=identify)
    order = [one["type"] for one in patch["$setElementOrder/conditions"]]
    assert order == ["x/y", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    assert "x/y" not in [one["type"] for one in patch["conditions"]]
