"""The model, kept as the cluster is: every change that is watched changes as little of it as it can.

Changes are noted when they are seen and taken in between two cycles (`catch_up`), so that a cycle, which runs in a
thread of its own, works on something that stands still. Nothing is counted anew that did not change: what queues hold
and ask for and who is on which node are kept from cycle to cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog

from shoal.api import kai_names as names
from shoal.api.core import nodes as wire_nodes
from shoal.api.core.pods import Pod
from shoal.api.scheduling_run_ai import BindRequest
from shoal.scheduler.binding.backoff import FAILED, rests_until
from shoal.scheduler.binding.orders import is_for, is_open
from shoal.scheduler.model.amounts import NONE
from shoal.scheduler.model.cluster import Cluster, Topology
from shoal.scheduler.model.jobs import Job, single_pod_set
from shoal.scheduler.model.nodes import Hold, Nodes
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import ACTIVE_USED, Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.numa import NodeTopology, NumaSettings, NumaTable, Zones, noted_zones
from shoal.scheduler.session.filters import Filters
from shoal.scheduler.session.pod_index import PodIndex
from shoal.scheduler.shares.tree import QueueTree
from shoal.scheduler.watching.groups import Dialect, GangKey, Membership, Seat, gang_of
from shoal.scheduler.watching.kinds import Kinds, is_same_task, seconds, task_of
from shoal.scheduler.watching.machines import Machines
from shoal.scheduler.watching.needs import NO_NEED, Kind, Need, Needs, ObjectKey
from shoal.scheduler.watching.noting import Noted
from shoal.scheduler.watching.reading import moment_of
from shoal.scheduler.watching.settings import MirrorSettings
from shoal.scheduler.watching.standing import Assumption, standing_of
from shoal.scheduler.watching.tally import Tally

log = structlog.get_logger("shoal.scheduler")

__all__ = ["Key", "Mirror", "MirrorSettings"]

_KEPT: Final = {names.LAST_START: "last_start", names.LAST_EVICTION: "last_eviction", names.STALE_SINCE: "stale_since"}
Key = tuple[str, str]


class Mirror:
    """The cluster as the engine's model."""

    def __init__(self, settings: MirrorSettings) -> None:
        self.settings = settings
        self.resources = ResourceNames()
        self.kinds = Kinds(self.resources, reads_zones=settings.reads_zones)
        self.cluster = Cluster(nodes=Nodes((), self.resources))
        self._tally = Tally(self.cluster, full_hierarchy=settings.full_hierarchy)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        """The labels of each."""
        self.pods = PodIndex(self.cluster.nodes, self._namespaces)
        self.filters = Filters(self.cluster.nodes, settings.filters)
        self.noted = Noted()
        self.changed_jobs: set[Key] = set()
        """Jobs that are not as they were when somebody last looked; he empties it."""
        self.changed_nodes: set[str] = set()
        self._needs = Needs(self.cluster.nodes, self._has_place, queue_key=settings.queue_key)
        self._needed: dict[Key, Need] = {}
        """What pods need of other objects, as their tasks know it; of those that need anything."""
        self._again: set[Key] = set()
        """Pods that may need something else since another one got a place, or left one."""
        self._machines = Machines(settings, self.resources, self._needs.gear)
        self._pods: dict[Key, Pod] = {}
        self._tasks: dict[Key, Task] = {}
        self._gangs: dict[GangKey, Job] = {}
        self._strays: dict[GangKey, dict[Key, Task]] = {}
        """Tasks whose gang is not there (yet)."""
        self._seats: dict[GangKey, Seat] = {}
        self._members: dict[Key, Membership] = {}
        """Where the pods are that belong to a gang, or will once it is there."""
        self._requests: dict[Key, BindRequest] = {}
        self._resting: dict[Key, float] = {}
        """Until when pods are left alone, by what their failed requests say."""
        self._assumed: dict[Key, Assumption] = {}
        self._foreign = Job(
            uid="",
            name="",
            namespace="",
            queue="",
            priority=0,
            is_preemptible=False,
            created=0.0,
            root=single_pod_set(0),
        )
        self._topologies: dict[str, Topology] = {}
        self._zones: dict[str, NodeTopology] = {}
        """The NUMA zones of nodes, by their names."""
        self._releasing: dict[Key, float] = {}

    @property
    def has_news(self) -> bool:
        """Whether anything was noted since the last cycle."""
        return bool(self.noted)

    @property
    def shares(self) -> QueueTree:
        """What queues hold and ask for; their fair shares are the cycle's to divide."""
        return self._tally.shares

    @property
    def smallest_gpu(self) -> int:
        """The MiB of the smallest GPU, by which requests of memory are weighed."""
        return self._tally.smallest_gpu

    def job(self, key: GangKey) -> Job | None:
        """A gang's job, if it is there."""
        return self._gangs.get(key)

    def task(self, key: Key) -> Task | None:
        """A pod's task, if it is there."""
        return self._tasks.get(key)

    def pod(self, key: Key) -> Pod | None:
        """A pod as it was last seen by the model."""
        return self._pods.get(key)

    def numa(self, settings: NumaSettings | None) -> NumaTable | None:
        """The NUMA zones of all nodes, for one cycle; None where nobody looks at them."""
        if settings is None:
            return None
        return NumaTable(self.cluster.nodes, self._zones, settings, self._zones_of)

    def _zones_of(self, task: Task) -> Zones:
        pod, request, assumed = self._pods[task.key], self._requests.get(task.key), self._assumed.get(task.key)
        is_ordered = request is not None and request.status.phase != FAILED and is_for(request, pod)
        ordered = request.spec.predicted_numa_zones if request is not None and is_ordered else []
        return noted_zones(pod, ordered, () if assumed is None else assumed.zones)

    def assume(self, task: Task, node: str, gpu_groups: tuple[str, ...], *, until: float, zones: Zones = ()) -> None:
        """A pod got a place: it holds it from now on, until the cluster shows it or the time is over."""
        before = self._requests.get(task.key)
        self._assumed[task.key] = Assumption(node, gpu_groups, until, before.metadata.uid if before else "", zones)
        self._settle(task, self._pods[task.key], 0.0)

    def forget(self, task: Task) -> None:
        """A pod did not get its place after all."""
        now_known = self._tasks.get(task.key)
        if now_known is None or now_known.uid != task.uid:
            return
        if self._assumed.pop(task.key, None) is not None:
            self._settle(now_known, self._pods[task.key], 0.0)

    def remember(self, key: Key, marks: Mapping[str, str | None]) -> bool:
        """Keeps what became of a job that has no PodGroup of KAI's; False where it is to be written on one."""
        job = self.cluster.jobs.get(key)
        if job is not None and "/" in job.name:
            for annotation, kept in _KEPT.items():
                if annotation in marks:
                    setattr(job, kept, moment_of(marks[annotation]))
        return job is None or "/" in job.name

    def catch_up(self, now: float) -> None:
        """Takes in what was noted."""
        for tell in list(self.noted.tellers.values()):
            tell()
        noted, self.noted = self.noted, Noted()
        self._see_namespaces(noted)
        concerned, machines = self._needs.take_in(noted.objects)
        if self._see_nodes({**self._machines.last_seen(machines), **noted.nodes}):
            concerned |= self._needs.stand_on(self.cluster.nodes)
        self._see_queues(noted.queues)
        for name, topology in noted.topologies.items():
            if topology is None:
                self._topologies.pop(name, None)
            else:
                self._topologies[name] = topology
        self.cluster.topologies = self._topologies
        for name, zones in noted.zones.items():
            if zones is None:
                self._zones.pop(name, None)
            else:
                self._zones[name] = zones
        for key, request in noted.requests.items():
            self._see_request(key, request, now)
        for named, seat in noted.seats.items():
            if seat is None:
                self._seats.pop(named, None)
            else:
                self._seats[named] = seat
        for gang, made in noted.gangs.items():
            concerned |= self._see_gang(gang, made)
        for key in concerned & self._pods.keys():
            noted.pods.setdefault(key, self._pods[key])
        for key, pod in noted.pods.items():
            self._see_pod(key, pod, now)
        self._see_time(now)
        for key in self._again & self._pods.keys():
            self._see_pod(key, self._pods[key], now)
        self._again.clear()
        if noted:
            self.kinds.forget_unused(self._tasks.values())

    def is_awaited(self, key: ObjectKey, *values: Any | None) -> bool:
        """Whether a change of an object that was, or is, like this concerns a pod."""
        return self._needs.is_awaited(key, *values)

    def rest(self, now: float) -> Iterable[Key]:
        """The pods whose binding failed and that are to be left alone for now."""
        return [key for key, until in self._resting.items() if until > now]

    def request(self, key: Key) -> BindRequest | None:
        """The BindRequest of a pod."""
        return self._requests.get(key)

    # Nodes

    def _see_nodes(self, seen: Mapping[str, wire_nodes.Node | None]) -> bool:
        """Takes nodes in; says whether there are others now, or others in name or labels."""
        changes = self._machines.see(seen)
        self.changed_nodes |= changes.nodes
        if changes.nodes or self.cluster.nodes.idle.shape[1] != len(self.resources):
            self._rebuild()
        return changes.is_relabelled

    def _see_namespaces(self, noted: Noted) -> None:
        """Takes in what namespaces are called by; what pods that are placed mean to others may depend on it."""
        for (kind, _, name), namespace in noted.objects.items():
            if kind is not Kind.NAMESPACE:
                continue
            before = self._namespaces.pop(name, {})
            if namespace is not None:
                self._namespaces[name] = namespace.metadata.labels
            if before != self._namespaces.get(name, {}) and any(place == name for place, _ in self._tasks):
                self._index_pods()

    def _rebuild(self) -> None:
        """The table of nodes anew, with all that is on them."""
        nodes = self._machines.nodes.values()
        for node in nodes:
            node.shared, node.holds = {}, {}
        self.cluster.nodes = Nodes(nodes, self.resources)
        self.filters = Filters(self.cluster.nodes, self.settings.filters)
        self.pods = PodIndex(self.cluster.nodes, self._namespaces)
        for task in self._tasks.values():
            task.hold, task.accepted = None, NONE
            if task.status in ACTIVE_USED and task.node:
                self._occupy(task)
        self._recount()

    def _index_pods(self) -> None:
        self.pods = PodIndex(self.cluster.nodes, self._namespaces)
        for task in self._tasks.values():
            if task.hold is not None:
                self.pods.add(task, task.hold.node)

    # Queues

    def _see_queues(self, seen: dict[str, Queue | None]) -> None:
        if not seen:
            return
        for name, queue in seen.items():
            if queue is None:
                self.cluster.queues.pop(name, None)
            else:
                self.cluster.queues[name] = queue
        self._recount()

    def _recount(self) -> None:
        """What everybody holds and asks for, counted anew: the queues are others, or the nodes are."""
        self._tally.begin_anew((task, task.job is not self._foreign) for task in self._tasks.values())

    def _count(self, task: Task) -> None:
        self._tally.count(task, is_ours=task.job is not self._foreign)

    # Gangs

    def _see_gang(self, key: GangKey, made: Callable[[], Job] | None) -> set[Key]:
        """Takes a gang in; says which of its pods claim devices, which the queue has a say in."""
        before = self._gangs.pop(key, None)
        tasks = dict(self._strays.pop(key, {}))
        if before is not None:
            if self.cluster.jobs.get(before.key) is before:
                del self.cluster.jobs[before.key]
            self.changed_jobs.add(before.key)
            for task in list(before.tasks.values()):
                before.remove(task)
                tasks[task.key] = task
        claimants = {name for name in tasks.keys() & self._needed.keys() if self._pods[name].spec.resource_claims}
        if made is None:
            for task in tasks.values():
                self._stray(key, task)
            return claimants
        job = made()
        if before is not None and key.dialect is not Dialect.KAI:
            # Only KAI's PodGroups are written upon; of others the model alone knows what became of them.
            job.last_start, job.last_eviction = before.last_start, before.last_eviction
            job.stale_since, job.is_backed_off = before.stale_since, before.is_backed_off
        self._gangs[key] = self.cluster.jobs[job.key] = job
        self.changed_jobs.add(job.key)
        for task in tasks.values():
            job.add(task)
            self._count(task)
        return claimants

    def _stray(self, key: GangKey, task: Task) -> None:
        self._strays.setdefault(key, {})[task.key] = task
        self._foreign_job(task)

    def _foreign_job(self, task: Task) -> None:
        """A task that belongs to no gang of ours only occupies its node."""
        task.job, task.pod_set = self._foreign, next(iter(self._foreign.pod_sets.values()))
        self._count(task)

    # Pods

    def _see_request(self, key: Key, request: BindRequest | None, now: float) -> None:
        self._resting.pop(key, None)
        if request is None:
            self._requests.pop(key, None)
        else:
            self._requests[key] = request
            if (until := rests_until(request)) is not None:
                self._resting[key] = until.timestamp()
            assumed = self._assumed.get(key)
            if assumed is not None and (is_open(request) or request.metadata.uid != assumed.earlier_request):
                del self._assumed[key]
        task = self._tasks.get(key)
        if task is not None:
            self._settle(task, self._pods[key], now)

    def _see_pod(self, key: Key, pod: Pod | None, now: float) -> None:
        task = self._tasks.get(key)
        if pod is None or pod.status.phase == "Failed":
            if task is not None:
                self._drop(key, task)
            self._needs.forget(key)
            self._assumed.pop(key, None)
            return
        if task is not None and pod.metadata.uid != task.uid:
            self._drop(key, task)
            self._assumed.pop(key, None)
            task = None
        need = self._needs.of(pod, lambda: self._queue_of(pod))
        if task is not None and (
            not is_same_task(self._pods[key], pod)
            or self._members.get(key) != self._membership(pod)
            or self._needed.get(key, NO_NEED) != need
        ):
            self._drop(key, task)
            task = None
        self._pods[key] = pod
        if task is None:
            task = task_of(pod, self.kinds, need)
            if self.cluster.nodes.idle.shape[1] != len(self.resources):
                self._rebuild()
            self._tasks[key] = task
            if need is not NO_NEED:
                self._needed[key] = need
            self._join(key, task, pod)
        self._settle(task, pod, now)

    def _membership(self, pod: Pod) -> Membership | None:
        """The place of a pod of ours; None for somebody else's, and for one that is not grouped yet."""
        if pod.spec.scheduler_name not in self.settings.scheduler_names:
            return None
        named = gang_of(pod)
        if named.dialect is not Dialect.WORKLOAD and pod.spec.scheduler_name in self.settings.beside:
            return None
        if named.dialect is Dialect.PLAIN and pod.spec.scheduler_name in self.settings.grouped:
            return None
        seat = self._seats.get(named)
        if seat is None:
            return Membership(named, pod.metadata.labels.get(names.SUBGROUP, ""))
        return Membership(seat.gang, seat.pod_set_of(pod))

    def _join(self, key: Key, task: Task, pod: Pod) -> None:
        member = self._membership(pod)
        if member is None:
            self._foreign_job(task)
            return
        self._members[key] = member
        gang, task.subgroup = member
        if gang.dialect is Dialect.PLAIN and gang not in self._gangs:
            self._see_gang(gang, lambda: self._own_job(pod))
        job = self._gangs.get(gang)
        if job is None:
            self._stray(gang, task)
        else:
            job.add(task)
            self.changed_jobs.add(job.key)
            self._count(task)

    def _queue_of(self, pod: Pod) -> str | None:
        """The queue that a pod's gang is in, if anybody knows."""
        member = self._membership(pod)
        if member is None:
            return None
        job = self._gangs.get(member.gang)
        if job is None and member.gang.dialect is Dialect.PLAIN:
            return pod.metadata.labels.get(self.settings.queue_key, self.settings.default_queue)
        return None if job is None else job.queue

    def _has_place(self, key: Key) -> bool:
        """Whether a pod is on a node, or on its way to one."""
        task = self._tasks.get(key)
        return task is not None and task.status in ACTIVE_USED

    def _own_job(self, pod: Pod) -> Job:
        """A pod that is a gang of its own."""
        metadata = pod.metadata
        return Job(
            uid=metadata.uid,
            name=f"pod/{metadata.name}",
            namespace=metadata.namespace,
            queue=metadata.labels.get(self.settings.queue_key, self.settings.default_queue),
            priority=pod.spec.priority or names.DEFAULT_PRIORITY,
            is_preemptible=(pod.spec.priority or names.DEFAULT_PRIORITY) < names.NON_PREEMPTIBLE_FROM,
            created=seconds(metadata.creation_timestamp),
            root=single_pod_set(1),
        )

    def _drop(self, key: Key, task: Task) -> None:
        self._leave(task)
        member = self._members.pop(key, None)
        if task.job is not self._foreign:
            self.changed_jobs.add(task.job.key)
            task.job.remove(task)
            if member is not None and member.gang.dialect is Dialect.PLAIN and not task.job.tasks:
                self._see_gang(member.gang, None)
        elif member is not None and (strays := self._strays.get(member.gang)) is not None:
            strays.pop(key, None)
            if not strays:
                del self._strays[member.gang]
        self._tally.forget(key)
        del self._tasks[key], self._pods[key]
        self._releasing.pop(key, None)
        if self._needed.pop(key, None) is not None:
            self._again |= self._needs.beside(key)

    def _settle(self, task: Task, pod: Pod, now: float) -> None:
        """Lets a task be what its pod, its BindRequest and what was assumed make of it."""
        status, node, groups = standing_of(
            pod,
            self._requests.get(task.key),
            self._assumed.get(task.key),
            now=now,
            stuck_after=self.settings.stuck_after,
        )
        if status is Status.RELEASING and node:
            self._releasing[task.key] = seconds(pod.metadata.deletion_timestamp)
        task.started = seconds(pod.status.start_time)
        if not task.request.is_shared:
            groups = ()
        elif node and status in ACTIVE_USED and not groups:
            groups = (f"unknown-{task.uid}",)
        if (task.status, task.node, task.gpu_groups) == (status, node, groups) and (task.hold is None) == (
            status not in ACTIVE_USED or node not in self.cluster.nodes.index
        ):
            return
        if task.key in self._needed:
            self._again |= self._needs.beside(task.key)
        self._leave(task)
        if task.job is not self._foreign:
            task.job.change(task, status)
            self.changed_jobs.add(task.job.key)
        else:
            task.status = status
        task.node, task.gpu_groups = node, groups
        if status in ACTIVE_USED and node:
            self._occupy(task)
        self._count(task)

    def _see_time(self, now: float) -> None:
        """What changes without an event: assumptions that nobody confirmed, pods that do not end."""
        for key, assumed in list(self._assumed.items()):
            if now > assumed.until:
                log.warning("binding not confirmed", pod="/".join(key), node=assumed.node)
                del self._assumed[key]
                if key in self._tasks:
                    self._settle(self._tasks[key], self._pods[key], now)
        for key, since in list(self._releasing.items()):
            task = self._tasks.get(key)
            if task is None:
                del self._releasing[key]
            elif task.status is Status.RELEASING and now > since + self.settings.stuck_after:
                self._settle(task, self._pods[key], now)

    def _occupy(self, task: Task) -> None:
        row = self.cluster.nodes.index.get(task.node)
        if row is None:
            return
        task.hold = Hold(task, row, task.status, task.gpu_groups)
        self.cluster.nodes.add(task.hold)
        self.pods.add(task, row)
        task.accepted = task.request.amounts_on(self.cluster.nodes.nodes[row].gpu_memory)
        self.changed_nodes.add(task.node)

    def _leave(self, task: Task) -> None:
        if task.hold is None:
            return
        self.cluster.nodes.remove(task.hold)
        self.pods.remove(task, task.hold.node)
        self.changed_nodes.add(task.node)
        task.hold = None
        task.accepted = NONE
