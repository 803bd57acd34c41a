"""How pods are printed: what a pod is doing, in a word made of its phase, its conditions and its containers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age
from shoal.cluster.apiserver.tables.printer import AGE, NAME, Printer, Printers, column, metadata_of, wide
from shoal.cluster.apiserver.tables.wording import NONE

_ROW_CONDITIONS = {
    "Succeeded": [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ],
    "Failed": [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
}
_NO_CONDITIONS: list[dict[str, str]] = []


def pod_conditions(pod: Object) -> list[dict[str, str]]:
    """What the row of a pod says of it: whether it is over, so that clients may hide it."""
    return _ROW_CONDITIONS.get((pod.get("status") or {}).get("phase") or "", _NO_CONDITIONS)


def pod_cells(pod: Object, now: datetime) -> list[Any]:
    """The row of a pod."""
    metadata, spec, status = metadata_of(pod), pod.get("spec") or {}, pod.get("status") or {}
    phase = status.get("phase") or ""
    conditions: dict[str, str] = {}
    is_ready = False
    reason = status.get("reason") or phase
    for condition in status.get("conditions") or ():
        kind = condition.get("type")
        conditions.setdefault(kind, condition.get("status"))
        if kind == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
        is_ready |= kind == "Ready" and condition.get("status") == "True"

    starting = _Starting(spec.get("initContainers") or (), status.get("initContainerStatuses") or ())
    ready, restarts, last_restart = starting.ready, starting.restarts, starting.last_restart
    if starting.reason:
        reason = starting.reason
    if not starting.reason or conditions.get("Initialized") == "True":
        running = _Running(status.get("containerStatuses") or (), reason, is_ready=is_ready)
        reason = running.reason
        ready += running.ready
        restarts = starting.sidecar_restarts + running.restarts
        last_restart = max(starting.last_sidecar_restart, running.last_restart)

    if metadata.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Failed", "Succeeded"):
            reason = "Terminating"
    restarted = f"{restarts} ({age(last_restart, now)} ago)" if restarts and last_restart else str(restarts)
    addresses = status.get("podIPs")
    gates = spec.get("readinessGates")
    return [
        metadata.get("name") or "",
        f"{ready}/{len(spec.get('containers') or ()) + starting.sidecars}",
        reason,
        restarted,
        age(metadata.get("creationTimestamp"), now),
        status.get("podIP") or (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates_text(gates, conditions) if gates else NONE,
    ]


class _Starting:
    """What the init containers say. The first that is neither done nor a started sidecar tells how far the pod came."""

    __slots__ = ("last_restart", "last_sidecar_restart", "ready", "reason", "restarts", "sidecar_restarts", "sidecars")

    def __init__(self, containers: Any, statuses: Any) -> None:
        sidecars = {container.get("name") for container in containers if container.get("restartPolicy") == "Always"}
        self.sidecars = sum(container.get("restartPolicy") == "Always" for container in containers) if sidecars else 0
        self.ready = self.restarts = self.sidecar_restarts = 0
        self.last_restart = self.last_sidecar_restart = ""
        self.reason = ""
        for index, container in enumerate(statuses):
            restarts, last_restart = container.get("restartCount") or 0, _finished(container)
            is_sidecar = container.get("name") in sidecars
            self.restarts += restarts
            self.last_restart = max(self.last_restart, last_restart)
            if is_sidecar:
                self.sidecar_restarts += restarts
                self.last_sidecar_restart = max(self.last_sidecar_restart, last_restart)
            state = container.get("state") or {}
            terminated = state.get("terminated")
            if terminated is not None and not terminated.get("exitCode"):
                continue
            if is_sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            waiting = (state.get("waiting") or {}).get("reason")
            if terminated is not None:
                self.reason = f"Init:{_ending(terminated)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{index}/{len(containers)}"
            return


class _Running:
    """What the containers say. The first of them that waits or has ended gives the pod's reason."""

    __slots__ = ("last_restart", "ready", "reason", "restarts")

    def __init__(self, statuses: Any, reason: str, *, is_ready: bool) -> None:
        self.ready = self.restarts = 0
        self.last_restart = ""
        error = ""
        for container in reversed(statuses):
            self.restarts += container.get("restartCount") or 0
            self.last_restart = max(self.last_restart, _finished(container))
            state = container.get("state") or {}
            terminated = state.get("terminated")
            if waiting := (state.get("waiting") or {}).get("reason"):
                reason = waiting
            elif terminated is not None:
                reason = _ending(terminated)
                if terminated.get("exitCode"):
                    error = reason
            elif container.get("ready") and state.get("running") is not None:
                self.ready += 1
        if reason == "Completed":
            if self.ready and is_ready:
                reason = "Running"
            elif error:
                reason = error
            elif self.ready:
                reason = "NotReady"
        self.reason = reason


def _finished(container: Object) -> str:
    """When the container's last run ended; timestamps of stored objects compare as texts."""
    terminated = (container.get("lastState") or {}).get("terminated")
    return (terminated.get("finishedAt") or "") if terminated else ""


def _ending(terminated: Object) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _gates_text(gates: Any, conditions: dict[str, str]) -> str:
    return f"{sum(conditions.get(gate.get('conditionType')) == 'True' for gate in gates)}/{len(gates)}"


PRINTERS: Printers = {
    ("", "Pod"): Printer(
        [
            NAME,
            column("Ready", "Containers that are ready, of those that are to run."),
            column("Status", "What the pod is doing, or what keeps it from it."),
            column("Restarts", "How often its containers were restarted, and when last."),
            AGE,
            wide("IP", "The pod's first address."),
            wide("Node", "The node that the pod is bound to."),
            wide("Nominated Node", "The node on which room is being made for the pod."),
            wide("Readiness Gates", "Conditions that hold, of those that readiness waits for."),
        ],
        pod_cells,
    )
}
