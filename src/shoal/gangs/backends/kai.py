"""KAI: a gang is one PodGroup of scheduling.run.ai, its cliques are subgroups, and it waits in a queue.

The PodGroup's name holds the gang's uid, so that pods of an earlier gang of the same name are never counted in.
Which queue a gang waits in is decided when its PodGroup is made; moving it afterwards is KAI's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from shoal.api import kai_names
from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import POD_GANGS, GangTopologyConstraint, PodGang
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.gangs.backends.backend import Backend, Marks, Untranslatable, Wanted, require_served, with_scheduler
from shoal.gangs.backends.podgang import (
    check_labels,
    copied_annotations,
    identity,
    minimum,
    preferred_key,
    required_key,
    without_empty,
)
from shoal.kube.admission import FieldProblem, invalid

MAPPING_FAILED: Final = "KAIBackendMappingFailed"

_MOVABLE = (kai_names.QUEUE, kai_names.NODE_POOL)
"""Labels of a PodGroup that say where it waits; whoever moves it changes them."""


class Kai(Backend):
    """The backend of KAI-Scheduler, and of every scheduler that nobody knows."""

    name = "kai"
    scheduler_names = frozenset({kai_names.SCHEDULER, "grove-scheduler"})
    kinds = (POD_GROUPS.documents(),)

    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterable[Wanted]:
        """The gang's PodGroup."""
        require_served(POD_GROUPS, served)
        queue = queue_of(owner) if owner is not None else _queue_in(gang.metadata.labels, {}) or kai_names.DEFAULT_QUEUE
        labels = gang.metadata.labels
        annotations = {**copied_annotations(gang), **self.gang_marks(gang).annotations}
        metadata = {
            **identity(gang, pod_group_name(gang)),
            "labels": {key: value for key, value in labels.items() if key not in _MOVABLE},
            "annotations": {**annotations, kai_names.TOP_OWNER: _top_owner(gang)},
        }
        spec = {
            "minMember": minimum(gang),
            "priorityClassName": gang.spec.priority_class_name,
            "topologyConstraint": _constraint(gang, gang.spec.topology_constraint),
            "subGroups": list(_sub_groups(gang)),
        }
        movable = {key: labels[key] for key in _MOVABLE if key in labels}
        initial = {"spec": {"queue": queue}, **({"metadata": {"labels": movable}} if movable else {})}
        body = {"metadata": metadata, "spec": without_empty(spec)}
        return [Wanted(resource=POD_GROUPS, body=body, initial=initial)]

    def marks(self, gang: PodGang, clique: str) -> Marks:
        """The PodGroup and the subgroup of a pod; KAI's own grouper leaves it alone."""
        return Marks(
            labels={kai_names.SUBGROUP: clique},
            annotations={kai_names.SKIP_GROUPER: "true", kai_names.POD_GROUP: pod_group_name(gang)},
        )

    def gang_marks(self, gang: PodGang) -> Marks:
        """KAI's own grouper leaves the gang alone."""
        return Marks(annotations={kai_names.SKIP_GROUPER: "true"})

    def pod_spec(
        self, spec: Mapping[str, Any], gang: PodGang, clique: str, served: frozenset[Resource[Document]]
    ) -> Mapping[str, Any]:
        """KAI, unless the pod names its scheduler."""
        return with_scheduler(spec, kai_names.SCHEDULER)

    def problems(self, pcs: PodCliqueSet) -> Iterator[FieldProblem]:
        """A set waits in one queue."""
        chosen = _queue_in(pcs.metadata.labels, pcs.metadata.annotations)
        for index, clique in enumerate(pcs.spec.template.cliques):
            queue = _queue_in(clique.labels, clique.annotations)
            chosen = chosen or queue
            if queue and queue != chosen:
                kept = "labels" if clique.labels.get(kai_names.QUEUE) else "annotations"
                path = f"spec.template.cliques[{index}].{kept}[{kai_names.QUEUE}]"
                yield invalid(path, queue, f"must be {chosen!r} as elsewhere in the set: a gang waits in one queue")


