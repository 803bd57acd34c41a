"""What a case file may say, field by field, with the defaults that hold where it says nothing.

The units are those of the files: a pod's and a node's CPU in cores, a queue's in thousandths of a core, a queue's
memory in 10^6 bytes. -1 stands for *unlimited* here and nowhere else: whoever builds an engine's model of a scenario
turns it into the model's own word for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
"""A whole cycle, in its order."""

DEFAULT_LEAF: Final = "default"
"""The leaf of a gang without subgroups, and of pods that name none."""

FIRST_NON_PREEMPTIBLE_PRIORITY: Final = 100
GRACE_OF_ONE_ACTION_S: Final = 60.0
GRACE_OF_A_CYCLE_S: Final = 0.0
STARTED_BEFORE_S: Final = 60.0
"""How long before a session every pod that runs was started."""

TYPE_LABEL: Final = "kai.scheduler/type"
GPU_COUNT_LABEL: Final = "nvidia.com/gpu.count"
MIG_PREFIX: Final = "nvidia.com/mig-"

State: TypeAlias = Literal[
    "Pending",
    "Gated",
    "Allocated",
    "Pipelined",
    "Binding",
    "Bound",
    "Running",
    "Releasing",
    "StuckInReleasing",
    "Succeeded",
    "Failed",
    "Unknown",
]


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written in a file; a field that nobody knows is refused, since it would change nothing."""


class NodeCase(_Written, frozen=True):
    """A node, ready and empty but for the tasks that name it."""

    gpus: int = 0
    gpu_memory: int = 100
    """MiB of each GPU."""
    cpu: float = 20_000
    """Cores."""
    memory: float = 20e9
    """Bytes."""
    max_pods: int = 110
    mig_strategy: Literal["", "none", "single", "mixed"] = ""
    mig: dict[str, int] = {}
    """Instances by profile; `mig_resource` gives the resource's whole name."""
    labels: dict[str, str] = {}

    @property
    def whole_gpus(self) -> int:
        """The devices that it offers as such: none where it is cut into instances of several sizes."""
        return 0 if self.mig_strategy == "mixed" else self.gpus

    def all_labels(self, name: str) -> dict[str, str]:
        """Its own labels beside those that every node has."""
        return {TYPE_LABEL: name, GPU_COUNT_LABEL: str(self.gpus), **self.labels}


class QueueCase(_Written, frozen=True):
    """A queue; one that is written earlier is older. -1: unlimited."""

    name: str
    parent: str = ""
    priority: int = 100
    gpu_quota: float = 0
    gpu_weight: float = 0
    """A weight of -1 is read as 1: see `weight`."""
    gpu_limit: float = -1
    cpu_quota_milli: float = -1
    cpu_limit_milli: float = -1
    memory_quota_mb: float = -1
    memory_limit_mb: float = -1
    reclaim_min_runtime_s: float | None = None

    @property
    def weight(self) -> float:
        """Its part of the GPUs that are left over; of CPU and memory it is always 1."""
        return 1.0 if self.gpu_weight < 0 else self.gpu_weight


class TopologyCase(_Written, frozen=True):
    """How near to each other the pods of a group are to be: labels of a topology's levels."""

    name: str
    required: str = ""
    preferred: str = ""


class GroupCase(_Written, frozen=True):
    """A place in a job's tree: a leaf with its minimum of pods, or an inner one with its minimum of children."""

    name: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    topology: TopologyCase | None = None
    groups: tuple[GroupCase, ...] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it holds pods."""
        return self.groups is None

    def leaves(self) -> Iterator[GroupCase]:
        """The leaves below it, or itself."""
        if self.groups is None:
            yield self
            return
        for group in self.groups:
            yield from group.leaves()


class TaskCase(_Written, frozen=True):
    """One pod."""

    state: State
    node: str = ""
    gpu_groups: tuple[str, ...] = ()
    """The devices that a pod with parts of GPUs shares: names that mean something on its node alone."""
    sub_group: str = ""
    gpu: float | None = None
    """Instead of the job's."""
    task_priority: int | None = None
    node_affinity: tuple[str, ...] = ()
    """Required: names of nodes (values of the label kai.scheduler/type)."""
    mig: dict[str, int] = {}
    labels: dict[str, str] = {}
    pod_affinity_key: str = ""
    """Required: the node label that makes a domain, with pods that carry ``labels``."""
    pod_anti_affinity_key: str = ""


