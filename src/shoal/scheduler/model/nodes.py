"""Nodes as arrays: what each has, what of it is free now, and what becomes free when pods that are ending are gone.

A task's hold on a node is a `Hold`. A task that is moved has two for a while: it still occupies what it leaves, and is
promised what it moves to. Whatever is promised is taken from what becomes free, so that free now and free later
together are what may still be promised; "free later" of a node alone may be less than nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.api.kai_names import MIG_PREFIX
from shoal.scheduler.gpu_requests import mig_slices
from shoal.scheduler.model.resources import GPU, PODS, Mask, Matrix, ResourceNames, Vector, widened
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task

if TYPE_CHECKING:
    from shoal.scheduler.numa.placements import Zones

UNKNOWN_GPU_MEMORY: Final = 100
"""MiB that a GPU is taken to have where its node does not say: portions are then hundredths of it."""


@dataclass(slots=True, eq=False)
class SharedGpu:
    """One device that several tasks share, in MiB by what state they are in."""

    allocated: int = 0
    """Of tasks that occupy it, those that are ending among them."""
    releasing: int = 0
    """Of tasks that are ending."""
    pipelined: int = 0
    """Promised to tasks once others are gone."""
    is_new: bool = False
    """Whether the pod that reserves it is still to come: the device takes a pod's place as long as it is shared."""

    @property
    def used(self) -> int:
        """Occupied or promised."""
        return self.allocated + self.pipelined

    @property
    def idle_change(self) -> int:
        """How many of the node's free devices it takes away."""
        return -1 if self.allocated > 0 else 0

    @property
    def releasing_change(self) -> int:
        """How many devices it adds to those that become free: itself, when all on it end and nobody waits for it."""
        if self.allocated > 0:
            return 1 if self.allocated == self.releasing and not self.pipelined else 0
        return -1 if self.pipelined > 0 else 0

    def fits_later(self, memory: int, size: int) -> bool:
        """Whether so much more can be promised. A device that becomes free as a whole is taken anew instead."""
        left = self.releasing - self.pipelined
        return self.used > 0 and size - self.allocated + left >= memory and self.allocated != left

    def fits_now(self, memory: int, size: int) -> bool:
        """Whether so much more can be given at once."""
        return self.allocated > 0 and size - self.allocated >= memory


@dataclass(slots=True, eq=False)
class Hold:
    """A task's hold on a node."""

    task: Task
    node: int
    status: Status
    gpu_groups: tuple[str, ...] = ()
    left: Hold | None = None
    """What the task leaves for it."""
    new_groups: frozenset[str] = frozenset()
    """Those of its devices that no pod reserves yet, whoever was the first to share them."""
    zones: Zones | None = None
    """The NUMA zones that it is expected on; None: it has its place from before, and its pod says them, if anybody."""


@dataclass(slots=True, eq=False)
class Node:
    """What does not change while a session lasts, and the few things that are not amounts."""

    name: str
    allocatable: Vector
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    is_ready: bool = True
    is_unschedulable: bool = False
    pressures: tuple[str, ...] = ()
    """Its conditions that keep new pods away."""
    gpu_memory: int = UNKNOWN_GPU_MEMORY
    """MiB of each of its GPUs."""
    is_gpu_memory_known: bool = False
    gpu_count: int = 0
    has_mig: bool = False
    mig_strategy: str = ""
    """``single``, ``mixed`` or ""."""
    has_claimed_gpus: bool = False
    """Whether its GPUs are handed out by claims (DRA)."""
    shared: dict[str, SharedGpu] = field(default_factory=dict)
    holds: dict[tuple[str, bool], Hold] = field(default_factory=dict)
    """By task and whether it is a promise: a task may leave one GPU of a node for another of the same node."""


