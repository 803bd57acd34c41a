"""PodGangs that others made, of pods that others make: a TrainJob's, or anybody's.

Such a gang says which scheduler it is meant for, in the label ``grove.io/scheduler-name``. Its pods carry the labels
``grove.io/podgang`` and ``grove.io/podclique``, with the names of the gang and of the podgroup. What they must carry
besides, to be counted by that scheduler, is written on the gang (``grove.io/pods-carry``), since only who makes them
can put it there in time; pods that carry Grove's gate get it from us before they are let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.api.core import Pod, is_ready
from shoal.api.grove import names
from shoal.api.meta import is_true
from shoal.api.scheduler_grove_io import INITIALIZED, PodFields, PodGang, PodGangStatus, written_pod_fields
from shoal.gangs.backends import Backends, Marks
from shoal.gangs.cliques.gates import correction, is_gated
from shoal.gangs.podgangs.membership import Members, References


def guests(gang: PodGang, pods: Iterable[Pod]) -> Members:
    """The pods that name the gang and one of its podgroups; it is complete when each has its minimum."""
    found: dict[str, list[Pod]] = {group.name: [] for group in gang.spec.pod_groups}
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        group = found.get(pod.metadata.labels.get(names.CLIQUE_LABEL, ""))
        if group is not None and not pod.metadata.is_deleting:
            group.append(pod)
    is_complete = all(len(found[group.name]) >= group.min_replicas for group in gang.spec.pod_groups)
    return Members(pods=found, is_complete=is_complete)


def is_up(pod: Pod) -> bool:
    """Whether a pod is ready, or has done all there was to do."""
    return is_ready(pod) or pod.status.phase == "Succeeded"


@dataclass(frozen=True, kw_only=True)
class Hospitality:
    """What a gang of others is given: its backend, and what its pods carry for that."""

    backend: str
    fields: Mapping[str, PodFields]

    @property
    def labels(self) -> dict[str, str]:
        """Of the gang."""
        return {names.SCHEDULER_BACKEND_LABEL: self.backend}

    @property
    def annotations(self) -> dict[str, str]:
        """Of the gang."""
        return {names.PODS_CARRY_ANNOTATION: written_pod_fields(self.fields)}


def hospitality(gang: PodGang, backends: Backends, default_scheduler: str) -> Hospitality:
    """What a gang of others is given, by the scheduler that it names."""
    scheduler = gang.metadata.labels.get(names.SCHEDULER_NAME_LABEL, "") or default_scheduler
    chosen = backends.label(scheduler)
    backend = backends.named(chosen)
    served = backends.served()
    fields = {}
    for group in gang.spec.pod_groups:
        marks = backend.marks(gang, group.name)
        spec = backend.pod_spec({"schedulerName": scheduler} if scheduler else {}, gang, group.name, served)
        fields[group.name] = PodFields(labels=dict(marks.labels), annotations=dict(marks.annotations), spec=dict(spec))
    return Hospitality(backend=chosen, fields=fields)


def change(gang: PodGang, given: Hospitality, named: References) -> dict[str, Any]:
    """The merge patch that gives a gang all this, and names its pods; empty where that is so."""
    metadata = {
        field: wrong
        for field, wanted, live in (
            ("labels", given.labels, gang.metadata.labels),
            ("annotations", given.annotations, gang.metadata.annotations),
        )
        if (wrong := {key: value for key, value in wanted.items() if live.get(key) != value})
    }
    groups = [
        msgspec.structs.replace(group, pod_references=list(named.get(group.name, ()))) for group in gang.spec.pod_groups
    ]
    spec = {} if groups == gang.spec.pod_groups else {"podgroups": msgspec.to_builtins(groups)}
    if not metadata and not spec:
        return {}
    read = {"uid": gang.metadata.uid, "resourceVersion": gang.metadata.resource_version}
    return {"metadata": {**read, **metadata}, **({"spec": spec} if spec else {})}


def corrections(
    given: Hospitality, members: Members, named: References, status: PodGangStatus
) -> Iterator[tuple[Pod, list[dict[str, Any]]]]:
    """The JSON patches by which pods carry what they should, and by which gates are lifted once the gang is whole."""
    may_start = is_true(status.conditions, INITIALIZED)
    for group, pods in members.pods.items():
        marks = Marks(labels=given.fields[group].labels, annotations=given.fields[group].annotations)
        known = {reference.name for reference in named.get(group, ())}
        for pod in pods:
            lift = may_start and is_gated(pod) and pod.metadata.name in known
            if patch := correction(pod, marks, lift=lift):
                yield pod, patch
