"""What a pod asks for as a whole, read from plain JSON values; the rule itself is shared with those who place pods.

A limit that no container has is none: overhead does not make one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.pod_resources import OF_PODS, Amounts, add_to, amounts, combined, of_whole_pod, raise_to

__all__ = ["Amounts", "add_all", "amounts", "is_best_effort", "pod_amounts"]


def pod_amounts(pod: Object, which: str, *, with_overhead: bool = True, with_hugepages: bool = True) -> Amounts:
    """All ``requests`` or all ``limits`` of a pod; what it was given already counts where that is more."""
    spec = pod.get("spec") or {}
    given = _given(pod, which)
    total = combined(
        (_of_container(container, which, given) for container in spec.get("containers") or ()),
        (
            (_of_container(container, which, given), container.get("restartPolicy") == "Always")
            for container in spec.get("initContainers") or ()
        ),
    )
    total |= of_whole_pod(amounts((spec.get("resources") or {}).get(which)), with_hugepages=with_hugepages)
    if with_overhead and (overhead := spec.get("overhead")):
        extra = amounts(overhead)
        # A limit that is not there is none, and overhead does not make one.
        add_to(total, extra if which == "requests" else {name: extra[name] for name in extra if name in total})
    return total


def add_all(parts: Iterable[Amounts]) -> Amounts:
    """The sum of several."""
    total: Amounts = {}
    for part in parts:
        add_to(total, part)
    return total


def is_best_effort(pod: Object) -> bool:
    """Whether no container asks for any processor time or memory, nor has a limit of it."""
    spec = pod.get("spec") or {}
    places = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ()), spec]
    for place in places:
        resources = place.get("resources") or {}
        for which in ("requests", "limits"):
            for name, value in (resources.get(which) or {}).items():
                if name in OF_PODS and parse_quantity(value).nano > 0:
                    return False
    return True


def _of_container(container: Mapping[str, Any], which: str, given: Mapping[str, Amounts]) -> Amounts:
    own = amounts((container.get("resources") or {}).get(which))
    if (already := given.get(container.get("name", ""))) is not None:
        own = dict(own)
        raise_to(own, already)
    return own


def _given(pod: Object, which: str) -> dict[str, Amounts]:
    """What containers run with, by their names; it may be more than asked for until a change is carried out."""
    status = pod.get("status") or {}
    given: dict[str, Amounts] = {}
    for held in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        actual = amounts((held.get("resources") or {}).get(which))
        if which == "requests":
            raise_to(actual, amounts(held.get("allocatedResources")))
        if actual:
            given[held.get("name", "")] = actual
    return given
