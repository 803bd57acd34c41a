"""The PodCliques of a replica that are in no scaling group.

How many pods they have is said when they are made, and is an autoscaler's business from then on; the finalizer belongs
to the controller of PodCliques.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.grove import POD_CLIQUES, PodCliqueSet, names
from shoal.gangs.hashes import template_hash
from shoal.gangs.plan import PlannedClique


def standalone_clique(pcs: PodCliqueSet, planned: PlannedClique) -> dict[str, Any]:
    """What of a PodClique is kept as the set's template says."""
    template, spec = planned.template, planned.template.spec
    labels = {
        **template.labels,
        **names.component_labels(pcs.metadata.name, planned.name, names.SET_CLIQUE_COMPONENT),
        names.SET_REPLICA_LABEL: str(planned.set_replica),
        names.GANG_LABEL: planned.gang,
        names.TEMPLATE_HASH_LABEL: template_hash(template, pcs.spec.template.priority_class_name),
    }
    annotations = {key: value for key, value in template.annotations.items() if key != names.TOPOLOGY_ANNOTATION}
    starts_after = [parent.clique for parent in planned.parents]
    scaling = spec.auto_scaling_config
    return {
        "apiVersion": POD_CLIQUES.api_version,
        "kind": POD_CLIQUES.kind,
        "metadata": {
            "name": planned.name,
            "namespace": pcs.metadata.namespace,
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "roleName": spec.role_name or template.name,
            "podSpec": spec.pod_spec,
            "minAvailable": spec.minimum,
            **({"startsAfter": starts_after} if starts_after else {}),
            **({"autoScalingConfig": msgspec.to_builtins(scaling)} if scaling is not None else {}),
        },
    }


def initial_clique(planned: PlannedClique) -> dict[str, Any]:
    """What of a PodClique is said once, when it is made."""
    return {
        "metadata": {"finalizers": [names.CLIQUE_FINALIZER]},
        "spec": {"replicas": planned.template.spec.replicas},
    }
