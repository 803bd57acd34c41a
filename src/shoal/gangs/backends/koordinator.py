"""Koordinator: a PodGroup of scheduling.sigs.k8s.io for each clique, joined into one gang by an annotation.

The annotation names all PodGroups of the PodGang, on each of them, so that none starts before all can. Where they run
is decided for the whole gang: Koordinator gathers the pods of all joined PodGroups by one and the same rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from shoal.api.grove import PodCliqueSet, names
from shoal.api.meta import Document, Resource, fit_name
from shoal.api.scheduler_grove_io import GangPodGroup, GangTopologyConstraint, PodGang
from shoal.api.scheduling_sigs_k8s_io import POD_GROUPS
from shoal.gangs.backends.backend import Backend, Marks, Untranslatable, Wanted, require_served, with_scheduler
from shoal.gangs.backends.podgang import copied_annotations, identity, preferred_key, required_key
from shoal.kube.admission import FieldProblem, forbidden

SCHEDULER: Final = "koord-scheduler"
POD_GROUP_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
QOS_LABEL: Final = "koordinator.sh/qosClass"
MAPPING_FAILED: Final = "KoordinatorBackendMappingFailed"
LAYERS: Final = {
    "kubernetes.io/hostname": "hostLayer",
    "topology.kubernetes.io/rack": "rackLayer",
    "topology.kubernetes.io/block": "blockLayer",
}
"""The layers of Koordinator's topology by the label that nodes carry."""

_ANNOTATION = "gang.scheduling.koordinator.sh"
_NO_GROUP = "none"
"""The value of Grove's MNNVL annotation by which a part of a set stays out."""


class KoordinatorConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the operator's configuration may say of Koordinator, in the config of its profile."""

    gang_mode: Literal["Strict", "NonStrict"] = "Strict"
    match_policy: Literal["only-waiting", "waiting-and-running", "once-satisfied"] = "once-satisfied"
    schedule_timeout_seconds: int = 30
    default_qos_class: Literal["LSE", "LSR", "LS", "BE", ""] = msgspec.field(name="defaultQoSClass", default="")
    topology_key_mappings: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Koordinator(Backend):
    """The backend of Koordinator's scheduler."""

    gang_mode: str = "Strict"
    match_policy: str = "once-satisfied"
    timeout_seconds: int = 30
    """How long pods hold their places while the rest of the gang finds none."""
    qos_class: str = ""
    """The QoS class of all pods: LSE, LSR, LS or BE; empty leaves it to Koordinator."""
    layers: Mapping[str, str] = field(default_factory=lambda: LAYERS)

    name = "koordinator"
    scheduler_names = frozenset({SCHEDULER})
    kinds = (POD_GROUPS.documents(),)

    @classmethod
    def configured(cls, config: Mapping[str, Any]) -> Koordinator:
        """The backend as a profile's config says; raises msgspec.ValidationError where that makes no sense."""
        said = msgspec.convert(config, KoordinatorConfig)
        return cls(
            gang_mode=said.gang_mode,
            match_policy=said.match_policy,
            timeout_seconds=said.schedule_timeout_seconds,
            qos_class=said.default_qos_class,
            layers={**LAYERS, **said.topology_key_mappings},
        )

    def translate(
        self, gang: PodGang, owner: PodCliqueSet | None, served: frozenset[Resource[Document]]
    ) -> Iterator[Wanted]:
        """A PodGroup for each clique of the gang."""
        require_served(POD_GROUPS, served)
        siblings = [f"{gang.metadata.namespace}/{_group_name(gang, group.name)}" for group in gang.spec.pod_groups]
        shared = {
            f"{_ANNOTATION}/groups": json.dumps(siblings),
            f"{_ANNOTATION}/mode": self.gang_mode,
            f"{_ANNOTATION}/match-policy": self.match_policy,
            **self._topology(gang),
        }
        labels = {**gang.metadata.labels, names.GANG_LABEL: gang.metadata.name}
        for group in gang.spec.pod_groups:
            annotations = {**copied_annotations(gang), **shared, **_total(group)}
            metadata = {
                **identity(gang, _group_name(gang, group.name)),
                "labels": {**labels, names.CLIQUE_LABEL: group.name},
                "annotations": annotations,
            }
            spec = {"minMember": group.min_replicas, "scheduleTimeoutSeconds": self.timeout_seconds}
            yield Wanted(resource=POD_GROUPS, body={"metadata": metadata, "spec": spec})

    def marks(self, gang: PodGang, clique: str) -> Marks:
        """The PodGroup of a pod."""
        quality = {QOS_LABEL: self.qos_class} if self.qos_class else {}
        return Marks(labels={POD_GROUP_LABEL: _group_name(gang, clique), **quality})

    def pod_spec(
        self, spec: Mapping[str, Any], gang: PodGang, clique: str, served: frozenset[Resource[Document]]
    ) -> Mapping[str, Any]:
        """Koordinator's scheduler, unless the pod names its own."""
        return with_scheduler(spec, SCHEDULER)

    def problems(self, pcs: PodCliqueSet) -> Iterator[FieldProblem]:
        """A replica of a scaling group cannot be gathered by itself, and domains of NVLink have no words here."""
        template = pcs.spec.template
        annotated = [("metadata.annotations", pcs.metadata.annotations)]
        for index, group in enumerate(template.pod_clique_scaling_groups):
            path = f"spec.template.podCliqueScalingGroups[{index}]"
            annotated.append((f"{path}.annotations", group.annotations))
            if group.topology_constraint is not None:
                yield forbidden(f"{path}.topologyConstraint", "koord-scheduler gathers a gang only as a whole")
        for index, clique in enumerate(template.cliques):
            annotated.append((f"spec.template.cliques[{index}].annotations", clique.annotations))
        for path, found in annotated:
            if found.get(names.MNNVL_ANNOTATION, _NO_GROUP) != _NO_GROUP:
                yield forbidden(f"{path}[{names.MNNVL_ANNOTATION}]", "koord-scheduler knows no MNNVL groups")

    def _topology(self, gang: PodGang) -> dict[str, str]:
        """How the gang is gathered: equal on all of its PodGroups, as Koordinator demands."""
        parts = [gang.spec.topology_constraint]
        inner: list[GangTopologyConstraint | None] = [
            part.topology_constraint for part in gang.spec.topology_constraint_group_configs
        ]
        inner += [group.topology_constraint for group in gang.spec.pod_groups]
        if len(gang.spec.pod_groups) == 1:
            parts += inner
        elif key := next((required_key(part) for part in inner if required_key(part)), ""):
            raise Untranslatable(
                MAPPING_FAILED,
                f"a part of the gang must share one value of {key}, and Koordinator gathers a gang only as a whole: "
                "put the constraint on the PodCliqueSet's template",
            )
        must = [self._layer(required_key(part)) for part in parts if required_key(part)]
        prefer = [self.layers.get(preferred_key(part), "") for part in parts]
        strategies = {layer: "PreferGather" for layer in prefer if layer} | dict.fromkeys(must, "MustGather")
        if not strategies:
            return {}
        gather = [{"layer": layer, "strategy": strategy} for layer, strategy in strategies.items()]
        return {f"{_ANNOTATION}/network-topology-spec": json.dumps({"gatherStrategy": gather})}

    def _layer(self, key: str) -> str:
        if key in self.layers:
            return self.layers[key]
        known = ", ".join(sorted(self.layers))
        raise Untranslatable(
            MAPPING_FAILED, f"no layer of Koordinator's topology is known for the label {key}: use one of {known}"
        )


def _group_name(gang: PodGang, clique: str) -> str:
    """The PodGroup of a clique; it is also the value of a label, and so may have to be shortened."""
    return fit_name(f"{gang.metadata.name}-{clique}")


def _total(group: GangPodGroup) -> dict[str, str]:
    count = len(group.pod_references)
    return {f"{_ANNOTATION}/total-number": str(count)} if count >= max(group.min_replicas, 1) else {}