class Nodes:
    """All nodes, in the order of their names, with their amounts as arrays that holds are taken from."""

    def __init__(self, nodes: Iterable[Node], names: ResourceNames) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.index = {node.name: place for place, node in enumerate(self.nodes)}
        self.resources = names
        width = len(names)
        self.allocatable: Matrix = np.array([widened(node.allocatable, width) for node in self.nodes]).reshape(
            -1, width
        )
        self.idle: Matrix = self.allocatable.copy()
        self.releasing: Matrix = np.zeros_like(self.allocatable)
        self.gpu_memory: NDArray[np.int64] = np.array([node.gpu_memory for node in self.nodes], dtype=np.int64)
        self.is_ready: Mask = np.array([node.is_ready for node in self.nodes], dtype=np.bool_)
        self._gpu_weights: Vector = gpu_weights(names)
        self._shared_idle: NDArray[np.float64] = np.zeros(len(self.nodes))
        """[nodes] what is free of shared devices."""
        self._shared_releasing: NDArray[np.float64] = np.zeros(len(self.nodes))
        """[nodes] what becomes free of shared devices that stay shared."""
        self.changes: list[int] = []
        """The rows that were changed, one after the other, for those who keep what they derived from them."""

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, name: str) -> Node:
        return self.nodes[self.index[name]]

    def add(self, hold: Hold) -> None:
        """Takes what a task holds, or is promised, from its node."""
        self._count(hold, 1)
        self.nodes[hold.node].holds[hold.task.uid, hold.status is Status.PIPELINED] = hold

    def remove(self, hold: Hold) -> None:
        """Gives back what a task held."""
        self._count(hold, -1)
        del self.nodes[hold.node].holds[hold.task.uid, hold.status is Status.PIPELINED]

    def change(self, hold: Hold, status: Status) -> None:
        """Counts what a task holds under another status."""
        self.remove(hold)
        hold.status = status
        self.add(hold)

    def _count(self, hold: Hold, by: int) -> None:
        row, status, request = hold.node, hold.status, hold.task.request
        vector = request.vector if by > 0 else -request.vector
        if len(vector) != self.idle.shape[1]:
            vector = widened(vector, self.idle.shape[1])
        if status is Status.PIPELINED:
            self.releasing[row] -= vector
        else:
            self.idle[row] -= vector
            if status is Status.RELEASING:
                self.releasing[row] += vector
        if hold.gpu_groups:
            self._share(hold, by)
        self.changes.append(row)

    def _share(self, hold: Hold, by: int) -> None:
        node = self.nodes[hold.node]
        memory = by * hold.task.request.memory_on(node.gpu_memory)
        for group in hold.gpu_groups:
            device = node.shared.get(group)
            if device is None:
                device = node.shared[group] = SharedGpu(is_new=group in hold.new_groups)
            idle, releasing = device.idle_change, device.releasing_change
            if hold.status is Status.PIPELINED:
                device.pipelined += memory
            else:
                device.allocated += memory
                if hold.status is Status.RELEASING:
                    device.releasing += memory
            columns = (GPU, PODS) if device.is_new else (GPU,)
            for column in columns:
                self.idle[hold.node, column] += device.idle_change - idle
                self.releasing[hold.node, column] += device.releasing_change - releasing
            if not device.used:
                del node.shared[group]
        size, devices = node.gpu_memory, node.shared.values()
        self._shared_idle[hold.node] = sum(1 - device.allocated / size for device in devices if device.allocated)
        self._shared_releasing[hold.node] = sum(_partly_releasing(device, size) for device in devices)

    def free_gpus(self) -> NDArray[np.float64]:
        """[nodes] devices, MIG slices and parts of shared devices that are free now."""
        free: NDArray[np.float64] = self.idle @ self._gpu_weights + self._shared_idle
        return free

    def releasing_gpus(self) -> NDArray[np.float64]:
        """[nodes] devices, MIG slices and parts of shared devices that become free."""
        releasing: NDArray[np.float64] = self.releasing @ self._gpu_weights + self._shared_releasing
        return releasing


def gpu_weights(names: ResourceNames) -> Vector:
    """[resources] how many GPUs one of each counts for: a MIG instance for as many as it has slices."""
    weights = np.zeros(len(names))
    weights[GPU] = 1.0
    for name, place in names.known().items():
        if name.startswith(MIG_PREFIX):
            weights[place] = mig_slices(name.removeprefix(MIG_PREFIX))
    return weights


def _partly_releasing(device: SharedGpu, size: int) -> float:
    """What becomes free of a device beside what is promised: the rest of it, where nobody is on it yet."""
    if not device.allocated:
        return 1 - device.pipelined / size
    left = device.releasing - device.pipelined
    return left / size if left > 0 and left != device.used else 0.0
