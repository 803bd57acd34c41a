"""A scenario as the engine's model: what a file says in its own units, said in the model's words."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from shoal.api.kai_names import NODE_MIG_STRATEGY
from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.cluster import Cluster, Topology
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup, TopologyWish
from shoal.scheduler.model.nodes import Hold, Node, Nodes
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import ACTIVE_USED, BY_WORD, Status
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request, Task
from shoal.scheduler.scenarios.cases import (
    MIG_PREFIX,
    STARTED_BEFORE_S,
    TYPE_LABEL,
    GroupCase,
    JobCase,
    NodeCase,
    QueueCase,
    Scenario,
    TaskCase,
    TopologyCase,
    mig_resource,
)
from shoal.scheduler.session.settings import PLUGINS, Settings, Strategy

_NAMESPACE: Final = "scenario"
_SOME_GROUP: Final = "some"
"""The device of a task that shares one and does not say which."""
_NO_PRIORITY: Final = 2**62
"""A task without a priority of its own comes after all that have one."""
_APART: Final = 1e-3
"""Seconds between the ages of jobs, pods and queues that are written one after the other."""


def cluster_of(scenario: Scenario, now: float) -> Cluster:
    """The cluster before the first action."""
    names = ResourceNames()
    nodes = [_node(name, case, names) for name, case in scenario.nodes.items()]
    kinds = _Kinds(names)
    jobs = [_job(place, case, now) for place, case in enumerate(scenario.jobs)]
    tasks = [kinds.tasks(job, case, now) for job, case in zip(jobs, scenario.jobs, strict=True)]
    table = Nodes(nodes, names)
    for job, own in zip(jobs, tasks, strict=True):
        for task in own:
            _settle(task, table)
            job.add(task)
    return Cluster(
        nodes=table,
        jobs={job.key: job for job in jobs},
        queues={case.name: _queue(place, case) for place, case in enumerate(scenario.queues)},
        topologies={case.name: Topology(case.name, case.levels) for case in scenario.topologies},
    )


def settings_of(scenario: Scenario) -> Settings:
    """The settings that the expectations of case files are written for."""
    config = scenario.config
    placement = (config and config.nodeplacement) or {}
    plugins = PLUGINS if config is None or config.plugins is None else config.plugins
    return Settings(
        plugins=plugins,
        cpu_strategy=Strategy(placement.get("cpu", "binpack")),
        gpu_strategy=Strategy(placement.get("gpu", "binpack")),
        max_consolidation_victims=None,
        uses_signatures=False,
        staleness_grace=scenario.staleness_grace_s,
    )


def _node(name: str, case: NodeCase, names: ResourceNames) -> Node:
    instances = {mig_resource(profile): float(count) for profile, count in case.mig.items()}
    amounts = {
        "cpu": case.cpu * 1000,
        "memory": case.memory,
        "gpu": float(case.whole_gpus),
        "pods": float(case.max_pods),
    }
    labels = case.all_labels(name)
    if case.mig_strategy:
        labels[NODE_MIG_STRATEGY] = case.mig_strategy
    return Node(
        name=name,
        allocatable=names.vector({**amounts, **instances}),
        labels=labels,
        gpu_memory=max(100, case.gpu_memory - case.gpu_memory % 100),
        is_gpu_memory_known=True,
        gpu_count=case.gpus,
        has_mig=bool(instances) or case.mig_strategy in ("single", "mixed"),
        mig_strategy=case.mig_strategy if case.mig_strategy in ("single", "mixed") else "",
    )


def _queue(place: int, case: QueueCase) -> Queue:
    mega = 1e6
    return Queue(
        name=case.name,
        parent=case.parent,
        priority=case.priority,
        created=place * _APART,
        quota=Amounts(_bound(case.cpu_quota_milli), _bound(case.memory_quota_mb) * mega, _bound(case.gpu_quota)),
        limit=Amounts(_bound(case.cpu_limit_milli), _bound(case.memory_limit_mb) * mega, _bound(case.gpu_limit)),
        weight=Amounts(1.0, 1.0, case.weight),
        reclaim_min_runtime=case.reclaim_min_runtime_s,
    )


def _bound(written: float) -> float:
    return UNLIMITED if written < 0 else float(written)


def _job(place: int, case: JobCase, now: float) -> Job:
    age = (case.age_minutes or 0) * 60
    return Job(
        uid=f"{place:06d}",
        name=case.name,
        namespace=_NAMESPACE,
        queue=case.queue,
        priority=case.priority,
        is_preemptible=case.is_preemptible,
        created=now - 1 - age + place * _APART,
        root=_group(case.tree()),
        preemption_delay=case.preemption_delay_s,
        staleness_grace=case.staleness_grace_s,
        stale_since=None if case.stale_for_s is None else now - case.stale_for_s,
        last_start=now - STARTED_BEFORE_S if any(task.state == "Running" for task in case.tasks) else None,
    )


def _group(case: GroupCase) -> SubGroup:
    children = case.groups or ()
    return SubGroup(
        name=case.name,
        min_children=case.min_sub_group,
        topology=_wish(case.topology),
        groups=[_group(child) for child in children if not child.is_leaf],
        pod_sets=[
            PodSet(
                name=child.name,
                min_member=1 if child.min_member is None else child.min_member,
                topology=_wish(child.topology),
            )
            for child in children
            if child.is_leaf
        ],
    )


def _wish(case: TopologyCase | None) -> TopologyWish | None:
    if case is None or not (case.required or case.preferred):
        return None
    return TopologyWish(case.name, case.required, case.preferred)


class _Kinds:
    """Tasks that ask for the same hold the same objects."""

    def __init__(self, names: ResourceNames) -> None:
        self._names = names
        self._requests: dict[Hashable, Request] = {}
        self._constraints: dict[Hashable, Constraints] = {}

    def tasks(self, job: Job, case: JobCase, now: float) -> list[Task]:
        return [
            Task(
                uid=f"{job.uid}-{place:06d}",
                name=name,
                namespace=_NAMESPACE,
                request=self._request(case, task),
                created=now - 1 + place * _APART,
                constraints=self._constraint(task),
                labels=task.labels,
                subgroup=task.sub_group,
                rank=(0, 0, _NO_PRIORITY if task.task_priority is None else -task.task_priority),
                status=BY_WORD[task.state],
                node=task.node,
                gpu_groups=(task.gpu_groups or (_SOME_GROUP,)) if case.shares_gpu(task) and task.node else (),
            )
            for place, (name, task) in enumerate(case.named_tasks())
        ]

    def _request(self, case: JobCase, task: TaskCase) -> Request:
        gpu, instances = case.gpu_of(task), tuple(sorted(task.mig.items()))
        key = gpu, instances, case.gpu_memory, case.gpu_fraction_devices, case.cpu, case.memory, case.best_effort
        if key not in self._requests:
            amounts = {"pods": 1.0}
            asked = NOTHING
            if not case.best_effort:
                amounts |= {"cpu": case.cpu * 1000, "memory": case.memory}
            if instances:
                amounts |= {mig_resource(profile): float(count) for profile, count in instances}
                asked = GpuRequest(mig=tuple((mig_resource(p).removeprefix(MIG_PREFIX), n) for p, n in instances))
            elif case.shares_gpu(task):
                portion = 0.0 if case.gpu_memory else gpu
                asked = GpuRequest(portion=portion, memory=case.gpu_memory, devices=case.gpu_fraction_devices)
            elif gpu and not case.best_effort:
                amounts["gpu"] = gpu
                asked = GpuRequest(whole=int(gpu))
            self._requests[key] = Request(
                vector=self._names.vector(amounts), gpu=asked, is_best_effort=case.best_effort and asked is NOTHING
            )
        return self._requests[key]

    def _constraint(self, task: TaskCase) -> Constraints:
        labels = tuple(sorted(task.labels.items()))
        key = task.node_affinity, task.pod_affinity_key, task.pod_anti_affinity_key, labels
        if not any(key[:3]):
            return ANYWHERE
        if key not in self._constraints:
            names = {"key": TYPE_LABEL, "operator": "In", "values": list(task.node_affinity)}
            selector = {"matchLabels": dict(task.labels)}
            near, far = task.pod_affinity_key, task.pod_anti_affinity_key
            self._constraints[key] = Constraints(
                required_node_terms=({"matchExpressions": [names]},) if task.node_affinity else (),
                has_required_node_terms=bool(task.node_affinity),
                pod_affinity=({"labelSelector": selector, "topologyKey": near},) if near else (),
                pod_anti_affinity=({"labelSelector": selector, "topologyKey": far},) if far else (),
            )
        return self._constraints[key]


def _settle(task: Task, nodes: Nodes) -> None:
    """Lets a task occupy the node that it is on; one that holds a place on no node waits for one."""
    if task.status not in ACTIVE_USED:
        return
    if not task.node:
        task.status = Status.PENDING
        return
    row = nodes.index[task.node]
    task.hold = Hold(task, row, task.status, task.gpu_groups)
    nodes.add(task.hold)
    task.accepted = task.request.amounts_on(nodes.nodes[row].gpu_memory)