class JobCase(_Written, frozen=True):
    """A gang; among jobs of one priority the one that is written earlier is older."""

    name: str
    queue: str
    tasks: tuple[TaskCase, ...]
    priority: int = 50
    preemptibility: Literal["", "preemptible", "non-preemptible"] = ""
    gpu: float = 0
    """Per task; less than 1 is a part of a device."""
    gpu_memory: int = 0
    """MiB of each device, in place of ``gpu``."""
    gpu_fraction_devices: int = 1
    cpu: float = 1
    """Cores."""
    memory: float = 1e9
    """Bytes."""
    best_effort: bool = False
    """Its pods ask for nothing."""
    min_member: int | None = None
    sub_groups: GroupCase | None = None
    age_minutes: float | None = None
    preemption_delay_s: float = 0
    stale_for_s: float | None = None
    """For how long it has been known to be below its minimum; None: not known yet."""
    staleness_grace_s: float | None = None
    """None: the scheduler's own; negative: it never goes stale."""
    deleted: bool = False
    """What ends of it goes on ending from cycle to cycle."""

    @property
    def is_preemptible(self) -> bool:
        """Whether its pods may be taken away: as it says, else by its priority."""
        if self.preemptibility:
            return self.preemptibility == "preemptible"
        return self.priority < FIRST_NON_PREEMPTIBLE_PRIORITY

    def task_name(self, index: int) -> str:
        """The name of its task at a place."""
        return f"{self.name}-{index}"

    def named_tasks(self) -> Iterator[tuple[str, TaskCase]]:
        """Its tasks with their names."""
        for index, task in enumerate(self.tasks):
            yield self.task_name(index), task

    def gpu_of(self, task: TaskCase) -> float:
        """The GPUs that a task asks for by number."""
        return self.gpu if task.gpu is None else task.gpu

    def shares_gpu(self, task: TaskCase) -> bool:
        """Whether a task asks for parts of GPUs."""
        return not self.best_effort and not task.mig and (self.gpu_memory > 0 or 0 < self.gpu_of(task) < 1)

    def tree(self) -> GroupCase:
        """Its tree, whole: with the leaf ``default`` where there are no groups, or where pods name none of them."""
        minimum = len(self.tasks) if self.min_member is None else self.min_member
        default = GroupCase(name=DEFAULT_LEAF, min_member=minimum)
        root = self.sub_groups or GroupCase(groups=())
        groups = root.groups or ()
        known = {leaf.name for leaf in root.leaves()} if groups else set()
        if not groups or (DEFAULT_LEAF not in known and any(not task.sub_group for task in self.tasks)):
            groups = (*groups, default)
        return msgspec.structs.replace(root, groups=groups)


class LevelsCase(_Written, frozen=True):
    """A topology: the node labels of its levels, widest first."""

    name: str
    levels: tuple[str, ...]


class ConfigCase(_Written, frozen=True):
    """The scheduler's plugins, where they are not the usual ones."""

    plugins: tuple[str, ...] | None = None
    nodeplacement: dict[str, str] | None = None


class ExpectedTask(_Written, frozen=True):
    """What is expected of a task, or of every task of a job; what is not given is not compared."""

    state: State
    node: str | None = None
    gpu_groups: tuple[str, ...] | None = None
    gpus_accepted: float | None = None


class ExpectedNode(_Written, frozen=True):
    """What is expected of a node's GPUs."""

    idle_gpus: float | None = None
    releasing_gpus: float | None = None


class MaxCalls(_Written, frozen=True):
    """How many of each there may be in one session."""

    binds: int | None = None
    evictions: int | None = None
    pipelines: int | None = None


class Expected(_Written, frozen=True):
    """All that is expected."""

    jobs: dict[str, ExpectedTask] = {}
    tasks: dict[str, ExpectedTask] = {}
    nodes: dict[str, ExpectedNode] = {}
    max_calls: MaxCalls = MaxCalls()


class Scenario(_Written, frozen=True):
    """A cluster, what is run on it, and what is expected of it."""

    id: str
    nodes: dict[str, NodeCase]
    queues: tuple[QueueCase, ...]
    jobs: tuple[JobCase, ...]
    expect: Expected
    actions: Literal["all", "allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
    area: str = ""
    title: str = ""
    rule: str = ""
    """Where the expectation comes from."""
    note: str = ""
    origin: str = ""
    rounds: int = 1
    """Cycles before the first comparison."""
    stable_rounds: int = 0
    """Cycles after it that must change nothing."""
    topologies: tuple[LevelsCase, ...] = ()
    config: ConfigCase | None = None

    @property
    def is_whole_cycle(self) -> bool:
        """Whether all actions run, cycle after cycle."""
        return self.actions == "all"

    @property
    def staleness_grace_s(self) -> float:
        """How long a gang may be below its minimum where it does not say so itself."""
        return GRACE_OF_A_CYCLE_S if self.is_whole_cycle else GRACE_OF_ONE_ACTION_S


class ClaimCase(_Written, frozen=True):
    """What one queue brings to a division; -1: unlimited."""

    name: str
    quota: float = 0
    weight: float = 0
    request: float = 0
    limit: float = -1
    priority: int = 100
    usage: float = 0
    created: float = 0


class DivisionCase(_Written, frozen=True):
    """One amount, the queues of one level, and what each should get."""

    id: str
    total: float
    queues: tuple[ClaimCase, ...]
    expect: dict[str, float]
    k: float = 0
    remaining: float | None = None
    origin: str = ""
    title: str = ""
    rule: str = ""
    note: str = ""


def mig_resource(profile: str) -> str:
    """The resource of a MIG profile: ``1g.10gb`` and ``nvidia.com/mig-1g.10gb`` are the same."""
    return profile if profile.startswith(MIG_PREFIX) else MIG_PREFIX + profile.removeprefix("mig-")
