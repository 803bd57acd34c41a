"""Which changes concern sets: of a set itself what is asked for, of what it is made of what its status goes by.

Filters are narrow, since a set of five hundred replicas hears of thousands of pods through its cliques.
"""

from __future__ import annotations

from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    MIN_AVAILABLE_BREACHED,
    ClusterTopologyBinding,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    names,
)
from shoal.api.meta import find_condition
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.sets.accounts import has_token
from shoal.kube.changes import field_changed


def _asked(pcs: PodCliqueSet) -> object:
    metadata = pcs.metadata
    annotations = [metadata.annotations.get(key) for key in (names.TRIGGER_ANNOTATION, names.MNNVL_ANNOTATION)]
    return (metadata.generation, metadata.is_deleting, metadata.finalizers, annotations)


def _of_clique(clique: PodClique) -> object:
    """What its set's status, its updates and the end of its gangs go by."""
    status, metadata = clique.status, clique.metadata
    return (
        metadata.is_deleting,
        metadata.controller,
        metadata.labels.get(names.TEMPLATE_HASH_LABEL),
        clique.spec.replicas,
        status.ready_replicas,
        status.updated_replicas,
        status.scheduled_replicas == 0,
        status.current_pod_template_hash,
        status.current_pod_clique_set_generation_hash,
        find_condition(status.conditions, MIN_AVAILABLE_BREACHED),
        find_condition(status.conditions, CLIQUE_SCHEDULED),
    )


def _of_group(group: PodCliqueScalingGroup) -> object:
    status, metadata = group.status, group.metadata
    return (
        metadata.is_deleting,
        metadata.controller,
        group.spec.replicas,
        status.available_replicas,
        status.updated_replicas,
        status.current_pod_clique_set_generation_hash,
        status.conditions,
    )


def _of_gang(gang: PodGang) -> object:
    return (gang.metadata.is_deleting, gang.metadata.controller, gang.status.phase, gang.status.conditions)


def _of_topology(binding: ClusterTopologyBinding) -> object:
    return binding.metadata.generation


set_concerns = field_changed(_asked)
"""Whether a set asks for something else than before, or for another look at it."""
clique_concerns = field_changed(_of_clique)
group_concerns = field_changed(_of_group)
gang_concerns = field_changed(_of_gang)
topology_concerns = field_changed(_of_topology)
token_concerns = field_changed(has_token)
