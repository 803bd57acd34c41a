"""What a PodCliqueSet is where its author did not say."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from shoal.api.grove import (
    ANY_ORDER,
    AutoScaling,
    CliqueTemplate,
    PodCliqueSet,
    PodCliqueSetTemplate,
    ScalingGroupTemplate,
)
from shoal.api.grove.pod_clique_sets import HeadlessServiceConfig

TERMINATION_DELAY: Final = "4h"
GRACE_PERIOD: Final = 30
"""Seconds that pods are given to end."""


def defaulted(pcs: PodCliqueSet) -> PodCliqueSet:
    """The set with everything filled in; done twice, nothing more is."""
    template = pcs.spec.template
    return replace(
        pcs,
        metadata=replace(pcs.metadata, namespace=pcs.metadata.namespace or "default"),
        spec=replace(pcs.spec, template=_template(template)),
    )


def _template(template: PodCliqueSetTemplate) -> PodCliqueSetTemplate:
    return replace(
        template,
        cliques=[_clique(clique) for clique in template.cliques],
        # The schema fills this in, too; not so where rules run without an API server.
        clique_startup_type=template.clique_startup_type or ANY_ORDER,
        headless_service_config=template.headless_service_config
        or HeadlessServiceConfig(publish_not_ready_addresses=True),
        termination_delay=template.termination_delay or TERMINATION_DELAY,
        pod_clique_scaling_groups=[_group(group) for group in template.pod_clique_scaling_groups],
    )


def _clique(clique: CliqueTemplate) -> CliqueTemplate:
    spec = clique.spec
    replicas = spec.replicas or 1
    return replace(
        clique,
        spec=replace(
            spec,
            role_name=spec.role_name or clique.name,
            pod_spec=_pod_spec(spec.pod_spec),
            replicas=replicas,
            # By what the author wrote: none of 0 is no gang, and is refused.
            min_available=spec.replicas if spec.min_available is None else spec.min_available,
            auto_scaling_config=_scaling(spec.auto_scaling_config, replicas),
        ),
    )


def _group(group: ScalingGroupTemplate) -> ScalingGroupTemplate:
    return replace(
        group,
        replicas=group.count,
        min_available=group.minimum,
        scale_config=_scaling(group.scale_config, group.count),
    )


def _scaling(scaling: AutoScaling | None, replicas: int) -> AutoScaling | None:
    if scaling is None or scaling.min_replicas is not None:
        return scaling
    return replace(scaling, min_replicas=replicas)


def _pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    filled = dict(spec)
    filled["restartPolicy"] = spec.get("restartPolicy") or "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        filled["terminationGracePeriodSeconds"] = GRACE_PERIOD
    return filled
