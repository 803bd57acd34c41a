"""Volcano, 1.14 or later: a gang is one PodGroup of scheduling.volcano.sh, and its cliques are subgroups by label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from shoal.api import kai_names
from shoal.api.grove import PodCliqueSet, TopologyConstraint, names
from shoal.api.meta import Document, Resource, dns1123_subdomain_problems
from shoal.api.scheduler_grove_io import PodGang
from shoal.api.scheduling_volcano_sh import POD_GROUPS
from shoal.gangs.backends.backend import Backend, Marks, NotServed, Untranslatable, Wanted, with_scheduler
from shoal.gangs.backends.podgang import copied_annotations, has_constraint, identity, minimum, without_empty
from shoal.kube.admission import FieldProblem, forbidden, invalid

SCHEDULER: Final = "volcano"
QUEUE_ANNOTATION: Final = "scheduling.grove.io/volcano-queue"
DEFAULT_QUEUE: Final = "default"
GROUP_ANNOTATIONS: Final = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
UNAVAILABLE: Final = "VolcanoCapabilityUnavailable"
MAPPING_FAILED: Final = "VolcanoBackendMappingFailed"

_NO_TOPOLOGY = "the volcano scheduler has no topology constraints"


class Volcano(Backend):
    """The backend of Volcano's scheduler."""

    name = "volcano"
    scheduler_names = frozenset({SCHEDULER})
    kinds = (POD_GROUPS.documents(),)

    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterable[Wanted]:
        """The gang's PodGroup."""
        if POD_GROUPS.documents() not in served:
            raise NotServed(
                f"the cluster does not serve {POD_GROUPS.kind} of {POD_GROUPS.api_version}: install Volcano 1.14 or "
                "later, or name another scheduler in the cliques' schedulerName",
                event=UNAVAILABLE,
            )
        if has_constraint(gang):
            raise Untranslatable(MAPPING_FAILED, f"{_NO_TOPOLOGY}: remove them, or use another scheduler")
        metadata = {
            **identity(gang, gang.metadata.name),
            "labels": dict(gang.metadata.labels),
            "annotations": copied_annotations(gang),
        }
        spec = {
            "minMember": max(minimum(gang), 1),
            "queue": _queue(gang, owner),
            "priorityClassName": gang.spec.priority_class_name,
            "subGroupPolicy": [
                {
                    "name": group.name,
                    "labelSelector": {"matchLabels": {names.CLIQUE_LABEL: group.name}},
                    "matchLabelKeys": [names.CLIQUE_LABEL],
                    "subGroupSize": max(group.min_replicas, 1),
                    "minSubGroups": 1,
                }
                for group in gang.spec.pod_groups
            ],
        }
        body = {"metadata": without_empty(metadata), "spec": without_empty(spec)}
        return [Wanted(resource=POD_GROUPS, body=body, dropped=UNAVAILABLE)]

    def marks(self, gang: PodGang, clique: str) -> Marks:
        """The PodGroup of a pod."""
        return Marks(annotations=dict.fromkeys(GROUP_ANNOTATIONS, gang.metadata.name))

    def pod_spec(
        self, spec: Mapping[str, Any], gang: PodGang, clique: str, served: frozenset[Resource[Document]]
    ) -> Mapping[str, Any]:
        """Volcano, unless the pod names its scheduler."""
        return with_scheduler(spec, SCHEDULER)

    def problems(self, pcs: PodCliqueSet) -> Iterator[FieldProblem]:
        """No topologies, and one queue whose name can be one."""
        for path, constraint in _constraints(pcs):
            if constraint is not None:
                yield forbidden(f"{path}.topologyConstraint", _NO_TOPOLOGY)
        chosen = ""
        for path, found in _annotations(pcs):
            queue = found.get(QUEUE_ANNOTATION, "")
            chosen = chosen or queue
            place = f"{path}[{QUEUE_ANNOTATION}]"
            if QUEUE_ANNOTATION in found:
                yield from (invalid(place, queue, problem) for problem in dns1123_subdomain_problems(queue))
            if queue and queue != chosen:
                yield invalid(place, queue, f"must be {chosen!r} as elsewhere in the set: a gang waits in one queue")


def _queue(gang: PodGang, owner: PodCliqueSet | None) -> str:
    """The queue that the gang names, else its set's cliques; others name one as they would for any scheduler."""
    named = _clique_queue(owner) if owner is not None else gang.metadata.labels.get(kai_names.QUEUE)
    return gang.metadata.annotations.get(QUEUE_ANNOTATION) or named or DEFAULT_QUEUE


def _clique_queue(owner: PodCliqueSet) -> str:
    """The queue that cliques name where the set names none."""
    return next((queue for _, each in _annotations(owner) if (queue := each.get(QUEUE_ANNOTATION, ""))), "")


def _constraints(pcs: PodCliqueSet) -> Iterator[tuple[str, TopologyConstraint | None]]:
    template = pcs.spec.template
    yield "spec.template", template.topology_constraint
    for index, clique in enumerate(template.cliques):
        yield f"spec.template.cliques[{index}]", clique.topology_constraint
    for index, group in enumerate(template.pod_clique_scaling_groups):
        yield f"spec.template.podCliqueScalingGroups[{index}]", group.topology_constraint


def _annotations(pcs: PodCliqueSet) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "metadata.annotations", pcs.metadata.annotations
    for index, clique in enumerate(pcs.spec.template.cliques):
        yield f"spec.template.cliques[{index}].annotations", clique.annotations
