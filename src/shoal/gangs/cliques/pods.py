"""What a pod of a clique is made of: its clique's pod spec, its place in the set, and what its scheduler needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.api.grove import PodClique, PodCliqueSet, names
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.backends import Backends, Marks
from shoal.gangs.claims.pods import with_claims
from shoal.gangs.compute_domains.pods import with_compute_domain
from shoal.gangs.environment import with_environment
from shoal.gangs.plan import PlannedClique
from shoal.gangs.settings import GangSettings
from shoal.gangs.startup.container import start_container


@dataclass(frozen=True, kw_only=True)
class Mould:
    """What the pods of a clique are made from; they differ in their index alone."""

    pcs: PodCliqueSet
    clique: PodClique
    planned: PlannedClique
    gang: PodGang
    backends: Backends
    settings: GangSettings


def wanted_pod(mould: Mould, index: int) -> dict[str, Any]:
    """The pod of an index, as it is sent to the server: gated, and marked as its scheduler wants it."""
    clique, marks = mould.clique, marks_of(mould.gang, mould.clique, mould.backends)
    annotations = {**_own_annotations(clique), **marks.annotations}
    return {
        "metadata": {
            "generateName": f"{clique.metadata.name}-",
            "namespace": clique.metadata.namespace,
            "labels": {**pod_labels(mould, index), **marks.labels},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": _spec(mould, index),
    }


def marks_of(gang: PodGang, clique: PodClique, backends: Backends) -> Marks:
    """By what the gang's scheduler knows the clique's pods; nothing where nobody here speaks for the scheduler."""
    backend = backends.of(gang)
    return Marks() if backend is None else backend.marks(gang, clique.metadata.name)


def pod_labels(mould: Mould, index: int) -> dict[str, str]:
    """The labels that say where a pod belongs."""
    return {
        **names.default_labels(mould.pcs.metadata.name),
        **mould.clique.metadata.labels,
        names.CLIQUE_LABEL: mould.clique.metadata.name,
        names.SET_REPLICA_LABEL: str(mould.planned.set_replica),
        names.GANG_LABEL: mould.planned.gang,
        names.POD_INDEX_LABEL: str(index),
    }


def _own_annotations(clique: PodClique) -> dict[str, str]:
    return {key: value for key, value in clique.metadata.annotations.items() if key != names.TOPOLOGY_ANNOTATION}


def _spec(mould: Mould, index: int) -> Mapping[str, Any]:
    pcs, clique, planned = mould.pcs, mould.clique, mould.planned
    spec: Mapping[str, Any] = {
        **with_environment(clique.spec.pod_spec, _environment(mould)),
        "hostname": names.pod_hostname(clique.metadata.name, index),
        "subdomain": names.headless_service(pcs.metadata.name, planned.set_replica),
        "schedulingGates": [{"name": names.GATE}],
    }
    if pcs.spec.template.priority_class_name:
        spec = {**spec, "priorityClassName": pcs.spec.template.priority_class_name}
    spec = with_claims(spec, pcs, planned, index)
    spec = with_compute_domain(spec, pcs, planned, mould.settings)
    spec = _starting_after_parents(spec, mould)
    backend = mould.backends.of(mould.gang)
    if backend is None:
        return spec
    return backend.pod_spec(spec, mould.gang, clique.metadata.name, mould.backends.served())


def _environment(mould: Mould) -> list[dict[str, Any]]:
    set_name, replica = mould.pcs.metadata.name, mould.planned.set_replica
    address = names.headless_address(set_name, replica, mould.clique.metadata.namespace)
    index_label = f"metadata.labels['{names.POD_INDEX_LABEL}']"
    return [
        {"name": "GROVE_PCS_NAME", "value": set_name},
        {"name": "GROVE_PCS_INDEX", "value": str(replica)},
        {"name": "GROVE_PCLQ_NAME", "value": mould.clique.metadata.name},
        {"name": "GROVE_HEADLESS_SERVICE", "value": address},
        {"name": "GROVE_PCLQ_POD_INDEX", "valueFrom": {"fieldRef": {"fieldPath": index_label}}},
    ]


def _starting_after_parents(spec: Mapping[str, Any], mould: Mould) -> Mapping[str, Any]:
    """The spec with a last init container that waits for those who start first; it has no devices and no variables."""
    start = start_container(mould.planned.parents, mould.settings, mould.pcs.metadata.name)
    if start is None:
        return spec
    return {
        **spec,
        "initContainers": [*(spec.get("initContainers") or ()), start.init_container],
        "volumes": [*(spec.get("volumes") or ()), *start.volumes],
    }
