"""Pods in every state that their table tells apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.apiserver.tables.cases import Case, Object, ago, condition, named, pod_template

_RUNNING: Object = {"startedAt": "2026-01-02T03:04:05Z"}


def pod_cases() -> Iterator[Case]:
    def pod(
        name: str,
        status: Object,
        *,
        containers: tuple[str, ...] = ("a",),
        init: tuple[str, ...] = (),
        is_deleted: bool = False,
        **spec: Any,
    ) -> Case:
        """Init containers whose name begins with ``side`` are sidecars."""
        started = [
            {"name": each, "image": "i", **({"restartPolicy": "Always"} if each.startswith("side") else {})}
            for each in init
        ]
        body = {**pod_template(*containers)["spec"], **({"initContainers": started} if init else {}), **spec}
        return Case("v1", "Pod", named(f"pod-{name}", spec=body), {"status": {"status": status}}, is_deleted)

    waiting, running, over = "Pending", "Running", "Succeeded"
    ready = [condition("Ready"), condition("Initialized")]
    yield pod("fresh", {"phase": waiting})
    yield pod("reason", {"phase": "Failed", "reason": "Evicted", "message": "x"})
    yield pod("gated", {"phase": waiting}, schedulingGates=[{"name": "test.io/gate"}])
    yield pod("unschedulable", {"conditions": [condition("PodScheduled", "False", reason="Unschedulable")]})
    yield pod(
        "running",
        {
            "phase": running,
            "conditions": ready,
            "podIP": "10.1.2.3",
            "podIPs": [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}],
            "containerStatuses": [_state("a", ready=True, running=_RUNNING), _state("b", running=_RUNNING)],
        },
        containers=("a", "b"),
    )
    restarts: dict[str, dict[str, Any]] = {
        "minutes": {"minutes": 5.3},
        "hours": {"hours": 5.21},
        "days": {"days": 3, "hours": 4},
        "years": {"days": 775},
    }
    for name, finished in restarts.items():
        last = _ended(1, reason="Error", **finished)
        restarted = _state("a", ready=True, restarts=7, last=last, running=_RUNNING)
        yield pod(f"restarted-{name}", {"phase": running, "conditions": ready, "containerStatuses": [restarted]})
    twice = [
        _state("a", restarts=2, last=_ended(1, minutes=90), running=_RUNNING),
        _state("b", restarts=3, last=_ended(2, minutes=7), waiting={"reason": "CrashLoopBackOff"}),
    ]
    yield pod("crash-loop", {"phase": running, "containerStatuses": twice}, containers=("a", "b"))
    yield pod(
        "restarts-without-a-time",
        {"phase": running, "containerStatuses": [_state("a", restarts=4, running=_RUNNING)]},
    )
    single: dict[str, Object] = {
        "waiting": {"waiting": {"reason": "ImagePullBackOff", "message": "x"}},
        "waiting-without-reason": {"waiting": {}},
        "completed": {"terminated": _ended(0, reason="Completed")},
        "error": {"terminated": _ended(3, reason="Error")},
        "exit-code": {"terminated": _ended(42)},
        "signal": {"terminated": _ended(137, signal=9)},
    }
    for name, state in single.items():
        yield pod(f"container-{name}", {"phase": running, "containerStatuses": [_state("a", **state)]})
    done, alive = _state("a", terminated=_ended(0, reason="Completed")), _state("b", ready=True, running=_RUNNING)
    failed = _state("b", terminated=_ended(1, reason="OOMKilled"))
    both = ("a", "b")
    yield pod("half-done", {"phase": running, "conditions": ready, "containerStatuses": [done, alive]}, containers=both)
    yield pod("half-done-unready", {"phase": running, "containerStatuses": [done, alive]}, containers=both)
    yield pod("done-after-error", {"phase": running, "containerStatuses": [done, failed]}, containers=both)
    yield pod("succeeded", {"phase": over, "containerStatuses": [done]})
    yield pod("failed", {"phase": "Failed", "containerStatuses": [_state("a", terminated=_ended(1, reason="Error"))]})
    yield pod("unknown", {"phase": "Unknown", "reason": "NodeLost"})

    yield pod("deleted", {"phase": running}, is_deleted=True)
    yield pod("deleted-lost", {"phase": running, "reason": "NodeLost"}, is_deleted=True)
    yield pod("deleted-done", {"phase": over, "containerStatuses": [done]}, is_deleted=True)

    inits = ("one", "two")
    first = _state("one", terminated=_ended(0, reason="Completed"))
    for name, states in {
        "none": [],
        "first": [_state("one", running=_RUNNING), _state("two", waiting={"reason": "PodInitializing"})],
        "second": [first, _state("two", running=_RUNNING)],
        "waiting": [first, _state("two", waiting={"reason": "ImagePullBackOff"})],
        "error": [_state("one", restarts=3, last=_ended(1, minutes=3), terminated=_ended(1, reason="Error"))],
        "exit-code": [_state("one", terminated=_ended(7))],
        "signal": [_state("one", terminated=_ended(139, signal=11))],
        "through": [first, _state("two", restarts=5, last=_ended(1, hours=9), terminated=_ended(0))],
    }.items():
        status = {"phase": waiting, "initContainerStatuses": states, "containerStatuses": [_state("a", waiting={})]}
        yield pod(f"init-{name}", status, init=inits)
    behind = {"initContainerStatuses": [_state("one", terminated=_ended(1))], "containerStatuses": [alive]}
    yield pod("init-late", {"phase": running, "conditions": ready, **behind}, containers=("b",), init=inits)

    side = _state("side", ready=True, started=True, restarts=2, last=_ended(1, minutes=61), running=_RUNNING)
    slow = _state("side", started=True, running=_RUNNING)
    app = _state("a", ready=True, restarts=1, last=_ended(1, minutes=200), running=_RUNNING)
    for name, states in {
        "ready": [side, _state("one", restarts=8, terminated=_ended(0))],
        "unready": [slow],
        "starting": [_state("side", started=False, running=_RUNNING)],
        "before-init": [side, _state("one", running=_RUNNING)],
        "ended": [_state("side", started=False, terminated=_ended(0))],
    }.items():
        status = {"phase": running, "conditions": [condition("Ready")], "initContainerStatuses": states}
        yield pod(f"sidecar-{name}", {**status, "containerStatuses": [app]}, init=("side", "one"))

    gates = [{"conditionType": f"test.io/{each}"} for each in "abc"]
    known = [condition("test.io/a"), condition("test.io/b", "False"), condition("Ready")]
    yield pod("gates", {"phase": running, "conditions": known}, readinessGates=gates)
    yield pod("placed", {"phase": waiting, "nominatedNodeName": "node-x"})
    yield pod("bound", {"phase": waiting}, nodeName="tables-no-such-node")


def _state(name: str, *, ready: bool = False, restarts: int = 0, last: Object | None = None, **state: Any) -> Object:
    shown = {"name": name, "image": "i", "imageID": "", "ready": ready, "restartCount": restarts}
    if "started" in state:
        shown["started"] = state.pop("started")
    return {**shown, "state": state, **({"lastState": {"terminated": last}} if last else {})}


def _ended(code: int, *, reason: str = "", signal: int = 0, **when: float) -> Object:
    return {
        "exitCode": code,
        **({"reason": reason} if reason else {}),
        **({"signal": signal} if signal else {}),
        **({"startedAt": ago(days=9), "finishedAt": ago(**when)} if when else {}),
    }
