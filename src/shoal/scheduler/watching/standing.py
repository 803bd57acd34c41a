"""How a pod stands: its status, its node and its shared devices, by all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shoal.api.core.pods import Pod
from shoal.api.scheduling_run_ai import BindRequest
from shoal.scheduler.binding.orders import is_for, is_open
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.numa import Zones
from shoal.scheduler.watching.kinds import gpu_groups_of, seconds


@dataclass(slots=True)
class Assumption:
    """A place that was given to a pod, before the cluster shows it."""

    node: str
    gpu_groups: tuple[str, ...]
    until: float
    earlier_request: str = ""
    """The uid of the BindRequest that the pod had when it got the place: news of that one confirm nothing."""
    zones: Zones = ()
    """The NUMA zones that it is expected on."""


class Standing(NamedTuple):
    """A pod's state."""

    status: Status
    node: str = ""
    gpu_groups: tuple[str, ...] = ()


def standing_of(
    pod: Pod, request: BindRequest | None, assumed: Assumption | None, *, now: float, stuck_after: float
) -> Standing:
    """What a pod, its BindRequest and what was assumed of it make of it."""
    phase, node, groups = pod.status.phase, pod.spec.node_name, gpu_groups_of(pod)
    deleted = pod.metadata.deletion_timestamp
    if phase == "Succeeded":
        return Standing(Status.SUCCEEDED)
    if deleted is not None:
        if not node:
            return Standing(Status.RELEASING)
        is_stuck = phase == "Running" and now > seconds(deleted) + stuck_after
        return Standing(Status.STUCK_IN_RELEASING if is_stuck else Status.RELEASING, node, groups)
    if phase == "Running":
        return Standing(Status.RUNNING, node, groups)
    if node:
        return Standing(Status.BOUND, node, groups)
    if request is not None and is_open(request) and is_for(request, pod):
        return Standing(Status.BINDING, request.spec.selected_node, tuple(request.spec.selected_gpu_groups))
    if assumed is not None:
        return Standing(Status.BINDING, assumed.node, assumed.gpu_groups)
    if pod.spec.scheduling_gates:
        return Standing(Status.GATED)
    return Standing(Status.PENDING if phase in ("Pending", "") else Status.UNKNOWN)
