"""Clusters as Hypothesis draws them: small, crowded, as odd as real ones. Whatever runs has its place from the start.

They are scenarios, so that a failing one can be written into a file and looked at with the scenarios' own command.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from shoal.scheduler.scenarios.cases import (
    ConfigCase,
    Expected,
    GroupCase,
    JobCase,
    NodeCase,
    QueueCase,
    Scenario,
    State,
    TaskCase,
)

GPU_MEMORY = 1000
_PENDING: State = "Pending"


@dataclass
class _Room:
    """What is left of a node."""

    name: str
    gpus: int
    cpu: float
    memory: float
    pods: int
    shared: dict[str, float] = field(default_factory=dict)

    def takes(self, job: JobCase, gpu: float) -> tuple[str, ...] | None:
        """Takes a pod in, on the devices that it shares; None where there is no room."""
        is_shared = 0 < gpu < 1
        group = next((name for name, left in self.shared.items() if left + 1e-9 >= gpu), "") if is_shared else ""
        devices = 1 if is_shared and not group else int(gpu)
        pods = 2 if is_shared and not group else 1
        if self.gpus < devices or self.cpu < job.cpu or self.memory < job.memory or self.pods < pods:
            return None
        self.gpus -= devices
        self.cpu -= job.cpu
        self.memory -= job.memory
        self.pods -= 1
        if not is_shared:
            return ()
        group = group or f"{self.name}-{len(self.shared)}"
        self.shared[group] = round(self.shared.get(group, 1.0) - gpu, 6)
        return (group,)


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, NodeCase]:
    made = {}
    for place in range(draw(st.integers(1, 4))):
        made[f"n{place}"] = NodeCase(
            gpus=draw(st.sampled_from((0, 2, 4, 4))),
            gpu_memory=GPU_MEMORY,
            cpu=draw(st.sampled_from((4.0, 8.0, 100.0))),
            memory=draw(st.sampled_from((8e9, 100e9))),
            max_pods=draw(st.sampled_from((4, 110))),
        )
    return made


@st.composite
def queues(draw: st.DrawFn) -> tuple[QueueCase, ...]:
    made: list[QueueCase] = []
    for department in range(draw(st.integers(1, 2))):
        parent = f"d{department}"
        made.append(draw(_queue(parent, "")))
        made += [draw(_queue(f"{parent}q{place}", parent)) for place in range(draw(st.integers(1, 2)))]
    return tuple(made)


@st.composite
def _queue(draw: st.DrawFn, name: str, parent: str) -> QueueCase:
    return QueueCase(
        name=name,
        parent=parent,
        priority=draw(st.sampled_from((100, 100, 100, 200))),
        gpu_quota=float(draw(st.sampled_from((-1, 0, 1, 2, 3, 4, 6)))),
        gpu_weight=float(draw(st.integers(0, 2))),
        gpu_limit=float(draw(st.sampled_from((-1, -1, -1, 2, 4)))),
        cpu_quota_milli=float(draw(st.sampled_from((-1, -1, 2000, 6000)))),
        cpu_limit_milli=float(draw(st.sampled_from((-1, -1, -1, 4000)))),
    )


@st.composite
def _job(draw: st.DrawFn, name: str, leaves: tuple[str, ...], rooms: list[_Room]) -> JobCase:
    gpu = draw(st.sampled_from((0.0, 1.0, 1.0, 1.0, 2.0, 4.0, 0.5, 0.25, 0.7)))
    count = draw(st.integers(1, 4))
    job = JobCase(
        name=name,
        queue=draw(st.sampled_from(leaves)),
        tasks=(),
        priority=draw(st.sampled_from((50, 50, 50, 75, 100, 125))),
        gpu=gpu,
        cpu=draw(st.sampled_from((0.5, 1.0, 2.0))),
        memory=draw(st.sampled_from((1e9, 4e9))),
    )
    tree, subgroups = draw(_tree(count))
    minimum = draw(st.integers(0, count)) if tree is None else None
    running = draw(st.sampled_from((0, 0, 0, count, count, -1)))
    if running < 0:  # those of a gang that has what it needs, and not more
        running = minimum or 0 if tree is None else count
    tasks = []
    for place in range(count):
        task = TaskCase(state=_PENDING, sub_group=subgroups[place])
        if place < running:
            task = draw(_placed(job, task, rooms))
        elif draw(st.integers(0, 19)) == 0:
            task = TaskCase(state="Gated", sub_group=subgroups[place])
        tasks.append(task)
    return JobCase(
        name=job.name,
        queue=job.queue,
        tasks=tuple(tasks),
        priority=job.priority,
        gpu=gpu,
        cpu=job.cpu,
        memory=job.memory,
        min_member=minimum,
        sub_groups=tree,
        preemptibility=draw(st.sampled_from(("", "", "", "preemptible", "non-preemptible"))),
    )


@st.composite
def _placed(draw: st.DrawFn, job: JobCase, task: TaskCase, rooms: list[_Room]) -> TaskCase:
    for room in draw(st.permutations(rooms)):
        groups = room.takes(job, job.gpu)
        if groups is not None:
            state: State = draw(st.sampled_from(("Running", "Running", "Running", "Running", "Running", "Releasing")))
            return TaskCase(state=state, node=room.name, gpu_groups=groups, sub_group=task.sub_group)
    return task


@st.composite
def _tree(draw: st.DrawFn, count: int) -> tuple[GroupCase | None, tuple[str, ...]]:
    """A tree of subgroups, or none, and the leaf of each pod."""
    shape = draw(st.sampled_from(("flat", "flat", "flat", "leaves", "inner")))
    if shape == "flat" or count < 2:
        return None, ("",) * count
    names = tuple(f"g{place % 2}" for place in range(count))
    leaves = tuple(
        GroupCase(name=name, min_member=draw(st.integers(0, names.count(name)))) for name in sorted(set(names))
    )
    needed = draw(st.sampled_from((None, None, 1, 2)))
    if shape == "leaves":
        return GroupCase(min_sub_group=needed, groups=leaves), names
    return GroupCase(groups=(GroupCase(name="inner", min_sub_group=needed, groups=leaves),)), names


@st.composite
def clusters(draw: st.DrawFn, most_jobs: int = 8) -> Scenario:
    """A cluster in the middle of its life."""
    made_nodes, made_queues = draw(nodes()), draw(queues())
    parents = {queue.parent for queue in made_queues}
    leaves = tuple(queue.name for queue in made_queues if queue.name not in parents)
    rooms = [_Room(name, node.gpus, node.cpu, node.memory, node.max_pods) for name, node in made_nodes.items()]
    jobs = tuple(draw(_job(f"j{place}", leaves, rooms)) for place in range(draw(st.integers(1, most_jobs))))
    placement = draw(st.sampled_from((None, None, None, {"gpu": "spread", "cpu": "spread"})))
    return Scenario(
        id="drawn",
        nodes=made_nodes,
        queues=made_queues,
        jobs=jobs,
        expect=Expected(),
        actions="all",
        config=None if placement is None else ConfigCase(nodeplacement=placement),
    )


@st.composite
def contested(draw: st.DrawFn) -> Scenario:
    """A cluster full of what some queues run while others wait: who has how much of it is by chance."""
    gpus = draw(st.integers(2, 8))
    leaves = draw(st.lists(st.sampled_from(("d0q0", "d0q1", "d1q0", "d1q1")), min_size=2, max_size=4, unique=True))
    names = [*sorted({leaf[:2] for leaf in leaves}), *sorted(leaves)]
    made_queues = tuple(
        QueueCase(
            name=name,
            parent=name[:-2],
            gpu_quota=float(draw(st.integers(0, 4))),
            gpu_weight=float(draw(st.integers(0, 2))),
        )
        for name in names
    )
    jobs: list[JobCase] = []
    left = gpus
    while left:
        size = draw(st.integers(1, min(2, left)))
        left -= size
        tasks = tuple(TaskCase(state="Running", node="n0") for _ in range(size))
        least = draw(st.integers(0, size))
        queue = draw(st.sampled_from(leaves))
        jobs.append(JobCase(name=f"r{len(jobs)}", queue=queue, tasks=tasks, gpu=1.0, min_member=least))
    for place in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 3))
        tasks = tuple(TaskCase(state=_PENDING) for _ in range(size))
        jobs.append(JobCase(name=f"w{place}", queue=draw(st.sampled_from(leaves)), tasks=tasks, gpu=1.0))
    return Scenario(
        id="drawn",
        nodes={"n0": NodeCase(gpus=gpus)},
        queues=made_queues,
        jobs=tuple(jobs),
        expect=Expected(),
        actions="all",
    )