def pod_group_name(gang: PodGang) -> str:
    """The PodGroup of a gang."""
    return f"pg-{gang.metadata.name}-{gang.metadata.uid}"


def queue_of(owner: PodCliqueSet) -> str:
    """The queue of a set's gangs: the set's own, else the one that its cliques name, else the default one."""
    cliques = owner.spec.template.cliques
    named = {_queue_in(clique.labels, clique.annotations) for clique in cliques} - {""}
    own = _queue_in(owner.metadata.labels, owner.metadata.annotations)
    queues = {own, *named} - {""}
    if len(queues) > 1:
        said = ", ".join(sorted(queues))
        raise Untranslatable(
            MAPPING_FAILED,
            f"PodCliqueSet {owner.metadata.name} names several queues ({said}): "
            f"leave one value of {kai_names.QUEUE}, on the set or on its cliques",
        )
    return own or next(iter(named), kai_names.DEFAULT_QUEUE)


def _queue_in(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    return labels.get(kai_names.QUEUE) or annotations.get(kai_names.QUEUE, "")


def _sub_groups(gang: PodGang) -> Iterator[dict[str, Any]]:
    """The parts of a gang that are kept together, then its cliques, each in the first part that names it.

    KAI wants a minimum of parts on what has parts, and a minimum of pods on what has none.
    """
    cliques = [group.name for group in gang.spec.pod_groups]
    parents: dict[str, str] = {}
    for part in gang.spec.topology_constraint_group_configs:
        for clique in part.pod_group_names:
            if clique in cliques:
                parents.setdefault(clique, part.name)
    sizes = {part: list(parents.values()).count(part) for part in parents.values()}
    check_labels([*sizes, *cliques], MAPPING_FAILED, "the subgroup")
    if clashes := sorted(set(sizes) & set(cliques)):
        raise Untranslatable(MAPPING_FAILED, f"{clashes[0]!r} names a clique and a scaling group's replica: rename one")
    for part in gang.spec.topology_constraint_group_configs:
        if part.name in sizes:
            constraint = _constraint(gang, part.topology_constraint)
            yield {"name": part.name, "minSubGroup": sizes[part.name], **_if_any("topologyConstraint", constraint)}
    for group in gang.spec.pod_groups:
        yield {
            "name": group.name,
            "minMember": group.min_replicas,
            **_if_any("parent", parents.get(group.name)),
            **_if_any("topologyConstraint", _constraint(gang, group.topology_constraint)),
        }


def _constraint(gang: PodGang, constraint: GangTopologyConstraint | None) -> dict[str, str]:
    required, preferred = required_key(constraint), preferred_key(constraint)
    if not required and not preferred:
        return {}
    annotations = gang.metadata.annotations
    topology = annotations.get(names.TOPOLOGY_ANNOTATION) or annotations.get(kai_names.TOPOLOGY, "")
    if not topology:
        raise Untranslatable(
            MAPPING_FAILED,
            f"the gang asks for a topology and does not say which: set annotation {names.TOPOLOGY_ANNOTATION} or "
            f"{kai_names.TOPOLOGY} to the name of a Topology",
        )
    return {
        "topology": topology,
        **_if_any("requiredTopologyLevel", required),
        **_if_any("preferredTopologyLevel", preferred),
    }


def _if_any(name: str, value: Any) -> dict[str, Any]:
    return {name: value} if value else {}


def _top_owner(gang: PodGang) -> str:
    """What KAI shows as the workload: a small YAML document."""
    facts = {
        "name": gang.metadata.name,
        "uid": gang.metadata.uid,
        "group": POD_GANGS.group,
        "version": POD_GANGS.version,
        "kind": POD_GANGS.kind,
    }
    return "\n".join(f"{key}: {value}" for key, value in facts.items())
