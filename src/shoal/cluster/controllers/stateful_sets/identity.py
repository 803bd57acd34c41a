"""Who a StatefulSet's pod is: its ordinal, the name and labels that follow from it, and its whole body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shoal.api.apps import REVISION_HASH, StatefulSet
from shoal.api.apps.stateful_sets import POD_INDEX, POD_NAME
from shoal.api.core import Pod
from shoal.cluster.controllers.stateful_sets.volumes import claim_names
from shoal.cluster.controllers.templates import pod_from_template

_NUMBERED = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_LARGEST = 2**31 - 1


def parent_and_ordinal(name: str) -> tuple[str, int | None]:
    """The set that a pod's name speaks of, and the ordinal in it; no ordinal where it is none."""
    parts = _NUMBERED.fullmatch(name)
    if parts is None:
        return "", None
    ordinal = int(parts[2]) if len(parts[2]) <= 200 else _LARGEST + 1
    return parts[1], ordinal if ordinal <= _LARGEST else None


def ordinal_of(pod: Pod) -> int | None:
    """The ordinal in a pod's name."""
    return parent_and_ordinal(pod.metadata.name)[1]


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name says that it belongs to the set."""
    return parent_and_ordinal(pod.metadata.name)[0] == stateful_set.metadata.name


def wanted_ordinals(stateful_set: StatefulSet) -> range:
    """The ordinals that are to have a pod."""
    start = stateful_set.spec.ordinals.start
    return range(start, start + stateful_set.spec.replicas)


def pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    """The name of the pod of an ordinal."""
    return f"{stateful_set.metadata.name}-{ordinal}"


def revision_of(pod: Pod) -> str:
    """The name of the revision that a pod was made from."""
    return pod.metadata.labels.get(REVISION_HASH, "")


def wanted_pod(stateful_set: StatefulSet, template: Mapping[str, Any], ordinal: int, revision: str) -> dict[str, Any]:
    """The pod of an ordinal, made from a revision's template."""
    name = pod_name(stateful_set, ordinal)
    body = pod_from_template(template, namespace=stateful_set.metadata.namespace, name=name)
    metadata, spec = body["metadata"], body["spec"]
    metadata["generateName"] = f"{stateful_set.metadata.name}-"
    metadata["labels"] = metadata.get("labels", {}) | identity_labels(name, ordinal) | {REVISION_HASH: revision}
    spec["hostname"] = name
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    else:
        spec.pop("subdomain", None)
    claims = claim_names(stateful_set, ordinal)
    if claims:
        others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
        spec["volumes"] = [*(_claim_volume(*claim) for claim in claims.items()), *others]
    return body


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    """The labels that say who a pod is."""
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def has_identity(stateful_set: StatefulSet, pod: Pod, ordinal: int) -> bool:
    """Whether a pod is named and labelled as the one of its ordinal."""
    name = pod.metadata.name
    return name == pod_name(stateful_set, ordinal) and pod.metadata.labels.get(POD_NAME) == name


def has_storage(stateful_set: StatefulSet, pod: Pod, ordinal: int) -> bool:
    """Whether a pod's volumes are the claims of its ordinal."""
    return not missing_volumes(stateful_set, pod, ordinal)


def missing_volumes(stateful_set: StatefulSet, pod: Pod, ordinal: int) -> list[dict[str, Any]]:
    """The volumes that a pod should have and has not."""
    present = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
    claims = claim_names(stateful_set, ordinal)
    return [_claim_volume(name, claim) for name, claim in claims.items() if present.get(name) != claim]


def _claim_volume(name: str, claim: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
