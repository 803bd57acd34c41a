"""Bounds of autoscaling: never below what a gang needs, and never above its own upper bound from the start."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.grove import AutoScaling, PodCliqueSet
from shoal.gangs.admission.rules.places import clique_at, group_at
from shoal.kube.admission import FieldProblem, invalid


def autoscaling_problems(pcs: PodCliqueSet) -> Iterator[FieldProblem]:
    """The bounds of cliques and of scaling groups."""
    for index, clique in enumerate(pcs.spec.template.cliques):
        if clique.spec.auto_scaling_config is not None:
            path = f"{clique_at(index)}.spec.autoScalingConfig"
            yield from _bounds(path, clique.spec.auto_scaling_config, clique.spec.replicas, clique.spec.minimum)
    for index, group in enumerate(pcs.spec.template.pod_clique_scaling_groups):
        if group.scale_config is not None:
            yield from _bounds(f"{group_at(index)}.scaleConfig", group.scale_config, group.count, group.minimum)


def _bounds(path: str, scaling: AutoScaling, replicas: int, min_available: int) -> Iterator[FieldProblem]:
    lowest = replicas if scaling.min_replicas is None else scaling.min_replicas
    highest = scaling.max_replicas
    if lowest < min_available:
        yield invalid(f"{path}.minReplicas", lowest, f"must not be less than minAvailable, which is {min_available}")
    if highest < lowest:
        yield invalid(f"{path}.maxReplicas", highest, f"must not be less than minReplicas, which is {lowest}")
    if highest < replicas:
        yield invalid(f"{path}.maxReplicas", highest, f"must not be less than replicas, which is {replicas}")
