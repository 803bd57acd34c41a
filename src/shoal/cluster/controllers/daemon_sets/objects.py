"""A DaemonSet's pod for a node, and what can be told from such a pod: its node, its age, its template."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from shoal.api.apps import REVISION_HASH, DaemonSet
from shoal.api.apps.daemon_sets import POD_TEMPLATE_GENERATION, TEMPLATE_GENERATION
from shoal.api.core import Pod, is_finished
from shoal.cluster.controllers.daemon_sets.eligibility import daemon_tolerations
from shoal.cluster.controllers.templates import pod_from_template
from shoal.cluster.placement import NODE_NAME_FIELD, required_node_selector

_BEGINNING = datetime.min.replace(tzinfo=UTC)


def wanted_pod(daemon_set: DaemonSet, node: str, short_hash: str) -> dict[str, Any]:
    """The pod for a node; the scheduler binds it there, since its affinity allows no other."""
    metadata = daemon_set.metadata
    body = pod_from_template(daemon_set.spec.template, namespace=metadata.namespace, generate_name=f"{metadata.name}-")
    labels = body["metadata"].setdefault("labels", {})
    generation = template_generation(daemon_set)
    if generation is not None:
        labels[POD_TEMPLATE_GENERATION] = str(generation)
    labels[REVISION_HASH] = short_hash
    spec = body["spec"]
    spec["tolerations"] = daemon_tolerations(spec)
    affinity = spec.get("affinity") or {}
    term = {"matchFields": [{"key": NODE_NAME_FIELD, "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec["affinity"] = affinity | {"nodeAffinity": (affinity.get("nodeAffinity") or {}) | required}
    return body


def template_generation(daemon_set: DaemonSet) -> int | None:
    """How often the template has changed, by the server's own count; None where it does not say."""
    try:
        return int(daemon_set.metadata.annotations[TEMPLATE_GENERATION])
    except (KeyError, ValueError):
        return None


def target_node(pod: Pod) -> str:
    """The node that a pod is on, or is for; empty where it does not say."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = required_node_selector(pod.spec.affinity) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == NODE_NAME_FIELD and field.get("operator") == "In":
                values: list[str] = field.get("values") or []
                return values[0] if len(values) == 1 else ""
    return ""


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Pods by their node, less those that have ended and are being deleted: nothing is left to do about them."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_finished(pod) and pod.metadata.is_deleting:
            continue
        node = target_node(pod)
        if node:
            found.setdefault(node, []).append(pod)
    return found


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Pods that have a node before those that have none, and then by age and name."""
    return sorted(
        pods,
        key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp or _BEGINNING, pod.metadata.name),
    )


def is_updated(pod: Pod, short_hash: str, generation: int | None) -> bool:
    """Whether a pod was made from the present template."""
    labels = pod.metadata.labels
    if short_hash and labels.get(REVISION_HASH) == short_hash:
        return True
    return generation is not None and labels.get(POD_TEMPLATE_GENERATION) == str(generation)
