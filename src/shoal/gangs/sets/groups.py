"""The PodCliqueScalingGroups of a replica; how often their cliques are there is said once, when they are made."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import SCALING_GROUPS, PodCliqueSet, ScalingGroupTemplate, names


def scaling_group(pcs: PodCliqueSet, replica: int, group: ScalingGroupTemplate) -> dict[str, Any]:
    """What of a scaling group is kept as the set's template says."""
    set_name = pcs.metadata.name
    name = names.scaling_group(set_name, replica, group.name)
    inherited = {key: value for key, value in pcs.metadata.annotations.items() if key == names.MNNVL_ANNOTATION}
    annotations = {**inherited, **group.annotations}
    return {
        "apiVersion": SCALING_GROUPS.api_version,
        "kind": SCALING_GROUPS.kind,
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **names.component_labels(set_name, name, names.SCALING_GROUP_COMPONENT),
                names.SET_REPLICA_LABEL: str(replica),
            },
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"minAvailable": group.minimum, "cliqueNames": group.clique_names},
    }


def initial_scaling_group(group: ScalingGroupTemplate) -> dict[str, Any]:
    """What of a scaling group is said once, when it is made."""
    return {"metadata": {"finalizers": [names.SCALING_GROUP_FINALIZER]}, "spec": {"replicas": group.count}}
