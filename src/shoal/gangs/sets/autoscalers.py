"""The HorizontalPodAutoscalers of a replica: one for each clique and each scaling group that asks for one."""

from __future__ import annotations

from typing import Any

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.grove import POD_CLIQUES, SCALING_GROUPS, AutoScaling, PodCliqueSet, names
from shoal.api.meta import Resource
from shoal.gangs.last_errors import GangError
from shoal.gangs.plan import standalone_templates

CODE = "ERR_SYNC_HPA"


def autoscalers(pcs: PodCliqueSet, replica: int) -> list[dict[str, Any]]:
    """All of them; each has the name of what it scales, so that a group of a clique's name can have none."""
    set_name = pcs.metadata.name
    clashing = clashing_names(pcs)
    wanted = []
    for clique in standalone_templates(pcs):
        if config := clique.spec.auto_scaling_config:
            name = names.clique(set_name, replica, clique.name)
            wanted.append(_autoscaler(pcs, replica, POD_CLIQUES, name, config, clique.spec.replicas))
    for group in pcs.spec.template.pod_clique_scaling_groups:
        if (config := group.scale_config) and group.name not in clashing:
            name = names.scaling_group(set_name, replica, group.name)
            wanted.append(_autoscaler(pcs, replica, SCALING_GROUPS, name, config, group.count))
    return wanted


def clashing_names(pcs: PodCliqueSet) -> list[str]:
    """The names that a clique and a scaling group have, both of which ask for an autoscaler."""
    cliques = {clique.name for clique in standalone_templates(pcs) if clique.spec.auto_scaling_config}
    groups = pcs.spec.template.pod_clique_scaling_groups
    return [group.name for group in groups if group.scale_config and group.name in cliques]


def autoscaler_problems(pcs: PodCliqueSet) -> list[GangError]:
    """What of the autoscalers that a set asks for cannot be."""
    return [
        GangError(
            CODE,
            f'clique "{name}" and scaling group "{name}" cannot both have an autoscaler, which would have one name: '
            "the group has none; create another set with other names",
        )
        for name in clashing_names(pcs)
    ]


def _autoscaler(
    pcs: PodCliqueSet, replica: int, target: Resource[Any], name: str, config: AutoScaling, replicas: int
) -> dict[str, Any]:
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": HORIZONTAL_POD_AUTOSCALERS.kind,
        "metadata": {
            "name": name,
            "namespace": pcs.metadata.namespace,
            "labels": {
                **names.component_labels(pcs.metadata.name, name, names.AUTOSCALER_COMPONENT),
                names.SET_REPLICA_LABEL: str(replica),
            },
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": name},
            "minReplicas": replicas if config.min_replicas is None else config.min_replicas,
            "maxReplicas": config.max_replicas,
            **({"metrics": config.metrics} if config.metrics else {}),
        },
    }
