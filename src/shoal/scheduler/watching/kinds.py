"""Pods as tasks: what each asks for and where it may go. Pods that are alike share what is said of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.pods import Container, Pod
from shoal.api.meta.duration import InvalidDuration, parse_duration
from shoal.scheduler.gpu_requests import NOTHING, GpuRequest, InvalidGpuRequest, gpu_request_of
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request, Task
from shoal.scheduler.numa import Demand, demand_of
from shoal.scheduler.pod_requests import pod_requests
from shoal.scheduler.resource_lists import ONE
from shoal.scheduler.watching.needs import NO_NEED, Need

_MOST: Final = 10_000
"""Kinds that are remembered before those that no pod has any more are forgotten."""
_ASKING: Final = (
    names.GPU_FRACTION,
    names.GPU_MEMORY,
    names.GPU_FRACTION_DEVICES,
    names.GPU_FRACTION_CONTAINER,
    names.EXPECTED_RUNTIME,
)
"""Annotations that say what a pod asks for."""
_MAKING: Final = (
    "containers",
    "init_containers",
    "overhead",
    "resources",
    "node_selector",
    "affinity",
    "tolerations",
    "priority",
    "active_deadline_seconds",
)
"""Fields of a pod's spec that say what it asks for and where it may go."""
_FIRST_ROLES: Final = ("master", "launcher")
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_encode = msgspec.json.Encoder(order="sorted").encode


class Kinds:
    """What pods ask for, and where they may go: one object for all that are alike."""

    def __init__(self, resources: ResourceNames, *, reads_zones: bool = False) -> None:
        self._resources = resources
        self._reads_zones = reads_zones
        self._requests: dict[Any, Request] = {}
        self._constraints: dict[tuple[bytes, frozenset[str] | None], Constraints] = {}

    def request(self, pod: Pod, need: Need = NO_NEED) -> tuple[Request, str]:
        """What a pod asks for, and what is wrong with it."""
        problem = _old_mig_problem(pod)
        asked = pod_requests(pod)
        try:
            gpu = gpu_request_of(pod)
        except InvalidGpuRequest as wrong:
            gpu, problem = NOTHING, str(wrong)
        is_reservation = pod.metadata.namespace == names.RESERVATION_NAMESPACE
        if is_reservation:
            # The device that it holds is counted by those who share it.
            asked = {name: nano for name, nano in asked.items() if name not in names.GPUS}
            gpu = NOTHING
        numa = demand_of(pod) if self._reads_zones else None
        key = tuple(sorted(asked.items())), gpu, need.claimed_gpus, need.taken_gpus, need.attached, numa
        found = self._requests.get(key)
        if found is None:
            found = self._requests[key] = _request(asked, gpu, need, self._resources, numa)
        return found, problem

    def constraints(
        self, pod: Pod, *, nominated_node: str = "", missing: str = "", allowed: frozenset[str] | None = None
    ) -> Constraints:
        """Where a pod may go."""
        spec = pod.spec
        affinity = spec.affinity or {}
        ports = _ports([*spec.containers, *spec.init_containers])
        is_free = not (spec.node_selector or affinity or spec.tolerations or ports or nominated_node or missing)
        if is_free and allowed is None:
            return ANYWHERE
        tolerations = msgspec.to_builtins(spec.tolerations)
        key = _encode([spec.node_selector, affinity, tolerations, sorted(ports), nominated_node, missing]), allowed
        found = self._constraints.get(key)
        if found is None:
            found = self._constraints[key] = Constraints(
                node_selector=spec.node_selector,
                **_of_nodes(affinity.get("nodeAffinity") or {}),
                **_of_pods(affinity),
                tolerations=tuple(tolerations),
                ports=ports,
                nominated_node=nominated_node,
                missing=missing,
                allowed_nodes=allowed,
            )
        return found

    def forget_unused(self, tasks: Iterable[Task]) -> None:
        """Keeps only what some task has, once there is too much."""
        if len(self._requests) + len(self._constraints) < _MOST:
            return
        requests, constraints = set(), set()
        for task in tasks:
            requests.add(id(task.request))
            constraints.add(id(task.constraints))
        self._requests = {key: one for key, one in self._requests.items() if id(one) in requests}
        self._constraints = {key: one for key, one in self._constraints.items() if id(one) in constraints}


def task_of(pod: Pod, kinds: Kinds, need: Need = NO_NEED) -> Task:
    """A pod as a task; its status and place are somebody else's to say."""
    metadata = pod.metadata
    request, problem = kinds.request(pod, need)
    return Task(
        uid=metadata.uid,
        name=metadata.name,
        namespace=metadata.namespace,
        request=request,
        created=seconds(metadata.creation_timestamp),
        constraints=kinds.constraints(
            pod,
            nominated_node=pod.status.nominated_node_name,
            missing="; ".join(filter(None, (problem, need.missing))),
            allowed=need.allowed,
        ),
        labels=metadata.labels,
        subgroup=metadata.labels.get(names.SUBGROUP, ""),
        rank=rank_of(metadata.labels),
        started=seconds(pod.status.start_time),
        longest_run=longest_run(pod),
        is_reservation=metadata.namespace == names.RESERVATION_NAMESPACE,
    )


