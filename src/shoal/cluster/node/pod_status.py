"""The status of a pod as a kubelet reports it, from what its containers do: phase, conditions, container statuses.

An agent says what it sees in a ``Report``; ``status_patch`` gives the strategic merge patch that makes the pod's status
say so, and nothing where it does already. Conditions that others own are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from shoal.api.core import FAILED, PENDING, RUNNING, SUCCEEDED, Container, ContainerStatus, Pod, PodCondition
from shoal.api.core.pod_details import ContainerDetails, ContainerStatusDetails, PodDetails, RestartRule
from shoal.api.core.pods import ContainerState
from shoal.api.meta import format_time

CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The conditions that a kubelet owns, in the order in which it writes them."""


class Identity(NamedTuple):
    """What a container is called by what runs it."""

    container_id: str
    image_id: str
    more: Mapping[str, Any] = {}
    """What else the agent knows of it, in the words of the wire."""


Identify = Callable[[Container, int], Identity]
"""The identity of a container after so many restarts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a pod is on its node; times are whole seconds, as on the wire."""

    phase: str
    start_time: datetime
    containers: Sequence[ContainerStatus]
    init_containers: Sequence[ContainerStatus] = ()
    ephemeral_containers: Sequence[ContainerStatus] = ()
    host_ip: str
    pod_ip: str = ""
    has_sandbox: bool | None = None
    """Whether containers could be started now; None tells it from the address."""
    reason: str = ""
    message: str = ""
    disruption: PodCondition | None = None
    """Why the pod was ended from outside, where it was."""


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on running beside the main ones."""
    return container.restart_policy == "Always"


def restarts_after(pod: Pod, exit_code: int, container: Container | None = None) -> bool:
    """Whether a container that ended so is started again; without one, whether the pod's own policy says so."""
    if container is not None and restart_rule(container, exit_code) is not None:
        return True
    policy = (container.restart_policy if container is not None else "") or pod.spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def restart_rule(container: Container, exit_code: int) -> RestartRule | None:
    """The first of a container's own rules that is meant for such an end."""
    rules = container.restart_policy_rules if isinstance(container, ContainerDetails) else ()
    for rule in rules:
        codes = rule.exit_codes
        if codes is not None and (exit_code in codes.values) == (codes.operator == "In"):
            return rule
    return None


def is_started(status: ContainerStatus) -> bool:
    """Whether a container runs and has passed its startup probe, as far as anybody asked it."""
    known = status.started if isinstance(status, ContainerStatusDetails) else None
    return status.state.running is not None and known is not False


def phase_of(
    pod: Pod,
    containers: Sequence[ContainerStatus],
    init_containers: Sequence[ContainerStatus] = (),
    *,
    is_over: bool = False,
) -> str:
    """The phase that containers in such states make together; ``is_over`` means that none will be started again."""
    initial = {status.name: status for status in init_containers}
    begins, is_prepared = False, True
    for container in pod.spec.init_containers:
        status = initial.get(container.name) or ContainerStatus(name=container.name)
        code = _last_code(status)
        if is_sidecar(container):
            begins = begins or (not is_started(status) and (status.state.running is not None or code is None))
        elif code and not restarts_after(pod, code, container):
            return FAILED
        elif code != 0:
            is_prepared = False
    known = {status.name: status for status in containers}
    mains = [known.get(one.name) or ContainerStatus(name=one.name) for one in pod.spec.containers]
    has_begun = any(status.state.running is not None or _last_code(status) is not None for status in mains)
    if not is_prepared or (begins and not has_begun):
        return _ended(mains) if is_over else PENDING
    if any(status.state.running is None and _last_code(status) is None for status in mains):
        return _ended(mains) if is_over else PENDING
    if any(status.state.running is not None for status in (*mains, *init_containers)):
        return RUNNING  # sidecars are ended after the last main container
    if is_over or not any(
        restarts_after(pod, _last_code(status) or 0, container)
        for container, status in zip(pod.spec.containers, mains, strict=True)
    ):
        return _ended(mains)
    return RUNNING


def _ended(mains: Sequence[ContainerStatus]) -> str:
    """The phase of a pod that has ended: what never ran has failed."""
    return FAILED if any(_last_code(status) != 0 for status in mains) else SUCCEEDED


