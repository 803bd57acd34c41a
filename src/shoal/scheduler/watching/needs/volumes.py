"""Which nodes will do for a pod by its claims of volumes, and which claim it has to wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from shoal.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from shoal.api.meta import InvalidQuantity, Quantity, QuantityString, parse_quantity
from shoal.api.storage import CSIStorageCapacity, StorageClass
from shoal.scheduler.ground import Ground
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.storage import (
    SELECTED_NODE,
    ClaimUse,
    best_volume,
    claim_problem,
    class_of,
    is_bound,
    is_delayed,
    is_for_one_pod,
    provisions,
    requested_storage,
)
from shoal.scheduler.watching.needs.stock import NODES, Kind, Look, use_of

Users = Callable[[Kind, tuple[str, str]], Sequence[str]]
"""The names of other pods that have a place and use a claim."""
ATTACHABLE: Final = "attachable-volumes-csi-"
"""Names a node's resource: how many volumes of a driver may be attached to it."""


@dataclass(slots=True)
class Reach:
    """What a pod's claims allow it."""

    problem: str = ""
    nodes: Mask | None = None
    """[nodes] those that will do; None: nobody asked."""
    drivers: dict[str, int] = field(default_factory=dict)
    """How many volumes of each storage driver it attaches."""

    def narrow(self, nodes: Mask) -> None:
        """Only these nodes will do."""
        self.nodes = nodes if self.nodes is None else self.nodes & nodes


def volume_reach(pod: Pod, uses: Sequence[ClaimUse], look: Look, ground: Ground, users: Users) -> Reach:
    """What a pod's claims allow it, as they are now."""
    reach = Reach()
    delayed: list[tuple[PersistentVolumeClaim, StorageClass]] = []
    for use in uses:
        claim = look.claim(pod.metadata.namespace, use.name)
        reach.problem = claim_problem(pod, use, claim)
        if reach.problem or claim is None:
            return reach
        storage_class = look.storage_class(class_of(claim)) if class_of(claim) else None
        if is_for_one_pod(claim):
            reach.problem = _use_problem(claim, look, users)
        if is_bound(claim):
            reach.problem = reach.problem or _reach_bound(claim, look, ground, reach)
        elif storage_class is not None and is_delayed(claim, storage_class):
            delayed.append((claim, storage_class))
        else:
            reach.problem = reach.problem or _unbound_problem(claim, storage_class)
        if reach.problem:
            return reach
    if delayed:
        _reach_delayed(delayed, look, ground, reach)
    return reach


def _use_problem(claim: PersistentVolumeClaim, look: Look, users: Users) -> str:
    key = claim.metadata.namespace, claim.metadata.name
    look.topics.add(use_of(Kind.CLAIM, key))
    others = users(Kind.CLAIM, key)
    if not others:
        return ""
    return f"claim {claim.metadata.name} may be used by one pod at a time, and pod {others[0]} uses it"


def _unbound_problem(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> str:
    name, named = claim.metadata.name, class_of(claim)
    if claim.spec.volume_name:
        return f"claim {name} is not bound yet to volume {claim.spec.volume_name}"
    if storage_class is not None:
        return f"claim {name} has no volume yet, and class {named} gives it one without waiting for a pod"
    if named:
        return f"claim {name} has no volume, and its StorageClass {named} does not exist"
    return f"claim {name} has no volume, and names no StorageClass that could make one"


def _reach_bound(claim: PersistentVolumeClaim, look: Look, ground: Ground, reach: Reach) -> str:
    name = claim.spec.volume_name
    volume = look.volume(name)
    if volume is None:
        return f"claim {claim.metadata.name} is bound to volume {name}, which does not exist"
    look.topics.add(NODES)
    reach.narrow(ground.reaching(volume))
    reach.narrow(ground.in_zones_of(volume.metadata.labels))
    _count(reach, (volume.spec.csi or {}).get("driver", ""))
    return ""


def _reach_delayed(
    delayed: Sequence[tuple[PersistentVolumeClaim, StorageClass]], look: Look, ground: Ground, reach: Reach
) -> None:
    """Claims whose volumes are chosen together with the node: from those that are there, or made for it."""
    look.topics.add(NODES)
    matching: list[tuple[PersistentVolumeClaim, list[PersistentVolume], Mask]] = []
    for claim, storage_class in sorted(delayed, key=lambda one: (requested_storage(one[0]), one[0].metadata.name)):
        made = _makeable(claim, storage_class, look, ground)
        if selected := claim.metadata.annotations.get(SELECTED_NODE, ""):
            reach.narrow(ground.named(selected) & made)
        else:
            matching.append((claim, look.suitable(claim), made))
        _count(reach, storage_class.provisioner)
    for _, volumes, made in matching:
        reach.narrow(made | ground.reaching_any(volumes))
    if len(matching) > 1 and reach.nodes is not None and any(volumes for _, volumes, _ in matching):
        reach.narrow(_with_one_each(matching, reach.nodes, ground))


def _with_one_each(
    matching: Sequence[tuple[PersistentVolumeClaim, list[PersistentVolume], Mask]], nodes: Mask, ground: Ground
) -> Mask:
    """[nodes] those on which no two claims of the pod need the same volume; smaller claims choose first."""
    found = ground.nowhere
    here: list[dict[int, list[PersistentVolume]]] = []
    for _, volumes, _ in matching:
        by_row: dict[int, list[PersistentVolume]] = {}
        for volume in volumes:
            for row in np.flatnonzero(ground.reaching(volume) & nodes).tolist():
                by_row.setdefault(row, []).append(volume)
        here.append(by_row)
    for row in np.flatnonzero(nodes).tolist():
        taken: list[str] = []
        for (claim, _, made), by_row in zip(matching, here, strict=True):
            chosen = best_volume(claim, by_row.get(row, ()), taken=taken)
            if chosen is not None:
                taken.append(chosen.metadata.name)
            elif not made[row]:
                break
        else:
            found[row] = True
    return found


def _makeable(claim: PersistentVolumeClaim, storage_class: StorageClass, look: Look, ground: Ground) -> Mask:
    """[nodes] those for which a volume would be made."""
    if not provisions(storage_class):
        return ground.nowhere
    mask = ground.allowed_by(storage_class.allowed_topologies)
    driver = look.driver(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return mask
    size, roomy = requested_storage(claim), ground.nowhere
    for capacity in look.capacities(storage_class.metadata.name):
        if _has_room(capacity, size):
            roomy |= ground.labelled(capacity.node_topology)
    return mask & roomy


def _has_room(capacity: CSIStorageCapacity, size: Quantity) -> bool:
    room = _amount(capacity.maximum_volume_size)
    if room is None:
        room = _amount(capacity.capacity)
    return room is not None and room >= size


def _amount(text: QuantityString | None) -> Quantity | None:
    try:
        return None if text is None else parse_quantity(text)
    except InvalidQuantity:
        return None


def _count(reach: Reach, driver: str) -> None:
    if driver:
        reach.drivers[driver] = reach.drivers.get(driver, 0) + 1
