"""What all groups have in common: name and owner, labels, queue, priority, and how it yields to others.

The owners speak first, the topmost before those below it, then the pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import yaml

from shoal.api import kai_names
from shoal.api.meta import LAST_APPLIED, InvalidDuration, OwnerReference, parse_duration
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.defaults import defaults_of
from shoal.scheduler.grouper.fields import Json, annotations_of, group_kind, labels_of, name_of, uid_of
from shoal.scheduler.grouper.pods import group_name, is_written_later
from shoal.scheduler.grouper.wanted import GroupWanted, annotated_constraint

TRAIN: Final = "train"
BUILD: Final = "build"
INFERENCE: Final = "inference"

_PREEMPTIBILITIES: Final = ("preemptible", "non-preemptible", "")


def flat_group(
    case: Case, owner: Json | None = None, *, priority: str = TRAIN, labels: tuple[str, ...] = ()
) -> GroupWanted:
    """One group without parts for an owner, the topmost one where none is named; a single pod may start.

    ``priority`` is the class of its kind, for when nobody names one; ``labels`` are those by which its kind names
    classes beside the usual one.
    """
    chosen = case.top if owner is None else owner
    annotations = annotations_of(chosen)
    return GroupWanted(
        name=group_name(name_of(chosen), uid_of(chosen)),
        namespace=case.pod.metadata.namespace,
        owner=reference_to(chosen),
        labels=_labels(case, chosen),
        annotations=_annotations(case, chosen),
        queue=_queue(case, chosen),
        priority_class=_priority_class(case, chosen, (*labels, kai_names.PRIORITY_CLASS)) or priority,
        preemptibility=_preemptibility(case, chosen),
        preemption_delay=_duration(case, chosen, kai_names.PREEMPTION_DELAY, least=0),
        staleness_grace_period=_duration(case, chosen, kai_names.STALENESS_GRACE_PERIOD),
        topology=annotated_constraint(annotations),
    )


def reference_to(owner: Json) -> OwnerReference:
    """The reference by which the group goes when its owner goes; it is not the owner's to manage."""
    return OwnerReference(api_version=owner["apiVersion"], kind=owner["kind"], name=name_of(owner), uid=uid_of(owner))


def _priority_class(case: Case, owner: Json, labels: tuple[str, ...]) -> str:
    """The first class that is named and exists, or the default of a kind; empty where there is neither."""
    exists = case.facts.priority_classes
    spoken = [*map(labels_of, _speakers(case, owner)), case.pod.metadata.labels]
    named = [one.get(label, "") for one in spoken for label in labels]
    named.append(case.pod.spec.priority_class_name)
    found = (defaults_of(case.facts.defaults, *kind) for kind in case.kinds)
    named += [entry.priority_name for entry in found if entry is not None]
    return next((name for name in named if name and name in exists), "")


def _speakers(case: Case, owner: Json) -> Iterator[Json]:
    """Whose words count for a group: its owner's, then those of everything between it and the pod, from the top."""
    yield owner
    yield from (one for one in reversed(case.owners) if uid_of(one) != uid_of(owner))


def _labels(case: Case, owner: Json) -> dict[str, str]:
    pod = case.pod.metadata.labels
    inherited = (kai_names.USER, case.facts.settings.node_pool_label)
    own = {key: value for key, value in labels_of(owner).items() if not is_written_later(key)}
    return {**{key: pod[key] for key in inherited if key in pod}, **own}


def _annotations(case: Case, owner: Json) -> dict[str, str]:
    pod = case.pod.metadata.annotations
    user = {kai_names.USER: pod[kai_names.USER]} if kai_names.USER in pod else {}
    own = {
        key: value for key, value in annotations_of(owner).items() if key != LAST_APPLIED and not is_written_later(key)
    }
    return {**user, kai_names.TOP_OWNER: _top_owner(owner), **own}


def _top_owner(owner: Json) -> str:
    """What KAI shows as the workload: a small YAML document."""
    group, kind = group_kind(owner)
    return _top_owner_text(name_of(owner), uid_of(owner), group, str(owner["apiVersion"]).rpartition("/")[2], kind)


@lru_cache(maxsize=4096)
def _top_owner_text(name: str, uid: str, group: str, version: str, kind: str) -> str:
    facts = {"name": name, "uid": uid, "group": group, "version": version, "kind": kind}
    return str(yaml.safe_dump(facts, sort_keys=False))


def _queue(case: Case, owner: Json) -> str:
    """The queue that is named, else that of the project, of which each node pool has its own, else the default one."""
    settings = case.facts.settings
    own, pod = labels_of(owner), case.pod.metadata.labels
    if queue := own.get(settings.queue_label) or pod.get(settings.queue_label):
        return queue
    project = own.get(kai_names.PROJECT) or pod.get(kai_names.PROJECT)
    if not project:
        return kai_names.DEFAULT_QUEUE
    pool = pod.get(settings.node_pool_label)
    return f"{project}-{pool}" if pool else project


def _preemptibility(case: Case, owner: Json) -> str:
    labels = [labels_of(one) for one in _speakers(case, owner)] + [case.pod.metadata.labels]
    for said in (one[kai_names.PREEMPTIBILITY] for one in labels if kai_names.PREEMPTIBILITY in one):
        if said in _PREEMPTIBILITIES:
            return said
    found = (defaults_of(case.facts.defaults, *kind) for kind in case.kinds)
    for entry in found:
        if entry is not None and entry.preemptibility and entry.preemptibility.lower() in _PREEMPTIBILITIES:
            return entry.preemptibility.lower()
    return ""


def _duration(case: Case, owner: Json, annotation: str, *, least: int | None = None) -> str:
    """The first length of time that can be read; one below ``least`` cannot."""
    spoken = [annotations_of(one) for one in _speakers(case, owner)] + [case.pod.metadata.annotations]
    for said in (one[annotation] for one in spoken if annotation in one):
        try:
            length = parse_duration(said)
        except InvalidDuration:
            continue
        if least is None or length.nanoseconds >= least:
            return str(length)
    return ""
