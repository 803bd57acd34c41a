"""The cliques of a scaling group as objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.grove import POD_CLIQUES, PodCliqueSet, ScalingGroupTemplate, names
from shoal.gangs.environment import with_environment
from shoal.gangs.plan import PlannedClique, member_templates


def member_clique(
    pcs: PodCliqueSet, group: ScalingGroupTemplate, planned: PlannedClique, template_hash: str
) -> dict[str, Any]:
    """A member as it should be, but for its replicas, which belong to whoever scales it once it is there."""
    template = planned.template
    spec: dict[str, Any] = {
        "roleName": template.spec.role_name or template.name,
        "podSpec": with_group_environment(template.spec.pod_spec, template_pods(pcs, group)),
        "minAvailable": template.spec.minimum,
    }
    if planned.parents:
        spec["startsAfter"] = [parent.clique for parent in planned.parents]
    if template.spec.auto_scaling_config is not None:
        spec["autoScalingConfig"] = msgspec.to_builtins(template.spec.auto_scaling_config)
    metadata: dict[str, Any] = {
        "name": planned.name,
        "namespace": pcs.metadata.namespace,
        "labels": member_labels(pcs, planned, template_hash),
        "finalizers": [names.CLIQUE_FINALIZER],
    }
    annotations = {key: text for key, text in template.annotations.items() if key != names.TOPOLOGY_ANNOTATION}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": POD_CLIQUES.api_version, "kind": POD_CLIQUES.kind, "metadata": metadata, "spec": spec}


def initial_fields(replicas: int) -> dict[str, Any]:
    """What of a member is set when it is made."""
    return {"spec": {"replicas": replicas}}


def member_labels(pcs: PodCliqueSet, planned: PlannedClique, template_hash: str) -> dict[str, str]:
    """The labels by which a member and its pods are found."""
    labels = {
        **planned.template.labels,
        **names.component_labels(pcs.metadata.name, planned.name, names.GROUP_CLIQUE_COMPONENT),
        names.SET_REPLICA_LABEL: str(planned.set_replica),
        names.SCALING_GROUP_LABEL: planned.group,
        names.SCALING_GROUP_REPLICA_LABEL: str(planned.group_replica),
        names.GANG_LABEL: planned.gang,
        names.TEMPLATE_HASH_LABEL: template_hash,
    }
    return {**labels, names.BASE_GANG_LABEL: planned.base_gang} if planned.base_gang else labels


def template_pods(pcs: PodCliqueSet, group: ScalingGroupTemplate) -> int:
    """How many pods a replica of the group has by the template."""
    return sum(clique.spec.replicas for clique in member_templates(pcs, group))


def with_group_environment(pod_spec: Mapping[str, Any], pods: int) -> dict[str, Any]:
    """A pod's spec whose containers know their scaling group, and which replica of it they are in."""
    variables = [
        _from_label("GROVE_PCSG_NAME", names.SCALING_GROUP_LABEL),
        {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(pods)},
        _from_label("GROVE_PCSG_INDEX", names.SCALING_GROUP_REPLICA_LABEL),
    ]
    return with_environment(pod_spec, variables)


def _from_label(name: str, label: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
