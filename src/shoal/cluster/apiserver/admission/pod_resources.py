"""What a pod asks for as a whole: the sum of its containers, or what its initialisation needs where that is more.

Init containers run one after the other, so the largest counts; those that go on running (sidecars) count with all that
comes after them. Resources that are set for the pod as a whole take the place of the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.meta import Quantity, parse_quantity
from shoal.cluster.apiserver.kinds.kind import Object

Amounts = dict[str, Quantity]

_OF_PODS = ("cpu", "memory")


def amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """A resource list, read."""
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def pod_amounts(pod: Object, which: str, *, with_overhead: bool = True, with_hugepages: bool = True) -> Amounts:
    """All ``requests`` or all ``limits`` of a pod; what it was given already counts where that is more."""
    spec = pod.get("spec") or {}
    given = _given(pod, which)
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _of_container(container, which, given))
    sidecars: Amounts = {}
    initial: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of_container(container, which, given)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            own = dict(own)
            _add(own, sidecars)
        _raise(initial, own)
    _raise(total, initial)
    for name, amount in amounts((spec.get("resources") or {}).get(which)).items():
        if name in _OF_PODS or (with_hugepages and name.startswith("hugepages-")):
            total[name] = amount
    if with_overhead and (overhead := spec.get("overhead")):
        extra = amounts(overhead)
        # A limit that is not there is none, and overhead does not make one.
        _add(total, extra if which == "requests" else {name: extra[name] for name in extra if name in total})
    return total


def add_all(parts: Iterable[Amounts]) -> Amounts:
    """The sum of several."""
    total: Amounts = {}
    for part in parts:
        _add(total, part)
    return total


def is_best_effort(pod: Object) -> bool:
    """Whether no container asks for any processor time or memory, nor has a limit of it."""
    spec = pod.get("spec") or {}
    places = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ()), spec]
    for place in places:
        resources = place.get("resources") or {}
        for which in ("requests", "limits"):
            for name, value in (resources.get(which) or {}).items():
                if name in _OF_PODS and parse_quantity(value).nano > 0:
                    return False
    return True


def _of_container(container: Mapping[str, Any], which: str, given: Mapping[str, Amounts]) -> Amounts:
    own = amounts((container.get("resources") or {}).get(which))
    if (already := given.get(container.get("name", ""))) is not None:
        own = dict(own)
        _raise(own, already)
    return own


def _given(pod: Object, which: str) -> dict[str, Amounts]:
    """What containers run with, by their names; it may be more than asked for until a change is carried out."""
    status = pod.get("status") or {}
    given: dict[str, Amounts] = {}
    for held in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        actual = amounts((held.get("resources") or {}).get(which))
        if which == "requests":
            _raise(actual, amounts(held.get("allocatedResources")))
        if actual:
            given[held.get("name", "")] = actual
    return given


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        held = total.get(name)
        total[name] = amount if held is None else held + amount


def _raise(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        held = total.get(name)
        if held is None or amount > held:
            total[name] = amount
