"""KAI: a gang of Shoal's own scheduler, or of KAI's, that waits in a queue.

It is chosen by podGroupPolicy.kai, or by nothing more than the label ``kai.scheduler/queue`` on a TrainJob whose
runtime names no other kind of gang and whose pods name no other scheduler. The PodGroup's name holds the TrainJob's
uid, so that pods of an earlier TrainJob of the same name are never counted in. What runs before the gang (initializers)
waits in the same queue, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from shoal.api import kai_names
from shoal.api.meta import SUBDOMAIN_LIMIT, fit_name
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.api.trainer import TRAIN_JOBS, TrainJob
from shoal.training.framework import Gang, Info, Plugin, PodSet, Wanted, gang_of
from shoal.training.plugins.pod_groups import group, named_scheduler, wants_gang_by_queue

_UNSERVED: Final = "install KAI-Scheduler's CustomResourceDefinitions, or take the queue away from the TrainJob"
_CARRIED: Final = (kai_names.NODE_POOL, kai_names.PREEMPTIBILITY, kai_names.USER, kai_names.PROJECT)
"""Labels of a TrainJob that its pods and its gang carry too."""
_MOVABLE: Final = (kai_names.QUEUE, kai_names.NODE_POOL)
"""Labels of a PodGroup that say where it waits; whoever moves it changes them."""


class Kai(Plugin):
    """For runtimes with podGroupPolicy.kai, and for TrainJobs that name a queue."""

    name = "KAI"
    kinds = (POD_GROUPS.documents(),)

    def enforce_pod_group_policy(self, info: Info, train_job: TrainJob) -> Info:
        """The scheduler, the queue, and the group that each pod is in."""
        if not is_chosen(info, train_job):
            return info
        queue, gang = queue_of(info, train_job), gang_of(info)
        labels = {kai_names.QUEUE: queue, **_carried(train_job)}

        def mark(pods: PodSet) -> PodSet:
            # KAI's own grouper leaves pods alone whose group is decided.
            annotations = {kai_names.SKIP_GROUPER: "true", kai_names.POD_GROUP: _group_of(pods, gang, train_job)}
            return replace(
                pods,
                scheduler=pods.scheduler or kai_names.SCHEDULER,
                labels={**pods.labels, **labels},
                annotations={**pods.annotations, **annotations},
            )

        return info.with_pod_sets(mark)

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The gang's PodGroup, after one for each pod set that runs before it."""
        if not is_chosen(info, train_job):
            return
        gang = gang_of(info)
        for pods in gang.earlier:
            yield _pod_group(info, train_job, _group_of(pods, gang, train_job), pods.pods, (pods,))
        yield _pod_group(info, train_job, group_name(train_job), gang.minimum, gang.members)


def is_chosen(info: Info, train_job: TrainJob) -> bool:
    """Whether a TrainJob's pods are a gang of KAI."""
    policy = info.pod_group_policy
    if policy is not None and policy.kai is not None:
        return True
    return wants_gang_by_queue(info, train_job) and named_scheduler(info) in ("", kai_names.SCHEDULER)


def queue_of(info: Info, train_job: TrainJob) -> str:
    """The queue that the TrainJob names, else that of the policy, of the JobSet's labels, or the default one."""
    policies = info.pod_group_policy
    policy = (policies.kai or policies.pod_gang) if policies else None
    named = (
        train_job.metadata.labels.get(kai_names.QUEUE),
        policy.queue if policy else "",
        info.labels.get(kai_names.QUEUE),
    )
    return next((queue for queue in named if queue), kai_names.DEFAULT_QUEUE)


def group_name(train_job: TrainJob, part: str = "") -> str:
    """The PodGroup of a TrainJob, or of a part of it that is on its own."""
    metadata = train_job.metadata
    name = f"{metadata.name}-{part}" if part else metadata.name
    return f"pg-{fit_name(name, SUBDOMAIN_LIMIT - len(metadata.uid) - len('pg--'))}-{metadata.uid}"


def _group_of(pods: PodSet, gang: Gang, train_job: TrainJob) -> str:
    return group_name(train_job, "" if gang.has(pods) else pods.name)


def _pod_group(info: Info, train_job: TrainJob, name: str, minimum: int, pods: tuple[PodSet, ...]) -> Wanted:
    labels, annotations = train_job.metadata.labels, train_job.metadata.annotations
    spec = {
        "minMember": minimum,
        "priorityClassName": labels.get(kai_names.PRIORITY_CLASS) or priority_class(pods),
        "preemptibility": labels.get(kai_names.PREEMPTIBILITY, ""),
        "preemptionDelay": annotations.get(kai_names.PREEMPTION_DELAY, ""),
        "stalenessGracePeriod": annotations.get(kai_names.STALENESS_GRACE_PERIOD, ""),
        "topologyConstraint": dict(_topology(annotations)),
    }
    carried = _carried(train_job)
    fixed = {key: value for key, value in carried.items() if key not in _MOVABLE}
    metadata = {
        **({"labels": fixed} if fixed else {}),
        "annotations": {kai_names.SKIP_GROUPER: "true", kai_names.TOP_OWNER: _top_owner(train_job)},
    }
    queue = queue_of(info, train_job)
    movable = {kai_names.QUEUE: queue, **{key: carried[key] for key in _MOVABLE if key in carried}}
    return group(
        POD_GROUPS,
        name,
        {"metadata": metadata, "spec": {key: value for key, value in spec.items() if value not in ("", {})}},
        train_job,
        unserved=_UNSERVED,
        initial={"metadata": {"labels": movable}, "spec": {"queue": queue}},
    )


def _carried(train_job: TrainJob) -> dict[str, str]:
    return {key: value for key, value in train_job.metadata.labels.items() if key in _CARRIED}


def priority_class(pods: Iterable[PodSet]) -> str:
    """The PriorityClass of pods that are placed together: the first that one of them names."""
    return next((one.priority_class for one in pods if one.priority_class), "")


def _topology(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for field, key in (
        ("topology", kai_names.TOPOLOGY),
        ("requiredTopologyLevel", kai_names.TOPOLOGY_REQUIRED),
        ("preferredTopologyLevel", kai_names.TOPOLOGY_PREFERRED),
    ):
        if value := annotations.get(key):
            yield field, value


def _top_owner(train_job: TrainJob) -> str:
    """What KAI shows as the workload: a small YAML document."""
    facts: dict[str, Any] = {
        "name": train_job.metadata.name,
        "uid": train_job.metadata.uid,
        "group": TRAIN_JOBS.group,
        "version": TRAIN_JOBS.version,
        "kind": TRAIN_JOBS.kind,
    }
    return "".join(f"{key}: {value}\n" for key, value in facts.items())
