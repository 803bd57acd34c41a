"""What a pod asks for as a whole: the sum of its containers, or what its initialisation needs where that is more.

Init containers run one after the other, so the largest counts; those that go on running (sidecars) count with all that
comes after them. What is asked for the pod as a whole takes the place of the sum, and overhead comes on top. What a pod
was given already counts where that is more than it asks for now: until a change of its size is carried out it holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.core import Container, ContainerStatus, Pod, pod_condition
from shoal.api.meta import Quantity, QuantityString, parse_quantity

Amounts = dict[str, Quantity]

OF_PODS = ("cpu", "memory")
"""What can be asked for a pod as a whole, beside huge pages."""


def pod_requests(pod: Pod) -> Amounts:
    """All that a pod asks of its node."""
    spec = pod.spec
    given = {status.name: status for status in pod.status.container_statuses}
    given |= {status.name: status for status in pod.status.init_container_statuses}
    is_fixed = _is_resize_infeasible(pod)
    total = combined(
        (_requests(container, given.get(container.name), is_fixed) for container in spec.containers),
        (
            (_requests(container, given.get(container.name), is_fixed), container.restart_policy == "Always")
            for container in spec.init_containers
        ),
    )
    if spec.resources is not None:
        total |= of_whole_pod(amounts(spec.resources.requests))
    add_to(total, amounts(spec.overhead))
    return total


def combined(containers: Iterable[Amounts], initial: Iterable[tuple[Amounts, bool]]) -> Amounts:
    """What containers ask for together; each of the ``initial`` ones says whether it goes on running."""
    total: Amounts = {}
    for own in containers:
        add_to(total, own)
    sidecars: Amounts = {}
    most: Amounts = {}
    for own, goes_on in initial:
        if goes_on:
            add_to(total, own)
            add_to(sidecars, own)
            raise_to(most, sidecars)
        else:
            alone = dict(own)
            add_to(alone, sidecars)
            raise_to(most, alone)
    raise_to(total, most)
    return total


def of_whole_pod(asked: Amounts, *, with_hugepages: bool = True) -> Amounts:
    """Those of a pod's own amounts that count instead of its containers'."""
    return {
        name: amount
        for name, amount in asked.items()
        if name in OF_PODS or (with_hugepages and name.startswith("hugepages-"))
    }


def amounts(resources: Mapping[str, QuantityString] | None) -> Amounts:
    """A resource list, read."""
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def add_to(total: Amounts, more: Amounts) -> None:
    """Adds amounts to a total."""
    for name, amount in more.items():
        held = total.get(name)
        total[name] = amount if held is None else held + amount


def raise_to(total: Amounts, other: Amounts) -> None:
    """Raises a total to other amounts where those are more."""
    for name, amount in other.items():
        held = total.get(name)
        if held is None or amount > held:
            total[name] = amount


def _requests(container: Container, given: ContainerStatus | None, is_fixed: bool) -> Amounts:
    own = amounts(container.resources.requests)
    if given is None or given.resources is None:
        return own
    total = {} if is_fixed else own
    raise_to(total, amounts(given.resources.requests))
    raise_to(total, amounts(given.allocated_resources))
    return total


def _is_resize_infeasible(pod: Pod) -> bool:
    """Whether the node has said that it can never give what the pod asks for now."""
    condition = pod_condition(pod, "PodResizePending")
    return condition is not None and condition.reason == "Infeasible"
