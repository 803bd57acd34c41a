"""What is asked of the binder, and how its orders are found: by node while they are open, by the devices they hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from shoal.api.core.pods import Pod
from shoal.api.scheduling_run_ai import BindRequest
from shoal.scheduler.binding.backoff import FAILED, SUCCEEDED, is_given_up
from shoal.scheduler.model.tasks import Request
from shoal.scheduler.storage import claim_uses

FRACTION = "Fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One pod that is to be bound, with what was found for it."""

    request: BindRequest
    pod: Pod
    devices: tuple[str, ...] = ()
    """The shared devices, in the order of the request's groups."""

    @property
    def node(self) -> str:
        """Where the pod is to go."""
        return self.request.spec.selected_node


class Refused(Exception):
    """A pod cannot be bound as it was ordered; says why."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something is under way that an event will tell of; look again after so many seconds all the same."""

    seconds: float


def takes_only_a_node(pod: Pod, request: Request) -> bool:
    """Whether nothing has to be made or awaited before a pod is bound: no shared or claimed device, no volume."""
    return not (request.is_shared or pod.spec.resource_claims or claim_uses(pod))


def is_open(request: BindRequest) -> bool:
    """Whether there is anything left to do for a request."""
    return not request.metadata.is_deleting and request.status.phase != SUCCEEDED and not is_given_up(request)


def is_shared(request: BindRequest) -> bool:
    """Whether the pod gets parts of devices."""
    return request.spec.received_resource_type == FRACTION


def held_groups(request: BindRequest) -> tuple[str, ...]:
    """The shared devices that a request keeps for its pod.

    Also one that succeeded: whether the pod's own labels are seen yet is another matter.
    """
    if not is_shared(request) or request.metadata.is_deleting or request.status.phase == FAILED:
        return ()
    return tuple(dict.fromkeys(request.spec.selected_gpu_groups))


def is_for(request: BindRequest, pod: Pod) -> bool:
    """Whether a request means this pod, and not an earlier one of the same name."""
    owners = [owner.uid for owner in request.metadata.owner_references if owner.kind == "Pod"]
    return not owners or pod.metadata.uid in owners


def by_node(request: BindRequest) -> Iterable[Hashable]:
    """Finds open requests by the node that was chosen."""
    return (request.spec.selected_node,) if is_open(request) else ()


def by_group(request: BindRequest) -> Iterable[Hashable]:
    """Finds requests by the shared devices that they hold."""
    return held_groups(request)
