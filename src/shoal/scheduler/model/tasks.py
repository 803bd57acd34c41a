"""A task: one pod as the scheduler sees it. What it asks for and where it may go are shared by all that are alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.model.resources import CPU, GPU, MEMORY, Vector
from shoal.scheduler.model.statuses import Status

if TYPE_CHECKING:
    from shoal.scheduler.model.jobs import Job, PodSet
    from shoal.scheduler.model.nodes import Hold
    from shoal.scheduler.numa.demands import Demand

STEPS: Final = 100


@dataclass(slots=True, eq=False)
class Request:
    """What a task needs of a node. Tasks that need the same hold the same object."""

    vector: Vector
    """[resources] what is taken from the node's columns: whole GPUs, MIG instances and one pod among them."""

    gpu: GpuRequest = NOTHING
    claimed_gpus: int = 0
    """Devices that its ResourceClaims ask for."""

    is_best_effort: bool = False
    """Asks for nothing but a place."""

    numa: Demand | None = None
    """What it asks of NUMA zones, where anybody looks at them."""

    @property
    def is_shared(self) -> bool:
        """Whether it wants parts of GPUs."""
        return self.gpu.devices > 0

    @property
    def wants_gpu(self) -> bool:
        """Whether it needs GPUs of any kind."""
        return not self.gpu.is_nothing or self.claimed_gpus > 0

    def amounts(self, memory_of_gpu: float) -> Amounts:
        """What it weighs for its queue; a request of GPU memory as the portion of a device of this many MiB."""
        gpu = self.gpu.gpus + self.claimed_gpus
        if self.gpu.memory and memory_of_gpu > 0:
            gpu += self.gpu.devices * self.gpu.memory / memory_of_gpu
        return Amounts(float(self.vector[CPU]), float(self.vector[MEMORY]), gpu)

    def amounts_on(self, memory_of_gpu: int) -> Amounts:
        """What it weighs on a node whose GPUs have this many MiB: there a portion is a whole number of hundredths."""
        gpu = self.gpu.gpus + self.claimed_gpus
        if self.gpu.memory:
            gpu += self.gpu.devices * math.ceil(STEPS * self.gpu.memory / memory_of_gpu) / STEPS
        return Amounts(float(self.vector[CPU]), float(self.vector[MEMORY]), round(gpu, 6))

    def memory_on(self, memory_of_gpu: int) -> int:
        """MiB of each shared device that it takes on a node whose GPUs have this many."""
        return self.gpu.memory or int(self.gpu.portion * memory_of_gpu)

    @property
    def whole_gpus(self) -> float:
        """Devices that it takes for itself."""
        return float(self.vector[GPU])


@dataclass(slots=True, eq=False)
class Constraints:
    """Where a task may go. Tasks with the same wishes hold the same object; all of it is as the pod's spec says it."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    required_node_terms: tuple[Mapping[str, Any], ...] = ()
    """nodeSelectorTerms of the required node affinity: any of them; () asks nothing."""
    has_required_node_terms: bool = False
    preferred_node_terms: tuple[Mapping[str, Any], ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()
    ports: frozenset[tuple[str, int, str]] = frozenset()
    """(protocol, port, address) of the host."""
    pod_affinity: tuple[Mapping[str, Any], ...] = ()
    """Required terms."""
    pod_anti_affinity: tuple[Mapping[str, Any], ...] = ()
    preferred_pod_affinity: tuple[Mapping[str, Any], ...] = ()
    """Weighted terms; those of anti-affinity with a negative weight."""
    allowed_nodes: frozenset[str] | None = None
    """The nodes that the task's volumes and claims can be reached from; None: all."""
    missing: str = ""
    """Why the task can be placed nowhere at all: a ConfigMap that is not there, a claim that cannot be resolved."""
    nominated_node: str = ""


ANYWHERE: Final = Constraints()


@dataclass(slots=True, eq=False)
class Task:
    """One pod. A session changes its status, node and GPU groups through statements alone."""

    uid: str
    name: str
    namespace: str
    request: Request
    created: float = 0.0
    constraints: Constraints = ANYWHERE
    labels: Mapping[str, str] = field(default_factory=dict)
    subgroup: str = ""
    rank: tuple[int, int, int] = (0, 0, 0)
    """What goes before age among the tasks of a job: role, head of a Ray cluster, its own priority (see ordering)."""
    status: Status = Status.PENDING
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    is_virtual: bool = False
    """Whether its status is a session's idea that is not carried out yet."""
    accepted: Amounts = Amounts()
    """What it weighs for its queue where it is; kept by the session while it occupies a node."""
    started: float = 0.0
    longest_run: float | None = None
    """Seconds after which it has ended for certain, or has promised to; None: nobody knows."""
    is_reservation: bool = False
    """Holds a GPU for those who share it, and weighs nothing."""
    hold: Hold | None = None
    """What it occupies, or is promised; while it moves, the promise."""
    pod_set: PodSet = field(init=False)
    job: Job = field(init=False)

    @property
    def order(self) -> tuple[Any, ...]:
        """Tasks are placed in this order, and evicted in its reverse."""
        return (*self.rank, self.created, self.uid)

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name

    def is_to_place(self, *, for_real: bool) -> bool:
        """Whether it waits for a node; within a simulation also what was evicted just now."""
        if self.status is Status.PENDING:
            return True
        return not for_real and self.status is Status.RELEASING and self.is_virtual

    def become(self, status: Status) -> None:
        """Changes its status, and what its job knows of it."""
        self.job.change(self, status)
