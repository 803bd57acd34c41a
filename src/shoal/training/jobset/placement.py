"""Exclusive placement: the pods of a Job share one domain of a topology, and no other Job of its priority is there.

The first pod of a Job, its leader, is placed by affinity; the others, its followers, select the domain that the leader
got. A follower is not made before its leader has a node, and one that went astray is deleted, to be made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.api.batch import COMPLETION_INDEX
from shoal.api.core import Node, Pod, is_active
from shoal.api.jobset import names

NOT_YET: Final = "leader pod not yet scheduled, not creating follower pod. this is an expected, transient error"

_Body = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a leader is: its domain, None where its node has none."""

    node: str
    domain: str | None


def is_exclusive(annotations: Mapping[str, str]) -> bool:
    """Whether a pod is placed by these rules, and not by nodes that were labelled beforehand."""
    return names.EXCLUSIVE_TOPOLOGY in annotations and names.NODE_SELECTOR_STRATEGY not in annotations


def is_leader(annotations: Mapping[str, str]) -> bool:
    """Whether a pod is the first one of its Job."""
    return annotations.get(COMPLETION_INDEX) == "0"


def is_astray(follower: Pod, topology: str, domain: str) -> bool:
    """Whether a follower does not select the domain of its leader."""
    return follower.spec.node_selector.get(topology) != domain


def leader_among(pods: Iterable[Pod], job_uid: str) -> Pod | None:
    """The leader of a Job, if it is there and runs or is to run."""
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and owner.uid == job_uid and is_active(pod) and is_leader(pod.metadata.annotations):
            return pod
    return None


def place_of(leader: Pod, topology: str, node: Node | None) -> Place | None:
    """Where a leader is; None while it has no node."""
    if not leader.spec.node_name:
        return None
    return Place(leader.spec.node_name, None if node is None else node.metadata.labels.get(topology))


def placed(pod: _Body, place: Place | None) -> _Body:
    """A pod that is about to be made, with what brings it where it belongs; ``place`` is its leader's."""
    metadata = pod["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    if names.JOB_SET_NAME not in annotations or names.NODE_SELECTOR_STRATEGY in annotations:
        return pod
    spec = dict(pod.get("spec") or {})
    if spec.get("priority") is not None:
        labels = {**labels, names.PRIORITY: str(spec["priority"])}
    if is_exclusive(annotations):
        topology = annotations[names.EXCLUSIVE_TOPOLOGY]
        if is_leader(annotations):
            spec["affinity"] = _with_exclusive_affinity(spec.get("affinity") or {}, labels, topology)
        elif place is not None and place.domain is not None:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), topology: place.domain}
    return {**pod, "metadata": {**metadata, "labels": labels}, "spec": spec}


def refusal(pod: _Body, place: Place | None) -> str:
    """Why a pod may not be made yet; empty where it may."""
    annotations = pod["metadata"].get("annotations") or {}
    if names.JOB_SET_NAME not in annotations or not is_exclusive(annotations) or is_leader(annotations):
        return ""
    if place is None:
        return NOT_YET
    topology = annotations[names.EXCLUSIVE_TOPOLOGY]
    if topology not in (pod.get("spec", {}).get("nodeSelector") or {}):
        return (
            f"follower pod node selector for topology domain not found. missing selector: {topology}: "
            f"label node {place.node} with it"
        )
    return ""


def _with_exclusive_affinity(affinity: Mapping[str, Any], labels: Mapping[str, str], topology: str) -> _Body:
    key = labels.get(names.JOB_KEY, "")
    together: list[_Body] = [{"key": names.JOB_KEY, "operator": "In", "values": [key]}]
    apart: list[_Body] = [
        {"key": names.JOB_KEY, "operator": "Exists"},
        {"key": names.JOB_KEY, "operator": "NotIn", "values": [key]},
        {"key": names.PRIORITY, "operator": "In", "values": [labels.get(names.PRIORITY, "")]},
    ]
    return {
        **affinity,
        "podAffinity": _with_term(affinity.get("podAffinity") or {}, together, topology),
        "podAntiAffinity": _with_term(affinity.get("podAntiAffinity") or {}, apart, topology),
    }


def _with_term(terms: Mapping[str, Any], expressions: list[_Body], topology: str) -> _Body:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology, "namespaceSelector": {}}
    return {**terms, required: [*(terms.get(required) or []), term]}
