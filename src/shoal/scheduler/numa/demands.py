"""What a pod asks of zones, in the units that the Topology Manager aligns.

Processors, memory and huge pages are aligned for pods of the class Guaranteed alone, processors only for containers
that ask for whole ones; devices are aligned for every pod that asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.api.core import Pod
from shoal.api.core.pods import Container
from shoal.scheduler.numa.topologies import Scope
from shoal.scheduler.pod_requests import pod_requests
from shoal.scheduler.resource_lists import ONE, Amounts, amounts_of

Unit = tuple[tuple[str, int], ...]
"""Billionths by the name of the resource: what is aligned as one."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A pod, as zones see it. Pods that ask for the same are equal."""

    is_guaranteed: bool
    whole: Unit
    """The pod as one."""
    together: tuple[Unit, ...]
    """Its containers, which have their zones at the same time."""
    before: tuple[Unit, ...]
    """Those that run before the others, one after the other, and keep nothing."""

    def units(self, scope: Scope) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
        """What has zones at the same time, and what has them before."""
        return ((self.whole,), ()) if scope is Scope.POD else (self.together, self.before)

    def is_aligned(self, name: str) -> bool:
        """Whether a resource is aligned for such a pod, where a node reports it by zone."""
        return self.is_guaranteed or is_device(name)

    def concerns(self, devices: frozenset[str]) -> bool:
        """Whether zones that have these devices matter to it."""
        return self.is_guaranteed or any(name in devices for name, _ in self.whole)


def demand_of(pod: Pod) -> Demand | None:
    """What a pod asks of zones; None for one to which they cannot matter."""
    is_guaranteed = pod.status.qos_class == "Guaranteed"
    asked = pod_requests(pod)
    if not is_guaranteed and not any(map(is_device, asked)):
        return None
    first = pod.spec.init_containers
    sidecars = [one for one in first if _stays(one)]
    return Demand(
        is_guaranteed,
        _unit(asked, _processors_of_pod(pod) if is_guaranteed else 0),
        tuple(_of_container(one, is_guaranteed) for one in (*sidecars, *pod.spec.containers)),
        tuple(_of_container(one, is_guaranteed) for one in first if not _stays(one)),
    )


def is_device(name: str) -> bool:
    """Whether a resource is aligned whatever the class of the pod."""
    return name not in ("cpu", "memory") and not name.startswith("hugepages-")


def _of_container(container: Container, is_guaranteed: bool) -> Unit:
    return _unit(amounts_of(container.resources.requests), _processors(container) if is_guaranteed else 0)


def _unit(asked: Mapping[str, int], processors: int) -> Unit:
    own: Amounts = {name: nano for name, nano in asked.items() if name != "cpu"}
    return tuple(sorted({**own, **({"cpu": processors} if processors else {})}.items()))


def _processors(container: Container) -> int:
    """Those that it has for itself; one that asks for a part of one shares with others, and is aligned with nothing."""
    nano = amounts_of(container.resources.requests).get("cpu", 0)
    return 0 if nano % ONE else nano


def _processors_of_pod(pod: Pod) -> int:
    most = staying = 0
    for container in pod.spec.init_containers:
        own = _processors(container)
        if _stays(container):
            staying += own
        else:
            most = max(most, staying + own)
    return max(most, staying + sum(map(_processors, pod.spec.containers)))


def _stays(container: Container) -> bool:
    return container.restart_policy == "Always"
