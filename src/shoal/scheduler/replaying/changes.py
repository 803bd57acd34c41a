"""What if: another snapshot, made of one, in which something is otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final

from shoal.api.meta.quantity import InvalidQuantity, parse_quantity
from shoal.scheduler.snapshots.snapshot import Json, Snapshot

RESOURCES: Final = ("gpu", "cpu", "memory")
BOUNDS: Final = ("quota", "limit")
_UNLIMITED: Final = ("unlimited", "-1")


class InvalidChange(Exception):
    """A change that cannot be made; says why."""


def with_nodes(snapshot: Snapshot, nodes: Sequence[Json]) -> Snapshot:
    """The same with more nodes; one of a name that is there already takes its place."""
    names = {node["metadata"]["name"] for node in nodes}
    kept = [node for node in snapshot.of("nodes") if (node.get("metadata") or {}).get("name") not in names]
    return with_section(snapshot, "nodes", [*kept, *nodes])


def with_bound(snapshot: Snapshot, queue: str, resource: str, amount: str, *, bound: str = "quota") -> Snapshot:
    """The same with another quota, or limit, of a queue.

    ``amount``: GPUs as a number; CPU and memory as Kubernetes writes them, such as 64 (cores) and 512Gi; or
    ``unlimited``. Raises InvalidChange.
    """
    if resource not in RESOURCES:
        raise InvalidChange(f"{resource} is nothing that queues share: name gpu, cpu or memory")
    value = _amount(resource, amount)
    changed: list[Json] = []
    found = False
    for one in snapshot.of("queues"):
        if (one.get("metadata") or {}).get("name") == queue:
            found = True
            one = deepcopy(one)  # noqa: PLW2901 - the snapshot stays as it is
            spec = one["spec"] = one.get("spec") or {}
            resources = spec["resources"] = spec.get("resources") or {}
            part = resources[resource] = resources.get(resource) or {}
            part[bound] = value
        changed.append(one)
    if not found:
        known = ", ".join(sorted(str(one["metadata"]["name"]) for one in snapshot.of("queues")))
        raise InvalidChange(f"queue {queue} is not in the snapshot: there are {known or 'none'}")
    return with_section(snapshot, "queues", changed)


def with_section(snapshot: Snapshot, section: str, objects: list[Json]) -> Snapshot:
    """The same with other objects of one section."""
    return replace(snapshot, objects={**snapshot.objects, section: objects})


def _amount(resource: str, text: str) -> float:
    """In the units of a Queue: devices, thousandths of cores, millions of bytes."""
    if text.strip() in _UNLIMITED:
        return -1
    try:
        found = float(parse_quantity(text.strip()))
    except InvalidQuantity as error:
        raise InvalidChange(f"{text!r} is no amount: write 64, 0.5, 512Gi or unlimited") from error
    if found < 0 or not math.isfinite(found):
        raise InvalidChange(f"{text!r} is less than nothing: write 0 or more, or unlimited")
    return {"gpu": found, "cpu": found * 1000, "memory": found / 1e6}[resource]
