"""PodGangs: a gang of any scheduler that the gangs capability has a backend for.

It is chosen by podGroupPolicy.podGang, or by nothing more than the label ``kai.scheduler/queue`` on a TrainJob whose
pods name another scheduler than KAI's. What pods must carry to be counted by that scheduler is for its backend to know:
it writes that on the PodGang, and the JobSet is made with it. What runs before the gang (initializers) is a gang each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from shoal.api import kai_names
from shoal.api.grove import names as grove_names
from shoal.api.meta import LAST_APPLIED, fit_name, is_controlled_by
from shoal.api.scheduler_grove_io import POD_GANGS, PodFields, pod_fields
from shoal.api.trainer import TrainJob
from shoal.training.framework import Gang, Info, Plugin, PodSet, Wanted, gang_of
from shoal.training.plugins.kai import priority_class, queue_of
from shoal.training.plugins.pod_groups import group, named_scheduler, wants_gang_by_queue

_KIND: Final = POD_GANGS.documents()
_UNSERVED: Final = "install Shoal's kinds (`shoal crds`), or take podGroupPolicy.podGang out of the runtime"
_UNANSWERED: Final = (
    "no controller of gangs has said yet what the pods of PodGang {} carry for their scheduler: run `shoal operator` "
    "with gangs enabled, or see the PodGang's condition BackendReady"
)


class PodGangs(Plugin):
    """For runtimes with podGroupPolicy.podGang, and for TrainJobs that name a queue and not KAI."""

    name = "PodGang"
    kinds = (_KIND,)

    def enforce_pod_group_policy(self, info: Info, train_job: TrainJob) -> Info:
        """What the PodGang says that its pods carry; all that runs pods waits until it says so."""
        if not is_chosen(info, train_job):
            return info
        gang = gang_of(info)
        said = {pods.name: _said(info, pods, gang, train_job) for pods in info.pod_sets}

        def mark(pods: PodSet) -> PodSet:
            carried = said[pods.name] or PodFields()
            labels = {
                kai_names.QUEUE: queue_of(info, train_job),
                grove_names.GANG_LABEL: gang_name(pods, gang, train_job),
                grove_names.CLIQUE_LABEL: role_name(pods, train_job),
            }
            fields = dict(carried.spec)
            scheduler = fields.pop("schedulerName", "")
            return replace(
                pods,
                scheduler=pods.scheduler or scheduler,
                labels={**pods.labels, **labels, **carried.labels},
                annotations={**pods.annotations, **carried.annotations},
                fields={**pods.fields, **fields},
            )

        silent = next((pods for pods in info.pod_sets if said[pods.name] is None), None)
        waits_for = "" if silent is None else _UNANSWERED.format(gang_name(silent, gang, train_job))
        return replace(info.with_pod_sets(mark), waits_for=waits_for)

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The PodGang, after one for each pod set that runs before it."""
        if not is_chosen(info, train_job):
            return
        gang = gang_of(info)
        for name, members in _members(info, gang, train_job).items():
            body = _pod_gang(info, train_job, gang, members)
            yield group(POD_GANGS, name, body, train_job, unserved=_UNSERVED)


def is_chosen(info: Info, train_job: TrainJob) -> bool:
    """Whether a TrainJob's pods are a gang of whichever scheduler they name."""
    policy = info.pod_group_policy
    if policy is not None and policy.pod_gang is not None:
        return True
    return wants_gang_by_queue(info, train_job) and named_scheduler(info) not in ("", kai_names.SCHEDULER)


def gang_name(pods: PodSet, gang: Gang, train_job: TrainJob) -> str:
    """The PodGang that pods are in: the TrainJob's, or one of their own. It is also the value of a label."""
    name = train_job.metadata.name
    return fit_name(name if gang.has(pods) else f"{name}-{pods.name}")


def role_name(pods: PodSet, train_job: TrainJob) -> str:
    """The podgroup of a PodGang that pods are counted in."""
    return fit_name(f"{train_job.metadata.name}-{pods.name}")


def _members(info: Info, gang: Gang, train_job: TrainJob) -> dict[str, list[PodSet]]:
    """The pod sets of each PodGang; what others wait for comes first."""
    found: dict[str, list[PodSet]] = {}
    for pods in (*gang.earlier, *gang.members):
        found.setdefault(gang_name(pods, gang, train_job), []).append(pods)
    return found


def _said(info: Info, pods: PodSet, gang: Gang, train_job: TrainJob) -> PodFields | None:
    """What pods carry, if somebody has said so on the TrainJob's own PodGang."""
    found = info.seen(_KIND, gang_name(pods, gang, train_job))
    if found is None or not is_controlled_by(found.metadata, train_job.metadata.uid):
        return None
    return pod_fields(found.metadata.annotations).get(role_name(pods, train_job))


def _pod_gang(info: Info, train_job: TrainJob, gang: Gang, members: list[PodSet]) -> dict[str, Any]:
    annotations = {key: value for key, value in train_job.metadata.annotations.items() if key != LAST_APPLIED}
    policy = info.pod_group_policy.pod_gang if info.pod_group_policy else None
    labels = {
        **{key: value for key, value in train_job.metadata.labels.items() if not grove_names.is_grove_key(key)},
        kai_names.QUEUE: queue_of(info, train_job),
        grove_names.SCHEDULER_NAME_LABEL: named_scheduler(info) or (policy.scheduler_name if policy else ""),
    }
    spec: dict[str, Any] = {
        "podgroups": [
            {
                "name": role_name(pods, train_job),
                # Those that come when others are ready belong to the gang, which does not wait for them.
                "minReplicas": pods.pods if pods in gang.counted or pods in gang.earlier else 0,
                "podReferences": [],
            }
            for pods in members
        ],
    }
    if packed := _packed(annotations):
        spec["topologyConstraint"] = {"packConstraint": packed}
    if name := train_job.metadata.labels.get(kai_names.PRIORITY_CLASS) or priority_class(members):
        spec["priorityClassName"] = name
    metadata = {"labels": labels, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": spec}


def _packed(annotations: dict[str, str]) -> dict[str, str]:
    """How close together pods run, as a TrainJob says it for any scheduler."""
    said = {
        "required": annotations.get(kai_names.TOPOLOGY_REQUIRED),
        "preferred": annotations.get(kai_names.TOPOLOGY_PREFERRED),
    }
    return {key: value for key, value in said.items() if value}