def _last_code(status: ContainerStatus) -> int | None:
    """How a container that does not run ended last; None while it runs, and where it never did."""
    ended = status.state.terminated or (status.last_state.terminated if status.state.running is None else None)
    return None if ended is None else ended.exit_code


def status_patch(pod: Pod, report: Report, *, now: datetime, identify: Identify) -> dict[str, Any]:
    """The fields of the status that differ from the report, as a strategic merge patch; empty where none does."""
    seen = pod.status
    patch: dict[str, Any] = {}
    for field, before, after in (
        ("phase", seen.phase, report.phase),
        ("reason", seen.reason, report.reason),
        ("message", seen.message, report.message),
        ("observedGeneration", seen.observed_generation, pod.metadata.generation),
        ("hostIP", seen.host_ip, report.host_ip),
        ("podIP", seen.pod_ip, report.pod_ip),
    ):
        if before != after:
            patch[field] = after or None
    if "hostIP" in patch:
        patch["hostIPs"] = [{"ip": report.host_ip}]
    if "podIP" in patch:
        patch["podIPs"] = [{"ip": report.pod_ip}] if report.pod_ip else None
    if seen.start_time != report.start_time:
        patch["startTime"] = format_time(report.start_time)
    # A changed specification shows in what the containers are said to run.
    is_new = "observedGeneration" in patch
    if is_new or _differ(seen.container_statuses, report.containers):
        patch["containerStatuses"] = _statuses(pod.spec.containers, report.containers, identify)
    if is_new or _differ(seen.init_container_statuses, report.init_containers):
        statuses = _statuses(pod.spec.init_containers, report.init_containers, identify)
        if statuses or seen.init_container_statuses:
            patch["initContainerStatuses"] = statuses
    if isinstance(pod, PodDetails) and _differ(pod.status.ephemeral_container_statuses, report.ephemeral_containers):
        statuses = _statuses(pod.spec.ephemeral_containers, report.ephemeral_containers, identify)
        patch["ephemeralContainerStatuses"] = statuses
    changed = _changed_conditions(pod, conditions_of(pod, report), now)
    if changed:
        patch["$setElementOrder/conditions"] = [{"type": condition["type"]} for condition in _ordered(pod, changed)]
        patch["conditions"] = changed
    return patch


def conditions_of(pod: Pod, report: Report) -> list[PodCondition]:
    """The conditions that a kubelet owns, without their times, and that of a disruption where there is one."""
    is_finished = report.phase in (SUCCEEDED, FAILED)
    has_sandbox = (report.has_sandbox if report.has_sandbox is not None else bool(report.pod_ip)) and not is_finished
    unready = _unready(pod, report)
    conditions = [
        _condition(pod, "PodReadyToStartContainers", has_sandbox),
        _initialized(pod, report),
        _ready(pod, unready),
        _condition(pod, "ContainersReady", not unready[0], *unready),
        _condition(pod, "PodScheduled", True),
    ]
    return conditions if report.disruption is None else [report.disruption, *conditions]


def _unready(pod: Pod, report: Report) -> tuple[str, str]:
    """Why not all containers are ready, as reason and message; both empty where they are."""
    if report.phase == SUCCEEDED:
        return "PodCompleted", ""
    if report.phase == FAILED:
        return "PodFailed", ""
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    names = [status.name for status in report.init_containers if status.name in sidecars and not status.ready]
    names += [status.name for status in report.containers if not status.ready]
    return ("ContainersNotReady", f"containers with unready status: [{' '.join(names)}]") if names else ("", "")


