"""PodCliques and PodGangs of a set as its controllers make them, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.api.grove import PodCliqueSet, names
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.hashes import template_hash
from shoal.gangs.plan import PlannedClique, PlannedGang
from tests.gangs.backends.builders import a_gang, a_group


def a_naming_gang(
    groups: Mapping[str, Sequence[str]],
    *,
    minimum: int = 1,
    initialized: bool = True,
    uid: str = "uid-of-the-gang",
    **fields: Any,
) -> PodGang:
    """A PodGang whose groups name these pods."""
    named = [a_group(group, minimum, pods=pods) for group, pods in groups.items()]
    status = {"phase": "Pending", "conditions": [{"type": "Initialized", "status": str(initialized)}]}
    return a_gang(*named, metadata={"uid": uid}, status=status, **fields)


def clique_body(pcs: PodCliqueSet, planned: PlannedClique, *, uid: str = "") -> dict[str, Any]:
    """A PodClique as its set's controller makes it; ``uid`` is that of the set."""
    template = planned.template
    labels = {
        **template.labels,
        **names.component_labels(pcs.metadata.name, planned.name, names.SET_CLIQUE_COMPONENT),
        names.SET_REPLICA_LABEL: str(planned.set_replica),
        names.GANG_LABEL: planned.gang,
        names.TEMPLATE_HASH_LABEL: template_hash(template, pcs.spec.template.priority_class_name),
    }
    if planned.group:
        labels[names.SCALING_GROUP_LABEL] = planned.group
        labels[names.SCALING_GROUP_REPLICA_LABEL] = str(planned.group_replica)
    if planned.base_gang:
        labels[names.BASE_GANG_LABEL] = planned.base_gang
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {
            "name": planned.name,
            "namespace": pcs.metadata.namespace,
            "uid": uid,
            "labels": labels,
            "annotations": dict(template.annotations),
            "finalizers": [names.CLIQUE_FINALIZER],
        },
        "spec": {
            "roleName": template.spec.role_name,
            "podSpec": template.spec.pod_spec,
            "replicas": template.spec.replicas,
            "minAvailable": template.spec.minimum,
            "startsAfter": [parent.clique for parent in planned.parents],
        },
    }


def gang_body(pcs: PodCliqueSet, gang: PlannedGang, *, backend: str = "kai") -> dict[str, Any]:
    """A PodGang that names no pods yet."""
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": gang.name,
            "namespace": pcs.metadata.namespace,
            "labels": {**names.default_labels(pcs.metadata.name), names.SCHEDULER_BACKEND_LABEL: backend},
        },
        "spec": {
            "podgroups": [
                {"name": clique.name, "minReplicas": clique.template.spec.minimum, "podReferences": []}
                for clique in gang.cliques
            ]
        },
    }
