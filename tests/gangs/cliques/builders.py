"""Pods, PodCliques and PodGangs of a set in few words: as typed objects for rules, as plain values for a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import Pod
from shoal.api.grove import PodClique, PodCliqueSet, names
from shoal.api.meta import format_time
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.hashes import template_hash
from shoal.gangs.plan import PlannedClique, PlannedGang

START = datetime(2026, 1, 1, tzinfo=UTC)
CLIQUE = "web-0-workers"
UID = "uid-of-the-clique"


def a_pod(
    name: str = "pod",
    *,
    index: int = 0,
    clique: str = CLIQUE,
    hash: str = "new",  # noqa: A002 - a test's own word
    node: str = "",
    phase: str = "",
    ready: bool = False,
    scheduled: bool | None = None,
    gated: bool = False,
    going: bool = False,
    age: int = 0,
    containers: Sequence[Mapping[str, Any]] = (),
    init_containers: Sequence[Mapping[str, Any]] = (),
    readiness_gates: Sequence[str] = (),
    **metadata: Any,
) -> Pod:
    """A pod of a clique; ``age`` in seconds, and scheduled where it has a node, unless it is said otherwise."""
    conditions = []
    if gated:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"})
    elif node if scheduled is None else scheduled:
        conditions.append({"type": "PodScheduled", "status": "True"})
    if ready:
        conditions.append({"type": "Ready", "status": "True"})
    content = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": format_time(START - timedelta(seconds=age)),
            "labels": {
                names.CLIQUE_LABEL: clique,
                names.TEMPLATE_HASH_LABEL: hash,
                names.POD_INDEX_LABEL: str(index),
            },
            "ownerReferences": [
                {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": clique, "uid": UID, "controller": True}
            ],
            **({"deletionTimestamp": format_time(START)} if going else {}),
            **metadata,
        },
        "spec": {
            "hostname": names.pod_hostname(clique, index),
            "nodeName": node,
            "schedulingGates": [{"name": names.GATE}] if gated else [],
            "readinessGates": [{"conditionType": name} for name in readiness_gates],
        },
        "status": {
            "phase": phase or ("Running" if node else "Pending"),
            "conditions": conditions,
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init_containers),
        },
    }
    return msgspec.convert(content, Pod)


def a_clique(
    name: str = CLIQUE,
    replicas: int = 2,
    *,
    min_available: int | None = None,
    hash: str = "new",  # noqa: A002
    status: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    **metadata: Any,
) -> PodClique:
    """A PodClique as the cache has it."""
    content = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": UID,
            "generation": 3,
            "creationTimestamp": format_time(START),
            "labels": {
                **names.default_labels("web"),
                names.SET_REPLICA_LABEL: "0",
                names.GANG_LABEL: "web-0",
                names.TEMPLATE_HASH_LABEL: hash,
                **(labels or {}),
            },
            **metadata,
        },
        "spec": {"replicas": replicas, "minAvailable": replicas if min_available is None else min_available},
        "status": dict(status or {}),
    }
    return msgspec.convert(content, PodClique)


def a_gang(
    name: str = "web-0",
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    minimum: int = 1,
    initialized: bool = True,
    backend: str = "kai",
    uid: str = "uid-of-the-gang",
) -> PodGang:
    """A PodGang whose groups name these pods."""
    content = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "labels": {**names.default_labels("web"), names.SCHEDULER_BACKEND_LABEL: backend},
        },
        "spec": {
            "podgroups": [
                {
                    "name": group,
                    "minReplicas": minimum,
                    "podReferences": [{"namespace": "default", "name": pod} for pod in pods],
                }
                for group, pods in (groups or {}).items()
            ]
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Initialized", "status": "True" if initialized else "False"}],
        },
    }
    return msgspec.convert(content, PodGang)


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
