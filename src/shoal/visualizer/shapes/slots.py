"""Who is on which GPU of a node, as far as that can be known.

Kubernetes hands out whole devices without telling which, and a shared device has a number only once its reservation
has told it. So what is known is put in its place, and the rest in an order that is the same for everybody who looks:
shared devices before whole ones, the older before the newer. It is a picture of how full a node is, not of where its
cables go.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import msgspec

from shoal.api.kai_names import MIG_PREFIX
from shoal.api.visualizer import NodeView, SharedGpu, Sharer, WholeGpus

FULL = 0.995
"""Portions are hundredths: what leaves less than half of one leaves nothing."""
_SHOWN_PORTION_DIGITS = 4


class Occupant(msgspec.Struct, frozen=True, gc=False):
    """A pod on a device, and how much of the device it has."""

    namespace: str
    name: str
    portion: float


class Slot(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """One device."""

    id: int
    occupied_by: str
    """The names of the pods, with commas between them; empty where it is idle."""
    fragmented: bool
    """Idle, in whole or in part, but of no use to anybody."""
    used: float
    occupants: tuple[Occupant, ...]


class _Device(NamedTuple):
    """Who is on a device."""

    names: str
    used: float
    occupants: tuple[Occupant, ...]


_IDLE = _Device("", 0.0, ())
Placed = dict[int, _Device]


def slots(node: NodeView) -> tuple[Slot, ...]:
    """The devices of a node with their occupants."""
    count = max(0, node.gpu_count)
    placed = _placed(node, count)
    useless = _useless(node, placed, count)
    return tuple([_slot(number, placed.get(number, _IDLE), number in useless) for number in range(count)])


def _placed(node: NodeView, count: int) -> Placed:
    """Devices by their number; those that nobody is on are missing."""
    placed: Placed = {}
    unplaced: list[SharedGpu] = []
    for shared in sorted(node.shared_gpus, key=_age_of_group):
        number = _known_number(shared)
        if number is not None and 0 <= number < count and number not in placed:
            placed[number] = _shared(shared)
        else:
            unplaced.append(shared)
    free = iter([number for number in range(count) if number not in placed])
    for shared, number in zip(unplaced, free, strict=False):
        placed[number] = _shared(shared)
    free = iter([number for number in range(count) if number not in placed])
    for pod in sorted(node.whole_gpus, key=_age_of_pod):
        alone = _Device(pod.name, 1.0, (Occupant(pod.namespace, pod.name, 1.0),))
        for _ in range(pod.gpus):
            number = next(free, None)
            if number is None:  # more promised than there is: the node's `used` says so
                return placed
            placed[number] = alone
    return placed


def _useless(node: NodeView, placed: Placed, count: int) -> Collection[int]:
    """The devices whose idle part nobody can have."""
    if _takes_no_pod(node):
        return [number for number in range(count) if placed.get(number, _IDLE).used < FULL]
    # A device that the node has, but does not offer, is out of order: which one it is, nobody says.
    withheld = count - math.floor(node.allocatable.gpus + 1e-6)
    if withheld <= 0 or any(name.startswith(MIG_PREFIX) for name in node.allocatable.extended):
        return ()  # or its devices are divided, and handed out as something else
    idle = [number for number in range(count) if number not in placed]
    return idle[max(0, len(idle) - withheld) :]


def _takes_no_pod(node: NodeView) -> bool:
    return (
        not node.ready
        or not node.schedulable
        or node.used.milli_cpu >= node.allocatable.milli_cpu
        or node.used.memory >= node.allocatable.memory
        or (node.pod_limit is not None and node.pods >= node.pod_limit)
    )


def _slot(number: int, device: _Device, useless: bool) -> Slot:
    return Slot(
        id=number,
        occupied_by=device.names,
        fragmented=useless,
        used=device.used,
        occupants=device.occupants,
    )


def _known_number(shared: SharedGpu) -> int | None:
    """The device's number, told by its reservation; or by its group's name, as the first schedulers gave them."""
    if shared.index is not None:
        return shared.index
    name = shared.group
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 6 else None


def _shared(shared: SharedGpu) -> _Device:
    sharers = sorted(shared.sharers, key=_name_of_sharer)
    used = math.fsum([sharer.portion for sharer in sharers])
    return _Device(
        ",".join([sharer.name for sharer in sharers]),
        round(used, _SHOWN_PORTION_DIGITS),
        tuple([Occupant(sharer.namespace, sharer.name, float(sharer.portion)) for sharer in sharers]),
    )


def _name_of_sharer(sharer: Sharer) -> tuple[str, str, str]:
    return sharer.namespace, sharer.name, sharer.uid


def _age_of_group(shared: SharedGpu) -> tuple[float, str]:
    """When the first of its sharers started; a group none of which has comes last."""
    return min([_age(sharer.started) for sharer in shared.sharers], default=math.inf), shared.group


def _age_of_pod(pod: WholeGpus) -> tuple[float, str, str, str]:
    return _age(pod.started), pod.namespace, pod.name, pod.uid


def _age(started: datetime | None) -> float:
    return math.inf if started is None else started.timestamp()
