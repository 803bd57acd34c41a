"""What a PodGang says: which pods start together, where, with which priority, and by which scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta import LAST_APPLIED, is_controlled_by
from shoal.api.scheduler_grove_io import GangPodGroup, PodGang, PodGangSpec
from shoal.gangs.backends.registry import Backends
from shoal.gangs.plan import PlannedGang
from shoal.gangs.podgangs.membership import References
from shoal.gangs.topologies.constraints import Keys, gang_constraints


@dataclass(frozen=True, kw_only=True)
class Contents:
    """All that is written of a PodGang; other labels and annotations on it are others' and stay."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: PodGangSpec

    def body(self, name: str, namespace: str) -> dict[str, Any]:
        """The object to apply."""
        metadata = {"name": name, "namespace": namespace, "labels": dict(self.labels)}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {"metadata": metadata, "spec": msgspec.to_builtins(self.spec)}

    def are_in(self, gang: PodGang, owner_uid: str) -> bool:
        """Whether a PodGang surely says this and nothing that was ours once; a cheap look before a thorough one."""
        metadata = gang.metadata
        return (
            gang.spec == self.spec
            and _mirrored(metadata.labels, self.labels)
            and _mirrored(metadata.annotations, self.annotations)
            and is_controlled_by(metadata, owner_uid)
        )


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The topology that a set names, if sets may do that, and the node labels that its domains mean."""

    name: str = ""
    keys: Keys = field(default_factory=dict)


def contents_of(
    pcs: PodCliqueSet,
    gang: PlannedGang,
    references: References,
    *,
    topology: Topology,
    default_scheduler: str,
    backends: Backends,
) -> Contents:
    """What the PodGang of a planned gang says. Cliques without references have none yet."""
    constraints = gang_constraints(pcs, gang, topology.keys)
    spec = PodGangSpec(
        pod_groups=[
            GangPodGroup(
                name=clique.name,
                pod_references=list(references.get(clique.name, ())),
                min_replicas=clique.template.spec.minimum,
                topology_constraint=constraints.cliques[clique.name],
            )
            for clique in gang.cliques
        ],
        topology_constraint=constraints.whole,
        topology_constraint_group_configs=constraints.groups,
        priority_class_name=pcs.spec.template.priority_class_name,
    )
    scheduler = scheduler_name(pcs)
    labels = {
        **{key: value for key, value in pcs.metadata.labels.items() if not names.is_grove_key(key)},
        **identity_labels(pcs, gang),
        names.SCHEDULER_NAME_LABEL: scheduler or default_scheduler,
        names.SCHEDULER_BACKEND_LABEL: backends.label(scheduler or default_scheduler),
    }
    annotations = {
        key: value
        for key, value in pcs.metadata.annotations.items()
        if not names.is_grove_key(key) and key != LAST_APPLIED
    }
    if topology.name:
        annotations[names.TOPOLOGY_ANNOTATION] = topology.name
    return Contents(labels=labels, annotations=annotations, spec=spec)


def identity_labels(pcs: PodCliqueSet, gang: PlannedGang) -> dict[str, str]:
    """By what a PodGang is found: its set, the replica of it, and the replica of a scaling group that it is."""
    labels = {
        **names.default_labels(pcs.metadata.name),
        names.COMPONENT_LABEL: names.GANG_COMPONENT,
        names.SET_REPLICA_LABEL: str(gang.set_replica),
    }
    if gang.group:
        labels[names.SCALING_GROUP_LABEL] = gang.group
        labels[names.SCALING_GROUP_REPLICA_LABEL] = str(gang.group_replica)
    return labels


def scheduler_name(pcs: PodCliqueSet) -> str:
    """The scheduler that the set's pods name, which is one for all of them; empty where none is named."""
    found = (clique.spec.pod_spec.get("schedulerName") for clique in pcs.spec.template.cliques)
    return next((str(name) for name in found if name), "")


def _mirrored(live: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all that is wanted is there, and nothing else but Grove's own."""
    if not wanted.items() <= live.items():
        return False
    return len(live) == len(wanted) or all(key in wanted or names.is_grove_key(key) for key in live)