def is_same_task(before: Pod, after: Pod) -> bool:
    """Whether a pod's task would be made the same: most of what it is made of never changes, and some may."""
    return (
        before.metadata.labels == after.metadata.labels
        and before.status.nominated_node_name == after.status.nominated_node_name
        and all(before.metadata.annotations.get(one) == after.metadata.annotations.get(one) for one in _ASKING)
        and _old_mig_problem(before) == _old_mig_problem(after)
        and all(getattr(before.spec, one) == getattr(after.spec, one) for one in _MAKING)
    )


def rank_of(labels: Mapping[str, str]) -> tuple[int, int, int]:
    """Which pods of a job come first: those that lead, then those with a priority of their own, the highest first."""
    leads = labels.get("training.kubeflow.org/job-role") in _FIRST_ROLES
    is_head = labels.get("ray.io/node-type") == "head"
    return (int(not leads), int(not is_head), _task_priority(labels.get(names.TASK_PRIORITY)))


def longest_run(pod: Pod) -> float | None:
    """Seconds that a pod runs at most: until its deadline, or as long as its author says; None where nobody knows."""
    lengths = [] if pod.spec.active_deadline_seconds is None else [float(pod.spec.active_deadline_seconds)]
    try:
        said = parse_duration(pod.metadata.annotations.get(names.EXPECTED_RUNTIME, "")).seconds
    except InvalidDuration:
        return min(lengths, default=None)
    return min([*lengths, said]) if said > 0 else min(lengths, default=None)


def gpu_groups_of(pod: Pod) -> tuple[str, ...]:
    """The shared devices that a pod is on, as its labels say."""
    labels = pod.metadata.labels
    if names.GPU_GROUP in labels:
        return (labels[names.GPU_GROUP],)
    prefix = f"{names.GPU_GROUP}/"
    return tuple(sorted(value for label, value in labels.items() if label.startswith(prefix)))


def seconds(moment: datetime | None) -> float:
    """A moment as seconds since 1970; 0 where there is none."""
    return moment.timestamp() if moment is not None else 0.0


_NO_PRIORITY: Final = 2**62


def _task_priority(text: str | None) -> int:
    try:
        return -int(text) if text is not None else _NO_PRIORITY
    except ValueError:
        return _NO_PRIORITY


def _request(
    asked: Mapping[str, int], gpu: GpuRequest, need: Need, resources: ResourceNames, numa: Demand | None
) -> Request:
    amounts = {"pods": 1.0, **{resource: float(count) for resource, count in need.attached}}
    for name, nano in asked.items():
        if name == "cpu":
            amounts["cpu"] = nano / ONE * 1000
        elif name in names.GPUS:
            continue
        elif name != "pods":
            amounts[name] = nano / ONE
    if gpu.whole or need.taken_gpus:
        amounts["gpu"] = float(gpu.whole + need.taken_gpus)
    return Request(
        vector=resources.vector(amounts),
        gpu=gpu,
        claimed_gpus=need.claimed_gpus,
        is_best_effort=not asked and gpu.is_nothing and not need.claimed_gpus,
        numa=numa,
    )


def _old_mig_problem(pod: Pod) -> str:
    """What is wrong with a pod that asks for MIG instances as was done before they were resources."""
    for name, value in pod.metadata.annotations.items():
        if name.startswith(names.MIG_PREFIX) and _WHOLE.fullmatch(value):
            return f"annotation {name} asks for MIG instances: ask for the resource {name} in a container instead"
    return ""


def _ports(containers: Sequence[Container]) -> frozenset[tuple[str, int, str]]:
    return frozenset(
        (port.protocol or "TCP", port.host_port, port.host_ip)
        for container in containers
        for port in container.ports
        if port.host_port
    )


def _of_nodes(affinity: Mapping[str, Any]) -> dict[str, Any]:
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return {
        "required_node_terms": tuple((required or {}).get("nodeSelectorTerms") or ()),
        "has_required_node_terms": required is not None,
        "preferred_node_terms": tuple(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()),
    }


def _of_pods(affinity: Mapping[str, Any]) -> dict[str, Any]:
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    repelled = ({**term, "weight": -int(term.get("weight", 0))} for term in far.get(preferred) or ())
    return {
        "pod_affinity": tuple(near.get(required) or ()),
        "pod_anti_affinity": tuple(far.get(required) or ()),
        "preferred_pod_affinity": (*(near.get(preferred) or ()), *repelled),
    }
