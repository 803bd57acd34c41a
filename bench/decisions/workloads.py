"""What is measured: each workload makes its cluster, names the actions, and says what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

from bench.decisions.clusters import GPUS, Wish, a_cluster, a_queue, departments
from shoal.scheduler.model.amounts import UNLIMITED
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.session.settings import ACTIONS

TASKS_OF_GANGS = (8, 16, 32, 64)
NODES_OF_VAIN_GANG = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One cluster, and what a cycle is to do with it."""

    name: str
    make: Callable[[], Cluster]
    actions: Sequence[str] = ACTIONS
    binds: int = 0
    evictions: int = 0
    pipelines: int = 0
    """What has to be decided: a bench that decides something else measures something else."""


def waiting(nodes: int, jobs: int, *, queues: int = 4, tasks: int = 1) -> Workload:
    """Jobs of one-GPU tasks that wait, in queues that share the cluster evenly. KAI's: four queues, one task."""
    wishes = [Wish(queue=f"queue-{place % queues}", tasks=tasks) for place in range(jobs)]
    return Workload(
        name=f"allocate {nodes:,}/{jobs:,}" + (f" × {tasks}" if tasks > 1 else ""),
        make=lambda: a_cluster(nodes, departments(queues, nodes * GPUS), wishes),
        actions=("allocate",),
        binds=min(jobs, nodes * GPUS // tasks) * tasks,
    )


def settled(nodes: int, jobs: int) -> Workload:
    """Everybody runs, and reclaim finds nothing to do: what KAI's takes for it is the making of its session. KAI's."""
    wishes = [Wish(queue=f"queue-{place % 4}", rows=(place % nodes,)) for place in range(jobs)]
    return Workload(
        name=f"no reclaim {nodes:,}/{jobs:,}",
        make=lambda: a_cluster(nodes, departments(4, nodes * GPUS), wishes),
        actions=("reclaim",),
    )


def mixed(nodes: int, jobs: int) -> Workload:
    """Half of the jobs run and half wait; there is room for all. KAI's."""
    wishes = [Wish(queue=f"queue-{place % 4}", rows=() if place % 2 else (place % nodes,)) for place in range(jobs)]
    return Workload(
        name=f"cycle {nodes:,}/{jobs:,}",
        make=lambda: a_cluster(nodes, departments(4, nodes * GPUS), wishes),
        binds=jobs // 2,
    )


def large_reclaim(nodes: int) -> Workload:
    """One queue has all nodes, GPU by GPU, and is entitled to nothing; a gang wants half of them. KAI's."""
    gang = nodes // 2
    wishes = [Wish(queue="queue-0", rows=(place % nodes,)) for place in range(nodes * GPUS)]
    wishes.append(Wish(queue="queue-1", tasks=gang, gpus=GPUS))
    queues = [a_queue("queue-0", 0, weight=0), a_queue("queue-1", nodes * GPUS, weight=0, age=1)]
    return Workload(
        name=f"large gang, {nodes:,}",
        make=lambda: a_cluster(nodes, queues, wishes),
        actions=("reclaim",),
        evictions=gang * GPUS,
        pipelines=gang,
    )


def vain_reclaim(nodes: int) -> Workload:
    """A gang of ten nodes is entitled to them, and one GPU of those is another's by right: nothing helps. KAI's."""
    gpus = NODES_OF_VAIN_GANG * GPUS
    wishes = [Wish(queue="queue-0", rows=(place % nodes,)) for place in range(nodes * GPUS)]
    wishes.append(Wish(queue="queue-1", tasks=NODES_OF_VAIN_GANG, gpus=GPUS))
    queues = [a_queue("queue-0", nodes * GPUS - gpus + 1, weight=0), a_queue("queue-1", gpus, weight=0, age=1)]
    return Workload(name=f"in vain, {nodes:,}", make=lambda: a_cluster(nodes, queues, wishes), actions=("reclaim",))


def many_reclaims(nodes: int) -> Workload:
    """One queue has the cluster in jobs of one GPU, and all of it is another's, job by job: a whole cycle. KAI's."""
    jobs = nodes * GPUS
    wishes = [Wish(queue="a", rows=(place % nodes,)) for place in range(jobs)]
    wishes += [Wish(queue="b") for _ in range(jobs)]
    queues = [a_queue("a", 0, weight=0), a_queue("b", jobs, weight=0, age=1)]
    return Workload(
        name=f"reclaim {nodes:,}/{jobs:,}/{jobs:,}",
        make=lambda: a_cluster(nodes, queues, wishes),
        evictions=jobs,
        pipelines=jobs,
    )


def half_reclaim(nodes: int) -> Workload:
    """One of two equal queues has everything; as many jobs wait in the other, which gets its half. A whole cycle."""
    jobs = nodes * GPUS
    wishes = [Wish(queue="a", rows=(place // GPUS,)) for place in range(jobs)]
    wishes += [Wish(queue="b") for _ in range(jobs)]
    queues = [
        a_queue("root", UNLIMITED),
        a_queue("a", jobs / 2, parent="root"),
        a_queue("b", jobs / 2, parent="root", age=1),
    ]
    return Workload(
        name="… and half of it",
        make=lambda: a_cluster(nodes, queues, wishes),
        evictions=jobs // 2,
        pipelines=jobs // 2,
    )


def gangs(nodes: int) -> Workload:
    """Gangs of several sizes that fill the cluster, in twenty queues."""
    wishes: list[Wish] = []
    left = nodes * GPUS
    for place, tasks in enumerate(cycle(TASKS_OF_GANGS)):
        if not left:
            break
        wishes.append(Wish(queue=f"queue-{place % 20}", tasks=min(tasks, left)))
        left -= wishes[-1].tasks
    return Workload(
        name=f"gangs {nodes:,}/{nodes * GPUS:,}",
        make=lambda: a_cluster(nodes, departments(20, nodes * GPUS), wishes),
        actions=("allocate",),
        binds=nodes * GPUS,
    )