def _initialized(pod: Pod, report: Report) -> PodCondition:
    if report.phase == SUCCEEDED:
        return _condition(pod, "Initialized", True, "PodCompleted")
    begun = any(
        status.state.running or status.state.terminated or status.last_state.terminated for status in report.containers
    )
    sidecars = {container.name for container in pod.spec.init_containers if is_sidecar(container)}
    missing = [
        status.name
        for status in report.init_containers
        if not (is_started(status) if status.name in sidecars else status.ready)
    ]
    if begun or not missing:
        return _condition(pod, "Initialized", True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return _condition(pod, "Initialized", False, "ContainersNotInitialized", message)


def _ready(pod: Pod, unready: tuple[str, str]) -> PodCondition:
    if unready[0]:
        return _condition(pod, "Ready", False, *unready)
    problems = []
    for gate in pod.spec.readiness_gates:
        wanted = gate.get("conditionType", "")
        found = next((one for one in pod.status.conditions if one.type == wanted), None)
        if found is None:
            problems.append(f'corresponding condition of pod readiness gate "{wanted}" does not exist.')
        elif found.status != "True":
            problems.append(f'the status of pod readiness gate "{wanted}" is not "True", but {found.status}')
    return _condition(pod, "Ready", not problems, "ReadinessGatesNotReady" if problems else "", ", ".join(problems))


def _condition(pod: Pod, kind: str, holds: bool, reason: str = "", message: str = "") -> PodCondition:
    status: Any = "True" if holds else "False"
    return PodCondition(
        type=kind, status=status, reason=reason, message=message, observed_generation=pod.metadata.generation
    )


def _changed_conditions(pod: Pod, wanted: Iterable[PodCondition], now: datetime) -> list[dict[str, Any]]:
    held = {condition.type: condition for condition in pod.status.conditions}
    changed = []
    for condition in wanted:
        before = held.get(condition.type)
        if before is not None and _said(before) == _said(condition):
            continue
        entry: dict[str, Any] = {"type": condition.type, "status": condition.status}
        if before is None or before.status != condition.status or before.last_transition_time is None:
            entry["lastTransitionTime"] = format_time(now)
        for field, old, new in (
            ("reason", before.reason if before else "", condition.reason),
            ("message", before.message if before else "", condition.message),
            ("observedGeneration", before.observed_generation if before else 0, condition.observed_generation),
        ):
            if old != new:
                entry[field] = new or None
        changed.append(entry)
    return changed


def _ordered(pod: Pod, changed: Iterable[dict[str, Any]]) -> Iterable[dict[str, str]]:
    """Others' conditions first, as they stand, then those of a kubelet in its order."""
    types = dict.fromkeys(condition.type for condition in pod.status.conditions)
    types |= dict.fromkeys(entry["type"] for entry in changed)
    foreign = [kind for kind in types if kind not in CONDITIONS]
    return [{"type": kind} for kind in [*foreign, *(kind for kind in CONDITIONS if kind in types)]]


def _said(condition: PodCondition) -> tuple[str, str, str, int]:
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _differ(before: Sequence[ContainerStatus], after: Sequence[ContainerStatus]) -> bool:
    return len(before) != len(after) or any(
        old is not new
        and (old.name, old.ready, old.restart_count, old.state, old.last_state, is_started(old))
        != (new.name, new.ready, new.restart_count, new.state, new.last_state, is_started(new))
        for old, new in zip(before, after, strict=True)
    )


def _statuses(
    containers: Sequence[Container], statuses: Sequence[ContainerStatus], identify: Identify
) -> list[dict[str, Any]]:
    known = {container.name: container for container in containers}
    return [_status(known[status.name], status, identify) for status in statuses if status.name in known]


def _status(container: Container, status: ContainerStatus, identify: Identify) -> dict[str, Any]:
    has_begun = status.state.running or status.state.terminated or status.last_state.terminated
    own = identify(container, status.restart_count) if has_begun else Identity("", "")
    # One that waits for its restart is still counted as the one that ended.
    is_again = status.state.running is not None or status.state.terminated is not None
    former = identify(container, status.restart_count - 1) if is_again and status.restart_count else own
    entry = {
        "name": status.name,
        "image": container.image,
        "imageID": own.image_id,
        "ready": status.ready,
        "started": is_started(status),
        "restartCount": status.restart_count,
        "state": _state(status.state, own),
        "lastState": _state(status.last_state, former),
    }
    return entry | ({"containerID": own.container_id} if own.container_id else {}) | dict(own.more)


def _state(state: ContainerState, identity: Identity) -> dict[str, Any]:
    if state.running is not None:
        return {"running": {"startedAt": _time(state.running.started_at)}}
    if state.waiting is not None:
        waiting = {"reason": state.waiting.reason, "message": state.waiting.message}
        return {"waiting": {key: value for key, value in waiting.items() if value}}
    if state.terminated is None:
        return {}
    ended = state.terminated
    entry: dict[str, Any] = {"exitCode": ended.exit_code, "reason": ended.reason, "message": ended.message}
    entry |= {"startedAt": _time(ended.started_at), "finishedAt": _time(ended.finished_at)}
    entry |= {"containerID": identity.container_id}
    return {"terminated": {key: value for key, value in entry.items() if value is not None and value != ""}}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
