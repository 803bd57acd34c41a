"""Parts of GPUs: which devices of a node a task that shares gets, and whether at once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import count
from typing import Final

from shoal.scheduler.model.nodes import Node
from shoal.scheduler.model.resources import GPU, Vector
from shoal.scheduler.model.tasks import Request, Task

_GROUPS: Final = uuid.UUID("5b0f3a52-8f5e-4e67-9f5c-7d1b60a3f9c1")
"""Names of groups are made of where and for whom they were made, so that deciding again gives the same name."""


@dataclass(frozen=True, slots=True)
class Devices:
    """What a task gets."""

    groups: tuple[str, ...]
    is_now: bool
    """Whether all of it is free at once."""
    pods: int
    """The places of pods that it takes: its own, and one for each device that is shared anew, to reserve it."""


def is_portion_possible(request: Request, node: Node) -> bool:
    """Whether what is asked of each device is in one device of this node."""
    return request.memory_on(node.gpu_memory) <= node.gpu_memory


def fitting_groups(request: Request, node: Node) -> list[str]:
    """The shared devices that have room for one more part, now or once those that end are gone."""
    if not node.shared:
        return []
    memory, size = request.memory_on(node.gpu_memory), node.gpu_memory
    return [group for group, device in node.shared.items() if device.fits_later(memory, size)]


def has_room(request: Request, node: Node, free: Vector, groups: int) -> bool:
    """Whether so many devices can be had of these free ones ([resources]) and of so many shared ones."""
    return is_portion_possible(request, node) and int(free[GPU]) + groups >= request.gpu.devices


def chosen_devices(
    task: Task, node: Node, idle: Vector, releasing: Vector, *, packs: bool | None, is_free: bool
) -> Devices | None:
    """The devices for a task: shared ones in order of how full they are, or free ones; None where there are not enough.

    ``packs``: the fullest first, the emptiest first (a free one is the emptiest), or in no order at all (None).
    ``is_free``: whether the node has all that the task needs now, and it may have it now.
    """
    request = task.request
    memory, size = request.memory_on(node.gpu_memory), node.gpu_memory
    ranked = [(_score(node.shared[group].used / size, packs), group) for group in fitting_groups(request, node)]
    free = max(0, int(idle[GPU])) + max(0, int(releasing[GPU])) if idle[GPU] > 0 or releasing[GPU] > 0 else 0
    whole = {True: 0.0, False: 1.0, None: 0.0}[packs]
    ranked += [(whole, "")] * min(free, request.gpu.devices)
    ranked.sort(key=lambda one: (-one[0], one[1] == "", one[1]))
    taken: list[str] = []
    is_now, pods = True, 1
    for _, group in ranked[: request.gpu.devices]:
        if group:
            is_now = is_now and is_free and node.shared[group].fits_now(memory, size)
            taken.append(group)
        else:
            is_now, pods = is_now and is_free, pods + 1
            taken.append(_new_group(node, task, len(taken)))
    if len(taken) < request.gpu.devices:
        return None
    return Devices(tuple(taken), is_now, pods)


def _new_group(node: Node, task: Task, place: int) -> str:
    """A name that no device of the node has: others may still share the one that this task was the first to share."""
    names = (str(uuid.uuid5(_GROUPS, f"{node.name}/{task.uid}/{place}{'+' * times}")) for times in count())
    return next(name for name in names if name not in node.shared)


def _score(used: float, packs: bool | None) -> float:
    if packs is None:
        return 0.0
    return used if packs else 1 - used
